"""Names of component files, each a function of its workload alone: one name in every model.

A kernel of one operation says all that makes its workload: dimensions, the window of a convolution
or pool, the input beside the parameters' own dimensions, each argument, dtype and layout that is
not the usual one. What no word can say (a formula of several operations, the inside of a block) is
a short digest of the workload.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import prod

from runner.graph.ir import Arg, Operation, Ref, Symbol, TensorSpec, references
from runner.graph.operations import kind
from runner.tree.arguments import is_usual
from runner.tree.fusing import CONCATENATIONS
from runner.tree.interface import Program
from runner.tree.part import Part

LONGEST_NAME = 60
_MOST_SHAPES = 3

DTYPE_CODES = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64",
    "complex128": "c128", "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2",
}  # fmt: skip


def names(program: Program, parts: Mapping[Hashable, Part]) -> dict[Hashable, tuple[str, str]]:
    """The name of each workload, given an instance of it, and why it has that name."""
    named = {key: file_name(program, part, key) for key, part in parts.items()}
    for digits in (4, 16):
        times = Counter(name for name, _ in named.values())
        shared = [key for key, (name, _) in named.items() if times[name] > 1]
        named.update((key, file_name(program, parts[key], key, digits)) for key in shared)
    return named


_WHOLE = "operation, dimensions, arguments, dtype: all that makes the workload"
_DIGEST = "with a digest of its program, which no other word of the name says"
_LONG = "with a digest, since all that makes the workload would be too long"


def file_name(program: Program, part: Part, key: Hashable, digits: int = 0) -> tuple[str, str]:
    """`conv2d_3x64_k7s2p3_on_10x224x224_fp32`, and why it has that name.

    `key` is the workload's identity, `digits` how many of its digest there must be.
    """
    if part.kernel is not None or not part.children:
        words, complete = _kernel_words(program, part)
    else:
        words, complete = _words_of_children(program, part)
    words = list(filter(None, words))
    dtype = _dtype(program, part)
    name = "_".join((part.stem, *words, dtype))
    if complete and not digits and len(name) <= LONGEST_NAME:
        return name, _WHOLE
    mark, stem = hashed(key)[: digits or 4], part.stem
    why = _LONG if complete else _DIGEST
    while True:
        name = "_".join(filter(None, (stem, *words, mark, dtype)))
        if len(name) <= LONGEST_NAME:
            return name, why
        if stem in _SHORTER:
            stem = _SHORTER[stem]
        elif len(words) > 1 or "_" in "".join(words[:1]):
            words[-1:] = filter(None, [words[-1].rpartition("_")[0]])
        elif "_" in stem:
            stem = stem.rpartition("_")[0]
        else:
            words = []


_SHORTER = {"scaled_dot_product_attention": "attention"}


def hashed(key: Hashable) -> str:
    """Hexadecimal digits that two keys share only where they are equal."""
    return hashlib.sha256(repr(key).encode()).hexdigest()


# --- kernels --------------------------------------------------------------------------------------


def _kernel_words(program: Program, kernel: Part) -> tuple[list[str], bool]:
    """What makes a kernel's workload, in words, and whether they say all of it."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    *before, last = operations
    if _reads_in_order(kernel, last) and (
        not before or (last.name in _RECURRENT and all(op.name == "zeros" for op in before))
    ):
        return _operation_words(program, kernel, last)
    dims = ""
    for op in operations:
        if parameters := _parameter_dimensions(program, op):
            dims = f"{_joined(parameters)}_{_window(program, op)}".rstrip("_")
            break
    inputs = [program.spec(name) for name in kernel.io.inputs]
    if kernel.stem.endswith("attention") or len(inputs) > _MOST_SHAPES:
        shown = inputs[:1]
    else:
        shown = inputs or [program.spec(name) for name in kernel.io.outputs]
    shapes = _shapes(shown)
    on = f"on_{shapes}" if dims and shapes else shapes
    return [dims, on, *known_by(program, kernel)], False


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
    if dims := _parameter_dimensions(program, op):
        recurrent = op.name in _RECURRENT
        alone = _is_plain_state(op, inputs, states) if recurrent else len(inputs) == 1
        beside = _beside(op, inputs[0]) if alone else _shapes(inputs)
        words += [_joined(dims), _window(program, op), f"on_{beside}" if beside else ""]
        if recurrent:
            words.append("state" if len(inputs) > 1 else "")
            complete &= alone
    elif op.name in _NORMALIZATIONS:
        words += [_shapes(inputs)]
    else:
        words += [_shapes([*inputs, *states]), _window(program, op)]
    usual = _WEIGHTS.get(op.name, ())
    words += [f"no{name}" for name in usual if op.arg(name) is None]
    if op.name not in _RECURRENT:
        told = [_STATISTICS.get(name, "parameter") for name in usual if op.arg(name) is not None]
        words += dict.fromkeys(kinds) if kinds != told else ()
        complete &= kinds == told or (len(set(kinds)) == 1 and not usual)
    if _reads_one(op):
        words.append("itself")
    if op.name not in {kernel.stem, *_SPELLINGS.get(kernel.stem, ())}:
        words.append(op.name.strip("_"))
    for name, value in (*zip(op.schema, op.args, strict=False), *op.kwargs):
        if next(references(value), None) is not None or name in _IN_WINDOW:
            complete &= not (isinstance(value, tuple) and _mixed(value))
        elif name == "normalized_shape" and value == inputs[0].shape[-1:]:
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
    words += _mixed_dtypes(_dtype(program, kernel), op, inputs, states)
    return words, complete


_RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
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
    if op.name == "linear" or op.name in _RECURRENT:
        shape = shape[:-1]
    elif op.name.startswith("conv"):
        spatial = int(op.name[-2])
        shape = (*shape[: -spatial - 1], *shape[len(shape) - spatial :])
    return _joined(shape)


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
    "output_size": "to", "exponent": "to",
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
    if spec.dense().stride != spec.stride:
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
    """What people name a kernel by: `causal`, `window16`, `sinks`, `s3_3`."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    if kernel.stem.endswith("attention"):
        joined = any(op.name in CONCATENATIONS for op in operations)
        return [*_masks(program, kernel, operations), *(["sinks"] if joined else [])]
    words = []
    for op in operations:
        words += ["s" + _spelled(op.arg("shifts"))] if op.name == "roll" else []
        if op.name in _RECURRENT:
            layers = op.arg("num_layers", 1)
            words += [f"l{layers}"] if layers != 1 else []
            words += ["bidirectional"] if op.arg("bidirectional") is True else []
    return words


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
    bounds = [op for op in (*operations, *recipes) if op.name in _TRIANGLES | _ORDERS]
    offsets = [op for op in operations if op.name in {"add", "sub"} and _counts(program, op)]
    told = [n for op in (*bounds, *offsets) for n in (*op.args, op.arg("diagonal"))]
    widths = [abs(n) for n in told if type(n) is int and abs(n) > 1]
    if bounds or any(op.arg("is_causal") is True for op in operations):
        yield "causal"
    elif tables or any(op.name in _FILLS for op in operations):
        yield "masked"
    if widths:
        yield f"window{max(widths)}"


def _counts(program: Program, op: Operation) -> bool:
    """Whether an operation gives whole numbers, such as positions."""
    return program.spec(op.outputs[0]).dtype.startswith("int")


def _is_square(spec: TensorSpec) -> bool:
    return len(spec.shape) > 1 and 1 < spec.shape[-1] == spec.shape[-2]


# --- fusions, layers, models ----------------------------------------------------------------------


def _words_of_children(program: Program, part: Part) -> tuple[list[str], bool]:
    """What makes a workload of several kernels, and whether the words say all of it."""
    if part.level == "model":
        return [_main_shape(program, part)], True
    if _is_spelled_line(program, part):
        return _line_words(program, part)
    after = dict.fromkeys(_shapes([program.spec(n)]) for n in part.io.outputs[:_MOST_SHAPES])
    shape = _main_shape(program, part)
    contractions = [k for k in part.children if k.kernel and k.kernel.kind == "contraction"]
    if part.level == "fusion" and len(contractions) == 1 and len(contractions[0].operations) == 1:
        return _kernel_words(program, contractions[0])[0], False
    words = [shape, "" if list(after) == [shape] else f"to_{'_'.join(after)}"]
    if any(kernel.stem == "roll" for kernel in part.kernels()):
        words.append("shifted")
    attentions = [kernel for kernel in part.kernels() if kernel.stem.endswith("attention")]
    told = (word for kernel in attentions for word in known_by(program, kernel))
    return [*words, *dict.fromkeys(told)], False


def _is_spelled_line(program: Program, part: Part) -> bool:
    """Whether a part is kernels in a row, which its name lists, and nothing beside them."""
    kernels = part.children
    if part.stem != "_".join(kernel.stem for kernel in kernels):
        return False
    inside = [i for kernel in kernels for i in kernel.operations]
    return (
        sorted(inside) == sorted(part.operations)
        and all(b.io.inputs[:1] == a.io.outputs for a, b in pairwise(kernels))
        and part.io.outputs == kernels[-1].io.outputs
    )


def _line_words(program: Program, part: Part) -> tuple[list[str], bool]:
    """The words of its contraction, or first kernel, then those of the others but for shapes."""
    kernels = [kernel for kernel in part.children if kernel.kernel is not None]
    main = next((k for k in kernels if k.kernel and k.kernel.kind == "contraction"), kernels[0])
    words, complete = _kernel_words(program, main)
    before = kernels[: kernels.index(main)]
    complete &= all(_keeps_shape(program, kernel) for kernel in before)
    complete &= len({kernel.stem for kernel in kernels}) == len(kernels)
    for kernel in kernels:
        if kernel is main:
            continue
        first = _shapes([program.spec(name) for name in kernel.io.inputs[:1]])
        own, said = _kernel_words(program, kernel)
        others = [word for word in own if word and word != first]
        words += [f"{kernel.stem}_{'_'.join(others)}"] if others else []
        complete &= said
    return words, complete


def _keeps_shape(program: Program, kernel: Part) -> bool:
    ends = (*kernel.io.inputs[:1], *kernel.io.outputs)
    return len({program.spec(name).shape for name in ends}) == 1


def _main_shape(program: Program, part: Part) -> str:
    """The shape of what a part works on; a table or a mask that comes in tells less."""
    values = part.io.inputs or part.io.outputs
    told = [name for name in values if name not in program.constants] or list(values)
    return _shapes([program.spec(told[0])]) if told else ""


# --- dimensions -----------------------------------------------------------------------------------


def _parameter_dimensions(program: Program, op: Operation) -> tuple[int, ...]:
    """In, then out, of an operation with a weight of the model."""
    if op.name in _RECURRENT:
        weights = op.arg("params")
        first = weights[0] if isinstance(weights, tuple) and weights else None
        if isinstance(first, Ref) and program.is_state(first.name):
            rows, columns = program.spec(first.name).shape
            return (columns, rows // {"lstm": 4, "gru": 3}.get(op.name, 1))
        return ()
    if op.name in {"index", "index_select"}:  # of experts, whose matrices are stacked
        picked = _largest_weight(program, op)
        return picked if len(picked) > 2 else ()
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
    found: list[tuple[int, ...]] = []
    for name in op.refs():
        while (i := program.producers.get(name)) is not None and program.graph.operations[i].view:
            name = next(program.graph.operations[i].refs())
        if program.is_state(name):
            found.append(program.spec(name).shape)
    return max(found, key=prod, default=())


_IN_WINDOW = {"kernel_size", "stride", "padding", "output_padding", "dilation", "groups"}

# How a window moves: the argument, its letter in the file's name, and what is not worth saying.
_WINDOW = (
    ("stride", "s", "1"),
    ("padding", "p", "0"),
    ("output_padding", "o", "0"),
    ("dilation", "d", "1"),
    ("groups", "g", "1"),
)


def _window(program: Program, op: Operation) -> str:
    """`k7s2p3`: kernel, stride, padding, dilation, groups, where they are not the usual ones."""
    text = ""
    weight = op.arg("weight")
    kernel = op.arg("kernel_size")
    if isinstance(weight, Ref) and op.name.startswith("conv"):
        kernel = program.spec(weight.name).shape[2:]
    if kernel is not None:
        text += "k" + _size(kernel)
    for name, code, usual in _WINDOW:
        value = op.arg(name)
        if value is not None and value != () and _size(value) != usual:
            text += code + _size(value)
    return text


def _size(value: object) -> str:
    if isinstance(value, tuple):
        sizes = [str(v) for v in value]
        return sizes[0] if len(set(sizes)) == 1 else "x".join(sizes)
    return str(value)


def _shapes(specs: Iterable[TensorSpec]) -> str:
    """`8x16_16x8`; equal neighbours are counted, `2x8_10x4_x3`, but for two that are all there is."""
    runs = [(shape, len(list(same))) for shape, same in groupby(spec.shape for spec in specs)]
    if len(runs) == 1 and runs[0][1] == 2:
        runs = [(runs[0][0], 1)]
    words = [(_joined(shape) or "scalar") + (f"_x{n}" if n > 1 else "") for shape, n in runs]
    return "_".join(words)


def _joined(numbers: Iterable[int]) -> str:
    return "x".join(map(str, numbers))


def _dtype(program: Program, part: Part) -> str:
    specs = [program.spec(n) for n in (*part.io.outputs, *part.io.states, *part.io.inputs)]
    chosen = next((s for s in specs if s.floating), specs[0] if specs else None)
    return DTYPE_CODES.get(chosen.dtype, chosen.dtype) if chosen else ""
