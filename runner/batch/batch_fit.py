"""Finds the largest batch of a problem that fits into a given memory, by estimate.

Nothing is computed: each candidate is captured on fake tensors, and its memory is forecast. The
batch is the constant of the file that scales the first dimension of inputs and leaves the weights
as they are.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.batch.child.answer import Answer, EstimateAnswer
from runner.problems import Problem
from runner.problems.constants import Constant
from runner.problems.variants import VariantChoice, problem_constants, write_choice
from runner.quantities import size

PROCESS_BYTES = 512 << 20
"""Bytes of Python and torch that every estimate counts, so that the same batch is chosen again."""
MOST_FAILURES = 3
"""Captures that may fail in this search; a model that has failed so often runs with few values."""
MOST_PROBES = 12
"""Captures in the search for one problem's batch, after the batch is known."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The memory that problems have to fit into, and where the variants that do are written."""

    memory_bytes: int
    text: str
    """The memory for people and for names of files, such as `8GiB`."""
    output: Path


Forecaster = Callable[[Problem], Answer]


@dataclass(frozen=True, slots=True)
class _Probe:
    """Memory and input shapes of a problem with one value of a constant."""

    value: int
    expected_bytes: int
    weights_bytes: int
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A constant that scales the first dimension of inputs."""

    constant: Constant
    smaller: _Probe
    is_pure: bool
    """Whether it scales first dimensions only."""


def fit_choice(
    choice: VariantChoice, limit: MemoryLimit, forecast: Forecaster
) -> tuple[Problem, str | None]:
    """Return the problem with the largest batch, at most its own, that needs at most the memory.

    The second value says which constant was chosen and what it was, or why there is none; it is
    None if the problem fits as it is.

    A problem that cannot be captured is returned as it is: it says why when it is run. One that has
    no batch, or does not fit with a batch of 1, becomes a variant that says so when it is run.

    Raises:
        StoreError: the variant's file cannot be written.
    """
    search = _Search(choice, limit, forecast)
    problem = write_choice(choice, limit.output)
    own = search.probe_problem(problem, 0)
    if own is None or own.expected_bytes <= limit.memory_bytes:
        return problem, None
    candidate = search.find_batch(own)
    if candidate is None:
        reason = f"needs {size(own.expected_bytes)}, and no constant of the file scales its batch"
    else:
        constant = candidate.constant
        probe, failures = search.find_largest(candidate, own)
        if probe is not None:
            note = (
                f"{problem.label}: {constant.name} = {probe.value} instead of {constant.text} "
                f"({size(probe.expected_bytes)} instead of {size(own.expected_bytes)}"
                f"{'; larger ones fail' if failures else ''})"
            )
            fitted = search.with_value(constant, probe.value)
            variant = write_choice(fitted, limit.output, fit=limit.text, fitted=constant.name)
            return variant, note
        reason = f"needs more than {limit.text} even with {constant.name} = 1"
    refused = write_choice(choice, limit.output, fit=limit.text, refusal=reason)
    return refused, f"{problem.label}: {reason}"


class _Search:
    """The search for one problem's batch, by probes with other values of its constants."""

    def __init__(self, choice: VariantChoice, limit: MemoryLimit, forecast: Forecaster) -> None:
        self.choice = choice
        self.limit = limit
        self.forecast = forecast

    def find_batch(self, own: _Probe) -> _Candidate | None:
        """Return the constant that is the batch, or None if no constant scales like one.

        A constant that scales first dimensions only comes before one that scales others as well,
        and a name with `batch` in it before others. Some models run with no other batch than their
        own and 1.
        """
        halves = [(constant, constant.value // 2) for constant in self._integers()]
        ones = [(constant, 1) for constant, _ in halves]
        return self._find_candidate(halves, own) or self._find_candidate(ones, own)

    def _find_candidate(
        self, values: Sequence[tuple[Constant, int]], own: _Probe
    ) -> _Candidate | None:
        best: _Candidate | None = None
        for constant, value in values:
            smaller = self._probe(constant, value)
            if smaller is None or smaller.expected_bytes >= own.expected_bytes:
                continue
            candidate = _judge_scaling(constant, own, smaller)
            if candidate is not None and (best is None or candidate.is_pure > best.is_pure):
                best = candidate
                if best.is_pure:
                    break
        return best

    def find_largest(self, candidate: _Candidate, own: _Probe) -> tuple[_Probe | None, int]:
        """Return the largest value that fits (None if 1 does not), and how many values failed.

        A value fails if the model does not run with it. Memory is nearly linear in the batch, so
        the search interpolates between the largest value that is known to fit and the smallest one
        that is known not to.
        """
        constant = candidate.constant
        low: _Probe | None = None
        high = replace(own, value=constant.value)
        probe: _Probe | None = candidate.smaller
        failures = 0
        for _ in range(MOST_PROBES):
            if probe is not None and probe.expected_bytes <= self.limit.memory_bytes:
                low = probe
            elif probe is not None:
                high = probe
            lowest = low.value if low is not None else 0
            if high.value - lowest <= 1:
                break
            guess = min(max(self._interpolate(low, high), lowest + 1), high.value - 1)
            probe = self._probe(constant, guess)
            if probe is None:  # The model does not run with this value.
                high = replace(high, value=guess)
                failures += 1
                if failures == MOST_FAILURES:
                    break
        return low, failures

    def _interpolate(self, low: _Probe | None, high: _Probe) -> int:
        if low is None or high.expected_bytes <= low.expected_bytes:
            return high.value // 2
        slope = (high.expected_bytes - low.expected_bytes) / (high.value - low.value)
        return low.value + int((self.limit.memory_bytes - low.expected_bytes) / slope)

    def with_value(self, constant: Constant, value: int) -> VariantChoice:
        texts = {name: text for name, text in self.choice.texts.items() if name != constant.name}
        return replace(self.choice, texts=texts | {constant.name: str(value)})

    def _integers(self) -> list[Constant]:
        """Return the constants that could be a batch, likely ones first, each name once."""
        constants = {c.name: c for c in problem_constants(self.choice.problem).constants}
        integers = [c for c in constants.values() if type(c.value) is int and c.value > 1]
        return sorted(integers, key=lambda constant: "batch" not in constant.name.lower())

    def _probe(self, constant: Constant, value: int) -> _Probe | None:
        with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
            variant = write_choice(self.with_value(constant, value), Path(folder))
            return self.probe_problem(variant, value)

    def probe_problem(self, problem: Problem, value: int) -> _Probe | None:
        """Return what a problem needs, or None if it cannot be captured."""
        answer = self.forecast(problem)
        if not isinstance(answer, EstimateAnswer):
            return None
        forecast = answer.forecast.model_copy(update={"process_bytes": PROCESS_BYTES})
        shapes = tuple(map(tuple, answer.input_shapes))
        return _Probe(value, forecast.expected_bytes, forecast.weights_bytes, shapes)


def _judge_scaling(constant: Constant, own: _Probe, smaller: _Probe) -> _Candidate | None:
    """Return the constant as a candidate if it scales the first dimension of an input."""
    if own.weights_bytes != smaller.weights_bytes or len(own.shapes) != len(smaller.shapes):
        return None
    scales_first, scales_others = False, False
    for before, after in zip(own.shapes, smaller.shapes, strict=True):
        if len(before) != len(after):
            return None
        if before[:1] != after[:1]:
            if before[0] * smaller.value != after[0] * constant.value:
                return None
            scales_first = True
        scales_others |= before[1:] != after[1:]
    return _Candidate(constant, smaller, not scales_others) if scales_first else None
