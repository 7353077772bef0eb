"""Defines the difference between two outputs."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two values or outputs."""

    max_diff: float = 0.0
    bitwise_equal: bool = True
    reason: str | None = None
    """Fault in one line; None if they are equal within tolerance."""
    not_finite: bool = False
    """Whether both sides hold NaN or infinity in the same places: equal, but worth a remark."""
    noticed: bool = False
    """Whether the negative control was noticed: the comparison fails if one side is made wrong."""

    def __or__(self, other: "Difference") -> "Difference":
        return Difference(
            max(self.max_diff, other.max_diff),
            self.bitwise_equal and other.bitwise_equal,
            self.reason or other.reason,
            self.not_finite or other.not_finite,
            self.noticed or other.noticed,
        )


def mismatch(reason: str) -> Difference:
    """Return a difference that no number describes: shapes, structure, a NaN on one side."""
    return Difference(math.inf, False, reason)
