"""The task that a problem's child is given, and the record that it answers with."""

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from runner.batch.machine import GIB
from runner.batch.memory_request import Forecast, Needs
from runner.errors import CaptureError, MissingError, ProblemError
from runner.prompts import Facts
from runner.statuses import Status
from runner.store.objects import Address
from runner.store.result import Document, Figures, RunOptions

STAGE_FILE = "stage"
"""In a task's scratch directory: what its child is doing now."""


class Target(Document):
    """Where in a store the result of a task goes."""

    address: Address
    run_id: str
    supersedes: str | None = None
    """Version of the result that was found there and is to be replaced."""
    moved: bool = False
    """Nothing is left on the machine that made it."""


class Task(Document):
    """One problem, and what to do with it."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    problem: Path
    source: bytes | None = None
    """The file itself, for a machine that may not see the one at `problem`."""
    named: str | None = None
    """From which name its file was written; then what is not there is no problem's fault."""
    label: str
    directory: Path
    """Where the decomposition goes, or is."""
    scratch: Path
    """This attempt's own; on the file system of `directory`, gone when the attempt ends."""
    options: RunOptions
    memory_bytes: int
    """What the child may allocate."""
    most_memory_bytes: int
    """What a child could be given at most, on the largest node."""
    sized: bool = True
    """False: `memory_bytes` is a guess. Where the captured graph asks for more, the child says so
    and does nothing."""
    may_grow: bool = False
    """Another attempt follows one that runs out of memory; what that one says is not committed."""
    threads: int = 1
    timeout_s: float
    keeps_passed: bool = False
    """An `error`, which says that the problem file is broken, replaces no result that passed."""
    target: Target | None = None
    """None: the result stays in `directory`. A child is not told."""

    @property
    def built(self) -> Path:
        """Where the decomposition is written and verified before it takes its place."""
        return self.scratch / self.directory.name

    @property
    def stage_file(self) -> Path:
        return self.scratch / STAGE_FILE


class Record(Document):
    """What a child has to say when it ends by itself."""

    status: Status
    reason: str | None = None
    stage: str | None = None
    out_of_memory: bool = False
    """The child met its own limit; with a higher one, that a node has, it might pass."""
    forecast: Forecast | None = None
    """How much memory it is expected to take, once its program is captured."""
    asks_for_more: bool = False
    """Nothing was done: `memory_bytes` was a guess, and the forecast asks for more."""
    disk_full: bool = False
    """No space was left, and the child had not taken it; elsewhere it might pass."""
    refused: str | None = None
    """Why this machine cannot do what was asked for; it says nothing about the problem."""
    missing: str | None = None
    """What an import of the file's own did not find."""
    hint: str | None = None
    """What to do about that."""
    figures: Figures | None = None
    bitwise_equal: bool | None = None
    max_diff: float | None = None
    health: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    peak_device_bytes: int | None = None
    seconds: dict[str, float] = Field(default_factory=dict)
    verification: dict[str, Any] | None = None
    """The verdicts in full; only asked for by `verify`."""
    findings: list[str] = Field(default_factory=list)
    """What does not pass, a line each, the first few; the answer of `judge`."""
    given_bad_inputs: frozenset[str] = frozenset()
    """Component files that gave NaN, or raised, on what they draw; nothing else is wrong."""
    facts: Facts | None = None
    """What the problem's program does; the answer of `facts`."""


def record_of(error: ProblemError, stage: str) -> Record:
    """The record of a problem that its author, or its program, leaves us unable to take apart."""
    return Record(
        status="failed" if isinstance(error, CaptureError) else "error",
        reason=f"{error.reason}; {error.hint}" if error.hint else error.reason,
        stage=stage,
        missing=error.missing if isinstance(error, MissingError) else None,
        hint=error.hint if isinstance(error, MissingError) else None,
    )


def more_than_given(task: Task, forecast: Forecast) -> Record | None:
    """Return a record that asks for more memory, where the guess was too little; else None."""
    guess = Needs(task.memory_bytes, task.most_memory_bytes)
    expected = forecast.expected_bytes
    wanted = guess.of_a_model(expected, 0, forecast.weights_bytes).granted_bytes
    if task.sized or wanted <= task.memory_bytes:
        return None
    return Record(
        status="too_large",
        reason=f"asks for {wanted / GIB:.1f} GiB",
        stage="capture",
        asks_for_more=True,
        forecast=forecast,
    )
