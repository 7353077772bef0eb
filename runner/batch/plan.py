"""This file knows about what a run has to do: which problems, why, with how much memory each.

Everything here is a function of listings and numbers; nothing is read, written or started.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runner.batch.machine import GIB
from runner.errors import UsageError
from runner.problems import Problem
from runner.store.result import ProblemResult, RunOptions
from runner.store.runs import Standing

CHILD_BYTES = GIB
"""What a child takes beside the model's tensors: Python, the captured graph, scratch space."""
ESTIMATE_BYTES = 2 * GIB
"""For capturing alone: nothing is computed, but a few models need their real parameters."""
HELD_SHARE = 0.25
"""Of the peak, on top: what verification keeps of one side, and operators' scratch."""
NO_BOUND = 1 << 60
"""The most that a node has, where a larger one may still come."""


@dataclass(frozen=True, slots=True)
class Item:
    """One selected problem of a run."""

    problem: Problem
    earlier: ProblemResult | None
    """The result that stands; present exactly when there is nothing to do."""
    why: str
    """Why it is run, or is not, in a few words."""
    stored: Standing | None = None
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


@dataclass(frozen=True, slots=True)
class Needs:
    """Memory that a problem is given, of the most that a node has."""

    granted_bytes: int
    most_bytes: int
    fits: bool = True
    """False where the estimate, which is from below, is over the most: more would not help."""

    @property
    def can_grow(self) -> bool:
        return self.fits and self.granted_bytes < self.most_bytes

    @classmethod
    def of_an_estimate(cls, most_bytes: int) -> "Needs":
        return cls(min(ESTIMATE_BYTES, most_bytes), most_bytes)

    def of_a_model(self, peak_bytes: int, capture_bytes: int, weight_bytes: int = 0) -> "Needs":
        """For a forward pass that peaks at `peak_bytes`; capturing it took `capture_bytes`.

        Where all but its weights fits, they are streamed, in all the memory that there is. What
        fits nowhere is given what capturing takes: it is taken apart, and not verified.
        """
        fits = peak_bytes <= self.most_bytes
        if not fits and peak_bytes - weight_bytes <= self.most_bytes:
            return self.all_there_is()
        wanted = int(peak_bytes * (1 + HELD_SHARE)) if fits else 0
        wanted = _rounded(max(wanted + CHILD_BYTES, capture_bytes, self.granted_bytes))
        return Needs(min(wanted, self.most_bytes), self.most_bytes, fits)

    def more(self) -> "Needs":
        """Twice as much, as far as there is."""
        return Needs(min(2 * self.granted_bytes, self.most_bytes), self.most_bytes, self.fits)

    def all_there_is(self) -> "Needs":
        return Needs(self.most_bytes, self.most_bytes, self.fits)


def than_the_largest(most_bytes: int) -> str:
    """`, the largest node has 21.9 GiB`, where that is known."""
    return "" if most_bytes >= NO_BOUND else f", the largest node has {most_bytes / GIB:.1f} GiB"


def _rounded(wanted_bytes: int) -> int:
    """To quarters of a GiB: Ray schedules by classes of equal requests."""
    quarter = GIB // 4
    return -(-wanted_bytes // quarter) * quarter


def threads(cores: int, node_bytes: int, request_bytes: int) -> int:
    """Threads for a child: its share of the cores, given how many of its size the memory holds."""
    together = max(1, min(cores, node_bytes // max(1, request_bytes)))
    return max(1, cores // together)
