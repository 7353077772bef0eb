"""Holds tables of names for values without an author's name, by their producers and their readers.

A value's name says what it means (`normed`, `scores`, `mask`), not which operation computed it.
"""

from runner.graph.operations import LOSS, NORMALIZATION, POOLING

GENERIC_NAMES = {
    "x", "h", "y", "z", "out", "output", "hidden", "hidden_states", "feat", "feats", "features",
}  # fmt: skip
"""Names of the running tensor of a model, which the result of the next operation may take over."""

ARGUMENT_NAMES: dict[str, tuple[str, ...]] = {
    "scaled_dot_product_attention": ("query", "key", "value", "mask"),
    "softmax": ("scores",),
    "safe_softmax": ("scores",),
    "log_softmax": ("logits",),
    "gru": ("", "h_0"),
    "embedding": ("", "indices"),
    "gather": ("", "", "indices"),
    "index_select": ("", "", "indices"),
    "scatter": ("", "", "indices"),
    "scatter_add": ("", "", "indices"),
    "masked_fill": ("", "mask"),
    "where": ("mask",),
    "cross_entropy_loss": ("logits", "targets"),
    "nll_loss": ("log_probs", "targets"),
    "nll_loss_nd": ("log_probs", "targets"),
    "kl_div": ("log_probs", "targets"),
    "binary_cross_entropy_with_logits": ("logits", "targets"),
    "clamp": ("", "lower_bound", "upper_bound"),
    "triplet_margin_loss": ("anchor", "positive", "negative"),
    **dict.fromkeys(
        ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"),
        ("predictions", "targets"),
    ),
}
"""Operator -> the field's names for its arguments, by position; '' for no special name."""

MASKS = {
    "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "logical_xor",
    "isnan", "isinf", "isfinite", "__and__", "__or__", "__xor__", "bitwise_not", "bitwise_and",
    "bitwise_or", "attention_mask",
}  # fmt: skip
"""Operations whose result is a mask."""

SPECIFIC_RESULT_NAMES = {
    **dict.fromkeys(MASKS, "mask"),
    "softmax": "probs",
    "safe_softmax": "probs",
    "log_softmax": "log_probs",
    "embedding": "embedded",
    "embedding_bag": "embedded",
    "cos": "cos",
    "sin": "sin",
    "arange": "positions",
    "argmax": "indices",
    "argmin": "indices",
    "argsort": "indices",
    "multinomial": "indices",
    "topk_router": "weights",
    "scaled_dot_product_attention": "attended",
    "expert_combine": "mixed",
    **dict.fromkeys(LOSS | {"cross_entropy", "hinge_loss", "dice_loss"}, "loss"),
}
"""Operation -> name of its result, even if its input is the running tensor `x`."""

RESULT_NAMES = {
    **dict.fromkeys(NORMALIZATION | {"l2_norm", "l1_norm"}, "normed"),
    **dict.fromkeys(POOLING, "pooled"),
    **{f"upsample_{mode}": "upsampled" for mode in ("nearest2d", "bilinear2d", "bicubic2d")},
    **{f"conv{n}d": "features" for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": "features" for n in (1, 2, 3)},
    **dict.fromkeys(("swiglu", "geglu", "reglu", "glu", "gated_tanh"), "gated"),
    "linear": "hidden",
    "rope": "rotated",
    "expert_linear": "hidden",
    "matmul": "product",
    "bmm": "product",
    "mm": "product",
    "einsum": "product",
    "outer": "product",
    "patch_embedding": "patches",
    "window_partition": "windows",
    "window_reverse": "merged",
    "patch_merging": "merged",
    "channel_shuffle": "shuffled",
    "pixel_shuffle": "shuffled",
    "sigmoid": "gate",
    "hardsigmoid": "gate",
    "pad": "padded",
    "roll": "shifted",
    "cat": "joined",
    "stack": "stacked",
    "flip": "flipped",
    "repeat": "repeated",
    "repeat_interleave": "repeated",
    "gather": "picked",
    "index": "picked",
    "index_select": "picked",
    "where": "picked",
    "masked_fill": "masked",
    "scatter": "scattered",
    "zeros": "zeros",
    "ones": "ones",
    "full": "filled",
    "empty": "buffer",
    "eye": "identity",
    "rand": "noise",
    "randn": "noise",
    "rand_like": "noise",
    "randn_like": "noise",
    "mean": "mean",
    "var": "variance",
    "std": "std",
    "sum": "summed",
    "add": "summed",
    "cumsum": "running_sums",
    "cumprod": "running_product",
    "max": "largest",
    "amax": "largest",
    "maximum": "largest",
    "min": "smallest",
    "amin": "smallest",
    "minimum": "smallest",
    "prod": "product",
    "mul": "scaled",
    "sub": "difference",
    "div": "scaled",
    "reciprocal": "inverse",
    "rsqrt": "inverse_root",
    "sqrt": "root",
    "square": "squared",
    "pow": "power",
    "exp": "exponentials",
    "negative_exp": "rates",
    "log": "logs",
    "logsumexp": "log_total",
    "abs": "magnitude",
    "norm": "norm",
    "vector_norm": "norm",
    "frobenius_norm": "norm",
    "segment_sum": "segment_sums",
    "slice_update": "updated",
}
"""Operation -> name of its result, if there is no better one."""


def operator_result_name(operator: str) -> str:
    """Return the name of an operator's result: `zeros` for `zeros_like`; '' if it has none."""
    stem = operator.removesuffix("_like").removeprefix("new_")
    return SPECIFIC_RESULT_NAMES.get(stem) or RESULT_NAMES.get(stem, "")


RESULT_OPERATIONS = {
    ("rms_norm", "mul"): "rms_norm",
    ("rms_norm", "div"): "rms_norm",
    ("layer_norm", "mul"): "layer_norm",
    ("layer_norm", "div"): "layer_norm",
    ("gelu", "erf"): "sigmoid",
    ("gelu", "tanh"): "sigmoid",
}
"""Kernel and operation in it -> the operation after which the result is named."""

GATED_KERNELS = {"swiglu", "geglu", "reglu", "glu"}
"""Kernels that multiply a tensor with an activation of another."""

PREFIXED_OPERATIONS = {"rope", "l2_norm", "rms_norm", "layer_norm"}
"""Operations whose result has the name of its main operand as a prefix: `query_rotated`."""

OUTPUT_NAMES = {
    "lstm": ("output", "h_n", "c_n"),
    **dict.fromkeys(("gru", "rnn_tanh", "rnn_relu"), ("output", "h_n")),
    **dict.fromkeys(
        ("topk", "sort", "max", "min", "kthvalue", "cummax", "cummin", "median", "mode"),
        ("values", "indices"),
    ),
    "var_mean": ("variance", "mean"),
    "std_mean": ("std", "mean"),
}
"""Operation with several results -> torch's names for them."""

KERNEL_ARGUMENT_NAMES = dict.fromkeys(
    (("rope", "cat"), ("rope", "stack")), ("first_rotated", "second_rotated")
)
"""Kernel and operator in it -> names of the values that the operator reads, by position."""

ORDINALS = ("first", "second", "third", "fourth")
"""Names of a tensor's parts, and of operands that nothing else distinguishes."""

KERNEL_PARAMETER_NAMES = {
    "mul": ("x", "factor"),
    "div": ("x", "divisor"),
    "sub": ("left", "right"),
    "matmul": ("left", "right"),
    "bmm": ("left", "right"),
    "einsum": ("left", "right"),
    "maximum": ("x", "other"),
    "minimum": ("x", "other"),
    "expert_combine": ("expert_outputs", "weights"),
}
"""Kernel -> names of its parameters, by position, if nothing else names them."""
