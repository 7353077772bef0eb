"""Decides whether a verification fits into memory, and whether it has to stream weights."""

from collections.abc import Mapping

import torch

from runner.tree.document import Node, Tree
from runner.verify.runtime.weight_streaming import CACHE_SHARE


def plan_memory(tree: Tree, available_bytes: int, device: str = "cpu") -> tuple[int, bool]:
    """Return the bytes that verifying takes, and whether weights have to be streamed.

    They are streamed on the CPU if the program needs more than `available_bytes`, and less where
    one weight at a time is in memory. A foreign tree may not tell what the program takes: then
    nothing is streamed.
    """
    peak_bytes = tree.metadata.estimated_peak_bytes
    if (
        peak_bytes > available_bytes
        and device == "cpu"
        and (smaller_bytes := streamed_bytes(tree)) < peak_bytes
    ):
        return smaller_bytes, True
    return peak_bytes, False


def streamed_bytes(tree: Tree) -> int:
    """Return the bytes for a streamed verification: activations, and the largest kernel twice.

    The kernel counts twice because making its weights takes as much again. A share of the memory
    beside that caches weights that were read before.
    """
    activations = max(0, tree.metadata.estimated_peak_bytes - _weight_bytes(tree.root))
    largest = max(node.bytes for node in tree.nodes.values() if not node.children)
    return (activations + 2 * largest) * CACHE_SHARE // (CACHE_SHARE - 1)


def _weight_bytes(node: Node) -> int:
    input_bytes = _tensor_bytes(node.input_shapes, node.input_dtypes)
    output_bytes = _tensor_bytes(node.output_shapes, node.output_dtypes)
    return node.bytes - input_bytes - output_bytes


def _tensor_bytes(shapes: Mapping[str, list[int]], dtypes: Mapping[str, str]) -> int:
    return sum(
        torch.Size(shape).numel() * getattr(torch, dtypes[name].removeprefix("torch.")).itemsize
        for name, shape in shapes.items()
    )
