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
    OWNED,
    Terms,
    called,
    dimensions,
    factors,
    inverted,
    known_as,
    splits,
    terms,
)
from runner.graph.recognition.scalars import TOLERANCE, Scalars

CASTS = {"to", "type_as"}
_BROADCASTS = {"unsqueeze", "expand", "expand_as", "broadcast_to"}
_SHAPE = "shape"
"""The name to which a match binds the shape of the tensor that a reduction reads."""


@dataclass(frozen=True, slots=True)
class Match:
    """The values that the names of a formula stand for, and the operations that compute it."""

    bound: tuple[tuple[str, Arg], ...] = ()
    """Pairs of a formula's name and its value."""
    used: frozenset[int] = frozenset()
    """Indices of the operations that compute the formula."""
    edge: frozenset[int] = frozenset()
    """Casts of the formula's inputs; they belong to the kernel if nothing else reads them."""

    def value(self, name: str) -> Arg:
        """Return the value that a name is bound to; None if it is not bound."""
        return dict(self.bound).get(name)

    @property
    def reduced(self) -> tuple[int, ...]:
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
        """Return this match with one more name bound; None if the name has another value already.
        """
        for known, before in self.bound:
            if known == name:
                return self if _agree(before, value) else None
        return replace(self, bound=(*self.bound, (name, value)))

    def using(self, *operations: int) -> "Match":
        """Return this match with more operations."""
        return Match(self.bound, self.used.union(operations), self.edge)


def _agree(one: Arg, other: Arg) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other


class Made(NamedTuple):
    """The operation that computes a value, found by looking through casts and views."""

    op: Operation
    name: str
    value: str
    """The output of the operation that the value shows."""
    passed: tuple[int, ...]
    """Index of the operation, after those of the casts and views that were looked through."""


class Unifier:
    """Matches formulas against the values of one graph."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.values = flow.graph.values
        self.names = [known_as(op) for op in flow.operations]
        self.scalars = Scalars(flow)
        self.made_of: dict[int, frozenset[str]] = {}
        self.makers: dict[tuple[str, bool], Made | None] = {}
        self.transparent = [self._broadcasts(op) for op in flow.operations]

    def _broadcasts(self, op: Operation) -> bool:
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

    def match(self, node: ast.expr, arg: Arg, so_far: Match) -> Iterator[Match]:
        """Yield every match under which `arg` is the value of the expression `node`."""
        if isinstance(node, ast.Name):
            yield from self._name(node.id, arg, so_far)
        elif isinstance(node, ast.Constant):
            assert isinstance(node.value, (int, float))
            if self._equals(arg, node.value):
                yield so_far
        elif isinstance(node, ast.Call):
            yield from self._call(node, arg, so_far)
        elif isinstance(node, ast.Compare):
            yield from self._compared(node, arg, so_far)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.Pow)):
            yield from self._product(factors(node), arg, so_far)
        else:
            yield from self._sum(terms(node), arg, so_far)

    def _name(self, name: str, arg: Arg, so_far: Match) -> Iterator[Match]:
        bound: Match | None = None
        if name == DIMENSIONS or (name in LIMITS and arg is None):
            bound = so_far.bind(name, arg)
        elif name in NUMBERS:
            number = self.scalars.number(arg)
            bound = so_far.bind(name, number) if number is not None else None
        elif isinstance(arg, Ref):
            value, casts = self._uncast(arg.name)
            if name not in OWNED or self._owned(value):
                bound = so_far.bind(name, Ref(value))
            if bound is not None and casts:
                bound = replace(bound, edge=bound.edge.union(casts))
        if bound is not None:
            yield bound

    def _owned(self, name: str) -> bool:
        """Return whether a value is a parameter or a buffer, looking through views and casts."""
        value, casts = self._uncast(self.flow.base(name))
        return value in self.flow.graph.states if not casts else self._owned(value)

    def _uncast(self, name: str) -> tuple[str, list[int]]:
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

    def parts(self, index: int) -> frozenset[str]:
        """Return the operators whose results are the factors of a product or the summands of a sum.

        Nested products (or sums) count as one. Returns all operators of the graph if there are too
        many operands to look at.
        """
        if index not in self.made_of:
            joins = OF_SUMS if self.names[index] in OF_SUMS else OF_PRODUCTS
            waiting, found, steps = list(self.flow.operations[index].args[:2]), set[str](), 0
            while waiting and steps < _PARTS:
                made, steps = self._made_by(waiting.pop()), steps + 1
                if made is not None:
                    found.add(made.name)
                    if made.name in joins:
                        waiting += made.op.args[:2]
            whole = not waiting
            self.made_of[index] = frozenset(found) if whole else frozenset(self.names)
        return self.made_of[index]

    # --- compound ---

    def _made_by(self, arg: Arg, through_views: bool = False) -> Made | None:
        """Return the operation that computes a value, from the cache."""
        if not isinstance(arg, Ref):
            return None
        key = (arg.name, through_views)
        if key not in self.makers:
            self.makers[key] = self._maker(arg, through_views)
        return self.makers[key]

    def _maker(self, arg: Arg, through_views: bool) -> Made | None:
        passed: list[int] = []
        while isinstance(arg, Ref) and (index := self.flow.producer.get(arg.name)) is not None:
            op, name = self.flow.operations[index], self.names[index]
            passed.append(index)
            seen_through = name in CASTS or self.transparent[index] or (op.view and through_views)
            if not seen_through:
                return Made(op, name, arg.name, tuple(passed))
            arg = op.args[0]
        return None

    def _call(self, node: ast.Call, arg: Arg, so_far: Match) -> Iterator[Match]:
        name = called(node)
        assert name is not None
        if name == "view":
            yield from self._view(node.args[0], arg, so_far)
            return
        if name == "mean":
            yield from self._divided_sum(node, arg, so_far)
        function = FUNCTIONS[name]
        made = self._made_by(arg, function.through_views)
        if made is None or made.name not in function.operators:
            return
        if made.op.outputs[function.operators[made.name]] != made.value:
            return
        first = next(made.op.refs(), "")
        spec = self.values.get(first)
        arguments = function.arguments(made.op, spec) if spec is not None else made.op.args
        if arguments is None or len(node.args) > len(arguments):
            return
        if function.listed and len(node.args) != len(arguments):
            return
        so_far = so_far.using(*made.passed)
        if len(node.args) > 1 and spec is not None and _names(node.args[-1], DIMENSIONS):
            so_far = so_far if so_far.value(_SHAPE) else _shaped(so_far, spec.shape)
        yield from self._all(list(zip(node.args, arguments, strict=False)), so_far)
        if name == "where" and isinstance(node.args[0], ast.Compare):
            condition, x, y = arguments
            swapped = (_negated(node.args[0]), condition), (node.args[1], y), (node.args[2], x)
            yield from self._all(list(swapped), so_far)

    def _divided_sum(self, node: ast.Call, arg: Arg, so_far: Match) -> Iterator[Match]:
        """Match mean(x, d) against sum(x, d) / n."""
        made = self._made_by(arg, through_views=True)
        if made is None or made.name not in {"div", "mul"} or len(made.op.args) != 2:
            return
        for total, count in (made.op.args, made.op.args[::-1]):
            number = self.scalars.number(count)
            summed = self._made_by(total, through_views=True)
            if number and summed is not None and summed.name == "sum":
                spec = self.values[next(summed.op.refs())]
                n = math.prod(spec.shape[i] for i in dimensions(summed.op, spec))
                if math.isclose(n if made.name == "div" else 1 / n, number, rel_tol=TOLERANCE):
                    yield from self._call(_summed(node), total, so_far.using(*made.passed))

    def _all(self, pairs: list[tuple[ast.expr, Arg]], so_far: Match) -> Iterator[Match]:
        """Yield every match under which all pairs of an expression and an argument agree."""
        if not pairs:
            yield so_far
            return
        for found in self.match(*pairs[0], so_far):
            yield from self._all(pairs[1:], found)

    def _view(self, node: ast.expr, arg: Arg, so_far: Match) -> Iterator[Match]:
        """Match `node` against the value behind one or more views."""
        while isinstance(arg, Ref) and (index := self.flow.producer.get(arg.name)) is not None:
            op = self.flow.operations[index]
            if not op.view and self.names[index] not in CASTS:
                return
            so_far = so_far.using(index)
            arg = op.args[0]
            yield from self.match(node, arg, so_far)

    def _compared(self, node: ast.Compare, arg: Arg, so_far: Match) -> Iterator[Match]:
        """Match a comparison; formulas do not tell x > y, x >= y, y < x and y <= x apart."""
        made = self._made_by(arg)
        if made is None or made.name not in _COMPARISONS:
            return
        greater = isinstance(node.ops[0], ast.Gt) == (made.name in {"gt", "ge"})
        sides = made.op.args[:2] if greater else made.op.args[1::-1]
        yield from self._all(
            list(zip((node.left, node.comparators[0]), sides, strict=True)),
            so_far.using(*made.passed),
        )

    def _sum(self, parts: Terms, arg: Arg, so_far: Match) -> Iterator[Match]:
        if len(parts) == 1 and parts[0][1] == 1:
            yield from self.match(parts[0][0], arg, so_far)
            return
        made = self._made_by(arg)
        if made is None:
            if len(parts) == 1 and isinstance(arg, (int, float)):
                yield from self.match(parts[0][0], -arg, so_far)
        elif made.name == "neg":
            yield from self._sum(inverted(parts), made.op.args[0], so_far.using(*made.passed))
        elif made.name == "mul" and len(parts) == 1:
            for one, other in (made.op.args, made.op.args[::-1]):
                if self._equals(one, -1.0):
                    yield from self._sum(inverted(parts), other, so_far.using(*made.passed))
        elif made.name in {"add", "sub", "rsub"} and made.op.arg("alpha", 1) == 1:
            for left, right in splits(parts):
                first = inverted(left) if made.name == "rsub" else left
                second = inverted(right) if made.name == "sub" else right
                for found in self._sum(first, made.op.args[0], so_far.using(*made.passed)):
                    yield from self._sum(second, made.op.args[1], found)

    def _product(self, parts: Terms, arg: Arg, so_far: Match) -> Iterator[Match]:
        if len(parts) == 1:
            yield from self._factor(*parts[0], arg, so_far)
        made = self._made_by(arg)
        if made is None or made.name not in OF_PRODUCTS:
            return
        so_far = so_far.using(*made.passed)
        if made.name in {"mul", "div"} and len(made.op.args) == 2:
            left_arg, right_arg = made.op.args
            if self._equals(right_arg, 1.0):
                yield from self._product(parts, left_arg, so_far)
            for left, right in splits(parts):
                second = inverted(right) if made.name == "div" else right
                sides = ((left, left_arg), (second, right_arg))
                telling, other = sides if _tells(left) else sides[::-1]
                for found in self._product(*telling, so_far):
                    yield from self._product(*other, found)
        elif len(parts) > 1 and made.name == "reciprocal":
            yield from self._product(inverted(parts), made.op.args[0], so_far)
        elif len(parts) > 1 and made.name in {"pow", "square"}:
            exponent = made.op.args[1] if made.name == "pow" else 2
            repeated = all(part is parts[0][0] for part, _ in parts)
            if repeated and exponent == sum(power for _, power in parts):
                yield from self.match(parts[0][0], made.op.args[0], so_far)

    def _factor(self, node: ast.expr, power: int, arg: Arg, so_far: Match) -> Iterator[Match]:
        """Match `arg` against `node` if `power` is 1, against `1 / node` if it is -1."""
        if power == 1:
            yield from self.match(node, arg, so_far)
            return
        if isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in NUMBERS):
            number = self.scalars.number(arg)
            if number:
                yield from self.match(node, 1 / number, so_far)
            return
        made = self._made_by(arg)
        if made is None:
            return
        exponent = made.op.args[1] if made.name == "pow" else None
        if made.name == "reciprocal" or exponent == -1:
            yield from self.match(node, made.op.args[0], so_far.using(*made.passed))
        inverse_root = made.name == "rsqrt" or exponent == -0.5
        if inverse_root and isinstance(node, ast.Call) and called(node) == "sqrt":
            yield from self.match(node.args[0], made.op.args[0], so_far.using(*made.passed))


OF_PRODUCTS = {"mul", "div", "reciprocal", "pow", "square"}
OF_SUMS = {"add", "sub", "rsub", "neg"}
_PARTS = 40
_COMPARISONS = {"gt", "ge", "lt", "le"}


@functools.cache
def _tells(parts: Terms) -> bool:
    """Return whether a part is more than a name; a name alone matches any tensor."""
    return any(not isinstance(node, ast.Name) for node, _ in parts)


def _names(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _shaped(match: Match, shape: tuple[int, ...]) -> Match:
    return replace(match, bound=(*match.bound, (_SHAPE, shape)))


@functools.cache
def _negated(node: ast.Compare) -> ast.Compare:
    other = ast.Lt() if isinstance(node.ops[0], ast.Gt) else ast.Gt()
    return ast.Compare(node.left, [other], node.comparators)


@functools.cache
def _summed(node: ast.Call) -> ast.Call:
    return ast.Call(ast.Name("sum"), node.args, [])
