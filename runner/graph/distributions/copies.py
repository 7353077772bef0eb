"""Defines rules for operations that move elements: views, copies, padding, concatenation."""

from __future__ import annotations

import math
from dataclasses import replace
from math import prod

from runner.graph.distributions.distribution import (
    MIN_ZERO_SHARE,
    Distribution,
    boolean,
    constant,
    mix,
)
from runner.graph.distributions.values import Rule, Values, number_or
from runner.graph.ir import Arg, Operation, Ref

_MAX_PIECES = 4
"""Most tensors of different signs that are drawn one by one and concatenated."""


def view_distribution(values: Values, op: Operation) -> Distribution:
    """Return the distribution of a view, whose channels may be in another dimension."""
    d = values.first_distribution(op)
    source = next(op.refs(), None)
    if source is None or not op.outputs[0]:
        return d
    before, after = values.specs[source].shape, values.result_shape(op)
    return replace(d, channel=_channel_after_view(d.channel, before, after, op))


def _channel_after_view(
    channel: int, before: tuple[int, ...], after: tuple[int, ...], op: Operation
) -> int:
    """Return the dimension that holds the channels after a view."""
    if not before or not after:
        return -1
    channel_dim = channel % len(before)
    if op.name == "permute" and isinstance(op.args[1], tuple):
        order = [int(number_or(x, 0.0)) % len(before) for x in op.args[1]]
        return order.index(channel_dim) - len(after)
    if op.name in {"transpose", "swapaxes", "t"}:
        swapped_dims = [int(number_or(x, 0.0)) % len(before) for x in op.args[1:3]] or [0, 1]
        if channel_dim in swapped_dims:
            channel_dim = swapped_dims[1 - swapped_dims.index(channel_dim)]
        return channel_dim - len(after)
    if len(before) == len(after):
        return channel_dim - len(after)
    elements_after = prod(before[channel_dim + 1 :])
    for dim in range(len(after)):
        if after[dim] == before[channel_dim] and prod(after[dim + 1 :]) == elements_after:
            return dim - len(after)
    return -1


def _cat(values: Values, op: Operation) -> Distribution:
    operands = op.args[0] if isinstance(op.args[0], tuple) else op.args
    parts = [
        (prod(values.shape(a)), values.distribution(a)) for a in operands if isinstance(a, Ref)
    ]
    kinds = {d.draw_key for _, d in parts}
    are_different = len(kinds) > 1 and len(parts) <= _MAX_PIECES
    return replace(mix([(float(n), d) for n, d in parts]), structured=are_different)


def _scatter(values: Values, op: Operation) -> Distribution:
    """Return the distribution of a tensor with values written into some of its places."""
    base = values.distribution(op.args[0])
    sources = (op.arg(name) for name in ("src", "value", "values"))
    source: Arg = next((operand for operand in sources if operand), op.args[1])
    if op.name in {"scatter", "scatter_reduce", "index_reduce"}:
        source = op.args[3] if len(op.args) > 3 else source
    places = op.arg("index") if op.name.startswith("scatter") else source
    share = prod(values.shape(places)) / max(prod(values.result_shape(op)), 1) if places else 0.5
    share = min(share, 1.0)
    result = mix([(1 - share, base), (share, values.distribution(source))])
    return replace(result, structured=base.zeros == 1)


def _scatter_add(values: Values, op: Operation) -> Distribution:
    """Return the distribution of a tensor with values added to random places.

    How many values each place receives is a Poisson number.
    """
    base, source = values.distribution(op.args[0]), values.distribution(op.args[3])
    values_per_place = prod(values.shape(op.args[3])) / max(prod(values.result_shape(op)), 1)
    mean = base.mean + values_per_place * source.mean
    return Distribution(
        mean,
        base.variance + values_per_place * source.square + mean**2,
        low=base.low if source.low >= 0 else -math.inf,
        high=base.high if source.high <= 0 else math.inf,
        zeros=base.zeros * math.exp(-values_per_place),
    )


def _pad(values: Values, op: Operation) -> Distribution:
    d = values.distribution(op.args[0])
    if op.name == "pad" and op.arg("mode", "constant") != "constant":
        return d
    share = prod(values.shape(op.args[0])) / max(prod(values.result_shape(op)), 1)
    if share >= 1 - MIN_ZERO_SHARE:
        return d
    value = constant(number_or(op.arg("value"), 0.0))
    return replace(mix([(share, d), (1 - share, value)]), structured=True)


def _triangle(values: Values, op: Operation) -> Distribution:
    zero = constant(0.0)
    return replace(mix([(0.5, values.distribution(op.args[0])), (0.5, zero)]), structured=True)


def _identity_matrix(values: Values, op: Operation) -> Distribution:
    share = 1 / max(values.result_shape(op)[-1], 1)
    return replace(boolean(share, Distribution()), structured=True)


COPIES: dict[str, Rule] = {
    "cat": _cat, "concat": _cat, "stack": _cat, "pad": _pad, "constant_pad_nd": _pad,
    "scatter": _scatter, "slice_scatter": _scatter, "select_scatter": _scatter,
    "index_put": _scatter, "scatter_reduce": _scatter, "index_reduce": _scatter,
    "scatter_add": _scatter_add, "index_add": _scatter_add,
    "tril": _triangle, "triu": _triangle, "eye": _identity_matrix, "one_hot": _identity_matrix,
    **dict.fromkeys(
        (
            "contiguous", "clone", "to", "_to_copy", "reshape", "flatten", "repeat", "tile", "roll",
            "flip", "index", "index_select", "gather", "im2col", "pixel_shuffle", "dropout",
            "pixel_unshuffle", "channel_shuffle", "repeat_interleave", "detach", "alias", "float",
            "upsample_nearest2d", "upsample_nearest1d", "lift_fresh", "unfold", "sort", "half",
            "bfloat16", "double", "type_as", "reflection_pad2d", "replication_pad2d",
            "embedding",
        ),
        Values.first_distribution,
    ),
}  # fmt: skip
