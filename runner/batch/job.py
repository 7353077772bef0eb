"""Tracks one problem of a run over its attempts: the memory it gets and how often it is retried.

A verdict, a time-out and the end of the problem's own process are final answers. Every other end of
an attempt has a cause that allows a retry, and each cause has its own limit.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from runner.batch.attempt import Attempt
from runner.batch.child.answer import FailureAnswer
from runner.batch.child.task import Task
from runner.batch.memory_request import MemoryRequest
from runner.batch.plan import PlanItem
from runner.config import Retries
from runner.store.manifest_row import Cause, Repeat


@dataclass(slots=True)
class ProblemJob:
    """One problem of a run, from its first attempt to its last."""

    item: PlanItem
    memory: MemoryRequest
    is_sized: bool = False
    """Whether `memory` was computed from the captured graph; until then it is a guess."""
    task: Task | None = None
    """Task of the current attempt; None before the first one is sent."""
    start_key: str = ""
    """Key under which the worker records in Ray's key-value store that the attempt has started."""
    lost_node: str | None = None
    """Host of an attempt that was lost; None if it had not started."""
    repeats: list[Repeat] = field(default_factory=list)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    """Time when the attempt was sent; after its answer, the time when its child started."""
    sent_s: float = 0.0
    held_s: float = 0.0
    """Seconds for which all attempts together held the resources that Ray granted them."""

    @property
    def attempts(self) -> int:
        return len(self.repeats) + 1

    def start_attempt(self, task: Task) -> None:
        self.task = task
        self.started = datetime.now(UTC)
        self.sent_s = time.monotonic()

    def end_attempt(self, attempt: Attempt | None) -> None:
        """Add the attempt's duration to `held_s`; `attempt` is None if it never answered."""
        took_s = time.monotonic() - self.sent_s
        if attempt is not None:  # The time that it waited at Ray for resources does not count.
            took_s = min(took_s, (datetime.now(UTC) - attempt.started).total_seconds())
            self.started = attempt.started
        self.held_s += took_s

    def count_repeats(self, cause: Cause) -> int:
        """Return how often the problem was retried for a cause."""
        return sum(repeat.cause == cause for repeat in self.repeats)

    def may_repeat(self, cause: Cause, retries: Retries) -> bool:
        """Whether the limit for a cause allows another retry."""
        limit: int = getattr(retries, cause.setting)
        return self.count_repeats(cause) < limit

    def add_repeat(self, cause: Cause, message: str, attempt: Attempt | None) -> Repeat:
        """Record that another attempt follows, with more memory if this one ran out of it."""
        self.repeats.append(
            Repeat(
                cause=cause,
                said=message,
                requested_memory_bytes=self.memory.granted_bytes,
                started=self.started,
                seconds=round((datetime.now(UTC) - self.started).total_seconds(), 3),
                node=attempt.node if attempt else self.lost_node,
                cpu_seconds=attempt.cpu_seconds if attempt else None,
            )
        )
        if cause is Cause.OUT_OF_MEMORY:
            answer = attempt.answer if attempt else None
            needed_bytes = answer.needed_bytes if isinstance(answer, FailureAnswer) else 0
            self.memory = self.memory.with_more_memory(needed_bytes)
        return self.repeats[-1]

    def explain_limit(self, cause: Cause) -> str:
        """Return the reason why the problem is not retried: `its worker was lost 3 times`."""
        count = self.count_repeats(cause) + 1
        frequency = {1: "once", 2: "twice"}.get(count, f"{count} times")
        return f"{_CAUSE_PHRASES[cause]} {frequency}"


_CAUSE_PHRASES: dict[Cause, str] = {
    Cause.PREEMPTED: "its node was preempted",
    Cause.NODE_LOST: "its node was lost",
    Cause.WORKER_LOST: "its worker was lost",
    Cause.OUT_OF_MEMORY: "it ran out of memory",
    Cause.DISK_FULL: "the disk was full",
}
