"""This file knows about a component's inputs: drawn by the author's own rule, or like what arrives.

A tensor that the model computes from nothing (a mask, positions) is computed in the same way. Any
other intermediate is drawn by a rule that follows from the operation that makes it (a softmax gives
probabilities) and from those that read it (a logarithm needs what is positive, an index an existing
row).
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.emit.layouts import extent, has_gaps, storage_order, windows_of_one
from runner.emit.names import RESERVED, unique
from runner.emit.recipes import Recipes
from runner.graph.ir import Operation, Recipe, Ref, TensorSpec
from runner.graph.operations import is_random
from runner.tree.interface import Program
from runner.tree.part import Part

LONGEST_CONSTANT = 24
SMALL_DIVISORS = 8
"""A divisor that is a whole number is drawn from 1 to below this."""

# What an operation's result looks like.
_UNIT = {"softmax", "sigmoid", "hardsigmoid", "rand", "rand_like", "_softmax"}
_NOT_NEGATIVE = {
    "relu", "relu6", "exp", "abs", "square", "sqrt", "softplus", "norm", "linalg_vector_norm",
    "var", "std", "cumsum_exp", "rsqrt", "reciprocal", "hardswish_abs", "cdist",
    "pairwise_distance", "threshold",
}  # fmt: skip
_BOUNDED = {"tanh", "sin", "cos", "sign", "hardtanh", "cosine_similarity", "erf"}
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


def inputs_text(program: Program, part: Part, names: Sequence[str], tame: bool) -> list[str]:
    """Statements of get_inputs(), the return included; `names` are those of forward's arguments.

    `tame`: numbers are drawn between 0 and 1, where all that roots, powers and logarithms make of
    them is finite.
    """
    recipes = Recipes({*names})
    own = {i.name: i for i in program.graph.inputs}
    rules = {n: own[n].recipe if n in own else _constant(program, n) for n in part.io.inputs}
    without = [name for name, recipe in rules.items() if recipe is None]
    lines, windows = _windows(program, part, without, recipes.taken, tame)
    results: list[str] = []
    for name, variable in zip(part.io.inputs, names, strict=True):
        if (recipe := rules[name]) is not None:
            found, value = recipes.write(recipe)
        elif name in windows:
            found, value = [], windows[name]
        else:
            found, value = [], drawn(program, part, name, tame)
        if len(names) > 1 and (found or name in windows or len(value) > 60):
            found.append(f"{variable} = {value}")
            value = variable
        lines += found
        results.append(value)
    return [*lines, f"return [{', '.join(results)}]"]


def _constant(program: Program, name: str) -> Recipe | None:
    """The operations behind a value that depends on no input and no weight; None for any other."""
    chosen: set[int] = set()
    queue = [name]
    while queue:
        value = queue.pop()
        i = program.producers.get(value)
        if i is None or len(chosen) > LONGEST_CONSTANT:
            return None
        if is_random(program.graph.operations[i]) or program.graph.operations[i].name in _NO_VALUES:
            return None
        if i not in chosen:
            chosen.add(i)
            queue += program.graph.operations[i].refs()
    operations = tuple(program.graph.operations[i] for i in sorted(chosen))
    specs = tuple((n, program.spec(n)) for op in operations for n in op.outputs if n)
    return Recipe(operations, name, specs)


def drawn(program: Program, part: Part, name: str, tame: bool) -> str:
    """An expression that draws a tensor like this value, with its shape, dtype and strides."""
    spec = program.spec(name)
    if name in program.graph.seen:
        return _as_laid_out(program.graph.seen[name], spec)
    shape, back = storage_order(spec)
    return _numbers(program, part, name, spec, shape, tame) + back


def _numbers(
    program: Program,
    part: Part,
    name: str,
    spec: TensorSpec,
    shape: tuple[int, ...],
    tame: bool,
) -> str:
    size = ", ".join(map(str, shape)) or "()"
    as_tuple = f"({size},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    dtype = "" if spec.dtype == "float32" else f", dtype=torch.{spec.dtype}"
    positive = _must_be_positive(program, part, name, or_divides=not spec.floating)
    if spec.dtype == "bool":  # at least one of a mask by whose sum something is divided
        return f"torch.ones({size}{dtype})" if positive else f"(torch.rand({size}) < 0.5)"
    if (groups := _ends_of_groups(program, part, name)) is not None:
        return f"torch.linspace({groups / shape[0]:g}, {groups}, {shape[0]}).to(torch.{spec.dtype})"
    if not spec.floating:
        below = bound(program, part, name, SMALL_DIVISORS if positive else 2)
        low = int(positive and below > 1)
        return f"torch.randint({low}, {below}, {as_tuple}{'' if spec.dtype == 'int64' else dtype})"
    if spec.dtype.startswith("float8"):
        return f"torch.randn({size}).to(torch.{spec.dtype})"
    if spec.dtype.startswith("complex"):
        return f"torch.randn({size}{dtype})"
    maker = _maker(program, name)
    readers = {
        program.graph.operations[i].name
        for i in program.consumers.get(name, ())
        if i in part.operations
    }
    if readers & _NEEDS_OVER_ONE:
        return f"torch.rand({size}{dtype}).add(1.01)"
    if tame or readers & _NEEDS_UNIT:
        return f"torch.rand({size}{dtype}).clamp(0.01, 0.99)"
    if maker in _UNIT:
        return f"torch.rand({size}{dtype})"
    if readers & _NEEDS_DEFINITE:
        # Rows that add up to less than the diagonal: positive eigenvalues.
        eye = f"torch.eye({shape[-1]}{dtype})"
        return f"torch.full({as_tuple}, {0.5 / max(shape[-1], 1):.3g}{dtype}) + {eye}"
    if positive:
        return f"torch.rand({size}{dtype}).add(0.01)"
    if maker in _NOT_NEGATIVE:
        return f"torch.randn({size}{dtype}).abs()"
    if maker in _BOUNDED:
        return f"torch.randn({size}{dtype}).tanh()"
    return f"torch.randn({size}{dtype})"


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


def _maker(program: Program, name: str) -> str:
    """The operation that decides a value's range, behind views and operations that keep it."""
    seen = 0
    while seen < 50:
        seen += 1
        i = program.producers.get(name)
        if i is None:
            return ""
        op = program.graph.operations[i]
        source = next(op.refs(), None)
        if source is None or not (op.view or op.name in _SAME_RANGE):
            return op.name
        name = source
    return ""


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


def _windows(
    program: Program, part: Part, names: Sequence[str], taken: set[str], tame: bool
) -> tuple[list[str], dict[str, str]]:
    """Statements that draw buffers of which several inputs are windows, and those windows.

    One by one, each with what lies between its own elements, they would take more memory than in
    the model.
    """
    lines: list[str] = []
    windows: dict[str, str] = {}
    apart = [n for n in names if n not in program.graph.seen and has_gaps(program.spec(n))]
    for group in windows_of_one(program, apart):
        specs = {name: program.spec(name) for name in group}
        length = max(begin + extent(specs[name]) for name, begin in group.items())
        rules = {_numbers(program, part, name, specs[name], (length,), tame) for name in group}
        if len(rules) == 1 and length < sum(map(extent, specs.values())):
            buffer = unique("buffer", taken | RESERVED)
            taken.add(buffer)
            lines.append(f"{buffer} = {rules.pop()}")
            for name, begin in group.items():
                place = f"{specs[name].shape}, {specs[name].stride}"
                place += f", {begin}" if begin else ""
                windows[name] = f"{buffer}.as_strided({place})"
    return lines, windows
