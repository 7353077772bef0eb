"""Finds Python values that a file keeps from call to call in itself, its classes or its model.

It imports torch alone, because the process that runs files by themselves runs this text, too.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any

import torch

_SCALAR_TYPES = {type(None), bool, int, float, complex, str, bytes}
_SCALAR_TYPES |= {torch.dtype, torch.device, torch.Size, torch.memory_format, torch.layout}
_COLLECTIONS = (list, tuple, set, frozenset, deque)
_INNER_ATTRIBUTES = (
    *("__defaults__", "__kwdefaults__", "__func__", "__self__", "__wrapped__"),
    *("func", "args", "keywords", "fget"),
)
"""Attributes in which functions, methods, properties and partial functions hold other objects."""


def snapshot_state(model: torch.nn.Module, file: ModuleType) -> dict[str, Any]:
    """Return the path of each Python value that a model and its file hold, with its text or length.

    Tensors are recorded without their elements.
    """
    visited: dict[int, Any] = {}
    state: dict[str, Any] = {}
    variables = {name: value for name, value in vars(file).items() if not _is_dunder(name)}
    for name, value in {"self": model, **variables}.items():
        state.update(_walk_values(value, name, file.__name__, visited))
    return state


def find_change(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return the path of the first value that differs between two snapshots, or None."""
    names = [*before, *(name for name in after if name not in before)]
    return next((n for n in names if n not in before or before[n] != after.get(n)), None)


def _walk_values(
    value: Any, name: str, file: str, visited: dict[int, Any]
) -> Iterator[tuple[str, Any]]:
    if type(value) in _SCALAR_TYPES:
        yield name, repr(value)
    elif isinstance(value, ModuleType) or id(value) in visited:
        return
    elif hasattr(type(value), "__next__"):
        # An iterator may move on without a trace, so it counts as changed after each call.
        yield name, object()
    else:
        visited[id(value)] = value
        if isinstance(value, (*_COLLECTIONS, Mapping)):
            yield name, len(value)
        for key, item in _iterate_members(value, file):
            yield from _walk_values(item, f"{name}.{key}", file, visited)


def _iterate_members(value: Any, file: str) -> Iterator[tuple[Any, Any]]:
    """Yield names and values of all that a container, a function, a class or an object holds."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, _COLLECTIONS):
        ordered = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        yield from enumerate(ordered)
    elif isinstance(value, int | float | complex | str | bytes):
        yield "itself", value.__repr__()
    if isinstance(value, FunctionType | type) and value.__module__ != file:
        return
    slots = [cls.__dict__.get("__slots__", ()) for cls in type(value).__mro__]
    names = [*getattr(value, "__dict__", ())]
    names += [n for entry in slots for n in ([entry] if isinstance(entry, str) else entry)]
    for n in names:
        if not _is_dunder(n) and n != "training":
            yield n, getattr(value, n, None)
    for n in _INNER_ATTRIBUTES:
        if (inner := getattr(value, n, None)) is not None:
            yield n, inner
    for n, cell in enumerate(getattr(value, "__closure__", None) or ()):
        if cell != CellType():
            yield n, cell.cell_contents


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
