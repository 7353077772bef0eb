"""Locks a run, so that only one process on this machine drives it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.errors import UsageError, unwritable_error

LOCK_FILE = "lock"
"""File in a run's folder with the id of the process that drives the run. The lock ends with it."""


@contextmanager
def hold_run_lock(folder: Path, run_id: str) -> Iterator[None]:
    """Hold the lock of a run.

    Raises:
        UsageError: another process holds it.
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
            holder = os.read(handle, 20).decode() or "another one"
            raise UsageError(
                f"--run-id {run_id}: process {holder} is driving this run",
                hint="wait for its end, or choose another --run-id",
            ) from None
        except OSError:  # The file system has no locks.
            pass
        try:
            os.truncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
        except OSError as error:
            raise unwritable_error(path, error, "--output") from error
        yield
    finally:
        os.close(handle)
