"""Defines rules for normalisations and for the norm of a vector."""

from __future__ import annotations

import math
from dataclasses import replace

from runner.graph.distributions.distribution import (
    Distribution,
    add,
    constant,
    multiply,
)
from runner.graph.distributions.pointwise import apply_pointwise
from runner.graph.distributions.reductions import count_reduced, sum_elements
from runner.graph.distributions.values import Rule, Values, bias_of, number_or
from runner.graph.ir import Operation, Ref


def _normalize(
    d: Distribution, variance: float, shared: float, eps: float, weight: Distribution
) -> Distribution:
    scale = 1 / math.sqrt(variance + eps) if variance + eps > 0 else 0.0
    result = Distribution(0.0, variance * scale**2, shared * scale**2, channel=d.channel)
    return replace(multiply(result, weight), structured=False)


def _layer_norm(values: Values, op: Operation) -> Distribution:
    d = values.distribution(op.args[0])
    result = _normalize(
        d,
        d.variance,
        d.shared - d.mean**2,
        number_or(op.arg("eps"), 1e-5),
        weight_of(values, op),
    )
    bias = bias_of(values, op, 3)
    return add(result, bias) if bias is not None else result


def _rms_norm(values: Values, op: Operation) -> Distribution:
    d = values.distribution(op.args[0])
    scale = 1 / math.sqrt(d.square + number_or(op.arg("eps"), 1e-6))
    return multiply(replace(d.scale(scale), structured=False), weight_of(values, op))


def weight_of(values: Values, op: Operation) -> Distribution:
    """Return the distribution of a normalisation's weight; the constant 1 if it has none."""
    weight = op.arg("weight")
    return values.distribution(weight) if isinstance(weight, Ref) else constant(1.0)


def _batch_norm(values: Values, op: Operation) -> Distribution:
    d, eps = values.distribution(op.args[0]), number_or(op.arg("eps"), 1e-5)
    weight, bias = weight_of(values, op), bias_of(values, op)
    dims = len(values.shape(op.args[0]))
    d = replace(d, channel=1 - dims if dims > 2 else -1)
    if op.args[5] is True or not isinstance(op.args[3], Ref):
        result = _normalize(d, d.square - d.shared, 0.0, eps, weight)
    else:
        mean, variance = values.distribution(op.args[3]), values.distribution(op.args[4])
        centered = add(d, mean.scale(-1.0)) if mean.square else d
        result = multiply(centered.scale(1 / math.sqrt(max(variance.mean, 0.0) + eps)), weight)
    if bias is not None and bias.square:
        result = add(result, bias)
    return replace(result, structured=False)


def _norm(values: Values, op: Operation) -> Distribution:
    d, shape = values.distribution(op.args[0]), values.shape(op.args[0])
    count, channels = count_reduced(d, shape, op)
    power = number_or(op.arg("p", op.arg("ord", 2)), 2.0)
    powers = apply_pointwise(d, lambda x: abs(x) ** power)
    total = sum_elements(powers, count, channels, False)
    total = replace(total, square=max(total.mean**2 * (1 + 2 / count), total.mean**2))
    result = apply_pointwise(total, lambda x: max(x, 0.0) ** (1 / power))
    return replace(result, low=0.0, zeros=0.0, structured=False)


NORMS: dict[str, Rule] = {
    "layer_norm": _layer_norm, "group_norm": _layer_norm, "instance_norm": _layer_norm,
    "rms_norm": _rms_norm, "batch_norm": _batch_norm,
    "linalg_vector_norm": _norm, "norm": _norm,
}  # fmt: skip
