"""Where each value of a program lives, and how it lies in memory, once the model is on a device.

Traced on a CPU, `torch.arange(n, device=x.device)` and `torch.arange(n)` are the same program, and
a copy that only another device makes is none. So the forward is traced a second time with the model
and its inputs on a simulated device, and both traces are read side by side.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from runner.graph.ir import CPU, DEVICE, Operation, Symbol, TensorSpec
from runner.graph.operations import kind
from runner.graph.tracing.export_trace import Built, Placement, Traced, export
from runner.problems import imported_packages
from runner.problems.fake_execution import FakeTensors, move
from runner.problems.simulated_device import simulated_device
from runner.torch_internals import (
    OpOverload,
    disable_constant_folding,
    mixes_devices,
    tree_flatten,
    tree_map,
    tree_unflatten,
    without_guards,
)

_ASKS = re.compile(rb"\.device\b|\bis_(cuda|cpu|xpu|mps)\b|\bget_device\b|\baccelerator\b")
_ON_DEVICE = "on_device"
"""Key of a node's `meta`: what it gives where the model is on a device, as a fake tensor."""
_MOVES = {"to", "_to_copy", "type_as"}
"""Operators that may give their argument on another device."""
_LEFT_OUT_HERE = _MOVES | {"contiguous"}
"""Operators that do nothing where a tensor is already as they make it, and may leave no trace."""
_LAID_OUT_BY_DEVICE = {"scaled_dot_product_attention"}
"""Operators whose result lies in another order on a CPU."""


def note_placement(
    built: Built, traced: Traced, build: Callable[[FakeTensors], Built] | None
) -> None:
    """Give each node of an exported program its value on a device, where that could differ.

    Where it cannot be found out, or the forward does not run there, a note of the trace says so.
    """
    file = built.loaded.problem.path
    if not (_depends_on_device(traced) or _may_ask(file)):
        return
    try:
        try:
            other = _traced(built, build)
        except Exception as error:
            if not _is_not_implemented(error):
                raise
            with disable_constant_folding():
                other = _traced(built, build)
    except MemoryError:
        raise
    except Exception as error:  # whatever the author's file or a library raises on that device
        mixes = mixes_devices(error)
        traced.placement = "mixed" if mixes else "unknown"
        what = "does not run on a device" if mixes else "not shown to run on a device"
        traced.notes.append(f"{what}: {_reason(error, str(file))}")
        return
    if not _take_over(traced.module, other.module):
        for node in _nodes(traced.module):
            node.meta.pop(_ON_DEVICE, None)
        traced.placement = "unknown"
        traced.notes.append("computes something else on a device than on the CPU")


def _is_not_implemented(error: BaseException | None) -> bool:
    """Whether torch said so, be it that a library says it in its own words."""
    while error is not None and not isinstance(error, NotImplementedError):
        error = error.__cause__ or error.__context__
    return error is not None


def _traced(built: Built, build: Callable[[FakeTensors], Built] | None) -> Traced:
    with without_guards(), contextlib.redirect_stdout(io.StringIO()):  # printed at the first trace
        return export(_on_device(built, build))


def _may_ask(file: Path) -> bool:
    """Whether the author's file, or a package that it imports, may look which device it is on."""
    return bool(imported_packages(file)) or _ASKS.search(file.read_bytes()) is not None


def _depends_on_device(traced: Traced) -> bool:
    """Whether the forward makes or moves a tensor, or holds one that `.to()` leaves where it is."""
    if any(kind == "constant" for kind, _, _ in traced.placeholders):
        return True
    for node in _nodes(traced.module):
        target = node.target
        if node.op == "get_attr":
            if isinstance(_attribute(node), torch.Tensor):
                return True
        elif isinstance(target, OpOverload):
            name = target.overloadpacket.__name__
            if "device" in node.kwargs or name in _MOVES | _LAID_OUT_BY_DEVICE:
                return True
    return False


def _nodes(module: Any) -> Iterator[FxNode]:
    """The nodes of a graph, and of the graphs that it calls, in the order in which they stand."""
    for node in module.graph.nodes:
        yield node
        inner = _attribute(node) if node.op == "get_attr" else None
        if isinstance(inner, GraphModule):
            yield from _nodes(inner)


def _attribute(node: FxNode) -> Any:
    return functools.reduce(getattr, str(node.target).split("."), node.graph.owning_module)


def _on_device(built: Built, build: Callable[[FakeTensors], Built] | None) -> Built:
    """Model and inputs as a harness moves them: parameters and buffers, and each input tensor.

    `build` makes them anew, so that nothing is left of the first trace; without it, the model is
    copied, since only real numbers could build it.
    """
    fake, device = FakeTensors(), simulated_device()
    other = build(fake) if build else replace(built, model=fake.copied(built.model))
    move(other.model, fake, device)
    with fake:
        args, kwargs = tree_map(
            lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf,
            (other.args, other.kwargs),
        )
    return replace(other, args=args, kwargs=kwargs)


def _take_over(here: Any, there: Any) -> bool:
    """Note what each node gives on the device; False where the programs are not the same.

    A move or a copy that only the device needs is put into the program: here it gives its argument.
    What each node reads is as on the device: here a move's result and its argument are one value.
    """
    waiting = [node for node in _nodes(there) if not _only_checks(node)][::-1]
    same: dict[FxNode, FxNode] = {}
    """Node of the program on the device -> the same node here."""
    added: dict[FxNode, FxNode] = {}
    """Node that only the program on the device has -> what it reads."""
    before: FxNode | None = None
    for node in list(_nodes(here)):
        if _only_checks(node):
            continue
        while waiting and not (
            _alike(node, waiting[-1]) and _reads_alike(node, waiting[-1], same, added)
        ):
            other = waiting.pop()
            if before is None or _operator(other) not in _LEFT_OUT_HERE:
                return False
            same[other] = before = _added(other, same, before)
            added[other] = other.all_input_nodes[0]
        if not waiting:
            return False
        other = waiting.pop()
        leaves, structure = tree_flatten((node.args, node.kwargs))
        other_leaves, _ = tree_flatten((other.args, other.kwargs))
        if len(leaves) != len(other_leaves):
            return False
        node.meta[_ON_DEVICE] = other.meta.get("val")
        node.args, node.kwargs = tree_unflatten(
            [
                same.get(other_leaf, leaf) if isinstance(other_leaf, FxNode) else leaf
                for leaf, other_leaf in zip(leaves, other_leaves, strict=True)
            ],
            structure,
        )
        same[other] = before = node
    return not waiting


def _added(other: FxNode, same: dict[FxNode, FxNode], before: FxNode) -> FxNode:
    source = same[other.all_input_nodes[0]]
    with before.graph.inserting_after(before):
        node = before.graph.call_function(other.target, (source,))  # type: ignore[arg-type]
    node.meta = {**other.meta, "val": source.meta["val"], _ON_DEVICE: other.meta["val"]}
    return node


def _reads_alike(
    node: FxNode, other: FxNode, same: Mapping[FxNode, FxNode], added: Mapping[FxNode, FxNode]
) -> bool:
    """Whether a move's argument is the same value in both programs."""
    if _operator(node) not in _MOVES:
        return True
    source = other.all_input_nodes[0]
    while source in added:
        source = added[source]
    return same[source] is node.all_input_nodes[0]


def _only_checks(node: FxNode) -> bool:
    return _operator(node).startswith("_assert")


def _alike(one: FxNode, other: FxNode) -> bool:
    if one.op != other.op or one.op != "call_function":
        return one.op == other.op
    return one.target == other.target or {_operator(one), _operator(other)} <= _MOVES


def _operator(node: FxNode) -> str:
    target = node.target
    return target.overloadpacket.__name__ if isinstance(target, OpOverload) else ""


def _reason(error: Exception, file: str) -> str:
    """The error's first sentence, and the author's line that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    lines = str(error).strip().splitlines()
    said = lines[0].partition(". ")[0] if lines else type(error).__name__
    if " object at 0x" in said:  # another address in each run, and about torch's own objects
        said = f"{type(error).__name__} while it was traced there"
    return f"line {frames[-1].lineno}: {said}" if frames else said


def is_on_cpu(node: FxNode, position: int = 0) -> bool:
    """Whether a node's result is on the CPU where the model is on a device."""
    value = node.meta.get(_ON_DEVICE)
    value = value[position] if isinstance(value, (list, tuple)) and value else value
    return isinstance(value, torch.Tensor) and value.device.type == "cpu"


def is_copy_on_device(name: str, source: Any, after: torch.Tensor | None = None) -> bool:
    """Whether a copy that a CPU need not make is one elsewhere, where the source lies otherwise."""
    before = source.meta.get(_ON_DEVICE)
    if not isinstance(before, torch.Tensor):
        return False
    if name == "contiguous":
        return not before.is_contiguous()
    return after is not None and not viewable(before, after)


def viewable(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether a tensor's strides allow to read it in another shape."""
    try:
        torch.empty_strided(before.shape, before.stride(), device="meta").view(after.shape)
    except RuntimeError:
        return False
    return True


def placed(
    op: Operation, node: FxNode, values: Mapping[str, TensorSpec], placement: Placement
) -> Operation:
    """Return the operation, of `node`, with the device that its result is made on or moved to."""
    known, here = _ON_DEVICE in node.meta, is_on_cpu(node)
    sources = node.all_input_nodes
    if op.name in _MOVES and known and here != is_on_cpu(sources[0]):
        cast = () if op.view else (Symbol(f"torch.{values[op.outputs[0]].dtype}"),)
        moved = (op.args[0], CPU if here else DEVICE, *cast)
        schema = ("self", "device", "dtype")[: len(moved)]
        return replace(op, target="to.device", args=moved, kwargs=(), schema=schema)
    met = any(not is_on_cpu(source) for source in sources)
    if "device" not in node.kwargs or (met != here if known else met):
        return op
    if not known and placement == "mixed":
        return op
    return replace(op, kwargs=(*op.kwargs, ("device", CPU if here else DEVICE)))


def made_on_cpu(operations: Sequence[Operation], on_cpu: Collection[str]) -> Iterator[str]:
    """A note on each tensor that forward makes on the CPU, whichever device the model is on."""
    moved: set[str] = set()
    for op in reversed(operations):
        if op.target == "to.device" or moved.intersection(op.outputs):
            moved.update(name for name in op.refs() if name in on_cpu)
    for op in operations:
        if kind(op) in {"creation", "random"} and op.outputs[0] in on_cpu:
            line = f"line {op.origin.line}: " if op.origin and op.origin.line else ""
            then = "then moved to the model's device" if op.outputs[0] in moved else "stays there"
            yield f"{line}made on the CPU, and {then}"
