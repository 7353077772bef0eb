"""Draws a decomposition's tree in the terminal."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from rich.text import Text
from rich.tree import Tree as Drawing

from runner.emit.pages.diagram import GUIDE, Branch, build_branches
from runner.emit.pages.outline import Outline, workload_name
from runner.quantities import flops, pluralize, size
from runner.tree.document import ROOT, Level, Tree

COLOURS: dict[Level, str] = {
    "model": "bold magenta",
    "layer": "bold blue",
    "fusion": "cyan",
    "kernel": "green",
}

WIDTH = 100
"""Width in columns if the output is not a terminal."""
GAP = 2
"""Spaces between two columns of a line."""
_ALIGNED_SHARE = 0.9
"""Share of the lines whose shapes are aligned in one column; longer shapes begin further left."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the tree: its coloured text, and the columns to the right of it."""

    branch: Branch
    text: Text
    columns: tuple[str, ...] = ()
    """Shapes; the component's file; a kernel's FLOPs and bytes."""

    @property
    def width(self) -> int:
        """Width of the text before the columns, with the guides of the tree."""
        return GUIDE * self.branch.depth + len(self.text)


def draw_tree(tree: Tree, width: int, *, everything: bool = False) -> Drawing:
    """Return the drawing of a tree, with shapes at the right.

    Repeated parts are one line each, and their children are shown only at the first of them. Files
    and the work of kernels are shown if `width` has room for them. `everything` draws a line for
    each instance, and all columns.
    """
    width = sys.maxsize if everything else width
    root = _drop_wide_names(build_branches(Outline(tree), every_instance=everything), width)
    lines = {id(branch): _line(branch) for branch in root.walk()}
    rows = zip(*(line.columns for line in lines.values() if line.columns), strict=True)
    widths = [max(map(len, column)) for column in rows]
    text_width = max(line.width for line in lines.values())
    while len(widths) > 1 and text_width + sum(GAP + column for column in widths) > width:
        widths.pop()
    shape_widths = sorted(len(line.columns[0]) for line in lines.values() if line.columns)
    text_width = min(
        text_width,
        max(width - GAP - shape_widths[int(_ALIGNED_SHARE * (len(shape_widths) - 1))], 0),
    )

    def text(line: _Line) -> Text:
        """Return the line's text with its columns; longer shapes than usual begin further left."""
        drawn = line.text.copy()
        if line.columns:
            drawn.pad_right(min(text_width, width - GAP - len(line.columns[0])) - line.width)
        for index, (cell, column) in enumerate(zip(line.columns, widths, strict=False)):
            drawn.append(" " * GAP + cell.ljust(column), style="dim" if index else "")
        drawn.rstrip()
        return drawn

    def grow(drawing: Drawing, branch: Branch) -> Drawing:
        for below in branch.branches:
            grow(drawing.add(text(lines[id(below)])), below)
        return drawing

    return grow(Drawing(text(lines[id(root)]), guide_style="dim"), root)


def _drop_wide_names(branch: Branch, width: int) -> Branch:
    """Return the tree without the names in lines that would be too wide with them."""
    fits = GUIDE * branch.depth + len(branch.label) + GAP + len(branch.shapes) <= width
    below = tuple(_drop_wide_names(below, width) for below in branch.branches)
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


def summary_line(tree: Tree) -> str:
    """Return the line under the tree: components by level, instances, FLOPs, verification."""
    about = tree.metadata
    levels = ", ".join(pluralize(n, level) for level, n in about.by_level.items() if n)
    root = tree.nodes[ROOT]
    return (
        f"{pluralize(about.total_components, 'component')} ({levels}), "
        f"{pluralize(about.kernel_instances, 'kernel instance')}, {flops(root.flops)}, "
        f"verification: {about.verification_status}"
    )
