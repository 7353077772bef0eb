"""Turns a write through a view into an operation that writes into the view's base."""

from math import prod

from runner.graph.ir import Arg, Operation, Ref, TensorSpec

_SLICE_SCATTER = ("self", "src", "dim", "start", "end", "step")
_STRIDED_SCATTER = ("self", "src", "size", "stride", "storage_offset")
_RESHAPES = {
    "view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "view_as", "_unsafe_view",
}  # fmt: skip
_PARTS = {
    "select", "unbind", "slice", "narrow", "split", "split_with_sizes", "chunk", "tensor_split",
}  # fmt: skip

_BACK = {"view_as_real": "view_as_complex", "view_as_complex": "view_as_real"}
"""View of a number's type -> the view that undoes it."""


def scatter_into_base(
    view: Operation,
    position: int,
    base: str,
    value: str,
    shape: tuple[int, ...],
    values: dict[str, TensorSpec],
    *,
    moves_nothing: bool,
) -> tuple[str, tuple[Arg, ...], tuple[str, ...], bool] | None:
    """Return the operation that writes `value` into `base` at the elements that `view` reads.

    Returns (operation, arguments, schema, whether it moves data); None if there is no such
    operation. `position` says which of the view's outputs was written; `shape` is the base's shape.
    `moves_nothing`: whether a write into a part that is all of the base is a view, as in
    `x[0].relu_()` with a batch of one; `x[0] = y` and `x[0] = 1` move data there, too.
    """
    dim = view.arg("dim", 0)
    args: tuple[Arg, ...]
    if (
        moves_nothing
        and view.name in _PARTS
        and values[view.outputs[position]].numel == prod(shape)
    ):
        return ("reshape.default", (Ref(value), shape), ("self", "shape"), False)
    if view.name in {"select", "unbind"}:
        index = view.args[2] if view.name == "select" else position
        args = (Ref(base), Ref(value), dim, index)
        return ("select_scatter.default", args, ("self", "src", "dim", "index"), True)
    if view.name in {"slice", "narrow"}:
        start, end, step = view.arg("start", 0), view.arg("end"), view.arg("step", 1)
        if view.name == "narrow":
            length = view.arg("length")
            assert isinstance(start, int)
            assert isinstance(length, int)
            end = start + length
        args = (Ref(base), Ref(value), dim, start, end, step)
        return ("slice_scatter.default", args, _SLICE_SCATTER, True)
    if view.name in {"split", "split_with_sizes", "chunk", "tensor_split"}:
        assert isinstance(dim, int)
        start = sum(values[o].shape[dim] for o in view.outputs[:position])
        end = start + values[view.outputs[position]].shape[dim]
        args = (Ref(base), Ref(value), dim, start, end, 1)
        return ("slice_scatter.default", args, _SLICE_SCATTER, True)
    if view.name == "diagonal":
        args = (Ref(base), Ref(value), *view.args[1:])
        return ("diagonal_scatter.default", args, ("self", "src", "offset", "dim1", "dim2"), True)
    if view.name in {"unfold", "as_strided"}:
        windows = values[view.outputs[0]]
        if _has_overlaps(windows):
            return None
        offset = view.arg("storage_offset") or 0
        if not offset and windows.contiguous and windows.numel == prod(shape):
            return ("reshape.default", (Ref(value), shape), ("self", "shape"), False)
        args = (Ref(base), Ref(value), windows.shape, windows.stride, offset)
        return ("as_strided_scatter.default", args, _STRIDED_SCATTER, True)
    if view.name in _RESHAPES:
        return ("reshape.default", (Ref(value), shape), ("self", "shape"), False)
    if view.name in {"transpose", "swapaxes", "swapdims"}:
        return ("transpose.int", (Ref(value), *view.args[1:]), ("self", "dim0", "dim1"), False)
    if view.name in _BACK:
        return (f"{_BACK[view.name]}.default", (Ref(value),), ("self",), False)
    if view.name in {"t", "numpy_T", "mT"}:
        return (view.target, (Ref(value),), ("self",), False)
    if view.name == "permute":
        dims = view.args[1]
        assert isinstance(dims, tuple)
        order = [int(d) % len(dims) for d in dims if isinstance(d, int)]
        inverse = tuple(order.index(i) for i in range(len(order)))
        return ("permute.default", (Ref(value), inverse), ("self", "dims"), False)
    return None


def _has_overlaps(spec: TensorSpec) -> bool:
    """Return whether several elements share one place in memory, as far as the strides tell."""
    reach = 0
    for stride, size in sorted(zip(spec.stride, spec.shape, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += stride * (size - 1)
    return False
