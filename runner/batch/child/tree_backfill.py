"""This file knows about what a tree says of its kernels that whoever wrote it need not: their cost.

Each kernel file is a problem in itself, so its own captured graph says what it is called, which
weights it has, how its inputs lie in memory, and what it computes and moves.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What is known about one kernel file."""

    operation: str | None
    workload: dict[str, Any]
    """Attributes, identity and family."""
    weights: dict[str, TensorSpec]
    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    flops: int
    bytes: int


def describe(directory: Path, mode: Mode) -> None:
    """Fill in the tree of a decomposition that passed. Runs its code: call it in a child."""
    tree = Tree.read(directory)
    kernels: dict[str, _Kernel] = {}
    for path in dict.fromkeys(n.path for n in tree.nodes.values() if n.level == "kernel"):
        if (kernel := _described(directory / path, mode)) is not None:
            kernels[path] = kernel
    nodes: dict[str, Node] = {}
    _fill(tree, ROOT, kernels, nodes)
    tree.model_copy(update={"nodes": {name: nodes[name] for name in tree.nodes}}).write(directory)


def _described(file: Path, mode: Mode) -> _Kernel | None:
    """None where the kernel cannot be captured: then what its author said is all there is."""
    from runner.graph.tracing.capture import capture

    try:
        graph = normalize(capture(read_problem(file), mode))
    except (KdrunError, NotImplementedError):
        return None
    program = Program(graph, recognize(graph))
    names = {kernel.operation for kernel in program.kernels}
    workload = describe_kernel(program, partition(program, "level1", file.stem))
    ends = [*(i.name for i in graph.inputs), *graph.states]
    return _Kernel(
        operation=names.pop() if len(names) == 1 else None,
        workload=workload,
        weights={
            state.path: graph.values[name]
            for name, state in graph.states.items()
            if state.kind != "constant"
        },
        inputs=[graph.values[i.name] for i in graph.inputs],
        outputs=[graph.values[name] for name in graph.output_names()],
        flops=sum(flops(op, graph.values) for op in graph.operations),
        bytes=moved_bytes(graph.operations, ends, graph.output_names(), graph.values),
    )


def _fill(tree: Tree, name: str, kernels: dict[str, _Kernel], nodes: dict[str, Node]) -> None:
    """One node and all below it."""
    node = tree.nodes[name]
    for child in node.children:
        _fill(tree, child, kernels, nodes)
    if node.level == "kernel":
        known = kernels.get(node.path)
        nodes[name] = node if known is None else node.model_copy(update=_of_kernel(node, known))
        return
    below = [nodes[child] for child in node.children]
    operations = [operation for child in below for operation in child.operations]
    nodes[name] = node.model_copy(
        update={"operations": operations, "flops": sum(child.flops for child in below)}
    )


def _of_kernel(node: Node, known: _Kernel) -> dict[str, Any]:
    said: dict[str, Any] = {
        "flops": known.flops,
        "bytes": known.bytes,
        "weight_shapes": {name: list(spec.shape) for name, spec in known.weights.items()},
        "weight_dtypes": {name: spec.dtype for name, spec in known.weights.items()},
        "attributes": known.workload["attributes"],
        "identity": known.workload["identity"],
        "family": known.workload["family"],
    }
    for field, shapes, specs in (
        ("input_strides", node.input_shapes, known.inputs),
        ("output_strides", node.output_shapes, known.outputs),
    ):
        if len(shapes) == len(specs):
            said[field] = {n: list(s.stride) for n, s in zip(shapes, specs, strict=True)}
    operation = known.operation or node.operation
    return said | ({"operation": operation, "operations": [operation]} if operation else {})
