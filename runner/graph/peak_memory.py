"""Estimates the memory that one forward pass needs at its worst moment.

Three things hold memory: tensors that a later operation reads, tensors that the caller of a running
module or a variable in `forward` still refers to, and the workspace of the running operator. The
estimate also covers a small part that runs by itself, which holds its inputs throughout, and the
drawing of inputs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from runner.graph.cost import flops, largest_node
from runner.graph.ir import Graph, Mode, Operation, Recipe, Scope, TensorSpec
from runner.graph.workspace_memory import scratch
from runner.problems import Problem


@dataclass(frozen=True, slots=True)
class Peak:
    """Memory at the worst moment of one forward pass."""

    resident_bytes: int
    allocated_bytes: int
    """Bytes that a limit on allocations must permit."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory and work that one forward pass of a problem needs."""

    peak: Peak
    inputs_bytes: int
    outputs_bytes: int
    weights_bytes: int
    """Bytes of parameters and buffers, which are part of the peak."""
    parts_bytes: int
    """Bytes at the worst moment of two operations in a row that run by themselves."""
    drawing_bytes: int
    """Bytes while computed inputs are made a second time, next to the first ones."""
    flops: int
    operations: int
    workloads: int
    """Number of different operations; the same operator on other shapes is another one."""
    steps: int
    """Number of operations that recurrent layers run when they unroll."""
    largest_node_bytes: int
    """Bytes of inputs, weights and outputs of the largest single operation."""
    largest_node: str
    """Name of that operation and the module that runs it: `linear in mlp.up`."""


def estimate(problem: Problem, mode: Mode = "eval") -> Estimate:
    """Return the memory that a problem will need, from its captured program; computes nothing.

    Raises:
        ProblemError: the author's code fails.
        CaptureError: the model runs, but its program cannot be written down.
    """
    from runner.graph.normalize import normalize
    from runner.graph.tracing.capture import capture

    return demands(normalize(capture(problem, mode)))


def demands(graph: Graph) -> Estimate:
    """Return the memory and work that a captured program needs."""
    values = graph.values
    size, name = largest_node(graph)
    return Estimate(
        peak(graph),
        sum(values[each.name].nbytes for each in graph.inputs),
        sum(values[each].nbytes for each in {*graph.output_names()}),
        sum(values[name].nbytes for name in _weights(graph)),
        _parts_bytes(graph),
        _drawing_bytes(graph),
        sum(flops(op, values) for op in graph.operations),
        len(graph.operations),
        len({(op.name, *(values[name] for name in _named(op))) for op in graph.operations}),
        sum(_steps(op, values) for op in graph.operations),
        size,
        name,
    )


def _weights(graph: Graph) -> Iterable[str]:
    """Return the tensors that the model owns; tied names count as one tensor."""
    named = {graph.tied.get(s.path, s.path): name for name, s in graph.states.items()}
    return named.values()


def peak(graph: Graph) -> Peak:
    """Return the memory at the worst moment of one forward pass, parameters and inputs included.

    Views share their base's storage.
    """
    owner = _owners(graph)
    until = _held_until(graph, owner)
    inputs = [i.name for i in graph.inputs]
    always = {*graph.states, *inputs}
    alive = sum(graph.values[name].touched_bytes for name in (*_weights(graph), *inputs))
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
    """Return, for each value, the value that owns its memory."""
    owner: dict[str, str] = {}
    for op in graph.operations:
        source = next(op.refs(), None)
        for name in op.outputs:
            if name:
                shared = op.view and source is not None
                owner[name] = owner.get(source or "", source or "") if shared else name
    return owner


def _held_until(graph: Graph, owner: dict[str, str]) -> dict[str, int]:
    """Return, for each value that owns memory, the operation after which it is freed.

    A module's caller keeps its arguments alive until the module returns. A variable in `forward`
    keeps its value alive until it is assigned again or `forward` returns.
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
    for base, index in _named_until(graph, owner, ends):
        until[base] = max(until.get(base, 0), index)
    for name in graph.output_names():
        until[owner.get(name, name)] = len(graph.operations)
    return until


def _named_until(
    graph: Graph, owner: dict[str, str], ends: dict[Scope, int]
) -> Iterator[tuple[str, int]]:
    """Yield each value that the author's code names, and the operation that ends the name."""
    holds: dict[tuple[Scope | None, str], str] = {}
    for index, op in enumerate(graph.operations):
        after = graph.operations[index + 1] if index + 1 < len(graph.operations) else None
        statement = _statement(op)
        if statement is None or (after is not None and _statement(after) == statement):
            continue  # The last operation of a statement gives its result.
        assert op.origin is not None
        results, targets = [name for name in op.outputs if name], op.origin.targets
        if len(targets) != len(results):
            continue
        for name, target in zip(results, targets, strict=True):
            place = statement[0], target
            if place in holds:
                yield holds[place], index
            holds[place] = owner[name]
    for (scope, _), base in holds.items():
        yield base, ends[scope] if scope else len(graph.operations) - 1


def _statement(op: Operation) -> tuple[Scope | None, str, int] | None:
    """Return an operation's module of the author's (None: the model), its file and statement."""
    frame = next((scope for scope in reversed(op.scopes) if not scope.builtin), None)
    return (frame, op.origin.file, op.origin.statement) if op.origin else None


def _named(op: Operation) -> list[str]:
    return [*op.refs(), *filter(None, op.outputs)]


def _parts_bytes(graph: Graph) -> int:
    """Return the most bytes that two operations in a row and their inputs take together."""
    owner = _owners(graph)
    producers = {name: op for op in graph.operations if not op.view for name in op.outputs if name}
    most = 0
    for op in graph.operations:
        for name in op.refs() if not op.view else ():
            first = producers.get(owner.get(name, name))
            if first is not None:
                held = {owner.get(each, each) for each in (*_named(first), *_named(op))}
                most = max(most, sum(graph.values[each].nbytes for each in held))
    return most


def _drawing_bytes(graph: Graph) -> int:
    """Return the bytes while computed inputs are made a second time; 0 if all are only drawn."""
    most = before = 0
    for each in graph.inputs:
        size = graph.values[each.name].nbytes
        made = [op for op in each.recipe.operations if not op.view] if each.recipe else []
        if each.recipe and len(made) > 1:
            most = max(most, before + _making_bytes(each.recipe))
        before += size
    return before + most if most else 0


def _making_bytes(recipe: Recipe) -> int:
    """Return the bytes that a recipe's worst statement reads and makes."""
    specs = recipe.specs
    owner: dict[str, str] = {}
    for op in recipe.operations:
        source = next(op.refs(), None)
        for name in op.outputs:
            owner[name] = owner.get(source, source) if op.view and source else name
    most = 0
    for _, ops in groupby(recipe.operations, lambda op: op.origin and op.origin.statement):
        held = {owner.get(name, name) for op in ops for name in _named(op)}
        most = max(most, sum(specs[name].nbytes for name in held if name in specs))
    return most


_STEP = {"gru": 11, "rnn_tanh": 3, "rnn_relu": 3}
"""Operations of one step of one recurrent layer; an LSTM is one operation of oneDNN."""


def _steps(op: Operation, values: dict[str, TensorSpec]) -> int:
    """Return how many operations a recurrent layer runs, one after the other."""
    if op.name not in _STEP:
        return 0
    names = list(op.refs())
    sequence = values[names[0]].shape
    batch_first = op.arg("batch_first") is True and len(sequence) > 2
    layers = sum(len(values[name].shape) > 1 for name in names[2:]) // 2
    return _STEP[op.name] * sequence[1 if batch_first else 0] * layers
