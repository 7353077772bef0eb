"""Defines rules for contractions: layers with random weights, products of activations, attention.

They follow mean field theory (Poole et al., 2016): a value is normal, and each of its channels has
its own mean, which random weights pass on.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from math import prod

from runner.graph.distributions.distribution import Distribution, add, multiply
from runner.graph.distributions.pointwise import apply_pointwise
from runner.graph.distributions.reductions import (
    softmax_distribution,
    sum_elements,
    zero_window_share,
)
from runner.graph.distributions.values import Rule, Values, bias_of, number_or, per_dimension
from runner.graph.ir import Operation


def _sum_products(
    a: Distribution,
    b: Distribution,
    count: float,
    over_a: bool = True,
    over_b: bool = True,
) -> Distribution:
    """Return the distribution of a sum of `count` products of independent elements.

    `over_a`, `over_b`: whether the sum runs over the channels, so that their means cancel out.
    """
    across_a = a.mean**2 if over_a else a.shared
    across_b = b.mean**2 if over_b else b.shared
    pairs = count * (count - 1)
    square = count * a.square * b.square + pairs * across_a * across_b
    signed = (a.low >= 0) and (b.low >= 0)
    return Distribution(
        mean=count * a.mean * b.mean,
        square=square,
        shared=count * a.shared * b.shared + pairs * across_a * across_b,
        low=0.0 if signed else -math.inf,
        high=b.high if a.high <= 1 and b.low >= 0 and a.structured else math.inf,
    )


def _project(
    x: Distribution, weight: Distribution, bias: Distribution | None, fan: float
) -> Distribution:
    """Return the distribution after a layer with random weights and `fan` inputs per output."""
    direct = weight.mean**2

    def transform(part: float) -> float:
        return fan * weight.variance * part + direct * (
            fan * max(part - x.mean**2, 0.0) + (fan * x.mean) ** 2
        )

    result = Distribution(fan * weight.mean * x.mean, transform(x.square), transform(x.shared))
    return add(result, replace(bias, shared=bias.square)) if bias is not None else result


def _linear(values: Values, op: Operation) -> Distribution:
    fan = values.shape(op.args[1])[-1]
    return _project(
        values.distribution(op.args[0]), values.distribution(op.args[1]), bias_of(values, op), fan
    )


def _conv(values: Values, op: Operation) -> Distribution:
    weight, image = values.shape(op.args[1]), values.shape(op.args[0])
    spatial = len(weight) - 2
    fan = float(prod(weight[1:]))
    if "transpose" in op.name:
        strides = per_dimension(op.arg("stride", 1), spatial)
        groups = int(number_or(op.arg("groups"), 1.0))
        fan = weight[0] / groups * prod(weight[2:]) / prod(strides)
    else:
        padding = op.arg("padding", 0)
        if not isinstance(padding, str):
            steps = (
                per_dimension(op.arg("stride", 1), spatial),
                per_dimension(op.arg("dilation", 1), spatial),
            )
            pads = per_dimension(padding, spatial)
            for size, kernel, pad, stride, gap in zip(
                image[-spatial:], weight[2:], pads, *steps, strict=True
            ):
                fan *= _coverage(size, kernel, pad, stride, gap)
    x, bias = values.distribution(op.args[0]), bias_of(values, op)
    result = replace(_project(x, values.distribution(op.args[1]), bias, fan), channel=-spatial - 1)
    depthwise = weight[1] == 1 and bias is None  # one input channel for each output channel
    return replace(result, zeros=zero_window_share(x, prod(weight[2:]))) if depthwise else result


@lru_cache(maxsize=1024)
def _coverage(size: int, kernel: int, pad: int, stride: int, gap: int) -> float:
    """Return the share of a kernel's taps that lie on the image and not on its padding."""
    places = range(-pad, size + pad - gap * (kernel - 1), stride)
    if not len(places) or not pad:
        return 1.0
    inside = sum(0 <= begin + gap * k < size for begin in places for k in range(kernel))
    return inside / (len(places) * kernel)


def _matmul(values: Values, op: Operation) -> Distribution:
    lhs, rhs = op.args[-2:] if op.name in {"addmm", "baddbmm"} else op.args[:2]
    a, b, count = values.distribution(lhs), values.distribution(rhs), values.shape(lhs)[-1]
    if values.is_weight(rhs):
        result = _project(a, b, None, count)
    else:
        result = _sum_products(a, b, count, a.channel == -1, b.channel == -2)
    if op.name in {"addmm", "baddbmm"}:
        result = add(result.scale(number_or(op.arg("alpha"), 1.0)), values.distribution(op.args[0]))
    return result


def _einsum(values: Values, op: Operation) -> Distribution:
    equation, operands = str(op.args[0]).replace(" ", ""), op.args[1]
    assert isinstance(operands, tuple)
    inputs_text, _, result_letters = equation.partition("->")
    terms = inputs_text.split(",")
    sizes: dict[str, int] = {}
    for letters, operand in zip(terms, operands, strict=True):
        sizes |= dict(zip(letters, values.shape(operand), strict=True))
    count = prod(size for letter, size in sizes.items() if letter not in result_letters)
    result = values.distribution(operands[0])
    for operand in operands[1:-1]:
        result = multiply(result, values.distribution(operand))
    if len(operands) == 1:
        return result if count == 1 else sum_elements(result, count, count, False)
    last_operand = values.distribution(operands[-1])
    if count == 1:
        return multiply(result, last_operand)
    over_channels = [
        d.channel >= -len(t) and t[d.channel] not in result_letters
        for d, t in ((result, terms[0]), (last_operand, terms[-1]))
    ]
    return _sum_products(result, last_operand, count, *over_channels)


def _attention(values: Values, op: Operation) -> Distribution:
    query, key, value = (values.distribution(a) for a in op.args[:3])
    width, length = values.shape(op.args[0])[-1], values.shape(op.args[1])[-2]
    scale = number_or(op.arg("scale"), 1 / math.sqrt(width))
    scores = _sum_products(query, key, width).scale(scale)
    return _sum_products(softmax_distribution(scores, length), value, length, over_b=False)


def _recurrent(values: Values, op: Operation) -> tuple[Distribution, ...]:
    """Return the distributions of a recurrent layer's outputs, with gates that are half open."""
    hidden = values.distribution(op.args[0])
    params = next(
        a for a in op.args[1:] if isinstance(a, tuple) and any(len(values.shape(p)) == 2 for p in a)
    )
    weights = [p for p in params if len(values.shape(p)) == 2]
    directions = 2 if op.arg("bidirectional") is True else 1
    biases = [values.distribution(p) for p in params if len(values.shape(p)) == 1]
    cell = hidden
    for input_weight, hidden_weight in list(zip(weights[::2], weights[1::2], strict=False))[
        ::directions
    ]:
        result = _project(
            hidden, values.distribution(input_weight), None, values.shape(input_weight)[-1]
        )
        for _ in range(4):  # The state that comes back adds to the input.
            feedback = _project(
                hidden, values.distribution(hidden_weight), None, values.shape(hidden_weight)[-1]
            )
            total = add(result, feedback)
            for bias in biases[:2]:
                total = add(total, replace(bias, shared=bias.square))
            new = apply_pointwise(total, math.tanh)
            if op.name.startswith(("lstm", "gru")):
                averaged = new.shared + (new.square - new.shared) / 3
                new = replace(new, square=averaged)
            cell = new
            if op.name.startswith("lstm"):
                new = apply_pointwise(new, math.tanh).scale(0.5)
            hidden = replace(new, low=-1.0, high=1.0)
    return hidden, hidden, cell


def _cell(values: Values, op: Operation) -> tuple[Distribution, Distribution]:
    """Return the distributions of a recurrent cell's states, with gates that are half open."""
    return Distribution(square=0.1, shared=0.03, low=-1.0, high=1.0), Distribution(square=0.2)


CONTRACTIONS: dict[str, Rule] = {
    "linear": _linear, "conv1d": _conv, "conv2d": _conv, "conv3d": _conv,
    "conv_transpose1d": _conv, "conv_transpose2d": _conv, "conv_transpose3d": _conv,
    "matmul": _matmul, "bmm": _matmul, "mm": _matmul, "addmm": _matmul, "baddbmm": _matmul,
    "mv": _matmul, "einsum": _einsum, "scaled_dot_product_attention": _attention,
    "lstm": _recurrent, "gru": _recurrent, "rnn_tanh": _recurrent, "rnn_relu": _recurrent,
    "lstm_cell": _cell, "gru_cell": _cell, "rnn_tanh_cell": _cell,
}  # fmt: skip
