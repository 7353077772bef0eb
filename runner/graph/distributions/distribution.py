"""Describes the distribution of a tensor's elements, and how distributions add and multiply."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

MIN_ZERO_SHARE = 0.01
"""Share of zeros below which emitted files do not draw zeros."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of a tensor's elements; shares are between 0 and 1."""

    mean: float = 0.0
    square: float = 1.0
    """Mean of the squares."""
    shared: float = 0.0
    """Mean of the squares of the channels' means."""
    low: float = -math.inf
    high: float = math.inf
    zeros: float = 0.0
    """Share of exact zeros."""
    infinite: float = 0.0
    """Share of -inf; the other figures describe the finite elements only."""
    structured: bool = False
    """True if elements depend on their place (a mask) or on each other (a softmax's shares)."""
    channel: int = -1
    """Dimension whose entries have different means, counted from the last one (-1)."""

    @property
    def variance(self) -> float:
        return max(self.square - self.mean**2, 0.0)

    @property
    def std(self) -> float:
        return math.sqrt(self.variance)

    @property
    def draw_key(self) -> tuple[bool, ...]:
        """Properties that two tensors must share to be drawn by the same rule."""
        return (
            self.low >= 0,
            self.high <= 0,
            MIN_ZERO_SHARE < self.zeros < 1,
            self.low == self.high,
            self.structured,
        )

    def scale(self, factor: float) -> Distribution:
        """Return the distribution of the elements multiplied by a number."""
        ends = sorted(_product(end, factor) for end in (self.low, self.high))
        return replace(
            self,
            mean=self.mean * factor,
            square=self.square * factor**2,
            shared=self.shared * factor**2,
            low=ends[0],
            high=ends[1],
            zeros=self.zeros if factor else 1.0,
        )


def _product(a: float, b: float) -> float:
    return 0.0 if not a or not b else a * b


def constant(number: float) -> Distribution:
    """Return the distribution of a tensor that holds one number."""
    if number < -1e8:  # Such a number stands for -inf in a mask.
        return Distribution(square=0.0, infinite=1.0)
    number = max(min(number, 1e30), -1e30)
    square = number**2
    return Distribution(number, square, square, number, number, float(number == 0))


def uniform(low: float, high: float) -> Distribution:
    """Return the uniform distribution between two numbers."""
    mean = (low + high) / 2
    return Distribution(mean, mean**2 + (high - low) ** 2 / 12, mean**2, low, high)


def boolean(share: float, like: Distribution) -> Distribution:
    """Return the distribution of a boolean tensor with this share of true elements."""
    return Distribution(share, share, share**2, 0.0, 1.0, 1 - share, channel=like.channel)


def without_bounds(d: Distribution) -> Distribution:
    """Return the same figures without bounds, zeros and infinities, for an unknown operation."""
    return replace(d, low=-math.inf, high=math.inf, zeros=0.0, infinite=0.0)


def add(a: Distribution, b: Distribution) -> Distribution:
    """Return the distribution of the sum of two independent tensors."""
    return replace(
        a,
        mean=a.mean + b.mean,
        square=a.variance + b.variance + (a.mean + b.mean) ** 2,
        shared=a.shared - a.mean**2 + b.shared - b.mean**2 + (a.mean + b.mean) ** 2,
        low=a.low + b.low,
        high=a.high + b.high,
        zeros=a.zeros * b.zeros,
        infinite=max(a.infinite, b.infinite),
        structured=False,
    )


def multiply(a: Distribution, b: Distribution) -> Distribution:
    """Return the distribution of the product of two independent tensors."""
    if b.low == b.high:
        return a.scale(b.low)
    if a.low == a.high:
        return replace(b.scale(a.low), structured=b.structured)
    ends = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    zeros = 1 - (1 - a.zeros) * (1 - b.zeros)
    return replace(
        a,
        mean=a.mean * b.mean,
        square=a.square * b.square,
        shared=a.shared * b.shared,
        low=min(ends),
        high=max(ends),
        zeros=zeros,
        infinite=max(a.infinite, b.infinite),
        structured=any(
            d.structured and (d.zeros > MIN_ZERO_SHARE or d.infinite > 0) for d in (a, b)
        ),
    )


def mix(parts: list[tuple[float, Distribution]]) -> Distribution:
    """Return the distribution of several tensors' elements together, each with its share."""
    total = sum(share for share, _ in parts) or 1.0
    parts = [(share / total, d) for share, d in parts if share]

    def average(figure: Callable[[Distribution], float]) -> float:
        return sum(share * figure(d) for share, d in parts)

    return Distribution(
        average(lambda d: d.mean),
        average(lambda d: d.square),
        average(lambda d: d.shared),
        min(d.low for _, d in parts),
        max(d.high for _, d in parts),
        average(lambda d: d.zeros),
        average(lambda d: d.infinite),
        any(d.structured for _, d in parts),
        parts[0][1].channel,
    )


def make_consistent(d: Distribution) -> Distribution:
    """Return the distribution with finite figures that do not contradict each other."""
    if not all(map(math.isfinite, (d.mean, d.square, d.shared))):
        return replace(Distribution(low=d.low, high=d.high), structured=d.structured)
    mean = max(min(d.mean, 1e15), -1e15)
    square = min(max(d.square, mean**2), 1e30)
    shared = min(max(d.shared, mean**2), square)
    return replace(d, mean=mean, square=square, shared=shared)
