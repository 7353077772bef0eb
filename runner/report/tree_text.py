"""A decomposition as a tree in the terminal."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from rich.text import Text
from rich.tree import Tree as Drawing

from runner.emit.pages.diagram import GUIDE, Branch, build_branches
from runner.emit.pages.outline import Outline, workload_name
from runner.quantities import counted, flops, size
from runner.tree.document import ROOT, Level, Tree

COLOURS: dict[Level, str] = {
    "model": "bold magenta",
    "layer": "bold blue",
    "fusion": "cyan",
    "kernel": "green",
}

WIDTH = 100
"""Columns, where no terminal says how many there are."""
GAP = 2
"""Columns between the columns of a line."""
_USUAL = 0.9
"""Share of the lines whose shapes stand in one column."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the tree in colour, and what stands in columns behind it."""

    branch: Branch
    text: Text
    columns: tuple[str, ...] = ()
    """Shapes, the component's file, what a kernel computes and moves."""

    @property
    def width(self) -> int:
        """Of what stands before the columns, guides included."""
        return GUIDE * self.branch.depth + len(self.text)


def draw(tree: Tree, width: int, *, everything: bool = False) -> Drawing:
    """The hierarchy, shapes at the right; what repeats is one line, and opened where first met.

    Files, and the work of kernels, are told where `width` allows it. `everything` has a line for
    each instance, and all columns.
    """
    width = sys.maxsize if everything else width
    root = _within(build_branches(Outline(tree), every_instance=everything), width)
    lines = {id(branch): _line(branch) for branch in root.walk()}
    rows = zip(*(line.columns for line in lines.values() if line.columns), strict=True)
    widths = [max(map(len, column)) for column in rows]
    left = max(line.width for line in lines.values())
    while len(widths) > 1 and left + sum(GAP + column for column in widths) > width:
        widths.pop()
    usual = sorted(len(line.columns[0]) for line in lines.values() if line.columns)
    left = min(left, max(width - GAP - usual[int(_USUAL * (len(usual) - 1))], 0))

    def text(line: _Line) -> Text:
        """The line; shapes that are longer than usual begin further to the left."""
        drawn = line.text.copy()
        if line.columns:
            drawn.pad_right(min(left, width - GAP - len(line.columns[0])) - line.width)
        for place, (told, column) in enumerate(zip(line.columns, widths, strict=False)):
            drawn.append(" " * GAP + told.ljust(column), style="dim" if place else "")
        drawn.rstrip()
        return drawn

    def grow(drawing: Drawing, branch: Branch) -> Drawing:
        for below in branch.branches:
            grow(drawing.add(text(lines[id(below)])), below)
        return drawing

    return grow(Drawing(text(lines[id(root)]), guide_style="dim"), root)


def _within(branch: Branch, width: int) -> Branch:
    """The same tree, without names in lines that are too wide with them."""
    fits = GUIDE * branch.depth + len(branch.label) + GAP + len(branch.shapes) <= width
    below = tuple(_within(below, width) for below in branch.branches)
    return replace(branch, names=branch.names if fits else "", branches=below)


def _line(branch: Branch) -> _Line:
    item = branch.item
    if item is None:
        return _Line(branch, Text(branch.label, style="yellow"))
    node = item.first
    text = Text(branch.label)
    text.stylize(COLOURS[node.level], 0, len(node.level))
    title = len(node.level) + 1 + len(branch.title)
    text.stylize("bold", len(node.level), title)
    text.stylize("dim", title)
    if item.run_length > 1:
        text.stylize("not dim yellow", title, title + len(f" × {item.run_length}"))
    work = f"{flops(node.flops)}, {size(node.bytes)}" if node.level == "kernel" else ""
    return _Line(branch, text, (branch.shapes, workload_name(node) if item.equal else "", work))


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
