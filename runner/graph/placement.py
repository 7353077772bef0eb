"""Finds out each value's device and memory layout once the model is on a device.

Traced on a CPU, `torch.arange(n, device=x.device)` and `torch.arange(n)` are the same program, and
a copy that only another device makes does not appear. So the forward runs a second time, with the
model and its inputs on a simulated device. Its operators are recorded, or traced if a recording is
not enough, and both programs are read side by side.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from runner.errors import error_chain
from runner.graph.ir import CPU, DEVICE, Operation, Symbol, TensorSpec
from runner.graph.operations import kind
from runner.graph.tracing.concrete_trace import restore_attributes
from runner.graph.tracing.export_trace import BuiltProblem, Placement, TracedProgram, export
from runner.graph.tracing.hidden_tracing import forget_last_trace
from runner.graph.tracing.operator_recording import record_operators
from runner.graph.tracing.repeated_layers import RepeatedLayers, RepetitionError
from runner.problems.fake_execution import FakeTensors, move_model
from runner.problems.simulated_device import simulated_device
from runner.torch_internals import (
    FakeTensor,
    OpOverload,
    mixes_devices,
    tree_flatten,
    tree_map,
    tree_map_only,
    without_guards,
)
from runner.torch_tracing import disable_constant_folding

_DEVICE_QUERY = re.compile(rb"\.device\b|\bis_(cuda|cpu|xpu|mps)\b|\bget_device\b|\baccelerator\b")
_ON_DEVICE = "on_device"
"""Key of a node's `meta`: the fake tensor that the node gives when the model is on a device."""
_MOVES = {"to", "_to_copy", "type_as"}
"""Operators that may return their argument on another device."""
_MAY_BE_ABSENT = frozenset({*_MOVES, "contiguous"})
"""Operators that do nothing to a tensor that already fits, and may then leave no trace."""
_DETACHES = {"detach", "detach_"}
_Pairs = list[tuple[FxNode | None, FxNode | None]]
_DEVICE_LAYOUT_OPERATORS = {"scaled_dot_product_attention"}
"""Operators whose result has another memory order on a CPU than on other devices."""


@dataclass(frozen=True, slots=True)
class UntracedCopy:
    """A copy of a problem on fake tensors from before it was traced."""

    problem: BuiltProblem
    fake: FakeTensors


def copy_untraced(built: BuiltProblem) -> UntracedCopy | None:
    """Return a copy of a problem that is on fake tensors; None if it cannot be copied.

    To copy a model takes a tenth of the time of building it.
    """
    fake = FakeTensors()
    try:
        model = fake.copy_model(built.model)
        args, kwargs = tree_map_only(FakeTensor, fake.copy_tensor, (built.args, built.kwargs))
    except MemoryError:
        raise
    except Exception:  # An object of the author's, such as a lock, may refuse to be copied.
        return None
    copied = replace(built, model=model, args=args, kwargs=kwargs, value_texts={})
    return UntracedCopy(copied, fake)


def note_placement(
    built: BuiltProblem,
    traced: TracedProgram,
    build: Callable[[FakeTensors], BuiltProblem] | None,
    untraced: UntracedCopy | None = None,
) -> None:
    """Give each node of an exported program its value on a device, where that could differ.

    If the values cannot be found out, or the forward does not run on a device, add a note to the
    trace. `build`: builds the problem again, where there is no `untraced` or it cannot be recorded.
    """
    file = built.loaded.problem.path
    may_differ = _moves_tensors(traced) or traced.queries_device or _may_query_device(file)
    if not may_differ and not _has_device_layouts(traced):
        return
    if _record_on_device(built, traced, build, untraced):
        return
    try:
        try:
            device_trace = _trace_on_device(built, build)
        except Exception as error:
            if not any(isinstance(link, NotImplementedError) for link in error_chain(error)):
                raise
            with disable_constant_folding():
                device_trace = _trace_on_device(built, build)
    except (MemoryError, RepetitionError):
        raise
    except Exception as error:  # The author's file or a library may raise anything there.
        mixes = mixes_devices(error)
        traced.placement = "mixed" if mixes else "unknown"
        summary = "does not run on a device" if mixes else "not shown to run on a device"
        traced.notes.append(f"{summary}: {_error_summary(error, str(file))}")
        return
    if not _copy_device_values(traced.graph, device_trace.graph):
        traced.placement = "unknown"
        traced.notes.append("computes something else on a device than on the CPU")


def _trace_on_device(
    built: BuiltProblem, build: Callable[[FakeTensors], BuiltProblem] | None
) -> TracedProgram:
    forget_last_trace(built.model_recorder.has_made, built.own_entries)
    # The author's prints already came out at the first trace.
    with without_guards(), contextlib.redirect_stdout(io.StringIO()):
        fake = FakeTensors()
        device_problem = _move_to_device(built, _build_again(built, build, fake), fake)
        traced = export(device_problem)
    _check_layers(built, device_problem)
    return traced


def _record_on_device(
    built: BuiltProblem,
    traced: TracedProgram,
    build: Callable[[FakeTensors], BuiltProblem] | None,
    untraced: UntracedCopy | None,
) -> bool:
    """Store on each node its value on the device, from the operators that the forward calls there.

    This takes a tenth of the time of a second trace. Return False, and store nothing, if the
    recorder cannot follow the forward, or if the forward does not run on a device.
    """
    if any(isinstance(_attribute(n), GraphModule) for n in traced.graph.find_nodes(op="get_attr")):
        return False
    fake = untraced.fake if untraced else FakeTensors()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            copied = untraced.problem if untraced else _build_again(built, build, fake)
            device_problem = _move_to_device(built, copied, fake)
            with restore_attributes(device_problem.model):
                recording = record_operators(device_problem, fake, traced, _MAY_BE_ABSENT)
        _check_layers(built, device_problem)
    except (MemoryError, RepetitionError):
        raise
    except Exception:  # The trace that follows tells what does not run there, and where.
        return False
    return _copy_device_values(traced.graph, recording)


def _check_layers(built: BuiltProblem, device_problem: BuiltProblem) -> None:
    """Refuse a forward that repeats other calls of its layers on a device than here."""
    if built.layers and device_problem.layers and built.layers.calls != device_problem.layers.calls:
        raise RepetitionError("on a device other calls are repetitions")


def _may_query_device(file: Path) -> bool:
    """Return whether the text of the author's file may query the device in any of its branches."""
    return _DEVICE_QUERY.search(file.read_bytes()) is not None


def _moves_tensors(traced: TracedProgram) -> bool:
    """Return whether the forward makes, moves or holds tensors whose device may differ."""
    if any(kind == "constant" for kind, _, _ in traced.placeholders):
        return True
    for node in _nodes(traced.graph):
        if node.op == "get_attr":
            if isinstance(_attribute(node), torch.Tensor):
                return True
        elif _operator(node) and ("device" in node.kwargs or _operator(node) in _MOVES):
            return True
    return False


def _has_device_layouts(traced: TracedProgram) -> bool:
    """Return whether the memory order of a value may be another one on a device."""
    return any(_operator(node) in _DEVICE_LAYOUT_OPERATORS for node in _nodes(traced.graph))


def _nodes(graph: FxGraph) -> Iterator[FxNode]:
    """Yield the nodes of a graph, and of the graphs that it calls, in program order."""
    for node in graph.nodes:
        yield node
        inner = _attribute(node) if node.op == "get_attr" else None
        if isinstance(inner, GraphModule):
            yield from _nodes(inner.graph)


def _attribute(node: FxNode) -> Any:
    return functools.reduce(getattr, str(node.target).split("."), node.graph.owning_module)


def _build_again(
    built: BuiltProblem,
    build: Callable[[FakeTensors], BuiltProblem] | None,
    fake: FakeTensors,
) -> BuiltProblem:
    """Return the problem on fake tensors, with nothing that remains of the first trace.

    Without `build` the model is copied, since only real numbers could build it.
    """
    return build(fake) if build else replace(built, model=fake.copy_model(built.model))


def _move_to_device(
    built: BuiltProblem, device_problem: BuiltProblem, fake: FakeTensors
) -> BuiltProblem:
    """Return a copy of the problem with its model and inputs moved to the simulated device."""
    device = simulated_device()
    move_model(device_problem.model, fake, device)
    with fake:
        args, kwargs = tree_map(
            lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf,
            (device_problem.args, device_problem.kwargs),
        )
    layers = built.layers and RepeatedLayers(built.layers.kinds)
    return replace(
        device_problem,
        args=args,
        kwargs=kwargs,
        reads_numbers=built.reads_numbers,
        layers=layers,
    )


def _copy_device_values(graph: FxGraph, device_graph: FxGraph) -> bool:
    """Store on each node its value on the device; return False if the two programs differ.

    A move or copy that only the device's program has is inserted here, where it returns its
    argument, and what reads its result there reads it here too.
    """
    pairs = _align(graph, device_graph)
    if pairs is None:
        return False
    counterparts: dict[FxNode, FxNode] = {}
    """Node of the program on the device -> its counterpart here."""
    inserted: set[FxNode] = set()
    previous: FxNode | None = None
    for node, device_node in pairs:
        if node is not None and device_node is not None:
            _read_inserted(node, device_node, counterparts, inserted)
            node.meta[_ON_DEVICE] = device_node.meta.get("val")
            counterparts[device_node] = previous = node
        elif device_node is not None:
            source = counterparts[device_node.all_input_nodes[0]]
            if _operator(device_node) not in _DETACHES and previous is not None:
                source = previous = _insert_node(device_node, source, previous)
                inserted.add(source)
            counterparts[device_node] = source
        elif node is not None:
            node.meta[_ON_DEVICE] = node.all_input_nodes[0].meta[_ON_DEVICE]
    return True


def _align(graph: FxGraph, device_graph: FxGraph) -> _Pairs | None:
    """Return the pairs of nodes that are the same in both programs, in program order.

    A move or copy that only the device's program has is paired with None, and so are a
    `detach` that only one of them has, and a move or copy that only the CPU's program has: there it
    returns its argument. Return None if they differ in anything else.
    """
    queue = [node for node in _nodes(device_graph) if not _gives_nothing(node)][::-1]
    pairs: _Pairs = []
    counterparts: dict[FxNode, FxNode] = {}
    unpaired: dict[FxNode, FxNode] = {}
    """Node that only one of the programs has -> the node that it reads."""
    previous: FxNode | None = None
    for node in _nodes(graph):
        if _gives_nothing(node):
            continue
        if _may_be_absent_there(node, queue[-1] if queue else None):
            unpaired[node] = node.all_input_nodes[0]
            pairs.append((node, None))
            continue
        while queue and not (
            _is_same_operation(node, queue[-1])
            and _reads_same_value(node, queue[-1], counterparts, unpaired)
        ):
            device_node = queue.pop()
            if _operator(device_node) not in _DETACHES:
                if previous is None or _operator(device_node) not in _MAY_BE_ABSENT:
                    return None
                if not _set_module_stack(device_node, previous, node):
                    return None
            unpaired[device_node] = device_node.all_input_nodes[0]
            pairs.append((None, device_node))
        if not queue:
            return None
        device_node = queue.pop()
        if len(_read_nodes(node)) != len(_read_nodes(device_node)):
            return None
        counterparts[device_node] = previous = node
        pairs.append((node, device_node))
    return None if queue else pairs


def _may_be_absent_there(node: FxNode, device_node: FxNode | None) -> bool:
    """Return whether a node returns its argument on the device, which runs `device_node` next."""
    if device_node is not None and _is_same_operation(node, device_node):
        return False
    if _operator(node) in _MAY_BE_ABSENT:
        # There its argument may already have the layout, or be at the place, that it gives here.
        own, source = node.meta.get("val"), node.all_input_nodes[0].meta.get("val")
        if own is None or source is None or own.dtype != source.dtype:
            return False
        return device_node is None or _operator(device_node) not in _MAY_BE_ABSENT
    return _operator(node) in _DETACHES


def _set_module_stack(device_node: FxNode, previous: FxNode, following: FxNode) -> bool:
    """Give a recorded node the module calls around it; return False if they are not known.

    A recording only has the path of the innermost module. Its calls are those of a neighbour.
    """
    if "module" not in device_node.meta:
        return True
    stacks = [
        stack
        for stack in (node.meta.get("nn_module_stack") for node in (previous, following))
        if stack and [*stack.values()][-1][0] == device_node.meta["module"]
    ]
    if not stacks or [*stacks[0]] != [*stacks[-1]]:
        return False
    device_node.meta["nn_module_stack"] = stacks[0]
    return True


def _insert_node(device_node: FxNode, source: FxNode, previous: FxNode) -> FxNode:
    with previous.graph.inserting_after(previous):
        node = previous.graph.call_function(device_node.target, (source,))  # type: ignore[arg-type]
    node.meta = {**device_node.meta, "val": source.meta["val"], _ON_DEVICE: device_node.meta["val"]}
    return node


def _read_inserted(
    node: FxNode,
    device_node: FxNode,
    counterparts: Mapping[FxNode, FxNode],
    inserted: set[FxNode],
) -> None:
    """Let a node read an inserted node where its counterpart does."""
    sources = map(counterparts.get, _read_nodes(device_node))
    reads = [
        source if source in inserted else own
        for own, source in zip(_read_nodes(node), sources, strict=True)
    ]
    if not inserted.isdisjoint(reads):
        rest = iter(reads)
        node.args, node.kwargs = tree_map_only(
            FxNode, lambda _: next(rest), (node.args, node.kwargs)
        )


def _read_nodes(node: FxNode) -> list[FxNode]:
    """Return the nodes among a node's arguments, in order and with repetitions."""
    return [leaf for leaf in tree_flatten((node.args, node.kwargs))[0] if isinstance(leaf, FxNode)]


def _reads_same_value(
    node: FxNode,
    device_node: FxNode,
    counterparts: Mapping[FxNode, FxNode],
    unpaired: Mapping[FxNode, FxNode],
) -> bool:
    """Return whether the argument of a move or copy is the same value in both programs."""
    if _operator(node) not in _MAY_BE_ABSENT:
        return True
    own, source = node.all_input_nodes[0], device_node.all_input_nodes[0]
    while source in unpaired:
        source = unpaired[source]
    while own in unpaired:
        own = unpaired[own]
    return counterparts[source] is own


def _gives_nothing(node: FxNode) -> bool:
    """Return whether a node gives nothing: an assertion, or a number that only Python reads."""
    return _operator(node).startswith("_assert") or (_operator(node) == "item" and not node.users)


def _is_same_operation(node: FxNode, device_node: FxNode) -> bool:
    if node.op != device_node.op or node.op != "call_function":
        return node.op == device_node.op
    return node.target == device_node.target or {_operator(node), _operator(device_node)} <= _MOVES


def _operator(node: FxNode) -> str:
    target = node.target
    return target.overloadpacket.__name__ if isinstance(target, OpOverload) else ""


def _error_summary(error: Exception, file: str) -> str:
    """Return the first sentence of an error, with the line of the author's file that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    lines = str(error).strip().splitlines()
    sentence = lines[0].partition(". ")[0] if lines else type(error).__name__
    # An address differs between runs, and such a message is about torch's own objects.
    if " object at 0x" in sentence:
        sentence = f"{type(error).__name__} while it was traced there"
    return f"line {frames[-1].lineno}: {sentence}" if frames else sentence


def is_on_cpu(node: FxNode, position: int = 0) -> bool:
    """Return whether a node's result stays on the CPU when the model is on a device."""
    value = node.meta.get(_ON_DEVICE)
    value = value[position] if isinstance(value, (list, tuple)) and value else value
    return isinstance(value, torch.Tensor) and value.device.type == "cpu"


def is_copy_on_device(name: str, source: Any, after: torch.Tensor | None = None) -> bool:
    """Return whether an operator copies on a device, where the source's layout may differ."""
    before = source.meta.get(_ON_DEVICE)
    if not isinstance(before, torch.Tensor):
        return False
    if name == "contiguous":
        return not before.is_contiguous()
    return after is not None and not can_view(before, after)


def can_view(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Return whether a tensor's strides allow to view it in another shape."""
    try:
        torch.empty_strided(before.shape, before.stride(), device="meta").view(after.shape)
    except RuntimeError:
        return False
    return True


def with_device(
    op: Operation, node: FxNode, values: Mapping[str, TensorSpec], placement: Placement
) -> Operation:
    """Return the operation with the device that its result is made on or moved to."""
    has_device_value, on_cpu = _ON_DEVICE in node.meta, is_on_cpu(node)
    sources = node.all_input_nodes
    if op.name in _MOVES and has_device_value and on_cpu != is_on_cpu(sources[0]):
        cast = () if op.view else (Symbol(f"torch.{values[op.outputs[0]].dtype}"),)
        arguments = (op.args[0], CPU if on_cpu else DEVICE, *cast)
        schema = ("self", "device", "dtype")[: len(arguments)]
        return replace(op, target="to.device", args=arguments, kwargs=(), schema=schema)
    reads_device_value = any(not is_on_cpu(source) for source in sources)
    if "device" not in node.kwargs or (
        reads_device_value != on_cpu if has_device_value else reads_device_value
    ):
        return op
    if not has_device_value and placement == "mixed":
        return op
    return replace(op, kwargs=(*op.kwargs, ("device", CPU if on_cpu else DEVICE)))


def describe_cpu_tensors(operations: Sequence[Operation], on_cpu: Collection[str]) -> Iterator[str]:
    """Yield a note on each tensor that forward makes on the CPU also for a model on a device."""
    moved_values: set[str] = set()
    for op in reversed(operations):
        if op.target == "to.device" or moved_values.intersection(op.outputs):
            moved_values.update(name for name in op.refs() if name in on_cpu)
    for op in operations:
        if kind(op) in {"creation", "random"} and op.outputs[0] in on_cpu:
            line = f"line {op.origin.line}: " if op.origin and op.origin.line else ""
            destination = (
                "then moved to the model's device"
                if op.outputs[0] in moved_values
                else "stays there"
            )
            yield f"{line}made on the CPU, and {destination}"
