"""Names of component files: operation, dimensions, what tells a workload from others, dtype."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import prod

from runner.graph.ir import Arg, Operation, Ref, Symbol, TensorSpec
from runner.graph.operations import kind
from runner.tree.fusing import CONCATENATIONS
from runner.tree.interface import Program
from runner.tree.part import Part

LONGEST_NAME = 60
_MOST_SHAPES = 3
_MOST_WORDS = 4

DTYPE_CODES = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64",
    "complex128": "c128", "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2",
}  # fmt: skip


def names(program: Program, parts: Mapping[Hashable, Part]) -> dict[Hashable, tuple[str, str]]:
    """The name of each workload, given an instance of it, and why it has that name."""
    named: dict[Hashable, tuple[str, str]] = {}
    left = _give({key: file_name(program, part) for key, part in parts.items()},
                 "operation, dimensions, dtype", named)  # fmt: skip
    for words, why in _WORDS:
        told = _differing(program, {key: parts[key] for key in left}, words)
        for count in range(1, _MOST_WORDS + 1):
            proposals = {key: file_name(program, parts[key], told[key][:count]) for key in left}
            short = {key: name for key, name in proposals.items() if len(name) <= LONGEST_NAME}
            _give(short, why, named)
            left = [key for key in left if key not in named]
    proposals = {key: file_name(program, parts[key], [hashed(key)[:8]]) for key in left}
    why = "with a hash of its attributes, since two workloads would share the name"
    if left := _give(proposals, why, named):
        raise ValueError(f"workloads that cannot be told apart: {left}")
    return named


def _give(
    proposals: Mapping[Hashable, str], why: str, named: dict[Hashable, tuple[str, str]]
) -> list[Hashable]:
    """Name each workload whose proposal is its alone; returns the others."""
    times = Counter([*proposals.values(), *(name for name, _ in named.values())])
    named.update((key, (name, why)) for key, name in proposals.items() if times[name] == 1)
    return [key for key, name in proposals.items() if times[name] > 1]


_SHORTER = {"scaled_dot_product_attention": "attention"}


def file_name(program: Program, part: Part, words: Sequence[str] = ()) -> str:
    """`conv2d_3x64_k7s2p3_fp32`: operation, dimensions, what tells it from others, dtype.

    Where that is too long, a kernel's says fewer attributes, and any other fewer operations.
    """
    own, attributes, fixed = _signature(program, part)
    if fixed and words[:1] == [_input_shape(program, part)]:
        own, words = f"{own}_{words[0]}", words[1:]
    stem = part.stem
    while True:
        name = "_".join(filter(None, (stem, own, attributes, *words, _dtype(program, part))))
        if len(name) <= LONGEST_NAME or not (attributes or "_" in stem):
            return name
        if attributes and (part.level == "kernel" or "_" not in stem):
            attributes = attributes.rpartition("_")[0]
        else:
            stem = stem.rpartition("_")[0]


def hashed(key: Hashable) -> str:
    """Hexadecimal digits that two keys share only where they are equal."""
    return hashlib.sha256(repr(key).encode()).hexdigest()


# --- words for what differs -----------------------------------------------------------------------


def _differing(
    program: Program,
    parts: Mapping[Hashable, Part],
    words: Callable[[Program, Part], Iterator[str]],
) -> dict[Hashable, list[str]]:
    """For each workload the words that not all workloads of its name have."""
    alike: dict[str, dict[Hashable, list[str]]] = {}
    for key, part in parts.items():
        alike.setdefault(file_name(program, part), {})[key] = list(words(program, part))
    found = {}
    for said in alike.values():
        common = set.intersection(*map(set, said.values()))
        for key, own in said.items():
            found[key] = list(dict.fromkeys(word for word in own if word not in common))
    return found


def _shape_words(program: Program, part: Part) -> Iterator[str]:
    """Shapes: the input's beside its parameters', all inputs', and the outputs' if others."""
    first = _input_shape(program, part)
    yield first
    own = () if part.children or part.stem.endswith("attention") else part.io.states
    yield from (_shape(program.spec(n)) for n in (*part.io.inputs, *own)[:_MOST_SHAPES])
    after = dict.fromkeys(_shape(program.spec(n)) for n in part.io.outputs[:_MOST_SHAPES])
    if list(after) != [first]:
        yield f"to_{'_'.join(after)}"


def _kernel_words(program: Program, part: Part) -> Iterator[str]:
    """What people name a part by: how its kernels differ from the usual, and which they are."""
    yield from _shape_words(program, part)
    if part.children and any(kernel.stem == "roll" for kernel in part.kernels()):
        yield "shifted"
    for kernel in part.kernels():
        yield from known_by(program, kernel)
        names = {program.graph.operations[i].name for i in kernel.operations}
        if kernel.stem.endswith("attention") and names & CONCATENATIONS:
            yield "sinks"
    for kernel in part.kernels():
        yield kernel.stem


def _all_words(program: Program, part: Part) -> Iterator[str]:
    """Whatever can be said about a part, the most telling first."""
    yield from _kernel_words(program, part)
    for kernel in part.kernels() if part.children else ():
        own, attributes, _ = _signature(program, kernel)
        yield "_".join(filter(None, (kernel.stem, own, attributes)))
    operations = [program.graph.operations[i] for i in part.operations]
    yield from (word for op in operations if not op.view for word in _arguments(op))
    outside = [program.spec(n) for n in (*part.io.inputs, *part.io.states, *part.io.outputs)]
    yield from filter(None, map(_layout, outside))
    for name in part.io.states:
        yield program.graph.states[name].kind
    for op in operations:
        yield op.name.strip("_")
    yield from (word for op in operations if op.view for word in _arguments(op))
    yield from (f"strides{_spelled(spec.stride)}" for spec in outside if not spec.contiguous)
    yield part.level


def _arguments(op: Operation) -> Iterator[str]:
    for name, value in (*zip(op.schema, op.args, strict=False), *op.kwargs):
        if word := _spelled(value):
            yield _SHORT.get(name, name.strip("_")) + word


_WORDS = (
    (_shape_words, "with the shapes that differ, since one shape would name two workloads"),
    (_kernel_words, "with a word for what differs, since two workloads have the same shapes"),
    (_all_words, "with an attribute that differs, since two workloads have the same shapes"),
)
_SHORT = {"dim": "d", "dims": "d", "other": "by", "index": "at", "start": "from", "end": "to"}


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


def _layout(spec: TensorSpec) -> str | None:
    """How a tensor lies in memory, where it is not row by row: `permuted_0_2_1`, `strided`."""
    if spec.contiguous:
        return None
    order = sorted(range(len(spec.shape)), key=lambda d: (-spec.stride[d], d))
    dense = spec.dense().stride == spec.stride
    return "permuted_" + "_".join(map(str, order)) if dense else "strided"


def known_by(program: Program, kernel: Part) -> list[str]:
    """What people name a kernel by: `causal`, `window16`, `l2_bidirectional`, `s3_3`."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    if kernel.stem.endswith("attention"):
        return list(_masks(program, kernel, operations))
    words = []
    for op in operations:
        words += ["s" + _spelled(op.arg("shifts"))] if op.name == "roll" else []
        if op.name in {"lstm", "gru", "rnn_tanh", "rnn_relu"}:
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


# --- dimensions -----------------------------------------------------------------------------------


def _signature(program: Program, part: Part) -> tuple[str, str, bool]:
    """(dimensions, attributes, whether the dimensions are those of parameters)."""
    operations = [program.graph.operations[i] for i in part.operations]
    kernels = [part.kernel] if part.kernel else [p.kernel for p in part.kernels()]
    contractions = sum(kernel is not None and kernel.kind == "contraction" for kernel in kernels)
    told = "_".join(known_by(program, part)) if part.level == "kernel" else ""
    if part.level in {"kernel", "fusion"} and contractions <= 1:
        for op in operations:
            if dims := _parameter_dimensions(program, op):
                text = "_".join(filter(None, (_window(program, op), told)))
                return "x".join(map(str, dims)), text, True
        for op in operations:
            if "pool" in op.name and "adaptive" not in op.name:
                return _input_shape(program, part), _window(program, op), False
    several = contractions > 0 and part.level == "kernel" and not part.stem.endswith("attention")
    return _input_shape(program, part, all_of_them=several), told, False


def _parameter_dimensions(program: Program, op: Operation) -> tuple[int, ...]:
    """In, then out, of an operation with a weight of the model."""
    if op.name in {"lstm", "gru", "rnn_tanh", "rnn_relu"}:
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


def _input_shape(program: Program, part: Part, all_of_them: bool = False) -> str:
    names: Iterable[str] = part.io.inputs or part.io.outputs
    specs = [program.spec(n) for n in names]
    if not specs:
        return ""
    if all_of_them:
        return "_".join(dict.fromkeys(_shape(s) for s in specs[:3]))
    if part.level == "kernel":
        return _shape(max(specs, key=lambda s: s.numel))
    told = (s for n, s in zip(names, specs, strict=True) if n not in program.constants)
    return _shape(next(told, specs[0]))  # a table or a mask that comes in tells less


def _shape(spec: TensorSpec) -> str:
    return "x".join(map(str, spec.shape)) or "scalar"


def _dtype(program: Program, part: Part) -> str:
    specs = [program.spec(n) for n in (*part.io.outputs, *part.io.states, *part.io.inputs)]
    chosen = next((s for s in specs if s.floating), specs[0] if specs else None)
    return DTYPE_CODES.get(chosen.dtype, chosen.dtype) if chosen else ""
