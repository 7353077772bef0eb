"""This file knows about what a run has to do: which problems, and why.

Everything here is a function of listings and numbers; nothing is read, written or started.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runner.errors import UsageError
from runner.problems import Problem
from runner.store.result import ProblemResult, RunOptions
from runner.store.runs import Standing


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One selected problem of a run."""

    problem: Problem
    earlier_result: ProblemResult | None
    """The result that stands; present exactly when there is nothing to do."""
    reason: str
    """Why it is run, or is not, in a few words."""
    stored_result: Standing | None = None
    """What the run's store holds for it, whether or not it is still right."""
    differs: tuple[str, ...] = ()
    """In what the result that stands, another writer's, is not the one that was sent."""

    @property
    def is_only_local(self) -> bool:
        """Whether the result that stands is not the one in the run's store."""
        return self.earlier_result is not None and (
            self.stored_result is None or self.stored_result.result != self.earlier_result
        )

    @property
    def label(self) -> str:
        return label(self.problem)


def label(problem: Problem) -> str:
    """`level3/vit_block`: the problem's name, and its place under an output directory."""
    return f"{problem.source_level}/{problem.name}"


def plan(
    problems: Sequence[Problem],
    earlier_results: Mapping[str, ProblemResult],
    find_damage: Callable[[str, ProblemResult], str | None],
    options: RunOptions,
    version: str,
    *,
    resume: bool = True,
    only_failed: bool = False,
) -> list[PlanItem]:
    """What to do about each problem, in the order given.

    `earlier` holds the results that stand by label, `damage` names the first changed file of one.
    With `only_failed`, what has no result yet is left out.

    Raises:
        UsageError: two problems would share a directory, or nothing is left by `only_failed`.
    """
    problems_by_label: dict[str, Problem] = {}
    items = []
    for problem in problems:
        name = label(problem)
        if name in problems_by_label:
            raise UsageError(
                f"{problem.path} and {problems_by_label[name].path} would both be {name}",
                hint="rename one, or submit them to different --output directories",
            )
        problems_by_label[name] = problem
        result = earlier_results.get(name)
        reason = _reason_to_run(problem, result, find_damage, options, version)
        if only_failed:
            if result is not None and result.status != "passed":
                items.append(PlanItem(problem, None, reason or "failed before"))
        elif result is not None and reason is None and resume:
            items.append(PlanItem(problem, result, "passed before"))
        else:
            items.append(PlanItem(problem, None, reason or "asked for again"))
    if only_failed and not items:
        raise UsageError(
            "--only-failed: none of the selected problems has a result that is not passed",
            hint="leave the flag out",
        )
    return items


def _reason_to_run(
    problem: Problem,
    result: ProblemResult | None,
    find_damage: Callable[[str, ProblemResult], str | None],
    options: RunOptions,
    version: str,
) -> str | None:
    """Why an earlier result does not stand, or None where it does."""
    if result is None:
        return "new"
    if result.status != "passed":
        return f"{result.status} before"
    if result.source_sha256 != problem.sha256:
        return "its source changed"
    if result.kdrun_version != version:
        return f"made by kdrun {result.kdrun_version}"
    if not options.accept(result.options):
        return "other options"
    if changed_file := find_damage(label(problem), result):
        return f"{changed_file} is damaged"
    return None
