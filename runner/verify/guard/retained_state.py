"""Finds Python values that a file keeps from call to call in itself, its classes or its model.

It imports torch alone, because the process that runs files by themselves runs this text, too.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any

import torch

_PLAIN = {type(None), bool, int, float, complex, str, bytes}
_PLAIN |= {torch.dtype, torch.device, torch.Size, torch.memory_format, torch.layout}
_SEVERAL = (list, tuple, set, frozenset, deque)
_INNER = (
    *("__defaults__", "__kwdefaults__", "__func__", "__self__", "__wrapped__"),
    *("func", "args", "keywords", "fget"),
)
"""Attributes in which functions, methods, properties and partial functions hold other objects."""


def remembered(model: torch.nn.Module, file: ModuleType) -> dict[str, Any]:
    """Return the path of each Python value that a model and its file hold, with its text or length.

    Tensors are recorded without their elements.
    """
    known: dict[int, Any] = {}
    found: dict[str, Any] = {}
    own = {name: value for name, value in vars(file).items() if not _is_inner(name)}
    for name, value in {"self": model, **own}.items():
        found.update(_held(value, name, file.__name__, known))
    return found


def changed(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return the path of the first value that differs between two snapshots, or None."""
    names = [*before, *(name for name in after if name not in before)]
    return next((n for n in names if n not in before or before[n] != after.get(n)), None)


def _held(value: Any, name: str, file: str, known: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    if type(value) in _PLAIN:
        yield name, repr(value)
    elif isinstance(value, ModuleType) or id(value) in known:
        return
    elif hasattr(type(value), "__next__"):
        # An iterator may move on without a trace, so it counts as changed after each call.
        yield name, object()
    else:
        known[id(value)] = value
        if isinstance(value, (*_SEVERAL, Mapping)):
            yield name, len(value)
        for key, item in _parts(value, file):
            yield from _held(item, f"{name}.{key}", file, known)


def _parts(value: Any, file: str) -> Iterator[tuple[Any, Any]]:
    """Yield names and values of all that a container, a function, a class or an object holds."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, _SEVERAL):
        ordered = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        yield from enumerate(ordered)
    elif isinstance(value, int | float | complex | str | bytes):
        yield "itself", value.__repr__()
    if isinstance(value, FunctionType | type) and value.__module__ != file:
        return
    slots = [cls.__dict__.get("__slots__", ()) for cls in type(value).__mro__]
    names = [*getattr(value, "__dict__", ())]
    names += [n for each in slots for n in ([each] if isinstance(each, str) else each)]
    for n in names:
        if not _is_inner(n) and n != "training":
            yield n, getattr(value, n, None)
    for n in _INNER:
        if (inner := getattr(value, n, None)) is not None:
            yield n, inner
    for n, cell in enumerate(getattr(value, "__closure__", None) or ()):
        if cell != CellType():
            yield n, cell.cell_contents


def _is_inner(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
