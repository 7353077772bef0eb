"""Describes in one line, for a problem's author, where their code failed."""

from __future__ import annotations

import difflib
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from runner.errors import KdrunError, MissingError, ProblemError, error_chain
from runner.problems.packages import path_within_package
from runner.problems.problem import Problem

_OUT_OF_MEMORY = (
    "can't allocate memory",
    "cannot allocate memory",
    "out of memory",
    "bad_alloc",
    "error return without exception set",  # Python, where even the exception found no memory.
)
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
LONGEST_MESSAGE = 300


@contextmanager
def author_code(problem: Problem) -> Iterator[None]:
    """Run the author's code; an exception from it becomes a ProblemError with the author's line.

    `sys.exit()` counts as an error of the file. Running out of memory is not the author's mistake
    and is raised as MemoryError. kdrun's own errors pass unchanged.
    """
    try:
        yield
    except (KdrunError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        raise _missing_module(problem, error) from error
    except (Exception, SystemExit) as error:
        if is_out_of_memory(error):
            raise MemoryError(shorten_message(str(error))) from error
        if isinstance(error, ImportError) and (missing := _missing_attribute(problem, error)):
            raise missing from error
        raise author_error(problem, error) from error


def author_error(problem: Problem, error: BaseException) -> ProblemError:
    """Return the error that says in one line what the author's code raised, and on which line."""
    line = find_author_line(problem, error)
    return ProblemError(problem.path, describe_author_error(problem, error), line=line)


def find_author_line(problem: Problem, error: BaseException) -> int | None:
    """Return the innermost line of the author's file that led to an error; None without one."""
    for link in error_chain(error):
        if frame := _author_frame(problem.path, link.__traceback__):
            return frame[0]
    return None


def describe_author_error(problem: Problem, error: BaseException) -> str:
    """Return one line with the error and the innermost line of the author's file that led to it.

    `RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 5x7) (line 31, in forward)`.
    If a package that the file uses raised the error, the package's line follows.
    """
    for link in error_chain(error):
        if frame := _author_frame(problem.path, link.__traceback__):
            if isinstance(link, ModuleNotFoundError) and link.name:
                missing = _missing_module(problem, link)
                return f"{missing.reason}; {missing.hint}" if missing.hint else missing.reason
            position = _format_position(problem.path, link.__traceback__)
            return f"{_format_error(link, problem.path, frame[0])}{position}"
    package = _package_frame(problem.path, error.__traceback__)
    return f"{_format_error(error, problem.path, None)}{f' ({package})' if package else ''}"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means out of memory: Python's, the CPU allocator's or the GPU's."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    kinds = RuntimeError | OSError | SystemError
    return isinstance(error, kinds) and any(t in text for t in _OUT_OF_MEMORY)


def _missing_module(problem: Problem, error: ModuleNotFoundError) -> ProblemError:
    missing = error.name or ""
    package = missing.partition(".")[0]
    frame = _author_frame(problem.path, error.__traceback__)
    line = frame[0] if frame else None
    position = f" (line {line})" if line else ""
    problem_text = f"needs the module {missing!r}, which is not installed"
    if not package:
        return author_error(problem, error)
    if package in sys.modules:
        version = getattr(sys.modules[package], "__version__", "")
        installed = f"{package} {version}".strip()
        problem_text = f"needs {missing!r}, which {installed} does not have"
        return _import_error(problem, error, problem_text, position, line=line)
    folder = problem.path.parent
    advice = f"a problem is one file: put what it uses of {package} into it"
    if (folder / f"{package}.py").is_file():
        problem_text, hint = f"imports {package}.py, which lies beside it", advice
    elif (folder / package).is_dir():
        hint = f"{advice}, or run in the folder that holds {package}"
    else:
        hint = f"pip install {_DISTRIBUTIONS.get(package, package)}"
    return _import_error(problem, error, problem_text, position, hint, line)


def _missing_attribute(problem: Problem, error: ImportError) -> ProblemError | None:
    """Return the error for `cannot import name 'Llama' from 'transformers'`; None for others."""
    imported = re.match(r"cannot import name '(\w+)' from '", str(error))
    module = sys.modules.get(error.name or "")
    if not imported or module is None:
        return None
    position = _format_position(problem.path, error.__traceback__)
    close = difflib.get_close_matches(imported[1], dir(module), n=1)
    hint = f"is it {close[0]}?" if close else None
    missing, line = f"{error.name} has no {imported[1]}", find_author_line(problem, error)
    return _import_error(problem, error, missing, position, hint, line)


def _import_error(
    problem: Problem,
    error: ImportError,
    reason: str,
    position: str,
    hint: str | None = None,
    line: int | None = None,
) -> ProblemError:
    """Return a MissingError if the failing import is the file's own, not one inside a package."""
    if _package_frame(problem.path, error.__traceback__) is None:
        return MissingError(problem.path, reason, position, hint=hint, line=line)
    return ProblemError(problem.path, reason + position, hint=hint, line=line)


def _author_frame(path: Path, traceback: TracebackType | None) -> tuple[int, str] | None:
    """Return line and function of the innermost frame in the author's file; None without one."""
    line, function = None, ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == str(path):
            line = traceback.tb_lineno
            if not code.co_name.startswith("<"):  # not `<lambda>`, `<listcomp>` or `<module>`
                function = code.co_name
        traceback = traceback.tb_next
    return None if line is None else (line, function)


def _format_position(path: Path, traceback: TracebackType | None) -> str:
    """Return ` (line 5, in forward; zoo/model.py, line 31)`; "" if no frame is in the file."""
    if (frame := _author_frame(path, traceback)) is None:
        return ""
    line, function = frame
    author_line = f"line {line}, in {function}" if function else f"line {line}"
    package = _package_frame(path, traceback)
    return f" ({author_line}; {package})" if package else f" ({author_line})"


def _package_frame(path: Path, traceback: TracebackType | None) -> str | None:
    """Return file and line in a package if that code, called by the author's file, failed.

    Frames of torch and of kdrun do not count.
    """
    location = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file == str(path):
            location = None
        elif _is_package_file(file):
            location = file, traceback.tb_lineno
        traceback = traceback.tb_next
    if location is None:
        return None
    file, line = location
    return f"{path_within_package(file)}, line {line}"


def _is_package_file(file: str) -> bool:
    import torch

    own_prefixes = (
        str(Path(__file__).parents[1]) + os.sep,
        str(Path(torch.__file__).parent) + os.sep,
    )
    if file.startswith(("<", *own_prefixes)):
        return False
    return "-packages" in file or not file.startswith(sysconfig.get_path("stdlib") + os.sep)


def _format_error(error: BaseException, path: Path, line: int | None) -> str:
    message = shorten_message(str(error))
    if not message and isinstance(error, AssertionError) and line is not None:
        message = linecache.getline(str(path), line).strip()
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def shorten_message(message: str) -> str:
    """Return a message's first paragraph in one line; torch puts stack traces and advice below."""
    text = " ".join(message.strip().split("\n\n")[0].split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"
