"""The line of the problem file on which the call of each part stands."""

from __future__ import annotations

from collections.abc import Iterator

from runner.graph.ir import Origin
from runner.graph.operations import kind
from runner.tree.interface import Program
from runner.tree.part import Part


def call_lines(program: Program, root: Part) -> dict[int, int | None]:
    """The line in the parent's forward that calls each part, by the part's id().

    None where a library's code calls it. The root has the line that computes its result.
    """
    lines = {id(root): _line(program, root, root)}
    for parent in root.walk():
        lines.update((id(child), _line(program, child, parent)) for child in parent.children)
    return lines


def _line(program: Program, part: Part, parent: Part) -> int | None:
    depth = sum(not scope.builtin for scope in parent.scopes)
    origins = list(_origins(program, part, parent))
    if not origins:
        return None
    last = origins[-1]
    if part is parent:
        return last.line if len(last.calls) < 2 else last.calls[0]
    if depth < len(last.calls):
        told = {origin.calls[depth : depth + 1] for origin in _origins(program, parent, parent)}
        if depth < len(last.calls) - 1 or len(told) > 1:
            return last.calls[depth]
    return last.line  # one line of the parent's forward calls a function that does all of it


def _origins(program: Program, part: Part, parent: Part) -> Iterator[Origin]:
    """Where the operations of a part stand that the parent's forward runs, layouts left out."""
    operations = [program.graph.operations[i] for i in part.operations]
    inside = [op for op in operations if op.scopes[: len(parent.scopes)] == parent.scopes]
    work = [op for op in inside if kind(op) not in {"view", "copy"}]
    for op in work or inside or operations:
        if op.origin is not None and op.origin.line is not None:
            yield op.origin
