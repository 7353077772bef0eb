"""This file knows about patterns that a sequence repeats: `a b c a b c` is `a b c`, twice."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import eq

LONGEST_PERIOD = 256


@dataclass(frozen=True, slots=True)
class Repeat:
    """`count` times the same `period` tokens, from `start` on."""

    start: int
    period: int
    count: int

    @property
    def size(self) -> int:
        return self.period * self.count

    def units(self) -> list[range]:
        """The positions of each repetition."""
        places = range(self.start, self.start + self.size, self.period)
        return [range(place, place + self.period) for place in places]


def repeats(tokens: Sequence[Hashable], crossing: Sequence[int] = ()) -> list[Repeat]:
    """Repeated patterns of two tokens or more, none in another, that cover most together.

    Of equal ones, those that begin where least crosses: `crossing` counts, before each token.
    """
    best: list[tuple[int, int, int]] = [(0, 0, 0)]
    """(tokens covered, patterns, what crosses at their beginnings), the latter two negative."""
    chosen: list[Repeat | None] = [None]
    ending: dict[int, list[Repeat]] = {}
    for repeat in _candidates(tokens):
        ending.setdefault(repeat.start + repeat.size, []).append(repeat)
    for position in range(1, len(tokens) + 1):
        best.append(best[-1])
        chosen.append(None)
        for repeat in ending.get(position, ()):
            covered, patterns, crosses = best[repeat.start]
            if crossing:
                crosses -= sum(crossing[unit.start] for unit in repeat.units())
            if (covered + repeat.size, patterns - 1, crosses) > best[position]:
                best[position] = (covered + repeat.size, patterns - 1, crosses)
                chosen[position] = repeat
    found = []
    position = len(tokens)
    while position:
        last = chosen[position]
        if last is not None:
            found.append(last)
        position = last.start if last is not None else position - 1
    return found[::-1]


def _candidates(tokens: Sequence[Hashable]) -> Iterator[Repeat]:
    """Every stretch that equals itself a period later, at each of its possible beginnings."""
    for period in range(2, min(len(tokens) // 2, LONGEST_PERIOD) + 1):
        start = 0
        for equal, run in groupby(map(eq, tokens, tokens[period:])):
            same = len(list(run))
            if equal and same >= period:
                count = same // period + 1
                if _is_primitive(tokens[start : start + period]):  # so is each of its rotations
                    for first in range(start, start + same % period + 1):
                        yield Repeat(first, period, count)
            start += same


def _is_primitive(unit: Sequence[Hashable]) -> bool:
    """Not itself a shorter pattern several times."""
    size = len(unit)
    return not any(
        size % part == 0 and all(unit[i] == unit[i % part] for i in range(size))
        for part in range(1, size // 2 + 1)
    )
