"""Gives a convolution below autograd the name that people call it by."""

from dataclasses import replace

from runner.graph.ir import Operation

_ARGUMENTS = ("input", "weight", "bias", "stride", "padding", "dilation", "transposed",
              "output_padding", "groups")  # fmt: skip


def name_convolution(op: Operation) -> Operation:
    """Return `convolution` as `conv2d`, `conv_transpose2d` and the like; others unchanged.

    torch calls `convolution` below autograd, and for `padding="same"`. It computes the same as the
    named operators, which call it.
    """
    if op.target != "convolution.default":
        return op
    arguments = dict(zip(_ARGUMENTS, op.args, strict=False)) | dict(op.kwargs)
    stride = arguments["stride"]
    assert isinstance(stride, tuple)
    names: tuple[str, ...] = ("input", "weight", "bias", "stride", "padding")
    if arguments["transposed"]:
        overload = "default" if len(stride) == 1 else "input"
        target = f"conv_transpose{len(stride)}d.{overload}"
        names = (*names, "output_padding", "groups", "dilation")
    else:
        target = f"conv{len(stride)}d.default"
        names = (*names, "dilation", "groups")
    args = tuple(arguments[name] for name in names)
    return replace(op, target=target, args=args, kwargs=(), schema=names)
