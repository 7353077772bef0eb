"""Words for what makes a kernel's workload: dimensions, arguments, masks, layouts, dtypes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from runner.graph.ir import Arg, Operation, Ref, Symbol, TensorSpec, references
from runner.tree.default_arguments import is_usual, spatial_dims
from runner.tree.dimensions import (
    DTYPE_CODES,
    IN_WINDOW,
    RECURRENT,
    dtype_code,
    joined,
    parameter_dimensions,
    shapes_word,
    window_word,
)
from runner.tree.fusions import CONCATENATIONS
from runner.tree.interface import Program
from runner.tree.part import Part

_MOST_SHAPES = 3


def kernel_words(program: Program, kernel: Part) -> tuple[list[str], bool]:
    """What makes a kernel's workload, in words, and whether they say all of it."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    before, last = operations[:-1], operations[-1] if operations else None
    if (
        last is not None
        and _reads_in_order(kernel, last)
        and (not before or (last.name in RECURRENT and all(op.name == "zeros" for op in before)))
    ):
        return _operation_words(program, kernel, last)
    dims = ""
    for op in operations:
        if parameters := parameter_dimensions(program, op):
            dims = f"{joined(parameters)}_{window_word(program, op)}".rstrip("_")
            break
    inputs = [program.spec(name) for name in kernel.io.inputs]
    if kernel.stem.endswith("attention") or len(inputs) > _MOST_SHAPES:
        shown = inputs[:1]
    else:
        shown = inputs or [program.spec(name) for name in kernel.io.outputs]
    shapes = shapes_word(shown)
    on = f"on_{shapes}" if dims and shapes else shapes
    return [dims, on, _turned_into(program, kernel, inputs), *known_by(program, kernel)], False


def _turned_into(program: Program, kernel: Part, inputs: Sequence[TensorSpec]) -> str:
    """`to_640x49x96`, where no input has the result's shape but for the last dimension."""
    outputs = [program.spec(name) for name in kernel.io.outputs]
    known = {spec.shape[:-1] for spec in inputs}
    if not inputs or kernel.stem.endswith("attention") or outputs[0].shape[:-1] in known:
        return ""
    return f"to_{shapes_word(outputs)}"


def _reads_in_order(kernel: Part, op: Operation) -> bool:
    """Whether an operation reads the kernel's inputs, then its weights, and each once."""
    wanted = [*kernel.io.inputs, *kernel.io.states]
    read = [name for name in op.refs() if name in wanted]
    return (
        (_reads_one(op) and len(wanted) == 1)
        or read == wanted
        or (op.name == "embedding" and sorted(read) == sorted(wanted))
    )


def _reads_one(op: Operation) -> bool:
    """Whether all that an operation reads is one tensor, several times."""
    read = list(op.refs())
    return len(read) > 1 and len(set(read)) == 1


def _operation_words(program: Program, kernel: Part, op: Operation) -> tuple[list[str], bool]:
    """What makes the workload of one operation, and whether the words say all of it."""
    inputs = [program.spec(name) for name in kernel.io.inputs]
    states = [program.spec(name) for name in kernel.io.states]
    kinds = [program.graph.states[name].kind for name in kernel.io.states]
    words: list[str] = []
    complete = "constant" not in kinds
    if dims := parameter_dimensions(program, op):
        recurrent = op.name in RECURRENT
        alone = _is_plain_state(op, inputs, states) if recurrent else len(inputs) == 1
        beside = _beside(op, inputs[0]) if alone else shapes_word(inputs)
        words += [joined(dims), window_word(program, op), f"on_{beside}" if beside else ""]
        if recurrent:
            words.append("state" if len(inputs) > 1 else "")
            complete &= alone
    elif op.name in _NORMALIZATIONS:
        words += [shapes_word(inputs)]
    else:
        words += [shapes_word([*inputs, *states]), window_word(program, op)]
    usual = _WEIGHTS.get(op.name, ())
    words += [f"no{name}" for name in usual if op.arg(name) is None]
    if op.name not in RECURRENT:
        told = [_STATISTICS.get(name, "parameter") for name in usual if op.arg(name) is not None]
        words += dict.fromkeys(kinds) if kinds != told else ()
        complete &= kinds == told or (len(set(kinds)) == 1 and not usual)
    if _reads_one(op):
        words.append("itself")
    if op.name not in {kernel.stem, *_SPELLINGS.get(kernel.stem, ())}:
        words.append(op.name.strip("_"))
    for name, value in (*zip(op.schema, op.args, strict=False), *op.kwargs):
        if next(references(value), None) is not None or name in IN_WINDOW:
            complete &= not (isinstance(value, tuple) and _mixed(value))
        elif name == "normalized_shape" and inputs and value == inputs[0].shape[-1:]:
            continue
        elif not is_usual(op, name, value) and not (kernel.stem == "relu6" and _is_six(op)):
            word = _argument(name, value)
            complete &= bool(word)
            words.append(word)
    given = [place for place, name in enumerate(op.outputs) if name in kernel.io.outputs]
    if given not in ([0], list(range(len(op.outputs)))[:1]):
        words.append("gives" + "_".join(map(str, given)))
    words += _layouts(inputs, "in")
    words += _layouts(states, "weight")
    words += _mixed_dtypes(dtype_code(program, kernel), op, inputs, states)
    return words, complete


_NORMALIZATIONS = {"batch_norm", "layer_norm", "group_norm", "instance_norm"}
_WEIGHTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d"), ("weight", "bias")),
    **dict.fromkeys((f"conv_transpose{n}d" for n in (1, 2, 3)), ("weight", "bias")),
    **dict.fromkeys(("layer_norm", "group_norm"), ("weight", "bias")),
    "batch_norm": ("weight", "bias", "running_mean", "running_var"),
    "embedding": ("weight",),
    "prelu": ("weight",),
}
"""Arguments that are the model's own: a name says where one is missing."""
_STATISTICS = {"running_mean": "buffer", "running_var": "buffer"}
_SPELLINGS = {
    "relu6": ("hardtanh",), "patch_embedding": ("conv2d",), "layer_scale": ("mul",),
    "expert_combine": ("einsum",), "cross_entropy": ("cross_entropy_loss",), "cast": ("to",),
    "copy": ("clone",),
}  # fmt: skip
"""The operator that a name means where nothing else is said."""


def _is_six(op: Operation) -> bool:
    return all(type(bound) is float for bound in op.args[1:])


def _mixed(values: tuple[Arg, ...]) -> bool:
    """Whether a list of arguments holds tensors and something else."""
    return len({isinstance(value, Ref) for value in values}) > 1


def _is_plain_state(
    op: Operation, inputs: Sequence[TensorSpec], states: Sequence[TensorSpec]
) -> bool:
    """Whether a recurrent layer's shapes follow from its name: no projections, a usual state."""
    gates = {"lstm": 4, "gru": 3}.get(op.name, 1)
    hidden = states[0].shape[0] // gates if states else 0
    layers, twice = op.arg("num_layers", 1), 1 + (op.arg("bidirectional") is True)
    count = layers * twice if isinstance(layers, int) else 0
    each = 4 if op.arg("has_biases", True) is True else 2
    batch = inputs[0].shape[0 if op.arg("batch_first") is True else 1 :][:1]
    return len(states) == count * each and all(
        spec.shape == (count, *batch, hidden) for spec in inputs[1:]
    )


def _beside(op: Operation, spec: TensorSpec) -> str:
    """What the parameters leave open of the input's shape: batch, positions, height and width."""
    shape = spec.shape
    if op.name == "linear" or op.name in RECURRENT:
        shape = shape[:-1]
    elif op.name.startswith("conv"):
        spatial = spatial_dims(op)
        shape = (*shape[: -spatial - 1], *shape[len(shape) - spatial :])
    return joined(shape)


def _argument(name: str, value: Arg) -> str:
    """`d1`, `by0p5`, `keepdim`, `noceil_mode`, `tanh`; empty where no word can be made."""
    if name == "equation" and isinstance(value, str):
        return value.replace(" ", "").replace("->", "_to_").replace(",", "_").replace(".", "")
    if name == "has_biases":
        return "nobias"
    if isinstance(value, bool):
        return name if value else f"no{name}"
    if isinstance(value, str):
        return value if re.fullmatch("[a-z_0-9]+", value) else ""
    word = _spelled(value)
    return _SHORT.get(name, name.strip("_")) + word if word else ""


_SHORT = {
    "dim": "d", "dims": "d", "other": "by", "index": "at", "start": "from", "end": "to",
    "num_groups": "g", "num_layers": "l", "shifts": "s", "normalized_shape": "over", "dtype": "",
    "output_size": "to", "pad": "by", "exponent": "to",
}  # fmt: skip


def _spelled(value: Arg) -> str:
    """A number, or several, in letters that a file name can have: `0p5`, `m1`, `3_3`."""
    if isinstance(value, tuple):
        found = [_spelled(item) for item in value]
        return "_".join(found) if all(found) else ""
    if isinstance(value, Symbol):
        return DTYPE_CODES.get(value.text.removeprefix("torch."), "")
    if isinstance(value, (bool, int, float)):
        return repr(value).lower().replace("-", "m").replace(".", "p").replace("+", "")
    return ""


def _layouts(specs: Sequence[TensorSpec], whose: str) -> Iterator[str]:
    """How tensors lie in memory that do not lie row by row: `permuted_0_2_1`, `strides8_1`."""
    for place, spec in enumerate(specs):
        if not spec.contiguous:
            yield (f"{whose}{place + 1}_" if place or whose == "weight" else "") + _layout(spec)


def _layout(spec: TensorSpec) -> str:
    order = sorted(range(len(spec.shape)), key=lambda d: (-spec.stride[d], d))
    if spec.as_dense().stride != spec.stride:
        return f"strides{_spelled(spec.stride)}"
    if len(order) in {4, 5} and order == [0, *range(2, len(order)), 1]:
        return "channels_last"
    return "permuted_" + "_".join(map(str, order))


def _mixed_dtypes(
    main: str, op: Operation, inputs: Sequence[TensorSpec], states: Sequence[TensorSpec]
) -> Iterator[str]:
    """Dtypes of what is read, where they are not those of the name: `of_fp32_bf16`."""
    codes = [DTYPE_CODES.get(spec.dtype, spec.dtype) for spec in (*inputs, *states)]
    if op.name == "embedding" and codes == ["i64", main]:
        return
    if set(codes) - {main}:
        runs = [(code, len(list(same))) for code, same in groupby(codes)]
        yield "of_" + "_".join(code + (f"x{n}" if n > 1 else "") for code, n in runs)


# --- words that people know a kernel by -----------------------------------------------------------


def known_by(program: Program, kernel: Part) -> list[str]:
    """What people name a kernel by: `causal`, `window16`, `sinks`, `s3_3`, `eps1em06`."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    if kernel.stem.endswith("attention"):
        joined = any(op.name in CONCATENATIONS for op in operations)
        return [*_masks(program, kernel, operations), *(["sinks"] if joined else [])]
    words = []
    for op in operations:
        words += ["s" + _spelled(op.arg("shifts"))] if op.name == "roll" else []
        words += ["k" + _spelled(op.arg("k"))] if op.name == "topk" else []
        if kernel.stem.endswith("_norm") and op.name in _ADDS_EPS:
            words += ["eps" + _spelled(eps) for eps in op.args[1:2] if isinstance(eps, float)]
        if op.name in RECURRENT:
            layers = op.arg("num_layers", 1)
            words += [f"l{layers}"] if layers != 1 else []
            words += ["bidirectional"] if op.arg("bidirectional") is True else []
    return words


_ADDS_EPS = {"add", "clamp_min"}
_TRIANGLES = {"tril", "triu"}
_ORDERS = {"lt", "gt", "le", "ge", "less", "greater", "less_equal", "greater_equal"}
_FILLS = {"masked_fill", "where"}


def _masks(program: Program, kernel: Part, operations: Sequence[Operation]) -> Iterator[str]:
    """Yield which positions an attention sees, as far as it makes the mask itself."""
    graph = program.graph
    tables = [
        state
        for name in kernel.io.states
        if (state := graph.states[name]).kind != "parameter" and _is_square(program.spec(name))
    ]
    recipes = [op for state in tables if state.recipe for op in state.recipe.operations]
    made = [op for op in operations if op.name in _TRIANGLES or _is_order(program, op)]
    bounds = [*made, *(op for op in recipes if op.name in _TRIANGLES | _ORDERS)]
    offsets = [op for op in operations if op.name in {"add", "sub"} and _counts(program, op)]
    told = [n for op in (*bounds, *offsets) for n in (*op.args, op.arg("diagonal"))]
    widths = [abs(n) for n in told if type(n) is int and abs(n) > 1]
    if bounds or any(op.arg("is_causal") is True for op in operations):
        yield "causal"
    elif tables or any(op.name in _FILLS for op in operations):
        yield "masked"
    if widths:
        yield f"window{max(widths)}"


def _is_order(program: Program, op: Operation) -> bool:
    """Whether positions are compared with each other, and not with lengths."""
    return op.name in _ORDERS and _is_square(program.spec(op.outputs[0]))


def _counts(program: Program, op: Operation) -> bool:
    """Whether an operation gives whole numbers, such as positions."""
    return program.spec(op.outputs[0]).dtype.startswith("int")


def _is_square(spec: TensorSpec) -> bool:
    return len(spec.shape) > 1 and 1 < spec.shape[-1] == spec.shape[-2]
