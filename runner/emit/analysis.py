"""What people read of a decomposition: its structure on a page, every decision in a log."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator

from runner.emit.component import Emitter
from runner.emit.flows import Flows
from runner.emit.outline import Item, Outline, names, shapes, sizes, stem, title
from runner.tree.document import Node, Tree
from runner.tree.interface import Program
from runner.tree.part import Part

MOST_SIDE_BY_SIDE = 3
"""Boxes under the model; where there are more, the diagram grows downwards, not to the right."""
_STYLES = {
    "model": "fill:#f3e8ff,stroke:#7e22ce,color:#111",
    "layer": "fill:#dbeafe,stroke:#1d4ed8,color:#111",
    "fusion": "fill:#cffafe,stroke:#0e7490,color:#111",
    "kernel": "fill:#dcfce7,stroke:#15803d,color:#111",
}


def write_analysis(tree: Tree, program: Program, root: Part) -> str:
    """The text of `decomposition_analysis.md`."""
    outline = Outline(tree)
    return "\n".join(
        [
            *_head(tree),
            *_hierarchy(outline),
            *_flow(outline),
            *_kernels(tree),
            *_notes(tree, program),
        ]
    )


def _head(tree: Tree) -> Iterator[str]:
    meta, root = tree.metadata, tree.root
    levels = ", ".join(f"{count} {level}" for level, count in meta.by_level.items() if count)
    yield f"# {meta.source_file}: {meta.model_name}"
    yield ""
    captured = f"captured by {meta.capture.replace('_', ' ')} with torch {meta.torch_version}"
    yield f"{meta.source_level}, mode {meta.mode}, {captured}."
    yield ""
    components = f"{meta.total_components} ({levels}), {meta.kernel_instances} kernel instances"
    yield f"- components: {components}"
    yield f"- inputs: {_tensors(root.input_shapes, root.input_dtypes)}"
    yield f"- outputs: {_tensors(root.output_shapes, root.output_dtypes)}"
    peak = f"{meta.estimated_peak_bytes / 2**20:,.1f} MiB at its worst moment"
    yield f"- {root.flops / 1e9:,.3f} GFLOP a forward pass, {peak}"
    yield ""


def _tensors(shapes: list[list[int]], dtypes: list[str]) -> str:
    return (
        ", ".join(
            f"{'x'.join(map(str, s)) or 'scalar'} {d}" for s, d in zip(shapes, dtypes, strict=True)
        )
        or "none"
    )


def _hierarchy(outline: Outline) -> Iterator[str]:
    """The tree as a mermaid diagram."""
    yield "## Hierarchy"
    yield ""
    yield "What repeats is drawn once, with its count. Of layers that differ in their sizes alone,"
    yield "the first is opened."
    yield ""
    yield "```mermaid"
    yield from _Diagram(outline).lines()
    yield "```"
    yield ""


class _Diagram:
    """Model, layers and fusions as boxes; the kernels of a fusion are lines in its box."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._opened: set[Hashable] = set()
        self._boxes = 0

    def lines(self) -> Iterator[str]:
        """Mermaid's lines, laid out from left to right where many boxes stand side by side."""
        root = Item((self._outline.tree.root,))
        rows = self._outline.rows(root.first)
        yield "graph LR" if len(rows) > MOST_SIDE_BY_SIDE else "graph TD"
        name = self._name()
        yield f"  {self._box(name, root)}"
        yield from self._below(name, root.first)
        yield from (f"  classDef {level} {style}" for level, style in _STYLES.items())

    def _below(self, parent: str, node: Node) -> Iterator[str]:
        """Boxes and arrows for the inside of a model or a layer, where it is met first."""
        structure = self._outline.structure(node)
        if node.level in ("fusion", "kernel") or structure in self._opened:
            return
        self._opened.add(structure)
        for row in self._outline.rows(node):
            boxes = {self._name(): item for item in row.items}
            lines = [self._box(name, item) for name, item in boxes.items()]
            if row.count > 1:
                frame = f'subgraph {self._name()}["× {row.count}, in turn"]'
                lines = [frame, *(f"  {line}" for line in lines), "end"]
            yield from (f"  {line}" for line in lines)
            yield f"  {parent} --> {' & '.join(boxes)}"
            for name, item in boxes.items():
                yield from self._below(name, item.first)

    def _name(self) -> str:
        self._boxes += 1
        return f"n{self._boxes - 1}"

    def _box(self, name: str, item: Item) -> str:
        lines = [f"<b>{_called(item)}</b>", shapes(item)]
        if item.first.level == "fusion":
            rows = self._outline.rows(item.first)
            lines += [", ".join(_called(k, sized=item.equal) for k in row.items) for row in rows]
        return f'{name}["{"<br/>".join(lines)}"]:::{item.first.level}'


def _called(item: Item, *, sized: bool = False) -> str:
    """`linear 256x768 × 2 (q … k)`; sizes only where weights have some."""
    weights = item.first.weight_shapes.values() if sized and item.equal else ()
    size = f" {sizes(item.first)}" if any(len(shape) > 1 for shape in weights) else ""
    times = f" × {item.in_a_row}" if item.in_a_row > 1 else ""
    author = f" ({names(item)})" if names(item) else ""
    return f"{title(item.first)}{size}{times}{author}"


def _flow(outline: Outline) -> Iterator[str]:
    """A table for the model, and one for each different inside."""
    yield "## Data flow"
    yield ""
    yield "Between the children of the model, and inside of each component that is no straight"
    yield "line. What repeats, or differs in its sizes alone, is told once."
    yield ""
    flows = Flows(outline)
    for node in outline.first_of_each_structure():
        rows = list(flows.rows(node))
        if rows:
            yield f"{node.level} [{stem(node)}]({node.path}):"
            yield ""
            yield "| from | to | tensor | shape | dtype |"
            yield "| --- | --- | --- | --- | --- |"
            yield from (f"| {' | '.join(row)} |" for row in rows)
            yield ""


def _kernels(tree: Tree) -> Iterator[str]:
    yield "## Kernels"
    yield ""
    yield "Work is that of one instance; FLOP/B, its arithmetic intensity, of FLOPs by bytes moved."
    yield ""
    yield "| file | instances | inputs | outputs | weights | MFLOP | MiB moved | FLOP/B |"
    yield "| --- | ---: | --- | --- | --- | ---: | ---: | ---: |"
    first: dict[str, Node] = {}
    for node in tree.nodes.values():
        if node.level == "kernel":
            first.setdefault(node.path, node)
    for path, node in sorted(first.items()):
        weights = ", ".join(
            f"{name} {'x'.join(map(str, shape))}"
            for name, shape in node.weight_shapes.items()
            if shape
        )
        yield (
            f"| [{path.rpartition('/')[2]}]({path}) | {node.instance_count} "
            f"| {_tensors(node.input_shapes, node.input_dtypes)} "
            f"| {_tensors(node.output_shapes, node.output_dtypes)} | {weights or 'none'} "
            f"| {node.flops / 1e6:,.2f} | {node.bytes / 2**20:,.2f} "
            f"| {node.flops / max(node.bytes, 1):,.2f} |"
        )
    yield ""


def _notes(tree: Tree, program: Program) -> Iterator[str]:
    notes = [*program.graph.notes, *(f"specialised: {s}" for s in tree.metadata.specialisations)]
    if tree.metadata.unused_weights:
        notes.append("weights that forward never reads: " + ", ".join(tree.metadata.unused_weights))
    if notes:
        yield "## Notes"
        yield ""
        yield from (f"- {note}" for note in notes)
        yield ""


def write_log(emitter: Emitter, root: Part) -> str:
    """The text of `decomposition_log.json`: each component's level, name, operations, and why."""
    entries = []
    for part in root.walk():
        workload = emitter.workload(part)
        operations = [emitter.program.graph.operations[i] for i in part.operations]
        entries.append(
            {
                "component": workload.name,
                "instance": part.name,
                "module_path": part.module_path,
                "level": part.level,
                "why_this_level": part.reason,
                "why_this_name": workload.naming,
                "operations": [op.target for op in operations]
                if not part.children
                else [c.stem for c in part.children],
            }
        )
    graph = emitter.program.graph
    document = {
        "capture": graph.capture,
        "normalisation": list(graph.notes),
        "specialisations": list(graph.specialisations),
        "decisions": entries,
    }
    return json.dumps(document, indent=1) + "\n"
