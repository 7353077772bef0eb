"""This file knows about a run: what it is about, and who is told how it goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from runner.batch.child.task import Task, TaskTarget
from runner.batch.plan import PlanItem
from runner.config import Settings
from runner.store.directory import DirectoryStore
from runner.store.manifest import Job
from runner.store.manifest_row import Repeat, Row
from runner.store.result import RunOptions
from runner.store.runs import RunStore


class Watcher(Protocol):
    """Who is told how a run goes."""

    def on_message(self, text: str) -> None:
        """Something about the run as a whole."""

    def on_stages(self, stages: Sequence[tuple[str, str]]) -> None:
        """Label and stage of every problem that is being worked on."""

    def on_retry(self, label: str, repeat: Repeat) -> None:
        """An attempt has ended, and another will follow."""

    def on_problem_end(self, row: Row, ended_count: int) -> None:
        """One more problem has ended; `done` have in all."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is about."""

    run_id: str
    store: DirectoryStore
    options: RunOptions
    data: str
    arguments: dict[str, Any]
    """What it was asked for, as the manifest says it."""
    settings: Settings
    shared_store: RunStore | None = None
    """Where results go from the output directory."""
    is_remote: bool = False
    """Machines that we know nothing about do the work: problems travel with their tasks."""
    work_directory: Path | None = None
    """Where they build what then goes to the store; None: in the output directory."""
    cluster_job: Job | None = None
    """This driver, where it was sent to a cluster."""

    @property
    def work_store(self) -> DirectoryStore:
        """Where problems are worked on."""
        return self.store if self.work_directory is None else DirectoryStore(self.work_directory)

    def build_task(self, item: PlanItem, memory_bytes: int, max_bytes: int, threads: int) -> Task:
        """The problem as a worker is told it."""
        directory = self.work_store.directory(item.label)
        return Task(
            problem=item.problem.path,
            source=_read_bytes(item.problem.path) if self.is_remote else None,
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
    """What is in it; None where it cannot be read, which the worker then says."""
    try:
        return file.read_bytes()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class WatcherGroup:
    """Several, of whom each is told everything."""

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
