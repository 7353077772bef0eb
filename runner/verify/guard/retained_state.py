"""Finds what a file keeps from call to call in itself, in its classes or in its model.

It imports torch alone, because the process that runs files by themselves runs this text, too.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial, partialmethod
from itertools import zip_longest
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

_SCALAR_TYPES = {type(None), bool, int, float, complex, str, bytes, range, slice}
_SCALAR_TYPES |= {torch.dtype, torch.device, torch.Size, torch.memory_format, torch.layout}
_COLLECTIONS = (list, tuple, set, frozenset, deque)
_RECREATED_TYPES = (*_COLLECTIONS, Mapping, MethodType, partial, partialmethod)
"""Types of which only the members count, since equal objects cannot be told apart."""
_INNER_ATTRIBUTES = (
    *("__defaults__", "__kwdefaults__", "__func__", "__self__", "__wrapped__"),
    *("func", "args", "keywords", "fget", "fset", "fdel", "default_factory"),
)
"""Attributes in which functions, methods, properties, partial functions and dicts hold others."""

_FRESH = vars(torch.nn.Module())
"""Attributes of a module that nobody has set."""
_MAX_SETTINGS = 20_000
"""Characters of settings above which only their hash is compared."""

State = list[tuple[str, Any]]
"""Path and description of each value, in the order in which containers hold them."""


class _Identity:
    """An object that is equal to itself alone; it stays alive, so that no other takes its place."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self._value is other._value

    __hash__ = None  # type: ignore[assignment]


class _Elements:
    """The elements of a tensor, byte by byte, so that NaN is equal to itself."""

    def __init__(self, tensor: torch.Tensor) -> None:
        plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
        self._bytes = plain.reshape(-1).view(torch.uint8).clone()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Elements) and torch.equal(self._bytes, other._bytes)

    __hash__ = None  # type: ignore[assignment]


def snapshot_file(file: ModuleType) -> State:
    """Return the state of a file: its variables, and what its classes and functions hold.

    The elements of its tensors belong to it: no forward may write to them.
    """
    variables = {name: value for name, value in vars(file).items() if not _is_dunder(name)}
    visited: dict[int, tuple[str, Any]] = {}
    return [
        entry
        for name, value in variables.items()
        for entry in _walk_values(value, name, file.__name__, visited, with_elements=True)
    ]


def snapshot_model(model: torch.nn.Module, file: ModuleType) -> State:
    """Return the state of a model, without the elements of its tensors."""
    return [*_walk_values(model, "self", file.__name__, {})]


def find_change(before: State, after: State, *, may_create: bool = False) -> str | None:
    """Return the path of the first value that differs between two states, or None.

    `may_create`: new values may be there, also in the place of None.
    """
    if may_create:
        values = dict(after)
        before = [(path, value) for path, value in before if value != repr(None)]
        after = [(path, values.get(path)) for path, _ in before]
    for first, second in zip_longest(before, after):
        if first != second:
            return str((second or first)[0])
    return None


def describe_settings(module: torch.nn.Module) -> list[list[str]]:
    """Return path and text of each value that sets what a module computes, but for its tensors.

    What `nn.Module` itself sets is left out. Two modules of one class that were built with the same
    arguments have the same settings.
    """
    settings = [*_walk_settings(module, "self", type(module).__module__, {})]
    text = repr(settings)
    if len(text) > _MAX_SETTINGS:
        return [["self", hashlib.sha256(text.encode()).hexdigest()]]
    return settings


def _walk_settings(
    value: Any, name: str, file: str, visited: dict[int, tuple[str, Any]]
) -> Iterator[list[str]]:
    if type(value) in _SCALAR_TYPES:
        yield [name, repr(value)]
        return
    if isinstance(value, torch.Tensor):
        return
    if id(value) in visited:
        yield [name, visited[id(value)][0]]
        return
    visited[id(value)] = name, value  # It stays alive, so that no other object takes its place.
    if isinstance(value, FunctionType):
        code = value.__code__
        yield [name, f"{value.__qualname__} {code.co_firstlineno} {[*code.co_positions()]}"]
    else:
        yield [name, str(getattr(value, "__qualname__", type(value).__qualname__))]
    if isinstance(value, ModuleType | type):
        return
    members = _iterate_members(value, file)
    if name.endswith("_hooks"):  # torch numbers the hooks of all modules of a process.
        members = enumerate(item for _, item in members)
    for key, item in members:
        is_fresh = (
            isinstance(value, torch.nn.Module)
            and type(item) is type(_FRESH.get(key))
            and item == _FRESH.get(key)
        )
        if not is_fresh:
            yield from _walk_settings(item, f"{name}.{key}", file, visited)


class StateWatch:
    """Compares what a file and its models hold before and after each thing that they do."""

    def __init__(self, file: ModuleType) -> None:
        self._file, self._first = file, snapshot_file(file)
        self.change: str | None = None
        """Path of the first value that something changed, or None."""

    def check_file(self) -> None:
        """Compare the file with what it was after its import."""
        self.change = self.change or find_change(self._first, snapshot_file(self._file))

    @contextmanager
    def watch_call(self, model: torch.nn.Module, *, is_first: bool) -> Iterator[None]:
        """Compare a model before and after its call in the body, which may be the first one."""
        before = snapshot_model(model, self._file)
        yield
        after = snapshot_model(model, self._file)
        self.change = self.change or find_change(before, after, may_create=is_first)
        self.check_file()


def _walk_values(
    value: Any,
    name: str,
    file: str,
    visited: dict[int, tuple[str, Any]],
    *,
    with_elements: bool = False,
) -> Iterator[tuple[str, Any]]:
    if type(value) in _SCALAR_TYPES:
        yield name, repr(value)
        return
    if id(value) in visited:
        yield name, visited[id(value)][0]
        return
    visited[id(value)] = name, value
    if isinstance(value, torch.Tensor):
        yield name, (_Identity(value), _describe_tensor(value))
        if with_elements and value.layout is torch.strided and not value.is_meta:
            yield name, _Elements(value)
    elif isinstance(value, torch.Generator):
        yield name, (_Identity(value), _Elements(value.get_state()))
    elif hasattr(type(value), "__next__"):
        # An iterator may move on without a trace, so it counts as changed after each call.
        yield name, object()
    elif isinstance(value, _RECREATED_TYPES):
        yield name, type(value)
    else:
        yield name, _Identity(value)
    if not isinstance(value, ModuleType):
        for key, item in _iterate_members(value, file):
            path = f"{name}.{key}"
            yield from _walk_values(item, path, file, visited, with_elements=with_elements)


def _describe_tensor(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return what a tensor tells without its elements."""
    place = (tensor.stride(), tensor.data_ptr()) if tensor.layout is torch.strided else ()
    return tensor.shape, place, tensor.dtype, tensor.requires_grad


def _iterate_members(value: Any, file: str) -> Iterator[tuple[Any, Any]]:
    """Yield names and values of all that a container, a function, a class or an object holds."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, _COLLECTIONS):
        yield from enumerate(value)
    elif isinstance(value, int | float | complex | str | bytes):
        yield "itself", value.__repr__()
    if isinstance(value, FunctionType | type) and value.__module__ != file:
        return
    slots = [cls.__dict__.get("__slots__", ()) for cls in type(value).__mro__]
    names = [*getattr(value, "__dict__", ())]
    names += [n for entry in slots for n in ([entry] if isinstance(entry, str) else entry)]
    for n in names:
        member = None if n == "__dict__" else _read_member(value, n)
        if not _is_dunder(n) or isinstance(member, FunctionType):
            yield n, member
    for n in _INNER_ATTRIBUTES:
        if (inner := _read_member(value, n)) is not None:
            yield n, inner
    for n, cell in enumerate(getattr(value, "__closure__", None) or ()):
        if cell != CellType():
            yield n, cell.cell_contents


def _read_member(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # The author's code answers, as a configuration does that asks its layers.
        return None


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
