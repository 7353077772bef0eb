"""Checks the shapes and relations of a formula's values, which the formula itself cannot state."""

from collections.abc import Callable, Collection, Iterable
from math import prod

from runner.graph.dataflow import Flow
from runner.graph.ir import Operation, Ref
from runner.graph.operations import kind
from runner.graph.recognition.formulas import LOSSES
from runner.graph.recognition.unify import Match

Guard = Callable[[Match, Flow, int], str | None]
"""Takes (match, flow, index of the last operation).

Returns the operation's name in this place, or None if it is not this operation at all.
"""


def _l2_norm(match: Match, flow: Flow, root: int) -> str | None:
    rank = len(match.reduced)
    return "frobenius_norm" if rank > 1 and len(match.dims) == rank else "l2_norm"


def _layer_norm(match: Match, flow: Flow, root: int) -> str | None:
    rank, dims = len(match.reduced), match.dims
    if rank > 3 and dims == tuple(range(2, rank)):
        return "instance_norm"
    if rank > 2 and dims == (0, *range(2, rank)):
        return "batch_norm"
    return _by_groups(match, flow, root) or "layer_norm"


def _by_groups(match: Match, flow: Flow, root: int) -> str | None:
    """Return the name of a norm over (N, groups, ...), or over rows that hold one group each."""
    x = match.value("x")
    shape = flow.graph.values[x.name].shape if isinstance(x, Ref) else ()
    rank, dims = len(match.reduced), match.dims
    if len(shape) < 3 or not dims or dims != tuple(range(dims[0], rank)):
        return None
    each = prod(match.reduced[i] for i in dims)
    channels, positions = shape[1], prod(shape[2:])
    if each == positions:
        return "instance_norm"
    whole = each % positions == 0 and channels % (each // positions) == 0
    return "group_norm" if whole and positions < each < channels * positions else None


def _one_number(name: str) -> Guard:
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
        return _one_number(name)(match, flow, root)

    return guard


def _bag(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a reduction over the rows of each bag, not over the numbers within a row."""
    return "embedding_bag" if match.dims == (len(match.reduced) - 2,) else None


def _segments(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a square result: the sums from every position to every position."""
    shape = flow.graph.values[flow.operations[root].outputs[0]].shape
    return "segment_sum" if len(shape) > 1 and shape[-1] == shape[-2] else None


def _router(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a router if the program uses its weights and its choice, and returns neither."""
    best = [flow.operations[i] for i in match.used if flow.operations[i].name in {"topk", "max"}]
    chosen = [name for op in best for name in op.outputs[1:]]
    given_back = {flow.base(name) for name in flow.returned}
    if len(best) == 1 and best[0].name == "max":
        unread = not any(flow.consumers.get(name) for name in chosen)
        if unread or given_back & {*best[0].outputs}:
            return None
    plain = flow.operations[root] is best[0] if best else False
    return None if plain and given_back & {*best[0].outputs} else "topk_router"


def _combine(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a sum whose weights come from a router."""
    for name in ("gates", "x"):
        gates = match.value(name)
        if isinstance(gates, Ref) and follows(gates.name, CHOICES, flow):
            return "expert_combine"
    return None


CHOICES = {"topk"}
"""Operators with which a router chooses experts."""
_NEAR = 24
"""Operations that a search looks at before it gives up."""


def follows(
    name: str,
    operators: Collection[str],
    flow: Flow,
    sources: Callable[[Operation], Iterable[str]] | None = None,
) -> bool:
    """Return whether one of some operators computes a value, a few steps before it.

    `sources` returns the operands of an operation to search on from; by default these are all
    operands, except those of a contraction.
    """
    waiting, seen = [name], set[int]()
    while waiting and len(seen) < _NEAR:
        index = flow.producer.get(waiting.pop(0))
        if index is None or index in seen:
            continue
        seen.add(index)
        op = flow.operations[index]
        if op.name in operators:
            return True
        if sources is not None:
            waiting += sources(op)
        elif kind(op) != "contraction":
            waiting += op.refs()
    return False


def _hides(match: Match, flow: Flow, root: int) -> str | None:
    """Accept a number so far below any score that the softmax of it is zero."""
    c = match.value("c")
    return "attention_mask" if isinstance(c, float | int) and c < _FAR_BELOW else None


_FAR_BELOW = -999
"""Largest number that counts as a mask's minus infinity."""

GUARDS: dict[str, Guard] = {
    "attention_mask": _hides,
    "l2_norm": _l2_norm,
    "layer_norm": _layer_norm,
    "group_norm": _by_groups,
    "embedding_bag": _bag,
    "segment_sum": _segments,
    "topk_router": _router,
    "expert_combine": _combine,
    **{name: _one_number(name) for name, _ in LOSSES},
    **{name: _distance(name) for name in ("mse_loss", "l1_loss", "huber_loss")},
}


# --- how two values are related -------------------------------------------------------------------


def parts_of_one(a: str, b: str, flow: Flow) -> set[int] | None:
    """Return the views through which a and b read two parts of one tensor; None if they do not."""
    common, views = _common(a, b, flow)
    return None if common is None or common in (a, b) else views


def part_of(a: str, b: str, flow: Flow) -> set[int] | None:
    """Return the views as `parts_of_one` does, also if a or b is the whole tensor."""
    common, views = _common(a, b, flow)
    return None if common is None or a == b else views


def _common(a: str, b: str, flow: Flow) -> tuple[str | None, set[int]]:
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
    above = [name for name, _ in chains[1]]
    common = next((name for name, _ in chains[0] if name in above), None)
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


def projections_of_one(a: str, b: str, flow: Flow) -> bool:
    """Return whether two contractions of one tensor with the model's weights computed a and b."""
    sources = [_projected(name, flow) for name in (a, b)]
    return flow.base(a) != flow.base(b) and sources[0] is not None and sources[0] == sources[1]


def _projected(name: str, flow: Flow) -> str | None:
    """Return the one activation that a contraction read to compute a value; None for other values.
    """
    index = flow.producer.get(flow.base(name))
    if index is None or kind(flow.operations[index]) != "contraction":
        return None
    read = {flow.base(n) for n in flow.operations[index].refs()} - flow.graph.states.keys()
    return read.pop() if len(read) == 1 else None
