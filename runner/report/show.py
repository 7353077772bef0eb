"""This file knows about a decomposition as a tree in the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text
from rich.tree import Tree as Drawing

from runner.report.wording import flops, several, size, tensors
from runner.tree.document import ROOT, Level, Node, Tree

COLOURS: dict[Level, str] = {
    "model": "bold magenta",
    "layer": "bold blue",
    "fusion": "cyan",
    "kernel": "green",
}

LONG = 24
"""Lines under one parent."""


@dataclass(frozen=True, slots=True)
class Line:
    """Instances of one workload under one parent."""

    nodes: tuple[Node, ...]
    again: bool
    """It was opened further up, and is not opened again."""


def draw(tree: Tree, *, everything: bool = False) -> Drawing:
    """The hierarchy with shapes; a workload is opened where it is first met.

    `everything` opens each instance.
    """
    seen: set[str] = set()
    drawing = Drawing(_text(Line((tree.root,), again=False)), guide_style="dim")
    _grow(drawing, tree, tree.root, seen, everything)
    return drawing


def _grow(drawing: Drawing, tree: Tree, node: Node, seen: set[str], everything: bool) -> None:
    children = [tree.nodes[child] for child in node.children]
    for line in lines(children, seen, everything):
        branch = drawing.add(_text(line))
        first = line.nodes[0]
        if not line.again:
            seen.add(first.path)
            _grow(branch, tree, first, seen, everything)


def lines(children: Sequence[Node], seen: set[str], everything: bool) -> Iterator[Line]:
    """Children as lines, in the order in which they run; neighbours of one workload share one.

    An unrolled loop calls the same few workloads in turn, hundreds of times: where even that is
    long, what was listed under this parent is not listed again, but counted in its first line.
    """
    if everything:
        yield from (Line((child,), again=False) for child in children)
        return
    groups = [tuple(nodes) for _, nodes in groupby(children, key=lambda node: node.path)]
    if len(groups) > LONG:
        by_path: dict[str, list[Node]] = {}
        for child in children:
            by_path.setdefault(child.path, []).append(child)
        groups = [tuple(nodes) for nodes in by_path.values()]
    for nodes in groups:
        yield Line(nodes, again=nodes[0].path in seen and bool(nodes[0].children))


def _text(line: Line) -> Text:
    first = line.nodes[0]
    text = Text()
    text.append(first.level, style=COLOURS[first.level])
    text.append(f" {first.name}", style="bold")
    if len(line.nodes) > 1:
        text.append(f" ×{len(line.nodes)}", style="yellow")
        text.append(f" to {line.nodes[-1].name}")
    into = tensors(first.input_shapes, first.input_dtypes) or "nothing"
    out = tensors(first.output_shapes, first.output_dtypes)
    text.append(f"  {into} → {out}")
    if first.level == "kernel":
        text.append(f"  {flops(first.flops)}, {size(first.bytes)}", style="dim")
    if first.level == "kernel" or not first.children:
        text.append(f"  {first.path.rpartition('/')[2]}", style="dim")
    if line.again:
        text.append("  (opened above)", style="dim italic")
    return text


def summary(tree: Tree) -> str:
    """One line under the tree: components by level, instances, work."""
    about = tree.metadata
    levels = ", ".join(f"{n} {level}" for level, n in about.by_level.items() if n)
    root = tree.nodes[ROOT]
    return (
        f"{several(about.total_components, 'component')} ({levels}), "
        f"{several(about.kernel_instances, 'kernel instance')}, {flops(root.flops)}, "
        f"verification: {about.verification_status}"
    )
