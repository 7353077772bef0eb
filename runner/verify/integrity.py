"""This file knows about what a decomposition's code may not change: torch, Python and kdrun.

What is compared is the thing, not the spelling: each name of the namespaces below has to be the
very object that it was. A change is somebody's fault, and is undone before anything else runs.
"""

import builtins
import os
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from operator import is_
from types import FunctionType, ModuleType
from typing import Any

import torch

from runner.torch_internals import (
    PRIVATE_NAMESPACES,
    global_hooks,
    pop_modes,
    replaced_kernels,
    stack_depths,
)

_WATCHED = (
    *("torch", "torch.functional", "torch.random", "torch.linalg", "torch.fft", "torch.special"),
    *("torch.overrides", "torch.testing", "torch.multiprocessing.reductions"),
    *PRIVATE_NAMESPACES,
    *("math", "operator", "random", "copy", "json", "hashlib", "pathlib", "os"),
    *("sys", "time", "importlib", "runner.batch.work", "pydantic.main"),
)
_WATCHED_BELOW = ("torch.nn.", "torch.testing.", "runner.verify", "runner.problems", "runner.tree")
_MAY_CHANGE = {
    "environ",
    "Storage",
    "stdin",
    "stdout",
    "stderr",
    "last_value",
    "last_type",
    "last_traceback",
}
_KINDS = (FunctionType, property, classmethod, staticmethod)
_MISSING = object()
_BUILTINS = vars(builtins)
_TORCH = os.path.dirname(torch.__file__)  # noqa: PTH120  (a prefix, as text)


class _Space:
    """One module or class, and the names in it that code can call."""

    __slots__ = ("all_of_it", "holder", "label", "names")

    def __init__(self, label: str, holder: Any, names: dict[str, Any]) -> None:
        self.label, self.holder, self.names = label, holder, names
        self.remember()

    def remember(self) -> None:
        self.all_of_it = tuple(vars(self.holder).values())

    def is_as_it_was(self) -> bool:
        now = vars(self.holder)
        return len(now) == len(self.all_of_it) and all(map(is_, now.values(), self.all_of_it))

    def restore(self) -> str | None:
        now = vars(self.holder)
        found: str | None = None
        for name, value in self.names.items():
            other = now.get(name, _MISSING)
            if other is not value and not _wraps(other, value):
                found = found or f"replaces {self.label}.{name}"
                setattr(self.holder, name, value)
        if isinstance(self.holder, type):
            for name in [n for n in now if n not in self.names and isinstance(now[n], _KINDS)]:
                found = found or f"adds {self.label}.{name}"
                delattr(self.holder, name)
        return found


class _Spaces:
    """All of them. Where every value is the one that it was, one walk over all of them says so."""

    def __init__(self) -> None:
        self._steady = [_Space(*space) for space in _namespaces()]
        self._restless: list[_Space] = []
        """Those that also keep count of something: asked for each name that code can call."""
        self._remember()

    def restore(self) -> str | None:
        found: str | None = None
        for space in self._restless:
            found = space.restore() or found
        as_many = sum(map(len, self._living)) == len(self._values)
        if as_many and all(map(is_, chain.from_iterable(self._living), self._values)):
            return found  # tens of thousands of names in a millisecond
        for space in [space for space in self._steady if not space.is_as_it_was()]:
            fault = space.restore()
            found = fault or found
            if fault is None:
                self._steady.remove(space)
                self._restless.append(space)
        self._remember()
        return found

    def _remember(self) -> None:
        for space in self._steady:
            space.remember()
        self._living = [vars(space.holder).values() for space in self._steady]  # as they change
        self._values = tuple(chain.from_iterable(space.all_of_it for space in self._steady))


class Integrity:
    """Torch, Python and kdrun as they were when this was made."""

    def __init__(self) -> None:
        self._spaces = _Spaces()
        self._builtins = {name: v for name, v in _BUILTINS.items() if name != "_"}
        self._state = {what: read() for what, (read, _) in _STATE.items()}

    def restore(self, *, state: bool = True) -> str | None:
        """The first thing that was changed, in one line; everything is then as it was.

        `state`: also torch's settings; else they are from now on what they are, since a problem's
        own file may choose them.
        """
        found: str | None = None
        for name, value in self._builtins.items():  # first of all, and without their help
            if _BUILTINS.get(name) is not value:
                found = f"replaces builtins.{name}"
                _BUILTINS[name] = value
        for what, before in self._state.items():
            read, put_back = _STATE[what]
            if read() == before:
                continue
            if state:
                found = found or f"changes {what}"
                put_back(before)
            else:
                self._state[what] = read()
        return self._spaces.restore() or found


def _wraps(new: Any, old: Any) -> bool:
    """Whether torch itself put something around a function, as its compiler does when imported."""
    code = getattr(new, "__code__", None)
    inside = code is not None and code.co_filename.startswith(_TORCH)
    return inside and getattr(new, "__wrapped__", None) is old


def _namespaces() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """A name for people, the module or class, and what is in it that code can call."""
    classes: dict[type, str] = {}
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType):
            continue
        if name not in _WATCHED and not f"{name}.".startswith(_WATCHED_BELOW):
            continue
        callables = {
            key: value
            for key, value in vars(module).items()
            if (callable(value) or isinstance(value, ModuleType))
            and key not in _MAY_CHANGE
            and not key.startswith("__")
        }
        yield name, module, callables
        if name.startswith(("torch", "runner.")):
            mine = (v for v in callables.values() if isinstance(v, type))
            classes |= {cls: _label(cls) for cls in mine if _is_ours(cls)}
    for cls, label in classes.items():
        yield label, cls, {k: v for k, v in vars(cls).items() if isinstance(v, _KINDS)}


def _is_ours(cls: type) -> bool:
    """Whether Python code can change it, and its changes matter."""
    if not cls.__module__.startswith(("torch", "runner.")):
        return False
    return bool(cls.__flags__ & 1 << 9)  # a heap type


def _label(cls: type) -> str:
    where = "torch" if cls is torch.Tensor else cls.__module__
    return f"{where}.{cls.__qualname__}"


def _set_hooks(before: list[dict[int, Any]]) -> None:
    for now, then in zip(global_hooks(), before, strict=True):
        now.clear()
        now.update(then)


Modes = tuple[int, int, bool]


def modes_on() -> Modes:
    """How many modes stand between a program and torch (a default device is one); gradients."""
    return *stack_depths(), torch.is_grad_enabled()


def leave_modes(before: Modes) -> bool:
    """Take off what was put on since; whether there was anything."""
    functions, operations, gradients = before
    found = modes_on() != before
    pop_modes(functions, operations)
    torch.set_grad_enabled(gradients)
    return found


def _kernels_of_operations() -> frozenset[str]:
    """Python functions that stand in for torch's own kernels; those for shapes alone come late."""
    return _kernels_among(replaced_kernels())


@lru_cache(maxsize=2)
def _kernels_among(registered: frozenset[str]) -> frozenset[str]:
    mine = (key for key in registered if key.startswith("aten/"))
    return frozenset(key for key in mine if not key.endswith("/Meta"))


_STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "the default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "the hooks of every module": (lambda: [dict(hooks) for hooks in global_hooks()], _set_hooks),
    "what torch's operations do": (_kernels_of_operations, lambda before: None),
    "the number of threads": (torch.get_num_threads, torch.set_num_threads),
    "how exactly torch computes": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
}
"""What it is for people -> how it is read and put back."""
