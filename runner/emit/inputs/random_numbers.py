"""Writes expressions that draw numbers of a distribution, in two digits."""

from __future__ import annotations

import math

from runner.emit.code.literals import ATOM, PRODUCT, SUM, UNARY, Text
from runner.graph.distributions import (
    MIN_ZERO_SHARE,
    Distribution,
    apply_pointwise,
    normal_before_relu,
)

PLAIN_SPREAD = 1.5
"""Within so many times of 1, either way, a standard deviation is not worth writing."""


def like(d: Distribution, size: str, as_tuple: str, dtype: str) -> Text:
    """An expression that draws elements of this distribution."""
    normal = f"torch.randn({size}{dtype})"
    if d.std <= 1e-5 * abs(d.mean) or d.zeros > 0.995:
        value = "torch.zeros" if abs(d.mean) < 1e-30 or d.zeros > 0.995 else "torch.full"
        if value == "torch.zeros":
            return Text(f"torch.zeros({size}{dtype})")
        return Text(f"torch.full({as_tuple}, {float(rounded(d.mean))}{dtype})")
    if d.low >= 0 and d.zeros > MIN_ZERO_SHARE:
        mean, std = normal_before_relu(d)
        inner = _scaled(normal, mean, std)
        if d.high < mean + 4 * std:
            return Text(f"{inner.at(ATOM)}.clamp(0, {d.high:g})")
        return Text(f"torch.relu({inner.text})")
    if d.low >= 0 and d.high <= 1 and d.mean < 1:
        if d.std > 0.22:
            return Text(f"torch.rand({size}{dtype})")
        if d.mean > 0.05:
            slope = d.mean * (1 - d.mean)
            inner = _scaled(normal, math.log(d.mean / (1 - d.mean)), min(d.std / slope, 2.5))
            return Text(f"torch.sigmoid({inner.text})")
    if d.low >= 0:
        return _positive(d, normal)
    if d.high <= 0:
        text = _positive(d.scale(-1.0), normal)
        return Text(f"-{text.at(UNARY)}", UNARY)
    if d.low >= -1 and d.high <= 1 and d.std > 0.2:
        inner = _scaled(normal, math.atanh(max(min(d.mean, 0.98), -0.98)), _before_tanh(d.std))
        return Text(f"torch.tanh({inner.text})")
    if MIN_ZERO_SHARE * 2 < d.zeros < 1:
        std = d.std / math.sqrt(1 - d.zeros)
        inner = _scaled(normal, d.mean / (1 - d.zeros), std)
        kept = f"(torch.rand({size}) > {rounded(d.zeros)})"
        return Text(f"{inner.at(PRODUCT)} * {kept}", PRODUCT)
    return _scaled(normal, d.mean, d.std)


def like_in_place(d: Distribution, normal: str) -> Text:
    """The same, nearly, in the memory of one tensor."""
    positive = d.low >= 0
    mean, std = normal_before_relu(d) if positive and d.zeros > MIN_ZERO_SHARE else (d.mean, d.std)
    text = normal
    if not 1 / PLAIN_SPREAD <= std <= PLAIN_SPREAD:
        text += f".mul_({rounded(std)})"
    if abs(mean) > 0.25 * std:
        text += f".add_({rounded(mean)})"
    if positive and d.high < math.inf:
        return Text(f"{text}.clamp_(0, {d.high:g})")
    if positive:
        return Text(text + (".relu_()" if d.zeros > MIN_ZERO_SHARE else ".abs_()"))
    return Text(text)


def is_positive(d: Distribution) -> bool:
    return d.low >= 0 and d.zeros <= MIN_ZERO_SHARE


def _positive(d: Distribution, normal: str) -> Text:
    if d.mean > 4 * d.std:
        return _scaled(normal, d.mean, d.std)
    if d.mean <= 0 or d.square <= d.mean**2 or 0.8 < d.mean / d.std < 2:
        return _scaled(f"{normal}.abs()", 0.0, math.sqrt(d.square))
    ratio = math.log(d.square / d.mean**2)
    inner = _scaled(normal, math.log(d.mean) - ratio / 2, math.sqrt(ratio))
    return Text(f"torch.exp({inner.text})")


def _before_tanh(std: float) -> float:
    """The spread of normal numbers whose tanh has this one."""
    low, high = 0.0, 8.0
    for _ in range(20):
        middle = (low + high) / 2
        made = apply_pointwise(Distribution(square=middle**2), math.tanh)
        low, high = (middle, high) if made.std < std else (low, middle)
    return low


def _scaled(draw: str, mean: float, std: float) -> Text:
    """Numbers drawn with a mean of 0 and a spread of 1, moved and spread where that matters."""
    text = Text(draw)
    if not 1 / PLAIN_SPREAD <= std <= PLAIN_SPREAD:
        text = Text(f"{draw} * {rounded(std)}", PRODUCT)
    if abs(mean) > 0.25 * std:
        text = Text(f"{text.text} {'-' if mean < 0 else '+'} {rounded(abs(mean))}", SUM)
    return text


def rounded(number: float) -> str:
    """Two digits of a number."""
    return f"{float(f'{number:.2g}'):g}"
