"""Records the operators of a forward on fake tensors, in a tenth of torch.export's time."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode

from runner.graph.tracing.export_trace import BuiltProblem, TracedProgram, hide_tracing_from
from runner.graph.tracing.method_calls import ModuleFrames
from runner.problems.fake_execution import FakeTensors
from runner.torch_internals import (
    OpOverload,
    TensorWeakRef,
    WeakTensorKeyDictionary,
    tree_flatten,
    tree_map,
)
from runner.torch_tracing import watch_operators


class RecordingError(Exception):
    """The recorder has no node for what the forward does; torch.export may have one."""


def record_operators(
    built: BuiltProblem, fake: FakeTensors, traced: TracedProgram, located: frozenset[str]
) -> FxGraph:
    """Return the operators that the forward calls, as a graph like that of a trace.

    `traced` is a trace of the same forward, maybe on another device: the graph has its
    placeholders. A node of an operator in `located` has its stack trace and, as `module`, the path
    of the module whose call runs, or None where only a tracer knows it.

    Raises:
        RecordingError: the forward does what the graph cannot hold.
    """
    recorder = _Recorder(built, traced, located)
    with (
        hide_tracing_from(built, reads_numbers=traced.reads_numbers),
        fake,
        watch_operators(recorder.record),
    ):
        result = built.model(*built.args, **built.kwargs)
    recorder.finish(result)
    return recorder.graph


class _Recorder:
    def __init__(self, built: BuiltProblem, traced: TracedProgram, located: frozenset[str]) -> None:
        self.graph = FxGraph()
        self.located = located
        self.modules = ModuleFrames(built.model)
        self.nodes: MutableMapping[torch.Tensor, FxNode] = WeakTensorKeyDictionary()
        """The node that each tensor is the value of."""
        self.results: list[tuple[FxNode, Callable[[], Any]]] = []
        """Nodes of the latest operator, and functions that return their values. Torch copies a
        result that anything refers to while the operator returns it, so that nodes hold theirs only
        from the next operator on."""
        self.constants: list[FxNode] = []
        """Placeholders of the constants that the forward has not read so far, in reverse."""
        inputs = iter(tree_flatten((built.args, built.kwargs))[0])
        for role, path, _ in traced.placeholders:
            node = self.graph.placeholder(role)
            if role == "constant":
                self.constants.insert(0, node)
            elif role in {"parameter", "buffer"}:
                self._set_value(node, functools.reduce(getattr, path.split("."), built.model))
            else:
                self._set_value(node, next(inputs))

    def record(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """Add a node for an operator that ran."""
        self._keep_results()
        if func in {torch.ops.aten.detach.default, torch.ops.aten.detach_.default}:
            self.nodes[result] = self._argument(args[0])
            return
        if torch.Tag.inplace_view in func.tags:
            raise RecordingError(f"{func} changes the shape of a tensor that nodes hold")
        if func is torch.ops.aten.lift_fresh.default:
            func = torch.ops.aten.lift_fresh_copy.default
        node = self.graph.call_function(func, *tree_map(self._argument, (args, dict(kwargs))))
        if func.overloadpacket.__name__ in self.located:
            self._locate(node)
        self._set_value(node, result)

    def finish(self, result: Any) -> None:
        """Add the node of the forward's result."""
        self._keep_results()
        self.graph.output(tuple(map(self._argument, tree_flatten(result)[0])))

    def _argument(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        node = self.nodes.get(value)
        if node is None:
            if not self.constants:
                raise RecordingError("forward() reads a tensor that no node makes")
            node = self.constants.pop()
            self._set_value(node, value)
        return node

    def _set_value(self, node: FxNode, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            self.nodes[value] = node
            self.results.append((node, TensorWeakRef(value)))
        elif isinstance(value, (tuple, list)):
            members = [
                self.graph.call_function(operator.getitem, (node, n)) for n in range(len(value))
            ]
            for member, part in zip(members, value, strict=True):
                self._set_value(member, part)
            self.results.append((node, lambda: [member.meta.get("val") for member in members]))

    def _keep_results(self) -> None:
        for node, result in self.results:
            node.meta["val"] = result()
        self.results.clear()

    def _locate(self, node: FxNode) -> None:
        stack_trace = "".join(self.modules.describe())
        # With a note on calls that only frames show, no neighbour's module calls are the same.
        module = None if "|" in stack_trace else self.modules.find_innermost_call()
        node.meta["stack_trace"], node.meta["module"] = stack_trace, module
