"""This file knows about values as Python: numbers, tuples, and what needs parentheses."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from runner.graph.ir import Arg, Number, Ref, Symbol, references

# Precedence in Python, loosest first.
COMPARISON, OR, XOR, AND, SHIFT, SUM, PRODUCT, UNARY, POWER, ATOM = range(10)


@dataclass(frozen=True, slots=True)
class Text:
    """An expression and how tightly it holds together."""

    text: str
    rank: int = ATOM

    def at(self, rank: int) -> str:
        """The expression where something of this rank is expected."""
        return self.text if self.rank >= rank else f"({self.text})"


Value = Callable[[str], Text]

_LOWEST = {
    -3.4028234663852886e38: "torch.finfo(torch.float32).min",
    3.4028234663852886e38: "torch.finfo(torch.float32).max",
    -3.3895313892515355e38: "torch.finfo(torch.bfloat16).min",
    -1.7976931348623157e308: "torch.finfo(torch.float64).min",
    -65504.0: "torch.finfo(torch.float16).min",
}


def literal(arg: Arg, value: Value) -> Text:
    """An argument as Python."""
    if isinstance(arg, Ref):
        return value(arg.name)
    if isinstance(arg, Number):
        return Text(f"{value(arg.name).at(ATOM)}.item()")
    if isinstance(arg, Symbol):
        return Text(arg.text)
    if isinstance(arg, tuple):
        items = [literal(item, value).text for item in arg]
        if any(True for _ in references(arg)) or any(isinstance(item, Symbol) for item in arg):
            return as_list(items)
        return Text("(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")")
    if isinstance(arg, str):
        return Text(json.dumps(arg))
    if isinstance(arg, bool) or arg is None:
        return Text(repr(arg))
    if isinstance(arg, float):
        return _float(arg)
    return Text(repr(arg), UNARY if isinstance(arg, int) and arg < 0 else ATOM)


def as_list(items: list[str]) -> Text:
    return Text("[" + ", ".join(items) + "]")


def _float(number: float) -> Text:
    if math.isnan(number) or math.isinf(number):
        return Text(f'float("{number!r}")')
    if number in _LOWEST:
        return Text(_LOWEST[number])
    text = repr(number)
    if abs(number) >= 1e6 and "E" in (short := str(Decimal(text).normalize())):
        text = short.lower()
    mantissa, _, power = text.partition("e")
    text = f"{mantissa}e{int(power)}" if power else text
    return Text(text, UNARY if text.startswith("-") else ATOM)
