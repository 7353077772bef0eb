"""The hierarchy of a decomposition as a diagram in mermaid's language."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from runner.emit.outline import Item, Outline, names, shapes, sizes, title
from runner.tree.document import Node

MOST_SIDE_BY_SIDE = 3
"""Boxes below one box; where there are more, they stand one below the other, to its right."""
_STYLES = {
    "model": "fill:#f3e8ff,stroke:#7e22ce,color:#111",
    "layer": "fill:#dbeafe,stroke:#1d4ed8,color:#111",
    "fusion": "fill:#cffafe,stroke:#0e7490,color:#111",
    "kernel": "fill:#dcfce7,stroke:#15803d,color:#111",
}


def mermaid(outline: Outline) -> Iterator[str]:
    """Mermaid's lines: what repeats is drawn once, and opened where it is met first."""
    return _Diagram(outline).lines()


class _Diagram:
    """Model, layers and fusions as boxes; the kernels of a fusion are lines in its box."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._opened: set[Hashable] = set()
        self._boxes = 0
        self._wide = False

    def lines(self) -> Iterator[str]:
        """Mermaid's lines, laid out from left to right where many boxes stand side by side."""
        root = Item((self._outline.tree.root,))
        name = self._name()
        body = [f"  {self._box(name, root)}", *self._below(name, root.first)]
        yield '%%{init: {"flowchart": {"wrappingWidth": 600}}}%%'
        yield "graph LR" if self._wide else "graph TD"
        yield from body
        yield from (f"  classDef {level} {style}" for level, style in _STYLES.items())

    def _below(self, parent: str, node: Node) -> Iterator[str]:
        """Boxes and arrows for the inside of a model or a layer, where it is met first."""
        structure = self._outline.structure(node)
        if node.level in ("fusion", "kernel") or structure in self._opened:
            return
        self._opened.add(structure)
        rows = self._outline.rows(node)
        if len(rows) > MOST_SIDE_BY_SIDE or any(row.count > 1 for row in rows):
            self._wide = True
        for row in rows:
            above = parent
            if row.count > 1:
                above = self._name()
                yield f'  {parent} --> {above}(["× {row.count}, in turn"])'
            for item in row.items:
                name = self._name()
                yield f"  {above} --> {self._box(name, item)}"
                yield from self._below(name, item.first)

    def _name(self) -> str:
        self._boxes += 1
        return f"n{self._boxes - 1}"

    def _box(self, name: str, item: Item) -> str:
        sized = item.first.level == "kernel"
        lines = [f"<b>{_called(item, sized=sized)}</b>", shapes(item)]
        if item.first.level == "fusion":
            rows = self._outline.rows(item.first)
            lines += [", ".join(_called(k, sized=item.equal) for k in row.items) for row in rows]
        return f'{name}["{"<br/>".join(lines)}"]:::{item.first.level}'


def _called(item: Item, *, sized: bool) -> str:
    """`linear 256x768 × 2 (q … k)`; sizes only where weights have some."""
    weights = item.first.weight_shapes.values() if sized and item.equal else ()
    size = f" {sizes(item.first)}" if any(len(shape) > 1 for shape in weights) else ""
    times = f" × {item.in_a_row}" if item.in_a_row > 1 else ""
    author = f" ({names(item)})" if names(item) else ""
    return f"{title(item.first)}{size}{times}{author}"
