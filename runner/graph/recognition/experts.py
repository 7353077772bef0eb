"""Joins the kernels of mixture-of-experts layers: expert products and sums of experts' results."""

from runner.graph.ir import Operation, references
from runner.graph.recognition.formula_guards import CHOICES, follows
from runner.graph.recognition.grouping import Grouping

_PICKS = {"index", "index_select", "embedding", "gather"}
_PRODUCTS = {"einsum", "matmul", "bmm", "baddbmm"}
_GATHERED = "the weights of chosen experts, and their product"
_BATCHED = "the weights of all experts, and their product"


def experts(grouping: Grouping) -> None:
    """Join the product of tokens with experts' weights, the look-up of these weights, and the bias.
    """
    counts = _router_widths(grouping)
    for group in grouping.alive():
        if grouping.names[group] not in _PRODUCTS:
            continue
        compute = grouping.compute(group)
        if len(compute) != 1:
            continue
        picked = _picked(grouping, group)
        after = grouping.only_reader(group)
        if len(picked) == 1 and _stacked(grouping, picked[0]):
            parts, reason = [*picked, group], _GATHERED
            biases = _picked(grouping, after) if after is not None else []
        elif _of_all(grouping, compute[0], counts):
            parts, reason = [group], _BATCHED
            biases = []
        else:
            continue
        if after is not None and grouping.names[after] == "add":
            parts += [*biases, after] if biases or _adds_weight(grouping, after) else []
        grouping.join(parts, "expert_linear", reason)


def _adds_weight(grouping: Grouping, group: int) -> bool:
    """Return whether a kernel adds a parameter or a buffer."""
    refs = [name for op in grouping.compute(group) for name in op.refs()]
    return any(grouping.flow.base(name) in grouping.flow.graph.states for name in refs)


def _router_widths(grouping: Grouping) -> set[int]:
    """Return the numbers of experts that the program's routers choose from."""
    flow = grouping.flow
    routers = (op for op in flow.operations if op.name in CHOICES)
    return {flow.graph.values[next(op.refs())].shape[-1] for op in routers}


def _of_all(grouping: Grouping, op: Operation, counts: set[int]) -> bool:
    """Return whether one operand is a stack of matrices, as many as there are experts."""
    flow = grouping.flow
    owned = [name for name in op.refs() if grouping.maker(name)[0] in flow.graph.states]
    shapes = [flow.graph.values[grouping.maker(name)[0]].shape for name in owned]
    return any(len(shape) == 3 and shape[0] in counts for shape in shapes)


def _picked(grouping: Grouping, group: int) -> list[int]:
    """Return the kernels that look up rows of a weight for this kernel alone."""
    return [
        maker
        for maker in grouping.operands(group).values()
        if maker is not None
        and grouping.only_reader(maker) == group
        and _picks_weights(grouping, maker)
    ]


def _stacked(grouping: Grouping, group: int) -> bool:
    """Return whether a look-up picks matrices, one for each expert."""
    data = next(references(grouping.compute(group)[0].args))
    return len(grouping.flow.graph.values[data].shape) > 2


def _picks_weights(grouping: Grouping, group: int) -> bool:
    """Return whether a kernel looks up entries of a parameter or a buffer."""
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
    """Return the weighted products that a sum adds up, and its additions.

    Both are empty if it adds up anything else.
    """
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
    """Return whether a kernel multiplies something by weights that a router chose."""
    return _is_single(grouping, group, "mul") and any(
        follows(name, CHOICES, grouping.flow) for name in grouping.operands(group)
    )


def _is_single(grouping: Grouping, group: int, operator: str) -> bool:
    compute = grouping.compute(group)
    return len(compute) == 1 and compute[0].name == operator
