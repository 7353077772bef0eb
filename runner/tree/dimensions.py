"""Writes dimensions and dtypes as words for file names: of weights, windows and tensors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from math import prod

from runner.graph.ir import Operation, Ref, TensorSpec
from runner.graph.operations import kind
from runner.tree.interface import Program
from runner.tree.part import Part

RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
DTYPE_CODES = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64",
    "complex128": "c128", "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2",
}  # fmt: skip


def parameter_dimensions(program: Program, op: Operation) -> tuple[int, ...]:
    """Return the input size, then the output size, of an operation with a weight of the model.

    Returns () if the operation has no such weight.
    """
    if op.name in RECURRENT:
        weights = op.arg("params")
        first = weights[0] if isinstance(weights, tuple) and weights else None
        if isinstance(first, Ref) and program.is_state(first.name):
            rows, columns = program.spec(first.name).shape
            return (columns, rows // {"lstm": 4, "gru": 3}.get(op.name, 1))
        return ()
    if op.name in {"index", "index_select"}:  # a look-up in the stacked matrices of experts
        stack_shape = _largest_weight(program, op)
        return stack_shape if len(stack_shape) > 2 else ()
    weight = op.arg("weight")
    if not isinstance(weight, Ref) or not program.is_state(weight.name):
        return _largest_weight(program, op) if kind(op) == "contraction" else ()
    shape = program.spec(weight.name).shape
    groups = op.arg("groups", 1)
    count = groups if isinstance(groups, int) else 1
    if op.name == "linear" and len(shape) == 2:
        return (shape[1], shape[0])
    if op.name.startswith("conv_transpose"):
        return (shape[0], shape[1] * count)
    if op.name.startswith("conv"):
        return (shape[1] * count, shape[0])
    if op.name in {"embedding", "bilinear"}:
        return shape
    return ()


def _largest_weight(program: Program, op: Operation) -> tuple[int, ...]:
    """Return the shape of the largest weight that an operation reads, also through views."""
    shapes: list[tuple[int, ...]] = []
    for name in op.refs():
        while (i := program.producers.get(name)) is not None and program.graph.operations[i].view:
            name = next(program.graph.operations[i].refs())
        if program.is_state(name):
            shapes.append(program.spec(name).shape)
    return max(shapes, key=prod, default=())


WINDOW_ARGUMENTS = {"kernel_size", "stride", "padding", "output_padding", "dilation", "groups"}
"""Arguments that the word for a window already holds."""

# A window's arguments: name, letter in the file's name, and the default, which is left out.
_WINDOW = (
    ("stride", "s", "1"),
    ("padding", "p", "0"),
    ("output_padding", "o", "0"),
    ("dilation", "d", "1"),
    ("groups", "g", "1"),
)


def window_word(program: Program, op: Operation) -> str:
    """Return `k7s2p3`: kernel, stride, padding, dilation, groups, without the default values."""
    text = ""
    weight = op.arg("weight")
    kernel = op.arg("kernel_size")
    if isinstance(weight, Ref) and op.name.startswith("conv"):
        kernel = program.spec(weight.name).shape[2:]
    if kernel is not None:
        text += "k" + _size_word(kernel)
    for name, code, default in _WINDOW:
        value = op.arg(name)
        if value is not None and value != () and _size_word(value) != default:
            text += code + _size_word(value)
    return text


def _size_word(value: object) -> str:
    """Return `3` for `(3, 3)` and `3x5` for `(3, 5)`."""
    if isinstance(value, tuple):
        sizes = [str(v) for v in value]
        return sizes[0] if len(set(sizes)) == 1 else "x".join(sizes)
    return str(value)


def shapes_word(specs: Iterable[TensorSpec]) -> str:
    """Return shapes as a word: `8x16_16x8`.

    Equal neighbours are counted, `2x8_10x4_x3`; two equal shapes alone are written once.
    """
    runs = [(shape, len(list(same))) for shape, same in groupby(spec.shape for spec in specs)]
    if len(runs) == 1 and runs[0][1] == 2:
        runs = [(runs[0][0], 1)]
    words = [
        (join_dimensions(shape) or "scalar") + (f"_x{n}" if n > 1 else "") for shape, n in runs
    ]
    return "_".join(words)


def join_dimensions(numbers: Iterable[object]) -> str:
    """Return `3x64` for (3, 64)."""
    return "x".join(map(str, numbers))


def dtype_code(program: Program, part: Part) -> str:
    """Return the code of the dtype of a part's first floating-point output, weight or input."""
    specs = [program.spec(n) for n in (*part.io.outputs, *part.io.states, *part.io.inputs)]
    main_spec = next((s for s in specs if s.floating), specs[0] if specs else None)
    return DTYPE_CODES.get(main_spec.dtype, main_spec.dtype) if main_spec else ""
