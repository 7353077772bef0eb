"""Compares runs: what passes no longer, which trees changed, what became slower or larger.

Two runs are compared problem by problem. More than two are a trend by date, and the last two of
them are compared.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runner.report.catalogue import Catalogue, Timing
from runner.report.diff import compare_trees
from runner.report.subject import ReportProblem, Subject
from runner.store.manifest_row import Row

Side = tuple[Subject, Catalogue]

NOISE_DEVIATIONS = 3.0
"""A ratio is beyond the noise if it is more of these deviations away from the median ratio."""
FEWEST_RATIOS = 8
"""With fewer problems, the noise is not measured but taken to be USUAL_NOISE."""
USUAL_NOISE = math.log(1.25)
LEAST_NOISE = math.log(1.1)
LEAST_SECONDS = 0.5
LEAST_BYTES = 64 << 20
"""Smaller differences of time and memory are never called beyond the noise."""
MOST_CHANGES = 40
"""Most kernels that are listed for each problem."""


def comparison_data(sides: Sequence[Side]) -> dict[str, Any]:
    """Return the runs in their order, and the comparison of the last two."""
    first, second = sides[-2:]
    return {
        "runs": [_run_data(side) for side in sides],
        "problems": _compare_problems(first[0], second[0]),
        "kernels": _compare_times(first[1], second[1]),
    }


def sort_by_date(subjects: Iterable[Subject]) -> list[Subject]:
    """Return the subjects by the date of their runs, or of their last result without a run."""
    return sorted(subjects, key=_date)


def beyond_noise(pairs: Sequence[tuple[float, float] | None], least: float) -> list[bool]:
    """Return for each pair (before, after) whether it differs by more than the noise.

    The noise is the spread of all ratios around their median, so that a machine that is slower as a
    whole marks nothing. Pairs that differ by less than `least` are never beyond it.
    """
    logs = [math.log(b / a) for a, b in filter(None, pairs) if a > 0 and b > 0]
    centre, noise = 0.0, USUAL_NOISE
    if len(logs) >= FEWEST_RATIOS:
        centre = statistics.median(logs)
        deviation = 1.4826 * statistics.median(abs(log - centre) for log in logs)
        noise = max(NOISE_DEVIATIONS * deviation, LEAST_NOISE)

    def is_beyond(pair: tuple[float, float] | None) -> bool:
        if pair is None or min(pair) <= 0 or abs(pair[1] - pair[0]) < least:
            return False
        return abs(math.log(pair[1] / pair[0]) - centre) > noise

    return [is_beyond(pair) for pair in pairs]


def _date(subject: Subject) -> str:
    if subject.manifest:
        return subject.manifest.started.isoformat()
    started = [p.result.started.isoformat() for p in subject.problems if p.result]
    return max(started, default="")


def _run_data(side: Side) -> dict[str, Any]:
    subject, catalogue = side
    rows = [problem.row for problem in subject.problems]
    return {
        "title": subject.title,
        "date": _date(subject) or None,
        "versions": subject.manifest.versions if subject.manifest else {},
        "problems": len(rows),
        "passed": sum(row.status == "passed" for row in rows),
        "kernels": len(catalogue.workloads),
        "instances": catalogue.instances,
        "seconds": sum(row.seconds for row in rows),
        "memory": max((row.peak_memory_bytes or 0 for row in rows), default=0),
        "kernel_s": catalogue.time_s,
        "measured_on": catalogue.measured_on,
    }


def _compare_problems(first: Subject, second: Subject) -> list[dict[str, Any]]:
    before = {problem.label: problem for problem in first.problems}
    after = {problem.label: problem for problem in second.problems}
    labels = list(dict.fromkeys([*after, *before]))
    pairs = [(before.get(label), after.get(label)) for label in labels]
    seconds = [_pair(pair, lambda row: row.seconds) for pair in pairs]
    memory = [_pair(pair, lambda row: float(row.peak_memory_bytes or 0)) for pair in pairs]
    slower, larger = beyond_noise(seconds, LEAST_SECONDS), beyond_noise(memory, LEAST_BYTES)
    return [
        {
            "label": label,
            "a": _problem_data(a),
            "b": _problem_data(b),
            "time_beyond": time_beyond,
            "memory_beyond": memory_beyond,
            "tree": _compare_trees(a, b),
        }
        for label, (a, b), time_beyond, memory_beyond in zip(
            labels, pairs, slower, larger, strict=True
        )
    ]


def _problem_data(problem: ReportProblem | None) -> dict[str, Any] | None:
    if problem is None:
        return None
    return {
        "status": problem.row.status,
        "reason": problem.row.reason,
        "seconds": problem.row.seconds,
        "memory": problem.row.peak_memory_bytes,
    }


def _pair(
    pair: tuple[ReportProblem | None, ReportProblem | None], figure: Callable[[Row], float]
) -> tuple[float, float] | None:
    """Return a figure of both, where both passed and the second is not the first one's result."""
    a, b = pair
    if a is None or b is None or a.row.status != "passed" or b.row.status != "passed":
        return None
    if a.row.result_sha256 and a.row.result_sha256 == b.row.result_sha256:
        return None
    return figure(a.row), figure(b.row)


def _compare_trees(a: ReportProblem | None, b: ReportProblem | None) -> dict[str, Any] | None:
    """Return how the trees differ; None if they do not, or if one of them is missing."""
    if a is None or b is None or a.tree is None or b.tree is None:
        return None
    difference = compare_trees(a.directory, a.tree, b.directory, b.tree)
    if difference.same:
        return None
    return {
        "source": difference.a.source_sha256 != difference.b.source_sha256,
        "levels": _list_changes(difference.a.instances, difference.b.instances),
        "files": _list_changes(difference.a.files, difference.b.files),
        "kernels": [[c.kernel, c.a, c.b] for c in difference.changes[:MOST_CHANGES]],
        "more": max(0, len(difference.changes) - MOST_CHANGES),
        "rewritten": list(difference.respelled),
    }


def _list_changes(before: Mapping[str, int], after: Mapping[str, int]) -> list[list[str | int]]:
    """Return [level, before, after] for each level whose count changed."""
    return [[level, n, after[level]] for level, n in before.items() if n != after[level]]


def _compare_times(first: Catalogue, second: Catalogue) -> list[dict[str, Any]] | None:
    """Return the kernels that both have measured on one device; None if they have not."""
    if first.measured_on is None or first.measured_on != second.measured_on:
        return None
    before = {(row.mode, row.id): row.timing for row in first.workloads if row.timing}
    return [
        {
            "name": row.name,
            "instances": row.instances,
            "a": earlier.median_s,
            "b": row.timing.median_s,
            "beyond": _is_time_beyond_noise(earlier, row.timing),
        }
        for row in second.workloads
        if row.timing and (earlier := before.get((row.mode, row.id)))
    ]


def _is_time_beyond_noise(a: Timing, b: Timing) -> bool:
    """Return whether even the fastest run of the slower side is slower than the other's median."""
    low, high = sorted((a, b), key=lambda timing: timing.median_s)
    return high.fastest_s > low.median_s and high.median_s > 1.05 * low.median_s
