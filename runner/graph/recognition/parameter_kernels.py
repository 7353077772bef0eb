"""Joins kernels that are computed from parameters alone with their only readers, or names them."""

from runner.graph.recognition.grouping import Grouping

_LOOK_UPS = {"index", "index_select", "embedding"}
_PREPARING = {"pointwise", "copy"}
"""Kinds of kernels that only change a parameter's values or layout."""
_ADJECTIVES = {"mul": "scaled", "div": "scaled", "neg": "negative", "clamp": "clamped"}
"""Operation -> the word that it adds to the name of the operation that it is joined with."""


def join_parameter_kernels(grouping: Grouping) -> None:
    """Join each kernel of parameters alone with its only reader, if both are one operation.

    A scale, a cast or a concatenation of weights belongs to the attention or the layer that reads
    it; a number times a function of a parameter is one operation.
    """
    groups, of_parameters = grouping.contracted.groups, grouping.flow.is_input_free
    waiting = [g for g in grouping.groups_in_order() if all(of_parameters[i] for i in groups[g])]
    while waiting:
        group = waiting.pop(0)
        if not groups[group]:
            continue
        name, reader = grouping.names[group], grouping.only_reader(group)
        if name in _LOOK_UPS and _biases_attention(grouping, group):
            grouping.names[group] = "relative_position_bias"
            grouping.reasons[group] = "a look-up of the bias that an attention adds to its scores"
        elif reader is not None and grouping.kind(group) in _PREPARING:
            joint_name = _joint_name(grouping, group, reader)
            if joint_name is not None:
                reason = f"{grouping.reasons[reader]}; what it makes of parameters belongs to it"
                was_joined = grouping.join((group, reader), joint_name, reason)
                if was_joined and all(of_parameters[i] for i in groups[min(group, reader)]):
                    waiting.insert(0, min(group, reader))


def _joint_name(grouping: Grouping, group: int, reader: int) -> str | None:
    """Return the joint name of a kernel of parameters and its reader; None to keep both."""
    name, reader_name = grouping.names[group], grouping.names[reader]
    reads_nothing_else = not grouping.operands(group)
    if reads_nothing_else and (
        reader_name.endswith("attention") or grouping.kind(group) == "copy" or name == "cast"
    ):
        return reader_name
    if grouping.kind(reader) != "pointwise" or len(grouping.operands(reader)) > 1:
        return None
    if reader_name in _ADJECTIVES:
        return f"{_ADJECTIVES[reader_name]}_{name}"
    return f"{_ADJECTIVES[name]}_{reader_name}" if name in _ADJECTIVES else None


def _biases_attention(grouping: Grouping, group: int) -> bool:
    """Return whether only attentions read a kernel, directly or through pointwise operations."""
    readers = grouping.readers(group)
    return bool(readers) and all(
        reader >= 0
        and (
            grouping.names[reader].endswith("attention")
            or (grouping.kind(reader) == "pointwise" and _biases_attention(grouping, reader))
        )
        for reader in readers
    )
