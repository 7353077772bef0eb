"""Collects the evaluations of a subject: solutions, what they do for models, and their summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.emit.pages.outline import workload_name
from runner.errors import DecompositionError
from runner.report.catalogue import Catalogue, Timing
from runner.report.subject import ReportProblem, Subject
from runner.store.evaluation import Evaluation, SolutionEvaluation
from runner.tree.document import Node, Tree

_SPEEDS = ("speed", "compiled", "measured")
_TIMES = ("before_s", "after_s")
_WORSE = {"slower", "wrong", "broken"}

Evaluations = Mapping[int, Evaluation]
"""Evaluations by the number of their problem in the subject."""


def read_evaluations(subject: Subject) -> tuple[dict[int, Evaluation], list[str]]:
    """Return the evaluations beside the decompositions, and a sentence on each unreadable one."""
    evaluations, notes = {}, []
    for number, problem in enumerate(subject.problems):
        if problem.tree is None:
            continue
        try:
            evaluation = Evaluation.read(problem.directory)
        except DecompositionError as error:
            notes.append(f"{error.message}.")
            continue
        if evaluation is None:
            continue
        evaluations[number] = evaluation
        if evaluation.source_sha256 != problem.tree.metadata.source_sha256:
            notes.append(f"{problem.label}: its solutions were evaluated on another original.py.")
    return evaluations, notes


def solutions_data(evaluations: Evaluations, subject: Subject) -> list[dict[str, Any]]:
    """Return what the page shows of each evaluation; `node` is the first place of a solution."""
    listed = []
    for number, evaluation in evaluations.items():
        places: dict[str, str] = {}
        for node in _nodes(subject.problems[number]):
            places.setdefault(workload_name(node), node.id)
        listed.append(_evaluation_data(evaluation, places) | {"problem": number})
    return listed


def summarize_solutions(
    evaluations: Evaluations,
    subject: Subject,
    catalogue: Catalogue,
    times: Mapping[str, Mapping[str, Timing]],
) -> dict[str, Any] | None:
    """Return how many workloads have a better version, and their share of each source level's work.

    A workload has one if a solution is faster beyond the noise in a model, and slower or refused in
    none. The share is of the kernels' measured time, else of their FLOPs.
    """
    if not evaluations:
        return None
    outcomes: dict[str, set[str]] = defaultdict(set)
    for evaluation in evaluations.values():
        for solution in evaluation.solutions:
            outcomes[solution.name].add(classify_solution(solution))
    better = {name for name, own in outcomes.items() if "faster" in own and not own & _WORSE}
    levels = {
        solution.name: solution.level
        for evaluation in evaluations.values()
        for solution in evaluation.solutions
    }
    counts = {
        level: [sum(levels[name] == level for name in better), total]
        for level, total in _count_workloads(subject, catalogue).items()
        if any(levels[name] == level for name in outcomes)
    }
    return {
        "models": len(evaluations),
        "solutions": len(outcomes),
        "right": sum(not own & {"wrong", "broken"} for own in outcomes.values()),
        "better": counts,
        "measure": "time" if times else "FLOPs",
        "shares": _shares(evaluations, subject, better, times),
    }


def classify_solution(solution: SolutionEvaluation) -> str:
    """Return `wrong`, `broken`, `faster`, `slower`, `noise`, or `right` if it was not measured."""
    if solution.judgement != "right":
        return solution.judgement
    if solution.speed is None:
        return "right"
    if solution.speed.is_noise:
        return "noise"
    return "faster" if solution.speed.speedup > 1 else "slower"


def _evaluation_data(evaluation: Evaluation, places: Mapping[str, str]) -> dict[str, Any]:
    data: dict[str, Any] = evaluation.model_dump(mode="json", exclude_none=True)
    for solution, row in zip(evaluation.solutions, data["solutions"], strict=True):
        row["outcome"] = classify_solution(solution)
        if solution.name in places:
            row["node"] = places[solution.name]
    for part in (*data["solutions"], data.get("model", {})):
        for speed in _SPEEDS:
            for side in _TIMES if speed in part else ():
                part[speed][side] = [float(f"{seconds:.4g}") for seconds in part[speed][side]]
    return data


def _count_workloads(subject: Subject, catalogue: Catalogue) -> dict[str, int]:
    names: dict[str, set[str]] = defaultdict(set)
    for problem in subject.decompositions:
        for node in _nodes(problem):
            names[node.level].add(workload_name(node))
    return {
        level: len(catalogue.workloads) if level == "kernel" else len(level_names)
        for level, level_names in names.items()
    }


def _shares(
    evaluations: Evaluations,
    subject: Subject,
    better: set[str],
    times: Mapping[str, Mapping[str, Timing]],
) -> dict[str, float]:
    """Return the share of better workloads in the work of each source level that has some."""
    total: dict[str, float] = defaultdict(float)
    covered: dict[str, float] = defaultdict(float)
    for number, problem in enumerate(subject.problems):
        if problem.tree is None:
            continue
        own_times = times.get(problem.label, {})

        def amount(node: Node, measured: Mapping[str, Timing] = own_times) -> float:
            if not times:
                return node.flops
            return measured[node.path].median_s if node.path in measured else 0.0

        level = problem.row.source_level
        total[level] += sum(amount(n) for n in _nodes(problem) if n.level == "kernel")
        if number in evaluations:
            judged = {solution.name for solution in evaluations[number].solutions}
            kernels = _kernels_below(problem.tree, better & judged)
            covered[level] += sum(map(amount, kernels))
    return {level: covered[level] / total[level] for level in covered if total[level]}


def _kernels_below(tree: Tree, names: set[str]) -> Iterator[Node]:
    """Yield the kernel instances inside of the components with these names."""
    waiting = [(tree.root, False)]
    while waiting:
        node, inside = waiting.pop()
        inside = inside or workload_name(node) in names
        if inside and node.level == "kernel":
            yield node
        waiting += [(tree.nodes[child], inside) for child in node.children]


def _nodes(problem: ReportProblem) -> Sequence[Node]:
    return [*problem.tree.nodes.values()] if problem.tree else []
