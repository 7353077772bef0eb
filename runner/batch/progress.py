"""This file knows about telling people how a run goes: a bar on a terminal, else plain lines."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from runner.batch.machine import GIB
from runner.batch.run import Watcher
from runner.store.manifest_row import Repeat, Row

COLOURS = {
    "passed": "green",
    "failed": "red",
    "error": "red",
    "crashed": "red",
    "too_large": "yellow",
    "timeout": "yellow",
    "cancelled": "yellow",
}


@contextmanager
def watch(total: int) -> Iterator[Watcher]:
    """Somebody who tells it on stderr."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield Lines(total)
        return
    bar = Bar(total, console)
    with bar.live:
        yield bar


class Lines:
    """A line for each problem that ends."""

    def __init__(self, total: int) -> None:
        self.total = total

    def said(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def running(self, what: Sequence[tuple[str, str]]) -> None:
        """Nothing: a line says what has ended."""

    def repeated(self, label: str, repeat: Repeat) -> None:
        self.said(again(label, repeat))

    def ended(self, row: Row, done: int) -> None:
        if row.attempts:
            print(line(row, done, self.total), file=sys.stderr, flush=True)


class Bar:
    """How far the run is and, below, what is being worked on; ended problems scroll above."""

    def __init__(self, total: int, console: Console) -> None:
        self.total = total
        self.since: dict[str, float] = {}
        self.progress = Progress(
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[bad]}")
        )
        self.task = self.progress.add_task("", total=total, bad="")
        self.live = Live(self.progress, console=console, refresh_per_second=4, transient=True)
        self.bad = 0

    def said(self, text: str) -> None:
        self.live.console.print(Text(text), soft_wrap=True)

    def repeated(self, label: str, repeat: Repeat) -> None:
        self.said(again(label, repeat))

    def running(self, what: Sequence[tuple[str, str]]) -> None:
        now = time.monotonic()
        self.since = {label: self.since.get(label, now) for label, _ in what}
        lines = [
            Text(f"  {label}  {stage}  {now - self.since[label]:.0f} s", style="dim")
            for label, stage in what
        ]
        self.live.update(Group(self.progress, *lines))

    def ended(self, row: Row, done: int) -> None:
        self.bad += row.status != "passed"
        bad = f"[red]{self.bad} not passed[/red]" if self.bad else ""
        self.progress.update(self.task, completed=done, bad=bad)
        if row.attempts:
            text = Text(line(row, done, self.total))
            text.highlight_words([f" {row.status} "], COLOURS[row.status])
            self.live.console.print(text, soft_wrap=True)


def line(row: Row, done: int, total: int) -> str:
    """`[ 3/36] passed     level1/relu  2.1 s  0.8 GiB`, and the reason where it did not."""
    width = len(str(total))
    head = f"[{done:>{width}}/{total}] {row.status:<9}  {row.label}"
    if row.reason is not None:
        return f"{head}: {row.reason}"
    memory = f"  {row.peak_memory_bytes / GIB:.1f} GiB" if row.peak_memory_bytes else ""
    return f"{head}  {row.seconds:.1f} s{memory}"


def again(label: str, repeat: Repeat) -> str:
    """Why a problem is tried again."""
    return f"again      {label}: {repeat.cause}: {repeat.said}"
