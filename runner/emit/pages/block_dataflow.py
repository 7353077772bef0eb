"""Follow the data through one block: what each of its kernels reads, and who made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from runner.emit.pages.outline import Outline, span
from runner.tree.document import ROOT, Edge, Node

INPUT = "input"
OUTPUT = "output"
"""As the tree calls what is outside of the model, so here what is outside of a block."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one part of a block reads and gives."""

    part: str
    """Its name below the block: `qkv`, or `attn.norm` where another is called `norm`."""
    reads: tuple[str, ...]
    """`x 2x64x256 of norm`, once for each tensor."""
    gives: str
    """Shapes, and `output` where something outside of the block reads them."""


def block_to_follow(outline: Outline, most: int) -> Node | None:
    """Return the repeated layer that does most of the work, else the root.

    None where it has more parts than `most`, or where each part only reads the one before it.
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
        found = tree.nodes[block]
        if 1 < len(_parts(outline, found, most)) <= most and not _is_line(outline, found, most):
            return found
    return None


def steps(outline: Outline, block: Node, most: int) -> Iterator[Step]:
    """Yield what each kernel of a block reads and gives; each child, where kernels are too many."""
    parts = _parts(outline, block, most)
    into, out = _edges(outline, block, parts)
    short = _short(block, parts)
    known: dict[str, set[str]] = {}
    for source, edge in (found for edges in into.values() for found in edges):
        known.setdefault(source, set()).add(edge.tensor_name)
    for part in parts:
        node = outline.tree.nodes[part]
        read: dict[tuple[str, str], list[Edge]] = {}
        for source, edge in into.get(part, ()):
            read.setdefault((source, edge.tensor_name), []).append(edge)
        reads = tuple(
            f"{name} {span([edges[0].shape])} of {short.get(source, source)}"
            for (source, name), edges in read.items()
        )
        gives = _results(node, known.get(part, set()))
        yield Step(short[part], reads, f"{gives} → {OUTPUT}" if part in out else gives)


def _results(node: Node, known: set[str]) -> str:
    """Shapes of what a part gives, with the names by which the block's other parts read them.

    A file names its results as its first instance does, which may be another's name here.
    """
    shapes = list(node.output_shapes.items())
    names = [name if name in known else "" for name, _ in shapes]
    if len(shapes) == len(known) == 1:
        names = [*known]
    return ", ".join(
        f"{name} {span([shape])}".strip() for name, (_, shape) in zip(names, shapes, strict=True)
    )


def _parts(outline: Outline, block: Node, most: int) -> list[str]:
    """Ids of the kernels of a block in the order in which they run, or of its children."""
    kernels = [node.id for node in _kernels(outline, block)]
    return kernels if len(kernels) <= most else list(block.children)


def _kernels(outline: Outline, node: Node) -> Iterator[Node]:
    if not node.children:
        yield node
    for child in outline.children_of(node):
        yield from _kernels(outline, child)


def _edges(
    outline: Outline, block: Node, parts: list[str]
) -> tuple[dict[str, list[tuple[str, Edge]]], set[str]]:
    """(part -> who made what it reads, and the tensor; parts whose result leaves the block)."""
    chosen = set(parts)

    def part_of(end: str) -> str | None:
        while end in outline.tree.nodes and end not in chosen:
            end = outline.parents.get(end, "")
        return end if end in chosen else None

    into: dict[str, list[tuple[str, Edge]]] = {}
    out: set[str] = set()
    for edge in outline.tree.data_flow:
        source, target = part_of(edge.source), part_of(edge.target)
        if target is not None and source != target:
            into.setdefault(target, []).append((source or INPUT, edge))
        elif source is not None and target is None:
            out.add(source)
    return into, out


def _is_line(outline: Outline, block: Node, most: int) -> bool:
    """Whether each part reads only the part before it."""
    parts = _parts(outline, block, most)
    into, _ = _edges(outline, block, parts)
    before = [INPUT, *parts[:-1]]
    return all(
        {source for source, _ in into.get(part, ())} <= {earlier}
        for part, earlier in zip(parts, before, strict=True)
    )


def _short(block: Node, parts: list[str]) -> dict[str, str]:
    """Names of parts below the block: the last word of the id where it names one part alone."""
    last = Counter(part.rpartition(".")[2] for part in parts)
    return {
        part: part.removeprefix(f"{block.id}.") if last[word] > 1 else word
        for part in parts
        for word in (part.rpartition(".")[2],)
    }
