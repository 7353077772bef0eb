"""Finds the numbers that the readers of a value accept: positive ones, indices of existing rows."""

from __future__ import annotations

from math import inf

from runner.graph.distributions.values import SIZES
from runner.graph.ir import Operation, Ref
from runner.graph.operations import kind
from runner.tree.interface import Program
from runner.tree.part import Part

_NEEDS_POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "lgamma"}
_DIVIDING_OPERATORS = {"div", "true_divide", "floor_divide", "remainder", "fmod"}
NEEDS_OVER_ONE = {"acosh", "arccosh"}
NEEDS_UNIT = {
    "logit", "special_logit", "asin", "arcsin", "acos", "arccos", "atanh", "arctanh", "erfinv",
    "special_ndtri",
}  # fmt: skip
SATURATING = {
    *("exp", "expm1", "sigmoid", "tanh", "erf", "softmax", "log_softmax", "logsumexp", "cosh"),
    *("sinh", "silu", "gelu", "softplus", "log_sigmoid", "exp2"),
}
LARGEST_SATURATING = 10.0
"""Greatest root mean square that they are given: they have one result, or none, for larger ones."""
# These need a symmetric matrix with positive eigenvalues.
NEEDS_DEFINITE = {
    *("linalg_cholesky", "linalg_cholesky_ex", "cholesky", "cholesky_solve", "cholesky_inverse"),
    *("linalg_solve_triangular", "triangular_solve"),
}
# These keep a positive tensor positive if their other operands are numbers that are not negative.
_KEEPS_POSITIVE = {"add", "mul", "div", "sum", "mean", "clamp", "clamp_min", "to", "_to_copy"}
_SAME_RANGE = {
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "mean", "max", "min",
    "amax", "amin", "cat", "stack", "contiguous", "clone", "to", "reshape", "flatten",
    "repeat_interleave", "dropout", "pad", "flip", "roll",
}  # fmt: skip
_CASTING_OPERATORS = {"to", "_to_copy", "long", "int", "floor", "round", "trunc"}
_CUTTING_OPERATORS = {
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), (-inf, inf)),
    "relu": (0.0, inf),
    "relu6": (0.0, 6.0),
    "hardtanh": (-1.0, 1.0),
    "hardsigmoid": (-3.0, 3.0),
}
"""Operator -> the default bounds outside of which it gives one number."""
_COMPUTING = {"pointwise", "contraction", "reduction", "scan", "copy"}
_COUNTING = {"index", "indices", "target", "repeats", "offs", "offsets", "lengths", "values"}
"""Arguments of operators that are indices or lengths."""
_NO_INDEX = 1 << 62
# These return positions along a dimension.
INDEXES = {
    "argmax", "argmin", "max", "min", "topk", "sort", "argsort", "kthvalue", "mode", "median",
}  # fmt: skip


def reader_names(program: Program, part: Part, name: str) -> set[str]:
    """Return the operators of a part that read a value."""
    return {
        program.graph.operations[i].name
        for i in program.consumers.get(name, ())
        if i in part.operations
    }


def must_be_positive(program: Program, part: Part, name: str, *, or_divides: bool) -> bool:
    """Return whether a part takes a value's logarithm, root or power, maybe after a scale or shift.

    With `or_divides`, also if it divides by the value; a random float hardly ever breaks that.
    """
    inside = set(part.operations)
    for i in program.consumers.get(name, ()):
        op = program.graph.operations[i]
        if i not in inside:
            continue
        if op.name in _NEEDS_POSITIVE or _is_root(op):
            return True
        if or_divides and op.name in _DIVIDING_OPERATORS and Ref(name) in op.args[1:]:
            return True
        if op.view or (op.name in _KEEPS_POSITIVE and _keeps_sign(op)):
            outputs = filter(None, op.outputs)
            if any(must_be_positive(program, part, o, or_divides=or_divides) for o in outputs):
                return True
    return False


def is_divisor(program: Program, part: Part, name: str) -> bool:
    """Return whether a part divides by a value or by a view of it."""
    for i in program.consumers.get(name, ()):
        op = program.graph.operations[i]
        if i not in part.operations:
            continue
        if op.name in _DIVIDING_OPERATORS and Ref(name) in op.args[1:]:
            return True
        if op.view and any(is_divisor(program, part, o) for o in op.outputs if o):
            return True
    return False


def telling_range(program: Program, part: Part, name: str) -> tuple[float, float] | None:
    """Return the bounds between which a value must lie for a part not to cut it off; or None.

    None if no clamp or the like reads it directly.
    """
    for i in program.consumers.get(name, ()):
        op = program.graph.operations[i]
        bounds = _CUTTING_OPERATORS.get(op.name)
        if i in part.operations and bounds is not None and op.args[:1] == (Ref(name),):
            ends = (op.arg("min", op.arg("min_val")), op.arg("max", op.arg("max_val")))
            low, high = (b if e is None else e for e, b in zip(ends, bounds, strict=True))
            if isinstance(low, (int, float)) and isinstance(high, (int, float)):
                return float(low), float(high)
    return None


def only_computes(program: Program, part: Part) -> bool:
    """Return whether a part uses no integer as an index, a number of repetitions or a length."""
    operations = [program.graph.operations[i] for i in part.operations]
    return all(
        op.view or (kind(op) in _COMPUTING and _COUNTING.isdisjoint(op.schema)) for op in operations
    )


def divides_its_operand(program: Program, name: str) -> bool:
    """Return whether a value is a sum, a maximum or a norm by which its operand is divided."""
    i = program.producers.get(name)
    if i is None or program.graph.operations[i].name not in SIZES:
        return False
    operand = next(program.graph.operations[i].refs())
    waiting = [name]
    while waiting:
        value = waiting.pop()
        for reader in program.consumers.get(value, ()):
            op = program.graph.operations[reader]
            if op.name == "div" and op.args[:2] == (Ref(operand), Ref(value)):
                return True
            waiting += filter(None, op.outputs if op.view else ())
    return False


def _is_root(op: Operation) -> bool:
    exponent = op.args[1] if op.name == "pow" and len(op.args) > 1 else None
    return isinstance(exponent, (int, float)) and (exponent < 0 or exponent != int(exponent))


def _keeps_sign(op: Operation) -> bool:
    """Return whether an operation keeps positive tensors positive, by its other operands.

    Its numbers must not be negative, and its tensors differ: `x * x` is positive for any x.
    """
    if op.name not in {"add", "mul", "div"}:
        return True
    tensors, numbers = list(op.refs()), [a for a in op.args[1:] if not isinstance(a, Ref)]
    are_distinct = len({*tensors}) == len(tensors)
    return are_distinct and all(isinstance(a, (int, float)) and a >= 0 for a in numbers)


def grouped_rows(program: Program, part: Part, name: str) -> int | None:
    """Return the rows of the grouped matrix product whose groups a value ends, else None."""
    for i in part.operations:
        op = program.graph.operations[i]
        ends = op.arg("offs")
        if op.name in {"grouped_mm", "_grouped_mm"} and ends == Ref(name):
            return _dimension_size(program, op.args[0], 0)
    return None


def index_bound(program: Program, part: Part, name: str, otherwise: int) -> int:
    """Return one more than the largest index that an integer input may hold.

    `otherwise` if it is no index.
    """
    limits = [
        limit
        for i in part.operations
        if (limit := _row_limit(program, program.graph.operations[i], name)) is not None
    ]
    if (producer_bound := _producer_bound(program, name)) is not None:
        limits.append(producer_bound)
    return max(1, min(limits, default=otherwise))


def shifted_index_range(program: Program, part: Part, name: str) -> tuple[int, int] | None:
    """Return the range of integers that are indices once a part has added a number to them.

    The range is half-open. The result is None if the part adds none, or indexes nothing.
    """
    lows, highs, waiting = [], [], [(name, 0)]
    while waiting:
        value, shift = waiting.pop()
        for i in program.consumers.get(value, ()):
            op = program.graph.operations[i]
            if i not in part.operations:
                continue
            if shift and (limit := _row_limit(program, op, value)) is not None:
                lows.append(-shift)
                highs.append(limit - shift)
            added = 0 if op.view or op.name in _CASTING_OPERATORS else _added_number(op, value)
            if added is not None:
                waiting += [(output, shift + added) for output in op.outputs if output]
    return (max(lows), min(highs)) if lows and max(lows) < min(highs) else None


def _added_number(op: Operation, name: str) -> int | None:
    """Return the integer that an operation adds to a value; None if it does anything else."""
    number = op.args[1] if op.name in {"add", "sub"} and len(op.args) == 2 else None
    if op.args[:1] != (Ref(name),) or type(number) is not int or op.kwargs:
        return None
    return number if op.name == "add" else -number


def cast_index_bound(program: Program, part: Part, name: str) -> int | None:
    """Return one more than the largest index that a float input may hold once it is cast.

    A table with a column per feature holds indices as floats. None if none of it is an index.
    """
    inside = set(part.operations)
    bounds, names = [], [name]
    while names:
        value = names.pop()
        for i in program.consumers.get(value, ()):
            op = program.graph.operations[i]
            if i not in inside or not (op.view or op.name in _CASTING_OPERATORS):
                continue
            for result in filter(None, op.outputs):
                if not program.spec(result).floating:
                    bounds.append(index_bound(program, part, result, _NO_INDEX))
                names.append(result)
    smallest = min(bounds, default=_NO_INDEX)
    return smallest if smallest < _NO_INDEX else None


def _row_limit(program: Program, op: Operation, name: str) -> int | None:
    """Return the number of rows that `name` indexes in an operation; None if it indexes none."""
    index = op.arg("indices") if op.name == "embedding" else op.arg("index", op.arg("target"))
    if op.name in {"index", "_unsafe_index"}:
        indices = op.args[1]
        for dim, index_argument in enumerate(indices if isinstance(indices, tuple) else ()):
            if isinstance(index_argument, Ref) and index_argument.name == name:
                return _dimension_size(program, op.args[0], dim)
        return None
    if not isinstance(index, Ref) or index.name != name:
        return None
    if op.name == "embedding":
        return _dimension_size(program, op.arg("weight"), 0)
    default_dim = 1 if op.name in {"cross_entropy_loss", "nll_loss"} else 0
    indexed_dim = op.arg("dim", default_dim)
    return _dimension_size(
        program, op.args[0], indexed_dim if isinstance(indexed_dim, int) else default_dim
    )


def _dimension_size(program: Program, arg: object, dim: int) -> int | None:
    return (
        program.spec(arg.name).shape[dim]
        if isinstance(arg, Ref) and program.spec(arg.name).shape
        else None
    )


def _producer_bound(program: Program, name: str) -> int | None:
    """Return a bound that follows from the operation that makes a value, such as an argmax."""
    for _ in range(50):
        i = program.producers.get(name)
        if i is None:
            return _recipe_bound(program, name)
        op = program.graph.operations[i]
        if op.name in INDEXES:
            dim = op.arg("dim", -1)
            return _dimension_size(program, op.args[0], dim if isinstance(dim, int) else -1)
        source = next(op.refs(), None)
        if source is None or not (op.view or op.name in _SAME_RANGE):
            return None
        name = source
    return None


def _recipe_bound(program: Program, name: str) -> int | None:
    """Return the bound with which the author draws an integer input, if any."""
    for model_input in program.graph.inputs:
        if model_input.name == name and model_input.recipe is not None:
            for op in model_input.recipe.operations:
                high = op.arg("high")
                if op.name == "randint" and isinstance(high, int):
                    return high
    return None
