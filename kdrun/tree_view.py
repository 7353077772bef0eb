"""Shows a decomposition's tree as objects, as text, and as HTML for a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console

from runner.emit.pages.diagram import Branch, build_branches
from runner.emit.pages.outline import Outline
from runner.report.tree_text import WIDTH, draw_tree, summary_line
from runner.tree.document import ROOT, Level, Metadata, Node, Tree

_COLOURS = {"model": "#a626a4", "layer": "#4078f2", "fusion": "#0184bc", "kernel": "#50a14f"}
_ROW = "margin:0 0 0 1.4em;font-family:monospace;white-space:pre"


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One instance of a component in the model."""

    node: Node
    """Its record in `decomposition_tree.json`: shapes, dtypes, weights, FLOPs and more."""
    children: tuple[TreeNode, ...]
    """The nodes that it calls, in the order in which they run."""

    @property
    def id(self) -> str:
        """Id in the tree, such as `layers_3.attention`."""
        return self.node.id

    @property
    def level(self) -> Level:
        """`model`, `layer`, `fusion` or `kernel`."""
        return self.node.level

    @property
    def component(self) -> str:
        """Name of the component that it is an instance of: the name of a file, without `.py`."""
        return self.node.path.rpartition("/")[2].removesuffix(".py")

    def walk(self) -> Iterator[TreeNode]:
        """Yield this node and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __repr__(self) -> str:
        return f"<{self.level} {self.id}: {self.component}>"


@dataclass(frozen=True)
class TreeView:
    """A decomposition's tree: its root, and the instances of each level."""

    document: Tree = field(repr=False)

    @property
    def metadata(self) -> Metadata:
        """The problem, versions and figures of the decomposition."""
        return self.document.metadata

    @property
    def root(self) -> TreeNode:
        """The node of the whole model."""
        return self._node(ROOT)

    @property
    def layers(self) -> tuple[TreeNode, ...]:
        """All instances of layers."""
        return self._level("layer")

    @property
    def fusions(self) -> tuple[TreeNode, ...]:
        """All instances of fusions."""
        return self._level("fusion")

    @property
    def kernels(self) -> tuple[TreeNode, ...]:
        """All instances of kernels."""
        return self._level("kernel")

    def _level(self, level: Level) -> tuple[TreeNode, ...]:
        return tuple(node for node in self.root.walk() if node.level == level)

    def _node(self, identity: str) -> TreeNode:
        node = self.document.nodes[identity]
        return TreeNode(node, tuple(map(self._node, node.children)))

    def __repr__(self) -> str:
        console = Console(
            width=10_000, color_system=None, force_jupyter=False, highlight=False, markup=False
        )
        with console.capture() as capture:
            console.print(draw_tree(self.document, WIDTH), no_wrap=True)
        return f"{capture.get()}\n{summary_line(self.document)}"

    def _repr_html_(self) -> str:
        branches = build_branches(Outline(self.document))
        summary = html.escape(summary_line(self.document))
        return f'<div>{_branch_html(branches)}<p style="{_ROW}">{summary}</p></div>'


def _branch_html(branch: Branch) -> str:
    """Return a line of the tree, and a block that folds away with the lines below it."""
    colour = _COLOURS.get(branch.level or "", "#986801")
    text = (
        f'<span style="color:{colour};font-weight:bold">{html.escape(branch.label)}</span>'
        f"  {html.escape(branch.shapes)}"
    )
    if not branch.branches:
        return f'<div style="{_ROW}">{text}</div>'
    inner = "".join(map(_branch_html, branch.branches))
    return f'<details open style="{_ROW}"><summary>{text}</summary>{inner}</details>'
