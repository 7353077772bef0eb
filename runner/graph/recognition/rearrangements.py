"""Names copies that only reorder elements.

A row is in the notation of einops (Rogozhnikov, 2022). The views that spell it do not matter, and
axes of size one may be missing; a capital letter is an axis that repeats elements.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from runner.graph.dataflow import Flow
from runner.graph.ir import Operation
from runner.graph.operations import einsum_permutation, kind

REARRANGEMENTS = (
    ("window_partition", (  # Liu et al., 2021
        "b (h i) (w j) c -> (b h w) i j c",
        "b (h i) (w j) c -> (b h w) (i j) c",
        "b (h i) (w j) c -> b (h w) (i j) c",
        "b (h i) (w j) c -> b h w i j c",
        "b (h i) (w j) c -> b h w c i j",
        "b c (h i) (w j) -> (b h w) c i j",
        "b c (h i) (w j) -> (b h w) i j c",
        "b c (h i) (w j) -> (b h w) (i j) c",
        "b c (h i) (w j) -> b h w i j c",
        "b (d k) (h i) (w j) c -> (b d h w) k i j c",
        "b (d k) (h i) (w j) c -> (b d h w) (k i j) c",
    )),
    ("window_reverse", (
        "(b h w) i j c -> b (h i) (w j) c",
        "(b h w) (i j) c -> b (h i) (w j) c",
        "b (h w) (i j) c -> b (h i) (w j) c",
        "(b h w) i j c -> b (h i w j) c",
        "(b h w) (i j) c -> b (h i w j) c",
        "(b h w) c i j -> b c (h i) (w j)",
        "(b h w) i j c -> b c (h i) (w j)",
        "(b h w) (i j) c -> b c (h i) (w j)",
        "b h w i j c -> b c (h i) (w j)",
        "(b d h w) (k i j) c -> b (d k) (h i) (w j) c",
        "(b d h w) k i j c -> b (d k) (h i) (w j) c",
    )),
    ("grid_partition", (  # Tu et al., 2022
        "b (i h) (j w) c -> (b h w) i j c",
        "b (i h) (j w) c -> (b h w) (i j) c",
        "b c (i h) (j w) -> (b h w) (i j) c",
        "b c (i h) (j w) -> b h w i j c",
    )),
    ("grid_reverse", (
        "(b h w) i j c -> b (i h) (j w) c",
        "(b h w) (i j) c -> b (i h) (j w) c",
        "(b h w) (i j) c -> b c (i h) (j w)",
        "b h w i j c -> b c (i h) (j w)",
    )),
    ("patchify", (  # Dosovitskiy et al., 2020
        "b c (h i) (w j) -> b (h w) (i j c)",
        "b c (h i) (w j) -> b (h w) (c i j)",
        "b c (h i) (w j) -> b (h w) c i j",
        "b c (h i) (w j) -> b (h w) c (i j)",
        "b c (h i) (w j) -> b h w (i j c)",
        "b c (h i) (w j) -> b h w (c i j)",
        "b c (t k) (h i) (w j) -> b (t h w) (c k i j)",
        "b c (t k) (h i) (w j) -> b (t h w) (k i j c)",
    )),
    ("unpatchify", (
        "b (h w) (i j c) -> b c (h i) (w j)",
        "b (h w) (c i j) -> b c (h i) (w j)",
        "b h w (i j c) -> b c (h i) (w j)",
        "b h w (c i j) -> b c (h i) (w j)",
    )),
    ("pixel_shuffle", (  # Shi et al., 2016
        "b (c i j) h w -> b c (h i) (w j)",
        "b (i j c) h w -> b c (h i) (w j)",
    )),
    ("pixel_unshuffle", (
        "b c (h i) (w j) -> b (c i j) h w",
        "b c (h i) (w j) -> b (i j c) h w",
    )),
    ("space_to_depth", (  # also the merging of patches
        "b (h i) (w j) c -> b h w (i j c)",
        "b (h i) (w j) c -> b h w (j i c)",
        "b (h i) (w j) c -> b (h w) (i j c)",
        "b (h i) (w j) c -> b (h w) (j i c)",
    )),
    ("channel_shuffle", (  # Zhang et al., 2017
        "b (g c) h w -> b (c g) h w",
        "b h w (g c) -> b h w (c g)",
        "b (g c) l -> b (c g) l",
    )),
    ("repeat_kv", (  # Ainslie et al., 2023: each head of keys for several of queries
        "b h s d -> b (h R) s d",
        "b s h d -> b s (h R) d",
        "b h s d -> b h R s d",
    )),
    ("split_heads", (
        "b s (h d) -> b h s d",
        "b s (h d) -> (b h) s d",
        "b s h d -> b h s d",
        "b s h d -> (b h) s d",
    )),
    ("merge_heads", (
        "b h s d -> b s (h d)",
        "(b h) s d -> b s (h d)",
        "b h s d -> b s h d",
        "b h s d -> (b s) (h d)",
        "(b h) s d -> b s h d",
    )),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """A copy with the views around it, and what they do together."""

    operation: str
    """Name of the operation, such as `window_partition`."""
    pattern: str
    """The rearrangement with letters in the order of axes: `a (b c) -> a c b`."""
    members: frozenset[int]
    """Indices of the copy and of its views."""
    result: str
    """Name of the rearranged value."""


def find_rearrangement(copy: int, flow: Flow) -> Rearrangement | None:
    """Return the named rearrangement that a copy does with as many of its own views as possible.

    Returns None if it has no name.
    """
    operations = flow.operations
    before = [copy]
    while (source := _only_view_before(before[0], flow)) is not None:
        before.insert(0, source)
    after: list[int] = []
    while (user := _only_view_after((after or before)[-1], flow)) is not None:
        after.append(user)
    for end in range(len(after), -1, -1):
        for start in range(len(before)):
            chain = [*before[start:], *after[:end]]
            pattern = _chain_pattern([operations[i] for i in chain], flow)
            if pattern is None:
                continue
            result = operations[chain[-1]].outputs[0]
            ends = (next(operations[chain[0]].refs()), result)
            ranks = [len(flow.graph.values[name].shape) for name in ends]
            for name in _operations_by_key().get(_pattern_key(ranks, pattern), ()):
                if _fits_context(name, chain, flow):
                    return Rearrangement(name, pattern, frozenset(chain), result)
    return None


def _only_view_before(index: int, flow: Flow) -> int | None:
    source = flow.producer.get(next(flow.operations[index].refs(), ""))
    if source is None or flow.is_local[source]:
        return None
    if not flow.operations[source].view and einsum_permutation(flow.operations[source]) is None:
        return None
    return source if flow.users[source] == (index,) and not flow.escapes(source, {index}) else None


def _only_view_after(index: int, flow: Flow) -> int | None:
    users, outputs = flow.users[index], flow.operations[index].outputs
    if len(users) != 1 or flow.returned.intersection(outputs):
        return None
    return users[0] if flow.operations[users[0]].view else None


# --- from shapes to a pattern ---------------------------------------------------------------------


class _Axis:
    """A run of elements along a dimension; once split, it consists of its parts, outer first."""

    def __init__(self, size: int, new: bool = False) -> None:
        self.size, self.new = size, new
        self.parts: tuple[_Axis, ...] = ()

    def leaves(self) -> Iterator["_Axis"]:
        """Yield the axes that are not split."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def split(self, outer: int) -> None:
        """Split into an outer axis of this size and an inner one."""
        self.parts = (_Axis(outer, self.new), _Axis(self.size // outer, self.new))


_Dims = list[list[_Axis]]
"""For each dimension of a tensor, the axes that it consists of."""


def _chain_pattern(chain: list[Operation], flow: Flow) -> str | None:
    """Return what some views and a copy do, with letters in the order of axes: `a (b c) -> a c b`.

    Returns None if one of them is no rearrangement.
    """
    values = flow.graph.values
    first = values[next(chain[0].refs())].shape
    before: _Dims = [[_Axis(size)] if size > 1 else [] for size in first]
    dims = [list(axes) for axes in before]
    for op in chain:
        shapes = (values[next(op.refs())].shape, values[op.outputs[0]].shape)
        dims_after = _dims_after(op, dims, *shapes) if len(op.outputs) == 1 else None
        if dims_after is None:
            return None
        dims = dims_after
    return _write_pattern(before, dims)


def _dims_after(
    op: Operation, dims: _Dims, before: tuple[int, ...], after: tuple[int, ...]
) -> _Dims | None:
    """Return the axes of each dimension after an operation; None if it is no rearrangement."""
    rank = len(before)
    if op.name in _RESHAPES:
        return _regroup_axes([axis for axes in dims for axis in axes], after)
    if op.name in {"contiguous", "clone"}:
        return dims
    if op.name == "permute":
        order = op.args[1]
        assert isinstance(order, tuple)
        return [dims[int(i) % rank] for i in order if isinstance(i, int)]
    if op.name == "einsum":
        order = einsum_permutation(op)
        return None if order is None else [dims[i] for i in order]
    if op.name in {"transpose", "swapaxes", "swapdims"}:
        first, second = (int(i) % rank for i in op.args[1:3] if isinstance(i, int))
        dims_after = list(dims)
        dims_after[first], dims_after[second] = dims[second], dims[first]
        return dims_after
    if op.name in {"expand", "expand_as"}:
        lead = len(after) - rank
        wide: _Dims = [[] for _ in range(lead)] + dims
        sizes = (1,) * lead + before
        return [
            axes if size == new else [_Axis(new, new=True)]
            for axes, size, new in zip(wide, sizes, after, strict=True)
        ]
    if op.name == "unfold":
        dim, size, step = (int(i) for i in op.args[1:4] if isinstance(i, int))
        dim %= rank
        if size != step or before[dim] % size:
            return None
        halves = _regroup_axes(dims[dim], (before[dim] // size, size))
        return None if halves is None else [*dims[:dim], halves[0], *dims[dim + 1 :], halves[1]]
    return None


_RESHAPES = {"view", "reshape", "_unsafe_view", "flatten", "unflatten", "unsqueeze", "squeeze"}


def _regroup_axes(axes: list[_Axis], shape: tuple[int, ...]) -> _Dims | None:
    """Join and split axes so that they make up a shape; None if they cannot."""
    remaining = [leaf for axis in axes for leaf in axis.leaves()]
    dims: _Dims = []
    for size in shape:
        dim: list[_Axis] = []
        while size > 1:
            if not remaining:
                return None
            axis = remaining.pop(0)
            if axis.size > size:
                if axis.size % size:
                    return None
                axis.split(size)
                remaining.insert(0, axis.parts[1])
                axis = axis.parts[0]
            elif size % axis.size:
                return None
            dim.append(axis)
            size //= axis.size
        dims.append(dim)
    return None if remaining else dims


def _write_pattern(before: _Dims, after: _Dims) -> str | None:
    """Return the text of a rearrangement; None if it changes nothing.

    Axes that are neighbours on both sides are written as one.
    """
    sides = [
        [[leaf for axis in axes for leaf in axis.leaves()] for axes in dims]
        for dims in (before, after)
    ]
    merged_pairs = _neighbours(sides[0]) & _neighbours(sides[1])
    letters: dict[_Axis, str] = {}
    texts = []
    for dims in sides:
        text = []
        for leaves in dims:
            named_leaves = [leaf for leaf in leaves if not any(leaf is b for _, b in merged_pairs)]
            for leaf in named_leaves:
                letter = chr(ord("a") + len(letters))
                letters.setdefault(leaf, letter.upper() if leaf.new else letter)
            names = " ".join(letters[leaf] for leaf in named_leaves)
            if named_leaves:
                text.append(f"({names})" if len(named_leaves) > 1 else names)
        texts.append(" ".join(text))
    return " -> ".join(texts) if texts[0] != texts[1] else None


def _neighbours(dims: _Dims) -> set[tuple[_Axis, _Axis]]:
    """Return the pairs of axes that are next to each other in one dimension."""
    return {pair for axes in dims for pair in pairwise(axes)}


@functools.cache
def _operations_by_key() -> dict[str, tuple[str, ...]]:
    """Return the operations that each text of `_write_pattern` may mean, also without a batch."""
    operations: dict[str, tuple[str, ...]] = {}
    for operation, patterns in REARRANGEMENTS:
        for pattern in patterns:
            for key in _pattern_keys(pattern):
                operations[key] = tuple(dict.fromkeys((*operations.get(key, ()), operation)))
    return operations


def _pattern_keys(pattern: str) -> Iterator[str]:
    """Yield a pattern's key as it is, with a batch of one, and without a batch."""
    ranks = [len(re.findall(r"\(.*?\)|\S+", side)) for side in pattern.split("->")]
    yield _pattern_key(ranks, _canonical_pattern(pattern))
    single = _canonical_pattern(pattern.replace("b", " "))
    yield _pattern_key(ranks, single)
    if all(re.search(r"(^|\s)b\s", side) and "(b" not in side for side in pattern.split("->")):
        yield _pattern_key([rank - 1 for rank in ranks], single)


def _pattern_key(ranks: list[int], pattern: str) -> str:
    return f"{ranks[0]} to {ranks[1]} dimensions: {pattern}"


def _canonical_pattern(pattern: str) -> str:
    """Return a row's pattern as `_write_pattern` writes it."""
    axes: dict[str, _Axis] = {}
    sides: list[_Dims] = []
    for text in pattern.split("->"):
        pieces = [grouped or single for grouped, single in re.findall(r"\((.*?)\)|(\S+)", text)]
        sides.append(
            [
                [
                    axes.setdefault(letter, _Axis(2, new=letter.isupper()))
                    for letter in piece.split()
                ]
                for piece in pieces
            ]
        )
    return _write_pattern(*sides) or ""


# --- the program around a copy --------------------------------------------------------------------


def _fits_context(name: str, chain: list[int], flow: Flow) -> bool:
    """Return whether the program around a copy agrees with its name.

    Split heads come from a projection and go to a product; merged heads come from a product.
    """
    if name not in {"split_heads", "merge_heads", "repeat_kv"}:
        return True
    source = flow.producer.get(flow.base(next(flow.operations[chain[0]].refs(), "")))
    producer = flow.operations[source] if source is not None else None
    if name == "merge_heads":
        return producer is not None and producer.name in ATTENTION_PRODUCTS
    readers = {flow.operations[i].name for i in readers_of(chain[-1], flow)}
    if name == "repeat_kv":
        return bool(readers & ATTENTION_PRODUCTS)
    is_projected = (
        producer is not None
        and kind(producer) == "contraction"
        and producer.name not in ATTENTION_PRODUCTS
    )
    return is_projected and bool(readers & ATTENTION_PRODUCTS)


ATTENTION_PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention"}


def readers_of(index: int, flow: Flow) -> Iterator[int]:
    """Yield the operations that read a result, looking through views."""
    for user in flow.users[index]:
        if flow.operations[user].view:
            yield from readers_of(user, flow)
        else:
            yield user
