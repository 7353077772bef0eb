"""Where each value of a program lives, and how it lies in memory, once the model is on a device.

Traced on a CPU, `torch.arange(n, device=x.device)` and `torch.arange(n)` are the same program, and
a copy that only another device makes is none. So the forward is traced a second time with the model
and its inputs on a simulated device, and both traces are read side by side.
"""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from runner.graph.trace import Built, Traced
from runner.problems.simulated_device import FromNumbers, simulated_device
from runner.torch_internals import (
    FakeTensor,
    FakeTensorMode,
    OpOverload,
    mixes_devices,
    tree_map,
    without_guards,
)

ON_DEVICE = "on_device"
"""Key of a node's `meta`: what it gives where the model is on a device, as a fake tensor."""
MOVES = {"to", "_to_copy", "type_as"}
"""Operators that may give their argument on another device."""
_DEVICE_MAKES = MOVES | {"contiguous"}
"""Operators that do nothing where a tensor is already as they make it, and may leave no trace."""
_LAID_OUT_BY_DEVICE = {"scaled_dot_product_attention"}
"""Operators whose result lies in another order on a CPU."""


def note_placement(built: Built, traced: Traced, write_down: Callable[[Built], Traced]) -> None:
    """Give each node of a trace its value on a device, where a device could make a difference.

    Where that cannot be found out, or the forward does not run there, a note of the trace says so.
    """
    if not _depends_on_device(traced):
        return
    try:
        with _on_simulated_device(built):
            other = write_down(built)
    except MemoryError:
        raise
    except Exception as error:  # whatever the author's file or a library raises on that device
        _give_up(traced, _reason(error, str(built.loaded.problem.path)), mixes=mixes_devices(error))
        return
    if not _take_over(traced.module, other.module):
        for node in _nodes(traced.module):
            node.meta.pop(ON_DEVICE, None)
        _give_up(traced, "its forward runs other operations there")


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
            if "device" in node.kwargs or name in MOVES | _LAID_OUT_BY_DEVICE:
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


@contextlib.contextmanager
def _on_simulated_device(built: Built) -> Iterator[None]:
    """Model and inputs as a harness moves them: parameters and buffers, and each input tensor."""
    device, mode = simulated_device(), FakeTensorMode(allow_non_fake_inputs=True)
    moved: dict[int, torch.Tensor] = {}

    def move(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in moved:
            fake = tensor if isinstance(tensor, FakeTensor) else mode.from_tensor(tensor)
            there = fake.detach().to(device)
            if isinstance(tensor, torch.nn.Parameter):
                there = torch.nn.Parameter(there, requires_grad=False)
            moved[id(tensor)] = there
        return moved[id(tensor)]

    def stay(value: Any) -> Any:
        return mode.from_tensor(value) if type(value) is torch.Tensor else value

    held = [(module, dict(vars(module))) for module in built.model.modules()]
    args, kwargs = built.args, built.kwargs
    try:
        for module, attributes in held:
            for name, value in attributes.items():
                if name in {"_parameters", "_buffers"}:
                    value = {k: t if t is None else move(t) for k, t in value.items()}
                elif type(value) in {torch.Tensor, list, tuple, dict} and name != "_modules":
                    value = tree_map(stay, value)
                module.__dict__[name] = value
        built.args, built.kwargs = tree_map(
            lambda leaf: move(leaf) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)
        )
        with without_guards(), FromNumbers():
            yield
    finally:
        built.args, built.kwargs = args, kwargs
        for module, attributes in held:
            module.__dict__.update(attributes)


def _take_over(here: Any, there: Any) -> bool:
    """Note what each node gives on the device; False where the programs are not the same.

    A move or a copy that only the device needs is put into the program: here it gives its argument.
    """
    waiting = [node for node in _nodes(there) if not _only_checks(node)][::-1]
    same: dict[FxNode, FxNode] = {}
    added: dict[FxNode, FxNode] = {}
    before: FxNode | None = None
    for node in list(_nodes(here)):
        if _only_checks(node):
            continue
        while waiting and not (
            _alike(node, waiting[-1]) and _reads_alike(node, waiting[-1], same, added)
        ):
            other = waiting.pop()
            if before is None or _operator(other) not in _DEVICE_MAKES:
                return False
            same[other] = before = _added(other, same, before)
            added[other] = other.all_input_nodes[0]
        if not waiting:
            return False
        other = waiting.pop()
        node.meta[ON_DEVICE] = other.meta.get("val")
        if added:
            node.args, node.kwargs = tree_map(
                lambda ours, theirs: same[theirs] if _is_one_of(theirs, added) else ours,
                (node.args, node.kwargs),
                (other.args, other.kwargs),
            )
        same[other] = before = node
    return not waiting


def _added(other: FxNode, same: dict[FxNode, FxNode], before: FxNode) -> FxNode:
    source = same[other.all_input_nodes[0]]
    with before.graph.inserting_after(before):
        node = before.graph.call_function(other.target, (source,))  # type: ignore[arg-type]
    node.meta = {**other.meta, "val": source.meta["val"], ON_DEVICE: other.meta["val"]}
    return node


def _reads_alike(
    node: FxNode, other: FxNode, same: Mapping[FxNode, FxNode], added: Mapping[FxNode, FxNode]
) -> bool:
    """Whether a move's argument is the same value in both programs."""
    if _operator(node) not in MOVES:
        return True
    source = other.all_input_nodes[0]
    while source in added:
        source = added[source]
    return same[source] is node.all_input_nodes[0]


def _is_one_of(value: object, nodes: Mapping[FxNode, FxNode]) -> bool:
    return isinstance(value, FxNode) and value in nodes


def _only_checks(node: FxNode) -> bool:
    return _operator(node).startswith("_assert")


def _alike(one: FxNode, other: FxNode) -> bool:
    if one.op != other.op or one.op != "call_function":
        return one.op == other.op
    return one.target == other.target or {_operator(one), _operator(other)} <= MOVES


def _operator(node: FxNode) -> str:
    target = node.target
    return target.overloadpacket.__name__ if isinstance(target, OpOverload) else ""


def _give_up(traced: Traced, reason: str, *, mixes: bool = False) -> None:
    traced.placed = "mixed" if mixes else "unknown"
    what = "does not run on a device" if mixes else "may not run on a device, which was not shown"
    traced.notes.append(f"{what}: {reason}")


def _reason(error: Exception, file: str) -> str:
    """The error's first sentence, and the author's line that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    lines = str(error).strip().splitlines()
    said = lines[0].partition(". ")[0] if lines else type(error).__name__
    return f"line {frames[-1].lineno}: {said}" if frames else said
