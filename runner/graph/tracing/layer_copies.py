"""Writes the operators of repeated layers, of which a trace has only the first call."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.fx import Node as FxNode
from torch.fx.node import map_arg

from runner.graph.tracing.export_trace import TracedProgram
from runner.graph.tracing.repeated_layers import STAND_IN, START, RepeatedLayers, RepetitionError
from runner.torch_internals import OpOverload, schema, storage_of, tree_flatten, tree_map

_NUMBER = re.compile(r"_\d+$")
_READS = {torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default}
"""Operators that give a tensor's number to Python: another layer's number may decide otherwise."""


_Memory = dict[int, torch.UntypedStorage]
"""For the storages of a trace, those that stand for them in copies."""


@dataclass(frozen=True, slots=True)
class _TracedCall:
    """The nodes of a first call: what later calls of its kind repeat."""

    path: str
    stand_in: FxNode
    arguments: list[FxNode]
    nodes: list[FxNode]
    results: list[FxNode]
    calls_before: Counter[str]
    """Number of calls of each module before this one."""


def check_repeated_layers(traced: TracedProgram, layers: RepeatedLayers) -> None:
    """Check that the layers of a trace can be copied, before more is made of it.

    Raises:
        RepetitionError: a layer does what cannot be copied; each is to be traced.
    """
    writer = _CopyWriter(traced, layers)
    nodes = list(traced.graph.nodes)
    seen: set[object] = set()
    for n, node in enumerate(nodes):
        if node.target is STAND_IN:
            path, number = next(writer.paths), node.args[2]
            if number not in seen:
                seen.add(number)
                writer.find_call(node, path, nodes[:n])


def write_repeated_layers(traced: TracedProgram, layers: RepeatedLayers) -> None:
    """Replace each stand-in of a trace by the operators that its layer calls.

    Raises:
        RepetitionError: a layer does what cannot be copied; each is to be traced.
    """
    _CopyWriter(traced, layers).write()


class _CopyWriter:
    """Writes a graph anew, node by node."""

    def __init__(self, traced: TracedProgram, layers: RepeatedLayers) -> None:
        self.traced = traced
        self.graph = FxGraph()
        self.paths = iter([path for path, number in layers.calls if number is not None])
        """Paths of the layers of the stand-ins to come."""
        self.written: dict[FxNode, FxNode] = {}
        self.results: dict[FxNode, list[FxNode]] = {}
        """For each stand-in, the nodes that are written for its results."""
        self.first_calls: dict[object, _TracedCall] = {}
        self.calls: Counter[str] = Counter()
        """Number of calls of each module so far."""
        self.memory: _Memory = {}
        nodes = traced.graph.find_nodes(op="placeholder")
        self.placeholders = dict(zip(nodes, traced.placeholders, strict=True))
        self.weights = {
            path: node
            for node, (role, path, _) in self.placeholders.items()
            if role in {"parameter", "buffer"}
        }

    def write(self) -> None:
        nodes = list(self.traced.graph.nodes)
        for n, node in enumerate(nodes):
            if node.target is START:
                continue  # Its call ends with a stand-in.
            if node.target is STAND_IN:
                self._write_stand_in(node, next(self.paths), nodes[:n])
            elif node.all_input_nodes and node.all_input_nodes[0] in self.results:
                position: Any = node.args[1]
                self._replace_result(node, self.results[node.all_input_nodes[0]][position])
            else:
                self._note_calls(node)
                self.written[node] = self._copy(
                    node, self.written.__getitem__, self.memory, node.meta
                )
        self.traced.graph = self.graph

    def _copy(
        self,
        node: FxNode,
        find: Callable[[FxNode], FxNode],
        memory: _Memory,
        meta: dict[str, Any],
    ) -> FxNode:
        has_own_name = node.op in {"placeholder", "get_attr", "output"}
        copy = self.graph.create_node(
            node.op,
            node.target,
            map_arg(node.args, find),
            map_arg(node.kwargs, find),
            node.name if has_own_name else _NUMBER.sub("", node.name),
        )
        copy.meta = dict(meta)
        if "val" in meta:
            copy.meta["val"] = tree_map(lambda value: _show_memory(value, memory), meta["val"])
        return copy

    def _replace_result(self, node: FxNode, result: FxNode) -> None:
        self.written[node] = result
        if isinstance(node.meta.get("val"), torch.Tensor):
            self.memory[storage_of(node.meta["val"])] = result.meta["val"].untyped_storage()

    def _write_stand_in(self, node: FxNode, path: str, earlier: list[FxNode]) -> None:
        number = node.args[2]
        if number not in self.first_calls:
            call = self.find_call(node, path, earlier)
            self.first_calls[number] = call
            self.results[node] = [self.written[result] for result in call.results]
        else:
            self.results[node] = self._repeat(self.first_calls[number], node, path)

    def find_call(self, stand_in: FxNode, path: str, earlier: list[FxNode]) -> _TracedCall:
        """Return the first call that ends with a stand-in, if it can be copied."""
        (start,) = _listed(stand_in, 0)
        position = earlier.index(start)
        nodes = [node for node in earlier[position + 1 :] if node.op != "placeholder"]
        calls_before: Counter[str] = Counter()
        for node in earlier[:position]:
            for module, number in _calls(node):
                calls_before[module] = max(calls_before[module], number + 1)
        call = _TracedCall(
            path, stand_in, _listed(start, 0), nodes, _listed(stand_in, 1), calls_before
        )
        _refuse_what_no_copy_can_do(call)
        return call

    def _repeat(self, first: _TracedCall, stand_in: FxNode, path: str) -> list[FxNode]:
        """Write the nodes of a first call with another layer's weights and arguments."""
        arguments = [self.written[node] for node in _listed(stand_in, 0)]
        copies = dict(zip(first.arguments, arguments, strict=True))
        memory = {
            storage_of(node.meta["val"]): copy.meta["val"].untyped_storage()
            for node, copy in copies.items()
        }
        calls_before = self.calls.copy()

        def find(node: FxNode) -> FxNode:
            if node not in copies:
                copies[node] = self._find_outside(node, first.path, path)
            return copies[node]

        for node in first.nodes:
            if path == first.path and "|" in str(node.meta.get("stack_trace")):
                raise RepetitionError(f"{path} is called twice, and calls modules by a method")
            if node.op == "get_attr":
                copies[node] = self.written[node]
                continue
            for value in _tensors(node):
                memory.setdefault(storage_of(value), _new_memory(value.untyped_storage().nbytes()))
            meta = dict(node.meta)
            meta["stack_trace"] = _stack_trace_of_copy(node, first, stand_in, path)
            meta["nn_module_stack"] = _modules_of_copy(node, first, stand_in, path, calls_before)
            copies[node] = self._copy(node, find, memory, meta)
            self._note_calls(copies[node])
        return [find(node) for node in first.results]

    def _find_outside(self, node: FxNode, first_path: str, path: str) -> FxNode:
        """Return the node that a copy reads where the first call reads a node from outside."""
        role, name, _ = self.placeholders.get(node, ("", "", None))
        if role == "constant":
            return self.written[node]
        if role in {"parameter", "buffer"} and name.startswith(f"{first_path}."):
            own = self.weights.get(path + name[len(first_path) :])
            if own is not None:
                return self.written[own]
        raise RepetitionError(f"{first_path} reads {node.name}, which is none of its arguments")

    def _note_calls(self, node: FxNode) -> None:
        for module, call in _calls(node):
            self.calls[module] = max(self.calls[module], call + 1)


def _tensors(node: FxNode) -> list[torch.Tensor]:
    values = tree_flatten(node.meta.get("val"))[0]
    return [value for value in values if isinstance(value, torch.Tensor)]


def _listed(node: FxNode, position: int) -> list[FxNode]:
    """Return the nodes in an argument that is a list."""
    nodes: Any = node.args[position]
    return list(nodes)


def _modules(node: FxNode) -> dict[str, tuple[str, Any]]:
    return node.meta.get("nn_module_stack") or {}


def _calls(node: FxNode) -> Iterable[tuple[str, int]]:
    """Return the modules whose calls a node is part of, and the number of each call."""
    return [(path, _call_number(key)) for key, (path, _) in _modules(node).items()]


def _call_number(key: str) -> int:
    return int(key.rpartition("@")[2]) if "@" in key else 0


def _modules_of_copy(
    node: FxNode, first: _TracedCall, stand_in: FxNode, path: str, calls_before: Counter[str]
) -> dict[str, tuple[str, Any]]:
    """Return the module calls that a copy is part of."""
    outer, own = [*_modules(first.stand_in)], [*_modules(node).items()]
    if [key for key, _ in own[: len(outer)]] != outer:
        raise RepetitionError(f"{first.path} has no module calls around {node.name}")
    modules = dict(_modules(stand_in))
    traced_path = _modules(first.stand_in)[outer[-1]][0]
    new_path = [*modules.values()][-1][0]
    for key, (module, cls) in own[len(outer) :]:
        if not module.startswith(f"{traced_path}."):
            raise RepetitionError(f"{first.path} calls {module}, which is not a part of it")
        copied = new_path + module[len(traced_path) :]
        number = _call_number(key) - first.calls_before[module] + calls_before[copied]
        prefix = key.rpartition("@")[0] if "@" in key else key
        prefix = prefix.removesuffix(module) + copied
        modules[f"{prefix}@{number}" if number else prefix] = copied, cls
    return modules


def _stack_trace_of_copy(node: FxNode, first: _TracedCall, stand_in: FxNode, path: str) -> str:
    """Return a node's stack trace from where another layer is called, with that layer's calls."""
    own, traced, other = (
        str(n.meta.get("stack_trace") or "").splitlines() for n in (node, first.stand_in, stand_in)
    )
    common = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(own, traced, strict=False))
    )
    text = "\n".join([*other[:common], *own[common:]])
    return re.sub(rf"\|{re.escape(first.path)}(?=[.|])", f"|{path}", text)


def _new_memory(nbytes: int) -> torch.UntypedStorage:
    return torch.empty(nbytes, dtype=torch.uint8, device="meta").untyped_storage()


def _show_memory(value: Any, memory: _Memory) -> Any:
    """Return a node's value in the memory that stands for its own; itself if there is none."""
    storage = memory.get(storage_of(value)) if isinstance(value, torch.Tensor) else None
    if storage is None:
        return value
    view = torch.empty(0, dtype=value.dtype, device="meta")
    return view.set_(storage, value.storage_offset(), value.shape, value.stride())


def _refuse_what_no_copy_can_do(call: _TracedCall) -> None:
    outside = [*call.arguments, *(n for node in call.nodes for n in node.all_input_nodes)]
    outside = [node for node in outside if node not in set(call.nodes)]
    storages = {storage_of(value) for node in outside for value in _tensors(node)}
    for node in call.nodes:
        values = tree_flatten(node.meta.get("val"))[0]
        if node.target in _READS or any(map(_is_symbolic, values)) or _holds_graph(node):
            raise RepetitionError(f"{call.path} depends on values at {node.name}")
        for written in _written_arguments(node):
            if storage_of(written) in storages:
                raise RepetitionError(f"{call.path} changes what it is given at {node.name}")


def _is_symbolic(value: Any) -> bool:
    sizes = value.shape if isinstance(value, torch.Tensor) else [value]
    return any(isinstance(n, (torch.SymInt, torch.SymFloat, torch.SymBool)) for n in sizes)


def _holds_graph(node: FxNode) -> bool:
    if node.op != "get_attr":
        return False
    return isinstance(getattr(node.graph.owning_module, str(node.target), None), GraphModule)


def _written_arguments(node: FxNode) -> Iterable[torch.Tensor]:
    """Return the values that a node's operator writes into."""
    if not isinstance(node.target, OpOverload) or not schema(node.target).is_mutable:
        return []
    declared = {argument.name: argument for argument in schema(node.target).arguments}
    given = dict(zip(declared, node.args, strict=False)) | dict(node.kwargs)
    written = [value for name, value in given.items() if declared[name].is_write]
    return [value.meta["val"] for value in written if isinstance(value, FxNode)]
