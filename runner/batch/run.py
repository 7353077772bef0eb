"""This file knows about a run: what it is about, and who is told how it goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from runner.batch.child.task import Task, TaskTarget
from runner.batch.plan import Item
from runner.config import Settings
from runner.store.directory import DirectoryStore
from runner.store.manifest import Job
from runner.store.manifest_row import Repeat, Row
from runner.store.result import RunOptions
from runner.store.runs import RunStore


class Watcher(Protocol):
    """Who is told how a run goes."""

    def said(self, text: str) -> None:
        """Something about the run as a whole."""

    def running(self, what: Sequence[tuple[str, str]]) -> None:
        """Label and stage of every problem that is being worked on."""

    def repeated(self, label: str, repeat: Repeat) -> None:
        """An attempt has ended, and another will follow."""

    def ended(self, row: Row, done: int) -> None:
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
    shared: RunStore | None = None
    """Where results go from the output directory."""
    elsewhere: bool = False
    """Machines that we know nothing about do the work: problems travel with their tasks."""
    aside: Path | None = None
    """Where they build what then goes to the store; None: in the output directory."""
    job: Job | None = None
    """This driver, where it was sent to a cluster."""

    @property
    def work(self) -> DirectoryStore:
        """Where problems are worked on."""
        return self.store if self.aside is None else DirectoryStore(self.aside)

    def task(self, item: Item, memory_bytes: int, most_bytes: int, threads: int) -> Task:
        """The problem as a worker is told it."""
        directory = self.work.directory(item.label)
        return Task(
            problem=item.problem.path,
            source=_bytes(item.problem.path) if self.elsewhere else None,
            label=item.label,
            directory=directory.absolute(),
            scratch=(directory.parent / f".{directory.name}.{self.run_id}").absolute(),
            options=self.options,
            memory_bytes=memory_bytes,
            most_memory_bytes=most_bytes,
            threads=threads,
            timeout_s=self.settings.timeout,
            target=self._target(item),
        )

    def _target(self, item: Item) -> TaskTarget | None:
        if self.shared is None:
            return None
        version = item.stored.version if item.stored else None
        return TaskTarget(
            address=self.shared.address,
            run_id=self.run_id,
            supersedes=version,
            moved=self.aside is not None,
        )


def _bytes(file: Path) -> bytes | None:
    """What is in it; None where it cannot be read, which the worker then says."""
    try:
        return file.read_bytes()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Watchers:
    """Several, of whom each is told everything."""

    all: Sequence[Watcher]

    def said(self, text: str) -> None:
        for each in self.all:
            each.said(text)

    def running(self, what: Sequence[tuple[str, str]]) -> None:
        for each in self.all:
            each.running(what)

    def repeated(self, label: str, repeat: Repeat) -> None:
        for each in self.all:
            each.repeated(label, repeat)

    def ended(self, row: Row, done: int) -> None:
        for each in self.all:
            each.ended(row, done)
