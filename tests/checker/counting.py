"""Counts what a forward dispatches: which operations, on what, and who asked for them.

Below autograd, where `linear` has become `addmm` and a `reshape` is either a view or a copy: the
same for everybody's spelling. Works on fake tensors and on real ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

MOVES = {"clone", "copy_", "copy", "_to_copy", "lift_fresh_copy", "contiguous"}
PUTS = {"slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"}
"""A write into a view, in a program without writes: into a copy of the whole."""
FILLS = {"fill_", "zero_", "fill", "zero"}
READS_SHAPE = {
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_empty",
    "new_zeros", "new_ones", "new_full", "new_empty_strided", "empty_strided",
}  # fmt: skip
CONTRACTIONS = {
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "convolution",
    "_convolution", "_trilinear", "_cdist_forward", "mkldnn_rnn_layer", "_grouped_mm",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_fused_attention_overrideable",
}  # fmt: skip
_SILENT = {"device", "layout", "pin_memory", "memory_format", "generator", "non_blocking", "out"}


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor without its numbers; strides only where a step is ever taken."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Spec:
        return cls.like(tensor.shape, str(tensor.dtype).removeprefix("torch."), tensor.stride())

    @classmethod
    def like(cls, shape: Iterable[int], dtype: str, strides: Iterable[int]) -> Spec:
        shape = tuple(shape)
        empty = 0 in shape
        steps = tuple(0 if n == 1 or empty else s for n, s in zip(shape, strides, strict=True))
        return cls(shape, dtype, steps)

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class Counted:
    """An operation as it is compared: under one name for all its spellings."""

    name: str
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    attributes: tuple[str, ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]

    def __str__(self) -> str:
        given = [f"{dtype}{list(shape)}" for shape, dtype in self.inputs]
        return f"{self.name}({', '.join([*given, *self.attributes])})"


@dataclass(frozen=True, slots=True)
class Event:
    """One operation that ran and is no view."""

    counted: Counted
    reads: frozenset[int]
    """Storages, by number."""
    writes: frozenset[int]
    live: bool
    """Depends on an input or on a tensor that the model owns."""
    on_inputs: bool
    """Depends on an input."""
    on_weights: bool
    """Reads what depends on nothing but tensors that the model owns."""
    into_part: bool
    """An operation in place on a part of a tensor."""
    updates: bool
    """It writes a tensor that the model owns: a count, a running mean."""
    inside: str | None
    """The component that ran it, where components are told apart."""


class Counting(TorchDispatchMode):
    """While it is active, every operation becomes an event, views left out."""

    def __init__(self, inputs: Iterable[torch.Tensor], owned: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.inside: str | None = None
        self._numbers: dict[StorageWeakRef, int] = {}
        self._on_inputs = {self.number(t) for t in inputs}
        self._owned = {self.number(t) for t in owned}
        self._live = self._on_inputs | self._owned

    def number(self, tensor: torch.Tensor) -> int:
        """A storage's number; a weak reference, so that an address is never given twice."""
        reference = StorageWeakRef(tensor.untyped_storage())
        return self._numbers.setdefault(reference, len(self._numbers))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        bound = list(_bound(func, args, kwargs or {}))
        before = {id(t): Spec.of(t) for _, value, _ in bound for t in tensors_in(value)}
        result = func(*args, **(kwargs or {}))
        self._note(func, bound, before, list(tensors_in(result)))
        return result

    def _note(
        self,
        func: Any,
        bound: list[tuple[str, Any, bool]],
        before: dict[int, Spec],
        results: list[torch.Tensor],
    ) -> None:
        name = func._schema.name.partition("::")[2]
        written = [t for _, value, writes in bound if writes for t in tensors_in(value)]
        if not results and not written:
            return
        given = [t for _, value, _ in bound for t in tensors_in(value)]
        reads = set() if name in READS_SHAPE else {self.number(t) for t in given}
        gives = {self.number(t) for t in results}
        if torch.Tag.inplace_view in func.tags:
            return
        if not written and (func.is_view or (given and gives <= reads)):
            return
        if name == "copy_" and len({_memory(t) for t in given}) == 1:
            return  # `x[0] *= 2` copies x[0] to where it is
        writes = gives | {self.number(t) for t in written}
        overwrites = name in FILLS | {"copy_"}
        into_part = any(t._base is not None or t.numel() < _room(t) for t in written)
        sources = reads - {self.number(t) for t in written} if overwrites else reads
        if name in FILLS and not into_part and not sources & self._live:
            self._live -= writes
            self._on_inputs -= writes
            return
        live, on_inputs = bool(sources & self._live), bool(sources & self._on_inputs)
        random = torch.Tag.nondeterministic_seeded in func.tags
        for flag, known in ((live or random, self._live), (on_inputs or random, self._on_inputs)):
            if flag:
                known |= writes
            elif not into_part:
                known -= writes - reads
        touched = bool((sources | writes) & self._live) or random
        self.events.append(
            Event(
                _counted(name, bound, before, results),
                frozenset(reads),
                frozenset(writes),
                touched,
                bool((sources | writes) & self._on_inputs) or random,
                bool(sources & (self._live - self._on_inputs)),
                into_part,
                bool({self.number(t) for t in written} & self._owned),
                self.inside,
            )
        )


def needed(events: list[Event], outputs: frozenset[int]) -> list[Event]:
    """The events whose results can reach the outputs."""
    wanted, kept = set(outputs), []
    for event in reversed(events):
        if event.writes & wanted:
            wanted |= event.reads
            kept.append(event)
    return kept[::-1]


def counted(events: Iterable[Event]) -> Counter[Counted]:
    return Counter(event.counted for event in events)


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """All tensors in nested containers and dataclasses, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif hasattr(value, "__dataclass_fields__"):
        for field in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, field))


@cache
def _schema(func: Any) -> tuple[tuple[str, bool, Any, bool], ...]:
    return tuple(
        (
            a.name,
            a.has_default_value(),
            a.default_value if a.has_default_value() else None,
            a.alias_info is not None and a.alias_info.is_write,
        )
        for a in func._schema.arguments
    )


def _bound(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Any, bool]]:
    """(name, value, whether it is written to) of every argument, defaults included."""
    for position, (name, has_default, default, writes) in enumerate(_schema(func)):
        if position < len(args):
            yield name, args[position], writes
        elif name in kwargs:
            yield name, kwargs[name], writes
        elif has_default:
            yield name, default, writes


def _memory(tensor: torch.Tensor) -> object:
    storage = tensor.untyped_storage()._cdata
    return storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _room(tensor: torch.Tensor) -> int:
    size = tensor.element_size()
    return tensor.untyped_storage().nbytes() // size if size else 0


def _counted(
    name: str,
    bound: list[tuple[str, Any, bool]],
    before: dict[int, Spec],
    results: list[torch.Tensor],
) -> Counted:
    values = {argument: value for argument, value, _ in bound}
    outputs = tuple((tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in results)
    if name in MOVES | PUTS | FILLS:
        return _move(name, values, before, outputs)
    inputs = tuple(
        (before[id(t)].shape, before[id(t)].dtype)
        for argument, value, _ in bound
        if argument not in _SILENT
        for t in tensors_in(value)
    )
    attributes = tuple(
        f"{argument}={_literal(value)}"
        for argument, value, _ in bound
        if argument not in _SILENT
        and value is not None
        and not any(True for _ in tensors_in(value))
    )
    return Counted(name.rstrip("_") or name, inputs, attributes, outputs)


def _move(name: str, values: dict[str, Any], before: dict[int, Spec], outputs: Any) -> Counted:
    """Elements that are copied: how many, from which dtype, to which."""
    into = before[id(values["self"])]
    if name in PUTS:
        source = before[id(values["src"])]
        return Counted("move", ((source.shape, source.dtype),), (), ((source.shape, into.dtype),))
    if name in {"copy_", "copy"}:
        source = before[id(values["src"])]
        return Counted("move", ((into.shape, source.dtype),), (), ((into.shape, into.dtype),))
    return Counted("move", ((into.shape, into.dtype),), (), outputs)


def _literal(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).removeprefix("torch.")
