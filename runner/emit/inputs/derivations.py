"""Finds the operations that make a value, as a recipe that can be written as code again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from runner.graph.ir import Arg, Operation, Recipe, Ref, State, Symbol, substitute
from runner.graph.operations import is_random
from runner.tree.interface import Program

LONGEST_CONSTANT = 24
"""Most operations of a recipe."""
# These return uninitialised memory.
_NO_VALUES = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}


def constant_recipe(program: Program, name: str) -> Recipe | None:
    """Return the recipe of a value that depends on no input and no weight; None for any other."""
    return derive_recipe(program, name, lambda value: False)


def derive_recipe(
    program: Program, name: str, ends: Callable[[str], bool], *, inputs: bool = False
) -> Recipe | None:
    """Return the operations that make a value from those at which `ends` returns True.

    None if one draws random numbers, if there are too many, or if one reads a weight or an input at
    which `ends` is False. With `inputs`, they may read inputs, whose own recipes are prepended.
    """
    chosen: set[int] = set()
    states: dict[str, State] = {}
    rules = {i.name: i.recipe for i in program.graph.inputs if i.recipe is not None}
    given = rules if inputs else {}
    drawn: dict[str, Recipe] = {}
    queue = [name]
    while queue:
        value = queue.pop()
        if ends(value):
            continue
        state, i = program.graph.states.get(value), program.producers.get(value)
        if state is not None and state.kind != "parameter" and (state.recipe or state.literal):
            states[value] = state
        elif value in given:
            drawn[value] = given[value]
        elif i is None or len(chosen) > LONGEST_CONSTANT:
            return None
        elif i not in chosen:
            op = program.graph.operations[i]
            if is_random(op) or op.name in _NO_VALUES:
                return None
            chosen.add(i)
            queue += op.refs()
    if not chosen:
        return None
    operations = [program.graph.operations[i] for i in sorted(chosen)]
    specs = {n: program.spec(n) for op in operations for n in op.outputs if n}
    begin: list[Operation] = []
    put: dict[str, Arg] = {}
    put |= {n: Symbol(str(state.literal)) for n, state in states.items() if state.recipe is None}
    known = {n: state.recipe for n, state in states.items() if state.recipe is not None}
    for value, recipe in (known | drawn).items():
        own = {n: f"{n}.{value}" for n in recipe.specs}
        renamed = {n: Ref(other) for n, other in own.items()}
        for op in recipe.operations:
            made = _substituted(op, renamed)
            begin.append(replace(made, outputs=tuple(own.get(n, n) for n in op.outputs)))
        specs |= {own[n]: spec for n, spec in recipe.values}
        put[value] = renamed[recipe.result]
    operations = [_substituted(op, put) for op in operations]
    return Recipe((*begin, *operations), name, tuple(specs.items()))


def _substituted(op: Operation, put: Mapping[str, Arg]) -> Operation:
    def changed(arg: Arg) -> Arg:
        return substitute(arg, lambda name: put.get(name, Ref(name)))

    return replace(
        op,
        args=tuple(changed(arg) for arg in op.args),
        kwargs=tuple((key, changed(arg)) for key, arg in op.kwargs),
    )
