"""Fills in what a decomposer's tree may leave out about its kernels, such as their cost.

Each kernel file is a problem in itself. So its own captured graph gives the operation's name, the
weights, the strides of inputs and outputs, and the FLOPs and bytes moved.
"""

from pathlib import Path
from typing import Any

from runner.errors import KdrunError
from runner.graph import Mode, normalize, recognize
from runner.graph.cost import flops, moved_bytes
from runner.graph.ir import TensorSpec
from runner.problems import read_problem
from runner.tree.document import ROOT, Node, Tree
from runner.tree.interface import Program
from runner.tree.kernel_description import describe_kernel
from runner.tree.partition import partition

_KernelFacts = tuple[dict[str, Any], list[TensorSpec], list[TensorSpec]]
"""Fields of a kernel file's nodes, from its captured graph; its inputs; its outputs."""


def backfill_tree(directory: Path, mode: Mode) -> None:
    """Complete the tree of a decomposition that passed. Runs its code, so call it in a child."""
    tree = Tree.read(directory)
    kernels: dict[str, _KernelFacts] = {}
    for path in dict.fromkeys(n.path for n in tree.nodes.values() if n.level == "kernel"):
        if (kernel := _capture_kernel(directory / path, mode)) is not None:
            kernels[path] = kernel
    nodes: dict[str, Node] = {}
    _fill_node(tree, ROOT, kernels, nodes)
    tree.model_copy(update={"nodes": {name: nodes[name] for name in tree.nodes}}).write(directory)


def _capture_kernel(file: Path, mode: Mode) -> _KernelFacts | None:
    """Return the facts about a kernel file, or None if it cannot be captured."""
    from runner.graph.tracing.capture import capture

    try:
        graph = normalize(capture(read_problem(file), mode))
    except (KdrunError, NotImplementedError):
        return None
    program = Program(graph, recognize(graph))
    boundary_values = [*(i.name for i in graph.inputs), *graph.states]
    weights = {
        state.path: graph.values[name]
        for name, state in graph.states.items()
        if state.kind != "constant"
    }
    operations = {kernel.operation for kernel in program.kernels}
    fields = {
        **describe_kernel(program, partition(program, "level1", file.stem)),
        "operation": operations.pop() if len(operations) == 1 else None,
        "flops": sum(flops(op, graph.values) for op in graph.operations),
        "bytes": moved_bytes(graph.operations, boundary_values, graph.output_names(), graph.values),
        "weight_shapes": {name: list(spec.shape) for name, spec in weights.items()},
        "weight_dtypes": {name: spec.dtype for name, spec in weights.items()},
    }
    inputs = [graph.values[i.name] for i in graph.inputs]
    return fields, inputs, [graph.values[name] for name in graph.output_names()]


def _fill_node(
    tree: Tree, name: str, kernels: dict[str, _KernelFacts], nodes: dict[str, Node]
) -> None:
    """Add the completed node, and all nodes below it, to `nodes`."""
    node = tree.nodes[name]
    for child in node.children:
        _fill_node(tree, child, kernels, nodes)
    if node.level == "kernel":
        facts = kernels.get(node.path)
        nodes[name] = node if facts is None else node.model_copy(update=_kernel_fields(node, facts))
        return
    children = [nodes[child] for child in node.children]
    operations = [operation for child in children for operation in child.operations]
    nodes[name] = node.model_copy(
        update={"operations": operations, "flops": sum(child.flops for child in children)}
    )


def _kernel_fields(node: Node, facts: _KernelFacts) -> dict[str, Any]:
    fields, inputs, outputs = facts
    operation = fields["operation"] or node.operation
    fields = fields | {"operation": operation}
    if operation:
        fields["operations"] = [operation]
    for field, shapes, specs in (
        ("input_strides", node.input_shapes, inputs),
        ("output_strides", node.output_shapes, outputs),
    ):
        if len(shapes) == len(specs):
            fields[field] = {n: list(s.stride) for n, s in zip(shapes, specs, strict=True)}
    return fields
