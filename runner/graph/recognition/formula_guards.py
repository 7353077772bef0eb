"""Checks the shapes and relations of a formula's values, which the formula itself cannot state."""

from collections.abc import Callable, Collection, Iterable
from math import prod

from runner.graph.dataflow import Flow
from runner.graph.ir import Operation, Ref
from runner.graph.operations import kind
from runner.graph.recognition.formulas import LOSSES
from runner.graph.recognition.unify import CASTS, Match

Guard = Callable[[Match, Flow, int], str | None]
"""Takes (match, flow, index of the last operation).

Returns the operation's name in this place, or None if it is not this operation at all.
"""


def _l2_norm(match: Match, flow: Flow, root: int) -> str | None:
    rank = len(match.reduced_shape)
    return "frobenius_norm" if rank > 1 and len(match.dims) == rank else "l2_norm"


def _layer_norm(match: Match, flow: Flow, root: int) -> str | None:
    rank, dims = len(match.reduced_shape), match.dims
    if rank > 3 and dims == tuple(range(2, rank)):
        return "instance_norm"
    if rank > 2 and dims == (0, *range(2, rank)):
        return "batch_norm"
    group_norm = _group_norm(match, flow, root)
    if group_norm is None and match.value("weight") is None and _is_of_sample(match, flow):
        return "standardize"
    return group_norm or "layer_norm"


def _is_of_sample(match: Match, flow: Flow) -> bool:
    """Return whether a formula divides by the deviation of a sample: squares over n - 1."""
    spreads = (flow.operations[i] for i in match.operations)
    return any(
        (op.arg("correction", 1), op.arg("unbiased", True)) == (1, True)
        for op in spreads
        if op.name in {"std", "var", "std_mean", "var_mean"}
    )


def _group_norm(match: Match, flow: Flow, root: int) -> str | None:
    """Return the name of a norm over (N, groups, ...), or over rows that hold one group each."""
    x = match.value("x")
    shape = flow.graph.values[x.name].shape if isinstance(x, Ref) else ()
    rank, dims = len(match.reduced_shape), match.dims
    if len(shape) < 3 or not dims or dims != tuple(range(dims[0], rank)):
        return None
    group_size = prod(match.reduced_shape[i] for i in dims)
    channels, positions = shape[1], prod(shape[2:])
    if group_size == positions:
        return "instance_norm"
    is_divisible = group_size % positions == 0 and channels % (group_size // positions) == 0
    return "group_norm" if is_divisible and positions < group_size < channels * positions else None


def _scalar_result(name: str) -> Guard:
    """Return a guard that accepts only a result of one element."""

    def guard(match: Match, flow: Flow, root: int) -> str | None:
        return name if flow.graph.values[flow.operations[root].outputs[0]].numel == 1 else None

    return guard


def _distance(name: str) -> Guard:
    """Return a guard that also demands two tensors of one shape.

    The distance of a tensor to its own mean is a variance.
    """

    def guard(match: Match, flow: Flow, root: int) -> str | None:
        x, y = match.value("x"), match.value("y")
        values = flow.graph.values
        if not isinstance(x, Ref) or not isinstance(y, Ref):
            return None
        if values[x.name].shape != values[y.name].shape:
            return None
        return _scalar_result(name)(match, flow, root)

    return guard


def _embedding_bag(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a reduction over the rows of each bag, not over the numbers within a row."""
    return "embedding_bag" if match.dims == (len(match.reduced_shape) - 2,) else None


def _selection(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a mask of truth values, and numbers that replace others and are not added to them."""
    mask, op = match.value("mask"), flow.operations[root]
    is_mask = isinstance(mask, Ref) and flow.graph.values[mask.name].dtype == "bool"
    return "where" if is_mask and op.arg("accumulate") is not True else None


def _segment_sum(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a square result: the sums from every position to every position."""
    shape = flow.graph.values[flow.operations[root].outputs[0]].shape
    return "segment_sum" if len(shape) > 1 and shape[-1] == shape[-2] else None


def _masked_mean(match: Match, flow: Flow, root: int) -> str | None:
    """Tell a mask, which comes from truth values or from outside, from computed weights."""
    y = match.value("y")
    while isinstance(y, Ref) and flow.graph.values[y.name].floating:
        index = flow.producer.get(y.name)
        op = flow.operations[index] if index is not None else None
        if op is None or (not op.view and op.name not in CASTS):
            return "masked_mean" if op is None else "weighted_mean"
        y = Ref(next(op.refs()))
    return "masked_mean"


def _topk_router(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a router if the program uses its weights and its choice, and returns neither."""
    best = [
        flow.operations[i] for i in match.operations if flow.operations[i].name in {"topk", "max"}
    ]
    choices = [name for op in best for name in op.outputs[1:]]
    model_outputs = {flow.base(name) for name in flow.returned}
    if len(best) == 1 and best[0].name == "max":
        choice_is_unread = not any(flow.consumers.get(name) for name in choices)
        if choice_is_unread or model_outputs & {*best[0].outputs}:
            return None
    ends_in_choice = flow.operations[root] is best[0] if best else False
    return None if ends_in_choice and model_outputs & {*best[0].outputs} else "topk_router"


def _expert_combine(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a sum of results whose weights come from a router."""
    x, gates = match.value("x"), match.value("gates")
    for weights, results in ((gates, x), (x, gates)):
        if (
            isinstance(weights, Ref)
            and isinstance(results, Ref)
            and comes_from(weights.name, CHOICES, flow)
            and weights_rows(weights.name, results.name, flow)
        ):
            return "expert_combine"
    return None


def weights_rows(weights: str, results: str, flow: Flow) -> bool:
    """Return whether weights have one number for a whole row of results, or for more.

    A router's weights have: weights times a choice, or times a mean, combine no experts.
    """
    weight_count, result_count = (
        min(flow.graph.values[n].numel for n in (name, flow.base(name)))
        for name in (weights, results)
    )
    return weight_count < result_count


CHOICES = {"topk"}
"""Operators with which a router chooses experts."""
_MOST_SEARCHED = 24
"""Operations that a search looks at before it gives up."""


def comes_from(
    name: str,
    operators: Collection[str],
    flow: Flow,
    sources: Callable[[Operation], Iterable[str]] | None = None,
) -> bool:
    """Return whether one of some operators computes a value, a few steps before it.

    `sources` returns the operands of an operation to search on from; by default these are all
    operands, except those of a contraction.
    """
    waiting, visited = [name], set[int]()
    while waiting and len(visited) < _MOST_SEARCHED:
        index = flow.producer.get(waiting.pop(0))
        if index is None or index in visited:
            continue
        visited.add(index)
        op = flow.operations[index]
        if op.name in operators:
            return True
        if sources is not None:
            waiting += sources(op)
        elif kind(op) != "contraction":
            waiting += op.refs()
    return False


def _attention_mask(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a number so far below any score that the softmax of it is zero."""
    c = match.value("c")
    return "attention_mask" if isinstance(c, float | int) and c < _FAR_BELOW else None


_FAR_BELOW = -999
"""Largest number that counts as a mask's minus infinity."""

GUARDS: dict[str, Guard] = {
    "attention_mask": _attention_mask,
    "l2_norm": _l2_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "embedding_bag": _embedding_bag,
    "masked_mean": _masked_mean,
    "segment_sum": _segment_sum,
    "where": _selection,
    "topk_router": _topk_router,
    "expert_combine": _expert_combine,
    **{name: _scalar_result(name) for name, _ in LOSSES},
    **{name: _distance(name) for name in ("mse_loss", "l1_loss", "huber_loss")},
}


# --- how two values are related -------------------------------------------------------------------


def find_part_views(a: str, b: str, flow: Flow) -> set[int] | None:
    """Return the views through which a and b read two parts of one tensor; None if they do not."""
    common, views = _common_base(a, b, flow)
    return None if common is None or common in (a, b) else views


def find_shared_views(a: str, b: str, flow: Flow) -> set[int] | None:
    """Return the views as `find_part_views` does, also if a or b is the whole tensor."""
    common, views = _common_base(a, b, flow)
    return None if common is None or a == b else views


def _common_base(a: str, b: str, flow: Flow) -> tuple[str | None, set[int]]:
    """Return the first value that both a and b are views of, and the views between.

    Returns (None, empty set) if there is no such value, or if the model owns it.
    """
    chains = []
    for name in (a, b):
        chain = [(name, -1)]
        while (index := flow.producer.get(chain[-1][0])) is not None and flow.operations[
            index
        ].view:
            chain.append((next(flow.operations[index].refs()), index))
        chains.append(chain)
    names_of_b = [name for name, _ in chains[1]]
    common = next((name for name, _ in chains[0] if name in names_of_b), None)
    if common is None or common in flow.graph.states:
        return None, set()
    views = set()
    for chain in chains:
        for name, index in chain:
            if index >= 0:
                views.add(index)
            if name == common:
                break
    return common, views


def are_sibling_projections(a: str, b: str, flow: Flow) -> bool:
    """Return whether two contractions of one tensor with the model's weights computed a and b."""
    sources = [_projected_activation(name, flow) for name in (a, b)]
    return flow.base(a) != flow.base(b) and sources[0] is not None and sources[0] == sources[1]


def _projected_activation(name: str, flow: Flow) -> str | None:
    """Return the only activation that a contraction read to compute a value, or None."""
    index = flow.producer.get(flow.base(name))
    if index is None or kind(flow.operations[index]) != "contraction":
        return None
    read = {flow.base(n) for n in flow.operations[index].refs()} - flow.graph.states.keys()
    return read.pop() if len(read) == 1 else None
