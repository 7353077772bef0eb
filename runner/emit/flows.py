"""The tensors that flow inside of a component, from one of its children to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from runner.emit.outline import Item, Outline, span
from runner.tree.document import ROOT, Edge, Node

INPUT = "input"
OUTPUT = "output"
"""As the tree calls what is outside of the model, so here what is outside of a component."""

Pair = tuple[str, str]
"""Ids of children between which tensors flow, INPUT, or OUTPUT."""


class Flows:
    """The tree's flow of data between kernels, seen at each level."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._inside: dict[str, dict[Pair, dict[str, Edge]]] = {}
        """Component -> pair of its children -> tensors by their names."""
        for edge in outline.tree.data_flow:
            self._book(edge)

    def rows(self, node: Node) -> Iterator[tuple[str, str, str, str, str]]:
        """From, to, tensor, shape, dtype. Nothing for a fusion below the root that is a line."""
        inside = self._inside.get(node.id, {})
        if node.id != ROOT and node.level == "fusion" and set(inside) <= set(_line(node)):
            return
        items = {n.id: i for row in self._outline.rows(node) for i in row.items for n in i.nodes}
        grouped: dict[Pair, list[list[Edge]]] = {}
        for (source, target), tensors in inside.items():
            ends = (_end(items, source), _end(items, target))
            grouped.setdefault(ends, []).append(list(tensors.values()))
        for (source, target), several in grouped.items():
            for place, first in enumerate(several[0]):
                same = [t[place].shape for t in several if place < len(t)]
                to = "the next" if source == target else target
                yield source, to, first.tensor_name, span(same), first.dtype

    def _book(self, edge: Edge) -> None:
        """Enter an edge between kernels in each component that it enters, leaves or stays in."""
        above, below = self._path(edge.source), self._path(edge.target)
        common = 0
        while common < min(len(above), len(below)) and above[common] == below[common]:
            common += 1
        source = above[common] if common < len(above) else edge.source
        target = below[common] if common < len(below) else edge.target
        self._enter(above[common - 1], (source, target), edge)
        for parent, child in pairwise(above[common:]):
            self._enter(parent, (child, OUTPUT), edge)
        for parent, child in pairwise(below[common:]):
            self._enter(parent, (INPUT, child), edge)

    def _enter(self, component: str, pair: Pair, edge: Edge) -> None:
        tensors = self._inside.setdefault(component, {}).setdefault(pair, {})
        tensors.setdefault(edge.tensor_name, edge)

    def _path(self, end: str) -> list[str]:
        """The components from the root down to a kernel; of the model's inputs, the root."""
        path = [end if end in self._outline.tree.nodes else ROOT]
        while path[-1] != ROOT:
            path.append(self._outline.parents[path[-1]])
        return path[::-1]


def _line(node: Node) -> list[Pair]:
    """The pairs of a straight line through all children."""
    return list(pairwise([INPUT, *node.children, OUTPUT]))


def _end(items: Mapping[str, Item], child: str) -> str:
    """Return the name of a child in a table, or `input` or `output` for what is outside."""
    if child not in items:
        return child
    ends = dict.fromkeys(node.name for node in (items[child].first, items[child].nodes[-1]))
    return " … ".join(ends)
