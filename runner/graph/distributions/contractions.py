"""Defines rules for contractions: layers with random weights, products of activations, attention.

They follow mean field theory (Poole et al., 2016): a value is normal, and each of its channels has
its own mean, which random weights pass on.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from math import prod

from runner.graph.distributions.distribution import Distribution, plus, times
from runner.graph.distributions.pointwise import pointwise
from runner.graph.distributions.reductions import added_up, all_zero, softmax_shares
from runner.graph.distributions.values import Rule, Values, bias_of, number_or, per_dimension
from runner.graph.ir import Operation


def _contracted(
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


def _projected(
    x: Distribution, weight: Distribution, bias: Distribution | None, fan: float
) -> Distribution:
    """Return the distribution after a layer with random weights and `fan` inputs per output."""
    direct = weight.mean**2

    def of(part: float) -> float:
        return fan * weight.variance * part + direct * (
            fan * max(part - x.mean**2, 0.0) + (fan * x.mean) ** 2
        )

    made = Distribution(fan * weight.mean * x.mean, of(x.square), of(x.shared))
    return plus(made, replace(bias, shared=bias.square)) if bias is not None else made


def _linear(values: Values, op: Operation) -> Distribution:
    fan = values.shape(op.args[1])[-1]
    return _projected(values.of(op.args[0]), values.of(op.args[1]), bias_of(values, op), fan)


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
                fan *= _covered(size, kernel, pad, stride, gap)
    x, bias = values.of(op.args[0]), bias_of(values, op)
    made = replace(_projected(x, values.of(op.args[1]), bias, fan), channel=-spatial - 1)
    alone = weight[1] == 1 and bias is None  # a depthwise convolution
    return replace(made, zeros=all_zero(x, prod(weight[2:]))) if alone else made


@lru_cache(maxsize=1024)
def _covered(size: int, kernel: int, pad: int, stride: int, gap: int) -> float:
    """Return the share of a kernel's taps that lie on the image and not on its padding."""
    places = range(-pad, size + pad - gap * (kernel - 1), stride)
    if not len(places) or not pad:
        return 1.0
    inside = sum(0 <= begin + gap * k < size for begin in places for k in range(kernel))
    return inside / (len(places) * kernel)


def _matmul(values: Values, op: Operation) -> Distribution:
    left, right = op.args[-2:] if op.name in {"addmm", "baddbmm"} else op.args[:2]
    a, b, count = values.of(left), values.of(right), values.shape(left)[-1]
    if values.is_weight(right):
        made = _projected(a, b, None, count)
    else:
        made = _contracted(a, b, count, a.channel == -1, b.channel == -2)
    if op.name in {"addmm", "baddbmm"}:
        made = plus(made.times(number_or(op.arg("alpha"), 1.0)), values.of(op.args[0]))
    return made


def _einsum(values: Values, op: Operation) -> Distribution:
    equation, operands = str(op.args[0]).replace(" ", ""), op.args[1]
    assert isinstance(operands, tuple)
    before, _, after = equation.partition("->")
    terms = before.split(",")
    sizes: dict[str, int] = {}
    for letters, operand in zip(terms, operands, strict=True):
        sizes |= dict(zip(letters, values.shape(operand), strict=True))
    count = prod(size for letter, size in sizes.items() if letter not in after)
    made = values.of(operands[0])
    for operand in operands[1:-1]:
        made = times(made, values.of(operand))
    if len(operands) == 1:
        return made if count == 1 else added_up(made, count, count, False)
    last = values.of(operands[-1])
    if count == 1:
        return times(made, last)
    over = [
        d.channel >= -len(t) and t[d.channel] not in after
        for d, t in ((made, terms[0]), (last, terms[-1]))
    ]
    return _contracted(made, last, count, *over)


def _attention(values: Values, op: Operation) -> Distribution:
    query, key, value = (values.of(a) for a in op.args[:3])
    width, length = values.shape(op.args[0])[-1], values.shape(op.args[1])[-2]
    scale = number_or(op.arg("scale"), 1 / math.sqrt(width))
    scores = _contracted(query, key, width).times(scale)
    return _contracted(softmax_shares(scores, length), value, length, over_b=False)


def _recurrent(values: Values, op: Operation) -> tuple[Distribution, ...]:
    """Return the distributions of a recurrent layer's outputs, with gates that are half open."""
    hidden = values.of(op.args[0])
    params = next(
        a for a in op.args[1:] if isinstance(a, tuple) and any(len(values.shape(p)) == 2 for p in a)
    )
    weights = [p for p in params if len(values.shape(p)) == 2]
    both = 2 if op.arg("bidirectional") is True else 1
    biases = [values.of(p) for p in params if len(values.shape(p)) == 1]
    cell = hidden
    for into, again in list(zip(weights[::2], weights[1::2], strict=False))[::both]:
        made = _projected(hidden, values.of(into), None, values.shape(into)[-1])
        for _ in range(4):  # The state that comes back adds to the input.
            back = _projected(hidden, values.of(again), None, values.shape(again)[-1])
            total = plus(made, back)
            for bias in biases[:2]:
                total = plus(total, replace(bias, shared=bias.square))
            new = pointwise(total, math.tanh)
            if op.name.startswith(("lstm", "gru")):
                averaged = new.shared + (new.square - new.shared) / 3
                new = replace(new, square=averaged)
            cell = new
            if op.name.startswith("lstm"):
                new = pointwise(new, math.tanh).times(0.5)
            hidden = replace(new, low=-1.0, high=1.0)
    return hidden, hidden, cell


CONTRACTIONS: dict[str, Rule] = {
    "linear": _linear, "conv1d": _conv, "conv2d": _conv, "conv3d": _conv,
    "conv_transpose1d": _conv, "conv_transpose2d": _conv, "conv_transpose3d": _conv,
    "matmul": _matmul, "bmm": _matmul, "mm": _matmul, "addmm": _matmul, "baddbmm": _matmul,
    "mv": _matmul, "einsum": _einsum, "scaled_dot_product_attention": _attention,
    "lstm": _recurrent, "gru": _recurrent, "rnn_tanh": _recurrent, "rnn_relu": _recurrent,
}  # fmt: skip
