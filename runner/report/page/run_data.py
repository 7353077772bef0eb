"""Collects what the page shows before a problem is opened: the run, its rows, all workloads."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from runner import __version__
from runner.report.catalogue import (
    MEASURE_NAMES,
    Catalogue,
    CatalogueWorkload,
    Measure,
    Timing,
    sort_catalogue,
)
from runner.report.subject import ReportProblem, Subject
from runner.report.units import shape
from runner.store.manifest import Manifest
from runner.tree.document import ROOT, Node

CURVE_POINTS = 400

Times = Mapping[str, Mapping[str, Timing]]
"""Measured time of each kernel, by the label of the problem and the path in it."""


def subject_data(subject: Subject, catalogue: Catalogue) -> dict[str, Any]:
    """Return the data of the first view."""
    times = times_of(catalogue)
    return {
        "title": subject.title,
        "version": __version__,
        "notes": subject.notes,
        "run": _run_data(subject.manifest) if subject.manifest else None,
        "measured_on": catalogue.measured_on,
        "roofs": catalogue.roofs.model_dump() if catalogue.roofs else None,
        "problems": [_row_data(problem, times) for problem in subject.problems],
    }


def times_of(catalogue: Catalogue) -> dict[str, dict[str, Timing]]:
    """Return the measured time of each kernel, by problem and path."""
    times: dict[str, dict[str, Timing]] = {}
    for row in catalogue.workloads:
        for use in row.uses if row.timing else ():
            assert row.timing is not None
            times.setdefault(use.problem, {})[use.path] = row.timing
    return times


def workloads_data(catalogue: Catalogue, subject: Subject) -> dict[str, Any]:
    """Return every workload with its uses, those with the largest share first."""
    numbers = {problem.label: number for number, problem in enumerate(subject.problems)}
    measures: tuple[Measure, ...] = ("flops", "bytes")
    measures = ("time", *measures) if catalogue.by == "time" else measures
    sorted_by = {measure: sort_catalogue(catalogue, measure) for measure in measures}
    families = {row.name: number for number, row in enumerate(catalogue.families)}
    sizes = {s.workload: s.sizes for family in catalogue.families for s in family.shapes if s.sizes}
    return {
        "problems": catalogue.problems,
        "instances": catalogue.instances,
        "totals": {"flops": catalogue.flops, "bytes": catalogue.bytes, "time": catalogue.time_s},
        "curves": {MEASURE_NAMES[measure]: _curve(c) for measure, c in sorted_by.items()},
        "listed": [
            _workload_data(row, families[row.family], numbers)
            | ({"sizes": sizes[row.name]} if row.name in sizes else {})
            for row in catalogue.workloads
        ],
        "families": [family.model_dump(exclude={"shapes"}) for family in catalogue.families],
    }


def _run_data(manifest: Manifest) -> dict[str, Any]:
    wall = (manifest.finished - manifest.started).total_seconds() if manifest.finished else None
    return {
        "id": manifest.run_id,
        "state": manifest.state_now(),
        "started": f"{manifest.started:%Y-%m-%d %H:%M} UTC",
        "wall_s": wall,
        "selected": manifest.selected,
        "data": manifest.data,
        "versions": manifest.versions,
        "options": {k: v for k, v in manifest.arguments.items() if v not in (None, [], False)},
    }


def _row_data(problem: ReportProblem, times: Times) -> dict[str, Any]:
    row, tree = problem.row, problem.tree
    return {
        "label": problem.label,
        "name": row.problem,
        "level": row.source_level,
        "status": row.status,
        "reason": row.reason,
        "source_line": row.source_line,
        "stage": problem.result.stage if problem.result else None,
        "ended": _end_time(problem),
        "missing": problem.missing,
        "later": problem.later,
        "health": row.health,
        "bitwise": row.bitwise_equal,
        "seconds": row.seconds,
        "memory": row.peak_memory_bytes,
        "attempts": row.attempts,
        "node": row.node,
        "opens": tree is not None,
        "components": tree.metadata.total_components if tree else None,
        "levels": dict(tree.metadata.by_level) if tree else None,
        "kernels": tree.metadata.unique_kernels if tree else None,
        "instances": tree.metadata.kernel_instances if tree else None,
        "verified": tree.metadata.verification_status if tree else None,
        "flops": tree.nodes[ROOT].flops if tree else None,
        **_kernel_time(problem, times.get(problem.label, {})),
    }


def _kernel_time(problem: ReportProblem, times: Mapping[str, Timing]) -> dict[str, Any]:
    """Return the time of all measured kernel instances of a problem, and how many have none."""
    kernels = _kernels(problem)
    measured = [times[node.path].median_s for node in kernels if node.path in times]
    if not measured:
        return {}
    return {"kernel_s": sum(measured), "untimed": len(kernels) - len(measured)}


def _kernels(problem: ReportProblem) -> list[Node]:
    nodes = problem.tree.nodes.values() if problem.tree else ()
    return [node for node in nodes if node.level == "kernel"]


def _end_time(problem: ReportProblem) -> str | None:
    if problem.result is None:
        return None
    return (problem.result.started + timedelta(seconds=problem.result.total_s)).isoformat()


def search_words(problem: ReportProblem) -> str:
    """Return a problem's words beyond its row: operations, files and shapes of its tree."""
    if problem.tree is None:
        return ""
    words: dict[str, None] = {}
    for node in problem.tree.nodes.values():
        words |= dict.fromkeys(node.operations)
        words[node.path.rpartition("/")[2].removesuffix(".py")] = None
        for shapes in (node.input_shapes, node.output_shapes, node.weight_shapes):
            words |= dict.fromkeys(shape(dimensions) for dimensions in shapes.values())
    return " ".join(words)


def _workload_data(
    row: CatalogueWorkload, family: int, numbers: Mapping[str, int]
) -> dict[str, Any]:
    data = {
        "name": row.name,
        "operation": row.operation,
        "family": family,
        "inputs": list(row.input_shapes.values()),
        "input_dtypes": list(row.input_dtypes.values()),
        "outputs": list(row.output_shapes.values()),
        "weights": list(row.weight_shapes.values()),
        "flops": row.flops,
        "bytes": row.bytes,
        "instances": row.instances,
        "uses": [[numbers[use.problem], use.places[0], use.instances] for use in row.uses],
    }
    if row.timing:
        timing = row.timing
        data["time"] = [timing.median_s, timing.fastest_s, timing.slowest_s]
    elif row.untimed:
        data["untimed"] = row.untimed
    return data


def _curve(catalogue: Catalogue) -> list[list[float]]:
    """Return pairs [workloads, share]: each of the first hundred, then every `step`-th."""
    cumulative = [row.cumulative for row in catalogue.workloads]
    total = len(cumulative)
    step = max(1, total // CURVE_POINTS)
    points = [n for n in range(1, total + 1) if n <= 100 or n % step == 0 or n == total]
    return [[n, round(cumulative[n - 1], 5)] for n in points]
