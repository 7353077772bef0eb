"""What can go wrong for a user: what happened, where, and what to do about it.

KdrunError                  exit code 2 unless said otherwise
├── UsageError              a flag or an argument that cannot be meant        (ValueError)
├── ConfigError             a setting that is wrong, with its file and field  (ValueError)
├── ProblemError            a problem file that is broken, in its own words   exit code 1
│   ├── CaptureError        a model that runs but cannot be captured          exit code 1
│   └── MissingError        one that itself imports what is not there         exit code 1
├── DecompositionError      a directory that is not a decomposition           (ValueError)
├── DatasetError            the dataset is missing or not what it should be   (FileNotFoundError)
├── StoreError              results cannot be read or written                 (OSError)
├── MissingPackageError     an optional package that is not installed         (ImportError)
└── ClusterError            no Ray, or not the one that was asked for         (ConnectionError)
"""

import difflib
import errno
import importlib.util
import sys
from collections.abc import Collection
from pathlib import Path

LISTED = 8
"""Names that a hint gives where none is close to the one that was asked for."""
INTERRUPTED = 130
"""Exit code of what Ctrl-C or SIGTERM ended."""


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
    """A flag or an argument that cannot be meant."""


class ConfigError(KdrunError, ValueError):
    """A setting that is wrong, with its file and field."""


class ProblemError(KdrunError):
    """A problem file that is broken: `path: what`, and what to do."""

    exit_code = 1

    def __init__(self, path: Path | str, what: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {what}", hint=hint)
        self.path = Path(path)
        self.what = what


class CaptureError(ProblemError):
    """A model that runs but cannot be captured as a graph."""


class MissingError(ProblemError):
    """A problem file that itself imports what is not there, and where in the file it does."""

    def __init__(
        self, path: Path | str, missing: str, where: str, *, hint: str | None = None
    ) -> None:
        super().__init__(path, missing + where, hint=hint)
        self.missing = missing


class DecompositionError(KdrunError, ValueError):
    """A directory that is not a decomposition, or a damaged one."""


class DatasetError(KdrunError, FileNotFoundError):
    """The dataset is missing, or not what it should be."""


class StoreError(KdrunError, OSError):
    """Results cannot be read or written."""


class MissingPackageError(KdrunError, ImportError):
    """An optional package that is not installed."""


def require_package(package: str, extra: str, user: str) -> None:
    """Raise unless a package is installed; `user` needs it, and `extra` of kdrun's brings it.

    Raises:
        MissingPackageError: it is not installed.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingPackageError(
            f"{user} needs {package}, which is not installed in {sys.prefix}",
            hint=f"pip install 'kdrun[{extra}]'",
        )


def is_full(error: OSError) -> bool:
    """Whether a disk, or this user's share of it, has no space left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def denies_access(error: OSError) -> bool:
    """Return whether the system lets nobody, or not this user, read or write there."""
    return is_full(error) or error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def unwritable(place: Path | str, error: OSError, setting: str) -> StoreError:
    """Return the error for a place that cannot be written to, and that `setting` names."""
    hint = f"choose another {setting}"
    if is_full(error):
        hint = f"free some space there, or {hint}"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return StoreError(f"{place}: a file is where a folder must be", hint=hint)
    return StoreError(f"{place}: {error.strerror or error}", hint=hint)


def suggest_names(name: str, known: Collection[str]) -> str:
    """Return the hint for a name that nothing has: `is it a or b?`, or which names there are."""
    by_lower = {one.lower(): one for one in known}
    part = name.strip("*").lower()
    inside = [lower for lower in by_lower if len(part) > 2 and part in lower]
    close = inside or difflib.get_close_matches(part, by_lower, cutoff=0.7)
    if close:
        return f"is it {' or '.join(by_lower[lower] for lower in close[:3])}?"
    return there_are(known)


def there_are(known: Collection[str]) -> str:
    """Return the hint that lists the names there are, the first few of many."""
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return f"there are {', '.join([*known][:LISTED])}{more}" if known else "there are none"


class ClusterError(KdrunError, ConnectionError):
    """No Ray, or not the one that was asked for."""
