"""Lists to which an author appends tensors and which `torch.cat` or `torch.stack` joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.emit.code.class_body import Item
from runner.emit.naming.value_names import JOINS, Namer, identifier
from runner.graph.ir import Operation, Ref
from runner.tree.interface import Program

_LONGEST_LITERAL = 4
"""Up to this many tensors of several names, joined once, are listed where they are joined."""


@dataclass(frozen=True, slots=True)
class GrowingList:
    """A list of tensors, each appended where it is made; every join reads all that is in it."""

    name: str
    """The author's variable."""
    members: tuple[str, ...]
    made: tuple[int, ...]
    """The statement that makes each member; -1 for a parameter of forward."""
    joins: tuple[int, ...]
    """The statements that join what the list holds by then."""


def growing_lists(
    namer: Namer, statements: Sequence[Item], made: dict[str, int]
) -> list[GrowingList]:
    """The lists of a forward; `made` says which statement makes each value that has a variable."""
    groups: dict[tuple[str, str], list[tuple[int, tuple[str, ...]]]] = {}
    for s, item in enumerate(statements):
        op = _join(namer.program, item)
        if op is None or op.origin is None or not op.origin.joined_list:
            continue
        members = tuple(op.refs())
        groups.setdefault((op.origin.joined_list, members[0]), []).append((s, members))
    lists = []
    for (name, _), joins in groups.items():
        members = joins[-1][1]
        variables = {namer.of(n) for n in members}
        if len(joins) == 1 and len(members) <= _LONGEST_LITERAL and len(variables) > 1:
            continue
        if len({*members}) == len(members) and _grows(joins, members, made):
            places = tuple(made[n] for n in members)
            lists.append(GrowingList(identifier(name), members, places, tuple(s for s, _ in joins)))
    return lists


def _join(program: Program, item: Item) -> Operation | None:
    """The operation that joins tensors and nothing else, of an operation or a kernel."""
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
    joins: Sequence[tuple[int, tuple[str, ...]]], members: Sequence[str], made: dict[str, int]
) -> bool:
    """Whether each join reads the members that are made before it, in order, and no others."""
    if not all(name in made for name in members):
        return False
    places = [made[name] for name in members]
    return places == sorted(places) and all(
        read == tuple(n for n, place in zip(members, places, strict=True) if place < s)
        for s, read in joins
    )
