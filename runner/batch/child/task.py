"""Defines the task that a problem's child process receives."""

from pathlib import Path

from pydantic import ConfigDict

from runner.store.objects import Address
from runner.store.result import Document, RunOptions

STAGE_FILE = "stage"
"""File in a task's scratch directory that names the stage its child is in."""


class TaskTarget(Document):
    """Place in a store for the result of a task."""

    address: Address
    run_id: str
    supersedes: str | None = None
    """Version of the stored result that this task's result replaces; None if none was stored."""
    moved: bool = False
    """Whether the worker deletes its own copy once the result is stored."""


class Task(Document):
    """One problem, with everything that a worker needs to process it."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    problem: Path
    source: bytes | None = None
    """Content of the problem file, for a worker that may not see the path `problem`."""
    import_name: str | None = None
    """Import name (`package.module:Class`) that the problem file was generated from.

    With it, a failing import is the user's spelling mistake and not the problem's fault."""
    label: str
    directory: Path
    """Directory of the decomposition: written by `decompose`, read by `verify`."""
    scratch: Path
    """Directory of this attempt alone, removed when the attempt ends. Attempts that write a
    decomposition have it on the file system of `directory`."""
    options: RunOptions
    memory_bytes: int
    """Bytes that the child may allocate."""
    most_memory_bytes: int
    """Most bytes that any child can be granted: the memory of the largest node."""
    sized: bool = True
    """Whether `memory_bytes` was computed from the captured graph. If it is a guess and the graph
    needs more, the child asks for that amount and stops."""
    may_grow: bool = False
    """Whether an attempt that runs out of memory is followed by one with more; if so, its result is
    not committed."""
    threads: int = 1
    timeout_s: float
    keeps_values: bool = False
    """Whether the caller stores values beside the files, which then can test themselves on these.
    """
    keeps_passed: bool = False
    """Whether an earlier result that passed stays in place if this attempt makes nothing: the
    problem file is broken, or the decomposer delivered nothing."""
    target: TaskTarget | None = None
    """Place in a store for the result; None if it stays in `directory`. Never sent to the child."""

    @property
    def build_directory(self) -> Path:
        """Directory where the decomposition is built and verified before moving to `directory`."""
        return self.scratch / self.directory.name

    @property
    def stage_file(self) -> Path:
        return self.scratch / STAGE_FILE
