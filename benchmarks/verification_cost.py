"""What everything that kdrun does to a problem costs, over what its plain program costs.

    python benchmarks/verification_cost.py [DATA] [--level N]... [--problem GLOB]... [--trials N]
    python benchmarks/verification_cost.py [DATA] --results output
    python benchmarks/verification_cost.py [DATA] --as-others

The plain program is: build the model, get_inputs(), one eager forward. kdrun captures, decomposes,
writes and verifies. Both run in children of the same kind, with the same threads; with --results,
what kdrun took is read from the results of a run, problems that passed alone. The goals, with one
trial: at most 3 times the time in all, 1.3 times the memory (median). With --as-others, what is
measured is `kdrun verify` of what kdrun wrote, as if others had: twice that time. At the end: what
each stage and gate took, and where composition and original differ in a bit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.batch.child.task import Task
    from runner.problems import Problem

GOAL_TIME, GOAL_MEMORY = 3.0, 1.3
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Cost:
    """What one child took."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    stages: dict[str, float] = field(default_factory=dict)
    """Wall seconds by stage, and by gate of verification."""
    error: str = ""
    other_bits: str | None = None
    """Where composition and original differ in a bit: by how much, and which parts do."""


@dataclass(frozen=True, slots=True)
class Row:
    """One problem, both ways."""

    level: str
    name: str
    plain: Cost
    kdrun: Cost

    @property
    def wall(self) -> float:
        return self.kdrun.wall_s / self.plain.wall_s

    @property
    def cpu(self) -> float:
        return self.kdrun.cpu_s / self.plain.cpu_s

    @property
    def memory(self) -> float:
        return self.kdrun.peak_bytes / self.plain.peak_bytes


def main() -> int:
    options = arguments()
    here = Path(__file__).resolve().parent  # children find this file's functions by its name
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(here), str(here.parent), os.environ.get("PYTHONPATH", "")])
    )
    from runner.errors import KdrunError
    from runner.problems import data_root, select_problems

    try:
        root = data_root(options.data)
        problems = select_problems(
            root, options.level, options.problem, options.start, options.count
        )
    except KdrunError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    said = f"{options.threads} threads, {options.trials} trials"
    print(f"{len(problems)} problems of {root.path}, {said}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as room:
        in_child("run_plain", problems[0], Path(room, "warm"), options)  # the first warms caches
        for number, problem in enumerate(problems):
            row = measure(problem, Path(room, str(number)), options)
            if row is None:
                continue
            rows.append(row)
            print_problem(row)
    good = [row for row in rows if not (row.plain.error or row.kdrun.error)]
    if good:
        print_table(good)
        print_shares(good)
        print_bits(good)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0 if len(good) == len(rows) else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Cost of verification over that of the plain program.",
        epilog="Exits with 1 where a problem did not pass. CPU time is less disturbed by others.",
    )
    parser.add_argument("data", nargs="?", type=Path, help="default: as for kdrun submit")
    parser.add_argument("--level", type=int, action="append", default=[])
    parser.add_argument("--problem", action="append", default=[], metavar="GLOB")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory-gib", type=float, help="for each child; default: what is free")
    parser.add_argument("--power", action="store_true", help="make each kernel wrong, too")
    parser.add_argument("--results", type=Path, metavar="DIR", help="output of a run, not run anew")
    parser.add_argument("--as-others", action="store_true", help="measure kdrun verify")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    return parser.parse_args()


def measure(problem: Problem, room: Path, options: argparse.Namespace) -> Row | None:
    """None where there is no result to compare with."""
    if options.results:
        kdrun = from_result(options.results / problem.source_level / problem.name)
        if kdrun is None:
            return None
    else:
        kdrun = in_child("run_kdrun", problem, room / "kdrun", options)
        if options.as_others and not kdrun.error:
            kdrun = in_child("run_verify", problem, room / "kdrun", options)
    plain = in_child("run_plain", problem, room / "plain", options)
    return Row(problem.source_level, problem.name, plain, kdrun)


def from_result(directory: Path) -> Cost | None:
    """What a problem that passed took in a run. Its child may have had more threads than one."""
    from runner.store.result import RESULT_FILE, ProblemResult

    if not (directory / RESULT_FILE).is_file():
        return None
    result = ProblemResult.from_directory(directory)
    if result.status != "passed" or not result.cpu_seconds or not result.peak_memory_bytes:
        return None
    verdict = json.loads((directory / "verification" / "test_results.json").read_text())
    stages = {name: took for name, took in result.seconds.items() if name != "verify"}
    return Cost(
        sum(result.seconds.values()),
        result.cpu_seconds,
        result.peak_memory_bytes,
        stages | verdict.get("seconds", {}),
        other_bits=other_bits(verdict) if result.bitwise_equal is False else None,
    )


def in_child(function: str, problem: Problem, room: Path, options: argparse.Namespace) -> Cost:
    from runner.batch.child.child_process import Request, run_child
    from runner.batch.child.task import Task
    from runner.batch.cluster import usable_bytes
    from runner.store.result import RunOptions

    scratch = room / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    memory = usable_bytes(int(options.memory_gib * GIB) if options.memory_gib else None)
    task = Task(
        problem=problem.path.absolute(),
        label=problem.name,
        directory=room / problem.name,
        scratch=scratch,
        options=RunOptions(trials=options.trials, power=options.power),
        memory_bytes=memory,
        most_memory_bytes=memory,
        threads=options.threads,
        timeout_s=3600.0,
    )
    outcome = run_child(
        Request(
            f"verification_cost:{function}",
            task.model_dump_json(),
            scratch,
            room / "log",
            memory,
            task.timeout_s,
        )
    )
    if outcome.answer is None:
        return Cost(outcome.seconds, 0.0, outcome.peak_memory_bytes, {}, outcome.describe_end())
    return Cost(peak_bytes=outcome.peak_memory_bytes, **json.loads(outcome.answer))


def run_plain(argument: str) -> str:
    """In a child: the plain program."""
    import torch

    from runner.batch.child.task import Task
    from runner.problems import load_problem, read_problem, seed

    task = Task.model_validate_json(argument)
    torch.set_num_threads(task.threads)
    wall, cpu = time.perf_counter(), cpu_seconds()
    problem = load_problem(read_problem(task.problem))
    seed(0)
    model = problem.build().eval()
    args, kwargs = problem.get_inputs()
    with torch.no_grad():
        model(*args, **kwargs)
    return json.dumps(spent(wall, cpu))


def run_kdrun(argument: str) -> str:
    """In a child: everything that kdrun does to a problem."""
    from runner.batch.child.problem_work import decompose
    from runner.batch.child.task import Task

    task = Task.model_validate_json(argument)
    task.build_directory.mkdir(parents=True)
    return cost_of(decompose, argument, task)


def run_verify(argument: str) -> str:
    """In a child: `kdrun verify` of what run_kdrun has written."""
    from runner.batch.child.problem_work import verify
    from runner.batch.child.task import Task

    task = Task.model_validate_json(argument)
    written = task.model_copy(update={"directory": task.build_directory})
    return cost_of(verify, written.model_dump_json(), task)


def cost_of(work: Callable[[str], str], argument: str, task: Task) -> str:
    """Cost of a piece of work, with what the verdict says of it."""
    from pydantic import TypeAdapter

    from runner.batch.child.answer import Answer

    wall, cpu = time.perf_counter(), cpu_seconds()
    record = TypeAdapter(Answer).validate_json(work(argument))
    cost = spent(wall, cpu)
    stages = {name: took for name, took in record.seconds.items() if name != "verify"}
    results = task.build_directory / "verification" / "test_results.json"
    verdict = json.loads(results.read_text()) if results.is_file() else {}
    stages |= verdict.get("seconds", {})
    error = "" if record.status == "passed" else f"{record.status}: {record.reason}"
    bits = other_bits(verdict) if getattr(record, "bitwise_equal", None) is False else None
    return json.dumps(cost | {"stages": stages, "error": error, "other_bits": bits})


def other_bits(verdict: dict[str, Any]) -> str:
    """By how much, and the steps that differ as well; where none does, it is the composition."""
    checks = [check for gate in verdict["gates"] for check in gate["checks"]]
    steps = [check for check in checks if check.get("bitwise_equal") is False]
    parts = ", ".join(check["component"] for check in steps if check["gate"] == "step")
    return f"{verdict['max_diff']:.3g} at most; {parts or 'no step differs'}"


def cpu_seconds() -> float:
    """CPU time of this process, and of those that it started and that have ended."""
    return sum(os.times()[:4])


def spent(wall: float, cpu: float) -> dict[str, Any]:
    return {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_seconds() - cpu}


def print_problem(row: Row) -> None:
    name = f"{row.level}/{row.name}"
    if error := row.plain.error or row.kdrun.error:
        print(f"{name:<56.56} {error}", flush=True)
        return
    print(
        f"{name:<56.56} {row.plain.cpu_s:7.2f} s, {row.plain.peak_bytes / GIB:5.2f} GiB"
        f"   × {row.cpu:5.2f} cpu, × {row.wall:5.2f} wall, × {row.memory:4.2f} memory",
        flush=True,
    )


def print_table(rows: list[Row]) -> None:
    print(f"\n{'':<8} {'of':<7} {'total':>6} {'median':>7} {'90th':>6} {'worst':>6}")
    for level in [*dict.fromkeys(row.level for row in rows), "all"]:
        chosen = [row for row in rows if level in (row.level, "all")]
        print_line(level, "wall", [(row.kdrun.wall_s, row.plain.wall_s) for row in chosen])
        print_line("", "cpu", [(row.kdrun.cpu_s, row.plain.cpu_s) for row in chosen])
        print_line("", "memory", [(row.kdrun.peak_bytes, row.plain.peak_bytes) for row in chosen])
    print(f"goals: time in total at most {GOAL_TIME:g}, memory's median at most {GOAL_MEMORY:g}")


def print_line(level: str, of: str, pairs: list[tuple[float, float]]) -> None:
    ratios = [ours / plain for ours, plain in pairs]
    ninth = quantiles(ratios, n=10)[-1] if len(ratios) > 1 else ratios[0]
    total = sum(ours for ours, _ in pairs) / sum(plain for _, plain in pairs)
    print(
        f"{level:<8} {of:<7} {total:>6.2f} {median(ratios):>7.2f} {ninth:>6.2f} {max(ratios):>6.2f}"
    )


def print_shares(rows: list[Row]) -> None:
    """Of kdrun's time, what each stage and gate took."""
    seconds: Counter[str] = Counter()
    for row in rows:
        seconds.update(row.kdrun.stages)
    total, plain = sum(row.kdrun.wall_s for row in rows), sum(row.plain.wall_s for row in rows)
    seconds["the rest"] = max(0.0, total - seconds.total())
    print(f"\n{'share of':<12} {'seconds':>8} {'%':>5} {'of plain':>9}")
    for stage, spent_s in seconds.most_common():
        print(f"{stage:<12} {spent_s:>8.1f} {spent_s / total:>5.0%} {spent_s / plain:>9.2f}")


def print_bits(rows: list[Row]) -> None:
    """How many compositions give the original's bits; the others, with what is known of why."""
    others = [row for row in rows if row.kdrun.other_bits is not None]
    equal = len(rows) - len(others)
    print(f"\nequal to the bit: {equal} of {len(rows)} ({equal / len(rows):.1%})")
    for row in others:
        print(f"{row.level}/{row.name}: {row.kdrun.other_bits}")


if __name__ == "__main__":
    sys.exit(main())
