"""Estimates the distribution of each value of a program, one operation after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any

from runner.graph.distributions.binary import BINARY
from runner.graph.distributions.contractions import CONTRACTIONS
from runner.graph.distributions.copies import COPIES, viewed
from runner.graph.distributions.creation import CREATION
from runner.graph.distributions.distribution import Distribution, consistent, unbounded
from runner.graph.distributions.norms import NORMS
from runner.graph.distributions.pointwise import BELOW_ZERO, FUNCTIONS, POINTWISE, pointwise
from runner.graph.distributions.reductions import REDUCTIONS
from runner.graph.distributions.values import Rule, Values, numbers_in
from runner.graph.ir import Graph, Operation, Recipe, State, TensorSpec
from runner.graph.operations import constants

_RULES: dict[str, Rule] = {
    **POINTWISE, **BINARY, **CONTRACTIONS, **NORMS, **REDUCTIONS, **CREATION, **COPIES,
}  # fmt: skip


def distributions(graph: Graph) -> dict[str, Distribution]:
    """Return the distribution of each value of a program."""
    fixed = frozenset(constants(graph)) | _states(graph, "buffer")
    values = Values(graph.values, fixed, _states(graph, "parameter"))
    for name, state in graph.states.items():
        values.known[name] = _of_state(state, graph.values[name])
    for given in graph.inputs:
        spec = graph.values[given.name]
        found = _of_recipe(given.recipe) if given.recipe else None
        values.known[given.name] = found or _channels_of(spec)
    _propagate(values, graph.operations)
    return values.known


def _states(graph: Graph, kind: str) -> frozenset[str]:
    return frozenset(name for name, state in graph.states.items() if state.kind == kind)


def _channels_of(spec: TensorSpec) -> Distribution:
    return Distribution(channel=1 - len(spec.shape) if len(spec.shape) > 3 else -1)


def _of_state(state: State, spec: TensorSpec) -> Distribution:
    if state.recipe is not None:
        return _of_recipe(state.recipe)
    if state.literal is not None and (numbers := numbers_in(state.literal)):
        square = sum(n * n for n in numbers) / len(numbers)
        zeros = sum(n == 0 for n in numbers) / len(numbers)
        mean = sum(numbers) / len(numbers)
        return Distribution(mean, square, square, min(numbers), max(numbers), zeros)
    fan = prod(spec.shape[1:]) or 1
    return Distribution(square=1 / (3 * fan))


def _of_recipe(recipe: Recipe) -> Distribution:
    values = Values(recipe.specs)
    _propagate(values, recipe.operations)
    found = values.known.get(recipe.result, Distribution())
    spec = recipe.specs[recipe.result]
    return replace(found, channel=_channels_of(spec).channel)


def _propagate(values: Values, operations: Iterable[Operation]) -> None:
    for op in operations:
        values.note(op)
        for name, made in zip(op.outputs, _results(values, op), strict=False):
            if name:
                values.known[name] = consistent(made)


def _results(values: Values, op: Operation) -> list[Distribution]:
    """Return the distributions of an operation's outputs; unknown operations keep the scale."""
    name = op.name
    if name.endswith("_") and not name.endswith("__"):
        name = name.rstrip("_")
    rule = _RULES.get(name.removeprefix("special_"))
    try:
        if op.view:
            made: Any = viewed(values, op)
        elif rule is not None:
            made = rule(values, op)
        elif name in FUNCTIONS:
            made = pointwise(values.first(op), FUNCTIONS[name])
            made = replace(made, structured=made.structured or name in BELOW_ZERO)
        else:
            made = replace(unbounded(values.first(op)), structured=False)
    except (ArithmeticError, ValueError, LookupError, TypeError, StopIteration, AssertionError):
        made = Distribution()
    return list(made) if isinstance(made, tuple) else [made] * len(op.outputs)
