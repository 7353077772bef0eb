"""Defines the errors that users see: what happened, where, and what to do about it.

KdrunError                  exit code 2 unless another is given
├── UsageError              a flag or an argument that is invalid             (ValueError)
├── ConfigError             a setting that is invalid, with its file or name  (ValueError)
├── ProblemError            a problem file that is broken, with its message   exit code 1
│   ├── CaptureError        a model that runs but cannot be captured          exit code 1
│   └── MissingError        a problem file that imports a missing module      exit code 1
├── DecompositionError      a directory that is not a decomposition           (ValueError)
├── DatasetError            the dataset is missing, or cannot be fetched      (FileNotFoundError)
├── StoreError              results cannot be read or written                 (OSError)
├── MissingPackageError     an optional package that is not installed         (ImportError)
└── ClusterError            Ray is missing, or the cluster is not usable      (ConnectionError)
"""

import difflib
import errno
import importlib.util
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from runner.quantities import join_first

MAX_LISTED_NAMES = 8
"""Number of names that a hint lists if none is similar to the given one."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C or SIGTERM ended."""


class KdrunError(Exception):
    """Base of all errors that are shown to people as one line."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(KdrunError, ValueError):
    """A flag or an argument is invalid."""


class ConfigError(KdrunError, ValueError):
    """A setting is invalid; the message has its file and line, or its variable."""


class ProblemError(KdrunError):
    """A problem file is broken; the message is `path: reason`.

    `line` is the line of the file that the reason is about; None if it is about no line.
    """

    exit_code = 1

    def __init__(
        self, path: Path | str, reason: str, *, hint: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.path = Path(path)
        self.reason = reason
        self.line = line


class CaptureError(ProblemError):
    """A model runs but cannot be captured as a graph."""


class MissingError(ProblemError):
    """A problem file itself imports a module that is missing; the message says on which line."""

    def __init__(
        self,
        path: Path | str,
        missing: str,
        location: str,
        *,
        hint: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(path, missing + location, hint=hint, line=line)
        self.missing = missing


class DecompositionError(KdrunError, ValueError):
    """A directory is not a decomposition, or is damaged."""


class DatasetError(KdrunError, FileNotFoundError):
    """The dataset is missing or damaged, or cannot be fetched."""


class StoreError(KdrunError, OSError):
    """Results cannot be read or written."""


class MissingPackageError(KdrunError, ImportError):
    """An optional package is not installed."""


def require_package(package: str, extra: str, user: str) -> None:
    """Raise an error if a package is not installed.

    `user` names what needs it in the message; `extra` is kdrun's extra that installs it.

    Raises:
        MissingPackageError: the package is not installed.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingPackageError(
            f"{user} needs {package}, which is not installed in {sys.prefix}",
            hint=f"pip install 'kdrun[{extra}]'",
        )


def is_disk_full(error: OSError) -> bool:
    """Return whether the error says that the disk, or the user's quota, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def comes_from_full_disk(error: BaseException) -> bool:
    """Return whether an error, or one that led to it, says that the disk is full."""
    return any(isinstance(link, OSError) and is_disk_full(link) for link in error_chain(error))


def error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, then the errors that led to it."""
    visited: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in visited:
        visited.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def denies_access(error: OSError) -> bool:
    """Return whether the error says that the disk is full or access is not permitted."""
    return is_disk_full(error) or error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def unwritable_error(path: Path | str, error: OSError, setting: str) -> StoreError:
    """Return the error for a path that cannot be written to; the hint names its setting."""
    hint = f"choose another {setting}"
    if is_disk_full(error):
        hint = f"free some space there, or {hint}"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return StoreError(f"{path}: a file is where a folder must be", hint=hint)
    return StoreError(f"{path}: {error.strerror or error}", hint=hint)


def suggest_names(name: str, known_names: Collection[str]) -> str:
    """Return the hint for an unknown name: `is it a or b?`, or a list of the known names."""
    by_lower = {known_name.lower(): known_name for known_name in known_names}
    fragment = name.strip("*").lower()
    containing = [lower for lower in by_lower if len(fragment) > 2 and fragment in lower]
    similar = containing or difflib.get_close_matches(fragment, by_lower, cutoff=0.7)
    if similar:
        return f"is it {' or '.join(by_lower[lower] for lower in similar[:3])}?"
    return f"there are {join_first([*known_names], MAX_LISTED_NAMES) or 'none'}"


class ClusterError(KdrunError, ConnectionError):
    """Ray is missing, or the cluster cannot be reached or used."""
