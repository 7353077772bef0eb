"""Writes argument values as Python expressions: numbers, tuples, strings, with precedence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from runner.graph.ir import Arg, Number, Ref, Symbol, references

# Python's levels of precedence, the loosest first.
COMPARISON, OR, XOR, AND, SHIFT, SUM, PRODUCT, UNARY, POWER, ATOM = range(10)


@dataclass(frozen=True, slots=True)
class Expression:
    """A Python expression with the precedence of its outermost operator."""

    text: str
    rank: int = ATOM
    """Precedence: COMPARISON to ATOM."""
    divisor: Expression | None = None
    """`x` if the expression is the reciprocal of x."""

    def at(self, rank: int) -> str:
        """Return the text, in parentheses if its precedence is below `rank`."""
        return self.text if self.rank >= rank else f"({self.text})"


Value = Callable[[str], Expression]
"""Gives the expression of a value by its name in the graph."""

_LIMITS = {
    -3.4028234663852886e38: "torch.finfo(torch.float32).min",
    3.4028234663852886e38: "torch.finfo(torch.float32).max",
    -3.3895313892515355e38: "torch.finfo(torch.bfloat16).min",
    -1.7976931348623157e308: "torch.finfo(torch.float64).min",
    -65504.0: "torch.finfo(torch.float16).min",
}


def literal(arg: Arg, value: Value) -> Expression:
    """Return an argument of an operation as a Python expression."""
    if isinstance(arg, Ref):
        return value(arg.name)
    if isinstance(arg, Number):
        return Expression(f"{value(arg.name).at(ATOM)}.item()")
    if isinstance(arg, Symbol):
        return Expression(arg.text)
    if isinstance(arg, tuple):
        items = [literal(item, value).text for item in arg]
        if any(True for _ in references(arg)) or any(isinstance(item, Symbol) for item in arg):
            return as_list(items)
        return Expression("(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")")
    if isinstance(arg, str):
        return Expression(json.dumps(arg))
    if isinstance(arg, bool) or arg is None:
        return Expression(repr(arg))
    if isinstance(arg, float):
        return _float_expression(arg)
    if isinstance(arg, complex):  # `(-0-1j)` would lose the sign of its zero
        return Expression(f"complex({arg.real!r}, {arg.imag!r})")
    return Expression(repr(arg), UNARY if isinstance(arg, int) and arg < 0 else ATOM)


def as_list(items: list[str]) -> Expression:
    """Return a list display of the items."""
    return Expression("[" + ", ".join(items) + "]")


def _float_expression(number: float) -> Expression:
    if math.isnan(number) or math.isinf(number):
        return Expression(f'float("{number!r}")')
    if number in _LIMITS:
        return Expression(_LIMITS[number])
    if (
        len(repr(number)) >= _DIGITS_OF_A_ROOT
        and (root := _root_expression(abs(number))) is not None
    ):
        return root if number > 0 else Expression(f"-{root.text}", min(root.rank, UNARY))
    return decimal(number)


def decimal(number: float) -> Expression:
    """Return a finite number in decimal digits."""
    text = repr(number)
    if abs(number) >= 1e6 and "E" in (short := str(Decimal(text).normalize())):
        text = short.lower()
    mantissa, _, power = text.partition("e")
    text = f"{mantissa}e{int(power)}" if power else text
    return Expression(text, UNARY if text.startswith("-") else ATOM)


_DIGITS_OF_A_ROOT = 14
_LARGEST_SIZE = 1 << 20


def _root_expression(number: float) -> Expression | None:
    """Return a root that equals a number exactly, `1 / math.sqrt(96)`; None if there is none."""
    if number == math.sqrt(2 / math.pi):
        return Expression("math.sqrt(2 / math.pi)")
    square = round(number * number)
    if 1 < square <= _LARGEST_SIZE and number == math.sqrt(square):
        return Expression(f"math.sqrt({square})")
    size = round(1 / (number * number)) if number > 1 / _LARGEST_SIZE else 0
    if not 1 < size <= _LARGEST_SIZE:
        return None
    if number == 1 / math.sqrt(size):
        return Expression(f"1 / math.sqrt({size})", PRODUCT)
    return Expression(f"{size}**-0.5", POWER) if number == size**-0.5 else None
