"""Estimates the memory that an operator takes while it runs, beyond its inputs and outputs.

Measured operator by operator with PyTorch 2.13 on a CPU with AVX-512.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from runner.graph.ir import Operation, Ref, TensorSpec
from runner.graph.operator_table import find_operator

Values = Mapping[str, TensorSpec]


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory that an operator takes beyond its inputs and outputs."""

    resident_bytes: int = 0
    """Bytes at its worst moment, beyond the output, of which a part may not exist yet."""
    allocated_bytes: int = 0
    """Sum of all bytes that it requests; some are freed before the rest is touched."""


def estimate_workspace(op: Operation, values: Values) -> Workspace:
    """Return the memory that one operation takes while it runs."""
    if op.name in _RULES:
        return _RULES[op.name](op, values)
    multiple = find_operator(op.name).workspace
    size = multiple * values[next(op.refs())].nbytes if multiple else 0
    return Workspace(size, size)


_BLOCK = 16
"""Channels that oneDNN keeps together."""


def _convolution(op: Operation, values: Values) -> Workspace:
    """Count the copies of input and output in oneDNN's own layout.

    The reordered input is freed before the output is put into its place.
    """
    data, weight, out = (values[name] for name in (*list(op.refs())[:2], op.outputs[0]))
    if not data.contiguous:  # oneDNN takes channels-last tensors without a copy.
        return Workspace()
    transposed = "transpose" in op.name or op.arg("transposed") is True
    if transposed and _exceeds_one(op.arg("stride")):
        size = (1 if _exceeds_one(op.arg("dilation")) else 2) * out.nbytes
        return Workspace(size, size + data.nbytes)
    ungrouped = weight.shape[0 if transposed else 1] == _channels(data, weight)
    keeps_input_layout = not transposed and ungrouped and _channels(data, weight) < _BLOCK
    source = 0 if keeps_input_layout else _blocked_bytes(data, weight)
    result = _blocked_bytes(out, weight)
    has_bias = isinstance(op.arg("bias"), Ref)
    if transposed and has_bias:
        return Workspace(source + result, source + result)
    return Workspace(max(source + result - out.nbytes, result), source + result)


def _exceeds_one(value: object) -> bool:
    return any(
        n > 1 for n in (value if isinstance(value, tuple) else (value,)) if isinstance(n, int)
    )


def _channels(data: TensorSpec, weight: TensorSpec) -> int:
    return data.shape[-(len(weight.shape) - 1)]


def _blocked_bytes(spec: TensorSpec, weight: TensorSpec) -> int:
    """Return the bytes of a tensor whose channels are padded to whole blocks."""
    channels = _channels(spec, weight)
    return spec.nbytes // max(channels, 1) * (-(-channels // _BLOCK) * _BLOCK)


def _matmul(op: Operation, values: Values) -> Workspace:
    """Count the copy of each side whose batch is broadcast to that of the other side."""
    out = values[op.outputs[0]]
    sides = [values[name] for name in list(op.refs())[:2]]
    if min(len(side.shape) for side in sides) < 3:
        return Workspace()
    broadcast_sides = [side for side in sides if side.shape[:-2] != out.shape[:-2]]
    size = sum(
        prod((*out.shape[:-2], *side.shape[-2:])) * side.item_bytes for side in broadcast_sides
    )
    return Workspace(size, size)


def _lstm(op: Operation, values: Values) -> Workspace:
    """Count oneDNN's copy of the weights in its own order, which it makes at each call."""
    size = sum(values[name].nbytes for name in set(list(op.refs())[1:]))
    return Workspace(size, size)


def _max_pooling(op: Operation, values: Values) -> Workspace:
    """Count the positions of the maxima (int64), which torch computes in any case."""
    if len([name for name in op.outputs if name]) > 1:
        return Workspace()
    size = 8 * values[op.outputs[0]].numel
    return Workspace(size, size)


_RULES: dict[str, Callable[[Operation, Values], Workspace]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _convolution),
    "lstm": _lstm,
    "matmul": _matmul,
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), _max_pooling),
}
