"""Defines the graph: operations on values, each with its shape, dtype and place in the source.

After capture nothing needs torch: normalising, recognising, partitioning, naming and emitting are
functions of this graph.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
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
    """Shape, dtype (without `torch.`) and stride (in elements) of a tensor, without its numbers."""

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
        """Bytes of memory that the tensor's elements occupy, each counted once.

        An expanded dimension counts once, and so does memory that overlapping windows share.
        """
        if not self.numel:
            return 0
        sizes = list(zip(self.shape, self.stride, strict=True))
        span = 1 + sum((n - 1) * abs(stride) for n, stride in sizes)
        return min(span, prod(n for n, stride in sizes if stride)) * self.item_bytes

    @property
    def canonical(self) -> "TensorSpec":
        """The spec with the strides that a dimension of size 1 has in a tensor without gaps.

        Such a stride never moves to another element. Torch keeps what it was before a slice: in
        the first 64 of 96 channels, a batch of one image has the stride of 96.
        """
        strides: list[int] = []
        span = 1
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            strides.append(span if size == 1 else stride)
            span = max(span, size * strides[-1])
        return TensorSpec(self.shape, self.dtype, tuple(reversed(strides)))

    @property
    def contiguous(self) -> bool:
        return self.stride == row_major(self.shape) or self.numel <= 1

    @property
    def effective_strides(self) -> tuple[int, ...]:
        """Strides that indexing uses: 0 for a dimension of size 1, whose stride never matters."""
        return tuple(0 if n == 1 else s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def is_expanded(self) -> bool:
        """Whether some dimension repeats one element in memory (size above 1, stride 0)."""
        return any(is_expanded(n, s) for n, s in zip(self.shape, self.stride, strict=True))

    def as_dense(self) -> "TensorSpec":
        """Return the spec of a pointwise operation's result for this input.

        The dimensions lie in memory in the same order, without gaps.
        """
        order = sorted(range(len(self.shape)), key=lambda d: (-self.stride[d], d))
        packed = row_major(tuple(self.shape[d] for d in order))
        stride = tuple(packed[order.index(d)] for d in range(len(order)))
        return TensorSpec(self.shape, self.dtype, stride)

    @property
    def floating(self) -> bool:
        return self.dtype.startswith(("float", "bfloat", "complex"))


def is_expanded(size: int, stride: int) -> bool:
    """Return whether a dimension repeats one element in memory."""
    return size > 1 and stride == 0


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor of this shape, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Ref:
    """Reference to a value of the graph, used as an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """Argument that is a Python expression: `torch.float32`, `torch.channels_last`."""

    text: str


DEVICE = Symbol("device")
"""The model's device as an argument; emitted code takes it from a tensor that it has."""
CPU = Symbol('"cpu"')


@dataclass(frozen=True, slots=True)
class Number:
    """The number in a one-element tensor, which the program reads with `scale.item()`."""

    name: str


Arg = Union[None, bool, int, float, complex, str, "Ref", "Number", "Symbol", tuple["Arg", ...]]


@dataclass(frozen=True, slots=True)
class Scope:
    """One call of a module: its dotted path, its class, and the call's number (0, 1, ...)."""

    path: str
    cls: str
    call: int
    builtin: bool = False
    """True for a module of torch.nn, false for a class of the author's."""
    method: str = ""
    """Name of the method that was called directly; empty for a call of the module itself."""

    @property
    def callee(self) -> str:
        """Name of the callee: a class, or one of its methods, such as `Flow.inverse`."""
        return f"{self.cls}.{self.method}" if self.method else self.cls


@dataclass(frozen=True, slots=True)
class Origin:
    """Place of an operation in the author's source: first line and targets of the statement."""

    file: str
    statement: int
    targets: tuple[str, ...] = ()
    line: int | None = None
    """Line in the problem file; None for an operation that a library's code runs."""
    calls: tuple[int | None, ...] = ()
    """Line of each forward on the call stack, the model's first; None outside the problem file."""
    callers: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    """File, first line and targets of each calling statement, beginning with the model's own."""
    joined_list: str = ""
    """Name of the list of tensors that the statement joins: `parts` in `torch.cat(parts)`."""
    function: str = ""
    """Name of the function or method that contains the statement."""
    functions: tuple[tuple[str, str, int], ...] = ()
    """File, name and line of the call of each function between the innermost forward and here."""
    loops: tuple[bool, ...] = ()
    """For each of these functions, whether the line that runs in it stands in a loop's body."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the program. An output that the program does not name is ''."""

    target: str
    """Operator and overload, `add.Tensor`; of a package's operator `torchvision::nms.default`."""
    args: tuple[Arg, ...]
    kwargs: tuple[tuple[str, Arg], ...]
    outputs: tuple[str, ...]
    scopes: tuple[Scope, ...] = ()
    origin: Origin | None = field(default=None, repr=False, compare=False)
    view: bool = False
    """True if no data moves: the outputs share the first argument's storage."""
    schema: tuple[str, ...] = ()
    """Names of the positional arguments."""
    returns_list: bool = False
    """True if the operator returns a list of tensors, even a list of one."""

    @property
    def name(self) -> str:
        """Name of the operator without its overload: `conv2d`, `torchvision_nms`."""
        return self.target.partition(".")[0].replace("::", "_")

    def refs(self) -> Iterator[str]:
        """Yield the names of the values that are read, in argument order, with repetitions."""
        yield from references(self.args)
        for _, value in self.kwargs:
            yield from references(value)

    def arg(self, name: str, default: Arg = None) -> Arg:
        """Return the argument that has this name in the operator's schema."""
        if name in self.schema:
            position = self.schema.index(name)
            if position < len(self.args):
                return self.args[position]
        return dict(self.kwargs).get(name, default)


def references(value: Arg) -> Iterator[str]:
    """Yield the names of the values in an argument, depth first."""
    if isinstance(value, (Ref, Number)):
        yield value.name
    elif isinstance(value, tuple):
        for item in value:
            yield from references(item)


def substitute(value: Arg, replace: Callable[[str], Arg]) -> Arg:
    """Return the argument with every value replaced by what `replace` returns for its name."""
    if isinstance(value, Ref):
        return replace(value.name)
    if isinstance(value, Number):
        put = replace(value.name)
        return Number(put.name) if isinstance(put, Ref) else put
    if isinstance(value, tuple):
        return tuple(substitute(item, replace) for item in value)
    return value


def substitute_operands(op: Operation, operand: Callable[[str], Arg]) -> Operation:
    """Return the operation with every value replaced by what `operand` returns for its name."""
    args = tuple(substitute(arg, operand) for arg in op.args)
    kwargs = tuple((key, substitute(arg, operand)) for key, arg in op.kwargs)
    return replace(op, args=args, kwargs=kwargs)


StateKind = Literal["parameter", "buffer", "constant"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The few operations that made a tensor outside `forward`, in `__init__` or `get_inputs()`."""

    operations: tuple[Operation, ...]
    result: str
    values: tuple[tuple[str, TensorSpec], ...]

    @property
    def specs(self) -> dict[str, TensorSpec]:
        return dict(self.values)


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that the model owns: a parameter, a buffer or a constant."""

    path: str
    """Dotted name in the model: `layer1.0.conv1.weight`."""
    kind: StateKind
    recipe: Recipe | None = None
    literal: str | None = None
    """Python text with the numbers of a small constant."""
    in_checkpoint: bool = True
    """False for a buffer that was registered with `persistent=False`."""
    requires_grad: bool = True
    """False for a frozen parameter, which torch.matmul multiplies in another way."""
    ones: int | None = None
    """Number of true elements of a mask; so many elements the mask selects."""


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that the caller passes to the model."""

    name: str
    argument: str
    """Name of the parameter of `forward` that holds the tensor."""
    recipe: Recipe | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """A model's forward at exact shapes.

    `operations` are in the order in which they ran. Each value is written once and never changed
    (after `normalize`). `output` is the returned structure, with a Ref in the place of each tensor.
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
    """Class name of each module, by its dotted path."""
    containers: frozenset[str] = frozenset()
    """Paths of modules that only hold other modules: lists, dicts, sequences, bare `nn.Module`s."""
    state_names: tuple[str, ...] = ()
    """Names of all parameters and buffers of the model, also of those that forward never reads."""
    tied: dict[str, str] = field(default_factory=dict)
    """Further name of a shared parameter or buffer -> the first name of the same tensor."""
    plain_call: bool = True
    """True if the model is called with positional tensors only."""
    specialisations: tuple[str, ...] = ()
    """One sentence for each place where values decided the program's path."""
    observed_values: dict[str, str] = field(default_factory=dict)
    """Python text for small integer and boolean values that decided the program's path; running it
    gives a tensor that decides in the same way."""
    on_cpu: frozenset[str] = frozenset()
    """Values that stay on the CPU when the model is on another device."""
    placement_known: bool = True
    """False if kdrun could not find out the device of each value of a model on a device."""
    notes: tuple[str, ...] = ()
    """One sentence for the log about each decision of capture and normalisation."""
    inactive_dropouts: tuple[Operation, ...] = ()
    """Dropouts without effect in this mode, which `normalize` removed from `operations`."""

    def output_names(self) -> tuple[str, ...]:
        """Return the names of the returned tensors, in order, with repetitions."""
        return tuple(_leaves(self.output))

    def producers(self) -> dict[str, int]:
        """Return, for each value, the index of the operation that makes it."""
        return {name: i for i, op in enumerate(self.operations) for name in op.outputs if name}

    def consumers(self) -> dict[str, list[int]]:
        """Return, for each value, the indices of the operations that read it, in order."""
        readers: dict[str, list[int]] = {}
        for i, op in enumerate(self.operations):
            for name in dict.fromkeys(op.refs()):
                readers.setdefault(name, []).append(i)
        return readers


def _leaves(structure: object) -> Iterator[str]:
    if isinstance(structure, Ref):
        yield structure.name
    elif isinstance(structure, dict):
        for item in structure.values():
            yield from _leaves(item)
    elif isinstance(structure, (list, tuple)):
        for item in structure:
            yield from _leaves(item)
