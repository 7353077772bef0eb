"""Matches the values of a graph against formulas.

Sums and products match in any order and grouping, `a / b` also as a product with a reciprocal,
`x**2` also as `x * x`, a mean also as a sum divided by its count. Casts and broadcasting in between
are ignored, and so is any view of a reduction's result.
"""

import ast
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from runner.graph.dataflow import Flow
from runner.graph.ir import Arg, Operation, Ref
from runner.graph.recognition.formula_notation import (
    DIMENSIONS,
    FUNCTIONS,
    LIMITS,
    NUMBERS,
    STATE_NAMES,
    Terms,
    called_function,
    dimensions_of,
    factors,
    invert,
    splits,
    terms,
    usual_name,
)
from runner.graph.recognition.scalars import TOLERANCE, Scalars

CASTS = {"to", "type_as"}
_BROADCASTS = {"unsqueeze", "expand", "expand_as", "broadcast_to"}
_SHAPE = "shape"
"""The name to which a match binds the shape of the tensor that a reduction reads."""


@dataclass(frozen=True, slots=True)
class Match:
    """The values that the names of a formula stand for, and the operations that compute it."""

    bindings: tuple[tuple[str, Arg], ...] = ()
    """Pairs of a formula's name and its value."""
    operations: frozenset[int] = frozenset()
    """Indices of the operations that compute the formula."""
    edge_casts: frozenset[int] = frozenset()
    """Casts of the formula's inputs; they belong to the kernel if nothing else reads them."""

    def value(self, name: str) -> Arg:
        """Return the value that a name is bound to; None if it is not bound."""
        return dict(self.bindings).get(name)

    @property
    def reduced_shape(self) -> tuple[int, ...]:
        """The shape of the tensor that the formula's reduction reads; empty without a reduction."""
        shape = self.value(_SHAPE)
        return (
            tuple(int(n) for n in shape if isinstance(n, int)) if isinstance(shape, tuple) else ()
        )

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that the formula reduces."""
        return self._sizes(DIMENSIONS)

    def _sizes(self, name: str) -> tuple[int, ...]:
        value = self.value(name)
        return tuple(n for n in value if isinstance(n, int)) if isinstance(value, tuple) else ()

    def bind(self, name: str, value: Arg) -> "Match | None":
        """Return this match with one more name bound; None if the name has another value."""
        for bound_name, bound_value in self.bindings:
            if bound_name == name:
                return self if _agree(bound_value, value) else None
        return replace(self, bindings=(*self.bindings, (name, value)))

    def with_operations(self, *operations: int) -> "Match":
        """Return this match with more operations."""
        return Match(self.bindings, self.operations.union(operations), self.edge_casts)


def _agree(left: Arg, right: Arg) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=TOLERANCE)
    return left == right


class Producer(NamedTuple):
    """The operation that computes a value, found by looking through casts and views."""

    op: Operation
    name: str
    value: str
    """The output of the operation that the value shows."""
    path: tuple[int, ...]
    """Index of the operation, after those of the casts and views that were looked through."""


class Unifier:
    """Matches formulas against the values of one graph."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.values = flow.graph.values
        self.names = [usual_name(op) for op in flow.operations]
        self.scalars = Scalars(flow)
        self.operand_names: dict[int, frozenset[str]] = {}
        self.producers: dict[tuple[str, bool], Producer | None] = {}
        self.transparent = [self._is_broadcast(op) for op in flow.operations]

    def _is_broadcast(self, op: Operation) -> bool:
        """Return whether an operation only broadcasts.

        It then adds or removes dimensions of size one, or repeats elements without copying them.
        """
        if not op.view or len(op.outputs) != 1:
            return False
        if op.name in _BROADCASTS:
            return True
        if op.name not in {"view", "reshape", "squeeze", "flatten", "unflatten"}:
            return False
        before, after = (self.values[n].shape for n in (next(op.refs()), op.outputs[0]))
        return [n for n in before if n != 1] == [n for n in after if n != 1]

    def match(self, node: ast.expr, arg: Arg, partial: Match) -> Iterator[Match]:
        """Yield every match under which `arg` is the value of the expression `node`."""
        if isinstance(node, ast.Name):
            yield from self._match_name(node.id, arg, partial)
        elif isinstance(node, ast.Constant):
            assert isinstance(node.value, (int, float))
            if self._equals(arg, node.value):
                yield partial
        elif isinstance(node, ast.Call):
            yield from self._match_call(node, arg, partial)
        elif isinstance(node, ast.Compare):
            yield from self._match_comparison(node, arg, partial)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.Pow)):
            yield from self._match_product(factors(node), arg, partial)
        else:
            yield from self._match_sum(terms(node), arg, partial)

    def _match_name(self, name: str, arg: Arg, partial: Match) -> Iterator[Match]:
        match: Match | None = None
        if name == DIMENSIONS or (name in LIMITS and arg is None):
            match = partial.bind(name, arg)
        elif name in NUMBERS:
            number = self.scalars.number(arg)
            match = partial.bind(name, number) if number is not None else None
        elif isinstance(arg, Ref):
            value, casts = self._skip_casts(arg.name)
            if name not in STATE_NAMES or self._is_state(value):
                match = partial.bind(name, Ref(value))
            if match is not None and casts:
                match = replace(match, edge_casts=match.edge_casts.union(casts))
        if match is not None:
            yield match

    def _is_state(self, name: str) -> bool:
        """Return whether a value is a parameter or a buffer, looking through views and casts."""
        value, casts = self._skip_casts(self.flow.base(name))
        return value in self.flow.graph.states if not casts else self._is_state(value)

    def _skip_casts(self, name: str) -> tuple[str, list[int]]:
        """Return the value before any casts, and the indices of these casts."""
        casts = []
        while (index := self.flow.producer.get(name)) is not None:
            if self.names[index] not in CASTS:
                break
            casts.append(index)
            name = next(self.flow.operations[index].refs())
        return name, casts

    def _equals(self, arg: Arg, value: float) -> bool:
        number = self.scalars.number(arg)
        return number is not None and math.isclose(number, value, rel_tol=TOLERANCE, abs_tol=1e-12)

    def operand_operators(self, index: int) -> frozenset[str]:
        """Return the operators whose results are the factors of a product or the summands of a sum.

        Nested products (or sums) count as one. Returns all operators of the graph if there are too
        many operands to look at.
        """
        if index not in self.operand_names:
            joins = OF_SUMS if self.names[index] in OF_SUMS else OF_PRODUCTS
            waiting, names, steps = list(self.flow.operations[index].args[:2]), set[str](), 0
            while waiting and steps < _MOST_OPERANDS:
                producer, steps = self._producer_of(waiting.pop()), steps + 1
                if producer is not None:
                    names.add(producer.name)
                    if producer.name in joins:
                        waiting += producer.op.args[:2]
            complete = not waiting
            self.operand_names[index] = frozenset(names) if complete else frozenset(self.names)
        return self.operand_names[index]

    # --- compound ---

    def _producer_of(self, arg: Arg, through_views: bool = False) -> Producer | None:
        """Return the operation that computes a value, from the cache."""
        if not isinstance(arg, Ref):
            return None
        key = (arg.name, through_views)
        if key not in self.producers:
            self.producers[key] = self._find_producer(arg, through_views)
        return self.producers[key]

    def _find_producer(self, arg: Arg, through_views: bool) -> Producer | None:
        path: list[int] = []
        while isinstance(arg, Ref) and (index := self.flow.producer.get(arg.name)) is not None:
            op, name = self.flow.operations[index], self.names[index]
            path.append(index)
            is_transparent = name in CASTS or self.transparent[index] or (op.view and through_views)
            if not is_transparent:
                return Producer(op, name, arg.name, tuple(path))
            arg = op.args[0]
        return None

    def _match_call(self, node: ast.Call, arg: Arg, partial: Match) -> Iterator[Match]:
        name = called_function(node)
        assert name is not None
        if name == "view":
            yield from self._match_view(node.args[0], arg, partial)
            return
        if name == "mean":
            yield from self._match_divided_sum(node, arg, partial)
        function = FUNCTIONS[name]
        producer = self._producer_of(arg, function.through_views)
        if producer is None or producer.name not in function.operators:
            return
        if producer.op.outputs[function.operators[producer.name]] != producer.value:
            return
        first = next(producer.op.refs(), "")
        spec = self.values.get(first)
        arguments = function.arguments(producer.op, spec) if spec is not None else producer.op.args
        if arguments is None or len(node.args) > len(arguments):
            return
        if function.takes_list and len(node.args) != len(arguments):
            return
        partial = partial.with_operations(*producer.path)
        last = node.args[-1] if len(node.args) > 1 else None
        names_dimensions = isinstance(last, ast.Name) and last.id == DIMENSIONS
        if names_dimensions and spec is not None and not partial.value(_SHAPE):
            partial = replace(partial, bindings=(*partial.bindings, (_SHAPE, spec.shape)))
        yield from self._match_all(list(zip(node.args, arguments, strict=False)), partial)
        if name == "where" and isinstance(node.args[0], ast.Compare):
            condition, x, y = arguments
            swapped_pairs = (_negate(node.args[0]), condition), (node.args[1], y), (node.args[2], x)
            yield from self._match_all(list(swapped_pairs), partial)

    def _match_divided_sum(self, node: ast.Call, arg: Arg, partial: Match) -> Iterator[Match]:
        """Match mean(x, d) against sum(x, d) / n."""
        producer = self._producer_of(arg, through_views=True)
        if producer is None or producer.name not in {"div", "mul"} or len(producer.op.args) != 2:
            return
        for total, count in (producer.op.args, producer.op.args[::-1]):
            number = self.scalars.number(count)
            sum_producer = self._producer_of(total, through_views=True)
            if number and sum_producer is not None and sum_producer.name == "sum":
                spec = self.values[next(sum_producer.op.refs())]
                n = math.prod(spec.shape[i] for i in dimensions_of(sum_producer.op, spec))
                if math.isclose(n if producer.name == "div" else 1 / n, number, rel_tol=TOLERANCE):
                    yield from self._match_call(
                        _as_sum(node), total, partial.with_operations(*producer.path)
                    )

    def _match_all(self, pairs: list[tuple[ast.expr, Arg]], partial: Match) -> Iterator[Match]:
        """Yield every match under which all pairs of an expression and an argument agree."""
        if not pairs:
            yield partial
            return
        for match in self.match(*pairs[0], partial):
            yield from self._match_all(pairs[1:], match)

    def _match_view(self, node: ast.expr, arg: Arg, partial: Match) -> Iterator[Match]:
        """Match `node` against the value behind one or more views."""
        while isinstance(arg, Ref) and (index := self.flow.producer.get(arg.name)) is not None:
            op = self.flow.operations[index]
            if not op.view and self.names[index] not in CASTS:
                return
            partial = partial.with_operations(index)
            arg = op.args[0]
            yield from self.match(node, arg, partial)

    def _match_comparison(self, node: ast.Compare, arg: Arg, partial: Match) -> Iterator[Match]:
        """Match a comparison; formulas do not tell x > y, x >= y, y < x and y <= x apart."""
        producer = self._producer_of(arg)
        if producer is None or producer.name not in _COMPARISONS:
            return
        same_direction = isinstance(node.ops[0], ast.Gt) == (producer.name in {"gt", "ge"})
        sides = producer.op.args[:2] if same_direction else producer.op.args[1::-1]
        yield from self._match_all(
            list(zip((node.left, node.comparators[0]), sides, strict=True)),
            partial.with_operations(*producer.path),
        )

    def _match_sum(self, parts: Terms, arg: Arg, partial: Match) -> Iterator[Match]:
        if len(parts) == 1 and parts[0][1] == 1:
            yield from self.match(parts[0][0], arg, partial)
            return
        producer = self._producer_of(arg)
        if producer is None:
            if len(parts) == 1 and isinstance(arg, (int, float)):
                yield from self.match(parts[0][0], -arg, partial)
        elif producer.name == "neg":
            yield from self._match_sum(
                invert(parts), producer.op.args[0], partial.with_operations(*producer.path)
            )
        elif producer.name == "mul" and len(parts) == 1:
            for factor, operand in (producer.op.args, producer.op.args[::-1]):
                if self._equals(factor, -1.0):
                    yield from self._match_sum(
                        invert(parts), operand, partial.with_operations(*producer.path)
                    )
        elif producer.name in {"add", "sub", "rsub"} and producer.op.arg("alpha", 1) == 1:
            for left, right in splits(parts):
                first = invert(left) if producer.name == "rsub" else left
                second = invert(right) if producer.name == "sub" else right
                for match in self._match_sum(
                    first, producer.op.args[0], partial.with_operations(*producer.path)
                ):
                    yield from self._match_sum(second, producer.op.args[1], match)

    def _match_product(self, parts: Terms, arg: Arg, partial: Match) -> Iterator[Match]:
        if len(parts) == 1:
            yield from self._match_factor(*parts[0], arg, partial)
        producer = self._producer_of(arg)
        if producer is None or producer.name not in OF_PRODUCTS:
            return
        partial = partial.with_operations(*producer.path)
        if producer.name in {"mul", "div"} and len(producer.op.args) == 2:
            left_arg, right_arg = producer.op.args
            if self._equals(right_arg, 1.0):
                yield from self._match_product(parts, left_arg, partial)
            for left, right in splits(parts):
                second = invert(right) if producer.name == "div" else right
                sides = ((left, left_arg), (second, right_arg))
                specific_side, other_side = sides if _is_specific(left) else sides[::-1]
                for match in self._match_product(*specific_side, partial):
                    yield from self._match_product(*other_side, match)
        elif len(parts) > 1 and producer.name == "reciprocal":
            yield from self._match_product(invert(parts), producer.op.args[0], partial)
        elif len(parts) > 1 and producer.name in {"pow", "square"}:
            exponent = producer.op.args[1] if producer.name == "pow" else 2
            is_power = all(part is parts[0][0] for part, _ in parts)
            if is_power and exponent == sum(power for _, power in parts):
                yield from self.match(parts[0][0], producer.op.args[0], partial)

    def _match_factor(
        self, node: ast.expr, power: int, arg: Arg, partial: Match
    ) -> Iterator[Match]:
        """Match `arg` against `node` if `power` is 1, against `1 / node` if it is -1."""
        if power == 1:
            yield from self.match(node, arg, partial)
            return
        if isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in NUMBERS):
            number = self.scalars.number(arg)
            if number:
                yield from self.match(node, 1 / number, partial)
            return
        producer = self._producer_of(arg)
        if producer is None:
            return
        exponent = producer.op.args[1] if producer.name == "pow" else None
        if producer.name == "reciprocal" or exponent == -1:
            yield from self.match(
                node, producer.op.args[0], partial.with_operations(*producer.path)
            )
        inverse_root = producer.name == "rsqrt" or exponent == -0.5
        if inverse_root and isinstance(node, ast.Call) and called_function(node) == "sqrt":
            yield from self.match(
                node.args[0], producer.op.args[0], partial.with_operations(*producer.path)
            )


OF_PRODUCTS = {"mul", "div", "reciprocal", "pow", "square"}
OF_SUMS = {"add", "sub", "rsub", "neg"}
_MOST_OPERANDS = 40
_COMPARISONS = {"gt", "ge", "lt", "le"}


@functools.cache
def _is_specific(parts: Terms) -> bool:
    """Return whether a part is more than a name; a name alone matches any tensor."""
    return any(not isinstance(node, ast.Name) for node, _ in parts)


@functools.cache
def _negate(node: ast.Compare) -> ast.Compare:
    opposite = ast.Lt() if isinstance(node.ops[0], ast.Gt) else ast.Gt()
    return ast.Compare(node.left, [opposite], node.comparators)


@functools.cache
def _as_sum(node: ast.Call) -> ast.Call:
    return ast.Call(ast.Name("sum"), node.args, [])
