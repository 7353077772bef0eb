"""The page that explains a decomposition to people, and the log of every decision."""

from __future__ import annotations

import json
from collections.abc import Iterator

from runner.counting import counted
from runner.emit.component import Emitter
from runner.emit.diagram import mermaid
from runner.emit.flows import Flows
from runner.emit.outline import Outline, stem
from runner.tree.document import Node, Tree
from runner.tree.interface import Program
from runner.tree.part import Part


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
    levels = ", ".join(counted(count, level) for level, count in meta.by_level.items() if count)
    yield f"# {meta.source_file}: {meta.model_name}"
    yield ""
    captured = f"captured by {meta.capture.replace('_', ' ')} with torch {meta.torch_version}"
    yield f"{meta.source_level}, mode {meta.mode}, {captured}."
    yield ""
    instances = counted(meta.kernel_instances, "kernel instance")
    components = f"{meta.total_components} ({levels}), {instances}"
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


def _hierarchy(outline: Outline) -> Iterator[str]:
    """The tree as a mermaid diagram."""
    yield "## Hierarchy"
    yield ""
    yield "What repeats is drawn once, with its count. Of layers that differ in their sizes alone,"
    yield "the first is opened."
    yield ""
    yield "```mermaid"
    yield from mermaid(outline)
    yield "```"
    yield ""


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
