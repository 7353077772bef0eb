"""Joins the writes of a loop into one tensor, `out[:, t] = y`, into the one operation they are."""

from collections.abc import Collection

from runner.graph.ir import Operation
from runner.graph.operations import kind
from runner.graph.recognition.grouping import Grouping

_WRITES = {"select_scatter": "stack", "slice_scatter": "cat"}
"""Write into a part of a tensor -> the operation that such writes are if they fill the tensor."""
_REASON = "writes into parts of one tensor that nobody reads in between"


def join_written_pieces(grouping: Grouping) -> None:
    """Join the writes of one module into one tensor, up to each place where somebody reads it."""
    flow = grouping.flow
    tensors: dict[str, str] = {}
    chains: dict[object, list[int]] = {}
    for index, op in enumerate(flow.operations):
        if op.name in _WRITES and index in grouping.contracted.group_of:
            before = flow.base(next(op.refs()))
            tensors[op.outputs[0]] = tensor = tensors.get(before, before)
            chains.setdefault((tensor, op.scopes), []).append(index)
    for writes in chains.values():
        others, segment = set(writes), list[int]()
        for index in writes:
            segment.append(index)
            if _is_read_outside(grouping, index, others):
                _join(grouping, segment)
                segment = []


def _is_read_outside(grouping: Grouping, index: int, writes: Collection[int]) -> bool:
    """Return whether a written tensor is returned, or read by anything but the next writes."""
    flow = grouping.flow
    if not flow.returned.isdisjoint(flow.operations[index].outputs):
        return True
    return any(
        _is_read_outside(grouping, user, writes) if flow.operations[user].view else True
        for user in flow.users[index]
        if user not in writes
    )


def _join(grouping: Grouping, writes: list[int]) -> None:
    groups = list(dict.fromkeys(grouping.contracted.group_of[i] for i in writes))
    if len(groups) > 1:
        name, reason = _filled_tensor_name(grouping, writes) or "slice_update", _REASON
        grouping.join(groups, name, reason)


def _filled_tensor_name(grouping: Grouping, writes: list[int]) -> str | None:
    """Return `stack` or `cat` if the writes fill a tensor that the program creates, each part once.

    A write into a row of a row is two operations, of which the second puts back the whole row.
    """
    flow, values = grouping.flow, grouping.flow.graph.values
    operations = [flow.operations[i] for i in writes]
    created = flow.producer.get(flow.base(next(operations[0].refs())))
    if created is None or kind(flow.operations[created]) != "creation":
        return None
    results = {op.outputs[0] for op in operations}
    pieces = [op for op in operations if flow.base(_source(op)) not in results]
    size = sum(values[_source(op)].numel for op in pieces)
    is_filled = size == values[operations[-1].outputs[0]].numel
    if not is_filled or len({_place(grouping, op) for op in pieces}) < len(pieces):
        return None
    kinds = {_WRITES[op.name] for op in pieces}
    return kinds.pop() if len(kinds) == 1 else None


def _source(op: Operation) -> str:
    """Return the value that an operation writes."""
    return list(op.refs())[1]


def _place(grouping: Grouping, op: Operation) -> object:
    """Return the part of its tensor into which an operation writes: the views, and its indices."""
    flow, views = grouping.flow, list[object]()
    name = next(op.refs())
    while (index := flow.producer.get(name)) is not None and flow.operations[index].view:
        views.append(flow.operations[index].args[1:])
        name = next(flow.operations[index].refs())
    return (*views, op.args[2:])
