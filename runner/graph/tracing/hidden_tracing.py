"""Hides from a model and its libraries that they are being traced."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import SourceFileLoader
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

from runner.graph.tracing.refusal import CaptureRefusal
from runner.torch_internals import FakeTensor, subclasses, without_modes


@contextlib.contextmanager
def hide_tracing() -> Iterator[None]:
    """Answer "no" when a library asks whether it is being traced, as in a plain run.

    Some libraries would run another program: a full mask where attention could take `is_causal`.
    torch itself gets the true answer. The functions' code objects are exchanged, because a library
    may have imported the functions by name.
    """
    fakes = subclasses
    questions = (torch.compiler.is_compiling, torch.compiler.is_exporting)
    saved_codes = [question.__code__ for question in questions]

    def resolve_attribute(name: str) -> Any:
        if name != "FakeTensor":
            raise AttributeError(f"module {fakes.__name__!r} has no attribute {name!r}")
        return FakeTensor if _is_torch(sys._getframe(1)) else _NoTensor

    try:
        for question in questions:
            _TRUE_ANSWERS[question.__name__] = FunctionType(question.__code__, question.__globals__)
            question.__code__ = _CODE[question.__name__]
        del fakes.FakeTensor
        fakes.__getattr__ = resolve_attribute  # type: ignore[method-assign]
        yield
    finally:
        fakes.FakeTensor = FakeTensor  # type: ignore[misc]
        del fakes.__getattr__
        for question, code in zip(questions, saved_codes, strict=True):
            question.__code__ = code


def _is_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"


def answer(question: str) -> bool:
    """Return the answer of one of torch's functions to the caller two frames up, while tracing."""
    return _is_torch(sys._getframe(2)) and bool(_TRUE_ANSWERS[question]())


Entries = frozenset[tuple[int, Any]]
"""Entries of dicts: the dict's id() and the key."""
_TRUE_ANSWERS: dict[str, Callable[[], bool]] = {}
_CODE = {
    name: compile(f"__import__('sys').modules['{__name__}'].answer('{name}')", f"<{name}>", "eval")
    for name in ("is_compiling", "is_exporting")
}


class _NoTensor:
    """The class that libraries see in the place of FakeTensor; nothing is an instance of it."""


@contextlib.contextmanager
def refuse_seeding() -> Iterator[None]:
    """Refuse a forward that seeds the generator, since a symbolic trace does not record that."""
    saved_seed = torch.manual_seed

    def refuse(seed: int) -> Any:
        raise CaptureRefusal(
            f"forward() calls torch.manual_seed({seed})", "seed outside of forward()"
        )

    torch.manual_seed = refuse
    try:
        yield
    finally:
        torch.manual_seed = saved_seed


@contextlib.contextmanager
def import_without_modes() -> Iterator[None]:
    """Run imports outside of tracing modes, so that a package makes real tensors on import."""
    loader: Any = SourceFileLoader
    saved = loader.exec_module

    def execute(self: SourceFileLoader, module: ModuleType) -> None:
        own = module.__name__.partition(".")[0] in _CACHES_NO_TENSORS
        with contextlib.nullcontext() if own else without_modes():
            saved(self, module)

    loader.exec_module = execute
    try:
        yield
    finally:
        loader.exec_module = saved


@contextlib.contextmanager
def forget_cached_tensors() -> Iterator[None]:
    """Clear caches at the end, so that a library never reads a traced tensor from its cache again.

    Caches are `functools.lru_cache` and dicts in a module or class. Real tensors that a package
    made while it was first imported stay. Methods of `dict` read them, because those of a subclass
    may import a whole package for each key.
    """
    saved = [(contents, {*dict.keys(contents)}) for contents in _dicts()]
    known_ids = {id(contents) for contents, _ in saved}
    try:
        yield
    finally:
        _clear_function_caches()
        for contents, keys in saved:
            for key, value in [*dict.items(contents)]:
                if key not in keys and next(_held_tensors(value), None) is not None:
                    del contents[key]
        _delete_fakes(contents for contents in _dicts() if id(contents) not in known_ids)


def forget_last_trace(is_built: Callable[[torch.Tensor], bool], kept: Entries) -> None:
    """Clear caches before a forward is traced again: they may hold tensors of the last trace.

    `is_built`: whether a tensor was made when the model was built; it stays. `kept`: entries that
    stay as well.
    """
    _clear_function_caches()
    _delete_fakes(_dicts(), is_built, kept)


def list_entries(module: ModuleType) -> Entries:
    """Return the entries of the dicts in a module and its classes."""
    return frozenset((id(found), key) for found in _dicts([module]) for key in dict.keys(found))


def _clear_function_caches() -> None:
    for function in gc.get_objects() if _may_have_caches() else ():
        if type(function) is functools._lru_cache_wrapper:  # isinstance() may fail on a proxy
            module = str(getattr(function, "__module__", ""))
            if module.partition(".")[0] not in _CACHES_NO_TENSORS:
                function.cache_clear()


def _delete_fakes(
    dicts: Iterable[dict[Any, Any]],
    stays: Callable[[torch.Tensor], bool] = lambda tensor: False,
    kept: Entries = frozenset(),
) -> None:
    for contents in [*dicts]:
        for key, value in [*dict.items(contents)]:
            if (id(contents), key) in kept:
                continue
            if any(not stays(tensor) for tensor in _held_tensors(value, FakeTensor)):
                del contents[key]


def _dicts(modules: Iterable[ModuleType] | None = None) -> Iterator[dict[Any, Any]]:
    """Yield each dict in a module or class of the problem or of a package that it imports.

    `modules`: those that are searched, instead.

    type() runs none of an object's code; isinstance() makes a lazy importer import its package.
    """
    for module in _modules() if modules is None else modules:
        for member in [*vars(module).values()]:
            members = [*vars(member).values()] if issubclass(type(member), type) else [member]
            yield from (value for value in members if issubclass(type(value), dict))


def _held_tensors(value: object, kind: type[torch.Tensor] = torch.Tensor) -> Iterator[torch.Tensor]:
    contents = [*dict.values(value)] if isinstance(value, dict) else value
    for item in contents if isinstance(contents, list | tuple) else [contents]:
        if isinstance(item, kind):
            yield item


def _modules() -> Iterator[ModuleType]:
    """Yield the modules that were imported after kdrun started."""
    for name, module in list(sys.modules.items()):
        if name not in _MODULES_AT_START and name.partition(".")[0] not in _CACHES_NO_TENSORS:
            yield module


_MODULES_AT_START = frozenset(sys.modules)
"""Modules imported before any problem; searching all objects for caches takes 50 ms."""


def _may_have_caches() -> bool:
    """Return whether a problem imported a library, or has a cached function of its own."""
    for module in _modules():
        if "site-packages" in str(vars(module).get("__file__", "")):
            return True
        members = [*vars(module).values()]
        members += [m for cls in members if issubclass(type(cls), type) for m in vars(cls).values()]
        if any(type(m) is functools._lru_cache_wrapper for m in members):
            return True
    return False


_CACHES_NO_TENSORS = {
    "annotated_types", "filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "numpy",
    "pydantic", "pydantic_core", "runner", "sympy", "torch", "typing_extensions",
    "typing_inspection", *sys.stdlib_module_names,
}  # fmt: skip
"""Packages that torch and kdrun import themselves; they cache no tensors of a problem."""
