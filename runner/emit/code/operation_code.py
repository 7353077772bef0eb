"""Writes one operation as a Python expression: a call, an operator sign or a subscript.

The expression calls the same operator overload with the same argument values, so that it computes
the same bits. An operation that the tables cannot express in full is called by its own name,
`torch.ops.aten.<name>.<overload>(...)`, which is always right.
"""

import ast
import functools
import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from runner.emit.code.literals import (
    AND,
    ATOM,
    COMPARISON,
    OR,
    POWER,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
    XOR,
    Expression,
    Value,
    as_list,
    decimal,
    literal,
)
from runner.graph.ir import CPU, DEVICE, Arg, Operation, Ref, Symbol
from runner.graph.operator_table import find_operator

__all__ = ["ATOM", "Expression", "literal", "spell", "subscript"]

Dims = Callable[[str], int]
"""Gives the number of dimensions of a value."""
Device = Callable[[], str]
"""Gives an expression of the model's device: `x.device`."""
_DEVICES = (CPU, DEVICE)

_SIGNS_OF_BOTH = {
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": ("*", PRODUCT),
    "div": ("/", PRODUCT),
    "floor_divide": ("//", PRODUCT),
    "remainder": ("%", PRODUCT),
    "__lshift__": ("<<", SHIFT),
    "__rshift__": (">>", SHIFT),
    "__and__": ("&", AND),
    "__xor__": ("^", XOR),
    "__or__": ("|", OR),
    "eq": ("==", COMPARISON),
    "ne": ("!=", COMPARISON),
    "lt": ("<", COMPARISON),
    "le": ("<=", COMPARISON),
    "gt": (">", COMPARISON),
    "ge": (">=", COMPARISON),
}
_SIGNS = {
    "floor_divide.default": ("//", PRODUCT),
    **{f"{n}.{kind}": s for n, s in _SIGNS_OF_BOTH.items() for kind in ("Tensor", "Scalar")},
}
_PREFIXES = {"neg": "-", "bitwise_not": "~"}
_ATTRIBUTES = {
    "numpy_T": "T",
    "mT": "mT",
    "mH": "mH",
    "matrix_H": "H",
    "real": "real",
    "imag": "imag",
}
_REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}
_OPEN_END = 9223372036854775807
# These arguments only say how a GPU library may be used; the process's flags decide that anew.
_BACKEND = {"cudnn_enabled", "cudnn_enable"}
# For these arguments, a tuple of equal numbers is written as one number, but for these operators.
_KEEP_TUPLES = {
    "as_strided",
    *(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)),
}
_SPATIAL = {"kernel_size", "stride", "padding", "dilation", "output_padding", "scale_factors"}
# For these, a tuple of one number is written as that number, unless that calls another overload.
_SINGLE = {"dim", "dims", "shifts", "output_size"}
_NEVER_SINGLE = {"squeeze.dims", "any.dims", "all.dims", "tile.default", "permute.default"}
# For these, a tuple is written as a list, as people do.
_LISTS = {"split_sizes"}
_IN_PLACE = """
    abs_ add_ addcdiv_ addcmul_ addmm_ bernoulli_ bitwise_and_ bitwise_not_ bitwise_or_ cauchy_
    ceil_ clamp_ clamp_max_ clamp_min_ copy_ cos_ cumsum_ cumprod_ div_ erf_ erfinv_ exp_ expm1_
    exponential_ fill_ fill_diagonal_ floor_ floor_divide_ fmod_ frac_ geometric_ index_add_
    index_copy_ index_fill_ index_put_ lerp_ log_ log_normal_ logical_and_ logical_not_
    logical_or_ masked_fill_ masked_scatter_ mul_ neg_ normal_ pow_ random_ reciprocal_ relu_
    remainder_ resize_ round_ rsqrt_ scatter_ scatter_add_ sigmoid_ sign_ sin_ sqrt_ square_
    squeeze_ sub_ t_ tan_ tanh_ transpose_ tril_ triu_ trunc_ uniform_ unsqueeze_ zero_
"""
"""In-place methods of tensors that take the operator's arguments in the operator's order."""


def spell(op: Operation, value: Value, device: Device | None = None) -> Expression:
    """Return the expression of one operation; one with several outputs gives a tuple or a list.

    `value` gives the expression of each value that it reads. `device` gives that of the model's
    device, for an operation that makes a tensor there or moves one to it; without it, such a tensor
    is made on the default device.
    """
    device_argument = op.arg("device")
    if device_argument in _DEVICES:
        device_text = (
            CPU.text if device_argument == CPU else device() if device is not None else None
        )
        return _spell_on_device(op, value, device_text)
    arguments = _arguments_by_name(op)
    if op.name.endswith("_") and not op.name.endswith("__"):
        return _spell_in_place(op, value)
    if op.target in {"select.int", "slice.Tensor"}:
        expression = subscript((op,), value)
    else:
        special = _SPECIAL_SPELLINGS.get(op.name)
        expression = special(op, arguments, value) if special else None
    expression = (
        expression or _spell_sign(op, arguments, value) or _spell_from_table(op, arguments, value)
    )
    return expression or _spell_by_own_name(op, value)


def _spell_on_device(op: Operation, value: Value, device_text: str | None) -> Expression:
    """Return the expression of an operation that makes a tensor on a device, or moves one there.

    Without `device_text`, the tensor is made on the default device.
    """
    if op.target == "to.device":
        texts = [
            *([device_text] if device_text else ()),
            *(literal(arg, value).text for arg in op.args[2:]),
        ]
        source = literal(op.args[0], value)
        return Expression(f"{source.at(ATOM)}.to({', '.join(texts)})") if texts else source
    without_device = replace(op, kwargs=tuple((k, v) for k, v in op.kwargs if k != "device"))
    if device_text is None:
        return spell(without_device, value)
    with_device = replace(op, kwargs=(*without_device.kwargs, ("device", Symbol(device_text))))
    return _spell_from_table(
        without_device, _arguments_by_name(without_device), value, device_text
    ) or _spell_by_own_name(with_device, value)


# --- arguments ------------------------------------------------------------------------------------


def _arguments_by_name(op: Operation) -> dict[str, Arg]:
    """Return the arguments by name, without those that are None or concern a GPU library.

    Arguments beyond the schema are a tuple under `*`.
    """
    schema = _SCHEMAS.get(op.target, op.schema)
    named = dict(zip(schema, op.args, strict=False)) | dict(op.kwargs)
    if len(op.args) > len(schema):
        named["*"] = op.args[len(schema) :]
    return {name: arg for name, arg in named.items() if arg is not None and name not in _BACKEND}


# Schemas of operators that normalising puts in place of another; `Operation.schema` still holds the
# argument names of the other.
_SCHEMAS = {
    "full_like.default": ("self", "fill_value"),
    "dropout.default": ("input", "p", "train"),
    "alpha_dropout.default": ("input", "p", "train"),
    "feature_dropout.default": ("input", "p", "train"),
}


def _simplify_argument(op: Operation, name: str, arg: Arg) -> Arg:
    """Return an argument as people write it: one number for equal ones, a word for a reduction."""
    if name == "reduction" and isinstance(arg, int):
        return _REDUCTIONS[arg]
    if not isinstance(arg, tuple) or not arg or any(not isinstance(a, (int, float)) for a in arg):
        return arg
    if name in _SPATIAL and all(a == arg[0] for a in arg) and op.name not in _KEEP_TUPLES:
        return arg[0]
    if name in _SINGLE and len(arg) == 1 and op.target not in _NEVER_SINGLE:
        return arg[0]
    return arg


# --- the table of calls ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Spelling:
    """A parsed row of the table of spellings: a function or method and its arguments."""

    callee: str
    """Function, or method without its tensor."""
    method: bool
    """Whether the callee is a method of the argument `self`."""
    positional: tuple[tuple[str, bool], ...]
    """Positional arguments: name, or a number as it stands, and whether a tuple is spread."""
    keywords: tuple[tuple[str, ast.expr], ...]
    """Keyword arguments: keyword, and the default or the argument's other name."""
    implied: tuple[tuple[str, Arg], ...]
    """Arguments that the call cannot express, with the values that it implies."""
    creates: bool
    """Whether the function creates a tensor and takes a device."""


# These functions take a device.
_CREATORS = frozenset(
    f"torch.{name}"
    for name in (
        *("arange", "linspace", "logspace", "eye", "zeros", "ones", "empty", "full"),
        *("scalar_tensor", "hann_window", "hamming_window", "tril_indices", "triu_indices"),
        *("rand", "randn", "randint", "randperm"),
    )
)


_FLOATS = frozenset(
    f"torch.{name}" for name in ["empty", "eye", "linspace", "ones", "rand", "randn", "zeros"]
)
"""Functions that make float32 if no dtype is passed."""


@functools.cache
def _parse_spelling(row: str) -> _Spelling:
    call, _, implied = row.partition(" | ")
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    callee = ast.unparse(node.func)
    positional = tuple(
        (ast.unparse(a.value), True) if isinstance(a, ast.Starred) else (ast.unparse(a), False)
        for a in node.args
    )
    extra = ast.parse(f"f({implied})", mode="eval").body
    assert isinstance(extra, ast.Call)
    return _Spelling(
        callee=callee.removeprefix("self."),
        method=callee.startswith("self."),
        positional=positional,
        keywords=tuple((k.arg or "", k.value) for k in node.keywords),
        implied=tuple((k.arg or "", ast.literal_eval(k.value)) for k in extra.keywords),
        creates=callee in _CREATORS,
    )


def _spell_from_table(
    op: Operation, arguments: dict[str, Arg], value: Value, device: str | None = None
) -> Expression | None:
    overload = op.target.removeprefix(f"{op.name}.")
    for row_text in find_operator(op.name).calls.get(overload, ()):
        expression = _spell_call(op, _parse_spelling(row_text), dict(arguments), value, device)
        if expression is not None:
            return expression
    return None


def _spell_call(
    op: Operation, spelling: _Spelling, remaining: dict[str, Arg], value: Value, device: str | None
) -> Expression | None:
    """Return the call that a row describes; None if it cannot express every argument.

    `remaining` holds the arguments that the call does not express yet; it is emptied.
    """
    receiver = literal(remaining.pop("self"), value).at(ATOM) + "." if spelling.method else ""
    texts: list[str] = []
    has_gap = False
    for name, is_spread in spelling.positional:
        if not name.isidentifier():  # A number stands in the row itself.
            texts.append(name)
            continue
        if name not in remaining and not is_spread:
            return None
        arg = remaining.pop(name, None)
        if is_spread and isinstance(arg, tuple) and arg:
            texts += [literal(item, value).text for item in arg]
        elif arg is not None:
            prefix = f"{name}=" if has_gap else ""
            texts.append(prefix + _argument_text(op, name, arg, value))
        has_gap = has_gap or arg is None
    if spelling.callee in _FLOATS and remaining.get("dtype") == Symbol("torch.float32"):
        del remaining["dtype"]
    for key, default in spelling.keywords:
        name = default.id if isinstance(default, ast.Name) else key
        if isinstance(default, ast.List):
            texts.append(f"{key}={_bracket_text(default, remaining, value)}")
            continue
        if name not in remaining:
            if isinstance(default, ast.Constant) and default.value is ...:
                return None
            continue
        arg = remaining.pop(name)
        if isinstance(default, ast.Name) or not _is_default(
            _simplify_argument(op, name, arg), default
        ):
            texts.append(f"{key}={_argument_text(op, name, arg, value)}")
    for name, implied_value in spelling.implied:
        if name in remaining and remaining.pop(name) != implied_value:
            return None
    if remaining:
        return None
    if device is not None:
        if not spelling.creates:
            return None
        texts.append(f"device={device}")
    return Expression(f"{receiver}{spelling.callee}({', '.join(texts)})")


def _argument_text(op: Operation, name: str, arg: Arg, value: Value) -> str:
    if name in _LISTS and isinstance(arg, tuple):
        return as_list([literal(item, value).text for item in arg]).text
    return literal(_simplify_argument(op, name, arg), value).text


def _bracket_text(default: ast.List, remaining: dict[str, Arg], value: Value) -> str:
    """Return the value of a bracketed keyword: constants as they are, names as the arguments."""
    items = [
        literal(remaining.pop(item.id), value).text
        if isinstance(item, ast.Name)
        else literal(ast.literal_eval(item), value).text
        for item in default.elts
    ]
    return items[0] if len(items) == 1 else "(" + ", ".join(items) + ")"


def _is_default(arg: Arg, default: ast.expr) -> bool:
    if isinstance(default, ast.Attribute):
        return isinstance(arg, Symbol) and arg.text == ast.unparse(default)
    constant = ast.literal_eval(default)
    return type(constant) in _COMPARABLE_TYPES.get(type(arg), (type(arg),)) and arg == constant


_COMPARABLE_TYPES: dict[type, tuple[type, ...]] = {int: (int, float), float: (int, float)}


# --- operators ------------------------------------------------------------------------------------


def _spell_sign(op: Operation, arguments: dict[str, Arg], value: Value) -> Expression | None:
    """Return an operator sign or an attribute: `a + b`, `a < b`, `-a`, `a**b`, `a.T`; else None."""
    first = literal(op.args[0], value) if op.args else Expression("")
    overload = op.target.partition(".")[2]
    if op.name in _ATTRIBUTES:
        return Expression(f"{first.at(ATOM)}.{_ATTRIBUTES[op.name]}")
    if op.name in _PREFIXES and overload == "default":
        return Expression(_PREFIXES[op.name] + first.at(UNARY), UNARY)
    if len(op.args) != 2 or op.kwargs:
        return None
    second = literal(op.args[1], value)
    if op.name == "pow":
        base, power = first.at(ATOM), second.at(UNARY)
        is_simple = _SIMPLE_OPERAND.fullmatch(base) and _SIMPLE_OPERAND.fullmatch(power)
        return Expression(f"{base}**{power}" if is_simple else f"{base} ** {power}", POWER)
    if op.target == "rsub.Scalar":
        return Expression(f"{second.at(SUM)} - {first.at(SUM + 1)}", SUM)
    if op.name == "mul" and first.divisor is not None and not isinstance(op.args[1], Ref):
        return Expression(f"{second.at(PRODUCT)} / {first.divisor.at(PRODUCT + 1)}", PRODUCT)
    if op.target in _SIGNS:
        sign, rank = _SIGNS[op.target]
        left_rank = rank + 1 if rank == COMPARISON else rank
        return Expression(f"{first.at(left_rank)} {sign} {second.at(rank + 1)}", rank)
    return None


def _spell_in_place(op: Operation, value: Value) -> Expression:
    if op.name not in _IN_PLACE.split() or not op.args or not isinstance(op.args[0], (Ref, Symbol)):
        return _spell_by_own_name(op, value)
    texts = [_in_place_argument(op, arg, value).text for arg in op.args[1:]]
    texts += [f"{name}={_in_place_argument(op, arg, value).text}" for name, arg in op.kwargs]
    return Expression(f"{literal(op.args[0], value).at(ATOM)}.{op.name}({', '.join(texts)})")


def _in_place_argument(op: Operation, arg: Arg, value: Value) -> Expression:
    """Return an argument; a bound of `uniform_` in digits, as it equals a root only by accident."""
    if op.name == "uniform_" and isinstance(arg, float):
        return decimal(arg)
    return literal(arg, value)


def _spell_by_own_name(op: Operation, value: Value) -> Expression:
    name = op.target.replace("::", ".") if "::" in op.target else f"aten.{op.target}"
    packet, _, overload = name.rpartition(".")
    function = f"torch.ops.{name}"
    if keyword.iskeyword(overload):
        function = f'getattr(torch.ops.{packet}, "{overload}")'
    texts = [literal(arg, value).text for arg in op.args]
    texts += [f"{key}={literal(arg, value).text}" for key, arg in op.kwargs]
    return Expression(f"{function}({', '.join(texts)})")


# --- subscripts -----------------------------------------------------------------------------------


def subscript(
    run: Sequence[Operation], value: Value, dims: Dims | None = None
) -> Expression | None:
    """Return one subscript, `x[:, 0, 1:]`, for operations that each read the one before.

    None if no single subscript runs exactly these operations in this order.
    """
    first = run[0].args[0]
    if not isinstance(first, (Ref, Symbol)):
        return None
    if len(run) == 1 and (text := _subscript_from_end(run[0], value)):
        return text
    items: list[str] = []
    dimension = 0
    """Dimension of the result that the next item stands for."""
    for op in run:
        arguments = _arguments_by_name(op)
        dim = arguments.get("dim", 0)
        if op.target not in _SUBSCRIPTS or not isinstance(dim, int) or dim < dimension:
            return None
        items += [":"] * (dim - dimension)
        dimension = dim
        if op.target == "select.int":
            items.append(literal(arguments["index"], value).text)
        else:
            items.append(_slice_text(arguments) if op.target == "slice.Tensor" else "None")
            dimension += 1
    first_used = next((i for i, item in enumerate(items) if item != ":"), 0)
    rank = dims(first.name) if dims and isinstance(first, Ref) else None
    if first_used > 1 and rank == len(items) - items.count("None"):
        items[:first_used] = ["..."]
    if len(items) > _LONGEST_SUBSCRIPT:
        return None
    return Expression(f"{literal(first, value).at(ATOM)}[{', '.join(items)}]")


def _subscript_from_end(op: Operation, value: Value) -> Expression | None:
    """Return `x[..., 0:32, :]` for a slice along a negative dimension; None for others."""
    arguments = _arguments_by_name(op)
    dim = arguments.get("dim", 0)
    if op.target not in {"select.int", "slice.Tensor"} or not isinstance(dim, int) or dim >= 0:
        return None
    item = _slice_text(arguments) if op.name == "slice" else literal(arguments["index"], value).text
    items = ["...", item, *[":"] * (-dim - 1)]
    return Expression(f"{literal(op.args[0], value).at(ATOM)}[{', '.join(items)}]")


_SUBSCRIPTS = {"select.int", "slice.Tensor", "unsqueeze.default"}
_LONGEST_SUBSCRIPT = 6
_SIMPLE_OPERAND = re.compile(r"-?[\w.]+")


def _slice_text(arguments: dict[str, Arg]) -> str:
    start, end, step = (
        arguments.get("start", 0),
        arguments.get("end", _OPEN_END),
        arguments.get("step", 1),
    )
    text = ("" if start == 0 else str(start)) + ":" + ("" if end == _OPEN_END else str(end))
    return text if step == 1 else f"{text}:{step}"


def _spell_index(op: Operation, arguments: dict[str, Arg], value: Value) -> Expression | None:
    indices = arguments.get("indices")
    if op.target != "index.Tensor" or not isinstance(indices, tuple):
        return None
    items = [":" if index is None else literal(index, value).text for index in indices]
    return Expression(f"{literal(op.args[0], value).at(ATOM)}[{', '.join(items)}]")


def _spell_index_put(op: Operation, arguments: dict[str, Arg], value: Value) -> Expression | None:
    """Return a call of the operator itself if an index is None, which the method does not take."""
    indices = arguments.get("indices")
    return _spell_by_own_name(op, value) if isinstance(indices, tuple) and None in indices else None


def _spell_to(op: Operation, arguments: dict[str, Arg], value: Value) -> Expression | None:
    """Return a conversion to the dtype on the tensor's own device, for a move to a fixed device."""
    source = literal(op.args[0], value)
    if op.target != "to.device" or "dtype" not in arguments or not source.text.isidentifier():
        return None
    if set(arguments) != {"self", "device", "dtype"}:
        return None
    dtype = literal(arguments["dtype"], value).text
    return Expression(f"{source.text}.to({source.text}.device, {dtype})")


def _spell_uniform(op: Operation, arguments: dict[str, Arg], value: Value) -> Expression | None:
    """Return a functional `x.uniform_(0, 2)`, whose argument `from` is a keyword of Python."""
    if "from" not in arguments:
        return None
    return _spell_by_own_name(replace(op, target="uniform.default"), value)


def _spell_relu6(op: Operation, arguments: dict[str, Arg], value: Value) -> Expression | None:
    """Return `F.relu6(x)` for the hardtanh between 0 and 6 that it runs."""
    if (arguments.get("min_val"), arguments.get("max_val")) != (0, 6):
        return None
    return Expression(f"F.relu6({literal(arguments['self'], value).text})")


def _spell_reciprocal(op: Operation, arguments: dict[str, Arg], value: Value) -> Expression:
    """Return `torch.reciprocal(x)` with x as its divisor: `1.0 / x` runs it times a number."""
    source = literal(arguments["self"], value)
    return Expression(f"torch.reciprocal({source.text})", divisor=source)


_SpellFunction = Callable[[Operation, dict[str, Arg], Value], Expression | None]
"""Writes an operation, given its arguments by name; None leaves it to the other tables."""
_SPECIAL_SPELLINGS: dict[str, _SpellFunction] = {
    "index": _spell_index,
    "index_put": _spell_index_put,
    "to": _spell_to,
    "lift_fresh": lambda op, bound, value: literal(op.args[0], value),
    "rand_like": _spell_uniform,
    "reciprocal": _spell_reciprocal,
    "hardtanh": _spell_relu6,
}
