"""This file knows about a component's identity and its name: one file a workload, not an instance.

Two instances are the same workload where the same operations with the same attributes run on the
same shapes, dtypes and strides, and come apart in the same way; whose weights they are makes no
difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import prod

from runner.graph.ir import Operation, Recipe, Ref, State, TensorSpec, substitute
from runner.graph.operations import kind
from runner.tree.document import Level
from runner.tree.interface import Program
from runner.tree.part import Part

_MOST_SHAPES = 3

DTYPE_CODES = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64",
    "complex128": "c128", "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2",
}  # fmt: skip


@dataclass(frozen=True)
class Workload:
    """A component file: its name, and every instance that it stands for, as they run."""

    name: str
    level: Level
    parts: tuple[Part, ...]
    naming: str
    """Why it is called that."""

    @property
    def first(self) -> Part:
        """The instance whose names the file uses."""
        return self.parts[0]


def workloads(program: Program, root: Part) -> dict[int, Workload]:
    """The workload of each part, by the part's id(); equal ones are one object."""
    groups: dict[Hashable, list[Part]] = {}
    for part in root.walk():
        groups.setdefault(identity(program, part), []).append(part)
    names = _names(program, groups)
    found: dict[int, Workload] = {}
    for key, parts in groups.items():
        name, naming = names[key]
        workload = Workload(name, parts[0].level, tuple(parts), naming)
        found.update((id(part), workload) for part in parts)
    return found


def identity(program: Program, part: Part) -> Hashable:
    """What makes two parts the same file."""
    operations = [program.graph.operations[i] for i in part.operations]
    number: dict[str, str] = {}
    for name in (*part.io.inputs, *part.io.states, *(n for op in operations for n in op.outputs)):
        number[name] = f"v{len(number)}"
    place = {i: p for p, i in enumerate(part.operations)}
    return (
        part.level,
        _body(operations, number, program.graph.values),
        tuple(program.spec(n) for n in part.io.inputs),
        tuple(_state(program.graph.states[n], program.spec(n)) for n in part.io.states),
        tuple(number[n] for n in part.io.outputs),
        _shape_of_tree(part, place),
    )


def digest(program: Program, part: Part) -> str:
    """The identity in 16 hexadecimal digits: the same in every model, run and process."""
    return _hashed(identity(program, part))[:16]


def _body(
    operations: Iterable[Operation], number: Mapping[str, str], values: Mapping[str, TensorSpec]
) -> tuple[Hashable, ...]:
    """What runs, with numbers for the names of values."""

    def numbered(name: str) -> Ref:
        return Ref(number[name])

    return tuple(
        (
            op.target,
            _typed(tuple(substitute(a, numbered) for a in op.args)),
            _typed(tuple((k, substitute(v, numbered)) for k, v in op.kwargs)),
            tuple(values.get(n) for n in op.outputs),
        )
        for op in operations
    )


def _typed(value: object) -> object:
    """1, 1.0 and True are one key to Python, and three arguments to torch."""
    if isinstance(value, tuple):
        return tuple(_typed(v) for v in value)
    return (
        (type(value).__name__, repr(value))
        if isinstance(value, (bool, int, float, complex))
        else value
    )


def _state(state: State, spec: TensorSpec) -> Hashable:
    own = (_recipe(state.recipe), state.literal) if state.kind == "constant" else None
    return (state.kind, spec, own)


def _recipe(recipe: Recipe | None) -> Hashable:
    """What makes a constant, whatever the values on the way are called."""
    if recipe is None:
        return None
    number = {
        name: f"v{n}"
        for n, name in enumerate(name for op in recipe.operations for name in op.outputs)
    }
    return (*_body(recipe.operations, number, recipe.specs), number.get(recipe.result))


def _shape_of_tree(part: Part, place: dict[int, int]) -> Hashable:
    return tuple(
        (c.level, tuple(place[i] for i in c.operations), _shape_of_tree(c, place))
        for c in part.children
    )


# --- names ----------------------------------------------------------------------------------------


def _names(program: Program, groups: dict[Hashable, list[Part]]) -> dict[Hashable, tuple[str, str]]:
    named: dict[Hashable, tuple[str, str]] = {}
    left = list(groups)
    ways: tuple[tuple[Callable[[Hashable], str], str], ...] = (
        (lambda key: file_name(program, groups[key][0]), "operation, dimensions, dtype"),
        (lambda key: file_name(program, groups[key][0], _beside_weights(program, groups[key][0])),
         "with the input's shape, since the parameters alone would name two workloads"),
        (lambda key: file_name(program, groups[key][0], _every_input(program, groups[key][0])),
         "with all its inputs' shapes, since the first alone would name two workloads"),
        (lambda key: file_name(program, groups[key][0], _in_and_out(program, groups[key][0])),
         "with the output's shape, since the input's alone would name two workloads"),
        (lambda key: f"{file_name(program, groups[key][0])}_{_hashed(key)[:8]}",
         "with a hash of its attributes, since two workloads would share the name"),
    )  # fmt: skip
    for way, why in ways:
        proposals: dict[str, list[Hashable]] = {}
        for key in left:
            proposals.setdefault(way(key), []).append(key)
        taken = {name for name, _ in named.values()}
        for name, keys in proposals.items():
            if len(keys) == 1 and name not in taken:
                named[keys[0]] = (name, why)
        left = [key for key in left if key not in named]
    if left:
        raise ValueError(f"workloads that cannot be told apart: {left}")
    return named


def _hashed(key: Hashable) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()


def file_name(program: Program, part: Part, dimensions: str = "") -> str:
    """`conv2d_3x64_k7s2p3_fp32`: operation, dimensions (its own or those given), dtype."""
    own, attributes, _ = _signature(program, part)
    pieces = [part.stem, dimensions or own, attributes, _dtype(program, part)]
    return "_".join(piece for piece in pieces if piece)


def _beside_weights(program: Program, part: Part) -> str:
    dimensions, _, fixed = _signature(program, part)
    return f"{dimensions}_{_input_shape(program, part)}" if fixed else dimensions


def _every_input(program: Program, part: Part) -> str:
    """Each input's shape, and those of a kernel's weights."""
    own = part.io.states if part.level == "kernel" else ()
    shapes = [_shape(program.spec(n)) for n in (*part.io.inputs, *own)]
    if len(shapes) > _MOST_SHAPES:
        return _beside_weights(program, part)
    dimensions, _, fixed = _signature(program, part)
    return "_".join(dict.fromkeys([dimensions, *shapes] if fixed else shapes))


def _in_and_out(program: Program, part: Part) -> str:
    outputs = dict.fromkeys(_shape(program.spec(n)) for n in part.io.outputs[:_MOST_SHAPES])
    return f"{_beside_weights(program, part)}_to_{'_'.join(outputs)}"


def _signature(program: Program, part: Part) -> tuple[str, str, bool]:
    """(dimensions, attributes, whether the dimensions are those of parameters)."""
    if part.level in {"kernel", "fusion"}:
        for i in part.operations:
            op = program.graph.operations[i]
            dims = _parameter_dimensions(program, op)
            if dims:
                return "x".join(map(str, dims)), _attributes(program, op), True
        for i in part.operations:
            op = program.graph.operations[i]
            if "pool" in op.name and "adaptive" not in op.name:
                return _input_shape(program, part), _attributes(program, op), False
    if part.level == "kernel" and part.kernel is not None and part.kernel.kind == "contraction":
        return _input_shape(program, part, all_of_them=True), "", False
    return _input_shape(program, part), "", False


def _parameter_dimensions(program: Program, op: Operation) -> tuple[int, ...]:
    """In, then out, of an operation with a weight of the model."""
    if op.name in {"lstm", "gru", "rnn_tanh", "rnn_relu"}:
        weights = op.arg("params")
        first = weights[0] if isinstance(weights, tuple) and weights else None
        if isinstance(first, Ref) and program.is_state(first.name):
            rows, columns = program.spec(first.name).shape
            return (columns, rows // {"lstm": 4, "gru": 3}.get(op.name, 1))
        return ()
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
    """Shape of the weight that a contraction reads, also through views."""
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


def _attributes(program: Program, op: Operation) -> str:
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
    return _shape(max(specs, key=lambda s: s.numel) if part.level == "kernel" else specs[0])


def _shape(spec: TensorSpec) -> str:
    return "x".join(map(str, spec.shape)) or "scalar"


def _dtype(program: Program, part: Part) -> str:
    specs = [program.spec(n) for n in (*part.io.outputs, *part.io.states, *part.io.inputs)]
    chosen = next((s for s in specs if s.floating), specs[0] if specs else None)
    return DTYPE_CODES.get(chosen.dtype, chosen.dtype) if chosen else ""
