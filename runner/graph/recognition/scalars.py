"""Computes the numbers that a program holds as constant tensors: `torch.tensor(2.0).sqrt()`."""

import ast
import math
from collections.abc import Callable

from runner.graph.dataflow import Flow
from runner.graph.ir import Arg, Ref
from runner.graph.recognition.formula_notation import parse_formula, usual_name

TOLERANCE = 1e-3
"""Largest relative difference between a number and the one in a formula."""


class Scalars:
    """The constant numbers of one program; each is computed once."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.cache: dict[str, float | None] = {}

    def number(self, arg: Arg) -> float | None:
        """Return the number that every element of an argument is; None if that is not constant."""
        if isinstance(arg, (int, float)):
            return float(arg)
        if not isinstance(arg, Ref):
            return None
        if arg.name not in self.cache:
            self.cache[arg.name] = self._number_of(arg.name)
        return self.cache[arg.name]

    def _number_of(self, name: str) -> float | None:
        base = self.flow.base(name)
        is_single = self.flow.graph.values[base].numel == 1
        state = self.flow.graph.states.get(base)
        if state is not None:
            return _literal(state.literal) if is_single else None
        index = self.flow.producer.get(base)
        if index is None or not self.flow.constant[index]:
            return None
        op = self.flow.operations[index]
        if op.name in _FILL_VALUES:
            return _FILL_VALUES[op.name]
        if op.name in {"full", "scalar_tensor", "full_like"}:
            return self.number(op.args[-1])
        rule = _ARITHMETIC.get(usual_name(op))
        if rule is None or not is_single:
            return None
        numbers = [self.number(a) for a in op.args if not isinstance(a, (str, tuple))]
        if None in numbers:
            return None
        try:
            return float(rule(*numbers))
        except (ArithmeticError, TypeError, ValueError):  # such as 1 / 0 or the root of -1
            return None


def _literal(text: str | None) -> float | None:
    """Return the number in the source of a constant of one element."""
    if text is None:
        return None
    numbers = [node for node in ast.walk(parse_formula(text)) if _is_signed_number(node)]
    return float(ast.literal_eval(numbers[0])) if numbers else None


def _is_signed_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


_FILL_VALUES = {"zeros": 0.0, "zeros_like": 0.0, "new_zeros": 0.0, "ones": 1.0, "ones_like": 1.0,
           "new_ones": 1.0}  # fmt: skip
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
