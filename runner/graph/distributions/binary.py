"""Defines rules for operations on two tensors: sums, products, comparisons, selection by a mask."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

from runner.graph.distributions.distribution import (
    MIN_ZERO_SHARE,
    Distribution,
    add,
    boolean,
    mix,
    multiply,
    uniform,
)
from runner.graph.distributions.pointwise import apply_pointwise
from runner.graph.distributions.values import Rule, Values, number_or
from runner.graph.ir import Arg, Operation, Ref

_LEAST_DIVISOR = 0.05
"""Least divisor, as a part of the divisors' root mean square, from which a quotient is estimated:
models hardly ever divide by what is nearly zero, and an estimate must not hang on that."""


def _rsub(values: Values, op: Operation) -> Distribution:
    return add(values.distribution(op.args[1]), values.distribution(op.args[0]).scale(-1.0))


def _sum(values: Values, op: Operation) -> Distribution:
    sign = -1.0 if op.name.startswith("sub") else 1.0
    a, b = values.distribution(op.args[0]), values.distribution(op.args[1])
    if op.args[0] == op.args[1]:
        return a.scale(1.0 + sign)
    if sign < 0 and values.are_views_of_one_sum(op):
        return a.scale(2 / 3)  # Two positions are n / 3 apart on average; a sum covers n / 2.
    if sign < 0 and (bounds := _taken_by_rounding(values, op)):
        return uniform(*bounds)
    b = b.scale(sign * number_or(op.arg("alpha"), 1.0))
    result = add(a, b)
    is_mask = (result.infinite > 0) and all(
        d.structured or not d.infinite or values.is_fixed(arg)
        for d, arg in zip((a, b), op.args[:2], strict=True)
    )
    return replace(result, structured=is_mask, infinite=result.infinite if is_mask else 0.0)


def _taken_by_rounding(values: Values, op: Operation) -> tuple[float, float] | None:
    """Return the bounds of a number minus the same number rounded, or None for other operands."""
    source, rounded = op.args[:2]
    if not isinstance(source, Ref) or not isinstance(rounded, Ref):
        return None
    of, low, high = values.rounded.get(rounded.name, ("", 0.0, 0.0))
    return (low, high) if of == source.name else None


def _remainder(values: Values, op: Operation) -> Distribution:
    d, divisor = values.distribution(op.args[0]), values.distribution(op.args[1])
    if divisor.low <= 0 or (d.low >= 0 and d.high < divisor.low):
        return d
    return uniform(0.0, divisor.mean)


def _mul(values: Values, op: Operation) -> Distribution:
    if op.args[0] == op.args[1]:
        return apply_pointwise(values.distribution(op.args[0]), lambda x: x * x)
    return multiply(values.distribution(op.args[0]), values.distribution(op.args[1]))


def _div(values: Values, op: Operation) -> Distribution:
    divisor = values.distribution(op.args[1])
    if divisor.low == divisor.high:
        return (
            values.distribution(op.args[0]).scale(1 / divisor.low)
            if divisor.low
            else Distribution()
        )
    least = _LEAST_DIVISOR * math.sqrt(divisor.square) or 1.0
    inverse = apply_pointwise(
        divisor, lambda x: 1 / math.copysign(max(abs(x), least), x) if x else 0.0
    )
    result = multiply(values.distribution(op.args[0]), inverse)
    return replace(result, structured=True) if values.is_normalised(op) else result


def _masked_fill(values: Values, op: Operation) -> Distribution:
    return _select(values, op.args[1], op.args[2], op.args[0])


def _select_elements(values: Values, op: Operation) -> Distribution:
    return _select(values, op.args[0], op.args[1], op.args[2])


def _select(values: Values, mask: Arg, if_true: Arg, if_false: Arg) -> Distribution:
    share = values.distribution(mask).mean
    a, b = values.distribution(if_true), values.distribution(if_false)
    infinite = share * a.infinite + (1 - share) * b.infinite
    finite = [(w, d) for w, d in ((share, a), (1 - share, b)) if d.infinite < 1]
    result = replace(mix(finite) if finite else a, infinite=infinite)
    is_bias = any(d.infinite == 1 for d in (a, b)) and any(d.low == d.high for d in (a, b))
    is_mask = is_bias or (values.is_fixed(mask) and any(d.zeros == 1 or d.infinite for d in (a, b)))
    structured = any(d.structured for d in (a, b)) or is_mask
    return replace(result, structured=structured, infinite=infinite if structured else 0.0)


def _compare(values: Values, op: Operation) -> Distribution:
    a, b = values.distribution(op.args[0]), values.distribution(op.args[1])
    name = op.name.strip("_")
    if name in {"eq", "ne"}:
        same = a.zeros if b.low == b.high == 0 else MIN_ZERO_SHARE
        if a.low == 0 and a.high == 1 and b.low == b.high == 1:
            same = a.mean
        share = same if name == "eq" else 1 - same
    else:
        spread = math.sqrt(a.variance + b.variance) or 1e-9
        below = NormalDist(a.mean - b.mean, spread).cdf(0)
        share = below if name.startswith("l") else 1 - below
    return boolean(share, a)


def _not(values: Values, op: Operation) -> Distribution:
    d = values.distribution(op.args[0])
    return boolean(1 - d.mean, d)


def _and(values: Values, op: Operation) -> Distribution:
    a, b = values.distribution(op.args[0]), values.distribution(op.args[1])
    return boolean(a.mean * b.mean, a)


def _or(values: Values, op: Operation) -> Distribution:
    a, b = values.distribution(op.args[0]), values.distribution(op.args[1])
    return boolean(1 - (1 - a.mean) * (1 - b.mean), a)


BINARY: dict[str, Rule] = {
    "add": _sum, "sub": _sum, "rsub": _rsub, "mul": _mul, "div": _div,
    "outer": _mul, "ger": _mul, "remainder": _remainder,
    "where": _select_elements, "masked_fill": _masked_fill,
    "eq": _compare, "ne": _compare, "lt": _compare, "le": _compare, "gt": _compare,
    "ge": _compare, "bitwise_not": _not, "logical_not": _not, "bitwise_and": _and,
    "__and__": _and, "logical_and": _and, "bitwise_or": _or, "__or__": _or, "logical_or": _or,
}  # fmt: skip
