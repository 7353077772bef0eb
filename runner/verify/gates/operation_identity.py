"""Defines when two dispatched operations are the same operation, however they are spelled."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from runner.torch_internals import schema
from runner.verify.runtime.output_leaves import tensors

TensorMeta = tuple[tuple[int, ...], str]
"""Shape and dtype."""
KEEPS_FINITE = {
    *("convolution", "_convolution", "conv2d", "mm", "bmm", "addmm", "baddbmm", "linear"),
    *("add", "sub", "rsub", "mul", "gt", "lt", "neg", "abs", "mean", "sum", "clamp", "clamp_min"),
    *("relu", "hardtanh", "leaky_relu", "sigmoid", "tanh", "silu", "gelu", "hardswish", "elu"),
    *("softplus", "mish", "hardsigmoid", "masked_fill", "_softmax", "_log_softmax"),
    *("_scaled_dot_product_flash_attention_for_cpu", "lstm", "gru", "mkldnn_rnn_layer"),
    *("native_batch_norm", "_native_batch_norm_legit_no_training", "native_layer_norm"),
    *("native_group_norm", "max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d"),
    *("copy", "cat", "stack", "arange", "full", "empty", "tril"),
}
"""Operations that give finite numbers for all finite inputs of ordinary size.

Not among them: what divides, takes roots or logarithms, or looks up an index.
"""


@dataclass(frozen=True, slots=True)
class DispatchedOperation:
    """An operation that torch dispatched, in a form that is equal for all its spellings."""

    name: str
    inputs: tuple[TensorMeta, ...]
    attributes: tuple[str, ...]
    outputs: tuple[TensorMeta, ...]

    def __str__(self) -> str:
        arguments = ", ".join([*map(_describe_meta, self.inputs), *self.attributes])
        return f"{self.name}({arguments}) -> {', '.join(map(_describe_meta, self.outputs))}"


COPIES = {"clone", "copy_", "copy", "_to_copy", "_copy_from", "lift_fresh_copy"}
"""Operations that move elements, and change their dtype or stride at most."""
SCATTERS = {"slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"}
"""Functional forms of a copy into a view, in programs without in-place operations."""
FILLS = {"fill_", "fill", "zero_", "zero"}
CREATES = {
    f"{prefix}{name}"
    for name in ("empty", "zeros", "ones", "full", "empty_strided")
    for prefix in ("", "new_")
} | {"empty_like", "zeros_like", "ones_like", "full_like", "lift_fresh", "scalar_tensor"}
"""Operations that read only the shape of a tensor argument."""
_COMMUTES = {"add", "mul"}
"""Operations for which `0 + x` is `x + 0`."""
SIGNIFICANT_DIGITS = 7
"""Number of digits in which numbers of a program are compared: those of float32."""
SYMMETRIC = {"add", "mul", "maximum", "minimum"}
"""Operations for which `weight * x` is `x * weight`."""
_REDUCTIONS = {
    *("mean", "sum", "nansum", "amax", "amin", "any", "all", "count_nonzero", "logsumexp"),
    *("var", "std", "var_mean", "std_mean", "linalg_vector_norm", "norm"),
}
"""Operations for which `dim=(2, 3)` is `dim=(3, 2)`."""
_MIRRORED = {"ge": "le", "gt": "lt", "eq": "eq", "ne": "ne"}
"""Comparisons and their mirrors: Python calls `b <= a` for `a >= b` if only b is a Parameter."""
_NOT_ATTRIBUTES = {
    "dtype",
    "device",
    "layout",
    "pin_memory",
    "memory_format",
    "generator",
    "non_blocking",
    "out",
}


@lru_cache(maxsize=4096)
def _schema_arguments(func: Any) -> tuple[tuple[str, bool, Any, bool, bool], ...]:
    """Return for each argument: name, has a default, default, is written to, is only written."""
    return tuple(
        (
            a.name,
            a.has_default_value(),
            a.default_value if a.has_default_value() else None,
            a.alias_info is not None and a.alias_info.is_write,
            a.is_out,
        )
        for a in schema(func).arguments
    )


class BoundArgument(NamedTuple):
    """One argument of one call; a tuple, since every argument of every operation makes one."""

    name: str
    value: Any
    is_written: bool
    tensors: list[torch.Tensor]


def bind_arguments(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[BoundArgument]:
    """Yield every argument by name, with defaults filled in.

    Arguments that only take results are called `out`, as most of them are.
    """
    for n, (name, has_default, default, is_written, is_out) in enumerate(_schema_arguments(func)):
        if n < len(args):
            yield BoundArgument(name, args[n], is_written, tensors(args[n]))
        elif name in kwargs:
            label = "out" if is_out else name
            yield BoundArgument(label, kwargs[name], is_written, tensors(kwargs[name]))
        elif has_default:
            yield BoundArgument(name, default, is_written, [])


def name_as_copy(name: str, bound: list[BoundArgument]) -> tuple[str, list[BoundArgument]]:
    """Return an operation's name and arguments; `cat([empty, x])` is a copy of x.

    It is the first step of a cache, to which each later step appends.
    """
    if name == "cat" and not any(argument.is_written for argument in bound):  # by `out=`
        given = bound[0].tensors
        joined = [tensor for tensor in given if tensor.numel()]
        if len(joined) == 1 < len(given) and len({tensor.dtype for tensor in given}) == 1:
            return "clone", [BoundArgument("self", joined[0], False, joined)]
    return name, bound


def identify_operation(
    name: str,
    bound: list[BoundArgument],
    shapes: dict[int, TensorMeta],
    outputs: list[torch.Tensor],
) -> DispatchedOperation:
    """Return an operation, equal for all its spellings: in place or not, copy or scatter."""
    if name in COPIES | SCATTERS | FILLS:
        return _identify_copy(
            name, {argument.name: argument.value for argument in bound}, shapes, outputs
        )
    plain_name = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    plain_name = plain_name.removesuffix("_functional")  # `x.normal_()` without writing into x
    scalar_name = "other" if plain_name in _COMMUTES else "self"
    first_shape = next((shapes[id(t)][0] for argument in bound for t in argument.tensors), ())
    rank = len(first_shape) + (plain_name == "stack")
    sizes = {argument.name: argument.value for argument in bound}
    attributes = tuple(
        f"{scalar_name if argument.name == 'self' else argument.name}="
        f"{_format_literal(_normalize_value(argument, rank, sizes, plain_name))}"
        for argument in bound
        if not argument.tensors
        and argument.value is not None
        and argument.name not in _NOT_ATTRIBUTES
    )
    if plain_name == "uniform" and {"from=0", "to=1"} <= {*attributes}:
        plain_name, attributes = "rand_like", ()
    inputs = tuple(
        shapes[id(t)] for argument in bound if argument.name != "out" for t in argument.tensors
    )
    if plain_name in _MIRRORED and len(inputs) == 2:
        mirror = _MIRRORED[plain_name]
        inputs = tuple(sorted(inputs)) if mirror == plain_name else inputs[::-1]
        plain_name = mirror
    if plain_name in SYMMETRIC and not any(
        attribute.startswith("alpha=") and attribute != "alpha=1" for attribute in attributes
    ):
        inputs = tuple(sorted(inputs))
    results = tuple(map(meta_of, outputs))
    if plain_name == "bmm" and results[0][0][0] == 1:  # torch.matmul takes either, by strides
        plain_name, inputs, results = (
            "mm",
            _drop_batch_dimension(inputs),
            _drop_batch_dimension(results),
        )
    return DispatchedOperation(plain_name, inputs, attributes, results)


def _normalize_value(
    argument: BoundArgument, rank: int, sizes: dict[str, Any], operation: str
) -> Any:
    """Return an argument's value in one spelling.

    Dimensions are counted from the first one, and those of a reduction are sorted; a pooling's
    stride is its kernel size by default.
    """
    value = argument.value
    if argument.name.startswith("dim") and rank:
        if type(value) is int:
            return value % rank if -rank <= value < 0 else value
        if type(value) in (list, tuple) and all(type(n) is int for n in value):
            dims = [n % rank if -rank <= n < 0 else n for n in value]
            return sorted(dims) if operation in _REDUCTIONS else dims
    return sizes["kernel_size"] if value == [] and argument.name == "stride" else value


def _drop_batch_dimension(batches: tuple[TensorMeta, ...]) -> tuple[TensorMeta, ...]:
    """Return shape and dtype of the only matrix in each batch."""
    return tuple((shape[1:], dtype) for shape, dtype in batches)


def _identify_copy(
    name: str,
    values: dict[str, Any],
    shapes: dict[int, TensorMeta],
    outputs: list[torch.Tensor],
) -> DispatchedOperation:
    """Return a move of elements: how many of which dtype are written, from which dtype.

    `x[:, 0] = y` is a copy into a view; without in-place operations it is a scatter of y into a
    copy of x. Both write y's elements once.
    """
    target = values["self"]  # `vmap` copies a number into a tensor.
    into = shapes[id(target)] if isinstance(target, torch.Tensor) else meta_of(outputs[0])
    if name in FILLS:
        return DispatchedOperation("copy", (into,), (), (into,))
    if name in SCATTERS:
        source = shapes[id(values["src"])]
        return DispatchedOperation("copy", (source,), (), ((source[0], into[1]),))
    if name in {"copy_", "copy"}:
        source = shapes[id(values["src"])]
        return DispatchedOperation("copy", ((into[0], source[1]),), (), (into,))
    return DispatchedOperation("copy", (into,), (), tuple(map(meta_of, outputs)))


def _format_literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_literal, value))}]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:.{SIGNIFICANT_DIGITS}g}"
    if isinstance(value, torch.UntypedStorage | torch.TypedStorage):
        return "a storage"  # its repr would be all of its bytes
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return repr(value)


def meta_of(tensor: torch.Tensor) -> TensorMeta:
    """Return a tensor's shape and dtype."""
    return tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")


def _describe_meta(meta: TensorMeta) -> str:
    shape, dtype = meta
    return f"{dtype}[{', '.join(map(str, shape))}]"
