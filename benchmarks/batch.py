"""What Ray, children and bookkeeping cost, over the bare work: kdrun submit against its goals.

    python benchmarks/batch.py [--problems N] [--simulated N] [--only overhead|throughput|simulated]

The bare work is what happens in a problem's own process, from its first stage to the last one, as
the rows say it. The overhead is all the rest: the time from one result to the next on one warm
worker, less that. Exits with 1 where a goal is missed.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from runner import __version__
from runner.batch import driver
from runner.batch.attempt import Attempt
from runner.batch.child.answer import VerdictAnswer
from runner.batch.child.task import Task
from runner.batch.cluster import connect
from runner.batch.driver import Driver
from runner.batch.plan import PlanItem
from runner.batch.run import Run, Watcher
from runner.batch.submit import prepare
from runner.cli import run_tables
from runner.config import Settings
from runner.problems import Problem
from runner.store.directory import DirectoryStore
from runner.store.manifest_row import Repeat, Row
from runner.store.result import Figures, ProblemResult, RunOptions

GOAL_S = 0.3
"""Most overhead for each problem."""
GOAL_FLAT = 1.25
"""Most that the last tenth of a large run may take, in time and memory, over the second tenth."""
WORKERS = (1, 2, 4)
SAMPLE = Path(__file__).parents[1] / "data/samples/level1/leaky_relu.py"
MIB = 1 << 20


class Stopwatch(Watcher):
    """A watcher that notes when each result came, and how large this process was then."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.bare: list[float] = []
        self.bytes: list[int] = []

    def on_retry(self, label: str, repeat: Repeat) -> None:
        raise SystemExit(f"{label}: {repeat.cause}: {repeat.said}")

    def on_problem_end(self, row: Row, done: int) -> None:
        if row.status != "passed":
            raise SystemExit(f"{row.label}: {row.status}: {row.reason}")
        self.times.append(time.monotonic())
        self.bare.append(row.seconds)
        self.bytes.append(_resident_bytes())


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@contextmanager
def copies(count: int) -> Iterator[Path]:
    """A small problem, so many times."""
    with tempfile.TemporaryDirectory(prefix="kdrun-bench-") as place:
        folder = Path(place, "data/level1")
        folder.mkdir(parents=True)
        for n in range(count):
            (folder / f"{n}_leaky_relu.py").write_text(SAMPLE.read_text())
        yield Path(place)


def run(place: Path, workers: int) -> Stopwatch:
    """Take the copies apart, for real, by so many workers."""
    settings = Settings(
        data=place / "data", output=place / f"output{workers}", workers=workers, run_id="bench"
    )
    submission = prepare(settings, print)
    watch = Stopwatch()
    with connect(settings) as cluster:
        Driver(submission.run, submission.items, cluster, watch).drive()
    return watch


def overhead(problems: int) -> bool:
    with copies(problems) as place:
        watch = run(place, 1)
    cold, warm = watch.times[0], watch.times[1:]
    each = (warm[-1] - cold) / len(warm)
    bare = sum(watch.bare[1:]) / len(warm)
    over = each - bare
    print(
        f"overhead     {over:.2f} s a problem over {bare:.2f} s of bare work: "
        f"{each / bare:.2f} times; goal {GOAL_S} s: {over / GOAL_S:.2f} of it"
    )
    return over <= GOAL_S


def throughput(problems: int) -> bool:
    alone = 0.0
    for workers in WORKERS:
        with copies(problems + workers) as place:
            watch = run(place, workers)
        warm = watch.times[workers - 1 :]
        rate = (len(warm) - 1) / (warm[-1] - warm[0])
        alone = alone or rate
        print(
            f"throughput   {workers} workers: {rate:.2f} problems/s, {rate / alone:.2f} times one"
        )
    return True


def simulated(problems: int) -> bool:
    """A run in which all is real but the work: Ray, the driver, the manifest."""
    with tempfile.TemporaryDirectory(prefix="kdrun-bench-") as place:
        store = DirectoryStore(Path(place))
        settings = Settings(output=Path(place))
        items = [
            PlanItem(Problem(SAMPLE, f"{n}_simulated", "level1", "0" * 64), None, "new")
            for n in range(problems)
        ]
        watch = Stopwatch()
        with connect(settings) as cluster, _pretending():
            about = Run("bench", store, RunOptions(), "", settings)
            manifest = Driver(about, items, cluster, watch).drive()
            run_tables.print_run(manifest, store.root, Console(file=StringIO()))
        watch.bytes.append(_resident_bytes())
    tenth = problems // 10
    times, sizes = watch.times, watch.bytes
    before = sizes[2 * tenth - 1]
    early = (times[2 * tenth - 1] - times[tenth - 1]) / tenth
    late = (times[-1] - times[-tenth - 1]) / tenth
    print(
        f"simulated    {problems} problems: {(times[-1] - times[0]) / problems * 1000:.1f} ms each"
    )
    print(
        f"             second tenth {early * 1000:.1f} ms each, {before / MIB:.0f} MiB; "
        f"last {late * 1000:.1f} ms, {sizes[-1] / MIB:.0f} MiB with its table: "
        f"{late / early:.2f} times the time, {sizes[-1] / before:.2f} the memory"
    )
    return late <= GOAL_FLAT * early and sizes[-1] <= GOAL_FLAT * before


@contextmanager
def _pretending() -> Iterator[None]:
    import ray

    remote, real = ray.remote(pretend), driver._remote_function
    driver._remote_function = lambda: remote  # type: ignore[assignment]
    try:
        yield
    finally:
        driver._remote_function = real


def pretend(note: str, task_json: str, log: str) -> str:
    """An attempt that passed, as large as a usual one."""
    task = Task.model_validate_json(task_json)
    now = datetime.now(UTC)
    figures = Figures(
        components=14,
        by_level={"layer": 1, "fusion": 4, "kernel": 9},
        unique_kernels=9,
        kernel_instances=12,
        capture="fake",
        estimated_peak_bytes=1 << 20,
    )
    seconds = {"load": 0.01, "capture": 0.1, "decompose": 0.2, "verify": 0.5}
    result = ProblemResult(
        problem=task.label.rpartition("/")[2],
        source_level="level1",
        status="passed",
        figures=figures,
        bitwise_equal=True,
        max_diff=0.0,
        seconds=seconds,
        cpu_seconds=0.8,
        peak_memory_bytes=1 << 28,
        started=now,
        source_sha256="0" * 64,
        kdrun_version=__version__,
        torch_version="2",
        options=task.options,
        files={f"level_0_kernel/kernel_{n}.py": "0" * 64 for n in range(60)},
    )
    done = Attempt(
        answer=VerdictAnswer(status="passed", figures=figures),
        started=now,
        node="here",
        result=result,
        result_sha256=result.sha256,
        artifact_prefix=task.label,
    )
    return done.model_dump_json()


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--problems", type=int, default=20)
    asked.add_argument("--simulated", type=int, default=10_000)
    asked.add_argument("--only", choices=["overhead", "throughput", "simulated"])
    told = asked.parse_args()
    parts: dict[str, Callable[[], Any]] = {
        "overhead": lambda: overhead(told.problems),
        "throughput": lambda: throughput(told.problems),
        "simulated": lambda: simulated(told.simulated),
    }
    well = [part() for name, part in parts.items() if told.only in (None, name)]
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
