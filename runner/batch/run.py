"""Defines a run, and the interface of the watchers that follow it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.batch.child.task import Task, TaskTarget
from runner.batch.plan import PlanItem
from runner.config import Settings
from runner.store.directory import DirectoryStore
from runner.store.manifest_row import Repeat, Row
from runner.store.result import RunOptions
from runner.store.runs import RunStore


class Watcher:
    """An object that is notified of a run's progress; by default it ignores every event."""

    def on_message(self, text: str) -> None:
        """Receive a message about the whole run."""

    def on_stages(self, stages: Sequence[tuple[str, str]]) -> None:
        """Receive label and stage of every running problem."""

    def on_retry(self, label: str, repeat: Repeat) -> None:
        """Receive an attempt that ended and that another one follows."""

    def on_problem_end(self, row: Row, ended_count: int) -> None:
        """Receive the row of a problem that ended, and the number of ended problems."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its options, its settings and where its results go."""

    run_id: str
    store: DirectoryStore
    options: RunOptions
    data: str
    settings: Settings
    shared_store: RunStore | None = None
    """Store to which results are uploaded; None if they stay in the output directory."""
    work_directory: Path | None = None
    """Directory in which workers build what they upload; None for the output directory."""

    @property
    def work_store(self) -> DirectoryStore:
        """Directory store in which workers build decompositions."""
        return self.store if self.work_directory is None else DirectoryStore(self.work_directory)

    def build_task(self, item: PlanItem, memory_bytes: int, max_bytes: int, threads: int) -> Task:
        """Return the task that a worker gets for a problem."""
        directory = self.work_store.directory(item.label)
        return Task(
            problem=item.problem.path,
            # Workers elsewhere may not see our files.
            source=_read_bytes(item.problem.path) if self.settings.address is not None else None,
            label=item.label,
            directory=directory.absolute(),
            scratch=(directory.parent / f".{directory.name}.{self.run_id}").absolute(),
            options=self.options,
            memory_bytes=memory_bytes,
            most_memory_bytes=max_bytes,
            threads=threads,
            timeout_s=self.settings.timeout,
            target=self._build_target(item),
        )

    def _build_target(self, item: PlanItem) -> TaskTarget | None:
        if self.shared_store is None:
            return None
        version = item.stored_result.version if item.stored_result else None
        return TaskTarget(
            address=self.shared_store.address,
            run_id=self.run_id,
            supersedes=version,
            moved=self.work_directory is not None,
        )


def _read_bytes(file: Path) -> bytes | None:
    """Return a file's content; None if it cannot be read, which the worker then reports."""
    try:
        return file.read_bytes()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class WatcherGroup(Watcher):
    """A watcher that passes everything on to several others."""

    watchers: Sequence[Watcher]

    def on_message(self, text: str) -> None:
        for watcher in self.watchers:
            watcher.on_message(text)

    def on_stages(self, stages: Sequence[tuple[str, str]]) -> None:
        for watcher in self.watchers:
            watcher.on_stages(stages)

    def on_retry(self, label: str, repeat: Repeat) -> None:
        for watcher in self.watchers:
            watcher.on_retry(label, repeat)

    def on_problem_end(self, row: Row, ended_count: int) -> None:
        for watcher in self.watchers:
            watcher.on_problem_end(row, ended_count)
