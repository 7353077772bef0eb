"""Says what kind of work an operation does, and what engineers call it, by `operator_table.py`."""

from collections.abc import Mapping

from runner.graph.ir import Graph, Operation, TensorSpec, references
from runner.graph.operator_table import find_operator, names_of_kind, names_with_word

CONTRACTION, POINTWISE, LOSS = map(names_of_kind, ("contraction", "pointwise", "loss"))
NORMALIZATION, POOLING, COPY = map(names_of_kind, ("normalization", "pooling", "copy"))
RANDOM = names_of_kind("random")
ACTIVATIONS, DROPOUTS = map(names_with_word, ("activation", "dropout"))
SIZED_BY_VALUES = names_with_word("sized_by_values")
SIZED_OVERLOADS = {"where.default", "repeat_interleave.Tensor", "repeat_interleave.self_Tensor"}
"""Overloads that belong to SIZED_BY_VALUES, of operators that do not."""


def kind(op: Operation) -> str:
    """Return the kind of work that an operation does, such as `contraction` or `view`."""
    if op.view:
        return "view"
    if einsum_permutation(op) is not None:
        return "copy"
    if op.name == "rrelu" and op.arg("training") is True:
        return "random"
    label = find_operator(op.name).kind
    return "reduction" if label == "loss" else label


def einsum_permutation(op: Operation) -> tuple[int, ...] | None:
    """Return the permutation of dimensions of a one-operand einsum such as `bhwc -> bchw`.

    Return None for every other operation.
    """
    if op.name != "einsum" or not isinstance(op.args[0], str):
        return None
    before, _, after = op.args[0].replace(" ", "").partition("->")
    if "," in before or "." in before or len(set(before)) < len(before):
        return None
    return tuple(map(before.index, after)) if sorted(before) == sorted(after) else None


def is_sized_by_values(op: Operation, values: Mapping[str, TensorSpec]) -> bool:
    """Return whether the values that an operation reads decide the shape of its result."""
    if op.name in {"index", "_unsafe_index"}:
        return any(values[name].dtype in {"bool", "uint8"} for name in references(op.args[1]))
    return op.name in SIZED_BY_VALUES or op.target in SIZED_OVERLOADS


def reads_only_shape(op: Operation) -> bool:
    """Return whether an operation, such as `zeros_like(x)`, ignores its argument's numbers."""
    return "reads_shape" in find_operator(op.name).words


def is_random(op: Operation) -> bool:
    """Return whether an operation draws random numbers, so that it may not be repeated or moved."""
    if op.name in DROPOUTS:
        return op.arg("train") is True
    if op.name in {"lstm", "gru", "rnn_tanh", "rnn_relu"}:
        return op.arg("train") is True and op.arg("dropout") != 0
    if op.name == "scaled_dot_product_attention":
        return op.arg("dropout_p", 0.0) != 0
    return kind(op) == "random"


def constants(graph: Graph, *, of_weights: bool = False) -> set[str]:
    """Return the values that depend on no input, no random number and no buffer or parameter.

    With `of_weights`, values that depend on parameters and buffers count as constants, too.
    """
    states = graph.states.items()
    constant_names = {name for name, state in states if of_weights or state.kind == "constant"}
    for op in graph.operations:
        if not is_random(op) and constant_names.issuperset(op.refs()):
            constant_names.update(name for name in op.outputs if name)
    return constant_names


def is_named_activation(op: Operation) -> bool:
    """Return whether an operation is an activation such as relu, not a primitive such as exp."""
    return "activation" in find_operator(op.name).words


def field_name(op: Operation) -> str:
    """Return an operation's name in the words of kernel engineers: `conv2d`, `relu6`, `add`."""
    if op.name == "hardtanh" and op.args[1:] in ((0.0, 6.0), (0, 6)):
        return "relu6"
    if op.name in {"max", "min"} and op.target.endswith(".other"):
        return op.name + "imum"
    name = find_operator(op.name).field_name
    return name or op.name.strip("_").removeprefix("special_")
