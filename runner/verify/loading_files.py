"""Runs a decomposition's files by path and leaves no trace in this process.

Files run from their text: no bytecode is written or read, the working directory plays no part,
`children` is another package for every step, and sys.modules is restored afterwards.
"""

import hashlib
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType, TracebackType
from typing import Any, Protocol, Self
from weakref import WeakKeyDictionary

import torch
from torch import nn

from runner.errors import KdrunError
from runner.problems import LoadedProblem, Problem, is_out_of_memory, load_problem, read_problem
from runner.problems.author_errors import shorten_message
from runner.torch_internals import pop_modes, stack_depths
from runner.untrusted_files import read_file
from runner.verify.runtime.output_leaves import MissingValuesError

CHILDREN = "children"
_NONE: Mapping[str, ModuleType] = MappingProxyType({})


class CannotJudge(Exception):
    """A part of the decomposition is missing or raises; the message is the reason, in one line."""


@contextmanager
def foreign_code(label: str, directory: Path) -> Iterator[None]:
    """Run code of a decomposition; turn what it raises into CannotJudge that names its own line.

    Running out of memory is raised as MemoryError. `label` begins the message, such as
    `original.py: forward`.
    """
    modes = (*stack_depths(), torch.is_grad_enabled())
    try:
        yield
        if _restore_modes(modes):
            raise CannotJudge(f"{label}: leaves torch in another mode, such as a default device")
    except (CannotJudge, MissingValuesError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if is_out_of_memory(error):
            raise MemoryError(shorten_message(str(error))) from error
        description = _describe_error(error, directory)
        raise CannotJudge(
            description if description.startswith(f"{label}: ") else f"{label}: {description}"
        ) from error
    finally:
        _restore_modes(modes)


def _restore_modes(saved_modes: tuple[int, int, bool]) -> bool:
    """Remove the torch modes that were entered since; return whether there were any."""
    current_modes = (*stack_depths(), torch.is_grad_enabled())
    pop_modes(*saved_modes[:2])
    torch.set_grad_enabled(saved_modes[2])
    return current_modes != saved_modes


class AnyProblem(Protocol):
    """A problem whose file has run, in this process or in a worker."""

    @property
    def problem(self) -> Problem:
        """The problem that the file defines."""

    def build(self) -> nn.Module:
        """Return a new model."""

    def get_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return new inputs: positional and keyword arguments."""


class AnyFiles(Protocol):
    """Runs files of a directory, in this process or in a worker."""

    directory: Path

    def load(self, path: Path) -> ModuleType:
        """Run a file and return its module; CannotJudge if it is missing or raises."""

    def load_text(self, path: Path, text: str) -> ModuleType:
        """Run a text in place of a file and return its module."""

    def load_step(self, step: Path, modules: Mapping[str, ModuleType] = _NONE) -> ModuleType:
        """Run a step's refactored.py, with `children` as the step's own folder."""

    def problem(self) -> AnyProblem:
        """Run original.py and return its problem."""


CLASS_FILES: WeakKeyDictionary[type, Path] = WeakKeyDictionary()
"""Maps the classes of the files that were run to their files."""


class Files:
    """Runs files of one decomposition in this process; as a context manager, unloads them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._modules: dict[str, ModuleType] = {}
        self._code_objects: dict[bytes, CodeType] = {}
        self._dont_write_bytecode = False

    def __enter__(self) -> Self:
        self._modules = dict(sys.modules)
        self._path = list(sys.path)
        self._dont_write_bytecode = sys.dont_write_bytecode
        sys.dont_write_bytecode = True
        return self

    def __exit__(self, *error: object) -> None:
        sys.dont_write_bytecode = self._dont_write_bytecode
        sys.path[:] = self._path
        for name, module in list(sys.modules.items()):
            previous = self._modules.get(name)
            if previous is not module and self._is_ours(module):
                if previous is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = previous

    def reopen(self) -> Self:
        """Return a new loader of the same files, which shares the compiled code."""
        files = type(self)(self.directory)
        files._code_objects = self._code_objects
        return files

    def load(self, path: Path) -> ModuleType:
        """Run a file and return its module; CannotJudge if it is missing or raises."""
        path = path.absolute()
        digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
        return self._run(path, f"_kdrun_{path.stem}_{digest}")

    def load_text(self, path: Path, text: str) -> ModuleType:
        """Run a text in place of a file and return its module."""
        module = ModuleType("_kdrun_text")
        module.__file__ = str(path)
        with foreign_code(relative_path(path, self.directory), self.directory):
            exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
        return module

    def problem(self) -> LoadedProblem:
        """Run original.py and return its problem."""
        return load_problem(read_problem(self.directory / "original.py"))

    def load_step(self, step: Path, modules: Mapping[str, ModuleType] = _NONE) -> ModuleType:
        """Run a step's refactored.py, with `children` as the step's own folder.

        `modules`: modules that have run already, by the name in that folder of a file with the same
        bytes.
        """
        package = ModuleType(CHILDREN)
        package.__path__ = [str(step.resolve() / CHILDREN)]
        package.__file__ = str(step.resolve() / CHILDREN / "__init__.py")
        saved_modules = {name: sys.modules.pop(name) for name in _children_module_names()}
        sys.modules[CHILDREN] = package
        try:
            for child in sorted((step / CHILDREN).glob("*.py")):
                name = f"{CHILDREN}.{child.stem}"
                module = modules.get(child.stem) or self._run(child.absolute(), name)
                sys.modules[name] = module
                setattr(package, child.stem, module)
            return self.load(step / "refactored.py")
        finally:
            for name in _children_module_names():
                del sys.modules[name]
            sys.modules.update(saved_modules)

    def _run(self, path: Path, name: str) -> ModuleType:
        location = relative_path(path, self.directory)
        try:
            source = read_file(path)
        except OSError as error:
            raise CannotJudge(f"{location}: {error.strerror or error}") from error
        module = ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module  # dataclasses and pickle look their module up by name
        modules = dict(sys.modules)
        with foreign_code(location, self.directory):
            exec(self._compile(source, str(path)), module.__dict__)
        for other, previous in modules.items():
            is_replaced = sys.modules.get(other) is not previous and not self._is_ours(previous)
            if is_replaced and self._is_ours(sys.modules.get(other)):
                raise CannotJudge(f"{location}: replaces the module {other} for other files")
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == name:
                CLASS_FILES[value] = path
        return module

    def _compile(self, source: bytes, path: str) -> CodeType:
        """Compile a source once, however many copies of it the steps' children hold."""
        if source not in self._code_objects:
            self._code_objects[source] = compile(source, path, "exec", dont_inherit=True)
        return _with_file_name(self._code_objects[source], path)

    def _is_ours(self, module: Any) -> bool:
        file = getattr(module, "__file__", None)
        return isinstance(file, str) and Path(file).is_relative_to(self.directory)


def require_attribute(module: ModuleType, name: str, directory: Path) -> Any:
    """Return an attribute of a module; CannotJudge if the file does not define it."""
    try:
        return getattr(module, name)
    except AttributeError:
        location = relative_path(Path(str(module.__file__)), directory)
        raise CannotJudge(f"{location}: no {name}") from None


def relative_path(path: Path, directory: Path) -> str:
    """Return a file's path inside the decomposition, by which messages name it."""
    path, directory = path.absolute(), directory.resolve()
    return path.relative_to(directory).as_posix() if path.is_relative_to(directory) else str(path)


def _describe_error(error: BaseException, directory: Path) -> str:
    message = shorten_message(str(error))
    if isinstance(error, KdrunError):
        return message.replace(f"{directory.resolve()}/", "")
    location = _innermost_line(error.__traceback__, directory)
    name = type(error).__name__
    return f"{name}: {message}{location}" if message else f"{name}{location}"


def _innermost_line(trace: TracebackType | None, directory: Path) -> str:
    """Return the innermost line of the decomposition in a traceback, in parentheses."""
    for frame in reversed(traceback.extract_tb(trace)):
        path = Path(frame.filename)
        if path.is_absolute() and path.is_relative_to(directory.resolve()):
            return f" ({relative_path(path, directory)}:{frame.lineno})"
    return ""


def _with_file_name(code: CodeType, path: str) -> CodeType:
    """Return the same code with another file name, also in nested functions."""
    if code.co_filename == path:
        return code
    constants = (
        _with_file_name(constant, path) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    return code.replace(co_filename=path, co_consts=tuple(constants))


def _children_module_names() -> list[str]:
    """Return the names in sys.modules of the `children` package and its modules."""
    candidates = [name for name in sys.modules if name.startswith(CHILDREN)]
    return [name for name in candidates if name == CHILDREN or name.startswith(f"{CHILDREN}.")]
