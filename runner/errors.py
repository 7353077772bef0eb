"""Defines the errors that users see: what happened, where, and what to do about it.

KdrunError                  exit code 2 unless another is given
├── UsageError              a flag or an argument that is invalid             (ValueError)
├── ConfigError             a setting that is invalid, with its file or name  (ValueError)
├── ProblemError            a problem file that is broken, with its message   exit code 1
│   ├── CaptureError        a model that runs but cannot be captured          exit code 1
│   └── MissingError        a problem file that imports a missing module      exit code 1
├── DecompositionError      a directory that is not a decomposition           (ValueError)
├── DatasetError            the dataset is missing or incomplete              (FileNotFoundError)
├── StoreError              results cannot be read or written                 (OSError)
├── MissingPackageError     an optional package that is not installed         (ImportError)
└── ClusterError            Ray is missing, or the cluster is not usable      (ConnectionError)
"""

import difflib
import errno
import importlib.util
import sys
from collections.abc import Collection
from pathlib import Path

LISTED = 8
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
    """A problem file is broken; the message is `path: reason`."""

    exit_code = 1

    def __init__(self, path: Path | str, what: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {what}", hint=hint)
        self.path = Path(path)
        self.what = what


class CaptureError(ProblemError):
    """A model runs but cannot be captured as a graph."""


class MissingError(ProblemError):
    """A problem file itself imports a module that is missing; the message says on which line."""

    def __init__(
        self, path: Path | str, missing: str, where: str, *, hint: str | None = None
    ) -> None:
        super().__init__(path, missing + where, hint=hint)
        self.missing = missing


class DecompositionError(KdrunError, ValueError):
    """A directory is not a decomposition, or is damaged."""


class DatasetError(KdrunError, FileNotFoundError):
    """The dataset is missing or incomplete."""


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


def is_full(error: OSError) -> bool:
    """Return whether the error says that the disk, or the user's quota, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def denies_access(error: OSError) -> bool:
    """Return whether the error says that the disk is full or access is not permitted."""
    return is_full(error) or error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def unwritable(place: Path | str, error: OSError, setting: str) -> StoreError:
    """Return the error for a path that cannot be written to; the hint names its setting."""
    hint = f"choose another {setting}"
    if is_full(error):
        hint = f"free some space there, or {hint}"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return StoreError(f"{place}: a file is where a folder must be", hint=hint)
    return StoreError(f"{place}: {error.strerror or error}", hint=hint)


def suggest_names(name: str, known: Collection[str]) -> str:
    """Return the hint for an unknown name: `is it a or b?`, or a list of the known names."""
    by_lower = {one.lower(): one for one in known}
    part = name.strip("*").lower()
    inside = [lower for lower in by_lower if len(part) > 2 and part in lower]
    close = inside or difflib.get_close_matches(part, by_lower, cutoff=0.7)
    if close:
        return f"is it {' or '.join(by_lower[lower] for lower in close[:3])}?"
    return there_are(known)


def there_are(known: Collection[str]) -> str:
    """Return the hint that lists the known names, or the first of them."""
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return f"there are {', '.join([*known][:LISTED])}{more}" if known else "there are none"


class ClusterError(KdrunError, ConnectionError):
    """Ray is missing, or the cluster cannot be reached or used."""
