"""Estimates the distribution of each value of a program, one operation after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any

from runner.graph.distributions.binary import BINARY
from runner.graph.distributions.contractions import CONTRACTIONS
from runner.graph.distributions.copies import COPIES, view_distribution
from runner.graph.distributions.creation import CREATION
from runner.graph.distributions.distribution import Distribution, make_consistent, without_bounds
from runner.graph.distributions.norms import NORMS
from runner.graph.distributions.pointwise import BELOW_ZERO, FUNCTIONS, POINTWISE, apply_pointwise
from runner.graph.distributions.reductions import REDUCTIONS
from runner.graph.distributions.values import Rule, Values, numbers_in
from runner.graph.ir import Graph, Operation, Recipe, State, TensorSpec
from runner.graph.operations import constants

_RULES: dict[str, Rule] = {
    **POINTWISE, **BINARY, **CONTRACTIONS, **NORMS, **REDUCTIONS, **CREATION, **COPIES,
}  # fmt: skip


def distributions(graph: Graph) -> dict[str, Distribution]:
    """Return the distribution of each value of a program."""
    fixed = frozenset(constants(graph)) | _state_names(graph, "buffer")
    values = Values(graph.values, fixed, _state_names(graph, "parameter"))
    for name, state in graph.states.items():
        values.distributions[name] = _state_distribution(state, graph.values[name])
    for model_input in graph.inputs:
        spec = graph.values[model_input.name]
        drawn_distribution = (
            _recipe_distribution(model_input.recipe) if model_input.recipe else None
        )
        values.distributions[model_input.name] = drawn_distribution or _default_distribution(spec)
    _propagate(values, graph.operations)
    return values.distributions


def _state_names(graph: Graph, kind: str) -> frozenset[str]:
    return frozenset(name for name, state in graph.states.items() if state.kind == kind)


def _default_distribution(spec: TensorSpec) -> Distribution:
    return Distribution(channel=1 - len(spec.shape) if len(spec.shape) > 3 else -1)


def _state_distribution(state: State, spec: TensorSpec) -> Distribution:
    if state.recipe is not None:
        return _recipe_distribution(state.recipe)
    if state.literal is not None and (numbers := numbers_in(state.literal)):
        square = sum(n * n for n in numbers) / len(numbers)
        zeros = sum(n == 0 for n in numbers) / len(numbers)
        mean = sum(numbers) / len(numbers)
        return Distribution(mean, square, square, min(numbers), max(numbers), zeros)
    fan = prod(spec.shape[1:]) or 1
    return Distribution(square=1 / (3 * fan))


def _recipe_distribution(recipe: Recipe) -> Distribution:
    values = Values(recipe.specs)
    _propagate(values, recipe.operations)
    result = values.distributions.get(recipe.result, Distribution())
    spec = recipe.specs[recipe.result]
    return replace(result, channel=_default_distribution(spec).channel)


def _propagate(values: Values, operations: Iterable[Operation]) -> None:
    for op in operations:
        values.note(op)
        for name, distribution in zip(op.outputs, _result_distributions(values, op), strict=False):
            if name:
                values.distributions[name] = make_consistent(distribution)


def _result_distributions(values: Values, op: Operation) -> list[Distribution]:
    """Return the distributions of an operation's outputs; unknown operations keep the scale."""
    name = op.name
    if name.endswith("_") and not name.endswith("__"):
        name = name.rstrip("_")
    rule = _RULES.get(name.removeprefix("special_"))
    try:
        if op.view:
            result: Any = view_distribution(values, op)
        elif rule is not None:
            result = rule(values, op)
        elif name in FUNCTIONS:
            result = apply_pointwise(values.first_distribution(op), FUNCTIONS[name])
            result = replace(result, structured=result.structured or name in BELOW_ZERO)
        else:
            result = replace(without_bounds(values.first_distribution(op)), structured=False)
    except (ArithmeticError, ValueError, LookupError, TypeError, StopIteration, AssertionError):
        result = Distribution()
    return list(result) if isinstance(result, tuple) else [result] * len(op.outputs)
