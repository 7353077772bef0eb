"""Writes the statements that make tensors outside `forward`: masks, tables, inputs.

A recipe's operations become the author's statements again: variables have the author's names,
expressions within a statement stay in it, and steps that two tensors share are computed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from runner.emit.code.line_breaks import WIDTH, typical_width
from runner.emit.code.operation_code import Expression, literal, spell
from runner.emit.naming.name_tables import operator_result_name
from runner.emit.naming.value_names import RESERVED, identifier, make_unique
from runner.graph.ir import (
    Operation,
    Recipe,
    Ref,
    Symbol,
    TensorSpec,
    substitute,
    substitute_operands,
)
from runner.graph.operations import is_random

LONGEST_EXPRESSION = 66
"""Columns of an expression up to which it stands inside another statement."""
_MARGIN = 12
"""Columns of an indentation and of what surrounds the two sides of an assignment."""
_EMPTY = Expression("")
_UPDATES = {"add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/="}


class RecipeWriter:
    """Writes the statements of one function that make tensors; `taken_names` are in use."""

    def __init__(self, taken_names: set[str]) -> None:
        self.taken_names = taken_names
        self._computed: dict[str, str] = {}
        """Spelling of a computation -> value whose variable still holds its result."""
        self._spelling_numbers: dict[str, int] = {}
        """Spelling of a computation -> its number, which stands for it in the spellings of others.

        Spelled out in each other, long computations would take texts without end.
        """
        self._spellings: dict[str, str] = {}
        """Value -> text that is equal for values that are computed equally."""
        self._expressions: dict[str, Expression] = {}
        """Value -> expression that reads it."""
        self._held_values: dict[str, str] = {}
        """Variable -> value that it holds."""
        self._count = 0

    def write(
        self,
        recipe: Recipe,
        source_expressions: Mapping[str, Expression] = MappingProxyType({}),
        result_name: str = "",
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[list[str], str]:
        """Return (statements that make a recipe's tensor, expression of the result).

        Statements of earlier recipes are not repeated. `source_expressions`: expressions of values
        that the operations read and do not make. `names`: preferred variables of values.
        `result_name`: variable that is reserved for the result.
        """
        self._expressions.update(source_expressions)
        self._spellings.update(
            (name, expression.text) for name, expression in source_expressions.items()
        )
        operations, result = self._share_operations(recipe, source_expressions)
        plan = _VariablePlan(operations, result, result_name, names)
        lines: list[str] = []
        for position, op in enumerate(operations):
            expression = spell(op, self._value_expression)
            if _writes(op):
                lines += self._write_update(op, expression, plan, position)
                for output in op.outputs:
                    self._expressions.setdefault(output, self._value_expression(next(op.refs())))
                continue
            if plan.is_filled_next(position) or (
                plan.is_inlined(position) and _read_width(expression) <= LONGEST_EXPRESSION
            ):
                self._expressions[op.outputs[0]] = expression
                continue
            columns = (
                WIDTH - _MARGIN - sum(len(plan.preferred_name(output)) + 2 for output in op.outputs)
            )
            if typical_width(expression.text) > columns:
                lines += self._name_arguments(op, plan, position)
                expression = spell(op, self._value_expression)
            targets = [self._assign_variable(output, plan, position) for output in op.outputs]
            star = "," if op.returns_list and len(targets) == 1 else ""
            lines.append(f"{', '.join(targets)}{star} = {expression.text}")
        if plan.is_pure:
            self._remember_values(operations)
        return lines, self._value_expression(result).text

    def _remember_values(self, operations: list[Operation]) -> None:
        for op in operations:
            (name, *other_outputs) = op.outputs
            if (
                not other_outputs
                and self._held_values.get(self._value_expression(name).text) == name
            ):
                self._computed[self._spelling(op)] = name

    def _spelling(self, op: Operation) -> str:
        arguments = (*op.args, *(v for _, v in op.kwargs))
        spellings = [repr(substitute(a, lambda n: Symbol(self._spellings[n]))) for a in arguments]
        return f"{op.target}({', '.join(spellings)}{[k for k, _ in op.kwargs]})"

    def _value_expression(self, name: str) -> Expression:
        return self._expressions[name]

    def _share_operations(
        self, recipe: Recipe, source_names: Iterable[str]
    ) -> tuple[list[Operation], str]:
        """Return a recipe's operations and its result, with values renamed uniquely.

        Operations whose results this function has already are left out.
        """
        is_pure = _is_pure(recipe.operations)
        new_names = {name: name for name in source_names}
        new_operations: list[Operation] = []
        views: dict[object, str] = {}
        specs = dict(recipe.values)
        for op in recipe.operations:
            renamed = substitute_operands(
                _restore_contiguous(op, specs), lambda name: Ref(new_names[name])
            )
            if op.name == "copy_" and renamed.args[0] == renamed.args[1]:
                new_names[op.outputs[0]] = next(renamed.refs())
                continue
            if op.name == "set_" and len(renamed.args) == 2 and isinstance(renamed.args[1], Ref):
                # From here on one tensor is the other: torch registers a parametrization so.
                replaced = next(op.refs())
                new_names[replaced] = new_names[op.outputs[0]] = renamed.args[1].name
                continue
            known_value = views.get(_operation_key(renamed))
            if is_pure and recipe.result not in op.outputs:
                known_value = known_value or self._computed.get(self._spelling(renamed))
            if known_value is not None and len(op.outputs) == 1:
                new_names[op.outputs[0]] = known_value
                continue
            for output in op.outputs:
                self._count += 1
                new_names.setdefault(output, f"{output}.{self._count}")
            new_operations.append(replace(renamed, outputs=tuple(new_names[o] for o in op.outputs)))
            for k, output in enumerate(new_operations[-1].outputs):
                spelling = self._spelling(renamed)
                number = self._spelling_numbers.setdefault(spelling, len(self._spelling_numbers))
                self._spellings.setdefault(output, f"#{number}[{k}]")
            if op.view:
                views[_operation_key(renamed)] = new_operations[-1].outputs[0]
        result = new_names[recipe.result]
        return (_needed_operations(new_operations, result) if is_pure else new_operations), result

    def _name_arguments(self, op: Operation, plan: _VariablePlan, position: int) -> Iterator[str]:
        for name in dict.fromkeys(op.refs()):
            text = self._expressions[name].text
            if not text.isidentifier():
                yield f"{self._assign_variable(name, plan, position - 1)} = {text}"

    def _assign_variable(self, value: str, plan: _VariablePlan, position: int) -> str:
        """Assign a variable to a value and return it: the author's, reused if it is free again."""
        variable = plan.preferred_name(value)
        if plan.result_name and value == plan.result:
            variable = plan.result_name
        elif not self._is_free_again(variable, plan, position):
            variable = make_unique(variable, self.taken_names | RESERVED)
        self.taken_names.add(variable)
        self._expressions[value] = Expression(variable)
        self._held_values[variable] = value
        return variable

    def _is_free_again(self, variable: str, plan: _VariablePlan, position: int) -> bool:
        """Return whether nothing later reads the values that a variable of this recipe holds."""
        mention = re.compile(rf"\b{variable}\b")
        values = [
            name for name in plan.makers if mention.search(self._expressions.get(name, _EMPTY).text)
        ]
        return bool(values) and all(plan.last_read(name) <= position for name in values)

    def _write_update(
        self, op: Operation, expression: Expression, plan: _VariablePlan, position: int
    ) -> list[str]:
        """Return the statement of an in-place operation: `x += 1`, `x[0] = y`, `x.relu_()`.

        An index that is None becomes a slice, `x[:, rows] = y`, as `index_put_` takes none.
        """
        name = next(op.refs())
        target = self._value_expression(name).text
        if plan.is_filled_next(position - 1):  # torch.empty(3, 4).uniform_(-1, 1)
            self._expressions[name] = expression
            if plan.ends_with_result(position):
                return []
            return [f"{self._assign_variable(name, plan, position)} = {expression.text}"]
        indices = op.arg("indices")
        if op.name == "index_put_" and isinstance(indices, tuple) and not op.arg("accumulate"):
            items = (":" if i is None else literal(i, self._value_expression).text for i in indices)
            return [
                f"{target}[{', '.join(items)}] = {literal(op.args[2], self._value_expression).text}"
            ]
        if len(op.args) == 2 and not op.kwargs:
            value = literal(op.args[1], self._value_expression).text
            if op.name in _UPDATES:
                return [f"{target} {_UPDATES[op.name]} {value}"]
            if op.name == "copy_" and target.endswith("]"):
                return [f"{target} = {value}"]
        return [expression.text]


class _VariablePlan:
    """The choice of the values of a recipe that get a variable, and of its name."""

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
        self.makers: dict[str, int] = {}
        for position, op in enumerate(operations):
            for name in op.refs():
                self.readers.setdefault(name, []).append(position)
            for name in op.outputs:
                self.makers.setdefault(name, position)
        self.writes = [p for p, op in enumerate(operations) if _writes(op)]
        self.result = result
        self.is_pure = _is_pure(operations)

    def last_read(self, name: str) -> int:
        """Return the position of the last operation that reads a value; the result's is the end."""
        if name == self.result:
            return len(self.operations)
        return max(self.readers.get(name, ()), default=self.makers[name])

    def is_filled_next(self, position: int) -> bool:
        """Return whether the next operation fills the new tensor: `torch.empty(3).uniform_()`."""
        if not 0 <= position < len(self.operations) - 1:
            return False
        op, following = self.operations[position : position + 2]
        if len(op.outputs) != 1 or op.view or _writes(op) or not _writes(following):
            return False
        fills = following.name not in {*_UPDATES, "copy_"}
        return fills and list(following.refs()) == [op.outputs[0]]

    def ends_with_result(self, position: int) -> bool:
        """Return whether an operation updates the result, and nothing comes after it."""
        is_result = self.result in {*self.operations[position].refs()}
        return is_result and position == len(self.operations) - 1

    def is_inlined(self, position: int) -> bool:
        """Return whether an operation's value stands inside the only statement that reads it."""
        op = self.operations[position]
        if len(op.outputs) != 1 or op.returns_list:
            return False
        readers = self.readers.get(op.outputs[0], [])
        if op.outputs[0] == self.result:
            return not readers
        writing_readers = [p for p in readers if _writes(self.operations[p])]
        if writing_readers and not any(op.refs()):
            return False  # The author wrote these numbers out and writes into them afterwards.
        if op.view and len(writing_readers) == len(readers):
            return True
        if len(readers) != 1 or any(position < w < readers[0] for w in self.writes):
            return False
        return not self._has_name(position, readers[0])

    def _has_name(self, position: int, reader: int) -> bool:
        """Return whether the author assigned the value and read it in another statement."""
        origin, reader_origin = self.operations[position].origin, self.operations[reader].origin
        if origin is None or reader_origin is None or not origin.targets:
            return False
        return (origin.file, origin.statement) != (reader_origin.file, reader_origin.statement)

    def preferred_name(self, value: str) -> str:
        """Return the author's name of a value, else one by its meaning, else by its operation."""
        if value in self.names:
            return self.names[value]
        position = self.makers.get(value)
        if position is not None:
            op = self.operations[position]
            targets = op.origin.targets if op.origin is not None else ()
            if len(targets) == 1:
                return identifier(targets[0])
            if len(targets) == len(op.outputs):
                return identifier(targets[op.outputs.index(value)])
            if op.view or op.name in {"_unsafe_view", "clone", "contiguous"}:
                source = next(op.refs(), "")
                if source in self.makers:
                    return self.preferred_name(source)
            if result_name := operator_result_name(op.name):
                return result_name
        stem = value.partition(".")[0]
        return identifier(stem.rstrip("0123456789_") or stem)


def _read_width(expression: Expression) -> int:
    """Return the columns of an expression where it is read: a reciprocal becomes `1.0 / x`."""
    return typical_width(
        expression.text if expression.divisor is None else f"1.0 / {expression.divisor.text}"
    )


def _restore_contiguous(op: Operation, specs: Mapping[str, TensorSpec]) -> Operation:
    """Return `x.contiguous()` for the clone that it runs where it copies; others unchanged."""
    contiguous = ("memory_format", Symbol("torch.contiguous_format"))
    if op.name != "clone" or op.kwargs != (contiguous,):
        return op
    source = specs.get(next(op.refs()))
    if source is None or source.contiguous:
        return op
    return replace(op, target="contiguous.default", kwargs=())


def _needed_operations(operations: list[Operation], result: str) -> list[Operation]:
    """Return the operations that lead to the result, without any others."""
    needed_values = {result}
    needed = []
    for op in reversed(operations):
        if not needed_values.isdisjoint(op.outputs):
            needed.append(op)
            needed_values.update(op.refs())
    return needed[::-1]


def _operation_key(op: Operation) -> object:
    return (op.target, repr(op.args), repr(op.kwargs))


def _is_pure(operations: Iterable[Operation]) -> bool:
    return not any(_writes(op) or is_random(op) for op in operations)


def _writes(op: Operation) -> bool:
    return op.name.endswith("_") and not op.name.endswith("__")
