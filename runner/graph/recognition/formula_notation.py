"""Defines the notation of formulas and parses it.

A formula is a Python expression. `x`, `y`, `a`, `cos` stand for tensors, the same one at each
mention; `weight`, `bias` and `running_...` for tensors that the model owns; `eps`, `c`, `lo`, `hi`
for numbers; `d` for the dimensions of a reduction. Functions are the rows of FUNCTIONS; `view(x)`
is x through a chain of views.
"""

import ast
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from runner.graph.ir import Arg, Operation, TensorSpec

NUMBERS = {"eps", "c", "c2", "lo", "hi", "lo2", "hi2"}
LIMITS = {"lo", "hi", "lo2", "hi2"}
STATE_NAMES = {"weight", "bias", "running_mean", "running_var"}
DIMENSIONS = "d"

# Other names of operators -> the name that formulas use.
_USUAL_NAMES = {"multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub",
         "negative": "neg", "concat": "cat", "concatenate": "cat", "amax": "max", "amin": "min",
         "clip": "clamp", "_softmax": "softmax", "_log_softmax": "log_softmax", "_to_copy": "to",
         "special_erf": "erf", "special_erfc": "erfc", "special_expit": "sigmoid",
         "special_expm1": "expm1", "special_log1p": "log1p", "special_softmax": "softmax",
         "special_log_softmax": "log_softmax", "special_logsumexp": "logsumexp",
         "fmax": "maximum", "fmin": "minimum", "max.other": "maximum", "min.other": "minimum",
         "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}  # fmt: skip


def usual_name(op: Operation) -> str:
    """Return an operator's name; the usual one if it has several."""
    return _USUAL_NAMES.get(op.target) or _USUAL_NAMES.get(op.name, op.name)


# --- the functions of the notation ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FormulaFunction:
    """A function of the notation: the operators that compute it, and how to read arguments."""

    operators: dict[str, int]
    """For each operator that computes the function, which of its outputs is the result."""
    arguments: Callable[[Operation, TensorSpec], tuple[Arg, ...] | None]
    """Returns a call's arguments as a formula names them, or None if this call is another function.

    The second parameter is the spec of the operation's first operand.
    """
    through_views: bool = False
    """The result may be reshaped before it is used, as a reduction's often is."""
    takes_list: bool = False
    """The arguments are the members of a list; a formula must name all of them."""


def _first_operand(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    return op.args[:1]


def _first_two(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    return op.args[:2]


def _reduction(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    return (op.args[0], dimensions_of(op, spec))


def dimensions_of(op: Operation, spec: TensorSpec) -> tuple[int, ...]:
    """Return the dimensions that an operation works along, sorted and not negative.

    Returns all dimensions if the operation names none.
    """
    rank = len(spec.shape)
    dim_argument = op.arg("dim", op.arg("dims"))
    indices = dim_argument if isinstance(dim_argument, tuple) else (dim_argument,)
    dims = tuple(sorted(int(i) % max(rank, 1) for i in indices if isinstance(i, int)))
    return dims or tuple(range(rank))


def _norm(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    order = op.arg("p", op.arg("ord"))
    is_default = order is None or order == "fro"
    is_matrix_norm = op.name == "linalg_matrix_norm" and op.arg("dim") is None
    dims = (len(spec.shape) - 2, len(spec.shape) - 1) if is_matrix_norm else dimensions_of(op, spec)
    return (op.args[0], 2.0 if is_default else order, dims)


def _clamp(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    if op.name == "hardtanh":
        return (op.args[0], op.arg("min_val", -1.0), op.arg("max_val", 1.0))
    if op.name == "relu6":
        return (op.args[0], 0.0, 6.0)
    return (op.args[0], op.arg("min"), op.arg("max"))


def _relu(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    if op.name == "relu":
        return op.args[:1]
    return op.args[:1] if op.arg("min") == 0 and op.arg("max") is None else None


def _root(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    return op.args[:1] if op.name == "sqrt" or op.args[1] == 0.5 else None


def _members(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    return op.args[0] if isinstance(op.args[0], tuple) else None


def _scatter(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    """Read a call as scatter(base, indices, source), or index_add(base, indices, source)."""
    return (op.args[0], op.args[2], op.args[3]) if len(op.args) > 3 else None


def _gather(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    """Read a call as gather(x, indices); x[rows, indices] is one too."""
    if op.name == "gather":
        return (op.args[0], op.args[2])
    indices = op.args[1] if isinstance(op.args[1], tuple) else ()
    return (op.args[0], indices[1]) if len(indices) == 2 and indices[0] is not None else None


def _rows(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    """Read a call as x[indices] with one index for each row."""
    if op.name == "index_select":
        return (op.args[0], op.args[2])
    indices = op.args[1] if isinstance(op.args[1], tuple) else ()
    return (op.args[0], indices[0]) if len(indices) == 1 else None


def _index_put(op: Operation, spec: TensorSpec) -> tuple[Arg, ...] | None:
    """Read a call as index_put(base, indices, source) with one index for each row."""
    indices = op.args[1] if isinstance(op.args[1], tuple) else ()
    return (op.args[0], indices[0], op.args[2]) if len(indices) == 1 else None


def _fill(op: Operation, spec: TensorSpec) -> tuple[Arg, ...]:
    """Read a call as where(condition, x, y)."""
    if op.name == "masked_fill":
        return (op.args[1], op.args[2], op.args[0])
    return op.args


_UNARY = ("erf", "erfc", "tanh", "sigmoid", "exp", "expm1", "log", "log1p", "abs", "sign", "sin",
          "cos", "silu", "gelu", "softplus", "log_sigmoid", "hardsigmoid", "elu", "topk",
          "view_as_complex", "softmax", "log_softmax")  # fmt: skip
_REDUCTIONS = ("sum", "logsumexp", "cumsum", "flip", "argmax")
_NORMS = dict.fromkeys(
    ("norm", "linalg_vector_norm", "linalg_norm", "linalg_matrix_norm", "frobenius_norm"), 0
)
_CLAMPS = {"clamp": 0, "clamp_min": 0, "clamp_max": 0, "hardtanh": 0, "relu6": 0}
_ZEROS = {"zeros_like": 0, "full_like": 0, "new_zeros": 0, "new_full": 0}
FUNCTIONS: dict[str, FormulaFunction] = {
    **{name: FormulaFunction({name: 0}, _first_operand) for name in _UNARY},
    **{name: FormulaFunction({name: 0}, _reduction, through_views=True) for name in _REDUCTIONS},
    "mean": FormulaFunction(
        {"mean": 0, "var_mean": 1, "std_mean": 1}, _reduction, through_views=True
    ),
    "var": FormulaFunction({"var": 0, "var_mean": 0}, _reduction, through_views=True),
    "std": FormulaFunction({"std": 0, "std_mean": 0}, _reduction, through_views=True),
    "max": FormulaFunction({"max": 0}, _reduction, through_views=True),
    "norm": FormulaFunction(_NORMS, _norm, through_views=True),
    "sqrt": FormulaFunction({"sqrt": 0, "pow": 0}, _root, through_views=True),
    "relu": FormulaFunction({"relu": 0, "clamp": 0, "clamp_min": 0}, _relu),
    "clamp": FormulaFunction(_CLAMPS, _clamp),
    "maximum": FormulaFunction({"maximum": 0}, _first_two),
    "minimum": FormulaFunction({"minimum": 0}, _first_two),
    "logaddexp": FormulaFunction({"logaddexp": 0}, _first_two),
    "where": FormulaFunction({"where": 0, "masked_fill": 0}, _fill),
    "zeros_like": FormulaFunction(_ZEROS, _first_operand),
    "cat": FormulaFunction({"cat": 0}, _members, takes_list=True),
    "stack": FormulaFunction({"stack": 0}, _members, takes_list=True),
    "topk_indices": FormulaFunction({"topk": 1}, _first_operand),
    "max_indices": FormulaFunction({"max": 1}, _reduction),
    "scatter": FormulaFunction({"scatter": 0}, _scatter),
    "gather": FormulaFunction({"gather": 0, "index": 0}, _gather, through_views=True),
    "rows": FormulaFunction({"index": 0, "index_select": 0}, _rows),
    "index_add": FormulaFunction({"index_add": 0}, _scatter),
    "index_put": FormulaFunction({"index_put": 0}, _index_put),
    "embedding": FormulaFunction({"embedding": 0}, _first_two),
    "cosine_similarity": FormulaFunction({"cosine_similarity": 0}, _first_two),
    "pairwise_distance": FormulaFunction({"pairwise_distance": 0}, _first_two),
    "nll_loss": FormulaFunction({"nll_loss": 0, "nll_loss_nd": 0}, _first_two),
}

# --- reading a formula ----------------------------------------------------------------------------

Terms = tuple[tuple[ast.expr, int], ...]
"""The parts of a sum with their signs, or of a product with their exponents; both are 1 or -1."""


@functools.cache
def parse_formula(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


def called_function(node: ast.AST) -> str | None:
    """Return the name of the function that an expression calls; None if it is no call."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


@functools.cache
def terms(node: ast.expr) -> Terms:
    """Return the summands of a sum with their signs."""
    return tuple(_flatten(node, 1, ast.Add, ast.Sub))


@functools.cache
def factors(node: ast.expr) -> Terms:
    """Return the factors of a product with their exponents, without the 1 of `1 / x`."""
    parts = _flatten(node, 1, ast.Mult, ast.Div)
    return tuple(p for p in parts if not (isinstance(p[0], ast.Constant) and p[0].value == 1))


def _flatten(node: ast.expr, sign: int, plus: type, minus: type) -> Iterator[tuple[ast.expr, int]]:
    """Yield the operands of nested sums, or of nested products, with their signs."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (plus, minus)):
        yield from _flatten(node.left, sign, plus, minus)
        yield from _flatten(node.right, sign if isinstance(node.op, plus) else -sign, plus, minus)
    elif isinstance(node, ast.UnaryOp) and plus is ast.Add:
        yield from _flatten(node.operand, -sign, plus, minus)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and plus is ast.Mult:
        assert isinstance(node.right, ast.Constant)
        yield from ((node.left, sign),) * int(str(node.right.value))
    else:
        yield node, sign


@functools.cache
def splits(parts: Terms) -> tuple[tuple[Terms, Terms], ...]:
    """Return all ways to divide the parts between a left and a right side, neither empty."""
    divisions = []
    for sides in product((True, False), repeat=len(parts)):
        if any(sides) and not all(sides):
            pairs = list(zip(parts, sides, strict=True))
            left = tuple(part for part, goes_left in pairs if goes_left)
            right = tuple(part for part, goes_left in pairs if not goes_left)
            divisions.append((left, right))
    return tuple(divisions)


def invert(parts: Terms) -> Terms:
    """Return the parts with opposite signs."""
    return tuple((part, -sign) for part, sign in parts)
