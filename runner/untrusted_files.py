"""Reads files that kdrun did not write: only regular files, and only up to a size limit."""

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LARGEST_SOURCE = 8 << 20
LARGEST_DOCUMENT = 1 << 30
LARGEST_TREE = 64 << 20
MOST_FILES = 50_000
"""Number of files and folders of a directory that is judged."""
DEEPEST = 32
"""Number of folders that may lie in one another in such a directory."""


def walk(directory: Path) -> Iterator[Path]:
    """Yield the files and folders below a directory, in no order; links are not followed.

    What lies in more than `DEEPEST` folders is left out.
    """
    pending = [(directory, 0)]
    while pending:
        folder, depth = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                yield Path(entry.path)
                if depth < DEEPEST and entry.is_dir(follow_symlinks=False):
                    pending.append((Path(entry.path), depth + 1))


def read_file(path: Path, most_bytes: int = LARGEST_SOURCE) -> bytes:
    """Return a file's bytes.

    Raises:
        OSError: the file cannot be read, has more than `most_bytes`, or is not a regular file:
            reading a pipe may block, and reading a device may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        kind = os.fstat(descriptor)
        if stat.S_ISDIR(kind.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", str(path))
        if kind.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"has more than {most_bytes >> 20} MiB", str(path))
        return file.read(kind.st_size)


def read_text(path: Path, most_bytes: int = LARGEST_DOCUMENT) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        OSError: as for `read_file`.
        UnicodeDecodeError: the file is not UTF-8.
    """
    return read_file(path, most_bytes).decode("utf-8")


def read_json(path: Path, most_bytes: int = LARGEST_DOCUMENT) -> Any:
    """Return the document in a file of JSON.

    Raises:
        OSError: as for `read_file`.
        ValueError: the file is not JSON, or has a key twice: readers differ in which one counts.
        RecursionError: it is nested too deeply.
    """
    return json.loads(read_text(path, most_bytes), object_pairs_hook=_refuse_duplicates)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise ValueError(f"{key!r} stands twice in one object")
        document[key] = value
    return document
