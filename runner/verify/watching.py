"""This file knows about which operations a forward runs: what each computes, from what, and where.

Watched on the real tensors of a forward that runs anyway, so it costs microseconds an operation.
"""

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from runner.verify.compare import tensors

TensorMeta = tuple[tuple[int, ...], str]
"""Shape and dtype."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What makes two dispatched operations the same: name, inputs, attributes, outputs."""

    name: str
    inputs: tuple[TensorMeta, ...]
    attributes: tuple[str, ...]
    outputs: tuple[TensorMeta, ...]

    def __str__(self) -> str:
        inside = ", ".join([*map(_shown, self.inputs), *self.attributes])
        return f"{self.name}({inside}) -> {', '.join(map(_shown, self.outputs))}"


@dataclass(frozen=True, slots=True)
class Event:
    """One operation that ran."""

    operation: Operation
    reads: frozenset[int]
    """Storages, by number."""
    writes: frozenset[int]
    constant: bool
    """Depends on no input and no weight: computed from nothing but numbers in the program."""
    where: str
    """`file:line` of the program that asked for it."""
    inside: str | None
    """The component that was running, where components are watched."""
    into_part: bool = False
    """Computed in place on a part of a tensor."""


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a component."""

    component: str
    inputs: tuple[TensorMeta, ...]
    strides: tuple[tuple[int, ...], ...]
    outputs: tuple[TensorMeta, ...]


@dataclass
class Trace:
    """Everything that happened in one forward."""

    events: list[Event] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    """What a component's parent did itself and may not, a sentence each."""
    not_finite: set[str] = field(default_factory=set)
    """Components that gave NaN or infinity, of those that were asked about."""


COPIES = {"clone", "copy_", "copy", "_to_copy", "_copy_from", "lift_fresh_copy"}
"""Move elements, and change their dtype or stride at most."""
SCATTERS = {"slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"}
"""What a copy into a view becomes in a program without in-place operations."""
_LOOKS = {"squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "as_strided_"}
"""Change how a tensor is read, in place, and no number of it."""
FILLS = {"fill_", "fill", "zero_", "zero"}
CREATES = {
    f"{prefix}{name}"
    for name in ("empty", "zeros", "ones", "full", "empty_strided")
    for prefix in ("", "new_")
} | {"empty_like", "zeros_like", "ones_like", "full_like", "lift_fresh", "scalar_tensor"}
"""Of a tensor argument they read the shape only."""
_NOT_ATTRIBUTES = {"device", "layout", "pin_memory", "memory_format", "generator", "non_blocking"}


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records a forward. `directory` is where the program's own files lie."""

    def __init__(self, directory: Path, weights: dict[str, torch.Tensor] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self._directory = str(directory.resolve())
        self._numbers: dict[StorageWeakRef, int] = {}
        self._constant: set[int] = set()
        self._components: list[str] = []
        self._guarded = False
        self._scattered: set[int] = set()
        self._weights: dict[int, list[str]] = {}
        for name, tensor in (weights or {}).items():
            if tensor.numel():
                self._weights.setdefault(self._number(tensor), []).append(name)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if _composite(func):  # under inference_mode they come whole; elsewhere as what they call
            with self:
                return func.decompose(*args, **kwargs)
        bound = list(_bound(func, args, kwargs))
        shapes = {id(t): meta_of(t) for _, value, _ in bound for t in tensors(value)}
        result = func(*args, **kwargs)
        self._record(func, bound, shapes, result)
        return result

    @contextmanager
    def components(
        self,
        found: dict[str, nn.Module],
        names: dict[str, str],
        examine: frozenset[str] = frozenset(),
    ) -> Iterator[None]:
        """Watch these submodules as components: what runs outside of them is their parent's doing.

        `names`: module path -> component file. `examine`: files to ask whether an output is finite.
        """
        self._guarded = True
        for path, module in found.items():
            module.forward = self._wrapped(module, names[path], examine)
        try:
            yield
        finally:
            self._guarded = False
            for module in found.values():
                module.__dict__.pop("forward", None)

    def _wrapped(self, module: nn.Module, name: str, examine: frozenset[str]) -> Any:
        forward = module.forward

        def watched(*args: Any, **kwargs: Any) -> Any:
            given = tensors([*args, *kwargs.values()])
            metas = tuple(map(meta_of, given))
            strides = tuple(tuple(t.stride()) for t in given)
            self._components.append(name)
            try:
                output = forward(*args, **kwargs)
            finally:
                self._components.pop()
            results = tensors(output)
            self.trace.calls.append(Call(name, metas, strides, tuple(map(meta_of, results))))
            if name in examine and not all(_finite(t) for t in results):
                self.trace.not_finite.add(name)
            return output

        return watched

    def _record(
        self,
        func: Any,
        bound: list[tuple[str, Any, bool]],
        shapes: dict[int, TensorMeta],
        result: Any,
    ) -> None:
        name = func._schema.name.partition("::")[2]
        creates = name in CREATES
        given = [tensor for _, value, _ in bound for tensor in tensors(value)]
        reads: set[int] = set()
        writes: set[int] = set()
        for _, value, is_written in bound:
            for tensor in tensors(value):
                if is_written:
                    writes.add(self._number(tensor))
                if not creates:
                    reads.add(self._number(tensor))
        outputs = tensors(result)
        if not outputs and not writes:
            return  # reads a value into Python, or asserts something
        numbers = {self._number(tensor) for tensor in outputs}
        inside = self._components[-1] if self._components else None
        weight = next((self._weights[n][0] for n in reads if n in self._weights), None)
        if self._guarded and inside is None and weight is not None:
            self._complain(f"reads the weight {weight} itself", name)
        if name in _LOOKS:
            return
        if not writes and reads and numbers <= reads:
            return  # a view, by what it does and not by what it is called
        if not writes and (func.is_view or name in {"_unsafe_view", "detach", "alias"}):
            return  # a view of nothing: empty tensors share no storage
        if name == "copy_" and _one_place(given):
            return  # `x[0] *= 2` copies x[0] to where it is
        if self._guarded and inside is None:
            self._complain(f"computes {name} itself", None)
        sources = reads - writes if name in COPIES | FILLS else reads
        random = torch.Tag.nondeterministic_seeded in func.tags
        constant = not random and sources <= self._constant
        if name in SCATTERS:
            # A write through a view of a view is a scatter into each, of which one moves anything.
            (source,) = (self._number(t) for a, t, _ in bound if a == "src")
            nested = source in self._scattered
            self._scattered |= numbers
        else:
            nested = False
        written = writes | numbers
        if constant:
            self._constant |= written - reads
        else:
            self._constant -= written
        operation = _operation(name, bound, shapes, outputs)
        # A copy or a fill into something that depends on an input stays part of that something.
        live = bool((reads | writes) - self._constant) or random
        changed = [t for _, value, is_written in bound if is_written for t in tensors(value)]
        into_part = name not in COPIES | FILLS and any(map(_is_part, changed))
        self.trace.events.append(
            Event(
                operation,
                frozenset(reads),
                frozenset(written),
                not live or nested,
                self._where(),
                inside,
                into_part,
            )
        )

    def _complain(self, what: str, detail: str | None) -> None:
        suffix = f" ({detail})" if detail else ""
        self.trace.outside.append(f"{what}{suffix} at {self._where()}")

    def _number(self, tensor: torch.Tensor) -> int:
        """A storage's number. A weak reference keeps its address from being given out again."""
        reference = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
        return self._numbers.setdefault(reference, len(self._numbers))

    def numbers_of(self, value: object) -> frozenset[int]:
        """The storages of an output."""
        return frozenset(self._number(tensor) for tensor in tensors(value))

    def weights_in(self, numbers: Collection[int]) -> set[str]:
        """Names of the weights among some storages; all names of each."""
        return {name for number in numbers for name in self._weights.get(number, [])}

    def _where(self) -> str:
        frame: Any = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._directory):
                return f"{file[len(self._directory) + 1 :]}:{frame.f_lineno}"
            frame = frame.f_back
        return "elsewhere"


def reaching(events: list[Event], outputs: frozenset[int]) -> tuple[list[bool], set[int]]:
    """For each event, whether its result can reach the outputs; and the storages that can."""
    needed = set(outputs)
    alive = []
    for event in reversed(events):
        used = bool(event.writes & needed)
        if used:
            needed |= event.reads
        alive.append(used)
    return alive[::-1], needed


@lru_cache(maxsize=4096)
def _composite(func: Any) -> bool:
    """Whether an operator is only a name for calls of others."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    if not torch._C._dispatch_has_kernel(func.name()):
        return False  # torch's own questions, such as prim::device
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key))


@lru_cache(maxsize=4096)
def _arguments(func: Any) -> tuple[tuple[str, bool, Any, bool], ...]:
    """Name, whether it has a default, the default, whether the operation writes to it."""
    return tuple(
        (
            a.name,
            a.has_default_value(),
            a.default_value if a.has_default_value() else None,
            a.alias_info is not None and a.alias_info.is_write,
        )
        for a in func._schema.arguments
    )


def _bound(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, Any, bool]]:
    """Every argument by name, defaults filled in, and whether it is written to."""
    for n, (name, has_default, default, written) in enumerate(_arguments(func)):
        if n < len(args):
            yield name, args[n], written
        elif name in kwargs:
            yield name, kwargs[name], written
        elif has_default:
            yield name, default, written


def _operation(
    name: str,
    bound: list[tuple[str, Any, bool]],
    shapes: dict[int, TensorMeta],
    outputs: list[torch.Tensor],
) -> Operation:
    """The operation under one name for all its spellings: in place or not, copy or scatter."""
    values = {argument: value for argument, value, _ in bound}
    if name in COPIES | SCATTERS | FILLS:
        return _copy(name, values, shapes, outputs)
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    attributes = tuple(
        f"{argument}={_literal(value)}"
        for argument, value, _ in bound
        if argument not in _NOT_ATTRIBUTES | {"out"} and not tensors(value) and value is not None
    )
    inputs = tuple(
        shapes[id(t)] for argument, value, _ in bound if argument != "out" for t in tensors(value)
    )
    return Operation(plain, inputs, attributes, tuple(map(meta_of, outputs)))


def _copy(
    name: str,
    values: dict[str, Any],
    shapes: dict[int, TensorMeta],
    outputs: list[torch.Tensor],
) -> Operation:
    """A move of elements: how many of which dtype are written, from which dtype.

    `x[:, 0] = y` is a copy into a view; without in-place operations it is a scatter of y into a
    copy of x. Both write y's elements once.
    """
    into = shapes[id(values["self"])]
    if name in FILLS:
        return Operation("copy", (into,), (), (into,))
    if name in SCATTERS:
        source = shapes[id(values["src"])]
        return Operation("copy", (source,), (), ((source[0], into[1]),))
    if name in {"copy_", "copy"}:
        source = shapes[id(values["src"])]
        return Operation("copy", ((into[0], source[1]),), (), (into,))
    return Operation("copy", (into,), (), tuple(map(meta_of, outputs)))


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return repr(value)


def _one_place(given: list[torch.Tensor]) -> bool:
    """Whether all are the same elements of the same storage."""
    places = {
        (t.untyped_storage()._cdata, t.storage_offset(), t.shape, t.stride(), t.dtype)
        for t in given
    }
    return len(given) > 1 and len(places) == 1


def _is_part(tensor: torch.Tensor) -> bool:
    return tensor.numel() * tensor.element_size() < tensor.untyped_storage().nbytes()


def meta_of(tensor: torch.Tensor) -> TensorMeta:
    """Shape and dtype."""
    return tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")


def _shown(meta: TensorMeta) -> str:
    shape, dtype = meta
    return f"{dtype}[{', '.join(map(str, shape))}]"


def _finite(tensor: torch.Tensor) -> bool:
    with _disable_current_modes():
        return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())
