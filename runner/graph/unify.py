"""This file knows about matching: whether a value of the graph was computed by a formula.

A formula is a Python expression. `x`, `a`, `cos` stand for tensors, the same one at each mention;
`weight` and `bias` for what the model owns; `eps`, `c`, `lo`, `hi` for numbers; `d` for the
dimensions of a reduction. Sums and products match in any order and grouping, `a / b` also as a
product with a reciprocal, `x**2` also as `x * x`. Casts and broadcasting are looked through, and
any view of a reduction's result; `view(x)` is x through a chain of views.
"""

import ast
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from runner.graph.flow import Flow
from runner.graph.ir import Arg, Operation, Ref, TensorSpec

NUMBERS = {"eps", "c", "c2", "lo", "hi"}
LIMITS = {"lo", "hi"}
OWNED = {"weight", "bias"}
DIMENSIONS = "d"
CASTS = {"to", "type_as"}
BROADCASTS = {"unsqueeze", "expand", "expand_as", "broadcast_to"}
_TOLERANCE = 1e-3
# Operators with several names.
_SAME = {"multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub",
         "negative": "neg", "concat": "cat", "concatenate": "cat", "amax": "max", "clip": "clamp",
         "_softmax": "softmax", "_to_copy": "to"}  # fmt: skip


def known_as(op: Operation) -> str:
    """The operator's name; the usual one, where it has several."""
    return _SAME.get(op.name, op.name)


@dataclass(frozen=True, slots=True)
class Match:
    """What the names of a formula stand for, and the operations that compute it."""

    bound: tuple[tuple[str, Arg], ...] = ()
    used: frozenset[int] = frozenset()
    edge: frozenset[int] = frozenset()
    """Casts of what goes in: part of it where nothing else reads them."""

    def value(self, name: str) -> Arg:
        return dict(self.bound).get(name)

    def bind(self, name: str, value: Arg) -> "Match | None":
        for known, before in self.bound:
            if known == name:
                return self if before == value else None
        return replace(self, bound=(*self.bound, (name, value)))

    def using(self, *operations: int) -> "Match":
        return Match(self.bound, self.used.union(operations), self.edge)


class Made(NamedTuple):
    """The operation that computes a value, beneath what is looked through."""

    op: Operation
    name: str
    match: Match
    """The match so far, this operation included."""


# --- the functions of the notation ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """The operators that compute a function, and how their arguments read in a formula."""

    operators: frozenset[str]
    arguments: Callable[[Operation, TensorSpec], tuple[Arg, ...] | None]
    """None where this call is not that function. The second argument is the first operand's."""
    output: int = 0
    through_views: bool = False
    """Its result may be reshaped before it is used: the result of a reduction."""


def _first(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    return op.args[:1]


def _reduced(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    return (op.args[0], _dims(op, spec))


def _dims(op: Operation, spec: TensorSpec) -> tuple[int, ...]:
    """The reduced dimensions, counted from the front; all where none is named."""
    rank = len(spec.shape)
    named = op.arg("dim")
    listed = named if isinstance(named, tuple) else (named,)
    dims = tuple(sorted(int(i) % max(rank, 1) for i in listed if isinstance(i, int)))
    return dims or tuple(range(rank))


def _norm(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    order = op.arg("p", op.arg("ord"))
    return (op.args[0], 2.0 if order is None else order, _dims(op, spec))


def _clamp(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    if op.name == "hardtanh":
        return (op.args[0], op.arg("min_val", -1.0), op.arg("max_val", 1.0))
    if op.name == "relu6":
        return (op.args[0], 0.0, 6.0)
    return (op.args[0], op.arg("min"), op.arg("max"))


def _root(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    return op.args[:1] if op.name == "sqrt" or op.args[1] == 0.5 else None


def _listed(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    return op.args[0] if isinstance(op.args[0], tuple) else None


def _scatter(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    """scatter(base, indices, source)."""
    return (op.args[0], op.args[2], op.args[3]) if len(op.args) > 3 else None


_UNARY = ("erf", "tanh", "sigmoid", "exp", "log", "log1p", "abs", "silu", "gelu", "relu",
          "softplus", "hardsigmoid", "topk", "view_as_complex", "softmax")  # fmt: skip
_REDUCTIONS = ("mean", "sum", "var", "std", "max", "logsumexp")
_NORMS = frozenset({"norm", "linalg_vector_norm", "linalg_norm", "frobenius_norm"})
_CLAMPS = frozenset({"clamp", "clamp_min", "clamp_max", "hardtanh", "relu6"})
_ZEROS = frozenset({"zeros_like", "full_like", "new_zeros", "new_full"})
FUNCTIONS: dict[str, Function] = {
    **{name: Function(frozenset({name}), _first) for name in _UNARY},
    **{name: Function(frozenset({name}), _reduced, through_views=True) for name in _REDUCTIONS},
    "norm": Function(_NORMS, _norm, through_views=True),
    "sqrt": Function(frozenset({"sqrt", "pow"}), _root, through_views=True),
    "clamp": Function(_CLAMPS, _clamp),
    "zeros_like": Function(_ZEROS, _first),
    "cat": Function(frozenset({"cat"}), _listed),
    "stack": Function(frozenset({"stack"}), _listed),
    "topk_indices": Function(frozenset({"topk"}), _first, output=1),
    "scatter": Function(frozenset({"scatter"}), _scatter),
}


# --- the notation ---------------------------------------------------------------------------------

Terms = tuple[tuple[ast.expr, int], ...]
"""The parts of a sum with their signs, or of a product with their exponents, 1 or -1."""


@functools.cache
def parse(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


def called(node: ast.expr) -> str | None:
    """The function that an expression calls."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


@functools.cache
def _terms(node: ast.expr) -> Terms:
    return tuple(_flat(node, 1, ast.Add, ast.Sub))


@functools.cache
def _factors(node: ast.expr) -> Terms:
    """Without the one of `1 / x`."""
    parts = _flat(node, 1, ast.Mult, ast.Div)
    return tuple(p for p in parts if not (isinstance(p[0], ast.Constant) and p[0].value == 1))


def _flat(node: ast.expr, sign: int, plus: type, minus: type) -> Iterator[tuple[ast.expr, int]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (plus, minus)):
        yield from _flat(node.left, sign, plus, minus)
        yield from _flat(node.right, sign if isinstance(node.op, plus) else -sign, plus, minus)
    elif isinstance(node, ast.UnaryOp) and plus is ast.Add:
        yield from _flat(node.operand, -sign, plus, minus)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and plus is ast.Mult:
        assert isinstance(node.right, ast.Constant)
        yield from ((node.left, sign),) * int(str(node.right.value))
    else:
        yield node, sign


@functools.cache
def _splits(parts: Terms) -> tuple[tuple[Terms, Terms], ...]:
    """All ways to give each part to the left or to the right, none of them empty-handed."""
    found = []
    for sides in product((True, False), repeat=len(parts)):
        if any(sides) and not all(sides):
            pairs = list(zip(parts, sides, strict=True))
            left = tuple(part for part, goes_left in pairs if goes_left)
            right = tuple(part for part, goes_left in pairs if not goes_left)
            found.append((left, right))
    return tuple(found)


def _inverted(parts: Terms) -> Terms:
    return tuple((part, -sign) for part, sign in parts)


# --- matching -------------------------------------------------------------------------------------


class Unifier:
    """Matches formulas against one graph."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.values = flow.graph.values
        self.names = [known_as(op) for op in flow.operations]
        self.numbers: dict[str, float | None] = {}

    def match(self, node: ast.expr, arg: Arg, so_far: Match) -> Iterator[Match]:
        """Every way in which `arg` is what `node` says."""
        if isinstance(node, ast.Name):
            yield from self._name(node.id, arg, so_far)
        elif isinstance(node, ast.Constant):
            assert isinstance(node.value, (int, float))
            if self._equals(arg, node.value):
                yield so_far
        elif isinstance(node, ast.Call):
            yield from self._call(node, arg, so_far)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.Pow)):
            yield from self._product(_factors(node), arg, so_far)
        else:
            yield from self._sum(_terms(node), arg, so_far)

    def _name(self, name: str, arg: Arg, so_far: Match) -> Iterator[Match]:
        bound: Match | None = None
        if name == DIMENSIONS or (name in LIMITS and arg is None):
            bound = so_far.bind(name, arg)
        elif name in NUMBERS:
            number = self._number(arg)
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
        """A parameter or a buffer, through views and casts."""
        value, casts = self._uncast(self.flow.base(name))
        return value in self.flow.graph.states if not casts else self._owned(value)

    def _uncast(self, name: str) -> tuple[str, list[int]]:
        casts = []
        while (index := self.flow.producer.get(name)) is not None:
            if self.names[index] not in CASTS:
                break
            casts.append(index)
            name = next(self.flow.operations[index].refs())
        return name, casts

    # --- numbers ---

    def _equals(self, arg: Arg, value: float) -> bool:
        number = self._number(arg)
        return number is not None and math.isclose(number, value, rel_tol=_TOLERANCE, abs_tol=1e-12)

    def _number(self, arg: Arg) -> float | None:
        """A number, also where it is a tensor of one element that depends on nothing."""
        if isinstance(arg, (int, float)):
            return float(arg)
        if not isinstance(arg, Ref):
            return None
        if arg.name not in self.numbers:
            single = self.values[arg.name].numel == 1
            self.numbers[arg.name] = self._number_of(arg.name) if single else None
        return self.numbers[arg.name]

    def _number_of(self, name: str) -> float | None:
        base = self.flow.base(name)
        state = self.flow.graph.states.get(base)
        if state is not None:
            return _literal(state.literal)
        index = self.flow.producer.get(base)
        if index is None or not self.flow.constant[index]:
            return None
        op = self.flow.operations[index]
        if op.name in {"full", "scalar_tensor"}:
            return self._number(op.args[-1])
        rule = _ARITHMETIC.get(self.names[index])
        numbers = [self._number(a) for a in op.args if not isinstance(a, (str, tuple))]
        return None if rule is None or None in numbers else float(rule(*numbers))

    # --- compound ---

    def _made_by(self, arg: Arg, so_far: Match, through_views: bool = False) -> Made | None:
        passed: list[int] = []
        while isinstance(arg, Ref) and (index := self.flow.producer.get(arg.name)) is not None:
            op, name = self.flow.operations[index], self.names[index]
            passed.append(index)
            if name not in CASTS and name not in BROADCASTS and not (op.view and through_views):
                return Made(op, name, so_far.using(*passed))
            arg = op.args[0]
        return None

    def _call(self, node: ast.Call, arg: Arg, so_far: Match) -> Iterator[Match]:
        name = called(node)
        assert name is not None
        if name == "view":
            yield from self._view(node.args[0], arg, so_far)
            return
        function = FUNCTIONS[name]
        made = self._made_by(arg, so_far, function.through_views)
        if made is None or made.name not in function.operators or not isinstance(arg, Ref):
            return
        if made.op.outputs[function.output] != self._beneath(arg.name):
            return
        first = next(made.op.refs(), "")
        arguments = function.arguments(made.op, self.values[first])
        if arguments is None or len(node.args) > len(arguments):
            return
        if function.arguments is _listed and len(node.args) != len(arguments):
            return
        yield from self._all(list(zip(node.args, arguments, strict=False)), made.match)

    def _beneath(self, name: str) -> str:
        """The value beneath views and casts."""
        value, casts = self._uncast(self.flow.base(name))
        return value if not casts else self._beneath(value)

    def _all(self, pairs: list[tuple[ast.expr, Arg]], so_far: Match) -> Iterator[Match]:
        if not pairs:
            yield so_far
            return
        for found in self.match(*pairs[0], so_far):
            yield from self._all(pairs[1:], found)

    def _view(self, node: ast.expr, arg: Arg, so_far: Match) -> Iterator[Match]:
        """`node` beneath one view or more."""
        while isinstance(arg, Ref) and (index := self.flow.producer.get(arg.name)) is not None:
            op = self.flow.operations[index]
            if not op.view and self.names[index] not in CASTS:
                return
            so_far = so_far.using(index)
            arg = op.args[0]
            yield from self.match(node, arg, so_far)

    def _sum(self, parts: Terms, arg: Arg, so_far: Match) -> Iterator[Match]:
        if len(parts) == 1 and parts[0][1] == 1:
            yield from self.match(parts[0][0], arg, so_far)
            return
        made = self._made_by(arg, so_far)
        if made is None:
            if len(parts) == 1 and isinstance(arg, (int, float)):
                yield from self.match(parts[0][0], -arg, so_far)
        elif made.name == "neg":
            yield from self._sum(_inverted(parts), made.op.args[0], made.match)
        elif made.name in {"add", "sub", "rsub"} and made.op.arg("alpha", 1) == 1:
            for left, right in _splits(parts):
                first = _inverted(left) if made.name == "rsub" else left
                second = _inverted(right) if made.name == "sub" else right
                for found in self._sum(first, made.op.args[0], made.match):
                    yield from self._sum(second, made.op.args[1], found)

    def _product(self, parts: Terms, arg: Arg, so_far: Match) -> Iterator[Match]:
        if len(parts) == 1:
            yield from self._factor(*parts[0], arg, so_far)
        made = self._made_by(arg, so_far)
        if made is None:
            return
        if made.name in {"mul", "div"} and len(made.op.args) == 2:
            left_arg, right_arg = made.op.args
            if self._equals(right_arg, 1.0):
                yield from self._product(parts, left_arg, made.match)
            for left, right in _splits(parts):
                second = _inverted(right) if made.name == "div" else right
                for found in self._product(left, left_arg, made.match):
                    yield from self._product(second, right_arg, found)
        elif len(parts) > 1 and made.name == "reciprocal":
            yield from self._product(_inverted(parts), made.op.args[0], made.match)
        elif len(parts) > 1 and made.name in {"pow", "square"}:
            exponent = made.op.args[1] if made.name == "pow" else 2
            repeated = all(part is parts[0][0] for part, _ in parts)
            if repeated and exponent == sum(power for _, power in parts):
                yield from self.match(parts[0][0], made.op.args[0], made.match)

    def _factor(self, node: ast.expr, power: int, arg: Arg, so_far: Match) -> Iterator[Match]:
        """`arg` is `node`, or one divided by it."""
        if power == 1:
            yield from self.match(node, arg, so_far)
            return
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, (int, float))
            if self._equals(arg, 1 / node.value):
                yield so_far
            return
        made = self._made_by(arg, so_far)
        if made is None:
            return
        exponent = made.op.args[1] if made.name == "pow" else None
        if made.name == "reciprocal" or exponent == -1:
            yield from self.match(node, made.op.args[0], made.match)
        inverse_root = made.name == "rsqrt" or exponent == -0.5
        if inverse_root and isinstance(node, ast.Call) and called(node) == "sqrt":
            yield from self.match(node.args[0], made.op.args[0], made.match)


def _literal(text: str | None) -> float | None:
    """The number in the source of a constant of one element."""
    if text is None:
        return None
    numbers = [node for node in ast.walk(ast.parse(text, mode="eval")) if _is_signed_number(node)]
    return float(ast.literal_eval(numbers[0])) if numbers else None


def _is_signed_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


_ARITHMETIC: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "rsqrt": lambda a: 1 / math.sqrt(a),
    "reciprocal": lambda a: 1 / a,
    "pow": lambda a, b: a**b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "to": lambda a: a,
}
