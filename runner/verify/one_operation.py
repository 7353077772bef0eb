"""This file knows about what a kernel may be: one logical operation, whatever primitives spell it.

Counted from what runs, not from the text: a call into torch is one, with all that it dispatches;
what runs without such a call counts by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from runner.verify.operation import COPIES
from runner.verify.watching import Call, Event, Watch

_CONTRACTIONS = (
    *("convolution", "_convolution", "mkldnn_convolution", "conv_", "slow_conv", "thnn_conv"),
    *("mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "linear"),
    *("mkldnn_linear", "_int_mm", "_scaled_mm", "_grouped_mm", "_addmm_activation"),
    *("_scaled_dot_product", "mkldnn_rnn_layer", "_thnn_fused", "_cudnn_rnn", "_trilinear"),
)
"""Names of dispatched operations, or how they begin."""
_WHOLE = (
    *("native_batch_norm", "_native_batch_norm", "_batch_norm", "cudnn_batch_norm"),
    *("native_layer_norm", "native_group_norm", "_fused_rms_norm"),
    *("max_pool", "avg_pool", "_adaptive", "adaptive", "fractional_max", "mkldnn_max_pool"),
    *("_softmax", "_log_softmax", "relu", "gelu", "silu", "mish", "hardtanh", "leaky_relu", "elu"),
    *("hardswish", "hardsigmoid", "log_sigmoid", "softplus", "_prelu", "prelu", "celu", "glu"),
    *("embedding", "_embedding_bag", "nll_loss", "topk", "sort", "cumsum", "cumprod", "upsample"),
)
"""Operations that are one by themselves; what is in neither table may be a part of another."""
_TOGETHER = {frozenset({"topk", "_softmax"})}
"""A router's choice and its weights."""
_TORCH = Path(torch.__file__).parent
_MOST_PRIMITIVES = 16
"""What spells one operation; the longest that was seen has 8."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much one kernel may hold."""

    contractions: int
    whole: int
    """Contractions included."""
    epilogue: bool
    """Whether anything may follow a contraction but its bias."""


KERNEL = Allowance(contractions=1, whole=1, epilogue=False)
WHOLE_PROBLEM = Allowance(contractions=2, whole=2, epilogue=True)
"""A level 1 problem is one kernel, such as a matmul of triangular matrices."""


class Calls(TorchFunctionMode):
    """Which events of a watched forward belong to one call into torch."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.spans: list[tuple[int, int]] = []
        self.products: set[int] = set()
        """Where calls of torch.einsum begin: what sums over one element is a `mul` in the end."""
        self._events = watch.trace.events

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if not _of_torch(func):
            with self:  # a function that only says it is one operation
                return func(*args, **(kwargs or {}))
        first = len(self._events)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            if len(self._events) > first:
                self.spans.append((first, len(self._events)))
                if func is torch.einsum:
                    self.products.add(first)


def too_much(watch: Watch, calls: Calls, use: Call, allowed: Allowance) -> str | None:
    """What makes a kernel more than one operation, in one line, from one use of it."""
    first, last = use.operations
    spans = {a - first: b - first for a, b in calls.spans if first <= a and b <= last}
    events = watch.trace.events[first:last]
    weights, constant = _of_weights(events, watch)
    if any(not event.writes <= weights | constant for event in events):
        constant = frozenset()  # it has inputs, and is no table
    found = _groups(events, spans)
    starts = {n: group for n, group in found if not _of_tables(group, weights, constant)}
    groups = list(starts.values())
    contractions = [group for group in groups if any(_is(_CONTRACTIONS, e) for e in group)]
    products = [g for n, g in starts.items() if g in contractions or n + first in calls.products]
    if any(_is_attention(events, groups, each, weights) for each in (contractions, products)):
        return None
    if len(contractions) > allowed.contractions:
        return f"is {len(contractions)} contractions ({_shown(contractions)}), not one operation"
    rest = [group for group in groups if group not in contractions]
    whole = {_name(group): group for group in rest if any(_is(_WHOLE, e) for e in group)}
    if frozenset(whole) in _TOGETHER:
        return None
    if contractions and rest and not allowed.epilogue:
        picked, rest = _without_picked_weights(rest, weights)
        biases = [group for group in rest if _is_bias(group, weights | picked)]
        if len(biases) > 1 or len(biases) < len(rest):
            return f"is more than one operation: {_shown([*contractions, *rest])}"
    if len(whole) + len(contractions) > allowed.whole:
        return f"is more than one operation: {_shown([*contractions, *whole.values()])}"
    if len(rest) > _MOST_PRIMITIVES:
        return f"is {len(rest)} operations, which no single one is spelled with"
    return None


def _groups(events: list[Event], starts: dict[int, int]) -> Iterator[tuple[int, list[Event]]]:
    """Where each call begins, and its events.

    Moves and what depends on no input or weight do not count.
    """
    n = 0
    while n < len(events):
        last = starts.get(n, n + 1)
        group = [e for e in events[n:last] if not e.constant and e.operation.name not in COPIES]
        if group := [event for event in group if event.operation.name != "copy"]:
            yield n, group
        n = last


def _is(table: tuple[str, ...], event: Event) -> bool:
    name = event.operation.name
    return any(name == known or (len(known) > 4 and name.startswith(known)) for known in table)


def _is_bias(group: list[Event], weights: frozenset[int]) -> bool:
    """The addition of a weight."""
    return all(e.operation.name == "add" and e.reads & weights for e in group)


# --- weights --------------------------------------------------------------------------------------


def _of_weights(events: list[Event], watch: Watch) -> tuple[frozenset[int], frozenset[int]]:
    """The storages of weights and of what is computed from weights and constants alone.

    And those of constants alone.
    """
    found = set(watch.owned)
    constant: set[int] = set()
    for event in events:
        if event.constant:
            constant |= event.writes
        elif event.reads and event.reads <= found | constant:
            found |= event.writes
    return frozenset(found), frozenset(constant)


def _of_tables(group: list[Event], weights: frozenset[int], constant: frozenset[int]) -> bool:
    """Weights side by side, such as two biases; positions times frequencies."""
    return all(
        e.writes <= weights
        and (e.operation.name in {"cat", "stack"} or _is_of_positions(e, constant))
        for e in group
    )


def _is_of_positions(event: Event, constant: frozenset[int]) -> bool:
    """A product that sums nothing, or that takes in no two weights."""
    if event.operation.name not in {"mm", "bmm"}:
        return False
    return event.operation.inputs[0][0][-1] == 1 or bool(event.reads & constant)


def _without_picked_weights(
    rest: list[list[Event]], weights: frozenset[int]
) -> tuple[frozenset[int], list[list[Event]]]:
    """Return the storages that index or repeat weights give, and the groups that do neither."""
    picks = [group for group in rest if all(_picks(e, weights) for e in group)]
    picked = frozenset(n for group in picks for e in group for n in e.writes)
    return picked, [group for group in rest if group not in picks]


def _picks(event: Event, weights: frozenset[int]) -> bool:
    return event.operation.name in _PICKS and bool(event.reads & weights)


_PICKS = {"index", "index_select", "embedding", "gather", "repeat", "roll"}


# --- attention ------------------------------------------------------------------------------------

_MASKS = {
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or"),
    *("bitwise_not", "bitwise_and", "bitwise_or", "masked_fill", "where"),
}
"""What makes one mask of another, or of numbers."""
_AROUND_SCORES = {
    *("add", "sub", "rsub", "mul", "div", "neg", "pow", "tanh", "clamp", "clamp_max", "maximum"),
    *("minimum", "cat", "nan_to_num", "native_dropout", "bernoulli", "index_select", "repeat"),
    *_MASKS,
}
"""Scales, masks, biases, caps, sinks, dropout; the keys and values repeated."""
_SOFTMAX = {"_softmax", "exp", "sum", "amax", "max", "logsumexp", "_log_softmax"}
_PROBABILITIES = {"relu", "clamp_min", "sigmoid", *_SOFTMAX}


def _is_attention(
    events: list[Event],
    groups: list[list[Event]],
    contractions: list[list[Event]],
    weights: frozenset[int],
) -> bool:
    """Scores of two activations, probabilities of them, and their product with a third one.

    Or the one operator that is all of this, with its operands scaled or repeated.
    """
    rest = [e for group in groups if group not in contractions for e in group]
    names = {event.operation.name for event in rest if not event.writes <= weights}
    products = [e for g in contractions for e in g if _is(_CONTRACTIONS, e) or len(g) == 1]
    if any(event.reads & weights for event in products) or not products:
        return False
    if len(contractions) == 1:
        within = {event.operation.name for event in contractions[0]}
        fused = any("softmax" in name or "_scaled_dot_product" in name for name in within)
        return fused and names <= {"mul", "div", "index_select", "repeat"} | _MASKS
    if len(contractions) != 2 or not names <= _AROUND_SCORES | _PROBABILITIES:
        return False
    if groups[-1] is not contractions[1]:
        return False
    scores = {n for event in contractions[0] for n in event.writes}
    probabilities: set[int] = set()
    for event in events[events.index(contractions[0][-1]) + 1 :]:
        if event in contractions[1]:
            return bool(event.reads & probabilities) and not event.reads & scores
        makes = event.reads & scores and event.operation.name in _PROBABILITIES
        if makes or event.reads & probabilities:
            probabilities |= event.writes
            scores -= event.writes
        elif event.reads & scores:
            scores |= event.writes
    return False


def _name(group: list[Event]) -> str:
    return next((e.operation.name for e in group if _is(_WHOLE + _CONTRACTIONS, e)), "") or (
        group[0].operation.name
    )


def _shown(groups: list[list[Event]]) -> str:
    names = [_name(group) for group in groups]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _of_torch(func: Any) -> bool:
    """Whether torch itself defines a function: one of the program's own hides what it calls."""
    code = getattr(func, "__code__", None)
    return code is None or Path(code.co_filename).is_relative_to(_TORCH)
