"""Finds the operations that make a value, as a recipe that can be written as code again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from runner.graph.ir import Arg, Operation, Recipe, Ref, State, Symbol, substitute_operands
from runner.graph.operations import is_random
from runner.tree.interface import Program

LONGEST_CONSTANT = 24
"""Most operations of a recipe."""
# These return uninitialised memory.
_UNINITIALISED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}


def constant_recipe(program: Program, name: str) -> Recipe | None:
    """Return the recipe of a value that depends on no input and no weight; None for any other."""
    return derive_recipe(program, name, lambda value: False)


def derive_recipe(
    program: Program, name: str, is_end: Callable[[str], bool], *, inputs: bool = False
) -> Recipe | None:
    """Return the operations that make a value from those for which `is_end` returns True.

    None if one draws random numbers, if there are too many, or if one reads a weight or an input at
    which `is_end` is False. With `inputs`, they may read inputs, whose own recipes are prepended.
    """
    indices: set[int] = set()
    states: dict[str, State] = {}
    input_recipes = {i.name: i.recipe for i in program.graph.inputs if i.recipe is not None}
    usable_recipes = input_recipes if inputs else {}
    recipes_of_inputs: dict[str, Recipe] = {}
    queue = [name]
    while queue:
        value = queue.pop()
        if is_end(value):
            continue
        state, i = program.graph.states.get(value), program.producers.get(value)
        if state is not None and state.kind != "parameter" and (state.recipe or state.literal):
            states[value] = state
        elif value in usable_recipes:
            recipes_of_inputs[value] = usable_recipes[value]
        elif i is None or len(indices) > LONGEST_CONSTANT:
            return None
        elif i not in indices:
            op = program.graph.operations[i]
            if is_random(op) or op.name in _UNINITIALISED or _fills_masked(program, op, is_end):
                return None
            indices.add(i)
            queue += op.refs()
    if not indices:
        return None
    operations = [program.graph.operations[i] for i in sorted(indices)]
    specs = {n: program.spec(n) for op in operations for n in op.outputs if n}
    prepended: list[Operation] = []
    replacements: dict[str, Arg] = {}
    replacements |= {
        n: Symbol(str(state.literal)) for n, state in states.items() if state.recipe is None
    }
    state_recipes = {n: state.recipe for n, state in states.items() if state.recipe is not None}
    for value, recipe in (state_recipes | recipes_of_inputs).items():
        renamed_values = {n: f"{n}.{value}" for n in recipe.specs}
        references = {n: Ref(new_name) for n, new_name in renamed_values.items()}
        for op in recipe.operations:
            substituted = _put_in(op, references)
            prepended.append(
                replace(substituted, outputs=tuple(renamed_values.get(n, n) for n in op.outputs))
            )
        specs |= {renamed_values[n]: spec for n, spec in recipe.values}
        replacements[value] = references[recipe.result]
    operations = [_put_in(op, replacements) for op in operations]
    return Recipe((*prepended, *operations), name, tuple(specs.items()))


def _fills_masked(program: Program, op: Operation, is_end: Callable[[str], bool]) -> bool:
    """Return whether an operation writes one value for each element that a drawn mask picks.

    Another mask would pick another number of elements.
    """
    if op.name not in {"index_put", "index_put_", "masked_scatter"}:
        return False
    _, *masks, values = op.refs()
    return program.spec(values).numel > 1 and any(
        program.spec(mask).dtype == "bool" and is_end(mask) for mask in masks
    )


def _put_in(op: Operation, replacements: Mapping[str, Arg]) -> Operation:
    return substitute_operands(op, lambda name: replacements.get(name, Ref(name)))
