"""Defines rules for tensors that are made from nothing: random numbers, ranges, constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runner.graph.distributions.distribution import Distribution, constant, uniform
from runner.graph.distributions.values import Rule, Values, number_or
from runner.graph.ir import Operation


def _draw_uniform(values: Values, op: Operation) -> Distribution:
    if op.name.startswith("rand"):
        return uniform(0.0, 1.0)
    return uniform(number_or(op.args[1], 0.0), number_or(op.args[2], 1.0))


def _draw_normal(values: Values, op: Operation) -> Distribution:
    if op.name.startswith("randn"):
        return Distribution()
    mean = number_or(op.args[1] if len(op.args) > 1 else op.arg("mean"), 0.0)
    std = number_or(op.args[2] if len(op.args) > 2 else op.arg("std"), 1.0)
    return Distribution(mean, mean**2 + std**2, mean**2)


def _draw_exponential(values: Values, op: Operation) -> Distribution:
    mean = 1 / number_or(op.args[1] if len(op.args) > 1 else op.arg("lambd"), 1.0)
    return Distribution(mean, 2 * mean**2, mean**2, low=0.0)


def _draw_integers(values: Values, op: Operation) -> Distribution:
    numbers = [number_or(a, 0.0) for a in op.args if isinstance(a, int)]
    low, high = (numbers[0], numbers[1]) if op.target.endswith("low") else (0.0, numbers[0])
    d = uniform(low, high - 1)
    return replace(d, zeros=1 / max(high - low, 1.0) if low <= 0 < high else 0.0)


def _range(values: Values, op: Operation) -> Distribution:
    numbers = [number_or(a, 0.0) for a in op.args]
    start, end = (0.0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    return replace(uniform(*sorted((start, end))), zeros=0.0)


def _one_number(number: float) -> Callable[[Values, Operation], Distribution]:
    return lambda values, op: constant(number)


def _full(values: Values, op: Operation) -> Distribution:
    return values.distribution(op.arg("fill_value", op.arg("value", op.args[-1])))


CREATION: dict[str, Rule] = {
    "rand": _draw_uniform, "rand_like": _draw_uniform, "uniform": _draw_uniform,
    "randn": _draw_normal, "randn_like": _draw_normal, "normal": _draw_normal,
    "exponential": _draw_exponential,
    "randint": _draw_integers, "arange": _range, "linspace": _range,
    "zeros": _one_number(0.0), "zeros_like": _one_number(0.0), "new_zeros": _one_number(0.0),
    "zero": _one_number(0.0), "ones": _one_number(1.0), "ones_like": _one_number(1.0),
    "new_ones": _one_number(1.0), "empty": _one_number(0.0), "full": _full, "full_like": _full,
    "new_full": _full, "fill": _full,
}  # fmt: skip
