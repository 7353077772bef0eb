"""This file knows about what people read: the structure on a page, and every decision in a log."""

from __future__ import annotations

import json
from collections.abc import Iterator

from runner.emit.component import Emitter
from runner.tree.document import ROOT, Node, Tree
from runner.tree.interface import Program
from runner.tree.part import Part

MOST_DIAGRAM_NODES = 120
MOST_FLOW_ROWS = 200


def write_analysis(tree: Tree, program: Program, root: Part) -> str:
    """The text of `decomposition_analysis.md`."""
    return "\n".join(
        [
            *_head(tree),
            *_hierarchy(tree),
            *_flow(tree),
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


def _tensors(shapes: dict[str, list[int]], dtypes: dict[str, str]) -> str:
    return (
        ", ".join(f"{'x'.join(map(str, s)) or 'scalar'} {dtypes[n]}" for n, s in shapes.items())
        or "none"
    )


def _hierarchy(tree: Tree) -> Iterator[str]:
    """The tree as a mermaid diagram: an instance a box; of a repeated workload one is open."""
    yield "## Hierarchy"
    yield ""
    yield "```mermaid"
    yield "graph TD"
    opened: set[str] = set()
    shown = {ROOT: "n0"}
    queue = [ROOT]
    while queue:
        identity = queue.pop(0)
        node = tree.nodes[identity]
        if identity == ROOT:
            yield f'  n0["{_title(node)}"]'
        if node.path in opened:
            continue
        opened.add(node.path)
        for child in node.children:
            if len(shown) >= MOST_DIAGRAM_NODES:
                break
            shown[child] = f"n{len(shown)}"
            yield f'  {shown[identity]} --> {shown[child]}["{_title(tree.nodes[child])}"]'
            queue.append(child)
    yield "```"
    yield ""
    if len(shown) < len(tree.nodes):
        drawn = f"{len(shown)} of {len(tree.nodes)} instances are drawn"
        yield f"{drawn}: a repeated workload is opened once."
        yield ""


def _title(node: Node) -> str:
    return f"{node.level}: {node.name}<br/>{node.path.rpartition('/')[2].removesuffix('.py')}"


def _flow(tree: Tree) -> Iterator[str]:
    yield "## Data flow"
    yield ""
    yield "| from | to | tensor | shape | dtype |"
    yield "| --- | --- | --- | --- | --- |"
    for edge in tree.data_flow[:MOST_FLOW_ROWS]:
        shape = "x".join(map(str, edge.shape)) or "scalar"
        ends = f"{edge.source} | {edge.target}"
        yield f"| {ends} | {edge.tensor_name} | {shape} | {edge.dtype} |"
    if len(tree.data_flow) > MOST_FLOW_ROWS:
        yield ""
        shown = f"The first {MOST_FLOW_ROWS} of {len(tree.data_flow)} tensors"
        yield f"{shown}; decomposition_tree.json has all."
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
