"""Writes the calls that give inputs their strides: permute, expand, or a slice of a larger tensor.

Where the model splits `qkv`, each of the three has gaps in memory in which the others lie.
"""

from collections.abc import Iterable, Sequence
from math import ceil

from runner.graph.ir import Arg, Operation, TensorSpec
from runner.tree.interface import Program


def storage_order(spec: TensorSpec) -> tuple[tuple[int, ...], str]:
    """Return (shape to draw, text of the call that turns it into the spec's shape and strides).

    The text is '' if the drawn tensor is right as it is.
    """
    if spec.contiguous or not spec.stride:
        return spec.shape, ""
    if dense := _dense_order(spec):
        return dense
    if cut := find_slice(spec):
        return cut
    return (extent(spec),), f".as_strided({spec.shape}, {spec.stride})"


def _dense_order(spec: TensorSpec) -> tuple[tuple[int, ...], str] | None:
    """Return `storage_order`'s result for a permuted or expanded tensor without gaps, else None."""
    stored_dims = [d for d in range(len(spec.shape)) if spec.stride[d] != 0 or spec.shape[d] == 1]
    order = sorted(stored_dims, key=lambda d: (-spec.stride[d], d))
    step, is_dense = 1, True
    for d in reversed(order):
        is_dense &= spec.shape[d] == 1 or spec.stride[d] == step
        step *= spec.shape[d]
    if is_dense and len(stored_dims) == len(spec.shape):
        return tuple(spec.shape[d] for d in order), _permute_call(order)
    if is_dense and order == stored_dims:
        shape = tuple(n if d in stored_dims else 1 for d, n in enumerate(spec.shape))
        return shape, f".expand({', '.join(map(str, spec.shape))})"
    return None


def _permute_call(order: Sequence[int]) -> str:
    """Return the call that restores the order of dimensions from their order in memory."""
    inverse = [order.index(d) for d in range(len(order))]
    return "" if inverse == sorted(inverse) else f".permute({', '.join(map(str, inverse))})"


def find_slice(spec: TensorSpec, offset: int = 0) -> tuple[tuple[int, ...], str] | None:
    """Return (shape of a contiguous tensor, text of its slice with a spec's shape and strides).

    None if there is no such slice. `offset`: number of the tensor's elements before the slice's
    first one.
    """
    if not spec.shape or not all(spec.stride):
        return None
    order = sorted(range(len(spec.shape)), key=lambda d: (-spec.stride[d], spec.shape[d] == 1, d))
    buffer_shape: list[int] = []
    slices: list[str] = []
    for position, d in enumerate(order):
        count, stride = spec.shape[d], spec.stride[d]
        is_innermost = position == len(order) - 1
        step = stride if is_innermost else 1
        unit = stride // step
        first, offset = divmod(offset, unit)
        end = first + (count - 1) * step + 1
        span = spec.stride[order[position - 1]] if position else max(end, count * step) * unit
        if span % unit or span // unit < end:
            return None
        buffer_shape.append(span // unit)
        slices.append(_slice_text(first, end, buffer_shape[-1], step))
    while slices and slices[-1] == ":":
        slices.pop()
    if len(slices) == len(order) > 2 and set(slices[:-1]) == {":"}:
        slices = ["...", slices[-1]]
    return tuple(buffer_shape), f"[{', '.join(slices)}]" * bool(slices) + _permute_call(order)


def _slice_text(first: int, end: int, length: int, step: int) -> str:
    """Return `2:6`, `:6`, `::2` or `:` for a slice of a dimension of `length` elements."""
    stop = "" if end > length - step else str(end)
    return f"{first or ''}:{stop}" + (f":{step}" if step > 1 else "")


def extent(spec: TensorSpec) -> int:
    """Return the number of elements in memory from a tensor's first one to its last one."""
    return 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.stride, strict=True))


def has_gaps(spec: TensorSpec) -> bool:
    """Return whether a tensor's elements have gaps between them in memory."""
    return not spec.contiguous and bool(spec.stride) and _dense_order(spec) is None


def group_windows(program: Program, names: Iterable[str]) -> list[tuple[str, dict[str, int]]]:
    """Return the values that are windows of the same memory, in groups of two or more.

    A group is the value that owns the memory, and the element at which each window begins, counted
    from the first window.
    """
    windows: dict[tuple[str, str], dict[str, int]] = {}
    for name in names:
        source, offset = _locate_in_memory(program, name)
        if source != name and offset is not None:
            windows.setdefault((source, program.spec(name).dtype), {})[name] = offset
    groups = [(source, group) for (source, _), group in windows.items() if len(group) > 1]
    for _, group in groups:
        first = min(group.values())
        group.update({name: offset - first for name, offset in group.items()})
    return groups


def _locate_in_memory(program: Program, name: str) -> tuple[str, int | None]:
    """Return the value whose memory a value shares, and the element at which it begins there.

    The value itself and None if a view on the way does not say it.
    """
    offset = 0
    while (i := program.producers.get(name)) is not None:
        op = program.graph.operations[i]
        if not op.view:
            break
        skipped = _skipped_elements(program, op, name)
        if skipped is None:
            return name, None
        offset += skipped
        name = next(op.refs())
    return name, offset


def _skipped_elements(program: Program, op: Operation, name: str) -> int | None:
    """Return the number of elements of a view's source before the view's first one.

    None if the operator does not determine it.
    """
    source, result = program.spec(next(op.refs())), program.spec(name)
    output = op.outputs.index(name)
    dim, first = op.arg("dim", 0), _first_index(op, output)
    if not isinstance(dim, int):  # squeeze with several dimensions
        return 0 if source.numel == result.numel else None
    if op.name == "chunk" and isinstance(chunks := op.arg("chunks"), int):
        first = output * ceil(source.shape[dim] / chunks)
    if first is None:
        keeps_elements = source.numel == result.numel and source.dtype == result.dtype
        return 0 if op.name == "expand" or (keeps_elements and op.name != "as_strided") else None
    return max(first + source.shape[dim] if first < 0 else first, 0) * source.stride[dim]


def _first_index(op: Operation, output: int) -> int | None:
    """Return the index along its dimension at which an operator's result number `output` begins.

    None if the operator does not say it.
    """
    first: Arg = None
    if op.name in {"split", "split_with_sizes"}:
        sizes = op.arg("split_sizes", op.arg("split_size"))
        if isinstance(sizes, tuple):
            return sum(size for size in sizes[:output] if isinstance(size, int))
        first = output * sizes if isinstance(sizes, int) else None
    elif op.name == "unbind":
        first = output
    elif op.name == "select":
        first = op.arg("index")
    elif op.name in {"slice", "narrow"}:
        first = op.arg("start") or 0
    return first if isinstance(first, int) else None
