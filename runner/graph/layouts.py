"""A layout copy is part of the operation that it serves, its producer's or its only reader's."""

from runner.graph.grouping import Grouping
from runner.graph.ir import TensorSpec
from runner.graph.operations import field_name, is_random, reordered

_COPIES = {"contiguous", "clone", "reshape", "flatten"}
_SERVING = {"split_heads", "merge_heads"}
"""Copies with a name that still only serve a projection or an attention."""


def layouts(grouping: Grouping) -> None:
    """Join each layout copy; a copy that serves no single operation is called what it does."""
    for group in grouping.alive():
        if is_layout(grouping, group) and not _joined(grouping, group):
            grouping.names[group] = _name(grouping, group)


def is_layout(grouping: Grouping, group: int) -> bool:
    """Whether a kernel is one copy in another layout that has no name, or that of heads."""
    compute = grouping.compute(group)
    if len(compute) != 1:
        return False
    (op,) = compute
    copies = op.name in _COPIES or reordered(op) is not None
    return copies and grouping.names[group] in {field_name(op), *_SERVING}


def _joined(grouping: Grouping, group: int) -> bool:
    """To its producer where nobody else reads that, else to its only reader."""
    makers = list(grouping.operands(group).values())
    maker = makers[0] if len(makers) == 1 else None
    served = maker is not None and grouping.only_reader(maker) == group
    for partner in (maker if served else None, grouping.only_reader(group)):
        if partner is None or any(map(is_random, grouping.compute(partner))):
            continue
        reason = f"{grouping.reasons[partner]}; with a copy of its layout"
        if grouping.join((group, partner), grouping.names[partner], reason):
            return True
    return False


def _name(grouping: Grouping, group: int) -> str:
    """Which views a copy makes real: told from the strides of what it reads, or of its result."""
    if grouping.names[group] in _SERVING:
        return grouping.names[group]
    (op,) = grouping.compute(group)
    values = grouping.flow.graph.values
    spec = values[next(op.refs())]
    if spec.contiguous:
        spec = values[op.outputs[0]]
    if spec.contiguous:
        return "copy"
    return _order(spec)


def _order(spec: TensorSpec) -> str:
    sizes = [(size, stride) for size, stride in zip(spec.shape, spec.steps, strict=True) if size > 1]
    if any(not stride for _, stride in sizes):
        return "expand_copy"
    if spec.dense().steps != spec.steps:
        return "slice_copy"
    ranked = sorted(range(len(sizes)), key=lambda d: -sizes[d][1])
    return "transpose_copy" if sum(i != d for i, d in enumerate(ranked)) == 2 else "permute_copy"
