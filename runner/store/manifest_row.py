"""This file knows about a row of a manifest: how one problem of a run ended, and after what."""

import re
import textwrap
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from runner.statuses import Status
from runner.store.result import Decomposed, Document, Figures, ProblemResult

Cause = Literal["preempted", "node lost", "worker lost", "out of memory", "disk full"]
"""preempted       the node was told to go, and went
node lost       it went without a word
worker lost     Ray's worker process died, and its node did not
out of memory   the share of memory was too small; the next one is larger
disk full       no space was left on the node, and the problem had not taken it"""


class Repeat(Document):
    """An attempt that was not the last: the problem was not to blame, or lacked room."""

    cause: Cause
    said: str
    requested_memory_bytes: int
    started: datetime | None = None
    seconds: float | None = None
    """From its sending to its end."""
    node: str | None = None
    """Absent where it went with what it knew."""
    cpu_seconds: float | None = None


class Row(Document):
    """One problem of a run that has ended."""

    problem: str
    source_level: str
    status: Status
    reason: str | None = None
    figures: Figures | None = None
    bitwise_equal: bool | None = None
    health: list[str] = Field(default_factory=list)
    seconds: float = 0.0
    """Wall time of all stages of the last attempt."""
    seconds_by_stage: dict[str, float] = Field(default_factory=dict)
    """Of the last attempt; `upload` is the way into the store."""
    cpu_seconds: float | None = None
    """Processor time of all attempts that could tell."""
    gpu_seconds: float | None = None
    """GPUs that all attempts held, times how long."""
    uploaded_bytes: int | None = None
    """What the store did not have yet; absent where there is none, or an earlier result stands."""
    peak_memory_bytes: int | None = None
    requested_memory_bytes: int | None = None
    """What Ray was asked for; absent for a result that an earlier run made."""
    node: str | None = None
    attempts: int = 0
    """The last one and those before; 0: an earlier run's result stands."""
    repeats: list[Repeat] = Field(default_factory=list)
    """The attempts before the last, in their order; the last one is what the row itself says."""
    artifact_prefix: str | None = None
    """Where its files are, relative to the output directory or to the run's store; absent where
    nothing was written."""
    result_sha256: str | None = None
    """Of its result.json."""
    differs: list[str] = Field(default_factory=list)
    """In what the result that stands, by another writer who was first, is not this run's own."""
    decomposer: Decomposed | None = None
    """Who took it apart, where that was not kdrun, with each round's verdict."""

    @property
    def label(self) -> str:
        return f"{self.source_level}/{self.problem}"

    def is_told_by(self, other: "Row") -> bool:
        """Whether we only found the result that the other one's attempts made."""
        found = self.attempts == 0 and not self.differs
        return found and self.result_sha256 == other.result_sha256

    def text(self) -> str:
        """As it is in a manifest."""
        return textwrap.indent(self.model_dump_json(indent=1, exclude_none=True), "  ")

    @classmethod
    def of(
        cls,
        result: ProblemResult,
        *,
        attempts: int,
        result_sha256: str | None,
        artifact_prefix: str | None = None,
        differs: Sequence[str] = (),
        node: str | None = None,
        requested_memory_bytes: int | None = None,
        repeats: Sequence[Repeat] = (),
        upload_s: float | None = None,
        uploaded_bytes: int | None = None,
        gpu_seconds: float | None = None,
    ) -> "Row":
        cpu_seconds = [result.cpu_seconds, *(repeat.cpu_seconds for repeat in repeats)]
        told = [seconds for seconds in cpu_seconds if seconds is not None]
        return cls(
            problem=result.problem,
            source_level=result.source_level,
            status=result.status,
            reason=result.reason,
            figures=result.figures,
            bitwise_equal=result.bitwise_equal,
            health=result.health,
            seconds=round(result.total_s, 3),
            seconds_by_stage=result.seconds | ({} if upload_s is None else {"upload": upload_s}),
            cpu_seconds=round(sum(told), 3) if told else None,
            gpu_seconds=gpu_seconds,
            uploaded_bytes=uploaded_bytes,
            peak_memory_bytes=result.peak_memory_bytes,
            requested_memory_bytes=requested_memory_bytes,
            node=node,
            attempts=attempts,
            repeats=list(repeats),
            artifact_prefix=artifact_prefix,
            result_sha256=result_sha256,
            differs=list(differs),
            decomposer=result.decomposer,
        )


def natural(label: str) -> tuple[bool, str, list[tuple[int, int, str]]]:
    """Level 1 before others and custom ones last, 2_ before 10_, numbers before names."""
    level, _, problem = label.rpartition("/")
    parts = (part for part in re.split(r"(\d+)", problem) if part)
    name = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
    return level == "custom", level, name
