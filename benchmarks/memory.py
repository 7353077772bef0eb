"""How well memory was estimated: the ratio of estimate to peak over a directory of results.

    python benchmarks/memory.py output
    python benchmarks/memory.py output --level 3 --all
    python benchmarks/memory.py output --again

Reads the `result.json` of what passed. `kdrun submit` writes the estimate into it; --again makes it
anew from the problem's own file, for results that have none, or one by an older kdrun.
"""

import argparse
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from runner.batch.machine import GIB, resident_bytes
from runner.errors import KdrunError
from runner.problems import read_problem
from runner.store.result import RESULT_FILE, ProblemResult

NEAR = 0.25
GOAL_SHARE = 0.9
LOWEST = 0.9
"""What is not near must not be below this."""


@dataclass(frozen=True, slots=True)
class Row:
    """One problem that passed."""

    label: str
    estimated_bytes: int
    peak_bytes: int

    @property
    def ratio(self) -> float:
        return self.estimated_bytes / self.peak_bytes

    @property
    def near(self) -> bool:
        return abs(self.ratio - 1) <= NEAR

    def __str__(self) -> str:
        figures = f"{self.estimated_bytes / GIB:6.2f} GiB, {self.peak_bytes / GIB:6.2f} GiB"
        return f"{self.label:<64.64} {figures}, × {self.ratio:4.2f}"


def main() -> int:
    options = arguments()
    process_bytes = preloaded_bytes() if options.again else 0
    rows, without = [], 0
    for result in results(options.output, options.level):
        estimated = result.estimated_memory_bytes
        if options.again:
            estimated = again(result, options.output, process_bytes)
        if estimated is None or not result.peak_memory_bytes:
            without += 1
            continue
        rows.append(Row(result.label, estimated, result.peak_memory_bytes))
    if without:
        print(f"{without} without an estimate; --again makes it", file=sys.stderr)
    if not rows:
        print(f"{options.output}: no results with an estimate", file=sys.stderr)
        return 2
    rows.sort(key=lambda row: row.ratio)
    for row in rows if options.all else [row for row in rows if not row.near]:
        print(row)
    return 0 if summary(rows) else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Estimated memory over measured peaks.",
        epilog="Exits with 1 where the goal is missed.",
    )
    parser.add_argument("output", type=Path, help="directory that holds LEVEL/PROBLEM/result.json")
    parser.add_argument("--level", type=int, action="append", default=[])
    parser.add_argument("--all", action="store_true", help="print every problem")
    parser.add_argument("--again", action="store_true", help="estimate anew, from original.py")
    return parser.parse_args()


def results(output: Path, levels: list[int]) -> Iterator[ProblemResult]:
    """What passed, in order."""
    wanted = {f"level{level}" for level in levels}
    for path in sorted(output.glob(f"*/*/{RESULT_FILE}")):
        result = ProblemResult.from_directory(path.parent)
        if result.status == "passed" and (not wanted or result.source_level in wanted):
            yield result


def again(result: ProblemResult, output: Path, process_bytes: int) -> int | None:
    """Today's estimate, for a process that begins with so much."""
    from runner.batch.child.problem_work import forecast_memory
    from runner.graph.normalize import normalize
    from runner.graph.peak_memory import estimate_graph
    from runner.graph.tracing.capture import capture

    try:
        problem = read_problem(output / result.label / "original.py")
        problem = replace(problem, source_level=result.source_level)  # the file has moved
        graph = normalize(capture(problem, result.options.mode))
        made = forecast_memory(problem, estimate_graph(graph))
    except KdrunError as error:
        print(f"{result.label}: {error}", file=sys.stderr)
        return None
    # what others left behind here is not this one's
    return made.model_copy(update={"process_bytes": process_bytes}).expected_bytes


def preloaded_bytes() -> int:
    """What a child begins with."""
    from runner.batch.child.child_process import PRELOADED

    for module in PRELOADED:
        importlib.import_module(module)
    return resident_bytes()


def summary(rows: list[Row]) -> bool:
    """Print the figures; whether the goal is met."""
    ratios = [row.ratio for row in rows]
    near = sum(row.near for row in rows) / len(rows)
    low = [row.ratio for row in rows if not row.near and row.ratio < LOWEST]
    tenth = len(ratios) // 10
    print(
        f"{len(rows)} problems: median × {median(ratios):.2f}, 10th percentile × "
        f"{ratios[tenth]:.2f}, 90th × {ratios[-1 - tenth]:.2f}, lowest × {ratios[0]:.2f}, "
        f"highest × {ratios[-1]:.2f}"
    )
    print(f"within {NEAR:.0%}: {near:.1%} (goal {GOAL_SHARE:.0%}); too low beside them: {len(low)}")
    return near >= GOAL_SHARE and not low


if __name__ == "__main__":
    sys.exit(main())
