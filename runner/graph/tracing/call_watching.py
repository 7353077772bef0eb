"""Records what a call of a layer reads from modules, and notices what it changes."""

from __future__ import annotations

import contextlib
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch import nn

from runner.torch_internals import tree_flatten

_REGISTRIES = ("_parameters", "_buffers", "_modules")
_OWN = {*_REGISTRIES, "_non_persistent_buffers_set"}
"""Attributes that hold what equal layers have each of their own."""
_COUNTERS = {int, float, list, set, dict, deque}
"""Types of global variables in which a forward may keep something."""
MISSING = object()
"""Stands for the value of an attribute that a module does not have."""

Reads = dict[tuple[nn.Module, str], tuple[Any, Any]]
"""By module and attribute that a call read: the value, and what was in it."""


@contextlib.contextmanager
def watch_call(
    model: Collection[nn.Module], layer: nn.Module, inputs: Any
) -> Iterator[tuple[Reads, Any, Callable[[], bool]]]:
    """Record what is read from modules; yield it with what globals hold, and a question.

    The question is whether the call has changed a module, a tensor, a container or a global that it
    got or read, or drawn a random number in Python.
    """
    reads: Reads = {}
    found_globals = look_into_globals(layer)
    leaves, structure = tree_flatten(inputs)
    tensors = select_tensors(leaves)
    tensors += [t for module in layer.modules() for t in own_tensors(module).values()]
    versions = [tensor._version for tensor in tensors]
    random_state = random.getstate()
    assigned: list[str] = []
    read, assign = nn.Module.__getattribute__, nn.Module.__setattr__

    def read_and_record(module: nn.Module, name: str) -> Any:
        is_noted = module in model and (module, name) not in reads
        is_noted = is_noted and name not in _OWN and not name.startswith("__")
        try:
            value = read(module, name)
        except AttributeError:
            own = read(module, "__dict__")
            if is_noted and not any(name in own.get(registry, ()) for registry in _REGISTRIES):
                reads[module, name] = MISSING, None
            raise
        if is_noted:
            reads[module, name] = value, look_into(value)
        return value

    def assign_and_record(module: nn.Module, name: str, value: Any) -> None:
        if module in model:
            assigned.append(name)
        assign(module, name, value)

    def has_changed() -> bool:
        leaves_now, structure_now = tree_flatten(inputs)
        return (
            bool(assigned)
            or versions != [tensor._version for tensor in tensors]
            or structure_now != structure
            or any(a is not b for a, b in zip(leaves, leaves_now, strict=True))
            or any(look_into(value) != contents for value, contents in reads.values())
            or look_into_globals(layer) != found_globals
            or random.getstate() != random_state
        )

    with (
        _set_method(nn.Module, "__getattribute__", read_and_record),
        _set_method(nn.Module, "__setattr__", assign_and_record),
    ):
        yield reads, found_globals, has_changed


def look_into(value: Any) -> Any:
    """Return the identities of what an object that may change holds; None if it holds nothing."""
    if isinstance(value, (nn.Module, torch.Tensor, type, types.ModuleType, types.FunctionType)):
        return None
    if isinstance(value, dict):
        return [*map(id, dict.keys(value)), *map(id, dict.values(value))]
    if isinstance(value, (list, set, deque)):
        return [*map(id, value)]
    attributes = getattr(value, "__dict__", None)
    return look_into(attributes) if isinstance(attributes, dict) else None


def look_into_globals(layer: nn.Module) -> Any:
    """Return the numbers and containers in the modules of Python that define a layer's classes."""
    names = {cls.__module__ for module in layer.modules() for cls in type(module).__mro__}
    return {
        (name, variable): (id(value), look_into(value) if type(value) is not dict else len(value))
        for name in names
        if not name.startswith("torch.") and name in sys.modules
        for variable, value in vars(sys.modules[name]).items()
        if type(value) in _COUNTERS and not variable.startswith("__")
    }


@contextlib.contextmanager
def _set_method(cls: type, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Give a class a method for a while."""
    own = vars(cls).get(name)
    setattr(cls, name, function)
    try:
        yield
    finally:
        if own is None:
            delattr(cls, name)
        else:
            setattr(cls, name, own)


def own_tensors(module: nn.Module) -> dict[str, torch.Tensor]:
    tensors = {**module._parameters, **module._buffers}
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def select_tensors(values: list[Any]) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]
