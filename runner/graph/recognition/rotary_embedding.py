"""Joins the rotations of a query and a key into one `rope` (Su et al., 2021).

Both rotations read one table and are in one call of a module.
"""

from collections.abc import Iterator

from runner.graph.dataflow import values_read
from runner.graph.ir import Scope
from runner.graph.recognition.grouping import Grouping
from runner.graph.recognition.unify import CASTS


def join_rotations(grouping: Grouping) -> None:
    """Join each rotation with the next one by the same table in the same module call."""
    waiting: dict[tuple[object, ...], int] = {}
    for group in grouping.groups_in_order():
        if grouping.role(group) != "rope":
            continue
        _include_final_view(grouping, group)
        _join_casts(grouping, group)
        key = (_module_calls(grouping, group), _table_values(grouping, group))
        before = waiting.pop(key, None)
        reason = "rope: query and key, rotated by one table"
        if before is None or not grouping.join((before, group), "rope", reason, results=2):
            waiting[key] = group


def _include_final_view(grouping: Grouping, group: int) -> None:
    """Include the view that flattens the rotated pairs again, `torch.stack(...).flatten(-2)`.

    A rotation returns the shape that it was given.
    """
    flow, members = grouping.flow, grouping.contracted.groups[group]
    for name in grouping.results(members):
        users = flow.consumers.get(name, ())
        if len(users) != 1 or name in flow.returned:
            continue
        (user,) = users
        op, pairs = flow.operations[user], flow.graph.values[name].shape
        flattened = flow.graph.values[op.outputs[0]].shape
        is_free_view = op.view and user not in grouping.contracted.group_of
        if is_free_view and pairs[-1:] == (2,) and flattened == (*pairs[:-2], pairs[-2] * 2):
            grouping.contracted.extend(group, (user,))


def _join_casts(grouping: Grouping, group: int) -> None:
    """Join the cast of a rotated tensor back to its own dtype, and the cast to that of the table.

    A rotation returns the dtype that it was given: `rotate(x.float(), cos, sin).type_as(x)`.
    """
    values, back = grouping.flow.graph.values, grouping.only_reader(group)
    if back is None or not _is_cast_in_call(grouping, back, group):
        return
    rotated = _rotated_value(grouping, group)
    (result,) = grouping.results(grouping.contracted.groups[back])
    if values[result].dtype != values[_value_before_casts(grouping, rotated)].dtype:
        return
    parts, maker = [group, back], grouping.maker(rotated)[1]
    if (
        maker is not None
        and grouping.only_reader(maker) == group
        and _is_cast_in_call(grouping, maker, group)
    ):
        parts.append(maker)
    grouping.join(parts, "rope", grouping.reasons[group])


def _is_cast_in_call(grouping: Grouping, group: int, other: int) -> bool:
    """Return whether a kernel is a cast, in the same module call as another kernel."""
    same_call = _module_calls(grouping, group) == _module_calls(grouping, other)
    return grouping.role(group) == "cast" and same_call


def _module_calls(grouping: Grouping, group: int) -> tuple[Scope, ...]:
    """Return the calls of the author's modules that a kernel is in."""
    return tuple(s for s in grouping.compute_operations(group)[-1].scopes if not s.builtin)


def _table_values(grouping: Grouping, group: int) -> tuple[str, ...]:
    """Return the values that give the angles: all that a rotation reads but the rotated tensor."""
    rotated = _rotated_value(grouping, group)
    values = _values_from_outside(grouping, group)
    table_values = (name for name in values if grouping.maker(name)[0] != rotated)
    return tuple(dict.fromkeys(_value_before_casts(grouping, name) for name in table_values))


def _rotated_value(grouping: Grouping, group: int) -> str:
    """Return the value that a rotation rotates, as it is before views.

    It depends on an input. If the table does too, the rotated tensor is the largest value; of
    equally large ones, the one with the fewest readers.
    """
    flow, operands = grouping.flow, grouping.operands(group)
    rotated = max(
        (n for n in _values_from_outside(grouping, group) if grouping.maker(n)[0] in operands),
        key=lambda name: (flow.graph.values[name].numel, -len(flow.consumers[name])),
    )
    return grouping.maker(rotated)[0]


def _values_from_outside(grouping: Grouping, group: int) -> Iterator[str]:
    """Yield the values that a kernel reads from outside."""
    members, flow = grouping.contracted.groups[group], grouping.flow
    for index in sorted(members):
        for name in values_read(flow.operations[index]):
            if flow.producer.get(name) not in members:
                yield name


def _value_before_casts(grouping: Grouping, name: str) -> str:
    """Return the value behind views and casts."""
    flow = grouping.flow
    while (index := flow.producer.get(name)) is not None:
        op = flow.operations[index]
        if not op.view and op.name not in CASTS:
            break
        name = next(op.refs())
    return name
