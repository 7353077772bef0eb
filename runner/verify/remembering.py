"""What a file remembers from call to call: Python values that it, its classes and its model hold.

This file imports torch alone: the process that runs files by themselves runs it, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any

import torch

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)
_SEVERAL = (list, tuple, set, frozenset)
_OF_MODULES = {"_parameters", "_buffers", "training"}
_INNER = (
    *("__defaults__", "__kwdefaults__", "__func__", "__self__", "__wrapped__"),
    *("func", "args", "keywords", "fget"),
)
"""What functions, methods, properties and partial functions hold."""


def remembered(model: torch.nn.Module, file: ModuleType) -> dict[str, Any]:
    """Where something is held -> what it is; tensors are left out."""
    known: dict[int, Any] = {}
    found: dict[str, Any] = {}
    own = {name: value for name, value in vars(file).items() if not name.startswith("__")}
    for name, value in {"self": model, **own}.items():
        found.update(_held(value, name, file.__name__, known))
    return found


def changed(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Where something is another now; None if nothing is."""
    names = [*before, *(name for name in after if name not in before)]
    return next((n for n in names if n not in before or before[n] != after.get(n)), None)


def _held(value: Any, name: str, file: str, known: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, _PLAIN):
        yield name, repr(value)
    elif isinstance(value, torch.Tensor | ModuleType) or id(value) in known:
        return
    elif hasattr(type(value), "__next__"):
        yield name, object()  # it is another one after each call
    else:
        known[id(value)] = value
        if isinstance(value, (*_SEVERAL, Mapping)):
            yield name, len(value)
        for key, item in _parts(value, file):
            yield from _held(item, f"{name}.{key}", file, known)


def _parts(value: Any, file: str) -> Iterable[tuple[Any, Any]]:
    """What a container, a function, a class or an object holds."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, _SEVERAL):
        return enumerate(value if isinstance(value, list | tuple) else sorted(value, key=repr))
    if isinstance(value, FunctionType | type) and value.__module__ != file:
        return ()
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    names = [n for n in names if not n.startswith("__") and n not in _OF_MODULES]
    cells = getattr(value, "__closure__", None) or ()
    full = [cell.cell_contents for cell in cells if cell != CellType()]
    return [(n, getattr(value, n, None)) for n in (*names, *_INNER)] + [("closure", full)]
