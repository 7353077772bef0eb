"""Defines the task that a problem's child process receives and the record that it returns."""

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from runner.batch.machine import GIB
from runner.batch.memory_request import Forecast, MemoryRequest
from runner.errors import CaptureError, MissingError, ProblemError
from runner.prompts import Facts
from runner.statuses import Status
from runner.store.objects import Address
from runner.store.result import Document, Figures, RunOptions

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
    named: str | None = None
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
    keeps_passed: bool = False
    """Whether a result with status `error` (a broken problem file) leaves an earlier result that
    passed in place."""
    target: TaskTarget | None = None
    """Place in a store for the result; None if it stays in `directory`. Never sent to the child."""

    @property
    def build_directory(self) -> Path:
        """Directory where the decomposition is built and verified before moving to `directory`."""
        return self.scratch / self.directory.name

    @property
    def stage_file(self) -> Path:
        return self.scratch / STAGE_FILE


class Record(Document):
    """Answer of a child that ended by itself."""

    status: Status
    reason: str | None = None
    stage: str | None = None
    out_of_memory: bool = False
    """Whether the child reached its memory limit; a higher one, if a node has it, may help."""
    forecast: Forecast | None = None
    """Memory that the problem is expected to need; None if its program was not captured."""
    asks_for_more: bool = False
    """Whether the child stopped because `memory_bytes` was a guess below its forecast."""
    disk_full: bool = False
    """Whether the disk was full without the child's doing; on another disk it may pass."""
    refused: str | None = None
    """Reason why this machine cannot do the task, such as a missing GPU; None if it can."""
    missing: str | None = None
    """Message about the module or argument that the problem file lacks; None if it lacks none."""
    hint: str | None = None
    """Advice for `missing`."""
    figures: Figures | None = None
    bitwise_equal: bool | None = None
    max_diff: float | None = None
    health: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    peak_device_bytes: int | None = None
    seconds: dict[str, float] = Field(default_factory=dict)
    verification: dict[str, Any] | None = None
    """Full verdicts as JSON; present only in the answer of `verify`."""
    findings: list[str] = Field(default_factory=list)
    """First few failures, one line each."""
    given_bad_inputs: frozenset[str] = frozenset()
    """Component files whose own random inputs gave NaN or raised, if nothing else failed."""
    facts: Facts | None = None
    """Facts about the problem's program; present only in the answer of `facts`."""


def record_from_error(error: ProblemError, stage: str) -> Record:
    """Return the record for a problem that cannot be loaded, run or captured."""
    return Record(
        status="failed" if isinstance(error, CaptureError) else "error",
        reason=f"{error.reason}; {error.hint}" if error.hint else error.reason,
        stage=stage,
        missing=error.missing if isinstance(error, MissingError) else None,
        hint=error.hint if isinstance(error, MissingError) else None,
    )


def request_more_memory(task: Task, forecast: Forecast) -> Record | None:
    """Return a record that asks for more memory if the task's guess is too small, else None."""
    guess = MemoryRequest(task.memory_bytes, task.most_memory_bytes)
    expected_bytes = forecast.expected_bytes
    wanted_bytes = guess.for_model(expected_bytes, 0, forecast.weights_bytes).granted_bytes
    if task.sized or wanted_bytes <= task.memory_bytes:
        return None
    return Record(
        status="too_large",
        reason=f"asks for {wanted_bytes / GIB:.1f} GiB",
        stage="capture",
        asks_for_more=True,
        forecast=forecast,
    )
