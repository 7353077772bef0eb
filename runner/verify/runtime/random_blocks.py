"""Draws many random numbers quickly: it repeats a block of them, or reuses earlier draws.

A component's own inputs and fresh weights repeat a block. The author's are drawn in full. If a
component draws what its parent or the author drew, from the same state of the generator, and that
tensor is still in memory, it gets the same tensor.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from runner.torch_internals import TorchDispatchMode, name_of, overload_of, schema, storage_of
from runner.verify.gates.operation_identity import KEEPS_FINITE
from runner.verify.loading_files import CannotJudge
from runner.verify.options import DRAWN_AGAIN_BYTES
from runner.verify.runtime.output_leaves import tensors

BLOCK = 1_048_573
"""Elements in a block; a prime, so that no two rows of a tensor begin with the same ones."""

_FILLS = {"uniform_", "normal_", "random_", "bernoulli_", "exponential_", "log_normal_", "cauchy_"}
"""Operations that fill a tensor with random numbers."""
_FACTORIES = {"rand": 0, "randn": 0, "randint": 1}
"""Operations that make a random tensor, and the position of the shape; one later with `low`."""
_LARGEST = 1e6
"""Largest factor or summand of numbers that count as being of ordinary size."""
_REUSE_ELEMENTS = 1 << 16
"""Elements from which on a tensor is recorded for reuse."""


class DifferentDrawError(CannotJudge):
    """Inputs differ from those drawn before, or would be changed while these are still needed."""


class Draws:
    """Random tensors that are still in memory, by their call and the generator's state."""

    def __init__(self) -> None:
        self.records: dict[tuple[object, ...], _DrawRecord] = {}
        self.repeating = False
        """Whether the drawing that is going on repeats blocks in large tensors."""

    @contextmanager
    def control_draws(self, *, repeated: bool, reuse: bool) -> Iterator[None]:
        """Draw inputs in the body: `repeated` with repeated blocks, `reuse` from earlier tensors.

        With `reuse`, raise DifferentDrawError if a large tensor is not in memory, or if one that is
        reused is written to.
        """
        self.repeating = repeated
        with RepeatedDraws() if repeated else nullcontext(), _DrawReuse(self, repeated, reuse):
            yield


@dataclass(frozen=True, slots=True)
class _DrawRecord:
    tensor: "weakref.ref[torch.Tensor]"
    version: int
    generator_state: torch.Tensor
    """The generator's state after the draw."""

    def get_if_unchanged(self) -> torch.Tensor | None:
        tensor = self.tensor()
        return tensor if tensor is not None and tensor._version == self.version else None


class _DrawReuse(TorchDispatchMode):
    def __init__(self, draws: Draws, repeated: bool, reuse: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._records, self._repeated, self._reuse = draws.records, repeated, reuse
        self._reused: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if schema(func).is_mutable:
            if not self._reused.isdisjoint(storages_of([args, kwargs])):
                raise DifferentDrawError("get_inputs() changes what it drew")
            return func(*args, **kwargs)
        name = name_of(func)
        if name not in _FACTORIES:
            return func(*args, **kwargs)
        state = torch.get_rng_state()
        key = (func, str(args), str(kwargs), self._repeated, state.numpy().tobytes())
        if self._reuse:
            record = self._records.get(key)
            tensor = record.get_if_unchanged() if record else None
            if record and tensor is not None:
                torch.set_rng_state(record.generator_state)
                self._reused |= storages_of(tensor)
                return tensor
            place = _FACTORIES[name] + overload_of(func).startswith("low")
            if torch.Size(args[place]).numel() * 4 > DRAWN_AGAIN_BYTES:
                raise DifferentDrawError("get_inputs() draws something else")
        tensor = func(*args, **kwargs)
        if tensor.numel() >= _REUSE_ELEMENTS and tensor.device.type == "cpu":
            new_state = torch.get_rng_state()
            self._records[key] = _DrawRecord(weakref.ref(tensor), tensor._version, new_state)
        return tensor


class _FiniteCheck(TorchDispatchMode):
    """Notes whether everything in the body is random numbers, or finite for all finite numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.all_finite = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        numbers = [value for value in (*args, *(kwargs or {}).values()) if isinstance(value, float)]
        is_known = func.is_view or name_of(func) in KEEPS_FINITE | _FACTORIES.keys()
        self.all_finite &= is_known and all(abs(number) <= _LARGEST for number in numbers)
        return func(*args, **(kwargs or {}))


def draw_shapes(get_inputs: Callable[[], Any]) -> Any:
    """Return inputs on the meta device; None unless all are sure to be finite numbers."""
    check = _FiniteCheck()
    try:
        with torch.device("meta"), check:
            inputs = get_inputs()
    except Exception:  # whatever the reason: the full draw reports it, if it remains
        return None
    return inputs if check.all_finite else None


class RepeatedDraws(TorchDispatchMode):
    """Makes random tensors of more than BLOCK elements repeat their first BLOCK elements."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        if name in _FACTORIES:
            place = _FACTORIES[name] + (overload_of(func).startswith("low"))
            shape = args[place]
            if torch.Size(shape).numel() > BLOCK:
                block = func(*args[:place], [BLOCK], *args[place + 1 :], **kwargs)
                return _fill_with_block(block.new_empty(shape), block)
        elif name in _FILLS and args[0].numel() > BLOCK and args[0].is_contiguous():
            flat = args[0].view(-1)
            func(flat[:BLOCK], *args[1:], **kwargs)
            _fill_with_block(args[0], flat[:BLOCK])
            return args[0]
        return func(*args, **kwargs)


def _fill_with_block(tensor: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """Fill a tensor with copies of the block."""
    flat = tensor.view(-1)
    for part in torch.split(flat, BLOCK):
        if part.data_ptr() != block.data_ptr():
            part.copy_(block[: part.numel()])
    return tensor


def storages_of(value: object) -> set[int]:
    """Return the storages of all tensors in a value."""
    return {storage_of(tensor) for tensor in tensors(value)}
