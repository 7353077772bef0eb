"""Defines rules for sums, means and maxima along a dimension: reductions, pools, softmax."""

from __future__ import annotations

import math
from dataclasses import replace
from math import prod
from statistics import NormalDist

from runner.graph.distributions.distribution import (
    MIN_ZERO_SHARE,
    Distribution,
    without_bounds,
)
from runner.graph.distributions.pointwise import NODES, normal_before_relu
from runner.graph.distributions.values import Rule, Values, number_or, per_dimension
from runner.graph.ir import Operation

NEIGHBOUR_EXPONENT = 0.75
"""Exponent that turns a number of similar neighbours into a number of independent ones."""


def sum_elements(d: Distribution, count: float, channels: float, average: bool) -> Distribution:
    """Return the distribution of a sum or mean of `count` elements from `channels` channels."""
    shared_square = d.mean**2 + (d.shared - d.mean**2) / max(channels, 1)
    square = shared_square + (d.square - d.shared) / max(count, 1)
    result = replace(
        d,
        square=square,
        shared=shared_square,
        zeros=1.0 if d.zeros == 1 else 0.0 if count > 1 else d.zeros,
        structured=False,
        infinite=0.0,
    )
    return result if average else result.scale(count)


def _reduce(values: Values, op: Operation) -> Distribution:
    d, shape = values.distribution(op.args[0]), values.shape(op.args[0])
    count, channels = count_reduced(d, shape, op)
    result = sum_elements(d, count, channels, op.name == "mean")
    return replace(result, zeros=zero_window_share(d, count)) if channels == 1 else result


def count_reduced(d: Distribution, shape: tuple[int, ...], op: Operation) -> tuple[int, int]:
    """Return how many elements a reduction combines, and how many channels they come from."""
    dims = op.arg("dim", op.arg("dims"))
    listed_dims = dims if isinstance(dims, tuple) else (dims,) if isinstance(dims, int) else ()
    reduced_dims = {int(number_or(x, 0.0)) % len(shape) for x in listed_dims} if shape else set()
    reduced_dims = reduced_dims or set(range(len(shape)))
    channel = d.channel % len(shape) if shape else 0
    return prod(shape[x] for x in reduced_dims), shape[channel] if channel in reduced_dims else 1


def _spread(values: Values, op: Operation) -> Distribution:
    """Return the distribution of the variance or standard deviation of elements."""
    d = values.distribution(op.args[0])
    value = d.variance if op.name.startswith("var") else d.std
    return Distribution(value, value**2 * 1.01, value**2, 0.0, channel=d.channel)


def _average_pool(values: Values, op: Operation) -> Distribution:
    before, after = values.shape(op.args[0]), values.result_shape(op)
    kernel = op.arg("kernel_size")
    spatial = len(before) - 2
    count = prod(per_dimension(kernel, int(op.name[-2]))) if kernel is not None else None
    count = count or max(prod(before) // max(prod(after), 1), 1)
    d = values.distribution(op.args[0])
    result = replace(sum_elements(d, count, 1, True), zeros=zero_window_share(d, count))
    return replace(result, channel=-spatial - 1 if spatial > 0 else -1)


def _maximum(values: Values, op: Operation) -> Distribution:
    """Return the distribution of the greatest of several elements that resemble each other."""
    d, before, after = (
        values.distribution(op.args[0]),
        values.shape(op.args[0]),
        values.result_shape(op),
    )
    kernel = op.arg("kernel_size")
    digits = [c for c in op.name if c.isdigit()]
    if kernel is not None and digits:
        count = prod(per_dimension(kernel, int(digits[0]))) ** NEIGHBOUR_EXPONENT
    else:
        count = (prod(before) / max(prod(after), 1)) ** NEIGHBOUR_EXPONENT
    if count <= 1:
        return replace(d, structured=False)
    mean, between, within = spreads_before_relu(d)
    quantiles = [((i + 0.5) / 16) ** (1 / count) for i in range(16)]
    nodes = [NormalDist().inv_cdf(q) for q in quantiles]
    maxima = [
        [max(min(mean + between * c + within * x, d.high), d.low) for x in nodes] for c in NODES
    ]
    flat = [v for row in maxima for v in row]
    return replace(
        d,
        mean=sum(flat) / len(flat),
        square=sum(v * v for v in flat) / len(flat),
        shared=sum((sum(row) / len(row)) ** 2 for row in maxima) / len(maxima),
        zeros=sum(v == 0 for v in flat) / len(flat) if d.zeros else 0.0,
        structured=False,
    )


def spreads_before_relu(d: Distribution) -> tuple[float, float, float]:
    """Return the mean and the spreads between and within channels, before a relu if any."""
    mean, std = (
        normal_before_relu(d) if d.low == 0 and d.zeros > MIN_ZERO_SHARE else (d.mean, d.std)
    )
    between_share = max(d.shared - d.mean**2, 0.0) / d.variance if d.variance else 1.0
    return mean, std * math.sqrt(between_share), std * math.sqrt(1 - between_share)


def zero_window_share(d: Distribution, count: int) -> float:
    """Return the share of windows of one channel that hold only zeros."""
    if d.zeros <= MIN_ZERO_SHARE or d.low < 0:
        return 0.0
    mean, between, within = spreads_before_relu(d)
    unit = NormalDist()
    channel_shares = [unit.cdf(-(mean + between * node) / (within or 1e-30)) for node in NODES]
    return math.fsum(share**count for share in channel_shares) / len(channel_shares)


def _softmax(values: Values, op: Operation) -> Distribution:
    dim = op.arg("dim", -1)
    length = values.shape(op.args[0])[dim if isinstance(dim, int) else -1]
    return softmax_distribution(values.distribution(op.args[0]), length)


def _log_softmax(values: Values, op: Operation) -> Distribution:
    d, dim = values.distribution(op.args[0]), op.arg("dim", -1)
    length = values.shape(op.args[0])[dim if isinstance(dim, int) else -1]
    mean = -math.log(length) - d.variance / 2
    return Distribution(mean, mean**2 + d.variance, mean**2, high=0.0, channel=d.channel)


def softmax_distribution(scores: Distribution, length: int) -> Distribution:
    """Return the distribution of a softmax over `length` scores."""
    finite_count = max(length * (1 - scores.infinite), 1.0)
    length_factor = (
        math.log(length) / 2 + 1 if scores.infinite > 0.4 else 1.0
    )  # The rows differ in length.
    square = min(
        math.exp(min(scores.variance, 30.0)) * length_factor / (finite_count * length), 1 / length
    )
    between = math.exp(min(scores.shared - scores.mean**2, 30.0)) / length**2
    return Distribution(
        1 / length,
        max(square, 1 / length**2),
        min(between, square),
        0.0,
        1.0,
        scores.infinite,
        structured=True,
        channel=scores.channel,
    )


def _cumulative_sum(values: Values, op: Operation) -> Distribution:
    """Return the distribution of a cumulative sum."""
    d, shape, dim = values.distribution(op.args[0]), values.shape(op.args[0]), op.arg("dim", -1)
    n = shape[dim if isinstance(dim, int) else -1]
    mean = d.mean * (n + 1) / 2
    within = d.square - d.shared
    steps = (n + 1) * (2 * n + 1) / 6
    return replace(
        without_bounds(d),
        mean=mean,
        square=within * (n + 1) / 2 + d.shared * steps,
        shared=d.shared * ((n + 1) / 2) ** 2,
        low=0.0 if d.low >= 0 else -math.inf,
        high=0.0 if d.high <= 0 else math.inf,
        structured=True,
    )


def _topk(values: Values, op: Operation) -> tuple[Distribution, ...]:
    d, n = values.distribution(op.args[0]), values.shape(op.args[0])[-1]
    k = int(number_or(op.arg("k"), 1.0))
    normal = NormalDist(d.mean, d.std or 1e-30)
    highest = [normal.inv_cdf(1 - (i + 0.6) / (n + 0.2)) for i in range(min(k, n))]
    mean = sum(highest) / len(highest)
    spread = d.variance / max(n, 1) ** 0.5
    square = sum(v * v for v in highest) / len(highest) + spread
    index = Distribution((n - 1) / 2, n * n / 3, low=0.0, high=n - 1.0)
    return replace(d, mean=mean, square=square, shared=mean**2, structured=False), index


REDUCTIONS: dict[str, Rule] = {
    "mean": _reduce, "sum": _reduce, "var": _spread, "std": _spread, "cumsum": _cumulative_sum,
    **{f"{pool}_pool{n}d": _average_pool for pool in ("avg", "adaptive_avg") for n in (1, 2, 3)},
    **{f"{pool}_pool{n}d": _maximum for pool in ("max", "adaptive_max") for n in (1, 2, 3)},
    "max_pool2d_with_indices": _maximum, "amax": _maximum, "max": _maximum, "topk": _topk,
    "softmax": _softmax, "_softmax": _softmax, "_safe_softmax": _softmax,
    "log_softmax": _log_softmax, "_log_softmax": _log_softmax,
}  # fmt: skip
