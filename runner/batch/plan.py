"""Plans a run: decides which problems are run, and for what reason.

All functions are pure: they read, write and start nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runner import __version__
from runner.errors import UsageError
from runner.problems import Problem
from runner.store.result import ProblemResult, RunOptions
from runner.store.runs import CommittedResult


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One selected problem of a run."""

    problem: Problem
    earlier_result: ProblemResult | None
    """Earlier result that is still valid; present exactly when the problem is not run."""
    reason: str
    """Reason why the problem is run or not, in a few words."""
    stored_result: CommittedResult | None = None
    """Result in the run's store, whether or not it is still valid; None if there is none."""
    differs: tuple[str, ...] = ()
    """Fields in which the stored result, if another writer's, differs from the uploaded one."""

    @property
    def is_only_local(self) -> bool:
        """Whether the valid result is only in the output directory and not in the run's store."""
        return self.earlier_result is not None and (
            self.stored_result is None or self.stored_result.result != self.earlier_result
        )

    @property
    def label(self) -> str:
        return self.problem.label


def plan(
    problems: Sequence[Problem],
    earlier_results: Mapping[str, ProblemResult],
    find_damage: Callable[[str, ProblemResult], str | None],
    options: RunOptions,
    *,
    resume: bool = True,
    only_failed: bool = False,
) -> list[PlanItem]:
    """Return the plan for each problem, in the order given.

    `earlier_results` holds earlier results by label; `find_damage` returns the first file of a
    result that changed, or None. With `only_failed`, problems without an earlier result are left
    out, and so are those that passed.

    Raises:
        UsageError: two problems would share a directory, or `only_failed` selects none.
    """
    problems_by_label: dict[str, Problem] = {}
    items = []
    for problem in problems:
        name = problem.label
        if name in problems_by_label:
            raise UsageError(
                f"{problem.path} and {problems_by_label[name].path} would both be {name}",
                hint="rename one, or submit them to different --output directories",
            )
        problems_by_label[name] = problem
        result = earlier_results.get(name)
        reason = _reason_to_run(problem, result, find_damage, options)
        if only_failed:
            if result is not None and result.status != "passed":
                items.append(PlanItem(problem, None, reason or "failed before"))
        elif result is not None and reason is None and resume:
            items.append(PlanItem(problem, result, f"{result.status} before"))
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
) -> str | None:
    """Return the reason why an earlier result is not valid, or None if it is."""
    if result is None:
        return "new"
    if not options.is_final(result.status, result.options):
        return f"{result.status} before"
    if result.source_sha256 != problem.sha256:
        return "its source changed"
    if result.kdrun_version != __version__:
        return f"made by kdrun {result.kdrun_version}"
    if not options.accept(result.options):
        return "other options"
    if changed_file := find_damage(problem.label, result):
        return f"{changed_file} is damaged"
    return None
