"""Records how a tensor is made, so that its values can be computed only when they are needed.

Such a tensor is an ordinary one on an empty storage. Its values are the same each time they are
computed: random numbers in it are drawn from a seed of its name.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from runner.torch_internals import name_of, overload_of, tree_map_only
from runner.verify.runtime.random_blocks import RepeatedDraws

_FILLS: dict[str, Callable[..., Any]] = {
    "empty": lambda tensor, *_: tensor,
    "empty_strided": lambda tensor, *_: tensor,
    "randn": lambda tensor, *_: tensor.normal_(),
    "rand": lambda tensor, *_: tensor.uniform_(),
    "zeros": lambda tensor, *_: tensor.zero_(),
    "ones": lambda tensor, *_: tensor.fill_(1),
    "full": lambda tensor, size, value, *_: tensor.fill_(value),
}
"""Operations that make a tensor from nothing, each with its equivalent in place."""
_KIND_ONLY = ("new_", "_like")
"""Prefix and suffix of operations that take only shape and dtype from a tensor."""


@dataclass(eq=False)
class DeferredTensor:
    """A storage without values, and the operations that give them."""

    storage: torch.UntypedStorage
    nbytes: int
    seed: int
    """Seed of its random numbers."""
    origin: "DeferredOperation"
    layout: "DeferredArgument"
    """Layout of the tensor that it was made as."""
    writes: list["DeferredOperation"] = field(default_factory=list)
    """Operations that wrote into it, in order."""
    name: str | None = None
    final_change: Callable[[torch.Tensor, torch.Generator], None] | None = None
    """Last change to its values."""

    @property
    def is_filled(self) -> bool:
        return self.storage.nbytes() > 0


@dataclass(frozen=True, slots=True)
class DeferredArgument:
    """A deferred tensor as an argument of an operation, in its state at that moment."""

    deferred: DeferredTensor | None
    """The tensor's storage; None if its values do not matter."""
    write_count: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype

    @classmethod
    def capture(cls, tensor: torch.Tensor, deferred: DeferredTensor | None) -> "DeferredArgument":
        write_count = len(deferred.writes) if deferred else 0
        size, stride = tuple(tensor.shape), tuple(tensor.stride())
        return cls(deferred, write_count, size, stride, int(tensor.storage_offset()), tensor.dtype)

    def view_on(self, storage: torch.UntypedStorage) -> torch.Tensor:
        """Return the tensor on other memory."""
        empty_tensor = torch.empty(0, dtype=self.dtype)
        return empty_tensor.set_(storage, self.offset, self.size, self.stride)

    def has_same_layout(self, argument: "DeferredArgument") -> bool:
        kinds = [(p.size, p.stride, p.offset, p.dtype) for p in (self, argument)]
        return kinds[0] == kinds[1]


@dataclass(frozen=True, slots=True)
class DeferredOperation:
    """One operation that was recorded instead of run."""

    operator: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output_index: int = 0
    """Index among the operation's results."""

    @property
    def name(self) -> str:
        return name_of(self.operator)

    def deferred_arguments(self) -> list[DeferredArgument]:
        """Return the deferred tensors whose values the operation reads."""
        references: list[DeferredArgument] = []
        tree_map_only(
            DeferredArgument, lambda argument: references.append(argument), (self.args, self.kwargs)
        )
        return [argument for argument in references if argument.deferred is not None]


def compute_values(target: DeferredTensor) -> None:
    """Compute the values of a deferred storage, and leave torch's generator as it was."""
    with torch.random.fork_rng(devices=[]), RepeatedDraws():
        _compute_until(target, len(target.writes), target.storage)
        if target.final_change is not None:
            generator = torch.Generator().manual_seed(_seed_of(target, -1))
            target.final_change(target.layout.view_on(target.storage), generator)


def _compute_until(target: DeferredTensor, write_count: int, storage: torch.UntypedStorage) -> None:
    """Compute a storage's values after its first `write_count` writes, in the caller's memory."""
    storage.resize_(target.nbytes)
    _compute_first(target, storage)
    for n, operation in enumerate(target.writes[:write_count]):
        _run_operation(operation, target, n + 1, storage)


def _compute_first(target: DeferredTensor, storage: torch.UntypedStorage) -> None:
    """Compute the first values; if possible in place, since memory is scarce."""
    operation, values = target.origin, target.layout.view_on(storage)
    if operation.name in _FILLS and target.layout.offset == 0:
        torch.manual_seed(_seed_of(target, 0))
        _FILLS[operation.name](values, *operation.args)
        return
    references = operation.deferred_arguments()
    source = (
        references[0]
        if len(references) == 1 and operation.args and operation.args[0] is references[0]
        else None
    )
    if source and source.deferred and source.has_same_layout(target.layout):
        in_place = getattr(
            getattr(torch.ops.aten, f"{operation.name}_", None), _overload_name(operation), None
        )
        if operation.name == "clone" or in_place is not None:
            _name_source(source.deferred, target)
            _compute_until(source.deferred, source.write_count, storage)
            if in_place is not None and operation.name != "clone":
                in_place(values, *operation.args[1:], **operation.kwargs)
            return
    result = _run_operation(operation, target, 0, storage)
    values.copy_(result[operation.output_index] if isinstance(result, list | tuple) else result)


def _run_operation(
    operation: DeferredOperation,
    target: DeferredTensor,
    position: int,
    storage: torch.UntypedStorage,
) -> Any:
    """Run one operation, after computing its other deferred arguments for it alone."""
    sources: dict[tuple[int, int], torch.UntypedStorage] = {}

    def compute_argument(argument: DeferredArgument) -> torch.Tensor:
        if argument.deferred is None:
            return torch.empty_strided(argument.size, argument.stride, dtype=argument.dtype)
        if position and argument.deferred is target:
            return argument.view_on(storage)
        key = id(argument.deferred), argument.write_count
        if key not in sources:
            sources[key] = torch.empty(0).untyped_storage()
            _name_source(argument.deferred, target)
            _compute_until(argument.deferred, argument.write_count, sources[key])
        return argument.view_on(sources[key])

    args, kwargs = tree_map_only(
        DeferredArgument, compute_argument, (operation.args, operation.kwargs)
    )
    torch.manual_seed(_seed_of(target, position))
    return operation.operator(*args, **kwargs)


def _overload_name(operation: DeferredOperation) -> str:
    return overload_of(operation.operator)


def _name_source(source: DeferredTensor, target: DeferredTensor) -> None:
    """Name an intermediate tensor after the weight that it leads to, so that its draws repeat."""
    if source.name is None:
        source.name = f"{target.name}'s"


def _seed_of(target: DeferredTensor, position: int) -> int:
    text = f"{target.seed}:{target.name}:{position}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def takes_kind_only(name: str) -> bool:
    """Return whether an operation takes only shape and dtype from a tensor."""
    return name.startswith(_KIND_ONLY[0]) or name.endswith(_KIND_ONLY[1])
