"""Finds patterns that a sequence repeats: `a b c a b c` is `a b c`, twice."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import eq

LONGEST_PERIOD = 256
"""Longest pattern that is searched for, in tokens."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """A pattern of `period` tokens that a sequence repeats `count` times, beginning at `start`."""

    start: int
    period: int
    count: int

    @property
    def size(self) -> int:
        """Number of tokens in all repetitions."""
        return self.period * self.count

    def units(self) -> list[range]:
        """Return the positions of each repetition."""
        starts = range(self.start, self.start + self.size, self.period)
        return [range(start, start + self.period) for start in starts]


def find_repetitions(tokens: Sequence[Hashable], crossing: Sequence[int] = ()) -> list[Repetition]:
    """Return repeated patterns of two tokens or more that together cover most of a sequence.

    No pattern is inside another. Of equally good patterns, those win that begin at positions with
    small numbers in `crossing`, which has a number for each token.
    """
    number_of: dict[Hashable, int] = {}
    numbers = [number_of.setdefault(token, len(number_of)) for token in tokens]
    best: list[tuple[int, int, int]] = [(0, 0, 0)]
    """(tokens covered, minus patterns, minus `crossing` at their beginnings), by position."""
    chosen_repetitions: list[Repetition | None] = [None]
    candidates_ending_at: dict[int, list[Repetition]] = {}
    for candidate in _candidates(numbers):
        candidates_ending_at.setdefault(candidate.start + candidate.size, []).append(candidate)
    for position in range(1, len(tokens) + 1):
        best.append(best[-1])
        chosen_repetitions.append(None)
        for candidate in candidates_ending_at.get(position, ()):
            tokens_covered, patterns, crossing_sum = best[candidate.start]
            if crossing:
                crossing_sum -= sum(crossing[unit.start] for unit in candidate.units())
            if (tokens_covered + candidate.size, patterns - 1, crossing_sum) > best[position]:
                best[position] = (tokens_covered + candidate.size, patterns - 1, crossing_sum)
                chosen_repetitions[position] = candidate
    results = []
    position = len(tokens)
    while position:
        repetition = chosen_repetitions[position]
        if repetition is not None:
            results.append(repetition)
        position = repetition.start if repetition is not None else position - 1
    return results[::-1]


def _candidates(tokens: Sequence[int]) -> Iterator[Repetition]:
    """Yield every repetition, at each position at which its pattern can begin."""
    for period in range(2, min(len(tokens) // 2, LONGEST_PERIOD) + 1):
        start = 0
        for equal, run in groupby(map(eq, tokens, tokens[period:])):
            same = len(list(run))
            if equal and same >= period:
                count = same // period + 1
                # If a pattern is primitive, each of its rotations is primitive, too.
                if _is_primitive(tokens[start : start + period]):
                    for first in range(start, start + same % period + 1):
                        yield Repetition(first, period, count)
            start += same


def _is_primitive(unit: Sequence[int]) -> bool:
    """Return whether a pattern is not itself a repetition of a shorter one."""
    size = len(unit)
    return not any(
        size % part == 0 and all(unit[i] == unit[i % part] for i in range(size))
        for part in range(1, size // 2 + 1)
    )
