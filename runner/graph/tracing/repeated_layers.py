"""Lets a tracer see one of a model's equal layers; the calls of the others leave stand-ins.

A tracer takes milliseconds for each operator, and the eighty layers of a model call the same ones.
The first call of such a layer is traced. A later call leaves a single operator in the graph, a
stand-in, for which `layer_copies` writes the first call's operators once more.

A call is a repetition only if its layer is built of the same modules, everything that the first
call read from modules is the same here, the arguments are alike, and the first call changed
nothing.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from runner.graph.tracing.call_watching import (
    MISSING,
    Reads,
    look_into,
    look_into_globals,
    own_tensors,
    select_tensors,
    watch_call,
)
from runner.graph.tracing.constant_tensors import find_plain_modules
from runner.torch_internals import define_fake_operator, tree_flatten, tree_unflatten

FEWEST_LAYERS = 6
"""With fewer equal layers in a container, each is traced."""
_MOST_FIRST_CALLS = 4
"""Most calls of layers that are built alike, of which none repeats another, that are examined."""
_CONTAINERS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)
_PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device, enum.Enum)
"""Types of values that a call cannot change."""


class RepetitionError(Exception):
    """A call that left a stand-in is no repetition after all: each layer is to be traced."""


@dataclass(frozen=True, slots=True)
class _TensorLayout:
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class _Argument:
    """Stands in a result for an argument that is returned as it is."""

    position: int


@dataclass(frozen=True, slots=True)
class _Result:
    """Stands in a result for a tensor that the call makes."""

    position: int


@dataclass(frozen=True, slots=True)
class _FirstCall:
    """A traced call: what it was given, what it read, and what it returned."""

    path: str
    layer: nn.Module
    arguments: list[Any]
    structure: Any
    reads: Reads
    globals: Any
    """Contents of the Python modules that define the layer's classes."""
    results: list[Any]
    result_structure: Any
    layouts: list[_TensorLayout]
    """Layouts of the tensors that it makes."""


class RepeatedLayers:
    """Equal layers of a model, and which of their calls are repetitions."""

    def __init__(self, kinds: Mapping[str, int]) -> None:
        self.kinds = kinds
        """Number of what a layer is built of, by the layer's path."""
        self.calls: list[tuple[str, int | None]] = []
        """For each call in order: the layer's path, and the number of the call that it repeats;
        its own number if others may repeat it; None if they may not."""
        self.first_calls: list[_FirstCall | None] = []
        self.modules: set[nn.Module] = set()
        """Modules of the model that is traced; a tracer has others of its own."""
        self.misses: Counter[int] = Counter()
        """Number of calls since the latest repetition, by what their layers are built of."""

    @contextlib.contextmanager
    def leave_stand_ins(self, model: nn.Module) -> Iterator[None]:
        """Let repeated calls of the model's layers leave stand-ins while the model is traced."""
        self.calls.clear()
        self.first_calls.clear()
        self.misses.clear()
        self.modules = {*model.modules(), *find_plain_modules(model).values()}
        layers = {path: model.get_submodule(path) for path in self.kinds}
        _running.append(self)
        try:
            for path, layer in layers.items():
                layer.forward = functools.partial(self._call, path, layer, layer.forward)
            yield
        finally:
            _running.pop()
            for layer in layers.values():
                vars(layer).pop("forward", None)

    def _call(
        self, path: str, layer: nn.Module, forward: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        arguments, structure = tree_flatten((args, kwargs))
        for number, first in enumerate(self.first_calls):
            is_built_alike = first is not None and self.kinds[first.path] == self.kinds[path]
            if first and is_built_alike and _is_repetition(first, layer, arguments, structure):
                self.calls.append((path, number))
                self.misses[self.kinds[path]] = 0
                return _stand_in(first, number, arguments, select_tensors(arguments), [])
        kind = self.kinds[path]
        if self.misses[kind] >= _MOST_FIRST_CALLS:
            self.calls.append((path, None))
            return forward(*args, **kwargs)
        self.misses[kind] += 1
        # An operator that returns its argument makes the tracer forget what that was before.
        start = START(select_tensors(arguments))
        with watch_call(self.modules, layer, (args, kwargs)) as (reads, found_globals, has_changed):
            result = forward(*args, **kwargs)
        leaves, result_structure = tree_flatten(result)
        made = [leaf for leaf in select_tensors(leaves) if _position(leaf, arguments) is None]
        number = len(self.first_calls)
        if has_changed() or not all(map(_is_repeatable, [*arguments, *leaves])):
            self.first_calls.append(None)
            self.calls.append((path, None))
            return result
        results = [_describe_result(leaf, arguments, made) for leaf in leaves]
        layouts = [_layout(tensor) for tensor in made]
        first = _FirstCall(
            path,
            layer,
            arguments,
            structure,
            reads,
            found_globals,
            results,
            result_structure,
            layouts,
        )
        self.first_calls.append(first)
        self.calls.append((path, number))
        return _stand_in(first, number, arguments, [start], made)


def find_repeated_layers(model: nn.Module) -> RepeatedLayers | None:
    """Return the outermost layers that are built as others in their container are, if any are."""
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        return None
    shared = Counter(id(t) for m in model.modules() for t in own_tensors(m).values())
    numbers: dict[Any, int] = defaultdict(lambda: len(numbers))
    kinds: dict[str, int] = {}
    for path, container in model.named_modules():
        if not isinstance(container, _CONTAINERS) or any(path.startswith(f"{p}.") for p in kinds):
            continue
        built = {
            name: _describe_structure(layer)
            for name, layer in container.named_children()
            if any(layer.children()) and _can_be_replaced(layer, shared)
        }
        counts = Counter(built.values())
        for name, structure in built.items():
            if counts[structure] >= FEWEST_LAYERS:
                kinds[f"{path}.{name}" if path else name] = numbers[path, structure]
    return RepeatedLayers(kinds) if kinds else None


def _can_be_replaced(layer: nn.Module, shared: Mapping[int, int]) -> bool:
    """Return whether a layer has a forward of its class, and shares no weight with another."""
    if "forward" in vars(layer):
        return False
    return all(shared[id(t)] == 1 for m in layer.modules() for t in own_tensors(m).values())


def _describe_structure(layer: nn.Module) -> Any:
    """Return what a layer is built of: classes, and layouts of parameters and buffers."""
    return tuple(
        (
            path,
            type(module),
            module.training,
            *(
                (name, type(tensor), tensor.requires_grad, _layout(tensor))
                for name, tensor in own_tensors(module).items()
            ),
        )
        for path, module in layer.named_modules()
    )


def _layout(tensor: torch.Tensor) -> _TensorLayout:
    return _TensorLayout(tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device)


def _is_repeatable(value: Any) -> bool:
    """Return whether a value may be an argument or a result of a repeated call."""
    if isinstance(value, torch.Tensor):
        numbers = (*value.shape, *value.stride(), value.storage_offset())
        return value.layout is torch.strided and all(isinstance(n, int) for n in numbers)
    return isinstance(value, (*_PLAIN, types.FunctionType))


def _position(value: Any, values: list[Any]) -> int | None:
    return next((n for n, other in enumerate(values) if other is value), None)


def _describe_result(leaf: Any, arguments: list[Any], made: list[torch.Tensor]) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    position = _position(leaf, arguments)
    if position is not None:
        return _Argument(position)
    position = _position(leaf, made)
    assert position is not None
    return _Result(position)


def _is_repetition(
    first: _FirstCall, layer: nn.Module, arguments: list[Any], structure: Any
) -> bool:
    """Return whether a call does what a first call did."""
    if structure != first.structure or not all(map(_is_alike, first.arguments, arguments)):
        return False
    positions = [_position(value, arguments) for value in arguments]
    if positions != [_position(value, first.arguments) for value in first.arguments]:
        return False
    if look_into_globals(layer) != first.globals:
        return False
    modules = dict(layer.named_modules())
    counterparts = {m: modules[path] for path, m in first.layer.named_modules()}
    for (module, name), (value, contents) in first.reads.items():
        other = getattr(counterparts.get(module, module), name, MISSING)
        if not _is_same(value, other, counterparts):
            return False
        if look_into(value) != contents:
            return False
    return True


def _is_alike(first: Any, other: Any) -> bool:
    """Return whether two arguments differ at most in the numbers of a tensor."""
    if isinstance(first, torch.Tensor) and isinstance(other, torch.Tensor):
        return _is_repeatable(other) and _layout(first) == _layout(other)
    return type(first) is type(other) and bool(first == other)


def _is_same(first: Any, other: Any, counterparts: Mapping[nn.Module, nn.Module]) -> bool:
    """Return whether an attribute's value means for one layer what it means for the other."""
    if isinstance(first, nn.Module):
        return counterparts.get(first, first) is other
    if first is other:
        return True
    if type(first) is not type(other):
        return False
    is_same = functools.partial(_is_same, counterparts=counterparts)
    if isinstance(first, types.MethodType):
        return first.__func__ is other.__func__ and is_same(first.__self__, other.__self__)
    if isinstance(first, functools.partial):
        return is_same(
            (first.func, first.args, first.keywords), (other.func, other.args, other.keywords)
        )
    if isinstance(first, dict):
        return [*first] == [*other] and all(is_same(first[key], other[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(other) and all(map(is_same, first, other))
    if isinstance(first, _PLAIN):
        return bool(first == other)
    # Each layer may have an object of its own, as the attention layers of diffusers have.
    return _holds_settings_alone(first) and is_same(vars(first), vars(other))


class _Object:
    """An object without slots, and without the state of a class that is written in C."""


def _holds_settings_alone(value: Any) -> bool:
    """Return whether an object is of a Python class, and has attributes that stay as they are."""
    attributes = getattr(value, "__dict__", None)
    if type(attributes) is not dict or type(value).__basicsize__ != _Object.__basicsize__:
        return False
    kinds = (*_PLAIN, nn.Module, types.FunctionType, type)
    return all(isinstance(attribute, kinds) for attribute in attributes.values())


_running: list[RepeatedLayers] = []


def _start_layer(arguments: list[torch.Tensor]) -> torch.Tensor:
    return torch.empty((), device=arguments[0].device if arguments else None)


def _repeat_layer(
    arguments: list[torch.Tensor], made: list[torch.Tensor], number: int
) -> list[torch.Tensor]:
    first = _running[-1].first_calls[number]
    assert first is not None
    return [
        torch.empty_strided(like.size, like.stride, dtype=like.dtype, device=like.device)
        for like in first.layouts
    ]


START = define_fake_operator("kdrun::start_layer", "(Tensor[] arguments) -> Tensor", _start_layer)
"""Operator at the start of a first call: the tensors among its arguments."""
STAND_IN = define_fake_operator(
    "kdrun::repeat_layer",
    "(Tensor[] arguments, Tensor[] made, int number) -> Tensor[]",
    _repeat_layer,
)
"""Operator of a stand-in: the tensors among the arguments of a call, and the number of the call
that it repeats. A first call ends with one, which has its start's result and what it made."""


def _stand_in(
    first: _FirstCall,
    number: int,
    arguments: list[Any],
    tensors: list[torch.Tensor],
    made: list[torch.Tensor],
) -> Any:
    """Leave a stand-in for a call in the graph and return its result."""
    results = STAND_IN(tensors, made, number)
    leaves = [
        arguments[leaf.position]
        if isinstance(leaf, _Argument)
        else results[leaf.position]
        if isinstance(leaf, _Result)
        else leaf
        for leaf in first.results
    ]
    return tree_unflatten(leaves, first.result_structure)
