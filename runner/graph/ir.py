"""This file knows about our graph: operations on values, with every shape, dtype and origin.

From here on nothing needs torch: normalising, recognising, partitioning, naming and emitting are
functions of this graph.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Literal, Union

Capture = Literal["fake", "real_parameters", "concrete"]
Mode = Literal["eval", "train"]

ITEM_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float16": 2,
    "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16, "float8_e4m3fn": 1,
    "float8_e5m2": 1, "uint16": 2, "uint32": 4, "uint64": 8, "complex32": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor without its numbers; `dtype` without the `torch.`, `stride` in elements."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...]

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def item_bytes(self) -> int:
        return ITEM_BYTES.get(self.dtype, 4)

    @property
    def nbytes(self) -> int:
        return self.numel * self.item_bytes

    @property
    def touched_bytes(self) -> int:
        """Bytes of its own; an expanded tensor has what it repeats, windows that overlap once."""
        if not self.numel:
            return 0
        sizes = list(zip(self.shape, self.stride, strict=True))
        span = 1 + sum((n - 1) * abs(stride) for n, stride in sizes)
        return min(span, prod(n for n, stride in sizes if stride)) * self.item_bytes

    @property
    def contiguous(self) -> bool:
        return self.stride == row_major(self.shape) or self.numel <= 1

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides that are ever taken: 0 where there is one element to stand on."""
        return tuple(0 if n == 1 else s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def expanded(self) -> bool:
        """Whether an element in memory stands in several places along some dimension."""
        return any(is_expanded(n, s) for n, s in zip(self.shape, self.stride, strict=True))

    def dense(self) -> "TensorSpec":
        """What an operation on each element gives: its order of dimensions, without gaps."""
        order = sorted(range(len(self.shape)), key=lambda d: (-self.stride[d], d))
        packed = row_major(tuple(self.shape[d] for d in order))
        stride = tuple(packed[order.index(d)] for d in range(len(order)))
        return TensorSpec(self.shape, self.dtype, stride)

    @property
    def floating(self) -> bool:
        return self.dtype.startswith(("float", "bfloat", "complex"))


def is_expanded(size: int, stride: int) -> bool:
    """Whether one element in memory stands for all of a dimension."""
    return size > 1 and stride == 0


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Ref:
    """A value that is used as an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something that is written as a name in Python: `torch.float32`, `torch.channels_last`."""

    text: str


DEVICE = Symbol("device")
"""The device that the model is on, as an argument: written as that of a tensor at hand."""
CPU = Symbol('"cpu"')


@dataclass(frozen=True, slots=True)
class Number:
    """The number in a tensor of one element, where the program reads it: `scale.item()`."""

    name: str


Arg = Union[None, bool, int, float, complex, str, "Ref", "Number", "Symbol", tuple["Arg", ...]]


@dataclass(frozen=True, slots=True)
class Scope:
    """One call of a module: its dotted path, its class, and which call of that path (0, 1, ...)."""

    path: str
    cls: str
    call: int
    builtin: bool = False
    """A module of torch.nn, not of the author."""
    method: str = ""
    """The method that was called by its name; empty for a call of the module itself."""

    @property
    def called(self) -> str:
        """What was called: a class, or a method of it, as `Flow.inverse`."""
        return f"{self.cls}.{self.method}" if self.method else self.cls


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the author wrote it: a statement's first line, and the names that it assigns to."""

    file: str
    statement: int
    targets: tuple[str, ...] = ()
    line: int | None = None
    """Line in the problem file; None where a library's code ran."""
    calls: tuple[int | None, ...] = ()
    """Lines of the forwards that lead to it, the model's first; None outside the problem file."""
    callers: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    """File, first line and targets of the statements that led there, the model's own first."""
    joined: str = ""
    """The author's list of tensors that the statement joins: `parts` of `torch.cat(parts)`."""
    function: str = ""
    """The function or method that the statement stands in."""
    functions: tuple[tuple[str, str, int], ...] = ()
    """File, name and line of the call of each function that the innermost forward is in here."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the program. An output that nothing names is ''."""

    target: str
    """Operator and overload without namespace: `conv2d.default`, `add.Tensor`."""
    args: tuple[Arg, ...]
    kwargs: tuple[tuple[str, Arg], ...]
    outputs: tuple[str, ...]
    scopes: tuple[Scope, ...] = ()
    origin: Origin | None = field(default=None, repr=False, compare=False)
    view: bool = False
    """Moves no data: its outputs share the first argument's storage."""
    schema: tuple[str, ...] = ()
    """Names of the positional arguments."""
    listed: bool = False
    """Returns a list of tensors, also where it has one."""

    @property
    def name(self) -> str:
        """The operator without its overload: `conv2d`."""
        return self.target.partition(".")[0]

    def refs(self) -> Iterator[str]:
        """Values that it reads, in the order of its arguments, repetitions included."""
        yield from references(self.args)
        for _, value in self.kwargs:
            yield from references(value)

    def arg(self, name: str, default: Arg = None) -> Arg:
        """An argument by the name that the operator's schema gives it."""
        if name in self.schema:
            position = self.schema.index(name)
            if position < len(self.args):
                return self.args[position]
        return dict(self.kwargs).get(name, default)


def references(value: Arg) -> Iterator[str]:
    """Names of the values in an argument, depth first."""
    if isinstance(value, (Ref, Number)):
        yield value.name
    elif isinstance(value, tuple):
        for item in value:
            yield from references(item)


def substitute(value: Arg, replace: Callable[[str], Arg]) -> Arg:
    """The argument with each value put through `replace`."""
    if isinstance(value, Ref):
        return replace(value.name)
    if isinstance(value, Number):
        put = replace(value.name)
        return Number(put.name) if isinstance(put, Ref) else put
    if isinstance(value, tuple):
        return tuple(substitute(item, replace) for item in value)
    return value


StateKind = Literal["parameter", "buffer", "constant"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a tensor came about outside `forward`: the few operations that make it."""

    operations: tuple[Operation, ...]
    result: str
    values: tuple[tuple[str, TensorSpec], ...]

    @property
    def specs(self) -> dict[str, TensorSpec]:
        return dict(self.values)


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that the model owns."""

    path: str
    """Dotted name in the model: `layer1.0.conv1.weight`."""
    kind: StateKind
    recipe: Recipe | None = None
    literal: str | None = None
    """For a small constant: its numbers, as Python."""
    in_checkpoint: bool = True
    """False for a buffer that was registered with `persistent=False`."""
    requires_grad: bool = True
    """False for a parameter that is frozen: torch.matmul then multiplies in another way."""
    ones: int | None = None
    """How many elements of a mask are true, where they have values: so many are chosen by it."""


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that the caller passes."""

    name: str
    argument: str
    """Name of the parameter of `forward` that holds it."""
    recipe: Recipe | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """A model's forward at exact shapes.

    `operations` are in the order in which they ran; each value is written once and never changed
    (after `normalize`); `output` is the returned structure, with Ref where a tensor stands.
    """

    model_name: str
    capture: Capture
    mode: Mode
    inputs: tuple[Input, ...]
    states: dict[str, State]
    operations: tuple[Operation, ...]
    values: dict[str, TensorSpec]
    output: object
    classes: dict[str, str] = field(default_factory=dict)
    """Class of each module, by its dotted path."""
    containers: frozenset[str] = frozenset()
    """Dotted paths of modules that only hold others: lists, dicts, sequences, bare `nn.Module`s."""
    state_names: tuple[str, ...] = ()
    """Every parameter and buffer of the model, used or not."""
    tied: dict[str, str] = field(default_factory=dict)
    """Name of a parameter or buffer -> the first name of the same tensor, where it has several."""
    plain_call: bool = True
    """Called with tensors alone, by position."""
    specialisations: tuple[str, ...] = ()
    """Where values steered the program, a sentence each: for other values it may be another."""
    seen: dict[str, str] = field(default_factory=dict)
    """Small integers and booleans of a program that values steered: Python that makes the like."""
    on_cpu: frozenset[str] = frozenset()
    """Values that stay on the CPU where the model is on a device."""
    placement_known: bool = True
    """Whether it could be found out where each value is while the model is on a device."""
    notes: tuple[str, ...] = ()
    """What was decided on the way, a sentence each, for the log."""
    dropped: tuple[Operation, ...] = ()
    """Dropouts that drop nothing in this mode: `normalize` takes them out of `operations`."""

    def output_names(self) -> tuple[str, ...]:
        """The returned tensors, in order, repetitions included."""
        return tuple(_leaves(self.output))

    def producers(self) -> dict[str, int]:
        """Index of the operation that makes each value."""
        return {name: i for i, op in enumerate(self.operations) for name in op.outputs if name}

    def consumers(self) -> dict[str, list[int]]:
        """Indices of the operations that read each value, in order, without repetition."""
        found: dict[str, list[int]] = {}
        for i, op in enumerate(self.operations):
            for name in dict.fromkeys(op.refs()):
                found.setdefault(name, []).append(i)
        return found


def _leaves(structure: object) -> Iterator[str]:
    if isinstance(structure, Ref):
        yield structure.name
    elif isinstance(structure, dict):
        for item in structure.values():
            yield from _leaves(item)
    elif isinstance(structure, (list, tuple)):
        for item in structure:
            yield from _leaves(item)
