"""This file knows about how much memory a forward takes at its worst moment.

Three causes: tensors that something still reads, tensors that a running module's caller or a name
in `forward` still holds, and the scratch that an operator takes while it runs. Scratch is that of
PyTorch 2.13 on a CPU with AVX-512, measured operator by operator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from runner.graph.cost import flops, largest_node
from runner.graph.ir import ITEM_BYTES, Graph, Mode, Operation, Ref, Scope, TensorSpec
from runner.problems import Problem

Values = Mapping[str, TensorSpec]


@dataclass(frozen=True, slots=True)
class Scratch:
    """What an operator takes on top of its inputs and outputs."""

    resident_bytes: int = 0
    """At its worst moment, beyond the output, which is not all there yet."""
    allocated_bytes: int = 0
    """All that it asks for: some is given back before the rest is touched."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The worst moment of one forward pass."""

    resident_bytes: int
    allocated_bytes: int
    """What a limit on allocations must allow for."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one forward pass of a problem needs."""

    peak: Peak
    inputs_bytes: int
    outputs_bytes: int
    weights_bytes: int
    """Parameters and buffers, which are part of the peak."""
    flops: int
    operations: int
    largest_node_bytes: int
    """Inputs, weights and outputs of the largest single operation."""
    largest_node: str
    """That operation, and the module that runs it: `linear in mlp.up`."""


def estimate(problem: Problem, mode: Mode = "eval") -> Estimate:
    """The memory that a problem will need, from its captured program; nothing is computed.

    Raises:
        ProblemError: the author's code fails.
        CaptureError: the model runs, but its program cannot be written down.
    """
    from runner.graph.capture import capture
    from runner.graph.normalize import normalize

    return demands(normalize(capture(problem, mode)))


def demands(graph: Graph) -> Estimate:
    """What a captured program needs."""
    values = graph.values
    size, name = largest_node(graph)
    return Estimate(
        peak(graph),
        sum(values[each.name].nbytes for each in graph.inputs),
        sum(values[each].nbytes for each in {*graph.output_names()}),
        sum(values[name].nbytes for name in graph.states),
        sum(flops(op, values) for op in graph.operations),
        len(graph.operations),
        size,
        name,
    )


def peak(graph: Graph) -> Peak:
    """Memory at the worst moment of one forward pass, parameters and inputs included.

    Views share their base's storage.
    """
    owner = _owners(graph)
    until = _held_until(graph, owner)
    always = {*graph.states, *(i.name for i in graph.inputs)}
    alive = sum(graph.values[name].touched_bytes for name in always)
    resident = allocated = alive
    ending: dict[int, set[str]] = {}
    for name, index in until.items():
        if name not in always:
            ending.setdefault(index, set()).add(name)
    for index, op in enumerate(graph.operations):
        if not op.view:
            alive += sum(graph.values[name].nbytes for name in op.outputs if name)
            taken = scratch(op, graph.values)
            resident = max(resident, alive + taken.resident_bytes)
            allocated = max(allocated, alive + taken.allocated_bytes)
        alive -= sum(graph.values[name].nbytes for name in ending.get(index, ()))
    return Peak(resident, allocated)


def _owners(graph: Graph) -> dict[str, str]:
    """The value that owns each value's memory."""
    owner: dict[str, str] = {}
    for op in graph.operations:
        source = next(op.refs(), None)
        for name in op.outputs:
            if name:
                shared = op.view and source is not None
                owner[name] = owner.get(source or "", source or "") if shared else name
    return owner


def _held_until(graph: Graph, owner: dict[str, str]) -> dict[str, int]:
    """For each value that owns memory, the operation after which it is freed.

    A module's caller holds what it passes until the module returns.
    """
    ends: dict[Scope, int] = {}
    for index, op in enumerate(graph.operations):
        ends |= dict.fromkeys(op.scopes, index)
    made_in: dict[str, tuple[Scope, ...]] = {}
    until: dict[str, int] = {}
    for index, op in enumerate(graph.operations):
        for name in op.outputs:
            if name and owner[name] == name:
                made_in[name] = op.scopes
                until[name] = index
        for name in op.refs():
            base = owner.get(name, name)
            entered = [scope for scope in op.scopes if scope not in made_in.get(base, ())]
            last = max([index, *(ends[scope] for scope in entered)])
            until[base] = max(until.get(base, 0), last)
    for name in graph.output_names():
        until[owner.get(name, name)] = len(graph.operations)
    return until


# --- scratch --------------------------------------------------------------------------------------


def scratch(op: Operation, values: Values) -> Scratch:
    """What one operation takes while it runs."""
    if op.name in _SCRATCH:
        return _SCRATCH[op.name](op, values)
    if op.name in _OF_FIRST_INPUT:
        taken = int(_OF_FIRST_INPUT[op.name] * values[next(op.refs())].nbytes)
        return Scratch(taken, taken)
    return Scratch()


_OF_FIRST_INPUT = {
    "logsumexp": 1, "cross_entropy_loss": 1, "mse_loss": 1, "smooth_l1_loss": 1, "huber_loss": 1,
    "l1_loss": 2, "kl_div": 3, "binary_cross_entropy": 1, "binary_cross_entropy_with_logits": 2,
    "triplet_margin_loss": 2, "cosine_similarity": 3, "cosine_embedding_loss": 1,
}  # fmt: skip
"""Operators that call others, as multiples of their first input."""

_BLOCK = 16
"""Channels that oneDNN keeps together."""


def _convolution(op: Operation, values: Values) -> Scratch:
    """oneDNN computes in a layout of its own: input and output are reordered, in full.

    The reordered input is given back before the output is put into its place.
    """
    data, weight, out = (values[name] for name in (*list(op.refs())[:2], op.outputs[0]))
    if not data.contiguous:  # channels last is what it takes as it is
        return Scratch()
    transposed = "transpose" in op.name or op.arg("transposed") is True
    if transposed and _over_one(op.arg("stride")):
        taken = (1 if _over_one(op.arg("dilation")) else 2) * out.nbytes
        return Scratch(taken, taken + data.nbytes)
    ungrouped = weight.shape[0 if transposed else 1] == _channels(data, weight)
    plain = not transposed and ungrouped and _channels(data, weight) < _BLOCK
    source = 0 if plain else _blocked(data, weight)
    result = _blocked(out, weight)
    biased = isinstance(op.arg("bias"), Ref)
    if transposed and biased:
        return Scratch(source + result, source + result)
    return Scratch(max(source + result - out.nbytes, result), source + result)


def _over_one(value: object) -> bool:
    return any(
        n > 1 for n in (value if isinstance(value, tuple) else (value,)) if isinstance(n, int)
    )


def _channels(data: TensorSpec, weight: TensorSpec) -> int:
    return data.shape[-(len(weight.shape) - 1)]


def _blocked(spec: TensorSpec, weight: TensorSpec) -> int:
    """Bytes with the channels filled up to a block."""
    channels = _channels(spec, weight)
    return spec.nbytes // max(channels, 1) * (-(-channels // _BLOCK) * _BLOCK)


def _matmul(op: Operation, values: Values) -> Scratch:
    """A batch that is repeated for the other side is written out."""
    out = values[op.outputs[0]]
    sides = [values[name] for name in list(op.refs())[:2]]
    if min(len(side.shape) for side in sides) < 3:
        return Scratch()
    copied = [side for side in sides if side.shape[:-2] != out.shape[:-2]]
    taken = sum(prod((*out.shape[:-2], *side.shape[-2:])) * _item(side) for side in copied)
    return Scratch(taken, taken)


def _item(spec: TensorSpec) -> int:
    return ITEM_BYTES.get(spec.dtype, 4)


def _max_pooling(op: Operation, values: Values) -> Scratch:
    """Where each maximum was, as int64, whether or not anybody asks."""
    if len([name for name in op.outputs if name]) > 1:
        return Scratch()
    taken = 8 * values[op.outputs[0]].numel
    return Scratch(taken, taken)


_SCRATCH: dict[str, Callable[[Operation, Values], Scratch]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _convolution),
    "matmul": _matmul,
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), _max_pooling),
}
