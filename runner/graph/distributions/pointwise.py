"""Defines rules for functions of each element: activations, powers, limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

from runner.graph.distributions.distribution import Distribution, without_bounds
from runner.graph.distributions.values import Rule, Values, number_or
from runner.graph.ir import Operation

NODES = [NormalDist().inv_cdf((i + 0.5) / 16) for i in range(16)]
"""Points of the standard normal distribution, each of which represents an equal share of it."""


def apply_pointwise(d: Distribution, function: Callable[[float], float]) -> Distribution:
    """Return the distribution of a function of each element."""

    def value(x: float) -> float:
        x = max(min(x, d.high), d.low)
        try:
            return max(min(function(x), 1e15), -1e15)
        except (ValueError, OverflowError, ZeroDivisionError):
            return 1e15 if x > 0 else 0.0

    between = math.sqrt(max(d.shared - d.mean**2, 0.0))
    within = math.sqrt(max(d.square - d.shared, 0.0))
    means, squares = [], []
    for channel in NODES if between else [0.0]:
        center = d.mean + between * channel
        results = [value(center + within * node) for node in (NODES if within else [0.0])]
        means.append(sum(results) / len(results))
        squares.append(sum(v * v for v in results) / len(results))
    lowest, highest = _value_range(d, value)
    normal = NormalDist(d.mean, d.std or 1e-30)
    points = [(i + 0.5) / 200 for i in range(200)]
    zeros = sum(value(normal.inv_cdf(p)) == 0 for p in points) / len(points)
    if value(0.0) == 0 and d.zeros:
        zeros = max(zeros, d.zeros, d.zeros + (1 - d.zeros) * zeros if d.low < 0 else 0.0)
    infinite = d.infinite
    if d.infinite:
        try:
            end = function(-1e30)
        except OverflowError:
            end = 0.0
        if abs(end) < 1e20:
            zeros, infinite = d.infinite + (1 - d.infinite) * zeros, 0.0
            means = [m * (1 - d.infinite) + end * d.infinite for m in means]
            squares = [s * (1 - d.infinite) + end**2 * d.infinite for s in squares]
            lowest = min(lowest, end)
    return replace(
        d,
        mean=sum(means) / len(means),
        square=sum(squares) / len(squares),
        shared=sum(m * m for m in means) / len(means),
        low=lowest,
        high=highest,
        zeros=zeros,
        infinite=infinite,
    )


def _value_range(d: Distribution, value: Callable[[float], float]) -> tuple[float, float]:
    """Return the least and the greatest value that a function takes within the bounds."""
    low, high = max(d.low, -1e6), min(d.high, 1e6)
    inner = [-(2.0**k) for k in range(-6, 7)] + [0.0] + [2.0**k for k in range(-6, 7)]
    probes = [low, high, *(p for p in (*inner, -0.75, -1.3) if low < p < high)]
    results = [value(p) for p in probes]
    least, largest = min(results), max(results)
    return (
        -math.inf if least < -1e3 else least,
        math.inf if largest > 1e3 else largest,
    )


def normal_before_relu(d: Distribution) -> tuple[float, float]:
    """Return mean and standard deviation of the normal distribution whose relu has these zeros."""
    unit = NormalDist()
    t = unit.inv_cdf(min(max(1 - d.zeros, 1e-4), 1 - 1e-4))
    square = (1 + t * t) * unit.cdf(t) + t * unit.pdf(t)
    std = math.sqrt(d.square / square) if square > 0 else 0.0
    return t * std, std


def _softplus(x: float) -> float:
    return x if x > 30 else math.log1p(math.exp(x))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -500 else 0.0


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "relu6": lambda x: min(max(x, 0.0), 6.0),
    "sigmoid": sigmoid,
    "hardsigmoid": lambda x: min(max(x / 6 + 0.5, 0.0), 1.0),
    "hardswish": lambda x: x * min(max(x / 6 + 0.5, 0.0), 1.0),
    "tanh": math.tanh,
    "exp": math.exp,
    "expm1": math.expm1,
    "log": lambda x: math.log(max(x, 1e-12)),
    "log1p": lambda x: math.log1p(max(x, -1 + 1e-12)),
    "log2": lambda x: math.log2(max(x, 1e-12)),
    "sqrt": lambda x: math.sqrt(max(x, 0.0)),
    "rsqrt": lambda x: 1 / math.sqrt(max(x, 1e-12)),
    "reciprocal": lambda x: 1 / x,
    "abs": abs,
    "neg": lambda x: -x,
    "square": lambda x: x * x,
    "gelu": lambda x: x * NormalDist().cdf(x),
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * math.tanh(_softplus(x)),
    "selu": lambda x: 1.0507 * (x if x > 0 else 1.67326 * math.expm1(x)),
    "elu": lambda x: x if x > 0 else math.expm1(x),
    "softplus": _softplus,
    "log_sigmoid": lambda x: -_softplus(-x),
    "softsign": lambda x: x / (1 + abs(x)),
    "sin": math.sin,
    "cos": math.cos,
    "erf": math.erf,
    "erfinv": lambda x: NormalDist().inv_cdf((min(max(x, -0.999), 0.999) + 1) / 2) / math.sqrt(2),
    "sign": lambda x: float((x > 0) - (x < 0)),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "frac": lambda x: math.fmod(x, 1.0),
}

BELOW_ZERO = {"gelu", "silu", "mish", "selu", "elu", "hardswish"}
"""Activations whose minimum is a little below 0; emitted files run them to make such values."""


def _clamp(values: Values, op: Operation) -> Distribution:
    minimum = op.arg("min", op.arg("min_val", -1.0 if op.name.startswith("hardtanh") else None))
    maximum = op.arg("max", op.arg("max_val", 1.0 if op.name.startswith("hardtanh") else None))
    low, high = number_or(minimum, -math.inf), number_or(maximum, math.inf)
    result = apply_pointwise(values.distribution(op.args[0]), lambda x: min(max(x, low), high))
    return replace(result, low=max(result.low, low), high=min(result.high, high))


def _extreme(values: Values, op: Operation) -> Distribution:
    """Return the distribution of the larger, or the smaller, of two tensors."""
    choose = max if op.name == "maximum" else min
    a, b = values.distribution(op.args[0]), values.distribution(op.args[1])
    if a.low == a.high:
        a, b = b, a
    result = (
        apply_pointwise(a, lambda x: choose(x, b.mean)) if b.low == b.high else without_bounds(a)
    )
    return replace(result, low=choose(a.low, b.low), high=choose(a.high, b.high))


def _power(values: Values, op: Operation) -> Distribution:
    base, exponent = values.distribution(op.args[0]), values.distribution(op.args[1])
    if exponent.low < exponent.high:
        return apply_pointwise(exponent, lambda x: abs(base.mean) ** x)
    power = exponent.mean
    if power == int(power):
        return apply_pointwise(base, lambda x: x ** int(power))
    return apply_pointwise(base, lambda x: max(x, 0.0) ** power)


POINTWISE: dict[str, Rule] = {
    "pow": _power,
    "maximum": _extreme,
    "minimum": _extreme,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "hardtanh": _clamp,
}
