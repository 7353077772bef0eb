"""Names single operations by the role that they play in the program."""

from runner.graph.dataflow import Flow
from runner.graph.ir import Operation, Ref, references
from runner.graph.operations import field_name, kind
from runner.graph.recognition.formula_guards import CHOICES, comes_from
from runner.graph.recognition.rearrangements import ATTENTION_PRODUCTS, readers_of


def name_in_context(index: int, flow: Flow) -> tuple[str, str]:
    """Return (the operation's name in this place, the reason)."""
    op = flow.operations[index]
    if op.name in _CONVOLUTIONS and _cuts_patches(op, flow) and _becomes_tokens(index, flow):
        return "patch_embedding", "a convolution over patches that do not overlap, to tokens"
    if op.name == "repeat_interleave" and _repeats_heads(index, flow):
        return "repeat_kv", "each head of keys or values, for several of the queries"
    if op.name in _PICKS and _dispatches_to_experts(op, flow):
        return "expert_dispatch", "rows in the order of the experts that a router chose"
    if op.name in ATTENTION_PRODUCTS and _combines_experts(op, flow):
        return "expert_combine", "the sum of the experts' results by a router's weights"
    return field_name(op), f"one operation of the program: {op.name}"


# --- patch embedding: Dosovitskiy et al., 2020 ----------------------------------------------------

_CONVOLUTIONS = {"conv2d", "conv3d"}


def _cuts_patches(op: Operation, flow: Flow) -> bool:
    """Return whether a convolution cuts patches: its kernel is as large as its stride, unpadded."""
    weight = op.arg("weight")
    if not isinstance(weight, Ref):
        return False
    window = flow.graph.values[weight.name].shape[2:]
    stride = op.arg("stride")
    steps = stride if isinstance(stride, tuple) else (stride,) * len(window)
    steps = steps * len(window) if len(steps) == 1 else steps
    padding = op.arg("padding", 0)
    paddings = padding if isinstance(padding, tuple) else (padding,)
    return steps == window and max(window) > 1 and set(paddings) <= {0, "valid"}


def _becomes_tokens(index: int, flow: Flow) -> bool:
    """Return whether all readers first flatten the positions of the image into one dimension."""
    users = flow.users[index]
    rank = len(flow.graph.values[flow.operations[index].outputs[0]].shape)
    return bool(users) and all(
        flow.operations[user].name in {"flatten", "view", "reshape"}
        and len(flow.graph.values[flow.operations[user].outputs[0]].shape) == 3 < rank
        for user in users
    )


# --- heads of keys and values ---------------------------------------------------------------------


def _repeats_heads(index: int, flow: Flow) -> bool:
    """Return whether a repetition copies heads of keys or values for an attention."""
    op = flow.operations[index]
    rank = len(flow.graph.values[op.outputs[0]].shape)
    readers = {flow.operations[user].name for user in readers_of(index, flow)}
    return rank == 4 and op.arg("dim") in {1, 2, -3, -2} and bool(readers & ATTENTION_PRODUCTS)


# --- experts --------------------------------------------------------------------------------------

_PICKS = {"index", "index_select"}
_KEEPING = {"to", "_to_copy", "type_as", "add", "mul"}


def _dispatches_to_experts(op: Operation, flow: Flow) -> bool:
    """Return whether activations are picked by integers that come from a router's choice.

    Picking the router's choice directly is no dispatch to experts: it picks the best of the
    queries, tokens or boxes that it chose from.
    """
    data, *indices = references(op.args)
    if not indices or flow.base(data) in flow.graph.states:
        return False
    values = flow.graph.values
    shape = values[data].shape
    if not values[data].floating or len(shape) < 2 or shape[-1] == 1:  # router weights
        return False

    def integer_operands(op_before: Operation) -> list[str]:
        return [name for name in op_before.refs() if not values[name].floating]

    return any(
        comes_from(name, CHOICES, flow, integer_operands)
        and not comes_from(name, CHOICES, flow, lambda op_before: _same_integers(op_before, flow))
        for name in indices
    )


def _same_integers(op: Operation, flow: Flow) -> list[str]:
    """Return the integer operands of an operation whose result holds the same integers.

    Positions in a flattened table count as the same.
    """
    is_same = op.view or kind(op) == "copy" or op.name in _KEEPING
    return [name for name in op.refs() if is_same and not flow.graph.values[name].floating]


def _combines_experts(op: Operation, flow: Flow) -> bool:
    """Return whether a product sums experts' results, each times a router's weight."""
    refs = list(op.refs())
    if len(refs) != 2:
        return False
    for gates, results in (refs, refs[::-1]):
        if _sums_weighted_results(op, gates, results, flow) and _is_from_router(gates, flow):
            return True
    return False


def _sums_weighted_results(op: Operation, gates: str, results: str, flow: Flow) -> bool:
    """Return whether a product has one weight for each result and sums over the results."""
    if op.name == "einsum":
        operand_letters, _, out = str(op.args[0]).replace(" ", "").partition("->")
        letters = dict(zip(op.refs(), operand_letters.split(","), strict=True))
        summed_letters = set(letters[gates]) - set(out)
        return len(summed_letters) > 0 and set(letters[gates]) < set(letters[results])
    shapes = [flow.graph.values[name].shape for name in op.refs()]
    gates_first = gates == next(op.refs())
    return (
        min(map(len, shapes)) > 2
        and shapes[0 if gates_first else 1][-2 if gates_first else -1] == 1
    )


def _is_from_router(name: str, flow: Flow) -> bool:
    """Return whether a value is computed from a router's weights, not picked by its indices."""

    def float_operands(op: Operation) -> list[str]:
        floats = [n for n in op.refs() if flow.graph.values[n].floating]
        return [] if kind(op) == "contraction" else floats

    return comes_from(name, CHOICES, flow, float_operands)
