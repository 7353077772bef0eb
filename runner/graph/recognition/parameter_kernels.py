"""Kernels made from parameters alone: each joins its only reader, or has a name of its own."""

from runner.graph.recognition.grouping import Grouping

_LOOK_UPS = {"index", "index_select", "embedding"}
_SHAPED = {"pointwise", "copy"}
_ADJECTIVES = {"mul": "scaled", "div": "scaled", "neg": "negative", "clamp": "clamped"}


def owned(grouping: Grouping) -> None:
    """Join what is made from parameters alone to its only reader, where that is no work of its own.

    A scale, a cast or a concatenation of weights belongs to the attention or the layer that reads
    it; a number times a function of a parameter is one operation.
    """
    groups, of_parameters = grouping.contracted.groups, grouping.flow.is_input_free
    waiting = [g for g in grouping.alive() if all(of_parameters[i] for i in groups[g])]
    while waiting:
        group = waiting.pop(0)
        if not groups[group]:
            continue
        name, reader = grouping.names[group], grouping.only_reader(group)
        if name in _LOOK_UPS and _biases_attention(grouping, group):
            grouping.names[group] = "relative_position_bias"
            grouping.reasons[group] = "a look-up of the bias that an attention adds to its scores"
        elif reader is not None and grouping.kind(group) in _SHAPED:
            together = _together(grouping, group, reader)
            if together is not None:
                reason = f"{grouping.reasons[reader]}; what it makes of parameters belongs to it"
                joined = grouping.join((group, reader), together, reason)
                if joined and all(of_parameters[i] for i in groups[min(group, reader)]):
                    waiting.insert(0, min(group, reader))


def _together(grouping: Grouping, group: int, reader: int) -> str | None:
    """What a kernel of parameters alone and its reader are called as one; None if they are two."""
    name, other = grouping.names[group], grouping.names[reader]
    direct = not grouping.operands(group)
    if direct and (other.endswith("attention") or grouping.kind(group) == "copy" or name == "cast"):
        return other
    if grouping.kind(reader) != "pointwise" or len(grouping.operands(reader)) > 1:
        return None
    if other in _ADJECTIVES:
        return f"{_ADJECTIVES[other]}_{name}"
    return f"{_ADJECTIVES[name]}_{other}" if name in _ADJECTIVES else None


def _biases_attention(grouping: Grouping, group: int) -> bool:
    """Whether all that reads it is attention, or works on each of its elements for attention."""
    readers = grouping.readers(group)
    return bool(readers) and all(
        reader >= 0
        and (
            grouping.names[reader].endswith("attention")
            or (grouping.kind(reader) == "pointwise" and _biases_attention(grouping, reader))
        )
        for reader in readers
    )
