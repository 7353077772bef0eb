"""This file knows about how far two values are apart."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two values are apart."""

    max_diff: float = 0.0
    bitwise_equal: bool = True
    reason: str | None = None
    """What is wrong, in one line; None where they are equal within tolerance."""
    not_finite: bool = False
    """Both sides hold NaN or infinity in the same places: equal, and worth saying."""
    noticed: bool = False
    """The negative control: the comparison fails where what it compares is made wrong."""

    def __or__(self, other: "Difference") -> "Difference":
        return Difference(
            max(self.max_diff, other.max_diff),
            self.bitwise_equal and other.bitwise_equal,
            self.reason or other.reason,
            self.not_finite or other.not_finite,
            self.noticed or other.noticed,
        )


def unequal(reason: str) -> Difference:
    """A difference that no number describes: shapes, structure, a NaN on one side."""
    return Difference(math.inf, False, reason)
