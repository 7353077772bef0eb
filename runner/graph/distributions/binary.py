"""Defines rules for operations on two tensors: sums, products, comparisons, selection by a mask."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

from runner.graph.distributions.distribution import (
    FEW,
    Distribution,
    boolean,
    mixed,
    plus,
    times,
)
from runner.graph.distributions.pointwise import pointwise
from runner.graph.distributions.values import Rule, Values, number_or
from runner.graph.ir import Arg, Operation


def _add(values: Values, op: Operation) -> Distribution:
    return _sum(values, op, 1.0)


def _sub(values: Values, op: Operation) -> Distribution:
    return _sum(values, op, -1.0)


def _rsub(values: Values, op: Operation) -> Distribution:
    return plus(values.of(op.args[1]), values.of(op.args[0]).times(-1.0))


def _sum(values: Values, op: Operation, sign: float) -> Distribution:
    a, b = values.of(op.args[0]), values.of(op.args[1])
    if op.args[0] == op.args[1]:
        return a.times(1.0 + sign)
    if sign < 0 and values.are_sums_of_one(op):
        return a.times(2 / 3)  # Two positions are n / 3 apart on average; a sum covers n / 2.
    b = b.times(sign * number_or(op.arg("alpha"), 1.0))
    made = plus(a, b)
    hidden = (made.infinite > 0) and all(
        d.structured or not d.infinite or values.is_fixed(arg)
        for d, arg in zip((a, b), op.args[:2], strict=True)
    )
    return replace(made, structured=hidden, infinite=made.infinite if hidden else 0.0)


def _mul(values: Values, op: Operation) -> Distribution:
    if op.args[0] == op.args[1]:
        return pointwise(values.of(op.args[0]), lambda x: x * x)
    return times(values.of(op.args[0]), values.of(op.args[1]))


def _div(values: Values, op: Operation) -> Distribution:
    by = values.of(op.args[1])
    if by.low == by.high:
        return values.of(op.args[0]).times(1 / by.low) if by.low else Distribution()
    return times(values.of(op.args[0]), pointwise(by, lambda x: 1 / x if x else 0.0))


def _filled(values: Values, op: Operation) -> Distribution:
    x, mask, value = op.args[0], op.args[1], op.args[2]
    return _chosen(values, mask, value, x)


def _where(values: Values, op: Operation) -> Distribution:
    condition, one, other = op.args[0], op.args[1], op.args[2]
    return _chosen(values, condition, one, other)


def _chosen(values: Values, mask: Arg, one: Arg, other: Arg) -> Distribution:
    share = values.of(mask).mean
    a, b = values.of(one), values.of(other)
    infinite = share * a.infinite + (1 - share) * b.infinite
    finite = [(w, d) for w, d in ((share, a), (1 - share, b)) if d.infinite < 1]
    made = replace(mixed(finite) if finite else a, infinite=infinite)
    marked = values.is_fixed(mask) and any(d.zeros == 1 or d.infinite for d in (a, b))
    kept = any(d.structured for d in (a, b)) or marked
    return replace(made, structured=kept, infinite=infinite if kept else 0.0)


def _compared(values: Values, op: Operation) -> Distribution:
    a, b = values.of(op.args[0]), values.of(op.args[1])
    name = op.name.strip("_")
    if name in {"eq", "ne"}:
        same = a.zeros if b.low == b.high == 0 else FEW
        if a.low == 0 and a.high == 1 and b.low == b.high == 1:
            same = a.mean
        share = same if name == "eq" else 1 - same
    else:
        spread = math.sqrt(a.variance + b.variance) or 1e-9
        below = NormalDist(a.mean - b.mean, spread).cdf(0)
        share = below if name.startswith("l") else 1 - below
    return boolean(share, a)


def _not(values: Values, op: Operation) -> Distribution:
    d = values.of(op.args[0])
    return boolean(1 - d.mean, d)


def _and(values: Values, op: Operation) -> Distribution:
    a, b = values.of(op.args[0]), values.of(op.args[1])
    return boolean(a.mean * b.mean, a)


def _or(values: Values, op: Operation) -> Distribution:
    a, b = values.of(op.args[0]), values.of(op.args[1])
    return boolean(1 - (1 - a.mean) * (1 - b.mean), a)


BINARY: dict[str, Rule] = {
    "add": _add, "sub": _sub, "rsub": _rsub, "mul": _mul, "div": _div,
    "where": _where, "masked_fill": _filled,
    "eq": _compared, "ne": _compared, "lt": _compared, "le": _compared, "gt": _compared,
    "ge": _compared, "bitwise_not": _not, "logical_not": _not, "bitwise_and": _and,
    "__and__": _and, "logical_and": _and, "bitwise_or": _or, "__or__": _or, "logical_or": _or,
}  # fmt: skip
