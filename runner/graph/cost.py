"""Counts an operation's floating-point operations and moved bytes from shapes alone."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from math import prod

from runner.graph.ir import Arg, Operation, Ref, TensorSpec, references
from runner.graph.operations import kind, reads_only_shape
from runner.graph.operator_table import find_operator

Values = Mapping[str, TensorSpec]

# FLOPs of one unit of a recurrent cell at one step: sums of the gates, activations, the new state.
_CELL_FLOPS = {"lstm": 13, "gru": 11, "rnn": 2}


def flops(op: Operation, values: Values) -> int:
    """Return the floating-point operations of one call.

    A multiply-add counts two, a transcendental function one. Contractions are exact, biases
    included. Normalisations, softmax and reductions count a few per element. Moving, selecting and
    comparing data counts nothing.
    """
    label = kind(op)
    operator = find_operator(op.name)
    if label in {"view", "copy", "creation", "random"}:
        return 0
    if op.name in _CONTRACTIONS:
        return _CONTRACTIONS[op.name](op, values)
    first = next((values[n].numel for n in op.refs()), 0)
    out = max((values[n].numel for n in op.outputs if n), default=0)
    if label == "pointwise":
        if all(values[n].dtype == "bool" for n in op.outputs if n):
            return 0
        return operator.flops_per_element * out
    if label == "pooling":
        return _pooling(op, first, out) if operator.flops is None else operator.flops * out
    return operator.flops_per_element * first


def _pooling(op: Operation, read: int, out: int) -> int:
    window = op.arg("kernel_size")
    if window is None:  # Adaptive pooling reads each input element once.
        return read
    sizes = [
        int(w) for w in (window if isinstance(window, tuple) else (window,)) if isinstance(w, int)
    ]
    dimensions = next((n for n in (1, 2, 3) if f"{n}d" in op.name), 1)
    return out * (sizes[0] ** dimensions if len(sizes) == 1 else prod(sizes))


def _spec(arg: Arg, values: Values) -> TensorSpec:
    assert isinstance(arg, Ref)
    return values[arg.name]


def _matmul(op: Operation, values: Values) -> int:
    """Count a (..., m, k) @ b (..., k, n)."""
    lhs = _spec(op.args[0], values)
    return 2 * values[op.outputs[0]].numel * (lhs.shape[-1] if lhs.shape else 1)


def _grouped_matmul(op: Operation, values: Values) -> int:
    """Count products of groups of rows with a matrix each; each row meets one matrix.

    If both arguments have two dimensions, each column of the first meets one row of the second.
    """
    lhs, rhs = _spec(op.args[0], values), _spec(op.args[1], values)
    if len(lhs.shape) == len(rhs.shape) == 2:
        return 2 * lhs.numel * rhs.shape[-1]
    return _matmul(op, values)


def _outer(op: Operation, values: Values) -> int:
    return values[op.outputs[0]].numel


def _addmm(op: Operation, values: Values) -> int:
    """Count c + a @ b, where the third argument is b, of shape (..., k, n) or (k,)."""
    rhs, out = _spec(op.args[2], values), values[op.outputs[0]]
    inner = rhs.shape[-2] if len(rhs.shape) > 1 else rhs.shape[0]
    batch = rhs.shape[0] if op.name == "addbmm" else 1
    return (2 * inner * batch + 1) * out.numel


def _linear(op: Operation, values: Values) -> int:
    """Count x (..., k) times weight (n, k), and the bias."""
    weight, out = _spec(op.args[1], values), values[op.outputs[0]]
    bias = out.numel if len(op.args) > 2 and op.args[2] is not None else 0
    return 2 * out.numel * weight.shape[-1] + bias


def _convolution(op: Operation, values: Values) -> int:
    """Count with a weight (out, in / groups, *window); transposed: (in, out / groups, *window)."""
    data, weight, out = _spec(op.args[0], values), _spec(op.args[1], values), values[op.outputs[0]]
    transposed = "transpose" in op.name or op.arg("transposed") is True
    positions = data.numel if transposed else out.numel
    bias = out.numel if len(op.args) > 2 and op.args[2] is not None else 0
    return 2 * positions * prod(weight.shape[1:]) + bias


def _attention(op: Operation, values: Values) -> int:
    """Count scores, softmax and weighted sum of q (..., l, e), k (..., s, e), v (..., s, f).

    With `is_causal`, only scores up to the diagonal count; with a mask argument, all of them.
    """
    query, value = _spec(op.args[0], values), _spec(op.args[2], values)
    length, keys = query.shape[-2], value.shape[-2]
    pairs = length * keys
    if op.arg("is_causal") is True:
        pairs = sum(min(row + 1, keys) for row in range(length))
    scores = prod(query.shape[:-2]) * pairs
    softmax = find_operator("softmax").flops_per_element
    return scores * (2 * query.shape[-1] + softmax + 2 * value.shape[-1])


def _einsum(op: Operation, values: Values) -> int:
    """Count an einsum that contracts its operands from the left, two at a time.

    Each pair loops once over all letters that occur in it.
    """
    equation, operands = op.args[0], op.args[1]
    assert isinstance(equation, str)
    assert isinstance(operands, tuple)
    inputs_text, _, result_text = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    terms: list[str] = []
    for term, operand in zip(inputs_text.split(","), operands, strict=True):
        shape = _spec(operand, values).shape
        if "..." in term:
            free = len(shape) - len(term) + 3
            term = term.replace("...", "".join(chr(0x100 + i) for i in range(8 - free, 8)))
        for letter, size in zip(term, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
        terms.append(term)
    batch = "".join(sorted(letter for letter in sizes if ord(letter) >= 0x100))
    result_letters = (
        set(result_text.replace("...", batch)) if "->" in equation else _implicit(terms)
    )
    total = 0 if len(terms) > 1 else prod(sizes[letter] for letter in set(terms[0]))
    merged_letters = set(terms[0])
    for position, term in enumerate(terms[1:], start=1):
        loop_letters = merged_letters | set(term)
        later_letters = result_letters.union(*terms[position + 1 :])
        total += prod(sizes[i] for i in loop_letters) * (2 if loop_letters - later_letters else 1)
        merged_letters = loop_letters & later_letters
    return total


def _implicit(terms: list[str]) -> set[str]:
    everything = "".join(terms)
    return {
        letter for letter in everything if everything.count(letter) == 1 or ord(letter) >= 0x100
    }


def _recurrent(op: Operation, values: Values) -> int:
    """Count each weight once for each element of the sequence, and the cell's own arithmetic."""
    family = op.name.partition("_")[0]
    data = _spec(op.args[0], values)
    steps = prod(data.shape[:-1])
    groups = [a for a in op.args[1:] if isinstance(a, tuple) and any(isinstance(i, Ref) for i in a)]
    weights = groups[-1] if groups and not op.name.endswith("_cell") else op.args[2:]
    total = 0
    for name in references(weights):
        shape = values[name].shape
        if len(shape) > 1:
            total += 2 * steps * prod(shape)
        else:
            total += steps * shape[0]
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[family]
    inputs = [values[n].shape for n in references(weights) if len(values[n].shape) > 1][::2]
    return total + steps * _CELL_FLOPS[family] * sum(shape[0] // gates for shape in inputs)


def _distances(op: Operation, values: Values) -> int:
    return 3 * values[op.outputs[0]].numel * _spec(op.args[0], values).shape[-1]


def _bilinear(op: Operation, values: Values) -> int:
    """Count x1 (..., i), x2 (..., j), weight (o, i, j), and the bias."""
    weight, out = _spec(op.args[2], values), values[op.outputs[0]]
    bias = out.numel if len(op.args) > 3 and op.args[3] is not None else 0
    return out.numel * (2 * prod(weight.shape[1:]) + 2 * weight.shape[1]) + bias


_CONTRACTIONS: dict[str, Callable[[Operation, Values], int]] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner"), _matmul),
    **dict.fromkeys(("grouped_mm", "_grouped_mm"), _grouped_matmul),
    **dict.fromkeys(("outer", "ger", "kron"), _outer),
    **dict.fromkeys(("addmm", "baddbmm", "addbmm", "addmv"), _addmm),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _convolution),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
    **dict.fromkeys(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"), _recurrent),
    "linear": _linear,
    "scaled_dot_product_attention": _attention,
    "einsum": _einsum,
    "cdist": _distances,
    "bilinear": _bilinear,
}  # fmt: skip


# --- bytes ----------------------------------------------------------------------------------------


def moved_bytes(
    operations: Iterable[Operation], reads: Iterable[str], writes: Iterable[str], values: Values
) -> int:
    """Return the bytes that must cross memory: what is read of `reads`, and `writes`, each once.

    Of a tensor that is read through views, only the parts that the views show count; of a table,
    the rows that are looked up; of a tensor that only lends its shape, nothing. Repeated elements
    count once.
    """
    outside = dict.fromkeys(name for name in reads if name)
    base: dict[str, tuple[str, Hashable]] = {name: (name, ()) for name in outside}
    parts: dict[str, dict[Hashable, int]] = {name: {} for name in outside}
    for op in operations:
        if op.view:
            source = base.get(next(op.refs(), ""))
            for position, name in enumerate(op.outputs):
                if source is not None and name:
                    base[name] = source[0], (source[1], op.target, repr(op.args[1:]), position)
            continue
        for name in dict.fromkeys(op.refs()):
            if name in base:
                tensor, view = base[name]
                part = _read_elements(op, name, values) * values[name].item_bytes
                parts[tensor][view] = max(part, parts[tensor].get(view, 0))
    read = sum(
        min(values[n].touched_bytes, sum(part_sizes.values())) for n, part_sizes in parts.items()
    )
    return read + sum(values[name].touched_bytes for name in dict.fromkeys(writes) if name)


def _read_elements(op: Operation, name: str, values: Values) -> int:
    """Return how many elements of one of its arguments an operation reads."""
    spec, out = values[name], values.get(op.outputs[0])
    everything = spec.touched_bytes // spec.item_bytes
    first = op.args[0] if op.args else None
    if reads_only_shape(op) or (op.name in _FIRST_TENSOR_READERS and first != Ref(name)):
        return 0
    if out is None or first != Ref(name):
        return everything
    if op.name in _LOOKUPS:
        return min(everything, out.numel)
    if op.name in _UPDATES:  # Elements that are overwritten need not be read.
        update = op.args[1]
        return everything - values[update.name].numel if isinstance(update, Ref) else everything
    if op.name in {"nll_loss", "nll_loss_nd"}:
        return min(everything, spec.numel // spec.shape[1] if len(spec.shape) > 1 else 1)
    if (op.name.startswith("conv") and "transpose" not in op.name) or "pool" in op.name:
        return min(everything, _elements_below_windows(op, spec, out, values))
    return everything


_LOOKUPS = {"embedding", "index", "index_select", "gather", "take", "take_along_dim"}
"""Operators that read as many elements of their first argument as they return."""
_UPDATES = {"select_scatter", "slice_scatter", "diagonal_scatter"}
_FIRST_TENSOR_READERS = {"expand_as", "reshape_as", "type_as", "view_as"}
"""Operators that read the numbers of their first argument only."""


def _elements_below_windows(
    op: Operation, spec: TensorSpec, out: TensorSpec, values: Values
) -> int:
    """Return how many input elements lie under the windows of a convolution or pool."""
    weight, window, stride = op.arg("weight"), op.arg("kernel_size"), op.arg("stride")
    if isinstance(weight, Ref):
        window = values[weight.name].shape[2:]
    if not isinstance(window, tuple) or not isinstance(stride, tuple) or not stride:
        return spec.numel
    total = spec.numel
    input_sizes, output_sizes = spec.shape[-len(window) :], out.shape[-len(window) :]
    for size, count, width, step in zip(input_sizes, output_sizes, window, stride, strict=False):
        if isinstance(width, int) and isinstance(step, int) and width < step:
            total = total // max(size, 1) * min(size, count * width)
    return total
