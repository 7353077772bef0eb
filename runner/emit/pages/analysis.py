"""Writes `decomposition_analysis.md`, the page that explains a decomposition to a colleague."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from runner.emit.pages.block_dataflow import choose_block, dataflow_steps
from runner.emit.pages.diagram import draw_tree
from runner.emit.pages.model_summary import summarize_model
from runner.emit.pages.outline import Outline, OutlineItem, format_shapes, workload_name
from runner.graph.ir import Graph, TensorSpec
from runner.quantities import flops, join_first, pluralize, share, size
from runner.tree.dimensions import join_dimensions
from runner.tree.document import Node, Tree
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.verification_section import NOT_VERIFIED

_MOST_LINES = 108
"""Most lines of the page; with those that verification adds, it stays below 120 lines."""
_FEWEST_LINES_OF_TREE = 20
_MOST_FUSIONS = 10
_MOST_KERNELS = 14
_MOST_STEPS = 14
_MOST_MODULES = 6
_INERT_CLASSES = {"Identity", "ModuleList", "ModuleDict", "Sequential", "ParameterList"}
"""Classes of modules that run no operation of their own, in any mode."""


def write_analysis(tree: Tree, program: Program, root: Part) -> str:
    """Return the text of `decomposition_analysis.md`."""
    outline = Outline(tree)
    head = list(_head(tree, program, root))
    tables = [
        *_fusion_table(tree),
        *_kernel_table(tree),
        *_dataflow_table(outline),
        *_inactive_parts(program.graph),
        *_notes(tree, program),
    ]
    lines_left = _MOST_LINES - len(head) - len(tables)
    return "\n".join([*head, *_hierarchy(outline, max(lines_left, _FEWEST_LINES_OF_TREE)), *tables])


def _head(tree: Tree, program: Program, root: Part) -> Iterator[str]:
    meta, top = tree.metadata, tree.root
    yield f"# {meta.source_file.removesuffix('.py')}"
    yield ""
    yield summarize_model(tree, program, root)
    yield ""
    yield NOT_VERIFIED
    yield ""
    yield f"- source: class `{meta.model_name}` of [original.py](original.py), {meta.source_level}"
    yield f"- inputs: {_tensors_text(top.input_shapes, top.input_dtypes)}"
    yield f"- outputs: {_tensors_text(top.output_shapes, top.output_dtypes)}"
    yield f"- weights: {_weights_text(program.graph)}"
    moved = sum(node.bytes for node in _instances(tree, "kernel"))
    peak = f"{size(meta.estimated_peak_bytes)} of memory at its peak"
    yield f"- a forward pass: {flops(top.flops)}, {size(moved)} moved by its kernels, {peak}"
    levels = ", ".join(pluralize(count, level) for level, count in meta.by_level.items() if count)
    has_repeats = meta.kernel_instances > meta.unique_kernels
    repeats_text = f", which run {meta.kernel_instances} times" if has_repeats else ""
    yield f"- files: {levels}{repeats_text}"
    yield f"- captured in {meta.mode} mode with torch {meta.torch_version}{_capture_text(tree)}"
    yield ""


def _capture_text(tree: Tree) -> str:
    """Return how the program was captured; "" for the usual capture under fake tensors."""
    texts = {
        "fake": "",
        "real_parameters": ", with real weights, as it needs their values",
        "concrete": ", by running it on real inputs, as it needs their values",
    }
    return texts[tree.metadata.capture]


def _tensors_text(shapes: dict[str, list[int]], dtypes: dict[str, str]) -> str:
    return (
        ", ".join(
            f"`{name}` {join_dimensions(shape) or 'scalar'} {dtypes[name]}"
            for name, shape in shapes.items()
        )
        or "none"
    )


def _weights_text(graph: Graph) -> str:
    """Return `11,689,512 parameters, 44.6 MiB of float32; 9,620 numbers in buffers ...`."""
    distinct = {graph.tied.get(s.path, s.path): (s, name) for name, s in graph.states.items()}
    specs_by_kind: dict[str, list[TensorSpec]] = {}
    for state, name in distinct.values():
        kind = "parameter" if state.kind == "parameter" else "buffer"
        specs_by_kind.setdefault(kind, []).append(graph.values[name])
    amounts = [
        _amount_text(specs, kind) for kind, specs in sorted(specs_by_kind.items(), reverse=True)
    ]
    return "; ".join(amounts) or "none"


def _amount_text(specs: Sequence[TensorSpec], kind: str) -> str:
    number = sum(spec.numel for spec in specs)
    dtypes = ", ".join(sorted({spec.dtype for spec in specs}))
    noun = "parameters" if kind == "parameter" else "numbers in buffers and constants"
    return f"{number:,} {noun}, {size(sum(spec.nbytes for spec in specs))} of {dtypes}"


def _instances(tree: Tree, level: str) -> list[Node]:
    return [node for node in tree.nodes.values() if node.level == level]


def _hierarchy(outline: Outline, most_lines: int) -> Iterator[str]:
    """Yield the tree, with shapes at the right, in at most `most_lines` lines."""
    frame = ["## Parts", "", "```text"], ["```", ""]
    yield from frame[0]
    yield from draw_tree(outline, most_lines - len(frame[0]) - len(frame[1]))
    yield from frame[1]


# --- tables ---------------------------------------------------------------------------------------


def _fusion_table(tree: Tree) -> Iterator[str]:
    """Yield a table of the fusions below the root, the largest first."""
    files = _by_file(node for node in _instances(tree, "fusion") if node.children)
    files.pop(tree.root.path, None)
    if not files:
        return
    totals = tree.root.flops, sum(node.bytes for node in _instances(tree, "kernel"))
    yield "## Fusions"
    yield ""
    yield (
        "FLOPs and bytes are of one instance: `bytes` is what its kernels move one by one, "
        "`bytes as one` what a single fused kernel would move. Shares count all instances (×)."
    )
    yield ""
    yield "| fusion | × | kernels | FLOPs | share | bytes | bytes as one |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    ranked = sorted(files.values(), key=lambda nodes: _sort_key(nodes, totals))
    row_count = _visible_count(ranked, _MOST_FUSIONS)
    for nodes in ranked[:row_count]:
        node = nodes[0]
        kernel_bytes = sum(tree.nodes[child].bytes for child in node.children)
        yield (
            f"| {_link(node)} | {len(nodes)} | {_operations(node.operations)} "
            f"| {flops(node.flops)} | {share(node.flops * len(nodes), totals[0])} "
            f"| {size(kernel_bytes)} | {size(node.bytes)} |"
        )
    if hidden := ranked[row_count:]:
        hidden_flops = sum(node.flops for nodes in hidden for node in nodes)
        yield (
            f"| {len(hidden)} more | {sum(map(len, hidden))} | | {flops(hidden_flops)} in all "
            f"| {share(hidden_flops, totals[0])} | | |"
        )
    yield ""


def _kernel_table(tree: Tree) -> Iterator[str]:
    """Yield a table of the kernel files, the largest first."""
    files = _by_file(_instances(tree, "kernel"))
    totals = tree.root.flops, sum(node.bytes for node in _instances(tree, "kernel"))
    yield "## Kernels"
    yield ""
    yield (
        "FLOPs, bytes and FLOP/B are of one instance. Shares count all instances (×); the largest "
        "comes first."
    )
    yield ""
    yield "| kernel | × | tensors | FLOPs | share | bytes | share | FLOP/B |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    ranked = sorted(files.values(), key=lambda nodes: _sort_key(nodes, totals))
    row_count = _visible_count(ranked, _MOST_KERNELS)
    for nodes in ranked[:row_count]:
        node = nodes[0]
        yield (
            f"| {_link(node)} | {len(nodes)} | {format_shapes(OutlineItem((node,)))} "
            f"| {flops(node.flops)} | {share(node.flops * len(nodes), totals[0])} "
            f"| {size(node.bytes)} "
            f"| {share(node.bytes * len(nodes), totals[1])} | {_intensity(node)} |"
        )
    if hidden := ranked[row_count:]:
        hidden_flops = sum(node.flops for nodes in hidden for node in nodes)
        hidden_bytes = sum(node.bytes for nodes in hidden for node in nodes)
        yield (
            f"| {len(hidden)} more | {sum(map(len, hidden))} | | {flops(hidden_flops)} in all "
            f"| {share(hidden_flops, totals[0])} | {size(hidden_bytes)} in all "
            f"| {share(hidden_bytes, totals[1])} | |"
        )
    yield ""


def _visible_count(ranked: Sequence[object], limit: int) -> int:
    """Return how many rows to show: one above the limit rather than a row that says `1 more`."""
    return len(ranked) if len(ranked) == limit + 1 else limit


def _by_file(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Return path of a component file -> its instances."""
    instances_by_path: dict[str, list[Node]] = {}
    for node in nodes:
        instances_by_path.setdefault(node.path, []).append(node)
    return instances_by_path


def _sort_key(nodes: Sequence[Node], totals: tuple[int, int]) -> tuple[float, str]:
    """Return a key that sorts the largest share of the model's FLOPs or bytes first."""
    flops_share = sum(node.flops for node in nodes) / max(totals[0], 1)
    bytes_share = sum(node.bytes for node in nodes) / max(totals[1], 1)
    return -max(flops_share, bytes_share), nodes[0].path


def _link(node: Node) -> str:
    return f"[{workload_name(node)}]({node.path})"


def _intensity(node: Node) -> str:
    value = node.flops / max(node.bytes, 1)
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _operations(operations: Sequence[str]) -> str:
    """Return few operations in order, `conv2d, batch_norm, relu`; of many, the count of each."""
    count = Counter(operations)
    if len(operations) <= 8:
        return ", ".join(operations)
    return ", ".join(name if n == 1 else f"{name} × {n}" for name, n in count.items())


# --- data flow, and parts that do not run ---------------------------------------------------------


def _dataflow_table(outline: Outline) -> Iterator[str]:
    """Yield a table of the tensors that each part of one block reads and gives."""
    block = choose_block(outline, _MOST_STEPS)
    if block is None:
        return
    yield f"## Data flow of {'the ' + block.level if block.id == 'root' else f'`{block.id}`'}"
    yield ""
    yield "| part | reads | gives |"
    yield "| --- | --- | --- |"
    for step in dataflow_steps(outline, block, _MOST_STEPS):
        yield f"| {step.part} | {', '.join(step.reads) or 'weights alone'} | {step.gives} |"
    yield ""


def _inactive_parts(graph: Graph) -> Iterator[str]:
    """Yield a list of the parts of the author's model that do not run in this mode."""
    lines = [*_dropouts(graph), *_running_statistics(graph), *_silent_modules(graph)]
    if lines:
        yield f"## What {graph.mode} mode leaves out"
        yield ""
        yield from (f"- {line}" for line in lines)
        yield ""


def _dropouts(graph: Graph) -> Iterator[str]:
    """Yield the dropouts that do not run: `dropout p=0.2 × 12: blocks.*.drop`."""
    paths_by_dropout: dict[tuple[str, object], list[str]] = {}
    for op in graph.inactive_dropouts:
        if op.arg("p") != 0:
            path = op.scopes[-1].path if op.scopes else "forward"
            paths_by_dropout.setdefault((op.name, op.arg("p")), []).append(path)
    for (name, p), paths in paths_by_dropout.items():
        yield f"{name} p={p} × {len(paths)}: {_path_patterns(paths)}"
    recurrent_dropouts = Counter(
        (op.name, op.arg("dropout")) for op in graph.operations if op.arg("train") is False
    )
    for (name, p), number in recurrent_dropouts.items():
        if p:
            yield f"dropout p={p} between the layers of {name} × {number}"


def _running_statistics(graph: Graph) -> Iterator[str]:
    fixed = [op for op in graph.operations if op.name == "batch_norm"]
    fixed = [op for op in fixed if op.arg("training") is False]
    if fixed:
        yield f"batch statistics: batch_norm × {len(fixed)} takes its running mean and variance"


def _silent_modules(graph: Graph) -> Iterator[str]:
    """Yield the outermost modules that have no operation and no weight in the program."""
    active_paths = {
        scope.path for op in (*graph.operations, *graph.inactive_dropouts) for scope in op.scopes
    }
    read = {graph.states[n].path for op in graph.operations for n in op.refs() if n in graph.states}
    active_paths |= {path.rpartition(".")[0] for path in read}
    active_prefixes = {
        ".".join(path.split(".")[:n]) for path in active_paths for n in range(path.count(".") + 2)
    }
    silent = [path for path in graph.classes if path and path not in active_prefixes]
    outermost = [p for p in silent if p.rpartition(".")[0] not in {*silent}]
    by_class: dict[str, list[str]] = {}
    for path in outermost:
        has_children = any(inner.startswith(f"{path}.") for inner in silent)
        if has_children or graph.classes[path] not in _INERT_CLASSES:
            by_class.setdefault(graph.classes[path], []).append(path)
    for name, paths in by_class.items():
        yield f"{name} × {len(paths)}, of which no operation runs: {_path_patterns(paths)}"


def _path_patterns(paths: Sequence[str]) -> str:
    """Return paths, with a star for those that differ in a number: `blocks.*.drop`, `head.drop`."""
    starred: dict[str, list[str]] = {}
    for path in paths:
        starred.setdefault(re.sub(r"(?<![^.])\d+(?![^.])", "*", path), []).append(path)
    patterns = [star if len(members) > 1 else members[0] for star, members in starred.items()]
    return join_first([f"`{path}`" for path in patterns], _MOST_MODULES)


def _notes(tree: Tree, program: Program) -> Iterator[str]:
    notes = [*program.graph.notes, *(f"specialised: {s}" for s in tree.metadata.specialisations)]
    if tree.metadata.unused_weights:
        notes.append("weights that forward never reads: " + ", ".join(tree.metadata.unused_weights))
    if notes:
        yield "## Notes"
        yield ""
        yield from (f"- {note}" for note in notes)
        yield ""
