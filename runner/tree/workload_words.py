"""Writes a kernel's workload as words: dimensions, arguments, masks, layouts, dtypes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from runner.graph.ir import Arg, Operation, Ref, Symbol, TensorSpec, references
from runner.tree.default_arguments import is_usual, spatial_dims
from runner.tree.dimensions import (
    DTYPE_CODES,
    RECURRENT,
    WINDOW_ARGUMENTS,
    dtype_code,
    join_dimensions,
    parameter_dimensions,
    shapes_word,
    window_word,
)
from runner.tree.fusions import CONCATENATIONS
from runner.tree.interface import Program
from runner.tree.part import Part

_MOST_SHAPES = 3


def kernel_words(program: Program, kernel: Part) -> tuple[list[str], bool]:
    """Return words for a kernel's workload, and whether they say everything about it."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    operations_before, last_operation = operations[:-1], operations[-1] if operations else None
    if (
        last_operation is not None
        and _reads_in_order(kernel, last_operation)
        and (
            not operations_before
            or (
                last_operation.name in RECURRENT
                and all(op.name == "zeros" for op in operations_before)
            )
        )
    ):
        return _operation_words(program, kernel, last_operation)
    dims = ""
    for op in operations:
        if parameters := parameter_dimensions(program, op):
            dims = f"{join_dimensions(parameters)}_{window_word(program, op)}".rstrip("_")
            break
    inputs = [program.spec(name) for name in kernel.io.inputs]
    if kernel.stem.endswith("attention") or len(inputs) > _MOST_SHAPES:
        named_specs = inputs[:1]
    else:
        named_specs = inputs or [program.spec(name) for name in kernel.io.outputs]
    shapes = shapes_word(named_specs)
    on = f"on_{shapes}" if dims and shapes else shapes
    return [
        dims,
        on,
        _output_word(program, kernel, inputs),
        *identifying_words(program, kernel),
    ], False


def _output_word(program: Program, kernel: Part, inputs: Sequence[TensorSpec]) -> str:
    """Return `to_640x49x96`, if no input has the result's shape up to the last dimension."""
    outputs = [program.spec(name) for name in kernel.io.outputs]
    leading_shapes = {spec.shape[:-1] for spec in inputs}
    if not inputs or kernel.stem.endswith("attention") or outputs[0].shape[:-1] in leading_shapes:
        return ""
    return f"to_{shapes_word(outputs)}"


def _reads_in_order(kernel: Part, op: Operation) -> bool:
    """Return whether an operation reads the kernel's inputs, then its weights, each once."""
    expected = [*kernel.io.inputs, *kernel.io.states]
    read = [name for name in op.refs() if name in expected]
    return (
        (_reads_only_one_tensor(op) and len(expected) == 1)
        or read == expected
        or (op.name == "embedding" and sorted(read) == sorted(expected))
    )


def _reads_only_one_tensor(op: Operation) -> bool:
    """Return whether an operation reads one tensor several times, and nothing else."""
    read = list(op.refs())
    return len(read) > 1 and len(set(read)) == 1


def _operation_words(program: Program, kernel: Part, op: Operation) -> tuple[list[str], bool]:
    """Return words for the workload of one operation, and whether they say everything about it."""
    inputs = [program.spec(name) for name in kernel.io.inputs]
    states = [program.spec(name) for name in kernel.io.states]
    kinds = [program.graph.states[name].kind for name in kernel.io.states]
    words: list[str] = []
    complete = "constant" not in kinds
    if dims := parameter_dimensions(program, op):
        recurrent = op.name in RECURRENT
        is_single_input = _is_plain_state(op, inputs, states) if recurrent else len(inputs) == 1
        free_dimensions = (
            _free_dimensions_word(op, inputs[0]) if is_single_input else shapes_word(inputs)
        )
        words += [
            join_dimensions(dims),
            window_word(program, op),
            f"on_{free_dimensions}" if free_dimensions else "",
        ]
        if recurrent:
            words.append("state" if len(inputs) > 1 else "")
            complete &= is_single_input
    elif op.name in _NORMALIZATIONS:
        words += [shapes_word(inputs)]
    else:
        words += [shapes_word([*inputs, *states]), window_word(program, op)]
    usual_weights = _WEIGHTS.get(op.name, ())
    words += [f"no{name}" for name in usual_weights if op.arg(name) is None]
    if op.name not in RECURRENT:
        expected_kinds = [
            _STATISTICS.get(name, "parameter") for name in usual_weights if op.arg(name) is not None
        ]
        words += dict.fromkeys(kinds) if kinds != expected_kinds else ()
        complete &= kinds == expected_kinds or (len(set(kinds)) == 1 and not usual_weights)
    if _reads_only_one_tensor(op):
        words.append("itself")
    if op.name not in {kernel.stem, *_SPELLINGS.get(kernel.stem, ())}:
        words.append(op.name.strip("_"))
    is_relu6 = kernel.stem == "relu6" and all(type(bound) is float for bound in op.args[1:])
    for name, value in (*zip(op.schema, op.args, strict=False), *op.kwargs):
        if next(references(value), None) is not None or name in WINDOW_ARGUMENTS:
            items = value if isinstance(value, tuple) else ()
            complete &= len({isinstance(item, Ref) for item in items}) < 2
        elif name == "normalized_shape" and inputs and value == inputs[0].shape[-1:]:
            continue
        elif not is_usual(op, name, value) and not is_relu6:
            word = _argument_word(name, value)
            complete &= bool(word)
            words.append(word)
    output_positions = [
        position for position, name in enumerate(op.outputs) if name in kernel.io.outputs
    ]
    if output_positions not in ([0], list(range(len(op.outputs)))[:1]):
        words.append("gives" + "_".join(map(str, output_positions)))
    words += _layout_words(inputs, "in")
    words += _layout_words(states, "weight")
    words += _dtype_words(dtype_code(program, kernel), op, inputs, states)
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
"""Arguments that are usually the model's own; a name says if one is missing."""
_STATISTICS = {"running_mean": "buffer", "running_var": "buffer"}
"""Arguments that are buffers; all others are parameters."""
_SPELLINGS = {
    "relu6": ("hardtanh",), "patch_embedding": ("conv2d",), "layer_scale": ("mul",),
    "expert_combine": ("einsum",), "cross_entropy": ("cross_entropy_loss",), "cast": ("to",),
    "copy": ("clone",),
}  # fmt: skip
"""For an operation's name, the operators that it stands for without saying so."""


def _is_plain_state(
    op: Operation, inputs: Sequence[TensorSpec], states: Sequence[TensorSpec]
) -> bool:
    """Return whether a recurrent layer's shapes follow from its name.

    It then has no projections, and its state is of the usual shape.
    """
    gates = {"lstm": 4, "gru": 3}.get(op.name, 1)
    hidden = states[0].shape[0] // gates if states else 0
    layers, directions = op.arg("num_layers", 1), 1 + (op.arg("bidirectional") is True)
    count = layers * directions if isinstance(layers, int) else 0
    tensors_per_layer = 4 if op.arg("has_biases", True) is True else 2
    batch = inputs[0].shape[0 if op.arg("batch_first") is True else 1 :][:1]
    return len(states) == count * tensors_per_layer and all(
        spec.shape == (count, *batch, hidden) for spec in inputs[1:]
    )


def _free_dimensions_word(op: Operation, spec: TensorSpec) -> str:
    """Return the part of an input's shape that the weights do not fix: batch and positions."""
    shape = spec.shape
    if op.name == "linear" or op.name in RECURRENT:
        shape = shape[:-1]
    elif op.name.startswith("conv"):
        spatial = spatial_dims(op)
        shape = (*shape[: -spatial - 1], *shape[len(shape) - spatial :])
    return join_dimensions(shape)


def _argument_word(name: str, value: Arg) -> str:
    """Return `d1`, `by0p5`, `keepdim`, `noceil_mode`, `tanh`; empty if no word fits the value."""
    if name == "equation" and isinstance(value, str):
        return value.replace(" ", "").replace("->", "_to_").replace(",", "_").replace(".", "")
    if name == "has_biases":
        return "nobias"
    if isinstance(value, bool):
        return name if value else f"no{name}"
    if isinstance(value, str):
        return value if re.fullmatch("[a-z_0-9]+", value) else ""
    word = _value_word(value)
    return _SHORT_NAMES.get(name, name.strip("_")) + word if word else ""


_SHORT_NAMES = {
    "dim": "d", "dims": "d", "other": "by", "index": "at", "start": "from", "end": "to",
    "num_groups": "g", "num_layers": "l", "shifts": "s", "normalized_shape": "over", "dtype": "",
    "output_size": "to", "pad": "by", "exponent": "to",
}  # fmt: skip
"""For an argument's name, the letters that stand for it."""


def _value_word(value: Arg) -> str:
    """Return numbers with the characters that a file name can have: `0p5`, `m1`, `3_3`."""
    if isinstance(value, tuple):
        words = [_value_word(item) for item in value]
        return "_".join(words) if all(words) else ""
    if isinstance(value, Symbol):
        return DTYPE_CODES.get(value.text.removeprefix("torch."), "")
    if isinstance(value, (bool, int, float)):
        return repr(value).lower().replace("-", "m").replace(".", "p").replace("+", "")
    return ""


def _layout_words(specs: Sequence[TensorSpec], role: str) -> Iterator[str]:
    """Yield the layouts of tensors that are not contiguous: `permuted_0_2_1`, `strides8_1`.

    `role` is `in` for inputs and `weight` for weights.
    """
    for position, spec in enumerate(spec.canonical for spec in specs):
        if not spec.contiguous:
            yield (f"{role}{position + 1}_" if position or role == "weight" else "") + _layout_word(
                spec
            )


def _layout_word(spec: TensorSpec) -> str:
    order = sorted(range(len(spec.shape)), key=lambda d: (-spec.stride[d], d))
    if spec.as_dense().stride != spec.stride:
        return f"strides{_value_word(spec.stride)}"
    if len(order) in {4, 5} and order == [0, *range(2, len(order)), 1]:
        return "channels_last"
    return "permuted_" + "_".join(map(str, order))


def _dtype_words(
    main: str, op: Operation, inputs: Sequence[TensorSpec], states: Sequence[TensorSpec]
) -> Iterator[str]:
    """Yield the operands' dtypes, if they differ from the one in the name: `of_fp32_bf16`."""
    codes = [DTYPE_CODES.get(spec.dtype, spec.dtype) for spec in (*inputs, *states)]
    if op.name == "embedding" and codes == ["i64", main]:
        return
    if set(codes) - {main}:
        runs = [(code, len(list(same))) for code, same in groupby(codes)]
        yield "of_" + "_".join(code + (f"x{n}" if n > 1 else "") for code, n in runs)


# --- words that people know a kernel by -----------------------------------------------------------


def identifying_words(program: Program, kernel: Part) -> list[str]:
    """Return words that identify a kernel: `causal`, `window16`, `sinks`, `s3_3`, `eps1em06`."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    if kernel.stem.endswith("attention"):
        has_sinks = any(op.name in CONCATENATIONS and _has_column(program, op) for op in operations)
        return [*_mask_words(program, kernel, operations), *(["sinks"] if has_sinks else [])]
    words = []
    for op in operations:
        words += ["s" + _value_word(op.arg("shifts"))] if op.name == "roll" else []
        words += ["k" + _value_word(op.arg("k"))] if op.name == "topk" else []
        if kernel.stem.endswith("_norm") and op.name in _ADDS_EPS:
            words += ["eps" + _value_word(eps) for eps in op.args[1:2] if isinstance(eps, float)]
        if op.name in RECURRENT:
            layers = op.arg("num_layers", 1)
            words += [f"l{layers}"] if layers != 1 else []
            words += ["bidirectional"] if op.arg("bidirectional") is True else []
    return words


_ADDS_EPS = {"add", "clamp_min"}
_TRIANGLES = {"tril", "triu"}
_ORDERS = {"lt", "gt", "le", "ge", "less", "greater", "less_equal", "greater_equal"}
_FILLS = {"masked_fill", "where"}


def _mask_words(program: Program, kernel: Part, operations: Sequence[Operation]) -> Iterator[str]:
    """Yield words for the positions that an attention sees, as far as it makes the mask itself."""
    graph = program.graph
    tables = [
        state
        for name in kernel.io.states
        if (state := graph.states[name]).kind != "parameter" and _is_square(program.spec(name))
    ]
    recipes = [op for state in tables if state.recipe for op in state.recipe.operations]
    mask_operations = [
        op for op in operations if op.name in _TRIANGLES or _compares_positions(program, op)
    ]
    bounds = [*mask_operations, *(op for op in recipes if op.name in _TRIANGLES | _ORDERS)]
    offsets = [
        op for op in operations if op.name in {"add", "sub"} and _gives_integers(program, op)
    ]
    numbers = [
        (op, n)
        for op in (*bounds, *offsets)
        for n in (*op.args, op.arg("diagonal"))
        if type(n) is int and abs(n) > 1
    ]
    # A positive diagonal is where the keys end: there are more of them than queries.
    widths = [abs(n) for op, n in numbers if n < 0 or op.name not in _TRIANGLES]
    if bounds or any(op.arg("is_causal") is True for op in operations):
        yield "causal"
    elif tables or any(op.name in _FILLS for op in operations):
        yield "masked"
    if widths:
        yield f"window{max(widths)}"


def _has_column(program: Program, op: Operation) -> bool:
    """Return whether an operation joins scores with one more score for each query: a sink."""
    return any(program.spec(name).shape[-1:] == (1,) for name in op.refs())


def _compares_positions(program: Program, op: Operation) -> bool:
    """Return whether an operation compares positions with each other, and not with lengths."""
    return op.name in _ORDERS and _is_square(program.spec(op.outputs[0]))


def _gives_integers(program: Program, op: Operation) -> bool:
    """Return whether an operation gives integers, such as positions."""
    return program.spec(op.outputs[0]).dtype.startswith("int")


def _is_square(spec: TensorSpec) -> bool:
    return len(spec.shape) > 1 and 1 < spec.shape[-1] == spec.shape[-2]
