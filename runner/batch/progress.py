"""Shows a run's progress on stderr: a bar on a terminal, else plain lines."""

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
    "written": "cyan",
    "failed": "red",
    "error": "red",
    "crashed": "red",
    "too_large": "yellow",
    "timeout": "yellow",
    "cancelled": "yellow",
}


@contextmanager
def watch_run(total: int) -> Iterator[Watcher]:
    """Yield a watcher that shows a run of `total` problems on stderr."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield ProgressLines(total)
        return
    bar = ProgressBar(total, console)
    with bar.live:
        yield bar


class ProgressLines(Watcher):
    """A watcher that prints a line for each problem that ends."""

    def __init__(self, total: int) -> None:
        self.total = total

    def on_message(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def on_retry(self, label: str, repeat: Repeat) -> None:
        self.on_message(format_retry(label, repeat))

    def on_problem_end(self, row: Row, ended_count: int) -> None:
        if row.attempts:
            print(format_line(row, ended_count, self.total), file=sys.stderr, flush=True)


class ProgressBar(Watcher):
    """A watcher that shows a progress bar and, below it, the running problems."""

    def __init__(self, total: int, console: Console) -> None:
        self.total = total
        self.started_s: dict[str, float] = {}
        self.progress = Progress(
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[bad]}")
        )
        self.task = self.progress.add_task("", total=total, bad="")
        self.live = Live(self.progress, console=console, refresh_per_second=4, transient=True)
        self.failed_count = 0

    def on_message(self, text: str) -> None:
        self.live.console.print(Text(text), soft_wrap=True)

    def on_retry(self, label: str, repeat: Repeat) -> None:
        self.on_message(format_retry(label, repeat))

    def on_stages(self, stages: Sequence[tuple[str, str]]) -> None:
        now = time.monotonic()
        self.started_s = {label: self.started_s.get(label, now) for label, _ in stages}
        lines = [
            Text(f"  {label}  {stage}  {now - self.started_s[label]:.0f} s", style="dim")
            for label, stage in stages
        ]
        self.live.update(Group(self.progress, *lines))

    def on_problem_end(self, row: Row, ended_count: int) -> None:
        self.failed_count += row.status != "passed"
        failed_text = f"[red]{self.failed_count} not passed[/red]" if self.failed_count else ""
        self.progress.update(self.task, completed=ended_count, bad=failed_text)
        if row.attempts:
            text = Text(format_line(row, ended_count, self.total))
            text.highlight_words([f" {row.status} "], COLOURS[row.status])
            self.live.console.print(text, soft_wrap=True)


def format_line(row: Row, ended_count: int, total: int) -> str:
    """Return `[ 3/36] passed     level1/relu  2.1 s  0.8 GiB`, or the reason if it did not pass."""
    width = len(str(total))
    head = f"[{ended_count:>{width}}/{total}] {row.status:<9}  {row.label}"
    if row.reason is not None:
        return f"{head}: {row.reason}"
    memory = f"  {row.peak_memory_bytes / GIB:.1f} GiB" if row.peak_memory_bytes else ""
    return f"{head}  {row.seconds:.1f} s{memory}"


def format_retry(label: str, repeat: Repeat) -> str:
    """Return a line that says why a problem is retried."""
    return f"again      {label}: {repeat.cause}: {repeat.said}"
