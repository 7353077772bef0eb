"""Draw the hierarchy of a decomposition as an indented tree of text: what repeats is one line."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from runner.emit.pages.outline import Item, Outline, Row, heading, names, shapes
from runner.tree.document import Level

GUIDE = 4
"""Columns by which a child stands further to the right than its parent."""
_GAP = 2
_MOST_LEFT = 56
"""Column at which shapes stand at most; a longer line pushes its own further."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the tree, and the lines below it."""

    title: str
    depth: int = 0
    item: Item | None = None
    """The instances that the line is about; None for a line such as `× 2, in turn`."""
    names: str = ""
    """The author's names for the instances."""
    again: bool = False
    """It was opened further up, and is not opened again."""
    kernels: tuple[str, ...] = ()
    """Kernels that are told behind the shapes instead of in lines below."""
    branches: tuple[Branch, ...] = ()

    @property
    def level(self) -> Level | None:
        return self.item.first.level if self.item is not None else None

    @property
    def label(self) -> str:
        """The line without shapes: `fusion attention_block (attn)`."""
        words = [self.level, self.title] if self.level else [self.title]
        if self.item is not None and self.item.in_a_row > 1:
            words.append(f"× {self.item.in_a_row}")
        if self.names:
            words.append(f"({self.names})")
        return " ".join(words) + (", as above" if self.again else "")

    @property
    def shapes(self) -> str:
        return shapes(self.item) if self.item is not None else ""

    def walk(self) -> Iterator[Branch]:
        """This line and all below it."""
        yield self
        for branch in self.branches:
            yield from branch.walk()


def branches(outline: Outline, *, everything: bool = False) -> Branch:
    """Return the tree, top down; `everything` has a line for each instance."""
    return _Branches(outline, everything).of_item(Item((outline.tree.root,)), 0)


class _Branches:
    """The lines of a tree, made top down: what was opened before is not opened again."""

    def __init__(self, outline: Outline, everything: bool) -> None:
        self._outline = outline
        self._everything = everything
        self._opened: set[Hashable] = set()

    def of_item(self, item: Item, depth: int) -> Branch:
        """The line of some instances, opened if their structure was not before."""
        node = item.first
        structure = self._outline.structure(node)
        again = bool(node.children) and structure in self._opened and not self._everything
        self._opened.add(structure)
        rows = [] if again else self._rows(item)
        below = tuple(self._of_row(row, depth + 1) for row in rows)
        return Branch(heading(node), depth, item, names(item), again, (), below)

    def _of_row(self, row: Row, depth: int) -> Branch:
        if row.count == 1:
            return self.of_item(row.items[0], depth)
        items = tuple(self.of_item(item, depth + 1) for item in row.items)
        return Branch(f"× {row.count}, in turn", depth, branches=items)

    def _rows(self, item: Item) -> list[Row]:
        if self._everything:
            return [Row((Item((child,)),)) for child in self._outline.children_of(item.first)]
        return self._outline.rows(item.first)


# --- plain text -----------------------------------------------------------------------------------


def text_tree(outline: Outline, most: int) -> Iterator[str]:
    """Yield at most `most` lines, shapes at the right.

    Where they would be more, a fusion tells its kernels in its own line; then the deepest levels
    that do not fit are left out, and of the first level's lines the last ones, which are counted.
    """
    root = branches(outline)
    if len(list(root.walk())) > most:
        root = _with_kernels_in_fusions(root)
    depth = max(branch.depth for branch in root.walk())
    while depth > 1 and len(list(root.walk())) > most:
        depth -= 1
        root = _cut(root, depth)
    lines = list(_drawn(root, "", ""))
    left = min(max(len(text) for text, behind in lines if behind), _MOST_LEFT)
    shown = lines if len(lines) <= most else lines[: most - 1]
    for text, behind in shown:
        yield f"{text.ljust(left)}{' ' * _GAP}{behind}".rstrip()
    if len(shown) < len(lines):
        yield f"... {len(lines) - len(shown)} more"


def _with_kernels_in_fusions(branch: Branch) -> Branch:
    """The same tree without lines for the kernels of fusions."""
    if branch.level == "fusion" and branch.depth:
        told = tuple(
            f"{below.title} × {below.item.in_a_row}"
            if below.item is not None and below.item.in_a_row > 1
            else below.title
            for below in branch.branches
        )
        said = branch.title.split(" ")[0] == "_".join(told)
        return replace(branch, kernels=() if said else told, branches=())
    return replace(branch, branches=tuple(map(_with_kernels_in_fusions, branch.branches)))


def _cut(branch: Branch, depth: int) -> Branch:
    """The same tree down to a depth."""
    below = branch.branches if branch.depth < depth else ()
    return replace(branch, branches=tuple(_cut(b, depth) for b in below))


def _drawn(branch: Branch, before: str, below: str) -> Iterator[tuple[str, str]]:
    """(line with its guides, what stands behind it)."""
    label = branch.label.removeprefix("kernel ") if branch.depth else branch.label
    kernels = f": {', '.join(branch.kernels)}" if branch.kernels else ""
    yield before + label, branch.shapes + kernels
    last = len(branch.branches) - 1
    for place, child in enumerate(branch.branches):
        guide, further = ("└── ", "    ") if place == last else ("├── ", "│   ")
        yield from _drawn(child, below + guide, below + further)
