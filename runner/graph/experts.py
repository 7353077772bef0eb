"""Experts: linear layers whose weights are picked by an index, and sums of what they give."""

from runner.graph.grouping import Grouping
from runner.graph.guards import CHOICES, follows
from runner.graph.ir import references
from runner.graph.operations import kind

_PICKS = {"index", "index_select", "embedding", "gather"}


def gathered_experts(grouping: Grouping) -> None:
    """Join weights that are picked, their product with the tokens, and a bias picked likewise."""
    for group in grouping.alive():
        compute = grouping.compute(group)
        if len(compute) != 1 or kind(compute[0]) != "contraction":
            continue
        picked = _picked(grouping, group)
        if len(picked) != 1 or not _stacked(grouping, picked[0]):
            continue
        parts = [*picked, group]
        after = grouping.only_reader(group)
        if after is not None and grouping.names[after] == "add":
            biases = _picked(grouping, after)
            parts += [*biases, after] if biases else []
        grouping.join(parts, "expert_linear", "the weights of chosen experts, and their product")


def _picked(grouping: Grouping, group: int) -> list[int]:
    """The makers of what a kernel reads that pick from a weight, for this kernel alone."""
    return [
        maker
        for maker in grouping.operands(group).values()
        if maker is not None
        and grouping.only_reader(maker) == group
        and _picks_weights(grouping, maker)
    ]


def _stacked(grouping: Grouping, group: int) -> bool:
    """Whether what is picked are matrices, one an expert."""
    data = next(references(grouping.compute(group)[0].args))
    return len(grouping.flow.graph.values[data].shape) > 2


def _picks_weights(grouping: Grouping, group: int) -> bool:
    compute = grouping.compute(group)
    if len(compute) != 1 or compute[0].name not in _PICKS or not grouping.operands(group):
        return False
    data = next(references(compute[0].args))
    return grouping.maker(data)[0] in grouping.flow.graph.states


_MOST_SUMMANDS = 8


def summed_experts(grouping: Grouping) -> None:
    """Join a sum over experts that is written as a chain: `y = y + expert(x) * share`."""
    for group in reversed(grouping.alive()):
        products, sums = _summands(grouping, group)
        if 1 < len(products) <= _MOST_SUMMANDS:
            reason = "the sum of what experts gave, each times its share"
            grouping.join([*products, *sums], "expert_combine", reason)


def _summands(grouping: Grouping, group: int) -> tuple[list[int], list[int]]:
    """The products that a sum adds up, and its additions; none where it adds up anything else."""
    if not _is_single(grouping, group, "add"):
        return [], []
    products, sums = list[int](), [group]
    for maker in grouping.operands(group).values():
        if maker is None or grouping.only_reader(maker) != group:
            return [], []
        if _is_share(grouping, maker):
            products.append(maker)
        else:
            inner, additions = _summands(grouping, maker)
            if not inner:
                return [], []
            products, sums = [*inner, *products], [*additions, *sums]
    return products, sums


def _is_share(grouping: Grouping, group: int) -> bool:
    """Whether a kernel multiplies something by weights that a router chose."""
    return _is_single(grouping, group, "mul") and any(
        follows(name, CHOICES, grouping.flow) for name in grouping.operands(group)
    )


def _is_single(grouping: Grouping, group: int, operator: str) -> bool:
    compute = grouping.compute(group)
    return len(compute) == 1 and compute[0].name == operator
