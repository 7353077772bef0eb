"""This file knows about one problem on its way: what it is given, and how often it is tried again.

A verdict, a time-out and the end of the problem's own process are answers. Everything else is a
cause, and each cause has a limit of its own.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from runner.batch.attempt import Attempt
from runner.batch.child.task import Task
from runner.batch.memory_request import MemoryRequest
from runner.batch.plan import PlanItem
from runner.config import Retries
from runner.store.manifest_row import Cause, Repeat


@dataclass(slots=True)
class ProblemJob:
    """One problem, from the first attempt to the last."""

    item: PlanItem
    memory: MemoryRequest
    is_sized: bool = False
    """Whether the captured graph has said what it needs; until then that is a guess."""
    task: Task | None = None
    """The attempt that is being made."""
    start_key: str = ""
    """Under which it is noted, where it has begun."""
    lost_node: str | None = None
    """Where the attempt was made that was lost."""
    repeats: list[Repeat] = field(default_factory=list)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the attempt was sent; later, when its child was started, where that is known."""
    sent_s: float = 0.0
    held_s: float = 0.0
    """How long all attempts together held what Ray gave them."""

    @property
    def attempts(self) -> int:
        return len(self.repeats) + 1

    def start_attempt(self, task: Task) -> None:
        self.task = task
        self.started = datetime.now(UTC)
        self.sent_s = time.monotonic()

    def end_attempt(self, attempt: Attempt | None) -> None:
        """Note what an attempt took; None where it never answered."""
        took_s = time.monotonic() - self.sent_s
        if attempt is not None:  # it may have waited for its place
            took_s = min(took_s, (datetime.now(UTC) - attempt.started).total_seconds())
            self.started = attempt.started
        self.held_s += took_s

    def count_repeats(self, cause: Cause) -> int:
        """How often it was tried again for that."""
        return sum(repeat.cause == cause for repeat in self.repeats)

    def may_repeat(self, cause: Cause, retries: Retries) -> bool:
        """Whether the limit of that cause lets it be tried again."""
        limit: int = getattr(retries, cause.replace(" ", "_"))
        return self.count_repeats(cause) < limit

    def add_repeat(self, cause: Cause, message: str, attempt: Attempt | None) -> Repeat:
        """Note that the attempt was not the last, and what the next one is given."""
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
        if cause == "out of memory":
            self.memory = self.memory.with_double_memory()
        return self.repeats[-1]

    def explain_limit(self, cause: Cause) -> str:
        """`its worker was lost 3 times`, for who reads the reason."""
        count = self.count_repeats(cause) + 1
        frequency = {1: "once", 2: "twice"}.get(count, f"{count} times")
        return f"{_CAUSE_PHRASES[cause]} {frequency}"


_CAUSE_PHRASES: dict[Cause, str] = {
    "preempted": "its node was preempted",
    "node lost": "its node was lost",
    "worker lost": "its worker was lost",
    "out of memory": "it ran out of memory",
    "disk full": "the disk was full",
}
