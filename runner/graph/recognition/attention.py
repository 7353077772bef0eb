"""Joins the kernels of an attention into one: scores, probabilities, product with the values.

The formula is softmax(scale(q @ kᵀ) + mask) @ v (Vaswani et al., 2017), by whichever operators; a
relu or a sigmoid may replace the softmax. A kernel belongs to the attention if nothing outside of
the attention reads it.
"""

from collections.abc import Collection, Iterator

from runner.graph.ir import Graph, Operation, Ref
from runner.graph.operations import kind
from runner.graph.recognition.grouping import Grouping
from runner.graph.recognition.layout_copies import is_layout_copy

_PROBABILITIES = {
    "softmax": "scaled_dot_product_attention",
    "safe_softmax": "scaled_dot_product_attention",  # gives zeros where all scores are -inf
    "relu": "relu_attention",
    "squared_relu": "squared_relu_attention",
    "sigmoid": "sigmoid_attention",
}
"""Function that turns scores into probabilities -> name of an attention that uses it."""
_FUSED = "scaled_dot_product_attention"
_PRODUCTS = {"matmul", "mm", "bmm", "baddbmm", "einsum"}
_COMBINES = {"add", "sub", "mul", "div", "masked_fill", "where", "cat", "maximum", "minimum"}
"""Operations that combine scores with a mask, a bias or a sink."""
_REPEATS = {"repeat_kv", "repeat_interleave"}
_SCALES = {"mul", "div"}


def join_attention(grouping: Grouping) -> None:
    """Join the kernels of each attention in the program."""
    for group in grouping.groups_in_order():
        name = grouping.role(group)
        if name == _FUSED:
            members = [group, *_operand_preparations(grouping, group)]
            if len(members) > 1:
                grouping.join(members, name, "attention with keys and values repeated for it")
        elif name in _PROBABILITIES:
            parts = _attention_kernels(grouping, group)
            if parts is not None:
                reason = "attention: " + ", ".join(grouping.names[g] for g in sorted(parts))
                log_sums = _log_sums(grouping, group) & parts
                results = 1 + bool(_unread_readers(grouping, group)) + len(log_sums)
                grouping.join(parts, _PROBABILITIES[name], reason, results)


def _attention_kernels(grouping: Grouping, probabilities: int) -> set[int] | None:
    """Return the kernels from the product of queries and keys to the product with the values.

    The logarithms of the sums of each softmax, which attention in blocks returns too, are included.

    Returns None if the probabilities are not those of an attention.
    """
    log_sums = _log_sums(grouping, probabilities)
    before = _kernels_from_scores(grouping, probabilities, _LONGEST_CHAIN, log_sums)
    after = _kernels_to_output(grouping, probabilities)
    if before is None or after is None:
        return None
    parts = {*before, probabilities, *after, *log_sums}
    for product in (before[0], after[-1]):
        parts.update(_operand_preparations(grouping, product))
    last_reader = grouping.only_reader(after[-1])
    has_cast = any(_is_cast(grouping, part) for part in parts)
    if last_reader is not None and has_cast and _is_cast(grouping, last_reader):
        parts.add(last_reader)
    return parts


_LONGEST_CHAIN = 12
"""Kernels to search between a product and the softmax; the longest chain seen so far has 5."""


def _log_sums(grouping: Grouping, probabilities: int) -> set[int]:
    """Return the kernels that compute the log-sum-exp of the scores that a softmax reads."""
    dim = _probability_dimension(grouping, probabilities)
    return {
        reader
        for maker in grouping.operands(probabilities).values()
        if maker is not None
        for reader in grouping.readers(maker)
        if reader >= 0
        and grouping.role(reader) == "logsumexp"
        and _probability_dimension(grouping, reader) == dim
    }


def _kernels_from_scores(
    grouping: Grouping, group: int, steps_left: int, log_sums: Collection[int] = ()
) -> list[int] | None:
    """Return the product that makes the scores, and the kernels between it and `group`.

    Nothing else but `log_sums` may read the scores.
    """
    for maker in grouping.operands(group).values():
        if maker is None or not steps_left:
            continue
        if grouping.readers(maker).difference(log_sums) != {group}:
            continue
        if is_product(grouping, maker):
            return [maker]
        if _lets_scores_through(grouping, maker):
            chain = _kernels_from_scores(grouping, maker, steps_left - 1)
            if chain is not None:
                return [*chain, maker]
    return None


def _kernels_to_output(grouping: Grouping, group: int) -> list[int] | None:
    """Return the kernels after the probabilities, up to and including their product with values."""
    chain: list[int] = []
    readers = grouping.readers(group) - _unread_readers(grouping, group)
    reader = next(iter(readers)) if len(readers) == 1 else None
    while reader is not None and reader >= 0 and len(chain) < _LONGEST_CHAIN:
        chain.append(reader)
        if is_product(grouping, reader):
            return chain if _sums_over_probabilities(grouping, group, chain) else None
        if not _lets_scores_through(grouping, reader):
            return None
        reader = grouping.only_reader(reader)
    return None


def _sums_over_probabilities(grouping: Grouping, group: int, after: list[int]) -> bool:
    """Return whether the last product sums once over the dimension of the probabilities.

    A relu names no dimension; its is the last one. A dimension that cannot be followed is assumed
    to be the one that the product sums over.
    """
    flow, (product,) = grouping.flow, grouping.compute_operations(after[-1])
    groups = grouping.contracted.groups
    inside = set[int]().union(*(groups[g] for g in after))
    name = next(iter(grouping.results(groups[group])))
    waiting, sums = [(name, _probability_dimension(grouping, group))], list[bool]()
    while waiting:
        name, dim = waiting.pop()
        for user in flow.consumers.get(name, ()):
            op = flow.operations[user]
            if op is product:
                is_summed = dim is None or dim in _summed_dimensions(product, name, flow.graph)
                sums += [is_summed] * list(_factors(product)).count(name)
            elif op.view or user in inside:
                out_dim = None if dim is None else _dimension_after(dim, name, op, flow.graph)
                waiting += [(out, out_dim) for out in op.outputs]
    return sums == [True]


def _probability_dimension(grouping: Grouping, group: int) -> int | None:
    """Return the dimension, counted from the end, along which probabilities add up to one."""
    dims = [dim for op in grouping.compute_operations(group) if (dim := op.arg("dim")) is not None]
    if not dims:
        return None if grouping.names[group].endswith("softmax") else -1
    rank = len(grouping.flow.graph.values[grouping.compute_operations(group)[-1].outputs[0]].shape)
    dim = dims[0][0] if isinstance(dims[0], tuple) and len(dims[0]) == 1 else dims[0]
    return (dim - rank if dim >= 0 else dim) if isinstance(dim, int) else None


def _dimension_after(dim: int, name: str, op: Operation, graph: Graph) -> int | None:
    """Return where a dimension of an operand is in the result; None if that is not known."""
    before, after = graph.values[name], graph.values[op.outputs[0]]
    if op.view:
        size, step = before.shape[dim], before.stride[dim]
        strides = zip(range(-len(after.shape), 0), after.shape, after.stride, strict=True)
        positions = [d for d, n, s in strides if s == step and 1 < n <= size]
        return positions[0] if len(positions) == 1 else None
    same = -dim <= len(after.shape) and after.shape[dim] == before.shape[dim]
    return dim if same and kind(op) == "pointwise" else None


def _summed_dimensions(product: Operation, name: str, graph: Graph) -> set[int]:
    """Return the dimensions of a factor, counted from the end, that a product sums over."""
    rank = len(graph.values[name].shape)
    if product.name != "einsum":
        first = next(_factors(product)) == name
        return {-1 if first or rank == 1 else -2}
    operand_letters, _, out = str(product.args[0]).replace(" ", "").partition("->")
    letters = operand_letters.split(",")[list(_factors(product)).index(name)]
    if not out or "." in letters:
        return set(range(-rank, 0))
    return {n - rank for n, letter in enumerate(letters) if letter not in out}


def _unread_readers(grouping: Grouping, group: int) -> set[int]:
    """Return the readers whose own result nobody reads.

    The mean of the weights in nn.MultiheadAttention is one.
    """
    return {r for r in grouping.readers(group) if r >= 0 and not grouping.readers(r)}


def _lets_scores_through(grouping: Grouping, group: int) -> bool:
    """Return whether scores may go through: a scale, a mask, a bias, cap, cast, sink or copy."""
    kinds = grouping.kind(group)
    if kinds not in {"pointwise", "copy"}:
        return False
    return len(grouping.operands(group)) == 1 or grouping.role(group) in _COMBINES


def is_product(grouping: Grouping, group: int) -> bool:
    """Return whether a kernel is the product of two activations."""
    compute = grouping.compute_operations(group)
    if len(compute) != 1 or compute[0].name not in _PRODUCTS:
        return False
    factors = list(_factors(compute[0]))
    states = grouping.flow.graph.states
    return len(factors) == 2 and all(grouping.maker(f)[0] not in states for f in factors)


def _factors(op: Operation) -> Iterator[str]:
    """Yield the names of the tensors that a product multiplies."""
    args = op.args[1:] if op.name in {"einsum", "baddbmm"} else op.args
    operands = args[0] if op.name == "einsum" else args[: 3 if op.name == _FUSED else 2]
    assert isinstance(operands, tuple)
    yield from (arg.name for arg in operands if isinstance(arg, Ref))


# --- queries, keys and values ---------------------------------------------------------------------


def _operand_preparations(grouping: Grouping, product: int) -> list[int]:
    """Return the kernels that scale, cast or repeat an operand for this product alone."""
    (op,) = (op for op in grouping.compute_operations(product) if kind(op) == "contraction")
    makers = [grouping.maker(name)[1] for name in _factors(op)]
    return [part for maker in makers for part in _preparation_chain(grouping, maker, product)]


def _preparation_chain(grouping: Grouping, maker: int | None, reader: int) -> list[int]:
    """Return a kernel that only prepares an operand for `reader`, and such kernels before it.

    A copy is one only if a scale, a cast or a repetition comes before it.
    """
    if maker is None or grouping.only_reader(maker) != reader:
        return []
    operands = list(grouping.operands(maker).values())
    if len(operands) != 1:
        return []
    before = _preparation_chain(grouping, operands[0], maker)
    if _is_cast(grouping, maker) or grouping.role(maker) in _SCALES | _REPEATS:
        return [maker, *before]
    return [maker, *before] if before and is_layout_copy(grouping, maker) else []


def _is_cast(grouping: Grouping, group: int) -> bool:
    return grouping.role(group) == "cast"
