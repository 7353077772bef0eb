"""Lists the data flow of one block: the tensors that each part reads and gives, and from where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from runner.emit.pages.outline import Outline, shape_range
from runner.tree.document import ROOT, Edge, Node

INPUT = "input"
OUTPUT = "output"
"""Names for the outside of a block, which in the tree stand for the outside of the model."""


@dataclass(frozen=True, slots=True)
class DataflowStep:
    """The tensors that one part of a block reads and gives, as text."""

    part: str
    """Name of the part below the block: `qkv`, or `attn.norm` if another part is called `norm`."""
    reads: tuple[str, ...]
    """A text for each tensor, `x 2x64x256 of norm`."""
    gives: str
    """Names and shapes of the outputs, and `→ output` if anything outside the block reads them."""


def choose_block(outline: Outline, most_parts: int) -> Node | None:
    """Return the repeated layer that does most of the work, else the root.

    A block with one part or more than `most_parts`, or in which each part only reads the one before
    it, is passed over. Return None if that leaves no block.
    """
    tree = outline.tree
    layers = [node for node in tree.nodes.values() if node.level == "layer" and node.id != ROOT]
    count = Counter(outline.structure(node) for node in layers)
    repeated = [node for node in layers if count[outline.structure(node)] > 1]
    work: Counter[object] = Counter()
    for node in repeated:
        work[outline.structure(node)] += node.flops or node.bytes
    best = max(repeated, key=lambda node: work[outline.structure(node)], default=tree.root)
    for block in dict.fromkeys(node.id for node in (best, tree.root)):
        candidate = tree.nodes[block]
        if 1 < len(_part_ids(outline, candidate, most_parts)) <= most_parts and not _is_line(
            outline, candidate, most_parts
        ):
            return candidate
    return None


def dataflow_steps(outline: Outline, block: Node, most_parts: int) -> Iterator[DataflowStep]:
    """Yield a step for each kernel of a block, or for each child if it has too many kernels."""
    parts = _part_ids(outline, block, most_parts)
    incoming, outgoing = _block_edges(outline, block, parts)
    short_names = _short_names(block, parts)
    names_read: dict[str, set[str]] = {}
    for source, edge in (
        source_and_edge for edges in incoming.values() for source_and_edge in edges
    ):
        names_read.setdefault(source, set()).add(edge.tensor_name)
    for part in parts:
        node = outline.tree.nodes[part]
        read: dict[tuple[str, str], list[Edge]] = {}
        for source, edge in incoming.get(part, ()):
            read.setdefault((source, edge.tensor_name), []).append(edge)
        reads = tuple(
            f"{name} {shape_range([edges[0].shape])} of {short_names.get(source, source)}"
            for (source, name), edges in read.items()
        )
        gives = _output_text(node, names_read.get(part, set()))
        yield DataflowStep(
            short_names[part], reads, f"{gives} → {OUTPUT}" if part in outgoing else gives
        )


def _output_text(node: Node, names_read: set[str]) -> str:
    """Return a part's output shapes, with the names under which the block's other parts read them.

    A component file has the output names of its first instance, which may mean other tensors here.
    """
    shapes = list(node.output_shapes.items())
    names = [name if name in names_read else "" for name, _ in shapes]
    if len(shapes) == len(names_read) == 1:
        names = [*names_read]
    return ", ".join(
        f"{name} {shape_range([shape])}".strip()
        for name, (_, shape) in zip(names, shapes, strict=True)
    )


def _part_ids(outline: Outline, block: Node, most_parts: int) -> list[str]:
    """Return the ids of a block's kernels in execution order, or of its children if too many."""
    kernels = [node.id for node in _walk_kernels(outline, block)]
    return kernels if len(kernels) <= most_parts else list(block.children)


def _walk_kernels(outline: Outline, node: Node) -> Iterator[Node]:
    if not node.children:
        yield node
    for child in outline.children_of(node):
        yield from _walk_kernels(outline, child)


def _block_edges(
    outline: Outline, block: Node, parts: list[str]
) -> tuple[dict[str, list[tuple[str, Edge]]], set[str]]:
    """Return part -> (producer, edge) of each tensor it reads, and parts read outside the block."""
    part_ids = set(parts)

    def part_of(end: str) -> str | None:
        while end in outline.tree.nodes and end not in part_ids:
            end = outline.parents.get(end, "")
        return end if end in part_ids else None

    incoming: dict[str, list[tuple[str, Edge]]] = {}
    outgoing: set[str] = set()
    for edge in outline.tree.data_flow:
        source, target = part_of(edge.source), part_of(edge.target)
        if target is not None and source != target:
            incoming.setdefault(target, []).append((source or INPUT, edge))
        elif source is not None and target is None:
            outgoing.add(source)
    return incoming, outgoing


def _is_line(outline: Outline, block: Node, most_parts: int) -> bool:
    """Return whether each part reads only the part before it."""
    parts = _part_ids(outline, block, most_parts)
    incoming, _ = _block_edges(outline, block, parts)
    predecessors = [INPUT, *parts[:-1]]
    return all(
        {source for source, _ in incoming.get(part, ())} <= {predecessor}
        for part, predecessor in zip(parts, predecessors, strict=True)
    )


def _short_names(block: Node, parts: list[str]) -> dict[str, str]:
    """Return id -> name of each part: the last word of the id if unique, else the whole path."""
    last_words = Counter(part.rpartition(".")[2] for part in parts)
    return {
        part: part.removeprefix(f"{block.id}.") if last_words[word] > 1 else word
        for part in parts
        for word in (part.rpartition(".")[2],)
    }
