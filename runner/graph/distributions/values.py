"""Looks up an operation's operands: their distributions, shapes and numbers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping

from runner.graph.distributions.distribution import Distribution, constant
from runner.graph.ir import Arg, Number, Operation, Ref, Symbol, TensorSpec

SIZES = {"sum", "amax", "max", "norm", "vector_norm", "linalg_vector_norm", "frobenius_norm"}
"""Reductions whose operand is normalised if it is divided by the result."""
_ROUNDING = {"floor": (0.0, 1.0), "ceil": (-1.0, 0.0), "round": (-0.5, 0.5), "trunc": (-1.0, 1.0)}
"""Bounds of a number minus the rounded number."""


class Values:
    """The values of a program: their shapes, and the distributions that are known so far."""

    def __init__(
        self,
        specs: Mapping[str, TensorSpec],
        fixed: frozenset[str] = frozenset(),
        parameters: frozenset[str] = frozenset(),
    ) -> None:
        self.specs = specs
        self.distributions: dict[str, Distribution] = {}
        self.fixed = fixed
        """Values that depend on no input and no parameter, such as masks."""
        self.parameters = parameters
        self.base: dict[str, str] = {}
        """The value that each view shows."""
        self.cumulative: set[str] = set()
        self.sizes: dict[str, str] = {}
        """By result of a reduction in SIZES: the value that was reduced."""
        self.rounded: dict[str, tuple[str, float, float]] = {}
        """By rounded value: what was rounded, and the bounds of what the rounding took away."""

    def note(self, op: Operation) -> None:
        """Record which value a view shows, which are cumulative sums, and which are rounded."""
        source = next(op.refs(), None)
        if op.view and source:
            self.base.update((name, self.base.get(source, source)) for name in op.outputs)
        if op.name == "cumsum":
            self.cumulative.update(op.outputs)
        if source and op.name in SIZES:
            self.sizes[op.outputs[0]] = source
        if source and any(op.outputs[:1]) and (rounded := self._rounding(op, source)):
            self.rounded[op.outputs[0]] = rounded

    def _rounding(self, op: Operation, source: str) -> tuple[str, float, float] | None:
        if op.name in _ROUNDING:
            return source, *_ROUNDING[op.name]
        of, low, high = self.rounded.get(source, (source, 0.0, 0.0))
        if op.name in {"to", "_to_copy"}:
            kinds = [self.specs[name].floating for name in (source, op.outputs[0])]
            is_cut = of == source and kinds == [True, False]
            return (source, *_ROUNDING["trunc"]) if is_cut else (of, low, high)
        if op.name in {"add", "sub"} and of != source and len(op.args) > 1:
            shift = number_or(op.args[1], math.nan) * (-1 if op.name == "add" else 1)
            return None if math.isnan(shift) else (of, low + shift, high + shift)
        return None

    def distribution(self, arg: Arg) -> Distribution:
        """Return the distribution of an argument; a standard normal one if it is not known."""
        if isinstance(arg, (Ref, Number)):
            return self.distributions.get(arg.name, Distribution())
        if isinstance(arg, Symbol):
            numbers = numbers_in(arg.text)
            return constant(sum(numbers) / len(numbers)) if numbers else Distribution()
        return constant(float(arg)) if isinstance(arg, (bool, int, float)) else Distribution()

    def first_distribution(self, op: Operation) -> Distribution:
        """Return the distribution of the first tensor that an operation reads."""
        return self.distribution(next((Ref(name) for name in op.refs()), None))

    def shape(self, arg: Arg) -> tuple[int, ...]:
        """Return the shape of an argument; empty if it is no value."""
        return self.specs[arg.name].shape if isinstance(arg, Ref) else ()

    def result_shape(self, op: Operation) -> tuple[int, ...]:
        """Return the shape of an operation's first result."""
        return self.specs[op.outputs[0]].shape if op.outputs[0] else ()

    def are_views_of_one_sum(self, op: Operation) -> bool:
        """Return whether two operands are views of the same cumulative sum."""
        bases = {self.base.get(name, name) for name in op.refs()}
        return len(bases) == 1 and bases <= self.cumulative

    def is_normalised(self, op: Operation) -> bool:
        """Return whether a quotient divides a value by its own sum, maximum or norm."""
        value, divisor = (arg.name if isinstance(arg, Ref) else "" for arg in op.args[:2])
        return value != "" and self.sizes.get(self.base.get(divisor, divisor)) == value

    def is_weight(self, arg: Arg) -> bool:
        """Return whether an argument is a matrix of parameters, also as a view of them."""
        name = arg.name if isinstance(arg, Ref) else ""
        return self.base.get(name, name) in self.parameters and len(self.shape(arg)) == 2

    def is_fixed(self, arg: Arg) -> bool:
        return not isinstance(arg, Ref) or arg.name in self.fixed


def numbers_in(text: str) -> list[float]:
    """Return the numbers in the Python text of a tensor."""
    try:
        call = ast.parse(text, mode="eval").body
        value = ast.literal_eval(call.args[0]) if isinstance(call, ast.Call) else []
    except (ValueError, SyntaxError):
        return []
    numbers: list[float] = []
    queue = [value]
    while queue:
        item = queue.pop()
        if isinstance(item, (list, tuple)):
            queue += item
        elif isinstance(item, (bool, int, float)):
            numbers.append(float(item))
    return numbers


def number_or(arg: Arg, otherwise: float) -> float:
    """Return an argument as a float, or `otherwise` if it is no number."""
    return float(arg) if isinstance(arg, (bool, int, float)) else otherwise


def bias_of(values: Values, op: Operation, position: int = 2) -> Distribution | None:
    """Return the distribution of an operation's bias, or None if it has none."""
    bias = op.args[position] if len(op.args) > position else op.arg("bias")
    return values.distribution(bias) if isinstance(bias, Ref) else None


def per_dimension(arg: Arg, count: int) -> list[int]:
    """Return one integer for each of `count` dimensions, from a number or a tuple."""
    sizes = [n for n in arg if isinstance(n, int)] if isinstance(arg, tuple) else [arg]
    numbers = [int(number_or(n, 1.0)) for n in sizes] or [1]
    return numbers if len(numbers) == count else [numbers[0]] * count


Rule = Callable[[Values, Operation], Distribution | tuple[Distribution, ...]]
"""Function that returns the distribution of an operation's result, or of each of its results."""
