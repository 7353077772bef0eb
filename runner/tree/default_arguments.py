"""Lists the default arguments of operations; names and families of kernels leave them out."""

from __future__ import annotations

from runner.graph.ir import Arg, Operation

_CONVOLUTION: dict[str, Arg] = {
    "stride": 1, "padding": 0, "dilation": 1, "groups": 1, "output_padding": 0,
}  # fmt: skip
_POOL: dict[str, Arg] = {"padding": 0, "dilation": 1, "ceil_mode": False, "count_include_pad": True}
_RECURRENT: dict[str, Arg] = {
    "has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False,
    "batch_first": False,
}  # fmt: skip
_DEFAULTS: dict[str, dict[str, Arg]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _CONVOLUTION),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _CONVOLUTION),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), _POOL),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _POOL),
    "batch_norm": {"training": False, "momentum": 0.1, "eps": 1e-5},
    "instance_norm": {"use_input_stats": True, "momentum": 0.1, "eps": 1e-5},
    "layer_norm": {"eps": 1e-5},
    "group_norm": {"eps": 1e-5},
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _RECURRENT),
    "scaled_dot_product_attention": {"dropout_p": 0.0, "is_causal": False, "enable_gqa": False},
    "leaky_relu": {"negative_slope": 0.01},
    "elu": {"alpha": 1.0, "scale": 1, "input_scale": 1},
    "hardtanh": {"min_val": -1, "max_val": 1},
    "gelu": {"approximate": "none"},
    "softplus": {"beta": 1, "threshold": 20},
    "logsumexp": {"keepdim": False},
    "cross_entropy_loss": {"reduction": 1, "ignore_index": -100, "label_smoothing": 0.0},
    "embedding": {"padding_idx": -1, "scale_grad_by_freq": False, "sparse": False},
}  # fmt: skip
"""Arguments of torch's modules where the author passes none."""
MACHINE_ARGUMENTS = {"cudnn_enabled", "cudnn_enable", "device", "layout", "pin_memory"}
"""Arguments that say where an operation runs."""


def spatial_dims(op: Operation) -> int:
    """Return the number of spatial dimensions: 2 for `conv2d`.

    `convolution`, the operator below autograd, has no digit in its name; the length of its stride
    tells.
    """
    stride = op.arg("stride")
    return len(stride) if isinstance(stride, tuple) else int(op.name[-2])


def default_arguments(op: Operation) -> dict[str, Arg]:
    """Return an operation's default arguments; those of a window are lists."""
    table = _DEFAULTS.get(op.name, {})
    if op.name.startswith("conv"):
        sizes = spatial_dims(op)
        is_transposed = "transpose" in op.name
        return {
            name: value if name == "groups" else (value,) * sizes
            for name, value in table.items()
            if is_transposed or name != "output_padding"
        }
    if "_pool" in op.name:
        skipped_name = "count_include_pad" if op.name.startswith("max") else "dilation"
        window = op.arg("kernel_size")
        sizes = len(window) if isinstance(window, tuple) else 1
        return {"kernel_size": window, "stride": window} | {
            name: value if isinstance(value, bool) else (value,) * sizes
            for name, value in table.items()
            if name != skipped_name
        }
    return dict(table)


def is_usual(op: Operation, name: str, value: Arg) -> bool:
    """Return whether an argument is the operation's default, in each of its dimensions."""
    if value is None or value == () or name in MACHINE_ARGUMENTS:
        return True
    defaults_of_op = _DEFAULTS.get(op.name, {})
    values = value if isinstance(value, tuple) else (value,)
    return name in defaults_of_op and all(
        type(item) is type(defaults_of_op[name]) and item == defaults_of_op[name] for item in values
    )
