"""A layout copy is part of the operation that it serves, its producer's or its only reader's."""

from runner.graph.ir import TensorSpec
from runner.graph.operations import einsum_permutation, is_random
from runner.graph.recognition.grouping import Grouping

_COPIES = {"contiguous", "clone", "reshape", "flatten"}
_SERVING = {"split_heads", "merge_heads"}
"""Copies with a name that still only serve a projection or an attention."""
_NAMES = {"copy", "einsum", *_SERVING}


def layouts(grouping: Grouping) -> None:
    """Join each layout copy; a copy that serves no single operation is called what it does."""
    waiting = grouping.alive()
    while waiting:
        group = waiting.pop(0)
        if not is_layout(grouping, group):
            continue
        partner = _joined(grouping, group)
        if partner is None:
            grouping.names[group] = _name(grouping, group)
        elif is_layout(grouping, min(group, partner)):
            waiting.insert(0, min(group, partner))


def is_layout(grouping: Grouping, group: int) -> bool:
    """Whether a kernel only copies into another layout, by no name or that of heads."""
    if grouping.names[group] not in _NAMES:
        return False
    compute = grouping.compute(group)
    return bool(compute) and all(
        op.name in _COPIES or einsum_permutation(op) is not None for op in compute
    )


def _joined(grouping: Grouping, group: int) -> int | None:
    """The kernel that it joins: its producer where nobody else reads that, or its only reader."""
    operands = list(grouping.operands(group).items())
    value, maker = operands[0] if len(operands) == 1 else ("", None)
    served = maker is not None and grouping.only_reader_of(value) == group
    for partner in (maker if served else None, grouping.only_reader(group)):
        if partner is None or _draws(grouping, partner) or _is_kept(grouping, group, partner):
            continue
        reason = f"{grouping.reasons[partner]}; a copy into another layout belongs to it"
        follows = partner == maker  # which has taken its views already
        if grouping.join((group, partner), grouping.names[partner], reason, views=not follows):
            return partner
    return None


def _is_kept(grouping: Grouping, group: int, reader: int) -> bool:
    """Whether one call of a module keeps a copy for a later call of it, as a cache does."""
    copied, read = (
        {scope for op in grouping.compute(g) for scope in op.scopes} for g in (group, reader)
    )
    paths = {scope.path for scope in copied - read}
    return any(scope.path in paths for scope in read - copied)


def _draws(grouping: Grouping, group: int) -> bool:
    """Whether random numbers are the point of a kernel: not where an attention drops some."""
    random = any(map(is_random, grouping.compute(group)))
    return random and not grouping.names[group].endswith("attention")


def _name(grouping: Grouping, group: int) -> str:
    """Which views a copy makes real: told from the strides of what it reads, or of its result."""
    if grouping.names[group] in _SERVING:
        return grouping.names[group]
    compute = grouping.compute(group)
    values = grouping.flow.graph.values
    spec = values[next(compute[0].refs())]
    if spec.contiguous:
        spec = values[compute[-1].outputs[0]]
    if spec.contiguous:
        return "copy"
    return _order(spec)


def _order(spec: TensorSpec) -> str:
    steps = [
        step for size, step in zip(spec.shape, spec.effective_strides, strict=True) if size > 1
    ]
    if not all(steps):
        return "expand_copy"
    if spec.as_dense().effective_strides != spec.effective_strides:
        return "slice_copy"
    ranked = sorted(range(len(steps)), key=lambda d: -steps[d])
    return "transpose_copy" if sum(i != d for i, d in enumerate(ranked)) == 2 else "permute_copy"
