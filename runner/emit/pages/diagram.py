"""Draws the hierarchy of a decomposition as a tree of text, with one line for repetitions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from runner.emit.pages.outline import (
    Outline,
    OutlineItem,
    OutlineRow,
    author_names,
    format_shapes,
    heading,
)
from runner.tree.document import Level

GUIDE = 4
"""Columns by which a child is indented below its parent."""
_GAP = 2
_LAST_SHAPE_COLUMN = 56
"""Rightmost column where shapes start, except behind a line that is longer."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the tree, with the lines below it."""

    title: str
    depth: int = 0
    item: OutlineItem | None = None
    """Instances that the line stands for; None for a line such as `× 2, in turn`."""
    names: str = ""
    """The author's names for the instances."""
    repeated: bool = False
    """Whether the same structure is shown further up, so that no lines follow below."""
    kernels: tuple[str, ...] = ()
    """Kernels that are written behind the shapes instead of on lines below."""
    branches: tuple[Branch, ...] = ()

    @property
    def level(self) -> Level | None:
        return self.item.first.level if self.item is not None else None

    @property
    def label(self) -> str:
        """Text of the line without shapes: `fusion attention_block (attn)`."""
        words = [self.level, self.title] if self.level else [self.title]
        if self.item is not None and self.item.run_length > 1:
            words.append(f"× {self.item.run_length}")
        if self.names:
            words.append(f"({self.names})")
        return " ".join(words) + (", as above" if self.repeated else "")

    @property
    def shapes(self) -> str:
        return format_shapes(self.item) if self.item is not None else ""

    def walk(self) -> Iterator[Branch]:
        """Yield this line and all below it."""
        yield self
        for branch in self.branches:
            yield from branch.walk()


def build_branches(outline: Outline, *, every_instance: bool = False) -> Branch:
    """Return the root line of the tree; `every_instance` gives each instance its own line."""
    return _BranchBuilder(outline, every_instance).build_item(OutlineItem((outline.tree.root,)), 0)


class _BranchBuilder:
    """Builder of the lines of a tree, which shows the inside of each structure only once."""

    def __init__(self, outline: Outline, every_instance: bool) -> None:
        self._outline = outline
        self._every_instance = every_instance
        self._shown_structures: set[Hashable] = set()

    def build_item(self, item: OutlineItem, depth: int) -> Branch:
        """Return the line of an item, with lines below unless its structure was shown before."""
        node = item.first
        structure = self._outline.structure(node)
        repeated = (
            bool(node.children) and structure in self._shown_structures and not self._every_instance
        )
        self._shown_structures.add(structure)
        rows = [] if repeated else self._rows(item)
        below = tuple(self._build_row(row, depth + 1) for row in rows)
        return Branch(heading(node), depth, item, author_names(item), repeated, (), below)

    def _build_row(self, row: OutlineRow, depth: int) -> Branch:
        if row.count == 1:
            return self.build_item(row.items[0], depth)
        items = tuple(self.build_item(item, depth + 1) for item in row.items)
        return Branch(f"× {row.count}, in turn", depth, branches=items)

    def _rows(self, item: OutlineItem) -> list[OutlineRow]:
        if self._every_instance:
            return [
                OutlineRow((OutlineItem((child,)),))
                for child in self._outline.children_of(item.first)
            ]
        return self._outline.rows(item.first)


# --- plain text -----------------------------------------------------------------------------------


def draw_tree(outline: Outline, most_lines: int) -> Iterator[str]:
    """Yield at most `most_lines` lines, with shapes at the right.

    If there are more lines, fusions list their kernels on their own line. If there still are more,
    the deepest levels are left out, and then the last lines, whose number is given.
    """
    root = build_branches(outline)
    if len(list(root.walk())) > most_lines:
        root = _inline_fusion_kernels(root)
    depth = max(branch.depth for branch in root.walk())
    while depth > 1 and len(list(root.walk())) > most_lines:
        depth -= 1
        root = _cut_depth(root, depth)
    lines = list(_draw_lines(root, "", ""))
    column = min(max(len(text) for text, details in lines if details), _LAST_SHAPE_COLUMN)
    visible_lines = lines if len(lines) <= most_lines else lines[: most_lines - 1]
    for text, details in visible_lines:
        yield f"{text.ljust(column)}{' ' * _GAP}{details}".rstrip()
    if len(visible_lines) < len(lines):
        yield f"... {len(lines) - len(visible_lines)} more"


def _inline_fusion_kernels(branch: Branch) -> Branch:
    """Return the tree with fusions' kernels on the fusions' lines, unless the title lists them."""
    if branch.level == "fusion" and branch.depth:
        kernels = tuple(
            f"{below.title} × {below.item.run_length}"
            if below.item is not None and below.item.run_length > 1
            else below.title
            for below in branch.branches
        )
        in_title = branch.title.split(" ")[0] == "_".join(kernels)
        return replace(branch, kernels=() if in_title else kernels, branches=())
    return replace(branch, branches=tuple(map(_inline_fusion_kernels, branch.branches)))


def _cut_depth(branch: Branch, depth: int) -> Branch:
    """Return the tree down to a depth."""
    below = branch.branches if branch.depth < depth else ()
    return replace(branch, branches=tuple(_cut_depth(child, depth) for child in below))


def _draw_lines(branch: Branch, prefix: str, prefix_below: str) -> Iterator[tuple[str, str]]:
    """Yield pairs: a line with its guides, and the shapes and kernels behind it."""
    label = branch.label.removeprefix("kernel ") if branch.depth else branch.label
    kernels = f": {', '.join(branch.kernels)}" if branch.kernels else ""
    yield prefix + label, branch.shapes + kernels
    last_position = len(branch.branches) - 1
    for position, child in enumerate(branch.branches):
        guide, indent = ("└── ", "    ") if position == last_position else ("├── ", "│   ")
        yield from _draw_lines(child, prefix_below + guide, prefix_below + indent)
