"""Joins the kernels of mixture-of-experts layers: expert products and sums of experts' results."""

from itertools import permutations

from runner.graph.ir import Operation, references
from runner.graph.recognition.formula_guards import CHOICES, comes_from, weights_rows
from runner.graph.recognition.grouping import Grouping

_LOOKUPS = {"index", "index_select", "embedding", "gather"}
_PRODUCTS = {"einsum", "matmul", "bmm", "baddbmm"}
_GATHERED = "the weights of chosen experts, and their product"
_BATCHED = "the weights of all experts, and their product"


def join_expert_products(grouping: Grouping) -> None:
    """Join the product of tokens with experts' weights, the weights' look-up, and the bias."""
    expert_counts = _router_widths(grouping)
    for group in grouping.groups_in_order():
        if grouping.role(group) not in _PRODUCTS:
            continue
        compute = grouping.compute_operations(group)
        if len(compute) != 1:
            continue
        lookups = _weight_lookups(grouping, group)
        reader = grouping.only_reader(group)
        if len(lookups) == 1 and _picks_matrices(grouping, lookups[0]):
            parts, reason = [*lookups, group], _GATHERED
            biases = _weight_lookups(grouping, reader) if reader is not None else []
        elif _has_stacked_weights(grouping, compute[0], expert_counts):
            parts, reason = [group], _BATCHED
            biases = []
        else:
            continue
        if reader is not None and grouping.role(reader) == "add":
            parts += [*biases, reader] if biases or _adds_weight(grouping, reader) else []
        grouping.join(parts, "expert_linear", reason)


def _adds_weight(grouping: Grouping, group: int) -> bool:
    """Return whether a kernel adds a parameter or a buffer."""
    refs = [name for op in grouping.compute_operations(group) for name in op.refs()]
    return any(grouping.flow.base(name) in grouping.flow.graph.states for name in refs)


def _router_widths(grouping: Grouping) -> set[int]:
    """Return the numbers of experts that the program's routers choose from."""
    flow = grouping.flow
    routers = (op for op in flow.operations if op.name in CHOICES)
    return {flow.graph.values[next(op.refs())].shape[-1] for op in routers}


def _has_stacked_weights(grouping: Grouping, op: Operation, expert_counts: set[int]) -> bool:
    """Return whether one operand is a stack of matrices, as many as there are experts."""
    flow = grouping.flow
    weights = [name for name in op.refs() if grouping.maker(name)[0] in flow.graph.states]
    shapes = [flow.graph.values[grouping.maker(name)[0]].shape for name in weights]
    return any(len(shape) == 3 and shape[0] in expert_counts for shape in shapes)


def _weight_lookups(grouping: Grouping, group: int) -> list[int]:
    """Return the kernels that look up rows of a weight for this kernel alone."""
    return [
        maker
        for maker in grouping.operands(group).values()
        if maker is not None
        and grouping.only_reader(maker) == group
        and _picks_weights(grouping, maker)
    ]


def _picks_matrices(grouping: Grouping, group: int) -> bool:
    """Return whether a look-up picks matrices, one for each expert."""
    data = next(references(grouping.compute_operations(group)[0].args))
    return len(grouping.flow.graph.values[data].shape) > 2


def _picks_weights(grouping: Grouping, group: int) -> bool:
    """Return whether a kernel looks up entries of a parameter or a buffer."""
    compute = grouping.compute_operations(group)
    if len(compute) != 1 or compute[0].name not in _LOOKUPS or not grouping.operands(group):
        return False
    data = next(references(compute[0].args))
    return grouping.maker(data)[0] in grouping.flow.graph.states


_MOST_SUMMANDS = 8


def join_expert_sums(grouping: Grouping) -> None:
    """Join a sum over experts that is written as a chain: `y = y + expert(x) * share`."""
    for group in reversed(grouping.groups_in_order()):
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
        if _is_weighted_by_router(grouping, maker):
            products.append(maker)
        else:
            inner, additions = _summands(grouping, maker)
            if not inner:
                return [], []
            products, sums = [*inner, *products], [*additions, *sums]
    return products, sums


def _is_weighted_by_router(grouping: Grouping, group: int) -> bool:
    """Return whether a kernel multiplies something by weights that a router chose."""
    operands = list(grouping.operands(group))
    return (
        _is_single(grouping, group, "mul")
        and len(operands) == 2
        and any(
            comes_from(weights, CHOICES, grouping.flow)
            and weights_rows(weights, results, grouping.flow)
            for weights, results in permutations(operands)
        )
    )


def _is_single(grouping: Grouping, group: int, operator: str) -> bool:
    compute = grouping.compute_operations(group)
    return len(compute) == 1 and compute[0].name == operator
