"""Names single operators by what they are there for."""

from runner.graph.dataflow import Flow
from runner.graph.ir import Operation, Ref, references
from runner.graph.operations import field_name, kind
from runner.graph.recognition.formula_guards import CHOICES, follows
from runner.graph.recognition.rearrangements import ATTENTION_PRODUCTS, readers_of


def name_in_context(index: int, flow: Flow) -> tuple[str, str]:
    """(what the operation is called where it stands, the reason)."""
    op = flow.operations[index]
    if op.name in _CONVOLUTIONS and _cuts_patches(op, flow) and _becomes_tokens(index, flow):
        return "patch_embedding", "a convolution over patches that do not overlap, to tokens"
    if op.name == "repeat_interleave" and _repeats_heads(index, flow):
        return "repeat_kv", "each head of keys or values, for several of the queries"
    if op.name in _PICKS and _chosen(op, flow):
        return "expert_dispatch", "rows in the order of the experts that a router chose"
    if op.name in ATTENTION_PRODUCTS and _weighs_experts(op, flow):
        return "expert_combine", "the sum of the experts' results by a router's weights"
    return field_name(op), f"one operation of the program: {op.name}"


# --- patch embedding: Dosovitskiy et al., 2020 ----------------------------------------------------

_CONVOLUTIONS = {"conv2d", "conv3d"}


def _cuts_patches(op: Operation, flow: Flow) -> bool:
    """The kernel is as large as the stride, more than one, and nothing is padded."""
    weight = op.arg("weight")
    if not isinstance(weight, Ref):
        return False
    window = flow.graph.values[weight.name].shape[2:]
    stride = op.arg("stride")
    steps = stride if isinstance(stride, tuple) else (stride,) * len(window)
    steps = steps * len(window) if len(steps) == 1 else steps
    padding = op.arg("padding", 0)
    padded = padding if isinstance(padding, tuple) else (padding,)
    return steps == window and max(window) > 1 and set(padded) <= {0, "valid"}


def _becomes_tokens(index: int, flow: Flow) -> bool:
    """All that reads it first puts the positions of the image in one dimension."""
    users = flow.users[index]
    rank = len(flow.graph.values[flow.operations[index].outputs[0]].shape)
    return bool(users) and all(
        flow.operations[user].name in {"flatten", "view", "reshape"}
        and len(flow.graph.values[flow.operations[user].outputs[0]].shape) == 3 < rank
        for user in users
    )


# --- heads of keys and values ---------------------------------------------------------------------


def _repeats_heads(index: int, flow: Flow) -> bool:
    op = flow.operations[index]
    rank = len(flow.graph.values[op.outputs[0]].shape)
    readers = {flow.operations[user].name for user in readers_of(index, flow)}
    return rank == 4 and op.arg("dim") in {1, 2, -3, -2} and bool(readers & ATTENTION_PRODUCTS)


# --- experts --------------------------------------------------------------------------------------

_PICKS = {"index", "index_select"}
_KEEPING = {"to", "_to_copy", "type_as", "add", "mul"}


def _chosen(op: Operation, flow: Flow) -> bool:
    """Activations are picked by whole numbers that a router's choice leads to.

    The choice itself picks the best of what it chose from: queries, tokens, boxes.
    """
    data, *where = references(op.args)
    if not where or flow.base(data) in flow.graph.states:
        return False
    values = flow.graph.values
    shape = values[data].shape
    if not values[data].floating or len(shape) < 2 or shape[-1] == 1:  # those are the weights
        return False

    def whole_numbers(made: Operation) -> list[str]:
        return [name for name in made.refs() if not values[name].floating]

    return any(
        follows(name, CHOICES, flow, whole_numbers)
        and not follows(name, CHOICES, flow, lambda made: _same_numbers(made, flow))
        for name in where
    )


def _same_numbers(made: Operation, flow: Flow) -> list[str]:
    """What an operation reads whose result holds the same numbers, or places in a flat table."""
    same = made.view or kind(made) == "copy" or made.name in _KEEPING
    return [name for name in made.refs() if same and not flow.graph.values[name].floating]


def _weighs_experts(op: Operation, flow: Flow) -> bool:
    """A product with a router's weights: each stands for one result, over which they are summed."""
    refs = list(op.refs())
    if len(refs) != 2:
        return False
    for gates, results in (refs, refs[::-1]):
        if _weighted(op, gates, results, flow) and _of_router(gates, flow):
            return True
    return False


def _weighted(op: Operation, gates: str, results: str, flow: Flow) -> bool:
    if op.name == "einsum":
        spelled, _, out = str(op.args[0]).replace(" ", "").partition("->")
        letters = dict(zip(op.refs(), spelled.split(","), strict=True))
        summed = set(letters[gates]) - set(out)
        return len(summed) > 0 and set(letters[gates]) < set(letters[results])
    shapes = [flow.graph.values[name].shape for name in op.refs()]
    left = gates == next(op.refs())
    return min(map(len, shapes)) > 2 and shapes[0 if left else 1][-2 if left else -1] == 1


def _of_router(name: str, flow: Flow) -> bool:
    """Weights that a router's choice leads to, by numbers alone: not what its indices pick."""

    def numbers(op: Operation) -> list[str]:
        floats = [n for n in op.refs() if flow.graph.values[n].floating]
        return [] if kind(op) == "contraction" else floats

    return follows(name, CHOICES, flow, numbers)
