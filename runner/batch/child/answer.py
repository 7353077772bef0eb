"""Defines the answers of a problem's child process; `kind` says which one it is.

EstimateAnswer    the memory that the problem is expected to need
FactsAnswer       the facts that a decomposer's brief states
VerdictAnswer     a decomposition was verified
FailureAnswer     the work ended before that, or the process ended without an answer
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from runner.batch.child.task import Task
from runner.batch.machine import GIB
from runner.batch.memory_request import Forecast, MemoryRequest
from runner.errors import CaptureError, MissingError, ProblemError, comes_from_full_disk
from runner.prompts import Facts
from runner.statuses import Status
from runner.store.result import Document, Figures


class FailureCause(StrEnum):
    """Causes of a failure that somebody can act on: the driver, or the user."""

    OUT_OF_MEMORY = "out_of_memory"
    """The child reached its memory limit; a higher one, if a node has it, may help."""
    NEEDS_MORE = "needs_more"
    """The child stopped because its memory limit was a guess below its forecast."""
    DISK_FULL = "disk_full"
    """The disk was full without the child's doing; on another disk it may pass."""
    REFUSED = "refused"
    """This machine cannot do the task, such as without a GPU."""
    MISSING = "missing"
    """The problem file lacks a module or an argument."""


class _AnswerDocument(Document):
    """Fields of every answer."""

    reason: str | None = None
    stage: str | None = None
    """Stage in which the work ended; None if it ended well."""
    forecast: Forecast | None = None
    """Memory that the problem is expected to need; None if its program was not captured."""
    figures: Figures | None = None
    """Figures of the decomposition; None if none was written."""
    seconds: dict[str, float] = Field(default_factory=dict)
    findings: list[str] = Field(default_factory=list)
    """First few faults of a decomposition, one line each."""


class EstimateAnswer(_AnswerDocument):
    """Answers `estimate`."""

    kind: Literal["estimate"] = "estimate"
    status: Literal["passed"] = "passed"
    forecast: Forecast
    input_shapes: list[list[int]]
    """Shapes of forward()'s inputs."""


class FactsAnswer(_AnswerDocument):
    """Answers `facts`."""

    kind: Literal["facts"] = "facts"
    status: Literal["passed"] = "passed"
    facts: Facts


class VerdictAnswer(_AnswerDocument):
    """Answers `decompose`, `judge` and `verify`."""

    kind: Literal["verdict"] = "verdict"
    status: Literal["passed", "failed"]
    bitwise_equal: bool | None = None
    max_diff: float | None = None
    health: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    peak_device_bytes: int | None = None
    verification: dict[str, Any] | None = None
    """Full verdicts as JSON; present only in the answer to `verify`."""
    given_bad_inputs: frozenset[str] = frozenset()
    """Component files whose own random inputs gave NaN or raised, if nothing else failed."""
    constant_kernels: frozenset[str] = frozenset()
    """Kernel files whose own random inputs gave one number throughout."""

    @model_validator(mode="after")
    def check_reason(self) -> Self:
        if (self.status == "passed") == (self.reason is not None):
            raise ValueError(f"{self.status} with reason={self.reason!r}")
        return self


class FailureAnswer(_AnswerDocument):
    """Answers whatever was asked, where there is neither a value nor a verdict."""

    kind: Literal["failure"] = "failure"
    status: Status
    reason: str
    source_line: int | None = None
    """Line of the problem file that the reason is about; None if it is about no line."""
    stage: str
    cause: FailureCause | None = None
    """Cause that may be acted on; None if the failure is final."""
    needed_bytes: int = 0
    """Bytes that a further attempt needs at least; 0 if that is unknown."""
    missing: str | None = None
    """Message about what the problem file lacks; present exactly if that is the cause."""
    hint: str | None = None
    """Advice for `missing`."""

    @model_validator(mode="after")
    def check_cause(self) -> Self:
        if self.status == "passed":
            raise ValueError("a failure that passed")
        if self.cause is FailureCause.NEEDS_MORE and self.forecast is None:
            raise ValueError("it needs more memory, without a forecast")
        if (self.cause is FailureCause.MISSING) != (self.missing is not None):
            raise ValueError(f"cause {self.cause} with missing={self.missing!r}")
        return self


Answer = Annotated[
    EstimateAnswer | FactsAnswer | VerdictAnswer | FailureAnswer, Field(discriminator="kind")
]


def failure_cause(answer: Answer) -> FailureCause | None:
    """Return the cause of a failure that may be acted on; None for any other answer."""
    return answer.cause if isinstance(answer, FailureAnswer) else None


def describe_problem_error(error: ProblemError, stage: str) -> FailureAnswer:
    """Return the answer for a problem that cannot be loaded, run or captured."""
    missing = error.missing if isinstance(error, MissingError) else None
    cause = FailureCause.DISK_FULL if comes_from_full_disk(error) else None
    return FailureAnswer(
        status="failed" if isinstance(error, CaptureError) else "error",
        reason=f"{error.reason}; {error.hint}" if error.hint else error.reason,
        source_line=error.line,
        stage=stage,
        cause=cause if missing is None else FailureCause.MISSING,
        missing=missing,
        hint=None if missing is None else error.hint,
    )


def request_more_memory(task: Task, forecast: Forecast) -> FailureAnswer | None:
    """Return an answer that asks for more memory if the task's guess is too small, else None."""
    guess = MemoryRequest(task.memory_bytes, task.most_memory_bytes)
    expected_bytes = forecast.expected_bytes
    wanted_bytes = guess.for_model(expected_bytes, 0, forecast.weights_bytes).granted_bytes
    if task.sized or wanted_bytes <= task.memory_bytes:
        return None
    return FailureAnswer(
        status="too_large",
        reason=f"asks for {wanted_bytes / GIB:.1f} GiB",
        stage="capture",
        cause=FailureCause.NEEDS_MORE,
        forecast=forecast,
    )
