"""Writes down how tensors are made outside `forward`: masks, tables, inputs.

A recipe's operations become the author's statements again: what the author gave a name has it, what
was computed within a statement stays in it, and what two tensors have in common is computed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from runner.emit.code.line_breaks import WIDTH, typical_width
from runner.emit.code.operation_code import Text, literal, spell
from runner.emit.naming.name_tables import made_name
from runner.emit.naming.value_names import RESERVED, identifier, unique
from runner.graph.ir import Arg, Operation, Recipe, Ref, Symbol, TensorSpec, substitute
from runner.graph.operations import is_random

LONGEST_EXPRESSION = 66
_MARGIN = 12
"""Columns of an indentation and of what surrounds the two sides of an assignment."""
_NONE = Text("")
_UPDATES = {"add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/="}


class Recipes:
    """The statements of one function that make tensors; `taken` are the names that it uses."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self._known: dict[str, str] = {}
        """How something is computed, written out -> the variable that holds it."""
        self._spelled: dict[str, str] = {}
        """How each value is computed, written out."""
        self._texts: dict[str, Text] = {}
        self._holds: dict[str, str] = {}
        """What each variable holds."""
        self._count = 0

    def write(
        self,
        recipe: Recipe,
        given: Mapping[str, Text] = MappingProxyType({}),
        result_name: str = "",
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[list[str], str]:
        """(statements still to be made, expression of the result).

        `given`: expressions of values that the operations read and do not make; `names`: what these
        are called. `result_name`: the variable that the result alone may have.
        """
        self._texts.update(given)
        self._spelled.update((name, text.text) for name, text in given.items())
        operations, result = self._shared(recipe, given)
        plan = _Plan(operations, result, result_name, names)
        lines: list[str] = []
        for position, op in enumerate(operations):
            text = spell(op, self._value)
            if _writes(op):
                lines += self._update(op, text, plan, position)
                for output in op.outputs:
                    self._texts.setdefault(output, self._value(next(op.refs())))
                continue
            if plan.is_filled_next(position) or (
                plan.stays_inside(position) and _length(text) <= LONGEST_EXPRESSION
            ):
                self._texts[op.outputs[0]] = text
                continue
            room = WIDTH - _MARGIN - sum(len(plan.wish(output)) + 2 for output in op.outputs)
            if typical_width(text.text) > room:
                lines += self._named_arguments(op, plan, position)
                text = spell(op, self._value)
            targets = [self._name(output, plan, position) for output in op.outputs]
            star = "," if op.returns_list and len(targets) == 1 else ""
            lines.append(f"{', '.join(targets)}{star} = {text.text}")
        if plan.is_pure:
            self._remember(operations)
        return lines, self._value(result).text

    def _remember(self, operations: list[Operation]) -> None:
        for op in operations:
            (name, *others) = op.outputs
            if not others and self._holds.get(self._value(name).text) == name:
                self._known[self._in_full(op)] = name

    def _in_full(self, op: Operation) -> str:
        arguments = (*op.args, *(v for _, v in op.kwargs))
        spelled = [repr(substitute(a, lambda n: Symbol(self._spelled[n]))) for a in arguments]
        return f"{op.target}({', '.join(spelled)}{[k for k, _ in op.kwargs]})"

    def _value(self, name: str) -> Text:
        return self._texts[name]

    def _shared(self, recipe: Recipe, given: Iterable[str]) -> tuple[list[Operation], str]:
        """The recipe's operations under names of this function, without what it has already."""
        pure = _is_pure(recipe.operations)
        same = {name: name for name in given}
        kept: list[Operation] = []
        views: dict[object, str] = {}
        specs = dict(recipe.values)
        for op in recipe.operations:
            made = _renamed(_as_written(op, specs), same)
            if op.name == "copy_" and made.args[0] == made.args[1]:
                same[op.outputs[0]] = next(made.refs())
                continue
            known = views.get(_key(made))
            if pure and recipe.result not in op.outputs:
                known = known or self._known.get(self._in_full(made))
            if known is not None and len(op.outputs) == 1:
                same[op.outputs[0]] = known
                continue
            for output in op.outputs:
                self._count += 1
                same.setdefault(output, f"{output}.{self._count}")
            kept.append(replace(made, outputs=tuple(same[o] for o in op.outputs)))
            for k, output in enumerate(kept[-1].outputs):
                self._spelled.setdefault(output, f"{self._in_full(made)}[{k}]")
            if op.view:
                views[_key(made)] = kept[-1].outputs[0]
        result = same[recipe.result]
        return (_needed(kept, result) if pure else kept), result

    def _named_arguments(self, op: Operation, plan: _Plan, position: int) -> Iterator[str]:
        for name in dict.fromkeys(op.refs()):
            text = self._texts[name].text
            if not text.isidentifier():
                yield f"{self._name(name, plan, position - 1)} = {text}"

    def _name(self, value: str, plan: _Plan, position: int) -> str:
        """The variable that holds a value from now on: the author's, again where it is free."""
        wish = plan.wish(value)
        if plan.result_name and value == plan.result:
            wish = plan.result_name
        elif not self._is_free_again(wish, plan, position):
            wish = unique(wish, self.taken | RESERVED)
        self.taken.add(wish)
        self._texts[value] = Text(wish)
        self._holds[wish] = value
        return wish

    def _is_free_again(self, variable: str, plan: _Plan, position: int) -> bool:
        """Whether nothing after this operation reads what a variable of this recipe holds."""
        mentions = re.compile(rf"\b{variable}\b")
        held = [name for name in plan.maker if mentions.search(self._texts.get(name, _NONE).text)]
        return bool(held) and all(plan.last_read(name) <= position for name in held)

    def _update(self, op: Operation, text: Text, plan: _Plan, position: int) -> list[str]:
        """`x += 1` and `x[0] = y` for the in-place operators that have such a statement.

        A method takes no None for a dimension that stays whole: that is `x[:, rows] = y`.
        """
        name = next(op.refs())
        target = self._value(name).text
        if plan.is_filled_next(position - 1):  # torch.empty(3, 4).uniform_(-1, 1)
            self._texts[name] = text
            if plan.is_last(position):
                return []
            return [f"{self._name(name, plan, position)} = {text.text}"]
        indices = op.arg("indices")
        if op.name == "index_put_" and isinstance(indices, tuple) and not op.arg("accumulate"):
            items = (":" if i is None else literal(i, self._value).text for i in indices)
            return [f"{target}[{', '.join(items)}] = {literal(op.args[2], self._value).text}"]
        if len(op.args) == 2 and not op.kwargs:
            value = literal(op.args[1], self._value).text
            if op.name in _UPDATES:
                return [f"{target} {_UPDATES[op.name]} {value}"]
            if op.name == "copy_" and target.endswith("]"):
                return [f"{target} = {value}"]
        return [text.text]


class _Plan:
    """Which values of a recipe get a variable, and which."""

    def __init__(
        self,
        operations: list[Operation],
        result: str,
        result_name: str,
        names: Mapping[str, str],
    ) -> None:
        self.operations = operations
        self.result_name = result_name
        self.names = names
        self.readers: dict[str, list[int]] = {}
        self.maker: dict[str, int] = {}
        for position, op in enumerate(operations):
            for name in op.refs():
                self.readers.setdefault(name, []).append(position)
            for name in op.outputs:
                self.maker.setdefault(name, position)
        self.writes = [p for p, op in enumerate(operations) if _writes(op)]
        self.result = result
        self.is_pure = _is_pure(operations)

    def last_read(self, name: str) -> int:
        """The last operation that reads a value; the result is read at the end."""
        if name == self.result:
            return len(self.operations)
        return max(self.readers.get(name, ()), default=self.maker[name])

    def is_filled_next(self, position: int) -> bool:
        """Whether a fresh tensor gets its values by the operation that comes right after."""
        if not 0 <= position < len(self.operations) - 1:
            return False
        op, after = self.operations[position : position + 2]
        if len(op.outputs) != 1 or op.view or _writes(op) or not _writes(after):
            return False
        fills = after.name not in {*_UPDATES, "copy_"}
        return fills and list(after.refs()) == [op.outputs[0]]

    def is_last(self, position: int) -> bool:
        """Whether an operation gives the result, and nothing comes after."""
        is_result = self.result in {*self.operations[position].refs()}
        return is_result and position == len(self.operations) - 1

    def stays_inside(self, position: int) -> bool:
        """Whether the operation's value is part of the one statement that reads it."""
        op = self.operations[position]
        if len(op.outputs) != 1 or op.returns_list:
            return False
        readers = self.readers.get(op.outputs[0], [])
        if op.outputs[0] == self.result:
            return not readers
        written = [p for p in readers if _writes(self.operations[p])]
        if written and not any(op.refs()):
            return False  # numbers that the author wrote out, and writes into afterwards
        if op.view and len(written) == len(readers):
            return True
        if len(readers) != 1 or any(position < w < readers[0] for w in self.writes):
            return False
        return not self._has_name(position, readers[0])

    def _has_name(self, position: int, reader: int) -> bool:
        """Whether the author gave the value a name and read it in another statement."""
        here, there = self.operations[position].origin, self.operations[reader].origin
        if here is None or there is None or not here.targets:
            return False
        return (here.file, here.statement) != (there.file, there.statement)

    def wish(self, value: str) -> str:
        """The author's name of a value, else what it is, else its operation."""
        if value in self.names:
            return self.names[value]
        position = self.maker.get(value)
        if position is not None:
            op = self.operations[position]
            targets = op.origin.targets if op.origin is not None else ()
            if len(targets) == 1:
                return identifier(targets[0])
            if len(targets) == len(op.outputs):
                return identifier(targets[op.outputs.index(value)])
            if op.view or op.name in {"_unsafe_view", "clone", "contiguous"}:
                source = next(op.refs(), "")
                if source in self.maker:
                    return self.wish(source)
            if made := made_name(op.name):
                return made
        stem = value.partition(".")[0]
        return identifier(stem.rstrip("0123456789_") or stem)


def _length(text: Text) -> int:
    """How long an expression is where it is read: a reciprocal becomes `1.0 / x`."""
    return typical_width(text.text if text.divisor is None else f"1.0 / {text.divisor.text}")


def _as_written(op: Operation, specs: Mapping[str, TensorSpec]) -> Operation:
    """`x.contiguous()` again, of what it does where it copies."""
    contiguous = ("memory_format", Symbol("torch.contiguous_format"))
    if op.name != "clone" or op.kwargs != (contiguous,):
        return op
    source = specs.get(next(op.refs()))
    if source is None or source.contiguous:
        return op
    return replace(op, target="contiguous.default", kwargs=())


def _renamed(op: Operation, same: dict[str, str]) -> Operation:
    def renamed(value: Arg) -> Arg:
        return substitute(value, lambda name: Ref(same[name]))

    return replace(
        op,
        args=tuple(renamed(a) for a in op.args),
        kwargs=tuple((k, renamed(v)) for k, v in op.kwargs),
    )


def _needed(operations: list[Operation], result: str) -> list[Operation]:
    """Without what only served values that the function has already."""
    used = {result}
    needed = []
    for op in reversed(operations):
        if not used.isdisjoint(op.outputs):
            needed.append(op)
            used.update(op.refs())
    return needed[::-1]


def _key(op: Operation) -> object:
    return (op.target, repr(op.args), repr(op.kwargs))


def _is_pure(operations: Iterable[Operation]) -> bool:
    return not any(_writes(op) or is_random(op) for op in operations)


def _writes(op: Operation) -> bool:
    return op.name.endswith("_") and not op.name.endswith("__")
