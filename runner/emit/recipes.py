"""This file knows about writing down tensors made outside `forward`: masks, tables, inputs."""

from __future__ import annotations

from runner.emit.names import identifier, unique
from runner.emit.spelling import Text, spell
from runner.graph.ir import Operation, Recipe

LONGEST_EXPRESSION = 84


def recipe_lines(recipe: Recipe, taken: set[str]) -> tuple[list[str], str]:
    """(statements, expression of the result); used names are added to `taken`."""
    uses: dict[str, int] = {recipe.result: 1}
    in_place = any(_writes(op) for op in recipe.operations)
    for op in recipe.operations:
        for name in op.refs():
            uses[name] = uses.get(name, 0) + 1
    texts: dict[str, Text] = {}
    lines: list[str] = []

    def value(name: str) -> Text:
        return texts[name]

    for op in recipe.operations:
        text = spell(op, value)
        if _writes(op):
            lines.append(text.text)
            for output in op.outputs:
                texts.setdefault(output, value(next(op.refs())))
            continue
        if len(text.text) > LONGEST_EXPRESSION:
            for name in dict.fromkeys(op.refs()):
                if not texts[name].text.isidentifier():
                    variable = unique(_stem(name), taken)
                    taken.add(variable)
                    lines.append(f"{variable} = {texts[name].text}")
                    texts[name] = Text(variable)
            text = spell(op, value)
        single = len(op.outputs) == 1 and not op.listed and uses.get(op.outputs[0], 0) <= 1
        if single and not in_place and len(text.text) <= LONGEST_EXPRESSION:
            texts[op.outputs[0]] = text
            continue
        targets = []
        for output in op.outputs:
            name = unique(_stem(output), taken)
            taken.add(name)
            texts[output] = Text(name)
            targets.append(name)
        star = "," if op.listed and len(targets) == 1 else ""
        lines.append(f"{', '.join(targets)}{star} = {text.text}")
    return lines, texts[recipe.result].text


def _writes(op: Operation) -> bool:
    return op.name.endswith("_") and not op.name.endswith("__")


def _stem(name: str) -> str:
    """A variable for a recorded value: `arange` of `arange_3`."""
    return identifier(name.rstrip("0123456789_") or name)
