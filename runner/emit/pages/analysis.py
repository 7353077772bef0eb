"""Write `decomposition_analysis.md`, the page that explains a decomposition to a colleague."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from runner.emit.pages.block_dataflow import block_to_follow, steps
from runner.emit.pages.diagram import text_tree
from runner.emit.pages.model_summary import portrait
from runner.emit.pages.outline import Item, Outline, shapes, stem
from runner.graph.ir import Graph, TensorSpec
from runner.quantities import flops, pluralize, share, size
from runner.tree.document import Node, Tree
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.verification_section import NOT_VERIFIED

_MOST_LINES = 108
"""Lines of the page; verification adds a few, and it stays below 120 for any model."""
_FEWEST_LINES_OF_TREE = 20
_MOST_FUSIONS = 10
_MOST_KERNELS = 14
_MOST_STEPS = 14
_MOST_MODULES = 6
_NOTHING = {"Identity", "ModuleList", "ModuleDict", "Sequential", "ParameterList"}
"""Classes of modules that run no operation of their own in any mode."""


def write_analysis(tree: Tree, program: Program, root: Part) -> str:
    """Return the text of `decomposition_analysis.md`."""
    outline = Outline(tree)
    head = list(_head(tree, program, root))
    tables = [
        *_fusions(tree),
        *_kernels(tree),
        *_flow(outline),
        *_left_out(program.graph),
        *_notes(tree, program),
    ]
    left = _MOST_LINES - len(head) - len(tables)
    return "\n".join([*head, *_hierarchy(outline, max(left, _FEWEST_LINES_OF_TREE)), *tables])


def _head(tree: Tree, program: Program, root: Part) -> Iterator[str]:
    meta, top = tree.metadata, tree.root
    yield f"# {meta.source_file.removesuffix('.py')}"
    yield ""
    yield portrait(tree, program, root)
    yield ""
    yield NOT_VERIFIED
    yield ""
    yield f"- source: class `{meta.model_name}` of [original.py](original.py), {meta.source_level}"
    yield f"- inputs: {_tensors(top.input_shapes, top.input_dtypes)}"
    yield f"- outputs: {_tensors(top.output_shapes, top.output_dtypes)}"
    yield f"- weights: {_weights(program.graph)}"
    moved = sum(node.bytes for node in _instances(tree, "kernel"))
    peak = f"{size(meta.estimated_peak_bytes)} of memory at its peak"
    yield f"- a forward pass: {flops(top.flops)}, {size(moved)} moved by its kernels, {peak}"
    levels = ", ".join(pluralize(count, level) for level, count in meta.by_level.items() if count)
    more = meta.kernel_instances > meta.unique_kernels
    runs = f", which run {meta.kernel_instances} times" if more else ""
    yield f"- files: {levels}{runs}"
    yield f"- captured in {meta.mode} mode with torch {meta.torch_version}{_rung(tree)}"
    yield ""


def _rung(tree: Tree) -> str:
    """How the program was found, where that was not the usual way."""
    rungs = {
        "fake": "",
        "real_parameters": ", with real weights, as it needs their values",
        "concrete": ", by running it on real inputs, as it needs their values",
    }
    return rungs[tree.metadata.capture]


def _tensors(told: dict[str, list[int]], dtypes: dict[str, str]) -> str:
    return (
        ", ".join(
            f"`{name}` {'x'.join(map(str, shape)) or 'scalar'} {dtypes[name]}"
            for name, shape in told.items()
        )
        or "none"
    )


def _weights(graph: Graph) -> str:
    """`11,689,512 parameters, 44.6 MiB float32; 9,620 numbers in buffers, 37.7 KiB`."""
    different = {graph.tied.get(s.path, s.path): (s, name) for name, s in graph.states.items()}
    found: dict[str, list[TensorSpec]] = {}
    for state, name in different.values():
        kind = "parameter" if state.kind == "parameter" else "buffer"
        found.setdefault(kind, []).append(graph.values[name])
    told = [_amount(specs, kind) for kind, specs in sorted(found.items(), reverse=True)]
    return "; ".join(told) or "none"


def _amount(specs: Sequence[TensorSpec], kind: str) -> str:
    number = sum(spec.numel for spec in specs)
    dtypes = ", ".join(sorted({spec.dtype for spec in specs}))
    what = "parameters" if kind == "parameter" else "numbers in buffers and constants"
    return f"{number:,} {what}, {size(sum(spec.nbytes for spec in specs))} of {dtypes}"


def _instances(tree: Tree, level: str) -> list[Node]:
    return [node for node in tree.nodes.values() if node.level == level]


def _hierarchy(outline: Outline, most: int) -> Iterator[str]:
    """The tree, shapes at the right, in at most so many lines."""
    frame = ["## Parts", "", "```text"], ["```", ""]
    yield from frame[0]
    yield from text_tree(outline, most - len(frame[0]) - len(frame[1]))
    yield from frame[1]


# --- tables ---------------------------------------------------------------------------------------


def _fusions(tree: Tree) -> Iterator[str]:
    """A table of the fusions below the root, the largest first."""
    files = _by_file(node for node in _instances(tree, "fusion") if node.children)
    files.pop(tree.root.path, None)
    if not files:
        return
    whole = tree.root.flops, sum(node.bytes for node in _instances(tree, "kernel"))
    yield "## Fusions"
    yield ""
    yield (
        "Of one instance: `bytes` is what its kernels move, `bytes as one` what one kernel for all "
        "would. Shares are those of all instances (×) in the whole."
    )
    yield ""
    yield "| fusion | × | kernels | FLOPs | share | bytes | bytes as one |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    ranked = sorted(files.values(), key=lambda nodes: _rank(nodes, whole))
    shown = _shown(ranked, _MOST_FUSIONS)
    for nodes in ranked[:shown]:
        node = nodes[0]
        apart = sum(tree.nodes[child].bytes for child in node.children)
        yield (
            f"| {_link(node)} | {len(nodes)} | {_listed(node.operations)} | {flops(node.flops)} "
            f"| {share(node.flops * len(nodes), whole[0])} | {size(apart)} | {size(node.bytes)} |"
        )
    if rest := ranked[shown:]:
        work = sum(node.flops for nodes in rest for node in nodes)
        yield (
            f"| {len(rest)} more | {sum(map(len, rest))} | | {flops(work)} in all "
            f"| {share(work, whole[0])} | | |"
        )
    yield ""


def _kernels(tree: Tree) -> Iterator[str]:
    """A table of the kernel files, the largest first."""
    files = _by_file(_instances(tree, "kernel"))
    whole = tree.root.flops, sum(node.bytes for node in _instances(tree, "kernel"))
    yield "## Kernels"
    yield ""
    yield (
        "FLOPs, bytes and FLOP/B are of one instance. Shares are those of all instances (×) in the "
        "whole; the largest comes first."
    )
    yield ""
    yield "| kernel | × | tensors | FLOPs | share | bytes | share | FLOP/B |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    ranked = sorted(files.values(), key=lambda nodes: _rank(nodes, whole))
    shown = _shown(ranked, _MOST_KERNELS)
    for nodes in ranked[:shown]:
        node = nodes[0]
        yield (
            f"| {_link(node)} | {len(nodes)} | {shapes(Item((node,)))} | {flops(node.flops)} "
            f"| {share(node.flops * len(nodes), whole[0])} | {size(node.bytes)} "
            f"| {share(node.bytes * len(nodes), whole[1])} | {_intensity(node)} |"
        )
    if rest := ranked[shown:]:
        work = sum(node.flops for nodes in rest for node in nodes)
        moved = sum(node.bytes for nodes in rest for node in nodes)
        yield (
            f"| {len(rest)} more | {sum(map(len, rest))} | | {flops(work)} in all "
            f"| {share(work, whole[0])} | {size(moved)} in all | {share(moved, whole[1])} | |"
        )
    yield ""


def _shown(ranked: Sequence[object], most: int) -> int:
    """How many rows are shown: one more instead of a row that says `1 more`."""
    return len(ranked) if len(ranked) == most + 1 else most


def _by_file(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """The instances of each component file."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.path, []).append(node)
    return found


def _rank(nodes: Sequence[Node], whole: tuple[int, int]) -> tuple[float, str]:
    """The largest share of the whole's FLOPs or bytes first."""
    work = sum(node.flops for node in nodes) / max(whole[0], 1)
    moved = sum(node.bytes for node in nodes) / max(whole[1], 1)
    return -max(work, moved), nodes[0].path


def _link(node: Node) -> str:
    return f"[{stem(node)}]({node.path})"


def _intensity(node: Node) -> str:
    value = node.flops / max(node.bytes, 1)
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _listed(operations: Sequence[str]) -> str:
    """`conv2d, batch_norm, relu`; what is there several times is counted."""
    count = Counter(operations)
    if len(operations) <= 8:
        return ", ".join(operations)
    return ", ".join(name if n == 1 else f"{name} × {n}" for name, n in count.items())


# --- data flow, and what is left out --------------------------------------------------------------


def _flow(outline: Outline) -> Iterator[str]:
    """Write the table of what each part of one block reads and gives."""
    block = block_to_follow(outline, _MOST_STEPS)
    if block is None:
        return
    yield f"## Data flow of {'the ' + block.level if block.id == 'root' else f'`{block.id}`'}"
    yield ""
    yield "| part | reads | gives |"
    yield "| --- | --- | --- |"
    for step in steps(outline, block, _MOST_STEPS):
        yield f"| {step.part} | {', '.join(step.reads) or 'weights alone'} | {step.gives} |"
    yield ""


def _left_out(graph: Graph) -> Iterator[str]:
    """List what the author's model has and a forward pass in this mode does not run."""
    lines = [*_dropouts(graph), *_running_statistics(graph), *_silent_modules(graph)]
    if lines:
        yield f"## What {graph.mode} mode leaves out"
        yield ""
        yield from (f"- {line}" for line in lines)
        yield ""


def _dropouts(graph: Graph) -> Iterator[str]:
    """`dropout p=0.2 × 12: blocks.*.drop`."""
    found: dict[tuple[str, object], list[str]] = {}
    for op in graph.dropped:
        if op.arg("p") != 0:
            path = op.scopes[-1].path if op.scopes else "forward"
            found.setdefault((op.name, op.arg("p")), []).append(path)
    for (name, p), paths in found.items():
        yield f"{name} p={p} × {len(paths)}: {_patterns(paths)}"
    inside = Counter(
        (op.name, op.arg("dropout")) for op in graph.operations if op.arg("train") is False
    )
    for (name, p), number in inside.items():
        if p:
            yield f"dropout p={p} between the layers of {name} × {number}"


def _running_statistics(graph: Graph) -> Iterator[str]:
    fixed = [op for op in graph.operations if op.name == "batch_norm"]
    fixed = [op for op in fixed if op.arg("training") is False]
    if fixed:
        yield f"batch statistics: batch_norm × {len(fixed)} takes its running mean and variance"


def _silent_modules(graph: Graph) -> Iterator[str]:
    """Modules of which no operation and no weight is in the program, the outermost ones."""
    seen = {scope.path for op in (*graph.operations, *graph.dropped) for scope in op.scopes}
    read = {graph.states[n].path for op in graph.operations for n in op.refs() if n in graph.states}
    seen |= {path.rpartition(".")[0] for path in read}
    used = {".".join(path.split(".")[:n]) for path in seen for n in range(path.count(".") + 2)}
    silent = [path for path in graph.classes if path and path not in used]
    outermost = [p for p in silent if p.rpartition(".")[0] not in {*silent}]
    by_class: dict[str, list[str]] = {}
    for path in outermost:
        holds = any(below.startswith(f"{path}.") for below in silent)
        if holds or graph.classes[path] not in _NOTHING:
            by_class.setdefault(graph.classes[path], []).append(path)
    for name, paths in by_class.items():
        yield f"{name} × {len(paths)}, of which no operation runs: {_patterns(paths)}"


def _patterns(paths: Sequence[str]) -> str:
    """Paths, those that differ in a number as one with a star: `blocks.*.drop`, `head.drop`."""
    starred: dict[str, list[str]] = {}
    for path in paths:
        starred.setdefault(re.sub(r"(?<![^.])\d+(?![^.])", "*", path), []).append(path)
    found = [star if len(same) > 1 else same[0] for star, same in starred.items()]
    more = f" and {len(found) - _MOST_MODULES} more" if len(found) > _MOST_MODULES else ""
    return ", ".join(f"`{path}`" for path in found[:_MOST_MODULES]) + more


def _notes(tree: Tree, program: Program) -> Iterator[str]:
    notes = [*program.graph.notes, *(f"specialised: {s}" for s in tree.metadata.specialisations)]
    if tree.metadata.unused_weights:
        notes.append("weights that forward never reads: " + ", ".join(tree.metadata.unused_weights))
    if notes:
        yield "## Notes"
        yield ""
        yield from (f"- {note}" for note in notes)
        yield ""
