"""Writes expressions that draw random numbers of a distribution, with figures of two digits."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

from runner.emit.code.literals import ATOM, PRODUCT, SUM, UNARY, Expression
from runner.graph.distributions import (
    MIN_ZERO_SHARE,
    Distribution,
    apply_pointwise,
    normal_before_relu,
)

PLAIN_SPREAD = 1.5
"""A standard deviation between 1 / PLAIN_SPREAD and PLAIN_SPREAD is written as 1, that is, not."""

LARGEST = 1e4
"""Greatest root mean square that is drawn. An estimate beyond it is rarely true, because it takes
the operands of each operation for independent; a few products of such numbers overflow."""
_MANY = 0.9
"""Largest share of zeros that is drawn, so that a test sees other numbers as well."""
_FEW = 0.02
"""Share of elements below which others are drawn, because these say nothing about a clamp."""
_UNKNOWN = 1e12
"""Root mean square beyond which an estimate tells nothing."""


def draw_like(d: Distribution, size: str, as_tuple: str, dtype: str) -> Expression:
    """Return an expression that draws elements of a distribution.

    `size` is the shape as arguments (`2, 3`), `as_tuple` as a tuple (`(2, 3)`); `dtype` is '' or
    `, dtype=torch.float16`.
    """
    normal = f"torch.randn({size}{dtype})"
    if d.square > _UNKNOWN**2:
        d = replace(d, square=2 * d.square)  # Its spread is not known, and may be any.
    if d.low == d.high:
        if abs(d.mean) < 1e-30:
            return Expression(f"torch.zeros({size}{dtype})")
        return Expression(f"torch.full({as_tuple}, {float(round_digits(d.mean))}{dtype})")
    d = _vary(d)
    d = _limit(d)
    if d.low >= 0 and d.zeros > MIN_ZERO_SHARE:
        mean, std = normal_before_relu(d)
        inner = _scale_draw(normal, mean, std)
        if d.high < mean + 4 * std:
            return Expression(f"{inner.at(ATOM)}.clamp(0, {d.high:g})")
        return Expression(f"torch.relu({inner.text})")
    if d.low >= 0 and d.high <= 1 and d.mean < 1:
        if d.std > 0.22:
            return Expression(f"torch.rand({size}{dtype})")
        if d.mean > 0.05:
            slope = d.mean * (1 - d.mean)
            inner = _scale_draw(normal, math.log(d.mean / (1 - d.mean)), min(d.std / slope, 2.5))
            return Expression(f"torch.sigmoid({inner.text})")
    if _is_uniform(d):
        return _scale_and_shift(f"torch.rand({size}{dtype})", d.high - d.low, d.low)
    if d.low >= 0:
        return _draw_positive(d, normal)
    if d.high <= 0:
        text = _draw_positive(d.scale(-1.0), normal)
        return Expression(f"-{text.at(UNARY)}", UNARY)
    if d.low >= -1 and d.high <= 1 and d.std > 0.2:
        inner = _scale_draw(
            normal, math.atanh(max(min(d.mean, 0.98), -0.98)), _spread_before_tanh(d.std)
        )
        return Expression(f"torch.tanh({inner.text})")
    if MIN_ZERO_SHARE * 2 < d.zeros < 1:
        std = d.std / math.sqrt(1 - d.zeros)
        inner = _scale_draw(normal, d.mean / (1 - d.zeros), std)
        nonzero = f"(torch.rand({size}) > {round_digits(d.zeros)})"
        return Expression(f"{inner.at(PRODUCT)} * {nonzero}", PRODUCT)
    return _scale_draw(normal, d.mean, d.std)


def draw_on_both_sides(
    d: Distribution, low: float, high: float, size: str, dtype: str
) -> Expression | None:
    """Return an expression of elements between `low` and `high` and beyond, at least one finite.

    None if enough elements of the distribution lie between them.
    """
    normal = NormalDist(d.mean, d.std or 1e-30)
    if d.low == d.high or normal.cdf(high) - normal.cdf(low) > _FEW:
        return None
    if math.isfinite(high - low):
        start = low - (high - low) / 2
        return _scale_and_shift(f"torch.rand({size}{dtype})", 2 * (high - low), start)
    bound = low if math.isfinite(low) else high
    return _scale_and_shift(f"torch.randn({size}{dtype})", d.std or 1.0, bound)


def integer_range(d: Distribution, dtype: str) -> tuple[int, int]:
    """Return the least integer, and one more than the largest, of integers of a distribution.

    Uniform numbers between have its mean and spread, as far as the distribution's bounds and the
    dtype let them; 0 and 1 for one that tells nothing.
    """
    if not 1 < d.std < LARGEST**2:
        return 0, 2
    bits = int(dtype.removeprefix("u").removeprefix("int")) - (not dtype.startswith("u"))
    least, largest = 0 if dtype.startswith("u") else -(2**bits), 2**bits - 1
    half = math.sqrt(3) * d.std
    start, end = (float(round_digits(number)) for number in (d.mean - half, d.mean + half))
    low, high = math.ceil(max(start, d.low, least)), math.floor(min(end, d.high, largest))
    return (low, high + 1) if low < high else (0, 2)


def draw_like_in_place(d: Distribution, normal: str) -> Expression:
    """Return an expression that draws nearly the same elements in the memory of one tensor.

    `normal`: an expression of standard normal numbers.
    """
    d = _limit(d)
    positive = d.low >= 0
    mean, std = normal_before_relu(d) if positive and d.zeros > MIN_ZERO_SHARE else (d.mean, d.std)
    text = normal
    if not 1 / PLAIN_SPREAD <= std <= PLAIN_SPREAD:
        text += f".mul_({round_digits(std)})"
    if abs(mean) > 0.25 * std:
        text += f".add_({round_digits(mean)})"
    if positive and d.high < math.inf:
        return Expression(f"{text}.clamp_(0, {d.high:g})")
    if positive:
        return Expression(text + (".relu_()" if d.zeros > MIN_ZERO_SHARE else ".abs_()"))
    return Expression(text)


def _vary(d: Distribution) -> Distribution:
    """Return the distribution; if it is estimated to be nearly one number, one with more numbers.

    The author's first weights may make a gradient vanish that others do not.
    """
    if d.zeros > _MANY:
        share = (1 - _MANY) / (1 - d.zeros) if d.zeros < 1 and d.square else 0.0
        d = replace(d, zeros=_MANY, mean=d.mean * share, square=d.square * share or 1 - _MANY)
    if d.std <= 1e-5 * abs(d.mean):
        d = replace(d, square=1.01 * d.mean**2 or 1.0)
    return d


def _limit(d: Distribution) -> Distribution:
    largest = math.sqrt(d.square)
    return d.scale(LARGEST / largest) if largest > LARGEST else d


def is_positive(d: Distribution) -> bool:
    """Return whether elements are not negative, and hardly ever zero."""
    return d.low >= 0 and d.zeros <= MIN_ZERO_SHARE


def _is_uniform(d: Distribution) -> bool:
    """Return whether elements have the moments of a uniform distribution between their bounds."""
    width = d.high - d.low
    if not 0 < width < LARGEST:
        return False
    middle, spread = d.low + width / 2, width / math.sqrt(12)
    return abs(d.mean - middle) < width / 50 and abs(d.std / spread - 1) < 0.02


def _draw_positive(d: Distribution, normal: str) -> Expression:
    if d.mean > 4 * d.std:
        return _scale_draw(normal, d.mean, d.std)
    if d.mean <= 0 or d.square <= d.mean**2 or 0.8 < d.mean / d.std < 2:
        return _scale_draw(f"{normal}.abs()", 0.0, math.sqrt(d.square))
    ratio = math.log(d.square / d.mean**2)
    inner = _scale_draw(normal, math.log(d.mean) - ratio / 2, math.sqrt(ratio))
    return Expression(f"torch.exp({inner.text})")


def _spread_before_tanh(std: float) -> float:
    """Return the standard deviation of normal numbers whose tanh has standard deviation `std`."""
    low, high = 0.0, 8.0
    for _ in range(20):
        middle = (low + high) / 2
        squashed = apply_pointwise(Distribution(square=middle**2), math.tanh)
        low, high = (middle, high) if squashed.std < std else (low, middle)
    return low


def _scale_draw(draw: str, mean: float, std: float) -> Expression:
    """Return `draw`, of mean 0 and standard deviation 1, scaled and shifted where that matters."""
    factor = 1.0 if 1 / PLAIN_SPREAD <= std <= PLAIN_SPREAD else std
    return _scale_and_shift(draw, factor, mean if abs(mean) > 0.25 * std else 0.0)


def _scale_and_shift(draw: str, factor: float, shift: float) -> Expression:
    text = Expression(draw)
    if factor != 1:
        text = Expression(f"{draw} * {round_digits(factor)}", PRODUCT)
    if shift:
        text = Expression(
            f"{text.text} {'-' if shift < 0 else '+'} {round_digits(abs(shift))}", SUM
        )
    return text


def round_digits(number: float) -> str:
    """Return a number with two significant digits."""
    return f"{float(f'{number:.2g}'):g}"
