"""This file knows about a run's one driver on this machine: a second one would undo its work."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.errors import UsageError, unwritable_error

LOCK_FILE = "lock"
"""In a run's folder; says which process holds it. The lock itself ends with that process."""


@contextmanager
def held(folder: Path, run_id: str) -> Iterator[None]:
    """Drive a run alone.

    Raises:
        UsageError: somebody does so already.
        StoreError: the run's folder cannot be written to.
    """
    path = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise unwritable_error(path, error, "--output") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.read(handle, 20).decode() or "another one"
            raise UsageError(
                f"--run-id {run_id}: process {who} is driving this run",
                hint="wait for its end, or choose another --run-id",
            ) from None
        except OSError:  # a file system without locks
            pass
        os.truncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        os.close(handle)
