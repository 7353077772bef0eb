"""Tells how a program's values are distributed, from the operations alone: nothing is computed.

Initial weights are known from the operations that made them, inputs from `get_inputs()`. From there
each operation has a rule. The rules are those of mean field theory (Poole et al., 2016): a value is
normal, and each of its channels has a mean of its own that random weights pass on.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from statistics import NormalDist
from typing import Any

from runner.graph.ir import Arg, Graph, Number, Operation, Recipe, Ref, State, Symbol, TensorSpec
from runner.graph.operations import constants

FEW = 0.01
"""A smaller share of zeros is not worth drawing."""
_MOST_PIECES = 4
"""Tensors of different signs that are drawn one by one and concatenated, at most."""
_ALIKE = 0.75
"""Neighbours are alike: so many count as this power of their number."""
_NODES = [NormalDist().inv_cdf((i + 0.5) / 16) for i in range(16)]


@dataclass(frozen=True, slots=True)
class Distribution:
    """What a value's elements are like; shares are between 0 and 1."""

    mean: float = 0.0
    square: float = 1.0
    """Mean of the squares."""
    shared: float = 0.0
    """Mean of the squares of the channels' means."""
    low: float = -math.inf
    high: float = math.inf
    zeros: float = 0.0
    """Share of exact zeros."""
    infinite: float = 0.0
    """Share of -inf; the other figures are those of the finite elements."""
    structured: bool = False
    """Its elements depend on where they are, as those of a mask, or on each other, as shares do."""
    channel: int = -1
    """The dimension whose entries have means of their own, from the last one."""

    @property
    def variance(self) -> float:
        return max(self.square - self.mean**2, 0.0)

    @property
    def std(self) -> float:
        return math.sqrt(self.variance)

    @property
    def sort(self) -> tuple[bool, ...]:
        """What two tensors have in common that one rule draws."""
        return (
            self.low >= 0,
            self.high <= 0,
            FEW < self.zeros < 1,
            self.low == self.high,
            self.structured,
        )

    def times(self, factor: float) -> Distribution:
        """The distribution of its elements multiplied by a number."""
        ends = sorted(_product(end, factor) for end in (self.low, self.high))
        return replace(
            self,
            mean=self.mean * factor,
            square=self.square * factor**2,
            shared=self.shared * factor**2,
            low=ends[0],
            high=ends[1],
            zeros=self.zeros if factor else 1.0,
        )


def _product(a: float, b: float) -> float:
    return 0.0 if not a or not b else a * b


def constant(number: float) -> Distribution:
    """The distribution of a tensor that holds one number."""
    if number < -1e8:  # stands for -inf in a mask
        return Distribution(square=0.0, infinite=1.0)
    number = max(min(number, 1e30), -1e30)
    square = number**2
    return Distribution(number, square, square, number, number, float(number == 0))


def distributions(graph: Graph) -> dict[str, Distribution]:
    """The distribution of each value of a program."""
    rules = _Rules(graph.values, frozenset(constants(graph)) | _buffers(graph))
    for name, state in graph.states.items():
        rules.known[name] = _of_state(state, graph.values[name])
    for given in graph.inputs:
        spec = graph.values[given.name]
        found = _of_recipe(given.recipe) if given.recipe else None
        rules.known[given.name] = found or _drawn_by(spec)
    rules.run(graph.operations)
    return rules.known


def _buffers(graph: Graph) -> frozenset[str]:
    return frozenset(name for name, state in graph.states.items() if state.kind == "buffer")


def _drawn_by(spec: TensorSpec) -> Distribution:
    return Distribution(channel=1 - len(spec.shape) if len(spec.shape) > 3 else -1)


def _of_state(state: State, spec: TensorSpec) -> Distribution:
    if state.recipe is not None:
        return _of_recipe(state.recipe)
    if state.literal is not None and (numbers := _numbers(state.literal)):
        square = sum(n * n for n in numbers) / len(numbers)
        zeros = sum(n == 0 for n in numbers) / len(numbers)
        mean = sum(numbers) / len(numbers)
        return Distribution(mean, square, square, min(numbers), max(numbers), zeros)
    fan = prod(spec.shape[1:]) or 1
    return Distribution(square=1 / (3 * fan))


def _of_recipe(recipe: Recipe) -> Distribution:
    rules = _Rules(recipe.specs, frozenset())
    rules.run(recipe.operations)
    found = rules.known.get(recipe.result, Distribution())
    spec = recipe.specs[recipe.result]
    return replace(found, channel=_drawn_by(spec).channel)


def _numbers(text: str) -> list[float]:
    """The numbers of a tensor that is written out."""
    try:
        call = ast.parse(text, mode="eval").body
        value = ast.literal_eval(call.args[0]) if isinstance(call, ast.Call) else []
    except (ValueError, SyntaxError):
        return []
    found: list[float] = []
    queue = [value]
    while queue:
        item = queue.pop()
        if isinstance(item, (list, tuple)):
            queue += item
        elif isinstance(item, (bool, int, float)):
            found.append(float(item))
    return found


# --- one operation after the other --------------------------------------------------------------


class _Rules:
    """The distributions known so far, and the rule of each operation."""

    def __init__(self, specs: Any, fixed: frozenset[str]) -> None:
        self.specs = specs
        self.known: dict[str, Distribution] = {}
        self.fixed = fixed
        """Values that depend on no input and no parameter, such as masks."""
        self.base: dict[str, str] = {}
        """The value that each view shows."""
        self.cumulative: set[str] = set()

    def run(self, operations: Iterable[Operation]) -> None:
        for op in operations:
            if op.view and (source := next(op.refs(), None)):
                self.base.update((name, self.base.get(source, source)) for name in op.outputs)
            if op.name == "cumsum":
                self.cumulative.update(op.outputs)
            for name, made in zip(op.outputs, self._results(op), strict=False):
                if name:
                    self.known[name] = _sound(made)

    def _results(self, op: Operation) -> list[Distribution]:
        name = op.name
        if name.endswith("_") and not name.endswith("__"):
            name = name.rstrip("_")
        rule = _RULES.get(name.removeprefix("special_"))
        try:
            if op.view:
                made: Any = _viewed(self, op)
            elif rule is not None:
                made = rule(self, op)
            elif name in _FUNCTIONS:
                made = pointwise(self.first(op), _FUNCTIONS[name])
            else:
                made = replace(_freed(self.first(op)), structured=False)
        except (ArithmeticError, ValueError, LookupError, TypeError, StopIteration, AssertionError):
            made = Distribution()
        return list(made) if isinstance(made, tuple) else [made] * len(op.outputs)

    def of(self, arg: Arg) -> Distribution:
        if isinstance(arg, (Ref, Number)):
            return self.known.get(arg.name, Distribution())
        if isinstance(arg, Symbol):
            numbers = _numbers(arg.text)
            return constant(sum(numbers) / len(numbers)) if numbers else Distribution()
        return constant(float(arg)) if isinstance(arg, (bool, int, float)) else Distribution()

    def first(self, op: Operation) -> Distribution:
        """The distribution of the first tensor that an operation reads."""
        return self.of(next((Ref(name) for name in op.refs()), None))

    def shape(self, arg: Arg) -> tuple[int, ...]:
        return self.specs[arg.name].shape if isinstance(arg, Ref) else ()

    def result(self, op: Operation) -> tuple[int, ...]:
        return self.specs[op.outputs[0]].shape if op.outputs[0] else ()

    def are_sums_of_one(self, op: Operation) -> bool:
        """Whether two values are views of one cumulative sum."""
        bases = {self.base.get(name, name) for name in op.refs()}
        return len(bases) == 1 and bases <= self.cumulative

    def is_fixed(self, arg: Arg) -> bool:
        return not isinstance(arg, Ref) or arg.name in self.fixed


def _sound(d: Distribution) -> Distribution:
    """Figures that fit each other, whatever the rules made of them."""
    if not all(map(math.isfinite, (d.mean, d.square, d.shared))):
        return replace(Distribution(low=d.low, high=d.high), structured=d.structured)
    mean = max(min(d.mean, 1e15), -1e15)
    square = min(max(d.square, mean**2), 1e30)
    shared = min(max(d.shared, mean**2), square)
    return replace(d, mean=mean, square=square, shared=shared)


def _freed(d: Distribution) -> Distribution:
    """The same figures without bounds and zeros: what an unknown operation may leave of them."""
    return replace(d, low=-math.inf, high=math.inf, zeros=0.0, infinite=0.0)


# --- functions of each element --------------------------------------------------------------------


def pointwise(d: Distribution, function: Callable[[float], float]) -> Distribution:
    """The distribution of a function of each element."""

    def value(x: float) -> float:
        x = max(min(x, d.high), d.low)
        try:
            return max(min(function(x), 1e15), -1e15)
        except (ValueError, OverflowError, ZeroDivisionError):
            return 1e15 if x > 0 else 0.0

    between = math.sqrt(max(d.shared - d.mean**2, 0.0))
    within = math.sqrt(max(d.square - d.shared, 0.0))
    means, squares = [], []
    for channel in _NODES if between else [0.0]:
        center = d.mean + between * channel
        values = [value(center + within * node) for node in (_NODES if within else [0.0])]
        means.append(sum(values) / len(values))
        squares.append(sum(v * v for v in values) / len(values))
    lowest, highest = _ends(d, value)
    normal = NormalDist(d.mean, d.std or 1e-30)
    points = [(i + 0.5) / 200 for i in range(200)]
    zeros = sum(value(normal.inv_cdf(p)) == 0 for p in points) / len(points)
    if value(0.0) == 0 and d.zeros:
        zeros = max(zeros, d.zeros, d.zeros + (1 - d.zeros) * zeros if d.low < 0 else 0.0)
    kept = d.infinite
    if d.infinite:
        try:
            end = function(-1e30)
        except OverflowError:
            end = 0.0
        if abs(end) < 1e20:
            zeros, kept = d.infinite + (1 - d.infinite) * zeros, 0.0
            means = [m * (1 - d.infinite) + end * d.infinite for m in means]
            squares = [s * (1 - d.infinite) + end**2 * d.infinite for s in squares]
            lowest = min(lowest, end)
    return replace(
        d,
        mean=sum(means) / len(means),
        square=sum(squares) / len(squares),
        shared=sum(m * m for m in means) / len(means),
        low=lowest,
        high=highest,
        zeros=zeros,
        infinite=kept,
        structured=d.structured and (kept > 0 or value(0.0) == 0 or d.infinite > 0),
    )


def _ends(d: Distribution, value: Callable[[float], float]) -> tuple[float, float]:
    """The least and the largest that a function makes of what lies within the bounds."""
    low, high = max(d.low, -1e6), min(d.high, 1e6)
    inner = [-(2.0**k) for k in range(-6, 7)] + [0.0] + [2.0**k for k in range(-6, 7)]
    probes = [low, high, *(p for p in (*inner, -0.75, -1.3) if low < p < high)]
    found = [value(p) for p in probes]
    least, largest = min(found), max(found)
    return (
        -math.inf if least < -1e3 else least,
        math.inf if largest > 1e3 else largest,
    )


def _softplus(x: float) -> float:
    return x if x > 30 else math.log1p(math.exp(x))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -500 else 0.0


def _number(arg: Arg, otherwise: float) -> float:
    return float(arg) if isinstance(arg, (bool, int, float)) else otherwise


_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "relu6": lambda x: min(max(x, 0.0), 6.0),
    "sigmoid": _sigmoid,
    "hardsigmoid": lambda x: min(max(x / 6 + 0.5, 0.0), 1.0),
    "hardswish": lambda x: x * min(max(x / 6 + 0.5, 0.0), 1.0),
    "tanh": math.tanh,
    "exp": math.exp,
    "expm1": math.expm1,
    "log": lambda x: math.log(max(x, 1e-12)),
    "log1p": lambda x: math.log1p(max(x, -1 + 1e-12)),
    "log2": lambda x: math.log2(max(x, 1e-12)),
    "sqrt": lambda x: math.sqrt(max(x, 0.0)),
    "rsqrt": lambda x: 1 / math.sqrt(max(x, 1e-12)),
    "reciprocal": lambda x: 1 / x,
    "abs": abs,
    "neg": lambda x: -x,
    "square": lambda x: x * x,
    "gelu": lambda x: x * NormalDist().cdf(x),
    "silu": lambda x: x * _sigmoid(x),
    "mish": lambda x: x * math.tanh(_softplus(x)),
    "selu": lambda x: 1.0507 * (x if x > 0 else 1.67326 * math.expm1(x)),
    "elu": lambda x: x if x > 0 else math.expm1(x),
    "softplus": _softplus,
    "log_sigmoid": lambda x: -_softplus(-x),
    "softsign": lambda x: x / (1 + abs(x)),
    "sin": math.sin,
    "cos": math.cos,
    "erf": math.erf,
    "erfinv": lambda x: NormalDist().inv_cdf((min(max(x, -0.999), 0.999) + 1) / 2) / math.sqrt(2),
    "sign": lambda x: float((x > 0) - (x < 0)),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
}


def _clamp(rules: _Rules, op: Operation) -> Distribution:
    least = op.arg("min", op.arg("min_val", -1.0 if op.name.startswith("hardtanh") else None))
    most = op.arg("max", op.arg("max_val", 1.0 if op.name.startswith("hardtanh") else None))
    low, high = _number(least, -math.inf), _number(most, math.inf)
    made = pointwise(rules.of(op.args[0]), lambda x: min(max(x, low), high))
    return replace(made, low=max(made.low, low), high=min(made.high, high))


def _leaky(rules: _Rules, op: Operation) -> Distribution:
    slope = _number(op.arg("negative_slope"), 0.01)
    return pointwise(rules.of(op.args[0]), lambda x: x if x > 0 else slope * x)


def _power(rules: _Rules, op: Operation) -> Distribution:
    base, exponent = op.args[0], op.args[1]
    if isinstance(exponent, Ref):
        number = _number(base, rules.of(base).mean)
        return pointwise(rules.of(exponent), lambda x: abs(number) ** x)
    power = _number(exponent, 1.0)
    if power == int(power):
        return pointwise(rules.of(base), lambda x: x ** int(power))
    return pointwise(rules.of(base), lambda x: max(x, 0.0) ** power)


# --- two tensors ----------------------------------------------------------------------------------


def _add(rules: _Rules, op: Operation) -> Distribution:
    return _sum(rules, op, 1.0)


def _sub(rules: _Rules, op: Operation) -> Distribution:
    return _sum(rules, op, -1.0)


def _rsub(rules: _Rules, op: Operation) -> Distribution:
    return _plus(rules.of(op.args[1]), rules.of(op.args[0]).times(-1.0))


def _sum(rules: _Rules, op: Operation, sign: float) -> Distribution:
    a, b = rules.of(op.args[0]), rules.of(op.args[1])
    if op.args[0] == op.args[1]:
        return a.times(1.0 + sign)
    if sign < 0 and rules.are_sums_of_one(op):
        return replace(a.times(2 / 3), structured=False)  # a stretch of it: a third for a half
    b = b.times(sign * _number(op.arg("alpha"), 1.0))
    made = _plus(a, b)
    hidden = (made.infinite > 0) and all(
        d.structured or not d.infinite or rules.is_fixed(arg)
        for d, arg in zip((a, b), op.args[:2], strict=True)
    )
    return replace(made, structured=hidden, infinite=made.infinite if hidden else 0.0)


def _plus(a: Distribution, b: Distribution) -> Distribution:
    return replace(
        a,
        mean=a.mean + b.mean,
        square=a.variance + b.variance + (a.mean + b.mean) ** 2,
        shared=a.shared - a.mean**2 + b.shared - b.mean**2 + (a.mean + b.mean) ** 2,
        low=a.low + b.low,
        high=a.high + b.high,
        zeros=a.zeros * b.zeros,
        infinite=max(a.infinite, b.infinite),
        structured=False,
    )


def _mul(rules: _Rules, op: Operation) -> Distribution:
    if op.args[0] == op.args[1]:
        return pointwise(rules.of(op.args[0]), lambda x: x * x)
    return _times(rules.of(op.args[0]), rules.of(op.args[1]))


def _div(rules: _Rules, op: Operation) -> Distribution:
    by = rules.of(op.args[1])
    if by.low == by.high:
        return rules.of(op.args[0]).times(1 / by.low) if by.low else Distribution()
    return _times(rules.of(op.args[0]), pointwise(by, lambda x: 1 / x if x else 0.0))


def _times(a: Distribution, b: Distribution) -> Distribution:
    if b.low == b.high:
        return a.times(b.low)
    if a.low == a.high:
        return replace(b.times(a.low), structured=b.structured)
    ends = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    zeros = 1 - (1 - a.zeros) * (1 - b.zeros)
    return replace(
        a,
        mean=a.mean * b.mean,
        square=a.square * b.square,
        shared=a.shared * b.shared,
        low=min(ends),
        high=max(ends),
        zeros=zeros,
        infinite=max(a.infinite, b.infinite),
        structured=any(d.structured and (d.zeros > FEW or d.infinite > 0) for d in (a, b)),
    )


def mixed(parts: list[tuple[float, Distribution]]) -> Distribution:
    """The distribution of several tensors' elements, each with its share."""
    whole = sum(share for share, _ in parts) or 1.0
    parts = [(share / whole, d) for share, d in parts if share]

    def average(figure: Callable[[Distribution], float]) -> float:
        return sum(share * figure(d) for share, d in parts)

    return Distribution(
        average(lambda d: d.mean),
        average(lambda d: d.square),
        average(lambda d: d.shared),
        min(d.low for _, d in parts),
        max(d.high for _, d in parts),
        average(lambda d: d.zeros),
        average(lambda d: d.infinite),
        any(d.structured for _, d in parts),
        parts[0][1].channel,
    )


def _cat(rules: _Rules, op: Operation) -> Distribution:
    taken = op.args[0] if isinstance(op.args[0], tuple) else op.args
    parts = [(prod(rules.shape(a)), rules.of(a)) for a in taken if isinstance(a, Ref)]
    kinds = {d.sort for _, d in parts}
    apart = len(kinds) > 1 and len(parts) <= _MOST_PIECES
    return replace(mixed([(float(n), d) for n, d in parts]), structured=apart)


def _scattered(rules: _Rules, op: Operation) -> Distribution:
    """Values written into some places of a tensor."""
    base = rules.of(op.args[0])
    source: Arg = op.arg("src") or op.arg("value") or op.args[1]
    if op.name == "scatter":
        source = op.args[3] if len(op.args) > 3 else source
    places = op.arg("index") if op.name.startswith("scatter") else source
    share = prod(rules.shape(places)) / max(prod(rules.result(op)), 1) if places else 0.5
    share = min(share, 1.0)
    made = mixed([(1 - share, base), (share, rules.of(source))])
    return replace(made, structured=base.zeros == 1)


def _accumulated(rules: _Rules, op: Operation) -> Distribution:
    """Values added to random places of a tensor: how many each place gets is a Poisson number."""
    base, source = rules.of(op.args[0]), rules.of(op.args[3])
    each = prod(rules.shape(op.args[3])) / max(prod(rules.result(op)), 1)
    mean = base.mean + each * source.mean
    return Distribution(
        mean,
        base.variance + each * source.square + mean**2,
        low=base.low if source.low >= 0 else -math.inf,
        high=base.high if source.high <= 0 else math.inf,
        zeros=base.zeros * math.exp(-each),
    )


def _filled(rules: _Rules, op: Operation) -> Distribution:
    x, mask, value = op.args[0], op.args[1], op.args[2]
    return _chosen(rules, mask, value, x)


def _where(rules: _Rules, op: Operation) -> Distribution:
    condition, one, other = op.args[0], op.args[1], op.args[2]
    return _chosen(rules, condition, one, other)


def _chosen(rules: _Rules, mask: Arg, one: Arg, other: Arg) -> Distribution:
    share = rules.of(mask).mean
    a, b = rules.of(one), rules.of(other)
    infinite = share * a.infinite + (1 - share) * b.infinite
    finite = [(w, d) for w, d in ((share, a), (1 - share, b)) if d.infinite < 1]
    made = replace(mixed(finite) if finite else a, infinite=infinite)
    marked = rules.is_fixed(mask) and any(d.zeros == 1 or d.infinite for d in (a, b))
    kept = any(d.structured for d in (a, b)) or marked
    return replace(made, structured=kept, infinite=infinite if kept else 0.0)


def _compared(rules: _Rules, op: Operation) -> Distribution:
    a, b = rules.of(op.args[0]), rules.of(op.args[1])
    name = op.name.strip("_")
    if name in {"eq", "ne"}:
        same = a.zeros if b.low == b.high == 0 else FEW
        if a.low == 0 and a.high == 1 and b.low == b.high == 1:
            same = a.mean
        share = same if name == "eq" else 1 - same
    else:
        spread = math.sqrt(a.variance + b.variance) or 1e-9
        below = NormalDist(a.mean - b.mean, spread).cdf(0)
        share = below if name.startswith("l") else 1 - below
    return _boolean(share, a)


def _boolean(share: float, like: Distribution) -> Distribution:
    return Distribution(share, share, share**2, 0.0, 1.0, 1 - share, channel=like.channel)


def _not(rules: _Rules, op: Operation) -> Distribution:
    d = rules.of(op.args[0])
    return _boolean(1 - d.mean, d)


def _and(rules: _Rules, op: Operation) -> Distribution:
    a, b = rules.of(op.args[0]), rules.of(op.args[1])
    return _boolean(a.mean * b.mean, a)


def _or(rules: _Rules, op: Operation) -> Distribution:
    a, b = rules.of(op.args[0]), rules.of(op.args[1])
    return _boolean(1 - (1 - a.mean) * (1 - b.mean), a)


# --- contractions ---------------------------------------------------------------------------------


def _contracted(a: Distribution, b: Distribution, count: float) -> Distribution:
    """The sum of `count` products of independent elements."""
    # Weights that are shares or scores of positions average what a channel has in common.
    across_a = a.mean**2 if b.mean == 0 or a.low >= 0 else a.shared
    across_b = b.shared if a.low >= 0 else b.mean**2
    pairs = count * (count - 1)
    square = count * a.square * b.square + pairs * across_a * across_b
    signed = (a.low >= 0) and (b.low >= 0)
    return Distribution(
        mean=count * a.mean * b.mean,
        square=square,
        shared=count * a.shared * b.shared + pairs * across_a * across_b,
        low=0.0 if signed else -math.inf,
        high=b.high if a.high <= 1 and b.low >= 0 and a.structured else math.inf,
    )


def _projected(
    x: Distribution, weight: Distribution, bias: Distribution | None, fan: float
) -> Distribution:
    """What a layer with random weights makes of `fan` channels each."""
    direct = weight.mean**2

    def of(part: float) -> float:
        return fan * weight.variance * part + direct * (
            fan * max(part - x.mean**2, 0.0) + (fan * x.mean) ** 2
        )

    made = Distribution(fan * weight.mean * x.mean, of(x.square), of(x.shared))
    return _plus(made, replace(bias, shared=bias.square)) if bias is not None else made


def _linear(rules: _Rules, op: Operation) -> Distribution:
    fan = rules.shape(op.args[1])[-1]
    return _projected(rules.of(op.args[0]), rules.of(op.args[1]), _bias(rules, op), fan)


def _bias(rules: _Rules, op: Operation, place: int = 2) -> Distribution | None:
    bias = op.args[place] if len(op.args) > place else op.arg("bias")
    return rules.of(bias) if isinstance(bias, Ref) else None


def _conv(rules: _Rules, op: Operation) -> Distribution:
    weight, image = rules.shape(op.args[1]), rules.shape(op.args[0])
    spatial = len(weight) - 2
    fan = float(prod(weight[1:]))
    if "transpose" in op.name:
        strides = _each(op.arg("stride", 1), spatial)
        groups = int(_number(op.arg("groups"), 1.0))
        fan = weight[0] / groups * prod(weight[2:]) / prod(strides)
    else:
        padding = op.arg("padding", 0)
        if not isinstance(padding, str):
            steps = _each(op.arg("stride", 1), spatial), _each(op.arg("dilation", 1), spatial)
            pads = _each(padding, spatial)
            for size, kernel, pad, stride, gap in zip(
                image[-spatial:], weight[2:], pads, *steps, strict=True
            ):
                fan *= _covered(size, kernel, pad, stride, gap)
    x, bias = rules.of(op.args[0]), _bias(rules, op)
    made = replace(_projected(x, rules.of(op.args[1]), bias, fan), channel=-spatial - 1)
    alone = weight[1] == 1 and bias is None  # a channel of its own makes each channel
    return replace(made, zeros=_all_zero(x, prod(weight[2:]))) if alone else made


def _each(arg: Arg, count: int) -> list[int]:
    sizes = [n for n in arg if isinstance(n, int)] if isinstance(arg, tuple) else [arg]
    numbers = [int(_number(n, 1.0)) for n in sizes] or [1]
    return numbers if len(numbers) == count else [numbers[0]] * count


@lru_cache(maxsize=1024)
def _covered(size: int, kernel: int, pad: int, stride: int, gap: int) -> float:
    """The share of a kernel's taps that lie on the image and not on its padding."""
    places = range(-pad, size + pad - gap * (kernel - 1), stride)
    if not len(places) or not pad:
        return 1.0
    inside = sum(0 <= begin + gap * k < size for begin in places for k in range(kernel))
    return inside / (len(places) * kernel)


def _matmul(rules: _Rules, op: Operation) -> Distribution:
    a, b = op.args[-2:] if op.name in {"addmm", "baddbmm", "addmv"} else op.args[:2]
    made = _contracted(rules.of(a), rules.of(b), rules.shape(a)[-1])
    if op.name in {"addmm", "baddbmm", "addmv"}:
        made = _plus(made.times(_number(op.arg("alpha"), 1.0)), rules.of(op.args[0]))
    return made


def _einsum(rules: _Rules, op: Operation) -> Distribution:
    equation, operands = str(op.args[0]).replace(" ", ""), op.args[1]
    assert isinstance(operands, tuple)
    before, _, after = equation.partition("->")
    sizes: dict[str, int] = {}
    for letters, operand in zip(before.split(","), operands, strict=True):
        sizes |= dict(zip(letters, rules.shape(operand), strict=True))
    count = prod(size for letter, size in sizes.items() if letter not in after)
    made = rules.of(operands[0])
    for operand in operands[1:-1]:
        made = _times(made, rules.of(operand))
    if len(operands) == 1:
        return made if count == 1 else _added_up(made, count, count, False)
    last = rules.of(operands[-1])
    return _times(made, last) if count == 1 else _contracted(made, last, count)


def _attention(rules: _Rules, op: Operation) -> Distribution:
    query, key, value = (rules.of(a) for a in op.args[:3])
    width, length = rules.shape(op.args[0])[-1], rules.shape(op.args[1])[-2]
    scale = _number(op.arg("scale"), 1 / math.sqrt(width))
    scores = _contracted(query, key, width).times(scale)
    return _contracted(_shares(scores, length), value, length)


def _recurrent(rules: _Rules, op: Operation) -> tuple[Distribution, ...]:
    """The outputs of recurrent layers, whose gates are half open."""
    hidden = rules.of(op.args[0])
    params = next(
        a for a in op.args[1:] if isinstance(a, tuple) and any(len(rules.shape(p)) == 2 for p in a)
    )
    weights = [p for p in params if len(rules.shape(p)) == 2]
    both = 2 if op.arg("bidirectional") is True else 1
    biases = [rules.of(p) for p in params if len(rules.shape(p)) == 1]
    cell = hidden
    for into, again in list(zip(weights[::2], weights[1::2], strict=False))[::both]:
        made = _projected(hidden, rules.of(into), None, rules.shape(into)[-1])
        for _ in range(4):  # what comes back adds to what comes in
            back = _projected(hidden, rules.of(again), None, rules.shape(again)[-1])
            total = _plus(made, back)
            for bias in biases[:2]:
                total = _plus(total, replace(bias, shared=bias.square))
            new = pointwise(total, math.tanh)
            if op.name.startswith(("lstm", "gru")):
                averaged = new.shared + (new.square - new.shared) / 3
                new = replace(new, square=averaged)
            cell = new
            if op.name.startswith("lstm"):
                new = pointwise(new, math.tanh).times(0.5)
            hidden = replace(new, low=-1.0, high=1.0)
    return hidden, hidden, cell


# --- normalising, reducing, pooling ---------------------------------------------------------------


def _normed(
    d: Distribution, variance: float, shared: float, eps: float, weight: Distribution
) -> Distribution:
    scale = 1 / math.sqrt(variance + eps) if variance + eps > 0 else 0.0
    made = Distribution(0.0, variance * scale**2, shared * scale**2, channel=d.channel)
    return replace(_times(made, weight), structured=False)


def _layer_norm(rules: _Rules, op: Operation) -> Distribution:
    d = rules.of(op.args[0])
    made = _normed(
        d,
        d.variance,
        d.shared - d.mean**2,
        _number(op.arg("eps"), 1e-5),
        _weight(rules, op),
    )
    bias = _bias(rules, op, 3)
    return _plus(made, bias) if bias is not None else made


def _weight(rules: _Rules, op: Operation) -> Distribution:
    weight = op.arg("weight")
    return rules.of(weight) if isinstance(weight, Ref) else constant(1.0)


def _rms_norm(rules: _Rules, op: Operation) -> Distribution:
    d = rules.of(op.args[0])
    scale = 1 / math.sqrt(d.square + _number(op.arg("eps"), 1e-6))
    return _times(_freed(d).times(scale), _weight(rules, op))


def _batch_norm(rules: _Rules, op: Operation) -> Distribution:
    d, eps = rules.of(op.args[0]), _number(op.arg("eps"), 1e-5)
    weight, bias = _weight(rules, op), _bias(rules, op)
    dims = len(rules.shape(op.args[0]))
    d = replace(d, channel=1 - dims if dims > 2 else -1)
    if op.args[5] is True or not isinstance(op.args[3], Ref):
        made = _normed(d, d.square - d.shared, 0.0, eps, weight)
    else:
        mean, variance = rules.of(op.args[3]), rules.of(op.args[4])
        moved = _plus(d, mean.times(-1.0)) if mean.square else d
        made = _times(moved.times(1 / math.sqrt(max(variance.mean, 0.0) + eps)), weight)
    if bias is not None and bias.square:
        made = replace(_plus(made, bias))
    return replace(made, structured=False)


def _added_up(d: Distribution, count: float, channels: float, average: bool) -> Distribution:
    """The sum or the mean of `count` elements, of which `channels` are of different channels."""
    among = d.mean**2 + (d.shared - d.mean**2) / max(channels, 1)
    square = among + (d.square - d.shared) / max(count, 1)
    made = replace(
        d,
        square=square,
        shared=among,
        zeros=1.0 if d.zeros == 1 else 0.0 if count > 1 else d.zeros,
        structured=False,
        infinite=0.0,
    )
    return made if average else made.times(count)


def _reduced(rules: _Rules, op: Operation) -> Distribution:
    d, shape = rules.of(op.args[0]), rules.shape(op.args[0])
    count, channels = _reduced_dims(d, shape, op)
    return _added_up(d, count, channels, op.name == "mean")


def _reduced_dims(d: Distribution, shape: tuple[int, ...], op: Operation) -> tuple[int, int]:
    dims = op.arg("dim", op.arg("dims"))
    listed = dims if isinstance(dims, tuple) else (dims,) if isinstance(dims, int) else ()
    chosen = {int(_number(x, 0.0)) % len(shape) for x in listed} if shape else set()
    chosen = chosen or set(range(len(shape)))
    channel = d.channel % len(shape) if shape else 0
    return prod(shape[x] for x in chosen), shape[channel] if channel in chosen else 1


def _norm(rules: _Rules, op: Operation) -> Distribution:
    d, shape = rules.of(op.args[0]), rules.shape(op.args[0])
    count, _ = _reduced_dims(d, shape, op)
    power = _number(op.arg("p", op.arg("ord", 2)), 2.0)
    each = pointwise(d, lambda x: abs(x) ** power)
    total = _added_up(each, count, 1, False)
    total = replace(total, square=max(total.mean**2 * (1 + 2 / count), total.mean**2))
    made = pointwise(total, lambda x: max(x, 0.0) ** (1 / power))
    return replace(made, low=0.0, zeros=0.0, structured=False)


def _spread(rules: _Rules, op: Operation) -> Distribution:
    """The variance or the standard deviation of elements."""
    d = rules.of(op.args[0])
    value = d.variance if op.name.startswith("var") else d.std
    return Distribution(value, value**2 * 1.01, value**2, 0.0, channel=d.channel)


def _pooled(rules: _Rules, op: Operation) -> Distribution:
    before, after = rules.shape(op.args[0]), rules.result(op)
    kernel = op.arg("kernel_size")
    spatial = len(before) - 2
    count = prod(_each(kernel, int(op.name[-2]))) if kernel is not None else None
    count = count or max(prod(before) // max(prod(after), 1), 1)
    made = _added_up(rules.of(op.args[0]), count, 1, True)
    return replace(made, channel=-spatial - 1 if spatial > 0 else -1)


def _highest(rules: _Rules, op: Operation) -> Distribution:
    """The largest of several elements, neighbours being alike."""
    d, before, after = rules.of(op.args[0]), rules.shape(op.args[0]), rules.result(op)
    kernel = op.arg("kernel_size")
    digits = [c for c in op.name if c.isdigit()]
    count = float(prod(_each(kernel, int(digits[0])))) if kernel is not None and digits else 0.0
    count = (count or prod(before) / max(prod(after), 1)) ** _ALIKE
    if count <= 1:
        return replace(d, structured=False)
    mean, between, within = _behind(d)
    quantiles = [((i + 0.5) / 16) ** (1 / count) for i in range(16)]
    nodes = [NormalDist().inv_cdf(q) for q in quantiles]
    values = [
        [max(min(mean + between * c + within * x, d.high), d.low) for x in nodes] for c in _NODES
    ]
    flat = [v for row in values for v in row]
    made = replace(
        d,
        mean=sum(flat) / len(flat),
        square=sum(v * v for v in flat) / len(flat),
        shared=sum((sum(row) / len(row)) ** 2 for row in values) / len(values),
        zeros=sum(v == 0 for v in flat) / len(flat) if d.zeros else 0.0,
        structured=False,
    )
    return made


def _behind(d: Distribution) -> tuple[float, float, float]:
    """Mean and spreads, between and within channels, of the normal distribution behind a relu."""
    mean, std = rectified(d) if d.low == 0 and d.zeros > FEW else (d.mean, d.std)
    alike = max(d.shared - d.mean**2, 0.0) / d.variance if d.variance else 1.0
    return mean, std * math.sqrt(alike), std * math.sqrt(1 - alike)


def _all_zero(d: Distribution, count: int) -> float:
    """Share of windows of a channel that hold nothing but zeros."""
    if d.zeros <= FEW or d.low < 0:
        return 0.0
    mean, between, within = _behind(d)
    unit = NormalDist()
    each = [unit.cdf(-(mean + between * node) / (within or 1e-30)) for node in _NODES]
    power: float = count**_ALIKE
    return math.fsum(share**power for share in each) / len(each)


def rectified(d: Distribution) -> tuple[float, float]:
    """Mean and standard deviation of the normal distribution whose relu has these zeros."""
    unit = NormalDist()
    t = unit.inv_cdf(min(max(1 - d.zeros, 1e-4), 1 - 1e-4))
    square = (1 + t * t) * unit.cdf(t) + t * unit.pdf(t)
    std = math.sqrt(d.square / square) if square > 0 else 0.0
    return t * std, std


def _softmax(rules: _Rules, op: Operation) -> Distribution:
    dim = op.arg("dim", -1)
    length = rules.shape(op.args[0])[dim if isinstance(dim, int) else -1]
    return _shares(rules.of(op.args[0]), length)


def _shares(scores: Distribution, length: int) -> Distribution:
    """Softmax: shares of 1 of so many elements."""
    kept = max(length * (1 - scores.infinite), 1.0)
    few = math.log(length) / 2 + 1 if scores.infinite > 0.4 else 1.0  # rows differ in length
    each = min(math.exp(min(scores.variance, 30.0)) * few / (kept * length), 1 / length)
    return Distribution(
        1 / length,
        max(each, 1 / length**2),
        1 / length**2,
        0.0,
        1.0,
        scores.infinite,
        structured=True,
        channel=scores.channel,
    )


def _log_softmax(rules: _Rules, op: Operation) -> Distribution:
    dim = op.arg("dim", -1)
    length = rules.shape(op.args[0])[dim if isinstance(dim, int) else -1]
    d = rules.of(op.args[0])
    moved = constant(-math.log(length) - min(d.variance, 30.0) / 2)
    return replace(_plus(replace(d, mean=0.0, square=d.variance), moved), high=0.0)


def _summed_up(rules: _Rules, op: Operation) -> Distribution:
    """A cumulative sum."""
    d, shape, dim = rules.of(op.args[0]), rules.shape(op.args[0]), op.arg("dim", -1)
    n = shape[dim if isinstance(dim, int) else -1]
    mean = d.mean * (n + 1) / 2
    within = d.square - d.shared
    steps = (n + 1) * (2 * n + 1) / 6
    return replace(
        _freed(d),
        mean=mean,
        square=within * (n + 1) / 2 + d.shared * steps,
        shared=d.shared * ((n + 1) / 2) ** 2,
        low=0.0 if d.low >= 0 else -math.inf,
        high=0.0 if d.high <= 0 else math.inf,
        structured=False,
    )


def _topk(rules: _Rules, op: Operation) -> tuple[Distribution, ...]:
    d, n = rules.of(op.args[0]), rules.shape(op.args[0])[-1]
    k = int(_number(op.arg("k"), 1.0))
    normal = NormalDist(d.mean, d.std or 1e-30)
    values = [normal.inv_cdf(1 - (i + 0.6) / (n + 0.2)) for i in range(min(k, n))]
    mean = sum(values) / len(values)
    spread = d.variance / max(n, 1) ** 0.5
    square = sum(v * v for v in values) / len(values) + spread
    index = Distribution((n - 1) / 2, n * n / 3, low=0.0, high=n - 1.0)
    return replace(d, mean=mean, square=square, shared=mean**2, structured=False), index


# --- made from nothing, copied, moved -------------------------------------------------------------


def _uniform(low: float, high: float) -> Distribution:
    mean = (low + high) / 2
    return Distribution(mean, mean**2 + (high - low) ** 2 / 12, mean**2, low, high)


def _drawn_uniform(rules: _Rules, op: Operation) -> Distribution:
    if op.name.startswith("rand"):
        return _uniform(0.0, 1.0)
    return _uniform(_number(op.args[1], 0.0), _number(op.args[2], 1.0))


def _drawn_normal(rules: _Rules, op: Operation) -> Distribution:
    if op.name.startswith("randn"):
        return Distribution()
    mean = _number(op.args[1] if len(op.args) > 1 else op.arg("mean"), 0.0)
    std = _number(op.args[2] if len(op.args) > 2 else op.arg("std"), 1.0)
    return Distribution(mean, mean**2 + std**2, mean**2)


def _drawn_whole(rules: _Rules, op: Operation) -> Distribution:
    numbers = [_number(a, 0.0) for a in op.args if isinstance(a, int)]
    low, high = (numbers[0], numbers[1]) if op.target.endswith("low") else (0.0, numbers[0])
    d = _uniform(low, high - 1)
    return replace(d, zeros=1 / max(high - low, 1.0) if low <= 0 < high else 0.0)


def _counted(rules: _Rules, op: Operation) -> Distribution:
    numbers = [_number(a, 0.0) for a in op.args]
    start, end = (0.0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    return replace(_uniform(*sorted((start, end))), zeros=0.0)


def _one_number(number: float) -> Callable[[_Rules, Operation], Distribution]:
    return lambda rules, op: constant(number)


def _full(rules: _Rules, op: Operation) -> Distribution:
    return rules.of(op.arg("fill_value", op.arg("value", op.args[-1])))


def _copied_from(rules: _Rules, op: Operation) -> Distribution:
    return rules.of(op.args[1])


def _same(rules: _Rules, op: Operation) -> Distribution:
    return rules.first(op)


def _viewed(rules: _Rules, op: Operation) -> Distribution:
    d = rules.first(op)
    source = next(op.refs(), None)
    if source is None or not op.outputs[0]:
        return d
    before, after = rules.specs[source].shape, rules.result(op)
    return replace(d, channel=_moved(d.channel, before, after, op))


def _moved(channel: int, before: tuple[int, ...], after: tuple[int, ...], op: Operation) -> int:
    """Where a view leaves the dimension of the channels."""
    if not before or not after:
        return -1
    at = channel % len(before)
    if op.name == "permute" and isinstance(op.args[1], tuple):
        order = [int(_number(x, 0.0)) % len(before) for x in op.args[1]]
        return order.index(at) - len(after)
    if op.name in {"transpose", "swapaxes", "t"}:
        swapped = [int(_number(x, 0.0)) % len(before) for x in op.args[1:3]] or [0, 1]
        if at in swapped:
            at = swapped[1 - swapped.index(at)]
        return at - len(after)
    if len(before) == len(after):
        return at - len(after)
    behind = prod(before[at + 1 :])
    for place in range(len(after)):
        if after[place] == before[at] and prod(after[place + 1 :]) == behind:
            return place - len(after)
    return -1


def _padded(rules: _Rules, op: Operation) -> Distribution:
    d = rules.of(op.args[0])
    if op.name == "pad" and op.arg("mode", "constant") != "constant":
        return d
    share = prod(rules.shape(op.args[0])) / max(prod(rules.result(op)), 1)
    if share >= 1 - FEW:
        return d
    value = constant(_number(op.arg("value"), 0.0))
    return replace(mixed([(share, d), (1 - share, value)]), structured=True)


def _embedded(rules: _Rules, op: Operation) -> Distribution:
    return replace(rules.of(op.args[0]), channel=-1)


def _triangle(rules: _Rules, op: Operation) -> Distribution:
    half = constant(0.0)
    return replace(mixed([(0.5, rules.of(op.args[0])), (0.5, half)]), structured=True)


def _identity_matrix(rules: _Rules, op: Operation) -> Distribution:
    share = 1 / max(rules.result(op)[-1], 1)
    return replace(_boolean(share, Distribution()), structured=True)


def _gated(rules: _Rules, op: Operation) -> Distribution:
    d = rules.first(op)
    return _times(d, pointwise(d, _sigmoid))


_Rule = Callable[[_Rules, Operation], Distribution | tuple[Distribution, ...]]

_RULES: dict[str, _Rule] = {
    "add": _add, "sub": _sub, "rsub": _rsub, "mul": _mul, "div": _div,
    "pow": _power, "hardtanh": _clamp, "clamp": _clamp, "clamp_min": _clamp, "clamp_max": _clamp,
    "leaky_relu": _leaky, "where": _where, "masked_fill": _filled, "glu": _gated,
    "cat": _cat, "concat": _cat, "stack": _cat, "pad": _padded, "constant_pad_nd": _padded,
    "scatter": _scattered, "slice_scatter": _scattered, "select_scatter": _scattered,
    "index_put": _scattered, "scatter_add": _accumulated, "index_add": _accumulated,
    "eq": _compared, "ne": _compared, "lt": _compared, "le": _compared, "gt": _compared,
    "ge": _compared, "bitwise_not": _not, "logical_not": _not, "bitwise_and": _and,
    "__and__": _and, "logical_and": _and, "bitwise_or": _or, "__or__": _or, "logical_or": _or,
    "linear": _linear, "conv1d": _conv, "conv2d": _conv, "conv3d": _conv,
    "conv_transpose1d": _conv, "conv_transpose2d": _conv, "conv_transpose3d": _conv,
    "matmul": _matmul, "bmm": _matmul, "mm": _matmul, "addmm": _matmul, "baddbmm": _matmul,
    "mv": _matmul, "einsum": _einsum, "scaled_dot_product_attention": _attention,
    "lstm": _recurrent, "gru": _recurrent, "rnn_tanh": _recurrent, "rnn_relu": _recurrent,
    "layer_norm": _layer_norm, "group_norm": _layer_norm, "instance_norm": _layer_norm,
    "batch_norm": _batch_norm, "rms_norm": _rms_norm,
    "mean": _reduced, "sum": _reduced, "linalg_vector_norm": _norm, "norm": _norm,
    "var": _spread, "std": _spread, "cumsum": _summed_up, "topk": _topk,
    **{f"{how}_pool{n}d": _pooled for how in ("avg", "adaptive_avg") for n in (1, 2, 3)},
    **{f"{how}_pool{n}d": _highest for how in ("max", "adaptive_max") for n in (1, 2, 3)},
    "max_pool2d_with_indices": _highest, "amax": _highest, "max": _highest,
    "softmax": _softmax, "_softmax": _softmax, "log_softmax": _log_softmax,
    "rand": _drawn_uniform, "rand_like": _drawn_uniform, "uniform": _drawn_uniform,
    "randn": _drawn_normal, "randn_like": _drawn_normal, "normal": _drawn_normal,
    "randint": _drawn_whole, "arange": _counted, "linspace": _counted,
    "zeros": _one_number(0.0), "zeros_like": _one_number(0.0), "new_zeros": _one_number(0.0),
    "zero": _one_number(0.0), "ones": _one_number(1.0), "ones_like": _one_number(1.0),
    "new_ones": _one_number(1.0), "empty": _one_number(0.0), "full": _full, "full_like": _full,
    "new_full": _full, "fill": _full, "copy": _copied_from, "eye": _identity_matrix,
    "embedding": _embedded, "tril": _triangle, "triu": _triangle, "one_hot": _identity_matrix,
    **dict.fromkeys(
        (
            "contiguous", "clone", "to", "_to_copy", "reshape", "flatten", "repeat", "tile", "roll",
            "flip", "index", "index_select", "gather", "im2col", "pixel_shuffle", "dropout",
            "pixel_unshuffle", "channel_shuffle", "repeat_interleave", "detach", "alias", "float",
            "upsample_nearest2d", "upsample_nearest1d", "lift_fresh", "unfold", "sort", "half",
            "bfloat16", "double", "type_as", "reflection_pad2d", "replication_pad2d",
        ),
        _same,
    ),
}  # fmt: skip
