"""This file knows about what a run has to do: which problems, and why.

Everything here is a function of listings and numbers; nothing is read, written or started.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runner.errors import UsageError
from runner.problems import Problem
from runner.store.result import ProblemResult, RunOptions
from runner.store.runs import CommittedResult


@dataclass(frozen=True, slots=True)
class Item:
    """One selected problem of a run."""

    problem: Problem
    earlier: ProblemResult | None
    """The result that stands; present exactly when there is nothing to do."""
    why: str
    """Why it is run, or is not, in a few words."""
    stored: CommittedResult | None = None
    """What the run's store holds for it, whether or not it is still right."""
    differs: tuple[str, ...] = ()
    """In what the result that stands, another writer's, is not the one that was sent."""

    @property
    def only_here(self) -> bool:
        """Whether the result that stands is not the one in the run's store."""
        return self.earlier is not None and (
            self.stored is None or self.stored.result != self.earlier
        )

    @property
    def label(self) -> str:
        return label(self.problem)


def label(problem: Problem) -> str:
    """`level3/vit_block`: the problem's name, and its place under an output directory."""
    return f"{problem.source_level}/{problem.name}"


def plan(
    problems: Sequence[Problem],
    earlier: Mapping[str, ProblemResult],
    damage: Callable[[str, ProblemResult], str | None],
    options: RunOptions,
    version: str,
    *,
    resume: bool = True,
    only_failed: bool = False,
) -> list[Item]:
    """What to do about each problem, in the order given.

    `earlier` holds the results that stand by label, `damage` names the first changed file of one.
    With `only_failed`, what has no result yet is left out.

    Raises:
        UsageError: two problems would share a directory, or nothing is left by `only_failed`.
    """
    places: dict[str, Problem] = {}
    items = []
    for problem in problems:
        name = label(problem)
        if name in places:
            raise UsageError(
                f"{problem.path} and {places[name].path} would both be {name}",
                hint="rename one, or submit them to different --output directories",
            )
        places[name] = problem
        result = earlier.get(name)
        why = _why_again(problem, result, damage, options, version)
        if only_failed:
            if result is not None and result.status != "passed":
                items.append(Item(problem, None, why or "failed before"))
        elif result is not None and why is None and resume:
            items.append(Item(problem, result, "passed before"))
        else:
            items.append(Item(problem, None, why or "asked for again"))
    if only_failed and not items:
        raise UsageError(
            "--only-failed: none of the selected problems has a result that is not passed",
            hint="leave the flag out",
        )
    return items


def _why_again(
    problem: Problem,
    result: ProblemResult | None,
    damage: Callable[[str, ProblemResult], str | None],
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
    if changed := damage(label(problem), result):
        return f"{changed} is damaged"
    return None
