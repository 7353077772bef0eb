"""This file knows about `manifest.json`: what a run was asked, and how each problem stands."""

import os
import re
import socket
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from runner.store.result import Decomposed, Document, Figures, ProblemResult, Status

MANIFEST_FILE = "manifest.json"

RunState = Literal["running", "finished", "interrupted"]


class Job(Document):
    """A job of Ray's that drives a run, on a cluster that it was sent to."""

    address: str
    """Of the cluster's dashboard."""
    job_id: str


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


class Manifest(Document):
    """One `kdrun submit`, rewritten whenever a problem ends."""

    run_id: str
    state: RunState
    arguments: dict[str, Any]
    """The settings as they were resolved from flags, environment and file."""
    versions: dict[str, str]
    cluster: dict[str, Any] = Field(default_factory=dict)
    """Address, nodes, cores and memory as Ray reported them at the start."""
    driver_host: str
    driver_pid: int
    """The process that drives it: a run that is `running` without it was killed."""
    job: Job | None = None
    """That process, where it was sent to a cluster."""
    data: str
    """The directory that the problems came from."""
    started: datetime
    updated: datetime | None = None
    """When its driver had its last word; from elsewhere, a `running` run is judged by it."""
    finished: datetime | None = None
    """Present exactly when the state is not `running`."""
    selected: int
    """How many problems the run is about, those with an earlier result included."""
    counts: dict[Status, int]
    rows: list[Row]

    @model_validator(mode="after")
    def adds_up(self) -> Self:
        if (self.state == "running") == (self.finished is not None):
            raise ValueError(f"{self.state} with finished={self.finished}")
        if self.counts != count(self.rows):
            raise ValueError("counts are not those of the rows")
        if len(self.rows) > self.selected:
            raise ValueError(f"{len(self.rows)} rows for {self.selected} problems")
        return self

    def state_now(self) -> str:
        """`killed` where the driver, on this machine, is gone without having said so."""
        if self.state == "running" and self.driver_host == socket.gethostname():
            try:
                os.kill(self.driver_pid, 0)
            except ProcessLookupError:
                return "killed"
            except PermissionError:
                pass
        return self.state

    @property
    def all_passed(self) -> bool:
        """Every selected problem, and at least one."""
        return 0 < self.selected == self.counts.get("passed", 0)

    def to_json(self) -> str:
        return self.model_dump_json(indent=1, exclude_none=True) + "\n"


def count(rows: list[Row]) -> dict[Status, int]:
    return dict(Counter(row.status for row in rows))


def merged(
    ours: Manifest, theirs: Manifest, selection: Collection[str], forget: Collection[str] = ()
) -> Manifest:
    """Our manifest of a run, and what another driver of it, now or before, has to say besides.

    A row that we only found is told by who made it; rows of what we do not have yet, or did not
    select, stay, but for the problems in `forget`.
    """
    their_rows = {row.label: row for row in theirs.rows}
    rows = []
    for row in ours.rows:
        made = their_rows.pop(row.label, None)
        found = row.attempts == 0 and not row.differs
        same = made is not None and made.result_sha256 == row.result_sha256
        rows.append(made if found and same and made is not None else row)
    rows.extend(row for label, row in sorted(their_rows.items()) if label not in forget)
    outside = sum(row.label not in selection for row in rows)
    return ours.model_copy(
        update={
            "rows": sorted(rows, key=_natural),
            "counts": count(rows),
            "selected": max(theirs.selected, ours.selected + outside),
            "started": min(ours.started, theirs.started),
            "cluster": ours.cluster if ours.cluster.get("nodes") else theirs.cluster,
        }
    )


def _natural(row: Row) -> tuple[bool, str, list[tuple[int, int, str]]]:
    """Level 1 before others and custom ones last, 2_ before 10_, numbers before names."""
    parts = (part for part in re.split(r"(\d+)", row.problem) if part)
    name = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
    return row.source_level == "custom", row.source_level, name
