"""Finds the author's lists whose tensors are appended one by one and joined by `torch.cat`.

`torch.stack` and its like join such lists, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.emit.code.class_body import ForwardItem
from runner.emit.naming.value_names import JOINS, Namer, identifier
from runner.graph.ir import Operation, Ref
from runner.tree.interface import Program

_LONGEST_LITERAL = 4
"""A list of at most so many tensors with different names, joined once, is written as a literal."""


@dataclass(frozen=True, slots=True)
class GrowingList:
    """A list to which each tensor is appended when it is made; every join reads all of the list."""

    name: str
    """The author's variable."""
    members: tuple[str, ...]
    """Values that the list holds at the end, in order."""
    makers: tuple[int, ...]
    """Index of the statement that makes each member; -1 for a parameter of forward."""
    joins: tuple[int, ...]
    """Indices of the statements that join what the list holds by then."""


def growing_lists(
    namer: Namer, statements: Sequence[ForwardItem], makers: dict[str, int]
) -> list[GrowingList]:
    """Return the lists of a forward.

    `makers`: index of the statement that makes each value that has a variable.
    """
    groups: dict[tuple[str, str], list[tuple[int, tuple[str, ...]]]] = {}
    for position, item in enumerate(statements):
        op = _find_join(namer.program, item)
        if op is None or op.origin is None or not op.origin.joined_list:
            continue
        members = tuple(op.refs())
        groups.setdefault((op.origin.joined_list, members[0]), []).append((position, members))
    lists = []
    for (name, _), joins in groups.items():
        members = joins[-1][1]
        variables = {namer.name_of(n) for n in members}
        if len(joins) == 1 and len(members) <= _LONGEST_LITERAL and len(variables) > 1:
            continue
        if len({*members}) == len(members) and _grows(joins, members, makers):
            member_makers = tuple(makers[n] for n in members)
            lists.append(
                GrowingList(
                    identifier(name),
                    members,
                    member_makers,
                    tuple(position for position, _ in joins),
                )
            )
    return lists


def _find_join(program: Program, item: ForwardItem) -> Operation | None:
    """Return the join of a list of tensors that an item is; None if it is anything else."""
    if isinstance(item, int):
        operations: tuple[int, ...] = (item,)
    else:
        operations = item.part.operations
    if len(operations) != 1:
        return None
    op = program.graph.operations[operations[0]]
    if op.name not in JOINS or not isinstance(op.args[0], tuple):
        return None
    return op if all(isinstance(a, Ref) for a in op.args[0]) else None


def _grows(
    joins: Sequence[tuple[int, tuple[str, ...]]], members: Sequence[str], makers: dict[str, int]
) -> bool:
    """Return whether each join reads exactly the members that are made before it, in order."""
    if not all(name in makers for name in members):
        return False
    positions = [makers[name] for name in members]
    return positions == sorted(positions) and all(
        operands
        == tuple(n for n, maker in zip(members, positions, strict=True) if maker < position)
        for position, operands in joins
    )
