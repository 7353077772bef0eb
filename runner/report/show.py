"""A decomposition as a tree in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from rich.text import Text
from rich.tree import Tree as Drawing

from runner.counting import counted
from runner.emit.outline import Item, Outline, Row, names, shapes, stem, title
from runner.report.wording import flops, size
from runner.tree.document import ROOT, Level, Node, Tree

COLOURS: dict[Level, str] = {
    "model": "bold magenta",
    "layer": "bold blue",
    "fusion": "cyan",
    "kernel": "green",
}

WIDTH = 100
"""Columns, where no terminal says how many there are."""
GUIDE = 4
"""Columns by which a child stands further to the right than its parent."""
GAP = 2
"""Columns between the columns of a line."""
_USUAL = 0.9
"""Share of the lines whose shapes stand in one column."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One line, in its columns, and the lines below it."""

    depth: int
    label: Text
    names: str = ""
    """What the author calls it."""
    again: bool = False
    """It was opened further up, and is not opened again."""
    columns: tuple[str, ...] = ()
    """Shapes, the component's file, what a kernel computes and moves."""
    branches: tuple[Branch, ...] = ()

    @property
    def width(self) -> int:
        """Of what stands before the columns, guides included."""
        return GUIDE * self.depth + len(self.text())

    def text(self) -> Text:
        """What stands before the columns."""
        text = self.label.copy()
        text.append(f" ({self.names})" if self.names else "", style="dim")
        return text.append(", as above" if self.again else "", style="dim italic")

    def within(self, width: int) -> Branch:
        """The same, without names in lines that are too wide with them."""
        shapes = len(self.columns[0]) if self.columns else 0
        fits = self.width + GAP + shapes <= width
        below = tuple(branch.within(width) for branch in self.branches)
        return replace(self, names=self.names if fits else "", branches=below)

    def walk(self) -> Iterator[Branch]:
        """This line and all below it."""
        yield self
        for branch in self.branches:
            yield from branch.walk()


def draw(tree: Tree, width: int, *, everything: bool = False) -> Drawing:
    """The hierarchy, shapes at the right; what repeats is one line, and opened where first met.

    Files, and the work of kernels, are told where `width` allows it. `everything` has a line for
    each instance, and all columns.
    """
    width = sys.maxsize if everything else width
    root = _Branches(tree, everything).of_item(Item((tree.root,)), 0).within(width)
    lines = list(root.walk())
    rows = zip(*(line.columns for line in lines if line.columns), strict=True)
    widths = [max(map(len, column)) for column in rows]
    left = max(line.width for line in lines)
    while len(widths) > 1 and left + sum(GAP + column for column in widths) > width:
        widths.pop()
    usual = sorted(len(line.columns[0]) for line in lines if line.columns)
    left = min(left, max(width - GAP - usual[int(_USUAL * (len(usual) - 1))], 0))

    def text(line: Branch) -> Text:
        """The line; shapes that are longer than usual begin further to the left."""
        drawn = line.text()
        if line.columns:
            drawn.pad_right(min(left, width - GAP - len(line.columns[0])) - line.width)
        for place, (told, column) in enumerate(zip(line.columns, widths, strict=False)):
            drawn.append(" " * GAP + told.ljust(column), style="dim" if place else "")
        drawn.rstrip()
        return drawn

    def grow(drawing: Drawing, branch: Branch) -> Drawing:
        for below in branch.branches:
            grow(drawing.add(text(below)), below)
        return drawing

    return grow(Drawing(text(root), guide_style="dim"), root)


class _Branches:
    """The lines of a tree, made top down: what was opened before is not opened again."""

    def __init__(self, tree: Tree, everything: bool) -> None:
        self._outline = Outline(tree)
        self._everything = everything
        self._opened: set[Hashable] = set()

    def of_item(self, item: Item, depth: int) -> Branch:
        """The line of some instances, opened if their structure was not before."""
        node = item.first
        label = Text(node.level, style=COLOURS[node.level])
        label.append(f" {title(node)}", style="bold")
        if item.in_a_row > 1:
            label.append(f" × {item.in_a_row}", style="yellow")
        structure = self._outline.structure(node)
        again = bool(node.children) and structure in self._opened and not self._everything
        self._opened.add(structure)
        rows = [] if again else self._rows(node)
        branches = tuple(self._of_row(row, depth + 1) for row in rows)
        work = f"{flops(node.flops)}, {size(node.bytes)}" if node.level == "kernel" else ""
        file = stem(node) if item.equal else ""
        return Branch(depth, label, names(item), again, (shapes(item), file, work), branches)

    def _of_row(self, row: Row, depth: int) -> Branch:
        if row.count == 1:
            return self.of_item(row.items[0], depth)
        items = tuple(self.of_item(item, depth + 1) for item in row.items)
        return Branch(depth, Text(f"× {row.count}, in turn", style="yellow"), branches=items)

    def _rows(self, node: Node) -> list[Row]:
        if self._everything:
            return [Row((Item((child,)),)) for child in self._outline.children_of(node)]
        return self._outline.rows(node)


def summary(tree: Tree) -> str:
    """One line under the tree: components by level, instances, work."""
    about = tree.metadata
    levels = ", ".join(counted(n, level) for level, n in about.by_level.items() if n)
    root = tree.nodes[ROOT]
    return (
        f"{counted(about.total_components, 'component')} ({levels}), "
        f"{counted(about.kernel_instances, 'kernel instance')}, {flops(root.flops)}, "
        f"verification: {about.verification_status}"
    )
