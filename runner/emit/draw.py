"""Writes get_inputs(): drawn by the author's own rule, or like what arrives in the model.

A tensor that the model computes from nothing (a mask, positions) is computed in the same way. What
a cheap operation gives a structure (a softmax, a causal mask) is drawn before that operation. Any
other intermediate is drawn from the distribution that the graph says it has, unless those that read
it need another (a logarithm what is positive, an index an existing row).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from runner.emit.layouts import extent, has_gaps, storage_order, windows_of_one
from runner.emit.names import RESERVED, identifier, unique
from runner.emit.recipes import Recipes
from runner.emit.roles import made_name
from runner.emit.text import ATOM, COMPARISON, PRODUCT, SUM, UNARY, Text
from runner.graph.distributions import FEW, Distribution, mixed, pointwise, rectified
from runner.graph.ir import Arg, Operation, Recipe, Ref, State, Symbol, TensorSpec, substitute
from runner.graph.operations import is_random, reads_only_shape
from runner.tree.interface import Program
from runner.tree.part import Part

LONGEST_CONSTANT = 24
SMALL_DIVISORS = 8
"""A divisor that is a whole number is drawn from 1 to below this."""
MOST_DRAWN = 16
"""So many times an input's elements may be drawn to make it."""
FAR = 7
"""Scales of instances that are further apart than so many times are not drawn by one rule."""
LARGE_BYTES = 1 << 30
"""An input from this size on is drawn in place, without a second one beside it."""
PLAIN_SPREAD = 1.5
"""Within so many times of 1, either way, a standard deviation is not worth writing."""

_NEEDS_POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "lgamma"}
_DIVIDES = {"div", "true_divide", "floor_divide", "remainder", "fmod"}
_NEEDS_OVER_ONE = {"acosh", "arccosh"}
_NEEDS_UNIT = {
    "logit", "special_logit", "asin", "arcsin", "acos", "arccos", "atanh", "arctanh", "erfinv",
    "special_ndtri",
}  # fmt: skip
# What it returns is whatever was there before.
_NO_VALUES = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}
# Need a symmetric matrix with positive eigenvalues.
_NEEDS_DEFINITE = {"linalg_cholesky", "linalg_cholesky_ex", "cholesky"}
# What is positive before them is so afterwards, if all else that they take is a positive number.
_KEEPS_POSITIVE = {"add", "mul", "div", "sum", "mean", "clamp", "clamp_min", "to", "_to_copy"}
_SAME_RANGE = {
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "mean", "max", "min",
    "amax", "amin", "cat", "stack", "contiguous", "clone", "to", "reshape", "flatten",
    "repeat_interleave", "dropout", "pad", "flip", "roll",
}  # fmt: skip
# Operations that give positions along a dimension.
_INDEXES = {
    "argmax", "argmin", "max", "min", "topk", "sort", "argsort", "kthvalue", "mode", "median",
}  # fmt: skip


def inputs_text(
    program: Program, parts: Sequence[Part], names: Sequence[str], tame: bool
) -> list[str]:
    """Statements of get_inputs(), the return included; `names` are those of forward's arguments.

    `parts`: the instances of the workload, of which each input's most usual one is drawn.
    `tame`: numbers are drawn between 0 and 1, where all that roots, powers and logarithms make of
    them is finite.
    """
    part = parts[0]
    recipes = Recipes({*names})
    own = {i.name: i for i in program.graph.inputs}
    usual = _usual(program, parts)
    rules = {
        name: own[it.value].recipe if it.value in own else _constant(program, it.value)
        for name, it in usual.items()
    }
    without = [name for name, recipe in rules.items() if recipe is None]
    draw = _Draw(program, usual, tame, recipes)
    structured = {name for name in without if draw.has_structure(name)}
    lines, windows = _windows(draw, part, [n for n in without if n not in structured])
    results: list[str] = []
    for name, variable in zip(part.io.inputs, names, strict=True):
        recipe = rules[name]
        if recipe is not None:
            statements, value = recipes.write(recipe, result_name=variable)
        elif name in structured:
            statements, value = draw.again(name, variable)
        else:
            statements, value = [], windows.get(name) or draw.one(name)
        if value.isidentifier():
            pass
        elif len(names) > 1 and (statements or name in windows or len(value) > 60):
            statements.append(f"{variable} = {value}")
            value = variable
        lines += statements
        results.append(value)
    return [*lines, f"return [{', '.join(results)}]"]


@dataclass(frozen=True, slots=True)
class _Usual:
    """An instance of a workload whose input is like that of most, and the distribution of these."""

    part: Part
    value: str
    distribution: Distribution


def _usual(program: Program, parts: Sequence[Part]) -> dict[str, _Usual]:
    """For each input of the first part, what is most usual among all of them.

    One file stands for all instances: behind a relu or not, in the first block or in the last. Most
    of them have one structure, and of these most have a scale within a few times of one; of
    as many, those with the first instance count, after which the file is named.
    """
    usual: dict[str, _Usual] = {}
    for place, name in enumerate(parts[0].io.inputs):
        found = [(p, p.io.inputs[place]) for p in parts]
        known = {value: program.distributions[value] for _, value in found}
        sorts: dict[object, list[tuple[Part, str]]] = {}
        for part, value in found:
            sorts.setdefault(known[value].sort, []).append((part, value))
        alike = max(sorts.values(), key=len)
        alike.sort(key=lambda item: known[item[1]].std)
        near: list[tuple[Part, str]] = max(
            (_from(alike, i, known) for i in range(len(alike))),
            key=lambda run: (len(run), any(part is parts[0] for part, _ in run)),
        )
        part, value = near[(len(near) - 1) // 2]
        whole = mixed([(1.0, known[v]) for _, v in near])
        least, most = (known[v].std for _, v in (near[0], near[-1]))
        if whole.std:
            scaled = whole.times(math.sqrt(least * most) / whole.std)
            whole = replace(scaled, low=whole.low, high=whole.high)
        usual[name] = _Usual(part, value, whole)
    return usual


def _from(
    alike: list[tuple[Part, str]], begin: int, known: Mapping[str, Distribution]
) -> list[tuple[Part, str]]:
    """Return the instances from `begin` on whose scale is at most FAR times that of the first."""
    most = known[alike[begin][1]].std * FAR
    return [item for item in alike[begin:] if known[item[1]].std <= most]


def _constant(program: Program, name: str) -> Recipe | None:
    """The operations behind a value that depends on no input and no weight; None for any other."""
    return _steps(program, name, lambda value: False)


def _steps(program: Program, name: str, ends: Callable[[str], bool]) -> Recipe | None:
    """The operations that make a value from others at which `ends` says that it stops.

    None where they draw, are too many, or begin with a weight or with an input.
    """
    chosen: set[int] = set()
    states: dict[str, State] = {}
    queue = [name]
    while queue:
        value = queue.pop()
        if ends(value):
            continue
        state, i = program.graph.states.get(value), program.producers.get(value)
        if state is not None and state.kind != "parameter" and (state.recipe or state.literal):
            states[value] = state
        elif i is None or len(chosen) > LONGEST_CONSTANT:
            return None
        elif i not in chosen:
            op = program.graph.operations[i]
            if is_random(op) or op.name in _NO_VALUES:
                return None
            chosen.add(i)
            queue += op.refs()
    if not chosen:
        return None
    operations = [program.graph.operations[i] for i in sorted(chosen)]
    specs = {n: program.spec(n) for op in operations for n in op.outputs if n}
    begin: list[Operation] = []
    put: dict[str, Arg] = {}
    for value, state in states.items():
        if state.recipe is None:
            put[value] = Symbol(str(state.literal))
            continue
        own = {n: f"{n}.{value}" for n in state.recipe.specs}
        renamed = {n: Ref(other) for n, other in own.items()}
        for op in state.recipe.operations:
            made = _substituted(op, renamed)
            begin.append(replace(made, outputs=tuple(own.get(n, n) for n in op.outputs)))
        specs |= {own[n]: spec for n, spec in state.recipe.values}
        put[value] = renamed[state.recipe.result]
    operations = [_substituted(op, put) for op in operations]
    return Recipe((*begin, *operations), name, tuple(specs.items()))


def _substituted(op: Operation, put: Mapping[str, Arg]) -> Operation:
    def changed(arg: Arg) -> Arg:
        return substitute(arg, lambda name: put.get(name, Ref(name)))

    return replace(
        op,
        args=tuple(changed(arg) for arg in op.args),
        kwargs=tuple((key, changed(arg)) for key, arg in op.kwargs),
    )


class _Draw:
    """Expressions that draw the inputs of one file."""

    def __init__(
        self,
        program: Program,
        usual: Mapping[str, _Usual],
        tame: bool,
        recipes: Recipes,
    ) -> None:
        self.program = program
        self.usual = usual
        self.tame = tame
        self.recipes = recipes

    def one(self, name: str) -> str:
        """An expression that draws a tensor like this value, with its shape, dtype and strides."""
        spec = self.program.spec(name)
        if name in self.program.graph.seen:
            return _as_laid_out(self.program.graph.seen[name], spec)
        return self._laid_out(self.usual[name], spec).text

    def _laid_out(self, usual: _Usual, spec: TensorSpec) -> Text:
        shape, back = storage_order(spec)
        text = self.numbers(usual, spec, shape)
        return Text(text.at(ATOM) + back) if back else text

    def has_structure(self, name: str) -> bool:
        """Whether cheap operations give a value a structure, so that they are run again."""
        return self._structure_of(name) is not None

    def again(self, name: str, variable: str) -> tuple[list[str], str]:
        """(statements, expression) of a value with the operations that give it its structure."""
        made = self._structure_of(name)
        assert made is not None
        recipe, begin = made
        part = self.usual[name].part
        read = [n for op in recipe.operations for n in op.refs()]
        statements, texts = [], {}
        for value in begin:
            leaf = _Usual(part, value, self.program.distributions[value])
            texts[value] = self._laid_out(leaf, self.program.spec(value))
            if read.count(value) > 1:
                variable = unique(self._wish(value), self.recipes.taken | RESERVED)
                self.recipes.taken.add(variable)
                statements.append(f"{variable} = {texts[value].text}")
                texts[value] = Text(variable)
        more, result = self.recipes.write(
            recipe, texts, variable, {value: self._wish(value) for value in begin}
        )
        return [*statements, *more], result

    def _wish(self, name: str) -> str:
        i = self.program.producers.get(name)
        if i is None:
            return "x"
        op, after = self.program.graph.operations[i], self.program.graph.operations[i + 1 :]
        statement = takewhile(lambda other: _same_line(op, other), after)
        inside = any(name in other.refs() for other in statement)
        if op.origin and len(op.origin.targets) == 1 and not inside:
            return identifier(op.origin.targets[0])
        return made_name(op.name) or "x"

    def _structure_of(self, name: str) -> tuple[Recipe, list[str]] | None:
        """The operations that give a value its structure, and the values that they begin with."""
        program = self.program
        part, value, d = (usual := self.usual[name]).part, usual.value, usual.distribution
        if self.tame or name in program.graph.seen or not d.structured:
            return None
        if _needs(program, part, value) & (_NEEDS_OVER_ONE | _NEEDS_UNIT | _NEEDS_DEFINITE):
            return None
        if not _is_positive(d) and _must_be_positive(program, part, value, or_divides=False):
            return None
        recipe = _steps(program, value, self._is_drawn)
        if recipe is None or len(recipe.operations) > LONGEST_CONSTANT:
            return None
        made = {n for op in recipe.operations for n in op.outputs}
        begin = [n for op in recipe.operations for n in op.refs() if n not in made]
        begin = list(dict.fromkeys(begin))
        if program.spec(value).nbytes >= LARGE_BYTES:
            return None
        room = MOST_DRAWN * max(program.spec(value).numel, 1)
        fits = sum(program.spec(n).numel for n in begin) <= room
        return (recipe, begin) if begin and fits else None

    def _is_drawn(self, name: str) -> bool:
        """Whether a value that others are made from is drawn, because it has no structure."""
        program = self.program
        if name in program.fixed or program.is_state(name):
            return program.is_state(name) and program.graph.states[name].kind == "parameter"
        if program.distributions[name].structured:
            return False
        i = program.producers.get(name)
        if i is None:
            return True
        op = program.graph.operations[i]
        return reads_only_shape(op) or op.name not in _INDEXES

    def numbers(self, usual: _Usual, spec: TensorSpec, shape: tuple[int, ...]) -> Text:
        """An expression that draws the elements of a value, in another shape."""
        program = self.program
        size = ", ".join(map(str, shape)) or "()"
        as_tuple = f"({size},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
        dtype = "" if spec.dtype == "float32" else f", dtype=torch.{spec.dtype}"
        part, name, d = usual.part, usual.value, usual.distribution
        positive = _must_be_positive(program, part, name, or_divides=not spec.floating)
        if spec.dtype == "bool":  # at least one of a mask by whose sum something is divided
            share = min(max(d.mean, 0.1), 0.9) if d.low >= 0 and d.high <= 1 else 0.5
            draw = Text(f"torch.rand({size}) < {_rounded(share)}", COMPARISON)
            return Text(f"torch.ones({size}{dtype})") if positive else draw
        if (groups := _ends_of_groups(program, part, name)) is not None:
            ends = f"torch.linspace({groups / shape[0]:g}, {groups}, {shape[0]})"
            return Text(f"{ends}.to(torch.{spec.dtype})")
        if not spec.floating:
            below = bound(program, part, name, SMALL_DIVISORS if positive else 2)
            low = int(positive and below > 1)
            dtype = "" if spec.dtype == "int64" else dtype
            return Text(f"torch.randint({low}, {below}, {as_tuple}{dtype})")
        if spec.dtype.startswith("float8"):
            return Text(f"torch.randn({size}).to(torch.{spec.dtype})")
        if spec.dtype.startswith("complex"):
            return Text(f"torch.randn({size}{dtype})")
        readers = _needs(program, part, name)
        if readers & _NEEDS_OVER_ONE:
            return Text(f"torch.rand({size}{dtype}).add(1.01)")
        if self.tame or readers & _NEEDS_UNIT:
            return Text(f"torch.rand({size}{dtype}).clamp(0.01, 0.99)")
        if readers & _NEEDS_DEFINITE:
            # Rows that add up to less than the diagonal: positive eigenvalues.
            eye = f"torch.eye({shape[-1]}{dtype})"
            small = f"{0.5 / max(shape[-1], 1):.3g}"
            return Text(f"torch.full({as_tuple}, {small}{dtype}) + {eye}", SUM)
        if positive and not _is_positive(d):
            return Text(f"torch.rand({size}{dtype}).add(0.01)")
        if spec.nbytes >= LARGE_BYTES:
            return _like_in_place(d, f"torch.randn({size}{dtype})")
        return like(d, size, as_tuple, dtype)


def _same_line(op: Operation, other: Operation) -> bool:
    """Whether two operations run in one statement, whose variable is the last one's result."""
    a, b = op.origin, other.origin
    return a is not None and b is not None and (a.file, a.statement) == (b.file, b.statement)


def _needs(program: Program, part: Part, name: str) -> set[str]:
    """The operations of a part that read a value."""
    return {
        program.graph.operations[i].name
        for i in program.consumers.get(name, ())
        if i in part.operations
    }


def _is_positive(d: Distribution) -> bool:
    return d.low >= 0 and d.zeros <= FEW


def like(d: Distribution, size: str, as_tuple: str, dtype: str) -> Text:
    """An expression that draws elements of this distribution."""
    normal = f"torch.randn({size}{dtype})"
    if d.std <= 1e-5 * abs(d.mean) or d.zeros > 0.995:
        value = "torch.zeros" if abs(d.mean) < 1e-30 or d.zeros > 0.995 else "torch.full"
        if value == "torch.zeros":
            return Text(f"torch.zeros({size}{dtype})")
        return Text(f"torch.full({as_tuple}, {float(_rounded(d.mean))}{dtype})")
    if d.low >= 0 and d.zeros > FEW:
        mean, std = rectified(d)
        inner = _scaled(normal, mean, std)
        if d.high < mean + 4 * std:
            return Text(f"{inner.at(ATOM)}.clamp(0, {d.high:g})")
        return Text(f"torch.relu({inner.text})")
    if d.low >= 0 and d.high <= 1 and d.mean < 1:
        if d.std > 0.22:
            return Text(f"torch.rand({size}{dtype})")
        if d.mean > 0.05:
            slope = d.mean * (1 - d.mean)
            inner = _scaled(normal, math.log(d.mean / (1 - d.mean)), min(d.std / slope, 2.5))
            return Text(f"torch.sigmoid({inner.text})")
    if d.low >= 0:
        return _positive(d, normal)
    if d.high <= 0:
        text = _positive(d.times(-1.0), normal)
        return Text(f"-{text.at(UNARY)}", UNARY)
    if d.low >= -1 and d.high <= 1 and d.std > 0.2:
        inner = _scaled(normal, math.atanh(max(min(d.mean, 0.98), -0.98)), _before_tanh(d.std))
        return Text(f"torch.tanh({inner.text})")
    if FEW * 2 < d.zeros < 1:
        std = d.std / math.sqrt(1 - d.zeros)
        inner = _scaled(normal, d.mean / (1 - d.zeros), std)
        kept = f"(torch.rand({size}) > {_rounded(d.zeros)})"
        return Text(f"{inner.at(PRODUCT)} * {kept}", PRODUCT)
    return _scaled(normal, d.mean, d.std)


def _like_in_place(d: Distribution, normal: str) -> Text:
    """The same, nearly, in the memory of one tensor."""
    positive = d.low >= 0
    mean, std = rectified(d) if positive and d.zeros > FEW else (d.mean, d.std)
    text = normal
    if not 1 / PLAIN_SPREAD <= std <= PLAIN_SPREAD:
        text += f".mul_({_rounded(std)})"
    if abs(mean) > 0.25 * std:
        text += f".add_({_rounded(mean)})"
    if positive and d.high < math.inf:
        return Text(f"{text}.clamp_(0, {d.high:g})")
    if positive:
        return Text(text + (".relu_()" if d.zeros > FEW else ".abs_()"))
    return Text(text)


def _positive(d: Distribution, normal: str) -> Text:
    if d.mean > 4 * d.std:
        return _scaled(normal, d.mean, d.std)
    if d.mean <= 0 or d.square <= d.mean**2 or 0.8 < d.mean / d.std < 2:
        return _scaled(f"{normal}.abs()", 0.0, math.sqrt(d.square))
    ratio = math.log(d.square / d.mean**2)
    inner = _scaled(normal, math.log(d.mean) - ratio / 2, math.sqrt(ratio))
    return Text(f"torch.exp({inner.text})")


def _before_tanh(std: float) -> float:
    """The spread of normal numbers whose tanh has this one."""
    low, high = 0.0, 8.0
    for _ in range(20):
        middle = (low + high) / 2
        made = pointwise(Distribution(square=middle**2), math.tanh)
        low, high = (middle, high) if made.std < std else (low, middle)
    return low


def _scaled(draw: str, mean: float, std: float) -> Text:
    """Numbers drawn with a mean of 0 and a spread of 1, moved and spread where that matters."""
    text = Text(draw)
    if not 1 / PLAIN_SPREAD <= std <= PLAIN_SPREAD:
        text = Text(f"{draw} * {_rounded(std)}", PRODUCT)
    if abs(mean) > 0.25 * std:
        text = Text(f"{text.text} {'-' if mean < 0 else '+'} {_rounded(abs(mean))}", SUM)
    return text


def _rounded(number: float) -> str:
    """Two digits of a number."""
    return f"{float(f'{number:.2g}'):g}"


def _as_laid_out(value: str, spec: TensorSpec) -> str:
    if spec.contiguous:
        return value
    made = f"torch.empty_strided({spec.shape}, {spec.stride}, dtype=torch.{spec.dtype})"
    return f"{made}.copy_({value})"


def _ends_of_groups(program: Program, part: Part, name: str) -> int | None:
    """Rows that a grouped matrix product takes, where the value says at which each group ends."""
    for i in part.operations:
        op = program.graph.operations[i]
        ends = op.arg("offs")
        if op.name in {"grouped_mm", "_grouped_mm"} and ends == Ref(name):
            return _size(program, op.args[0], 0)
    return None


def _must_be_positive(program: Program, part: Part, name: str, *, or_divides: bool) -> bool:
    """Whether a logarithm, a root or a power of it is taken, maybe after a scale or an epsilon.

    `or_divides`: or whether something is divided by it, which a random float hardly breaks.
    """
    inside = set(part.operations)
    for i in program.consumers.get(name, ()):
        op = program.graph.operations[i]
        if i not in inside:
            continue
        if op.name in _NEEDS_POSITIVE or _is_root(op):
            return True
        if or_divides and op.name in _DIVIDES and Ref(name) in op.args[1:]:
            return True
        if op.view or (op.name in _KEEPS_POSITIVE and _numbers_positive(op)):
            outputs = filter(None, op.outputs)
            if any(_must_be_positive(program, part, o, or_divides=or_divides) for o in outputs):
                return True
    return False


def _is_root(op: Operation) -> bool:
    exponent = op.args[1] if op.name == "pow" and len(op.args) > 1 else None
    return isinstance(exponent, (int, float)) and (exponent < 0 or exponent != int(exponent))


def _numbers_positive(op: Operation) -> bool:
    """Whether it takes different tensors, and numbers that are not negative; a square is anyway."""
    if op.name not in {"add", "mul", "div"}:
        return True
    taken, others = list(op.refs()), [a for a in op.args[1:] if not isinstance(a, Ref)]
    different = len({*taken}) == len(taken)
    return different and all(isinstance(a, (int, float)) and a >= 0 for a in others)


def bound(program: Program, part: Part, name: str, otherwise: int) -> int:
    """One more than the largest index that an integer input may hold, `otherwise` if it is none."""
    limits = [
        limit
        for i in part.operations
        if (limit := _limit(program, program.graph.operations[i], name)) is not None
    ]
    if (made := _made_below(program, name)) is not None:
        limits.append(made)
    return max(1, min(limits, default=otherwise))


def _limit(program: Program, op: Operation, name: str) -> int | None:
    """What an operation that uses `name` as an index accepts."""
    index = op.arg("indices") if op.name == "embedding" else op.arg("index", op.arg("target"))
    if op.name in {"index", "_unsafe_index"}:
        places = op.args[1]
        for dim, place in enumerate(places if isinstance(places, tuple) else ()):
            if isinstance(place, Ref) and place.name == name:
                return _size(program, op.args[0], dim)
        return None
    if not isinstance(index, Ref) or index.name != name:
        return None
    if op.name == "embedding":
        return _size(program, op.arg("weight"), 0)
    usual = 1 if op.name in {"cross_entropy_loss", "nll_loss"} else 0
    along = op.arg("dim", usual)
    return _size(program, op.args[0], along if isinstance(along, int) else usual)


def _size(program: Program, arg: object, dim: int) -> int | None:
    return (
        program.spec(arg.name).shape[dim]
        if isinstance(arg, Ref) and program.spec(arg.name).shape
        else None
    )


def _made_below(program: Program, name: str) -> int | None:
    """A bound that follows from the operation that makes the value: an index, a count."""
    for _ in range(50):
        i = program.producers.get(name)
        if i is None:
            return _drawn_below(program, name)
        op = program.graph.operations[i]
        if op.name in _INDEXES:
            dim = op.arg("dim", -1)
            return _size(program, op.args[0], dim if isinstance(dim, int) else -1)
        source = next(op.refs(), None)
        if source is None or not (op.view or op.name in _SAME_RANGE):
            return None
        name = source
    return None


def _drawn_below(program: Program, name: str) -> int | None:
    for given in program.graph.inputs:
        if given.name == name and given.recipe is not None:
            for op in given.recipe.operations:
                high = op.arg("high")
                if op.name == "randint" and isinstance(high, int):
                    return high
    return None


def _windows(draw: _Draw, part: Part, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Statements that draw buffers of which several inputs are windows, and those windows.

    One by one, each with what lies between its own elements, they would take more memory than in
    the model.
    """
    program = draw.program
    lines: list[str] = []
    windows: dict[str, str] = {}
    apart = [n for n in names if n not in program.graph.seen and has_gaps(program.spec(n))]
    for group in windows_of_one(program, apart):
        specs = {name: program.spec(name) for name in group}
        length = max(begin + extent(specs[name]) for name, begin in group.items())
        rules = {draw.numbers(draw.usual[n], specs[n], (length,)).text for n in group}
        if len(rules) == 1 and length < sum(map(extent, specs.values())):
            buffer = unique("buffer", draw.recipes.taken | RESERVED)
            draw.recipes.taken.add(buffer)
            lines.append(f"{buffer} = {rules.pop()}")
            for name, begin in group.items():
                place = f"{specs[name].shape}, {specs[name].stride}"
                place += f", {begin}" if begin else ""
                windows[name] = f"{buffer}.as_strided({place})"
    return lines, windows
