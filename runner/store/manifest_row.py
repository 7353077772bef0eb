"""Defines a row of a manifest: how one problem of a run ended, and its earlier attempts."""

import textwrap
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from runner.store.result import Document, ProblemResult, ResultSummary


class Cause(StrEnum):
    """Why an attempt ended without a verdict; `Retries` in runner/config.py limits each."""

    PREEMPTED = "preempted"
    NODE_LOST = "node lost"
    WORKER_LOST = "worker lost"
    OUT_OF_MEMORY = "out of memory"
    DISK_FULL = "disk full"

    @property
    def setting(self) -> str:
        """Name of the field of `Retries` that limits it."""
        return self.name.lower()


class Repeat(Document):
    """An attempt that was repeated: its machine failed, or it had too little memory or disk."""

    cause: Cause
    said: str
    requested_memory_bytes: int
    started: datetime | None = None
    seconds: float | None = None
    """Wall time from sending the attempt to its end."""
    node: str | None = None
    """Node that ran the attempt; absent if it was lost before the worker reported it."""
    cpu_seconds: float | None = None


class Row(ResultSummary):
    """Describes how one problem of a run ended, and what it took."""

    seconds: float = 0.0
    """Wall time of all stages of the last attempt."""
    seconds_by_stage: dict[str, float] = Field(default_factory=dict)
    """Wall time of each stage of the last attempt; `upload` is the upload into the store."""
    cpu_seconds: float | None = None
    """Processor time of all attempts that reported it."""
    gpu_seconds: float | None = None
    """GPU time of all attempts: number of GPUs times the seconds they were held."""
    uploaded_bytes: int | None = None
    """Bytes sent to the store; absent if there is no store, or an earlier result was reused."""
    requested_memory_bytes: int | None = None
    """Memory that Ray was asked for; absent for a result that an earlier run made."""
    node: str | None = None
    attempts: int = 0
    """Number of attempts, the last one included; 0 if an earlier run's result was reused."""
    repeats: list[Repeat] = Field(default_factory=list)
    """The attempts before the last one, in order; the row itself describes the last one."""
    artifact_prefix: str | None = None
    """Place of the problem's files, relative to the output directory or to the run's store; absent
    if nothing was written."""
    result_sha256: str | None = None
    """sha256 of the problem's result.json."""
    differs: list[str] = Field(default_factory=list)
    """How the committed result, of another writer who was first, differs from ours: sentences."""

    def reuses_result_of(self, other: "Row") -> bool:
        """Return whether this row reuses the result that the other row's attempts made."""
        is_reused = self.attempts == 0 and not self.differs
        return is_reused and self.result_sha256 == other.result_sha256

    def text(self) -> str:
        """Return the row's JSON, indented as it is in a manifest."""
        return textwrap.indent(self.model_dump_json(indent=1, exclude_none=True), "  ")

    @classmethod
    def from_result(
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
        measured_seconds = [seconds for seconds in cpu_seconds if seconds is not None]
        return cls(
            **{name: getattr(result, name) for name in ResultSummary.model_fields},
            seconds=round(result.total_s, 3),
            seconds_by_stage=result.seconds | ({} if upload_s is None else {"upload": upload_s}),
            cpu_seconds=round(sum(measured_seconds), 3) if measured_seconds else None,
            gpu_seconds=gpu_seconds,
            uploaded_bytes=uploaded_bytes,
            requested_memory_bytes=requested_memory_bytes,
            node=node,
            attempts=attempts,
            repeats=list(repeats),
            artifact_prefix=artifact_prefix,
            result_sha256=result_sha256,
            differs=list(differs),
        )
