"""This file knows about whether a verification fits into memory, and whether it has to stream."""

from collections.abc import Mapping

import torch

from runner.tree.document import Node, Tree
from runner.verify.runtime.weight_streaming import HELD_SHARE


def needs(tree: Tree, most_bytes: int, device: str = "cpu") -> tuple[int, bool]:
    """Bytes that verifying takes where at most so many can be had, and whether weights stream.

    They do where all of them together do not fit and one at a time takes less, on the CPU. A tree
    that somebody else wrote may not say what the program takes: then nothing streams.
    """
    whole = tree.metadata.estimated_peak_bytes
    if whole > most_bytes and device == "cpu" and (streamed := streamed_bytes(tree)) < whole:
        return streamed, True
    return whole, False


def streamed_bytes(tree: Tree) -> int:
    """What verifying takes where weights stream: activations, the largest kernel, and its making.

    A part of the memory beside that holds weights that were read before.
    """
    activations = max(0, tree.metadata.estimated_peak_bytes - _weight_bytes(tree.root))
    largest = max(node.bytes for node in tree.nodes.values() if not node.children)
    return (activations + 2 * largest) * HELD_SHARE // (HELD_SHARE - 1)


def _weight_bytes(node: Node) -> int:
    given = _bytes(node.input_shapes, node.input_dtypes)
    gives = _bytes(node.output_shapes, node.output_dtypes)
    return node.bytes - given - gives


def _bytes(shapes: Mapping[str, list[int]], dtypes: Mapping[str, str]) -> int:
    return sum(
        torch.Size(shape).numel() * getattr(torch, dtypes[name].removeprefix("torch.")).itemsize
        for name, shape in shapes.items()
    )
