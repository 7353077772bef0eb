"""Follows what the values of each tensor in a forward come from, in hashes that two forwards share.

Two operations have the same hash if they do the same to the same values: on the same input, on the
same parameter, on a constant with the same numbers, or on what operations of the same hash gave.
Views and copies hand a hash on, so it does not matter how tensors are laid out.
"""

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch

from runner.torch_internals import storage_of, without_modes
from runner.verify.gates.operation_identity import (
    COPIES,
    CREATES,
    FILLS,
    SCATTERS,
    SIGNIFICANT_DIGITS,
    BoundArgument,
    DispatchedOperation,
)
from runner.verify.runtime.operand_sums import OperandSum, OperandSums, may_stand_for, sum_operands

Origin = frozenset[int]
"""Hashes of all that a tensor's values come from; a tensor that was written in parts has several.

A constant's only hash is that of its numbers.
"""
_MOST_ELEMENTS = 4096
"""Number of elements of a constant that are compared; of a larger one, as many random ones."""
_SMALL_NUMBER, _ROUNDING = 1e-4, 0.5
"""Changes of a constant that its hash shows: of an element by half; the sums show smaller ones."""
_PRODUCTS_WITH_A_SUM = {"addmm", "addmv", "addr", "addbmm", "baddbmm"}
"""Products that are added to `beta` times another tensor."""
_SYMMETRIC = {"add", "mul", "maximum", "minimum", "eq", "ne", "logical_and", "logical_or"}
"""Operations whose operands may be swapped; those of `add` only without a factor."""
_SWAPPED = {"ge", "gt"}
"""Comparisons whose identity is that of their mirror, with the operands swapped."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies an operation in a program: those of an equal program are alike."""

    code: int | None = None
    """Hash of the operation and of all that its operands come from.

    An operation that draws random numbers has none, nor has a copy, unless it writes constants into
    something.
    """
    is_uncertain: bool = False
    """Whether an equal program without writes may have another hash here."""
    operands: tuple[int | None, ...] = ()
    """Hash of each operand's origin; None for one that an equal program may have from elsewhere."""
    is_symmetric: bool = False
    """Whether the operands may be swapped."""
    sums: OperandSums = field(default=(), compare=False)

    def has_operands_of(self, original: "Identity") -> bool:
        """Return whether the operands may have the values of the original's, of the same code."""
        if may_stand_for(self.sums, original.sums):
            return True
        swapped = (*self.sums[1::-1], *self.sums[2:])
        return self.is_symmetric and may_stand_for(swapped, original.sums)

    def may_equal(self, other: "Identity") -> bool:
        """Return whether no operand is certainly another one; the operations are the same."""
        if not self.is_uncertain and not other.is_uncertain:
            return self.code == other.code
        if len(self.operands) != len(other.operands):
            return True
        if not self.is_symmetric:
            pairs = zip(self.operands, other.operands, strict=True)
            return all(a == b or a is None or b is None for a, b in pairs)
        counts = Counter(self.operands)
        counts.subtract(other.operands)
        unmatched = sum(n for operand, n in counts.items() if n > 0 and operand is not None)
        return unmatched <= other.operands.count(None)


class Origins:
    """The origins of the storages in one forward, by their numbers.

    A storage without an entry holds a constant or a buffer, whose numbers are compared.
    """

    def __init__(self, parameters: frozenset[int]) -> None:
        """`parameters`: their storages; the models of a comparison have them in the same memory."""
        self._parameters = parameters
        self._by_storage: dict[int, Origin] = {}
        self._computed: set[int] = set()
        """Storages into which an operation wrote what depends on an input or a parameter."""
        self._uncertain: set[int] = set()
        """Storages that come from one that was written part by part.

        A program without writes computes another tensor there, and only some of the later readers
        read that one.
        """

    def register_input(self, number: int, position: int) -> None:
        """Register an input of the forward."""
        self._by_storage[number] = frozenset({hash(("input", position))})

    def register_uncertain(self, numbers: set[int]) -> None:
        """Register storages for which an equal program may have others."""
        self._uncertain |= numbers

    def is_uncertain(self, numbers: set[int]) -> bool:
        """Return whether an equal program may have other hashes for one of these storages."""
        return not self._uncertain.isdisjoint(numbers)

    def find(self, tensor: torch.Tensor, number: int) -> Origin:
        """Return the origin of a tensor in the storage of this number."""
        if number not in self._by_storage and storage_of(tensor) in self._parameters:
            parameter = hash(("parameter", storage_of(tensor)))
            self._by_storage[number] = frozenset({parameter})
        origin = self._by_storage.get(number)
        if origin is not None:
            return origin
        return frozenset({_hash_values(tensor)} if tensor.numel() else ())

    def record(
        self,
        name: str,
        bound: list[BoundArgument],
        before: dict[int, tuple[int, Origin]],
        operation: DispatchedOperation,
        outputs: list[int],
        *,
        random: bool,
        sums: OperandSums = (),
    ) -> Identity:
        """Record where an operation's results come from; return its identity.

        `before`: number and origin of each argument by its id(), before the operation ran.
        `outputs`: numbers of the results' storages. `sums`: what `sum_operands` returned.
        """
        written = [t for a in bound if a.is_written and a.name != "out" for t in a.tensors]
        values = {argument.name: argument.value for argument in bound}
        is_copy = name in COPIES | FILLS | SCATTERS
        if is_copy:
            fill = 0 if name.startswith("zero") else values.get("value")
            source = fill if name in FILLS else values.get("src", values["self"])
            read = [source] if isinstance(source, torch.Tensor) else []
            result = before[id(source)][1] if read else frozenset({_hash_number(source)})
        else:
            is_read = name not in CREATES
            unread = {"out", "self"} if _overwrites_all(name, values) else {"out"}
            read = [t for a in bound if is_read and a.name not in unread for t in a.tensors]
            origins = () if random else tuple(before[id(t)][1] for t in read)
            result = frozenset({_hash_operation(name, operation, origins)})
        operands: list[int | None] = []
        fills_in_parts = False
        for t in () if is_copy or random else read:
            number, origin = before[id(t)]
            # An equal program may write into zeros where this one writes into `torch.empty`.
            is_new = number in self._by_storage and not origin
            is_in_parts = any(t is w and (is_new or is_part(w)) for w in written)
            fills_in_parts |= is_in_parts
            is_other = number in self._uncertain or is_in_parts
            operands.append(None if is_other else hash(origin))
        if name.rstrip("_") in _SWAPPED:
            operands.reverse()
        is_known = random or any(before[id(t)][0] in self._by_storage for t in read)
        is_uncertain = any(before[id(t)][0] in self._uncertain for t in [*read, *written])
        is_uncertain |= fills_in_parts
        is_uncertain |= not is_copy and any(
            map(is_part, [t for a in bound if a.is_written for t in a.tensors])
        )
        bases: dict[int, torch.Tensor | None] = dict.fromkeys(outputs)
        """Storages with results; for each the tensor that keeps its other elements."""
        bases |= {before[id(t)][0]: t if is_part(t) else None for t in written}
        if name in SCATTERS and values["self"].numel() > values["src"].numel():
            bases = dict.fromkeys(bases, values["self"])
        for n, (number, base) in enumerate(bases.items()):
            origin = result if is_copy or not n else frozenset({hash((*result, n))})
            is_base_known = base is not None and before[id(base)][0] in self._by_storage
            is_assembled = base is not None and not self._by_storage.get(before[id(base)][0])
            if base is not None:
                origin |= before[id(base)][1] if is_base_known else _find_one_value(base)
            if is_known or is_base_known:
                self._by_storage[number] = origin
                self._computed.add(number)
            elif name.removeprefix("new_").startswith("empty"):
                self._by_storage[number] = frozenset()  # its numbers say nothing
            else:
                self._by_storage.pop(number, None)
            (self._uncertain.add if is_uncertain or is_assembled else self._uncertain.discard)(
                number
            )
        if is_copy:
            is_written_constant = not is_known and (written or name in SCATTERS)
            return Identity(hash(result) if is_written_constant else None, is_uncertain)
        return Identity(
            None if random else hash(result),
            is_uncertain,
            tuple(operands),
            operation.name in _SYMMETRIC,
            sums[1::-1] + sums[2:] if name.rstrip("_") in _SWAPPED else sums,
        )

    def sum_operands(
        self, name: str, bound: list[BoundArgument], before: dict[int, tuple[int, Origin]]
    ) -> OperandSums:
        """Return the sums over an operation's operands before it runs.

        None stands for an operand that an equal program may have from elsewhere.
        """
        if name in COPIES | FILLS | SCATTERS | CREATES:
            return ()
        read = [t for argument in bound if argument.name != "out" for t in argument.tensors]
        known = [
            t if before[id(t)][1] and before[id(t)][0] not in self._uncertain else None
            for t in read
        ]
        numbers = [before[id(t)][0] for t in read]
        sums = sum_operands(known, [number in self._computed for number in numbers])
        return tuple(
            OperandSum(entry.total, entry.tolerance, 0)  # a constant may be expanded
            if entry and number not in self._by_storage
            else entry
            for entry, number in zip(sums, [*numbers, None], strict=True)
        )


def is_part(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has fewer elements than its storage."""
    return tensor.numel() * tensor.element_size() < tensor.untyped_storage().nbytes()


@without_modes()
def _overwrites_all(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether an operation reads nothing of what a tensor held: every row is assigned.

    With `beta=0`, a product does not read what it would add.

    `values`: the operation's arguments by name.
    """
    stem, index = name.rstrip("_"), None
    if stem in _PRODUCTS_WITH_A_SUM:
        return bool(values.get("beta") == 0)
    if stem == "index_put" and not values.get("accumulate") and len(values["indices"]) == 1:
        (index,) = values["indices"]
    elif stem == "scatter" and values["self"].ndim == 1 and "reduce" not in values:
        index = values["index"]
    if index is None or index.dtype != torch.long or index.is_meta:
        return False
    rows = len(values["self"]) if values["self"].ndim else 0
    if index.shape != (rows,):
        return False
    return torch.equal(index.sort().values, torch.arange(rows, device=index.device))


def _hash_operation(name: str, operation: DispatchedOperation, origins: tuple[Origin, ...]) -> int:
    is_symmetric = operation.name in _SYMMETRIC and len(origins) == 2
    if is_symmetric and not any(
        a.startswith("alpha=") and a != "alpha=1" for a in operation.attributes
    ):
        return hash((operation, frozenset(origins)))
    return hash((operation, origins[::-1] if name.rstrip("_") in _SWAPPED else origins))


@without_modes()  # another watch may observe the same forward
def _hash_values(tensor: torch.Tensor) -> int:
    """Return a hash of a constant's numbers; one for all shapes if they are equal."""
    values = _sample_values(tensor)
    if values is None:
        return hash(("constant", tuple(tensor.shape)))
    if bool((values == values[0]).all()):
        return _hash_number(values[0].item())
    if not values.is_floating_point():
        return hash(("constant", values.numpy().tobytes()))
    # Tables that were computed in two ways differ by rounding, which seldom changes a rounded sum.
    finite = values.isfinite()
    numbers = torch.asinh(torch.where(finite, values, 0) / _SMALL_NUMBER)
    total = float(numbers @ _summation_weights()[: len(numbers)])
    others = torch.where(finite, 0, values).numpy().tobytes()
    return hash(("constant", len(numbers), others, round(total / _ROUNDING)))


@lru_cache(maxsize=1)
def _summation_weights() -> torch.Tensor:
    """Return random factors that no file can know."""
    generator = torch.Generator().manual_seed(secrets.randbits(48))
    return torch.randn(_MOST_ELEMENTS, generator=generator, dtype=torch.float64)


@lru_cache(maxsize=16)
def _sample_positions(elements: int) -> torch.Tensor:
    """Return random positions in a constant of so many elements, which no file can know."""
    generator = torch.Generator().manual_seed(secrets.randbits(48))
    return torch.randint(elements, (_MOST_ELEMENTS,), generator=generator)


@without_modes()
def _find_one_value(tensor: torch.Tensor) -> Origin:
    """Return the origin of a constant with one value throughout; nothing for another one."""
    values = _sample_values(tensor)
    is_one = values is not None and bool((values == values[0]).all())
    return frozenset({_hash_number(values[0].item())} if is_one and values is not None else ())


def _hash_number(value: object) -> int:
    return hash(
        ("number", float(f"{value:.{SIGNIFICANT_DIGITS}g}") if type(value) is float else value)
    )


def _sample_values(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return up to `_MOST_ELEMENTS` elements of a tensor in one dtype; None without values."""
    has_values = type(tensor) in (torch.Tensor, torch.nn.Parameter) and not tensor.is_meta
    if not has_values or not tensor.numel() or not tensor.untyped_storage().nbytes():
        return None
    sample = tensor.detach()
    if sample.numel() > _MOST_ELEMENTS:
        positions = _sample_positions(sample.numel())
        sample = sample[torch.unravel_index(positions.to(sample.device), sample.shape)]
    flat = sample.resolve_conj().resolve_neg().reshape(-1).cpu()
    if flat.is_complex():
        return flat.to(torch.complex128)
    return flat.to(torch.float64 if flat.is_floating_point() else torch.int64)
