"""Tell a problem's author in one line where their code failed."""

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

from runner.errors import KdrunError, MissingError, ProblemError
from runner.problems.packages import within_package
from runner.problems.problem import Problem

_OUT_OF_MEMORY = ("can't allocate memory", "cannot allocate memory", "out of memory", "bad_alloc")
_PACKAGES = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
LONGEST_MESSAGE = 300


@contextmanager
def author_code(problem: Problem) -> Iterator[None]:
    """Run the author's code: what it raises becomes a ProblemError that names the author's line.

    `sys.exit()` is an error of the file too. Running out of memory is nobody's fault: it leaves as
    MemoryError. Our own errors pass unchanged.
    """
    try:
        yield
    except (KdrunError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        raise _missing_module(problem, error) from error
    except (Exception, SystemExit) as error:
        if out_of_memory(error):
            raise MemoryError(one_line(str(error))) from error
        if isinstance(error, ImportError) and (missing := _missing_name(problem, error)):
            raise missing from error
        raise ProblemError(problem.path, author_error(problem, error)) from error


def author_error(problem: Problem, error: BaseException) -> str:
    """One line for the author: the error, and the innermost line of their own file that led to it.

    `RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 5x7) (line 31, in forward)`.
    Where a package that the file uses raised, its own line comes after that.
    """
    for link in _chain(error):
        if frame := _author_frame(problem.path, link.__traceback__):
            if isinstance(link, ModuleNotFoundError) and link.name:
                missing = _missing_module(problem, link)
                return f"{missing.reason}; {missing.hint}" if missing.hint else missing.reason
            where = _where(problem.path, link.__traceback__)
            return f"{_described(link, problem.path, frame[0])}{where}"
    package = _package_frame(problem.path, error.__traceback__)
    return f"{_described(error, problem.path, None)}{f' ({package})' if package else ''}"


def out_of_memory(error: BaseException) -> bool:
    """Whether memory is all that was missing, be it Python's, the allocator's or the GPU's."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError | OSError) and any(t in text for t in _OUT_OF_MEMORY)


def _missing_module(problem: Problem, error: ModuleNotFoundError) -> ProblemError:
    missing = error.name or ""
    package = missing.partition(".")[0]
    frame = _author_frame(problem.path, error.__traceback__)
    where = f" (line {frame[0]})" if frame else ""
    what = f"needs the module {missing!r}, which is not installed"
    if not package:
        return ProblemError(problem.path, author_error(problem, error))
    if package in sys.modules:
        version = getattr(sys.modules[package], "__version__", "")
        have = f"{package} {version}".strip()
        what = f"needs {missing!r}, which {have} does not have"
        return _absent(problem, error, what, where)
    beside = problem.path.parent
    alone = f"a problem is one file: put what it uses of {package} into it"
    if (beside / f"{package}.py").is_file():
        what, hint = f"imports {package}.py, which lies beside it", alone
    elif (beside / package).is_dir():
        hint = f"{alone}, or run in the folder that holds {package}"
    else:
        hint = f"pip install {_PACKAGES.get(package, package)}"
    return _absent(problem, error, what, where, hint)


def _missing_name(problem: Problem, error: ImportError) -> ProblemError | None:
    """For `cannot import name 'Llama' from 'transformers'`."""
    wanted = re.match(r"cannot import name '(\w+)' from '", str(error))
    module = sys.modules.get(error.name or "")
    if not wanted or module is None:
        return None
    where = _where(problem.path, error.__traceback__)
    close = difflib.get_close_matches(wanted[1], dir(module), n=1)
    hint = f"is it {close[0]}?" if close else None
    return _absent(problem, error, f"{error.name} has no {wanted[1]}", where, hint)


def _absent(
    problem: Problem, error: ImportError, what: str, where: str, hint: str | None = None
) -> ProblemError:
    """Told apart: did an import of the file's own find nothing, or one of a package's."""
    if _package_frame(problem.path, error.__traceback__) is None:
        return MissingError(problem.path, what, where, hint=hint)
    return ProblemError(problem.path, what + where, hint=hint)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it was raised from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _author_frame(path: Path, traceback: TracebackType | None) -> tuple[int, str] | None:
    """Line of the innermost frame that runs the author's file, and the function that it is in."""
    line, function = None, ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == str(path):
            line = traceback.tb_lineno
            if not code.co_name.startswith("<"):  # a lambda, a comprehension, the module
                function = code.co_name
        traceback = traceback.tb_next
    return None if line is None else (line, function)


def _where(path: Path, traceback: TracebackType | None) -> str:
    """` (line 5, in forward; zoo/model.py, line 31)`; nothing without the author's file."""
    if (frame := _author_frame(path, traceback)) is None:
        return ""
    line, function = frame
    own = f"line {line}, in {function}" if function else f"line {line}"
    package = _package_frame(path, traceback)
    return f" ({own}; {package})" if package else f" ({own})"


def _package_frame(path: Path, traceback: TracebackType | None) -> str | None:
    """Where the error came from, if that is a package between the author's file and torch."""
    found = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file == str(path):
            found = None
        elif _is_of_a_package(file):
            found = file, traceback.tb_lineno
        traceback = traceback.tb_next
    if found is None:
        return None
    file, line = found
    return f"{within_package(file)}, line {line}"


def _is_of_a_package(file: str) -> bool:
    import torch

    ours = str(Path(__file__).parents[1]) + os.sep, str(Path(torch.__file__).parent) + os.sep
    if file.startswith(("<", *ours)):
        return False
    return "-packages" in file or not file.startswith(sysconfig.get_path("stdlib") + os.sep)


def _described(error: BaseException, path: Path, line: int | None) -> str:
    message = one_line(str(error))
    if not message and isinstance(error, AssertionError) and line is not None:
        message = linecache.getline(str(path), line).strip()
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def one_line(message: str) -> str:
    """The first paragraph: torch appends stack traces and advice below it."""
    text = " ".join(message.strip().split("\n\n")[0].split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"
