"""This file knows about one problem on its way: what it is given, and how often it is tried again.

A verdict, a time-out and the end of the problem's own process are answers. Everything else is a
cause, and each cause has a limit of its own.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from runner.batch.attempt import Attempt
from runner.batch.child.task import Task
from runner.batch.memory_request import Needs
from runner.batch.plan import Item
from runner.config import Retries
from runner.store.manifest_row import Cause, Repeat


@dataclass(slots=True)
class Job:
    """One problem, from the first attempt to the last."""

    item: Item
    needs: Needs
    sized: bool = False
    """Whether the captured graph has said what it needs; until then that is a guess."""
    task: Task | None = None
    """The attempt that is being made."""
    note: str = ""
    """Under which it is noted, where it has begun."""
    node: str | None = None
    """Where the attempt was made that was lost."""
    repeats: list[Repeat] = field(default_factory=list)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the attempt was sent; later, when its child was started, where that is known."""
    sent: float = 0.0
    held_s: float = 0.0
    """How long all attempts together held what Ray gave them."""

    @property
    def attempts(self) -> int:
        return len(self.repeats) + 1

    def send(self, task: Task) -> None:
        self.task = task
        self.started = datetime.now(UTC)
        self.sent = time.monotonic()

    def ended(self, attempt: Attempt | None) -> None:
        """Note what an attempt took; None where it never answered."""
        took_s = time.monotonic() - self.sent
        if attempt is not None:  # it may have waited for its place
            took_s = min(took_s, (datetime.now(UTC) - attempt.started).total_seconds())
            self.started = attempt.started
        self.held_s += took_s

    def times(self, cause: Cause) -> int:
        """How often it was tried again for that."""
        return sum(repeat.cause == cause for repeat in self.repeats)

    def may_repeat(self, cause: Cause, retries: Retries) -> bool:
        """Whether the limit of that cause lets it be tried again."""
        limit: int = getattr(retries, cause.replace(" ", "_"))
        return self.times(cause) < limit

    def repeat(self, cause: Cause, said: str, attempt: Attempt | None) -> Repeat:
        """Note that the attempt was not the last, and what the next one is given."""
        self.repeats.append(
            Repeat(
                cause=cause,
                said=said,
                requested_memory_bytes=self.needs.granted_bytes,
                started=self.started,
                seconds=round((datetime.now(UTC) - self.started).total_seconds(), 3),
                node=attempt.node if attempt else self.node,
                cpu_seconds=attempt.cpu_seconds if attempt else None,
            )
        )
        if cause == "out of memory":
            self.needs = self.needs.more()
        return self.repeats[-1]

    def why_no_more(self, cause: Cause) -> str:
        """`its worker was lost 3 times`, for who reads the reason."""
        times = self.times(cause) + 1
        often = {1: "once", 2: "twice"}.get(times, f"{times} times")
        return f"{_SAID[cause]} {often}"


_SAID: dict[Cause, str] = {
    "preempted": "its node was preempted",
    "node lost": "its node was lost",
    "worker lost": "its worker was lost",
    "out of memory": "it ran out of memory",
    "disk full": "the disk was full",
}
