"""Compares two decompositions: levels, kernels, coverage.

They may come from two versions of kdrun, or one of them from a person. Kernels are compared by
their operations and tensors, not by the names of their files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from runner.quantities import flops, pluralize, share
from runner.report.tables import new_table
from runner.report.units import tensors
from runner.tree.document import LEVEL_NUMBER, Node, Tree
from runner.tree.version_1 import read_any_version


@dataclass(frozen=True, slots=True)
class Side:
    """Counts of one of the two decompositions."""

    directory: str
    source_sha256: str
    variant: str | None
    """Original and changes if the problem is a variant, as `level3/x in bf16`; else None."""
    kdrun_version: str
    mode: str
    files: dict[str, int]
    """Number of component files by level."""
    instances: dict[str, int]
    """Number of nodes of the tree by level."""
    operations: dict[str, int]
    """Number of kernel instances by operation."""
    flops: int
    bytes: int
    """Bytes of all kernel instances, as `flops` are FLOPs of all of them."""


@dataclass(frozen=True, slots=True)
class Change:
    """A kernel that one of the decompositions has more often than the other."""

    kernel: str
    """Name of its file in a decomposition that has it."""
    operation: str
    tensors: str
    a: int
    b: int
    """Number of instances in the second decomposition; `a` is that of the first."""
    flops: int
    """FLOPs of one instance."""


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """The comparison of two decompositions."""

    a: Side
    b: Side
    changes: tuple[Change, ...]
    shared: int
    """Number of kernel instances that both have."""
    shared_flops: int
    rewritten: int
    """Number of unique kernels on the same tensors in both whose code differs."""
    respelled: tuple[str, ...]
    """File names of the first of these kernels."""
    unidentified: int
    """Number of unique kernels on the same tensors in both that a tree gives no identity of."""

    @property
    def same(self) -> bool:
        """Whether the decompositions are equal, apart from file names and from who wrote them."""
        return (
            not self.changes
            and not self.rewritten
            and self.a.source_sha256 == self.b.source_sha256
            and self.a.mode == self.b.mode
            and self.a.files == self.b.files
            and self.a.instances == self.b.instances
        )

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON document, for programs."""
        return {"same": self.same} | asdict(self)


def compare_decompositions(first: Path, second: Path) -> TreeDifference:
    """Compare two decomposition directories.

    Raises:
        DecompositionError: one of the directories is not a decomposition.
    """
    return compare_trees(first, read_any_version(first), second, read_any_version(second))


def compare_trees(first: Path, tree_a: Tree, second: Path, tree_b: Tree) -> TreeDifference:
    """Compare two trees, which were read from these directories."""
    kernels_a, kernels_b = _kernels(tree_a), _kernels(tree_b)
    changes = []
    for key in {**kernels_a, **kernels_b}:
        nodes_a, nodes_b = kernels_a.get(key, []), kernels_b.get(key, [])
        if len(nodes_a) != len(nodes_b):
            node = (nodes_a or nodes_b)[0]
            inputs = tensors(node.input_shapes, node.input_dtypes) or "nothing"
            outputs = tensors(node.output_shapes, node.output_dtypes)
            shapes = f"{inputs} → {outputs}"
            operation = _operation(node)
            changes.append(
                Change(
                    Path(node.path).name, operation, shapes, len(nodes_a), len(nodes_b), node.flops
                )
            )
    changes.sort(key=lambda c: (-abs(c.a - c.b) * c.flops, c.kernel))
    shared = [
        (kernels_a[key][0], min(len(kernels_a[key]), len(kernels_b[key])))
        for key in kernels_a.keys() & kernels_b.keys()
    ]
    rewritten, unidentified = _find_rewritten(kernels_a, kernels_b)
    return TreeDifference(
        a=_side(first, tree_a),
        b=_side(second, tree_b),
        changes=tuple(changes),
        shared=sum(count for _, count in shared),
        shared_flops=sum(node.flops * count for node, count in shared),
        rewritten=len(rewritten),
        respelled=tuple(rewritten[:8]),
        unidentified=unidentified,
    )


def _kernels(tree: Tree) -> dict[Hashable, list[Node]]:
    kernels: dict[Hashable, list[Node]] = {}
    for node in tree.nodes.values():
        if node.level == "kernel":
            kernels.setdefault(_signature(node), []).append(node)
    return kernels


def _signature(node: Node) -> Hashable:
    """Return a kernel's operation and its tensors' shapes and dtypes, without their names."""
    return (
        node.operation,
        tuple(sorted(_tensors(node.input_shapes, node.input_dtypes))),
        tuple(_tensors(node.output_shapes, node.output_dtypes)),
        tuple(sorted(tuple(shape) for shape in node.weight_shapes.values())),
    )


def _tensors(
    shapes: dict[str, list[int]], dtypes: dict[str, str]
) -> list[tuple[tuple[int, ...], str]]:
    return [(tuple(shape), dtypes[name]) for name, shape in shapes.items()]


def _find_rewritten(
    kernels_a: dict[Hashable, list[Node]], kernels_b: dict[Hashable, list[Node]]
) -> tuple[list[str], int]:
    """Return the files of kernels on the same tensors whose identities differ.

    The second value is the number of kernels that have no identity in one of the trees.
    """
    names, unidentified = [], 0
    for key in kernels_a.keys() & kernels_b.keys():
        identities_a, identities_b = (
            {node.identity for node in k[key]} for k in (kernels_a, kernels_b)
        )
        if None in identities_a | identities_b:
            unidentified += 1
        elif identities_a != identities_b:
            names.append(Path(kernels_a[key][0].path).name)
    return sorted(names), unidentified


def _operation(node: Node) -> str:
    return node.operation or Path(node.path).stem


def _side(directory: Path, tree: Tree) -> Side:
    by_level: dict[str, set[str]] = {level: set() for level in LEVEL_NUMBER}
    for node in tree.nodes.values():
        by_level[node.level].add(node.path)
    kernels = [node for node in tree.nodes.values() if node.level == "kernel"]
    counts = Counter(node.level for node in tree.nodes.values())
    return Side(
        directory=str(directory),
        source_sha256=tree.metadata.source_sha256,
        variant=str(tree.metadata.variant) if tree.metadata.variant is not None else None,
        kdrun_version=tree.metadata.kdrun_version,
        mode=tree.metadata.mode,
        files={level: len(paths) for level, paths in by_level.items()},
        instances={level: counts[level] for level in LEVEL_NUMBER},
        operations=dict(Counter(map(_operation, kernels))),
        flops=sum(node.flops for node in kernels),
        bytes=sum(node.bytes for node in kernels),
    )


def show_difference(difference: TreeDifference, console: Console, max_changes: int = 20) -> None:
    """Print levels, then operations that differ, then kernels, those with the most work first."""
    a, b = difference.a, difference.b
    console.print(f"A  {a.directory}  (kdrun {a.kdrun_version}, {a.mode})", soft_wrap=True)
    console.print(f"B  {b.directory}  (kdrun {b.kdrun_version}, {b.mode})", soft_wrap=True)
    for side, text in (("A", a.variant), ("B", b.variant)):
        if text is not None:
            console.print(f"{side} is {text}", soft_wrap=True)
    if a.source_sha256 != b.source_sha256:
        console.print("the problem files differ", style="yellow")
    console.print()
    console.print(_levels(a, b))
    shared_count = f"{pluralize(difference.shared, 'kernel instance')} in both"
    console.print(
        f"\n{shared_count}: {share(difference.shared_flops, a.flops)} of A's FLOPs, "
        f"{share(difference.shared_flops, b.flops)} of B's"
    )
    if difference.rewritten:
        names = ", ".join(difference.respelled)
        console.print(
            f"same tensors, other code: {pluralize(difference.rewritten, 'kernel')} ({names})",
            soft_wrap=True,
        )
    if difference.unidentified:
        kernels = pluralize(difference.unidentified, "kernel")
        are = "is" if difference.unidentified == 1 else "are"
        console.print(f"{kernels} {are} compared by their tensors alone", soft_wrap=True)
    if difference.changes:
        console.print()
        console.print(_changes(difference, max_changes))
    if len(difference.changes) > max_changes:
        console.print(f"... and {len(difference.changes) - max_changes} more; --json has all")
    console.print("\nthe same" if difference.same else "\nthey differ")


def _levels(a: Side, b: Side) -> Table:
    shown = new_table(["", "A", "B", "difference"], ["A", "B", "difference"])
    rows = [(f"{level} files", a.files[level], b.files[level]) for level in LEVEL_NUMBER]
    rows += [(f"{level} instances", a.instances[level], b.instances[level]) for level in a.files]
    names = sorted(a.operations.keys() | b.operations.keys())
    rows += [
        (f"  {name}", a.operations.get(name, 0), b.operations.get(name, 0))
        for name in names
        if a.operations.get(name, 0) != b.operations.get(name, 0)
    ]
    for name, count_a, count_b in rows:
        if count_a or count_b:
            shown.add_row(
                name,
                str(count_a),
                str(count_b),
                f"{count_b - count_a:+d}" if count_b - count_a else "",
            )
    times = f"×{b.flops / a.flops:.3g}" if a.flops and a.flops != b.flops else ""
    shown.add_row("FLOPs", flops(a.flops), flops(b.flops), times)
    return shown


def _changes(difference: TreeDifference, max_changes: int) -> Table:
    shown = new_table(["kernel", "operation", "tensors", "A", "B"], ["A", "B"])
    for change in difference.changes[:max_changes]:
        shown.add_row(change.kernel, change.operation, change.tensors, str(change.a), str(change.b))
    return shown
