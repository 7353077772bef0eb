"""Finds the line of the problem file that calls each part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from runner.graph.ir import Origin
from runner.graph.operations import kind
from runner.tree.interface import Program
from runner.tree.part import Part


def call_lines(program: Program, root: Part) -> dict[int, int | None]:
    """Return the line in the parent's forward that calls each part, by the part's id().

    The line is None if a library's code calls the part. The root has the line that computes its
    result.
    """
    lines = {id(root): _root_line(program, root)}
    for parent in root.walk():
        parent_origins = list(_origins(program, parent, parent)) if parent.children else []
        lines.update(
            (id(child), _line(program, child, parent, parent_origins)) for child in parent.children
        )
    return lines


def _root_line(program: Program, root: Part) -> int | None:
    origins = list(_origins(program, root, root))
    if not origins:
        return None
    return origins[-1].line if len(origins[-1].calls) < 2 else origins[-1].calls[0]


def _line(program: Program, part: Part, parent: Part, parent_origins: list[Origin]) -> int | None:
    """Return the line that calls a part; `parent_origins` locate the parent's own operations."""
    depth = sum(not scope.builtin for scope in parent.scopes)
    origins = list(_origins(program, part, parent))
    if not origins:
        return None
    origin = origins[-1]
    if depth < len(origin.calls):
        calls_on_several_lines = any(
            a.calls[depth : depth + 1] != b.calls[depth : depth + 1]
            for a, b in pairwise(parent_origins)
        )
        if depth < len(origin.calls) - 1 or calls_on_several_lines:
            return origin.calls[depth]
    return origin.line  # one line of the forward calls a function that runs all of it


def _origins(program: Program, part: Part, parent: Part) -> Iterator[Origin]:
    """Yield the locations of a part's operations in the parent's forward.

    Views and copies count only if there are no other operations.
    """
    operations = [program.graph.operations[i] for i in part.operations]
    inside = [op for op in operations if op.scopes[: len(parent.scopes)] == parent.scopes]
    work = [op for op in inside if kind(op) not in {"view", "copy"}]
    for op in work or inside or operations:
        if op.origin is not None and op.origin.line is not None:
            yield op.origin
