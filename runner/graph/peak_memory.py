"""Estimates the memory that one forward pass needs at its worst moment.

Three things hold memory: tensors that a later operation reads, tensors that the caller of a running
module or a variable in `forward` still refers to, and the workspace of the running operator. The
estimate also covers a small part that runs by itself, which holds its inputs throughout, and the
drawing of inputs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from runner.graph.cost import flops
from runner.graph.ir import Graph, Operation, Recipe, Scope, TensorSpec
from runner.graph.workspace_memory import estimate_workspace


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


def estimate_graph(graph: Graph) -> Estimate:
    """Return the memory and work that a captured program needs."""
    values = graph.values
    return Estimate(
        estimate_peak(graph),
        sum(values[item.name].nbytes for item in graph.inputs),
        sum(values[item].nbytes for item in {*graph.output_names()}),
        sum(values[name].nbytes for name in _weights(graph)),
        _largest_part_bytes(graph),
        _redrawing_bytes(graph),
        sum(flops(op, values) for op in graph.operations),
        len(graph.operations),
        len({(op.name, *(values[name] for name in _value_names(op))) for op in graph.operations}),
        sum(_steps(op, values) for op in graph.operations),
    )


def _weights(graph: Graph) -> Iterable[str]:
    """Return the tensors that the model owns; tied names count as one tensor."""
    named = {graph.tied.get(s.path, s.path): name for name, s in graph.states.items()}
    return named.values()


def estimate_peak(graph: Graph) -> Peak:
    """Return the memory at the worst moment of one forward pass, parameters and inputs included.

    Views share their base's storage.
    """
    owner = _owners(graph)
    last_uses = _lifetimes(graph, owner)
    inputs = [i.name for i in graph.inputs]
    permanent = {*graph.states, *inputs}
    alive_bytes = sum(graph.values[name].touched_bytes for name in (*_weights(graph), *inputs))
    resident = allocated = alive_bytes
    freed_after: dict[int, set[str]] = {}
    for name, index in last_uses.items():
        if name not in permanent:
            freed_after.setdefault(index, set()).add(name)
    for index, op in enumerate(graph.operations):
        if not op.view:
            alive_bytes += sum(graph.values[name].nbytes for name in op.outputs if name)
            workspace = estimate_workspace(op, graph.values)
            resident = max(resident, alive_bytes + workspace.resident_bytes)
            allocated = max(allocated, alive_bytes + workspace.allocated_bytes)
        alive_bytes -= sum(graph.values[name].nbytes for name in freed_after.get(index, ()))
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


def _lifetimes(graph: Graph, owner: dict[str, str]) -> dict[str, int]:
    """Return, for each value that owns memory, the operation after which it is freed.

    A module's caller keeps its arguments alive until the module returns. A variable in `forward`
    keeps its value alive until it is assigned again or `forward` returns.
    """
    ends: dict[Scope, int] = {}
    for index, op in enumerate(graph.operations):
        ends |= dict.fromkeys(op.scopes, index)
    creation_scopes: dict[str, tuple[Scope, ...]] = {}
    last_uses: dict[str, int] = {}
    for index, op in enumerate(graph.operations):
        for name in op.outputs:
            if name and owner[name] == name:
                creation_scopes[name] = op.scopes
                last_uses[name] = index
        for name in op.refs():
            base = owner.get(name, name)
            entered = [scope for scope in op.scopes if scope not in creation_scopes.get(base, ())]
            end = max([index, *(ends[scope] for scope in entered)])
            last_uses[base] = max(last_uses.get(base, 0), end)
    for base, index in _variable_lifetimes(graph, owner, ends):
        last_uses[base] = max(last_uses.get(base, 0), index)
    for name in graph.output_names():
        last_uses[owner.get(name, name)] = len(graph.operations)
    return last_uses


def _variable_lifetimes(
    graph: Graph, owner: dict[str, str], ends: dict[Scope, int]
) -> Iterator[tuple[str, int]]:
    """Yield each value that the author's code names, and the operation that ends the name."""
    variables: dict[tuple[Scope | None, str], str] = {}
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
            if place in variables:
                yield variables[place], index
            variables[place] = owner[name]
    for (scope, _), base in variables.items():
        yield base, ends[scope] if scope else len(graph.operations) - 1


def _statement(op: Operation) -> tuple[Scope | None, str, int] | None:
    """Return an operation's module of the author's (None: the model), its file and statement."""
    frame = next((scope for scope in reversed(op.scopes) if not scope.builtin), None)
    return (frame, op.origin.file, op.origin.statement) if op.origin else None


def _value_names(op: Operation) -> list[str]:
    return [*op.refs(), *filter(None, op.outputs)]


def _largest_part_bytes(graph: Graph) -> int:
    """Return the most bytes that two operations in a row and their inputs take together."""
    owner = _owners(graph)
    producers = {name: op for op in graph.operations if not op.view for name in op.outputs if name}
    largest = 0
    for op in graph.operations:
        for name in op.refs() if not op.view else ():
            producer = producers.get(owner.get(name, name))
            if producer is not None:
                owners = {
                    owner.get(value, value)
                    for value in (*_value_names(producer), *_value_names(op))
                }
                largest = max(largest, sum(graph.values[value].nbytes for value in owners))
    return largest


def _redrawing_bytes(graph: Graph) -> int:
    """Return the bytes while computed inputs are made a second time; 0 if all are only drawn."""
    largest = before = 0
    for model_input in graph.inputs:
        size = graph.values[model_input.name].nbytes
        computations = (
            [op for op in model_input.recipe.operations if not op.view]
            if model_input.recipe
            else []
        )
        if model_input.recipe and len(computations) > 1:
            largest = max(largest, before + _recipe_bytes(model_input.recipe))
        before += size
    return before + largest if largest else 0


def _recipe_bytes(recipe: Recipe) -> int:
    """Return the bytes that a recipe's worst statement reads and makes."""
    specs = recipe.specs
    owner: dict[str, str] = {}
    for op in recipe.operations:
        source = next(op.refs(), None)
        for name in op.outputs:
            owner[name] = owner.get(source, source) if op.view and source else name
    largest = 0
    for _, ops in groupby(recipe.operations, lambda op: op.origin and op.origin.statement):
        owners = {owner.get(name, name) for op in ops for name in _value_names(op)}
        largest = max(largest, sum(specs[name].nbytes for name in owners if name in specs))
    return largest


_OPERATIONS_PER_STEP = {"gru": 11, "rnn_tanh": 3, "rnn_relu": 3}
"""Operations of one step of one recurrent layer; an LSTM is one operation of oneDNN."""


def _steps(op: Operation, values: dict[str, TensorSpec]) -> int:
    """Return how many operations a recurrent layer runs, one after the other."""
    if op.name not in _OPERATIONS_PER_STEP:
        return 0
    names = list(op.refs())
    sequence = values[names[0]].shape
    batch_first = op.arg("batch_first") is True and len(sequence) > 2
    layers = sum(len(values[name].shape) > 1 for name in names[2:]) // 2
    return _OPERATIONS_PER_STEP[op.name] * sequence[1 if batch_first else 0] * layers
