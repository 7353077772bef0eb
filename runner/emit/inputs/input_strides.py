"""Says how inputs lie in memory: permuted, expanded, or as slices of a larger tensor.

Where the model splits `qkv`, each of the three has gaps in which the others lie.
"""

from collections.abc import Iterable, Sequence
from math import ceil

from runner.graph.ir import Arg, Operation, TensorSpec
from runner.tree.interface import Program


def storage_order(spec: TensorSpec) -> tuple[tuple[int, ...], str]:
    """(shape to draw, what turns it into the shape and strides wanted)."""
    if spec.contiguous or not spec.stride:
        return spec.shape, ""
    if dense := _without_gaps(spec):
        return dense
    if found := slice_of(spec):
        return found
    return (extent(spec),), f".as_strided({spec.shape}, {spec.stride})"


def _without_gaps(spec: TensorSpec) -> tuple[tuple[int, ...], str] | None:
    """As `storage_order`, for a tensor that is all of its memory, permuted or expanded."""
    real = [d for d in range(len(spec.shape)) if spec.stride[d] != 0 or spec.shape[d] == 1]
    order = sorted(real, key=lambda d: (-spec.stride[d], d))
    step, dense = 1, True
    for d in reversed(order):
        dense &= spec.shape[d] == 1 or spec.stride[d] == step
        step *= spec.shape[d]
    if dense and len(real) == len(spec.shape):
        return tuple(spec.shape[d] for d in order), _permute(order)
    if dense and order == real:
        kept = tuple(n if d in real else 1 for d, n in enumerate(spec.shape))
        return kept, f".expand({', '.join(map(str, spec.shape))})"
    return None


def _permute(order: Sequence[int]) -> str:
    """The call that gives dimensions back their places, from how they lie in memory."""
    inverse = [order.index(d) for d in range(len(order))]
    return "" if inverse == sorted(inverse) else f".permute({', '.join(map(str, inverse))})"


def slice_of(spec: TensorSpec, begin: int = 0) -> tuple[tuple[int, ...], str] | None:
    """(shape of a contiguous tensor, the slice of it with these strides); None: there is none.

    begin: number of elements of that tensor before the first of the slice.
    """
    if not spec.shape or not all(spec.stride):
        return None
    order = sorted(range(len(spec.shape)), key=lambda d: (-spec.stride[d], spec.shape[d] == 1, d))
    whole: list[int] = []
    slices: list[str] = []
    for place, d in enumerate(order):
        count, stride = spec.shape[d], spec.stride[d]
        innermost = place == len(order) - 1
        step = stride if innermost else 1
        unit = stride // step
        first, begin = divmod(begin, unit)
        end = first + (count - 1) * step + 1
        room = spec.stride[order[place - 1]] if place else max(end, count * step) * unit
        if room % unit or room // unit < end:
            return None
        whole.append(room // unit)
        slices.append(_slice(first, end, whole[-1], step))
    while slices and slices[-1] == ":":
        slices.pop()
    if len(slices) == len(order) > 2 and set(slices[:-1]) == {":"}:
        slices = ["...", slices[-1]]
    return tuple(whole), f"[{', '.join(slices)}]" * bool(slices) + _permute(order)


def _slice(first: int, end: int, whole: int, step: int) -> str:
    """`2:6`, `:6`, `::2`, `:` of a dimension of `whole` elements."""
    until = "" if end > whole - step else str(end)
    return f"{first or ''}:{until}" + (f":{step}" if step > 1 else "")


def extent(spec: TensorSpec) -> int:
    """Elements from the first to the last, with all that lies between them."""
    return 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.stride, strict=True))


def has_gaps(spec: TensorSpec) -> bool:
    """Whether there are elements of others between its own."""
    return not spec.contiguous and bool(spec.stride) and _without_gaps(spec) is None


def windows_of_one(program: Program, names: Iterable[str]) -> list[tuple[str, dict[str, int]]]:
    """Values that are windows of the same memory: what it is of, and where each begins in it."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for name in names:
        source, begin = _place(program, name)
        if source != name and begin is not None:
            found.setdefault((source, program.spec(name).dtype), {})[name] = begin
    groups = [(source, group) for (source, _), group in found.items() if len(group) > 1]
    for _, group in groups:
        first = min(group.values())
        group.update({name: begin - first for name, begin in group.items()})
    return groups


def _place(program: Program, name: str) -> tuple[str, int | None]:
    """The value whose memory it is, and the element at which it begins, where that is known."""
    begin = 0
    while (i := program.producers.get(name)) is not None:
        op = program.graph.operations[i]
        if not op.view:
            break
        skipped = _skipped(program, op, name)
        if skipped is None:
            return name, None
        begin += skipped
        name = next(op.refs())
    return name, begin


def _skipped(program: Program, op: Operation, name: str) -> int | None:
    """Elements of a view's source before the view's first one, where the operator says it."""
    source, result = program.spec(next(op.refs())), program.spec(name)
    at = op.outputs.index(name)
    dim, first = op.arg("dim", 0), _first(op, at)
    if not isinstance(dim, int):  # several are squeezed
        return 0 if source.numel == result.numel else None
    if op.name == "chunk" and isinstance(chunks := op.arg("chunks"), int):
        first = at * ceil(source.shape[dim] / chunks)
    if first is None:
        rearranges = source.numel == result.numel and source.dtype == result.dtype
        return 0 if op.name == "expand" or (rearranges and op.name != "as_strided") else None
    return max(first + source.shape[dim] if first < 0 else first, 0) * source.stride[dim]


def _first(op: Operation, at: int) -> int | None:
    """Where along its dimension an operator's result number `at` begins; None: it does not say."""
    first: Arg = None
    if op.name in {"split", "split_with_sizes"}:
        sizes = op.arg("split_sizes", op.arg("split_size"))
        if isinstance(sizes, tuple):
            return sum(size for size in sizes[:at] if isinstance(size, int))
        first = at * sizes if isinstance(sizes, int) else None
    elif op.name == "unbind":
        first = at
    elif op.name == "select":
        first = op.arg("index")
    elif op.name in {"slice", "narrow"}:
        first = op.arg("start") or 0
    return first if isinstance(first, int) else None
