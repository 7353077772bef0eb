"""How long the engine takes for a directory of problems, in one process, on one core.

    python benchmarks/engine.py [DATA] [--level N]... [--until capture|recognize|decompose]

Everything but verification: capture, recognition, partition and emission. The goal is 60 s for
KernelBench's 250 problems together.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.graph.ir import Graph
    from runner.problems import Problem

GOAL_S = 60.0
for threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read by torch as it is imported
    os.environ[threads] = "1"


@dataclass(frozen=True, slots=True)
class Row:
    """One problem: the wall clock's seconds and the processor's, and the error if there was one."""

    level: str
    name: str
    wall_s: float
    cpu_s: float
    error: str = ""


def main() -> int:
    options = arguments()
    core = on_one_core()
    from runner.errors import KdrunError
    from runner.problems import data_root, select_problems

    try:
        root = data_root(options.data)
        problems = select_problems(root, options.level)
    except KdrunError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    stage = STAGES[options.until]
    print(f"{len(problems)} problems of {root}, until {options.until}, {core}")
    with tempfile.TemporaryDirectory() as room:
        rows = []
        for number, problem in enumerate(problems):
            rows.append(timed(stage, problem, Path(room, str(number))))
            if sys.stderr.isatty():
                print(f"\r\x1b[K{number + 1} {problem.name}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    print_table(rows, options.slowest)
    return 1 if any(row.error for row in rows) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Seconds of the engine, level by level, against its goal.",
        epilog="Exits with 1 where a problem could not be taken apart.",
    )
    parser.add_argument("data", nargs="?", type=Path, help="default: as for kdrun submit")
    parser.add_argument("--level", type=int, action="append", default=[])
    parser.add_argument(
        "--until",
        choices=list(STAGES),
        default="decompose",
        help="the last stage to run; decompose writes the files too, into a temporary directory",
    )
    parser.add_argument("--slowest", type=int, default=5, metavar="N", help="list so many")
    return parser.parse_args()


def on_one_core() -> str:
    """Keep to a single core, and say which; where the system cannot, to a single thread."""
    if not hasattr(os, "sched_setaffinity"):
        return "on one thread"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"on core {core} alone"


def capture_and_normalize(problem: Problem, directory: Path) -> Graph:
    from runner.graph.normalize import normalize
    from runner.graph.tracing.capture import capture

    return normalize(capture(problem))


def recognize_too(problem: Problem, directory: Path) -> object:
    from runner.graph.recognition.recognize import recognize

    return recognize(capture_and_normalize(problem, directory))


def decompose_into(problem: Problem, directory: Path) -> object:
    from runner.emit import decompose

    return decompose(problem, directory)


STAGES = {
    "capture": capture_and_normalize,
    "recognize": recognize_too,
    "decompose": decompose_into,
}


def timed(stage: Callable[[Problem, Path], object], problem: Problem, directory: Path) -> Row:
    wall, cpu, error = time.perf_counter(), time.process_time(), ""
    try:
        stage(problem, directory)
    except Exception as raised:  # a problem that fails is a row like any other, and is shown
        error = " ".join(f"{type(raised).__name__}: {raised}".split())[:200]
    return Row(
        problem.source_level,
        problem.name,
        time.perf_counter() - wall,
        time.process_time() - cpu,
        error,
    )


def print_table(rows: list[Row], slowest: int) -> None:
    print(f"\n{'level':<8} {'problems':>8} {'seconds':>8} {'cpu':>8} {'slowest':>8}")
    for level in dict.fromkeys(row.level for row in rows):
        print_line(level, [row for row in rows if row.level == level])
    print_line("all", rows)
    total = sum(row.wall_s for row in rows)
    print(f"\n{total:.1f} s of the {GOAL_S:.0f} s for all of KernelBench: {total / GOAL_S:.2f}")
    if slowest:
        print("\nslowest")
        for row in sorted(rows, key=lambda row: -row.wall_s)[:slowest]:
            print(f"  {row.wall_s:7.2f} s  {row.level}/{row.name}")
    if failed := [row for row in rows if row.error]:
        print(f"\n{len(failed)} could not be taken apart")
        for row in failed:
            print(f"  {row.level}/{row.name}: {row.error}")


def print_line(level: str, rows: list[Row]) -> None:
    wall, cpu = sum(row.wall_s for row in rows), sum(row.cpu_s for row in rows)
    longest = max(row.wall_s for row in rows)
    print(f"{level:<8} {len(rows):>8} {wall:>8.1f} {cpu:>8.1f} {longest:>8.2f}")


if __name__ == "__main__":
    sys.exit(main())
