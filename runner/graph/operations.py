"""Lists PyTorch's operators by the kind of work they do, with the name that engineers give each.

A new operator is a new row in a table.
"""

from collections.abc import Mapping

from runner.graph.ir import Graph, Operation, TensorSpec, references

CONTRACTION = {
    "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "einsum", "bilinear", "mv",
    "addmv", "dot", "vdot", "inner", "outer", "ger", "kron", "tensordot", "chain_matmul",
    "linalg_multi_dot", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "convolution", "conv_tbc", "scaled_dot_product_attention", "lstm", "gru",
    "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "cdist",
    "_native_multi_head_attention", "_transformer_encoder_layer_fwd", "grouped_mm", "_grouped_mm",
}  # fmt: skip

POINTWISE = {
    "abs", "acos", "acosh", "add", "addcdiv", "addcmul", "angle", "asin", "asinh", "atan", "atan2",
    "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "ceil", "celu", "clamp", "clamp_max", "clamp_min", "clip",
    "conj_physical", "copysign", "cos", "cosh", "deg2rad", "div", "divide", "dropout", "elu", "eq",
    "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fake_quantize_per_tensor_affine",
    "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "ge", "gelu", "greater",
    "greater_equal", "gt", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "heaviside",
    "hypot", "isfinite", "isinf", "isnan", "le", "leaky_relu", "lerp", "less", "less_equal",
    "lgamma", "digamma", "log", "log10", "log1p", "log2", "log_sigmoid", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logit", "lt", "masked_fill", "maximum", "minimum",
    "mish", "mul", "multiply", "nan_to_num", "ne", "neg", "negative", "not_equal", "polar", "pow",
    "prelu", "rad2deg", "reciprocal", "relu", "relu6", "remainder", "round", "rrelu", "rsqrt",
    "rsub", "selu", "sgn", "sigmoid", "sign", "signbit", "silu", "sin", "sinc", "sinh", "softplus",
    "softshrink", "softsign", "sqrt", "square", "sub", "subtract", "tan", "tanh", "threshold", "to",
    "_to_copy", "true_divide", "trunc", "type_as", "__and__", "__or__", "__xor__", "__lshift__",
    "__rshift__", "log_sigmoid_forward", "where", "xlogy", "glu", "tril", "triu", "float", "half",
    "bfloat16", "double", "complex", "alpha_dropout", "feature_dropout",
    "special_erf", "special_erfc", "special_expit", "special_expm1", "special_log1p",
    "special_ndtr",
}  # fmt: skip

REDUCTION = {
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "logsumexp",
    "max", "mean", "median", "min", "mode", "nansum", "nanmean", "norm", "linalg_norm",
    "linalg_vector_norm", "linalg_matrix_norm", "prod", "quantile", "std", "std_mean", "sum",
    "sum_to_size", "trace", "var", "var_mean", "frobenius_norm", "special_logsumexp",
}  # fmt: skip

LOSS = {
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cross_entropy_loss",
    "nll_loss", "nll_loss_nd", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "hinge_embedding_loss", "triplet_margin_loss", "cosine_embedding_loss", "margin_ranking_loss",
}  # fmt: skip

SOFTMAX = {"softmax", "log_softmax", "_softmax", "_log_softmax", "special_softmax",
           "special_log_softmax"}  # fmt: skip

NORMALIZATION = {
    "batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm", "local_response_norm",
    "renorm", "cosine_similarity", "pairwise_distance", "_weight_norm",
}  # fmt: skip

_POOLS = ("max", "avg", "adaptive_avg", "adaptive_max", "lp", "fractional_max")
POOLING = {f"{variant}_pool{n}d" for variant in _POOLS for n in (1, 2, 3)} | {
    "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "max_unpool2d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
    "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "_upsample_nearest_exact2d", "_upsample_bicubic2d_aa",
}  # fmt: skip

SCAN = {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"}

CREATION = {
    "arange", "empty", "eye", "full", "full_like", "linspace", "logspace", "new_empty", "new_full",
    "new_ones", "new_zeros", "ones", "ones_like", "scalar_tensor", "tril_indices", "triu_indices",
    "zeros", "zeros_like", "empty_like", "hann_window", "hamming_window",
}  # fmt: skip
_SHAPE_READERS = {
    "full_like", "ones_like", "zeros_like", "empty_like", "new_empty", "new_full", "new_ones",
    "new_zeros",
}  # fmt: skip

RANDOM = {
    "rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "bernoulli",
    "multinomial", "normal", "normal_functional", "poisson", "exponential", "rrelu", "uniform",
}  # fmt: skip

COPY = {
    "cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "contiguous", "clone",
    "pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "replication_pad1d",
    "replication_pad2d", "repeat", "repeat_interleave", "tile", "roll", "flip", "rot90", "reshape",
    "flatten", "fliplr", "flipud", "im2col", "col2im", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "select_scatter", "slice_scatter", "diagonal_scatter",
    "as_strided_scatter",
}  # fmt: skip

DROPOUTS = {"dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"}

# Pointwise operations that count as layers in the field's vocabulary.
ACTIVATIONS = {
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "leaky_relu", "log_sigmoid", "mish", "prelu", "relu", "relu6", "rrelu", "selu", "silu",
    "softplus", "softshrink", "softsign", "threshold",
}  # fmt: skip


def kind(op: Operation) -> str:
    """Return the kind of work that an operation does, such as `contraction` or `view`."""
    if op.view:
        return "view"
    if einsum_permutation(op) is not None:
        return "copy"
    for label, table in _KINDS:
        if op.name in table:
            if label == "random" and op.name == "rrelu" and op.arg("training") is not True:
                continue
            return label
    return "other"


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


_KINDS = (
    ("contraction", CONTRACTION),
    ("random", RANDOM),
    ("pointwise", POINTWISE),
    ("reduction", REDUCTION | LOSS),
    ("softmax", SOFTMAX),
    ("normalization", NORMALIZATION),
    ("pooling", POOLING),
    ("scan", SCAN),
    ("creation", CREATION),
    ("copy", COPY),
)


SIZED_BY_VALUES = {
    "nonzero", "nonzero_numpy", "argwhere", "masked_select", "unique_dim", "unique_consecutive",
    "_unique", "_unique2", "bincount",
}  # fmt: skip
"""Operators whose number of output elements depends on the values that they read."""


def is_sized_by_values(op: Operation, values: Mapping[str, TensorSpec]) -> bool:
    """Return whether the values that an operation reads decide the shape of its result."""
    if op.name in {"index", "_unsafe_index"}:
        return any(values[name].dtype in {"bool", "uint8"} for name in references(op.args[1]))
    return op.name in SIZED_BY_VALUES or op.target == "where.default"


def reads_only_shape(op: Operation) -> bool:
    """Return whether an operation, such as `zeros_like(x)`, ignores its argument's numbers."""
    return op.name in _SHAPE_READERS


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
    return op.name in ACTIVATIONS


# Operators whose name in the field differs from their name in PyTorch.
FIELD_NAMES = {
    "linalg_vector_norm": "vector_norm", "_softmax": "softmax", "_log_softmax": "log_softmax",
    "cross_entropy_loss": "cross_entropy", "_to_copy": "cast", "to": "cast", "type_as": "cast",
    "float": "cast", "half": "cast", "div": "div", "divide": "div", "true_divide": "div",
    "multiply": "mul", "subtract": "sub", "rsub": "sub", "negative": "neg",
    "constant_pad_nd": "pad", "concat": "cat", "concatenate": "cat", "clip": "clamp",
    "clamp_min": "clamp", "clamp_max": "clamp", "mm": "matmul", "rnn_tanh": "rnn",
    "rnn_relu": "rnn", "contiguous": "copy", "clone": "copy",
    "reshape": "copy", "flatten": "copy", "select_scatter": "slice_update",
    "slice_scatter": "slice_update", "diagonal_scatter": "slice_update",
    "as_strided_scatter": "slice_update", "conv_tbc": "conv1d",
    "masked_fill": "masked_fill", "max_pool2d_with_indices": "max_pool2d",
    "max_pool3d_with_indices": "max_pool3d", "max_pool1d_with_indices": "max_pool1d",
    "full_like": "full", "zeros_like": "zeros", "ones_like": "ones", "new_zeros": "zeros",
    "new_ones": "ones", "new_full": "full",
}  # fmt: skip


def field_name(op: Operation) -> str:
    """Return an operation's name in the words of kernel engineers: `conv2d`, `relu6`, `add`."""
    if op.name == "hardtanh" and op.args[1:] in ((0.0, 6.0), (0, 6)):
        return "relu6"
    if op.name in {"max", "min"} and op.target.endswith(".other"):
        return op.name + "imum"
    return FIELD_NAMES.get(op.name, op.name.strip("_").removeprefix("special_"))
