"""Joins each layout copy with the operation that it serves: its producer or its only reader."""

from runner.graph.ir import TensorSpec
from runner.graph.operations import einsum_permutation, is_random
from runner.graph.recognition.grouping import Grouping

_COPIES = {"contiguous", "clone", "reshape", "flatten"}
_SERVING = {"split_heads", "merge_heads"}
"""Copies that have a name and still only serve a projection or an attention."""
_NAMES = {"copy", "einsum", *_SERVING}
"""Names of kernels that may be layout copies."""


def join_layout_copies(grouping: Grouping) -> None:
    """Join each layout copy; one that serves no single operation gets a name of its own."""
    waiting = grouping.groups_in_order()
    while waiting:
        group = waiting.pop(0)
        if not is_layout_copy(grouping, group):
            continue
        partner = _join_partner(grouping, group)
        if partner is None:
            grouping.names[group] = _copy_name(grouping, group)
        elif is_layout_copy(grouping, min(group, partner)):
            waiting.insert(0, min(group, partner))


def is_layout_copy(grouping: Grouping, group: int) -> bool:
    """Return whether a kernel only copies into another layout.

    A copy with a name of its own is none, except where it splits or merges heads.
    """
    if grouping.names[group] not in _NAMES:
        return False
    compute = grouping.compute_operations(group)
    return bool(compute) and all(
        op.name in _COPIES or einsum_permutation(op) is not None for op in compute
    )


def _join_partner(grouping: Grouping, group: int) -> int | None:
    """Join a copy with its producer, if nobody else reads that, or with its only reader.

    Returns the kernel that it joined; None if there is none.
    """
    operands = list(grouping.operands(group).items())
    value, maker = operands[0] if len(operands) == 1 else ("", None)
    is_only_reader = maker is not None and grouping.only_reader_of(value) == group
    for partner in (maker if is_only_reader else None, grouping.only_reader(group)):
        if (
            partner is None
            or _draws_random_numbers(grouping, partner)
            or _is_cached(grouping, group, partner)
        ):
            continue
        reason = f"{grouping.reasons[partner]}; a copy into another layout belongs to it"
        is_producer = partner == maker  # the maker has taken its own views already
        if grouping.join((group, partner), grouping.names[partner], reason, views=not is_producer):
            return partner
    return None


def _is_cached(grouping: Grouping, group: int, reader: int) -> bool:
    """Return whether a module call keeps a copy for a later call of the module, as a cache does."""
    copy_scopes, reader_scopes = (
        {scope for op in grouping.compute_operations(g) for scope in op.scopes}
        for g in (group, reader)
    )
    paths = {scope.path for scope in copy_scopes - reader_scopes}
    return any(scope.path in paths for scope in reader_scopes - copy_scopes)


def _draws_random_numbers(grouping: Grouping, group: int) -> bool:
    """Return whether a kernel is there to draw random numbers; an attention with dropout is not."""
    random = any(map(is_random, grouping.compute_operations(group)))
    return random and not grouping.names[group].endswith("attention")


def _copy_name(grouping: Grouping, group: int) -> str:
    """Return a copy's name, after the views that the strides of its operand or result show."""
    if grouping.names[group] in _SERVING:
        return grouping.names[group]
    compute = grouping.compute_operations(group)
    values = grouping.flow.graph.values
    spec = values[next(compute[0].refs())]
    if spec.contiguous:
        spec = values[compute[-1].outputs[0]]
    if spec.contiguous:
        return "copy"
    return _layout_name(spec)


def _layout_name(spec: TensorSpec) -> str:
    """Return the name of the copy that makes a layout contiguous."""
    steps = [
        step for size, step in zip(spec.shape, spec.effective_strides, strict=True) if size > 1
    ]
    if not all(steps):
        return "expand_copy"
    if spec.as_dense().effective_strides != spec.effective_strides:
        return "slice_copy"
    order = sorted(range(len(steps)), key=lambda d: -steps[d])
    return "transpose_copy" if sum(i != d for i, d in enumerate(order)) == 2 else "permute_copy"
