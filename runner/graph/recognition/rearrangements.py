"""This file knows about copies that only put elements in another order: what their field says.

A row is in the notation of einops (Rogozhnikov, 2022). Which views spell it makes no difference,
and axes of size one may be missing; a capital letter repeats.
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
class Rearranged:
    """A copy with the views around it, and what they do together."""

    operation: str
    pattern: str
    members: frozenset[int]
    result: str


def rearranged(copy: int, flow: Flow) -> Rearranged | None:
    """What a copy does, with as many of the views around it as only serve it."""
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
            pattern = _pattern([operations[i] for i in chain], flow)
            if pattern is None:
                continue
            result = operations[chain[-1]].outputs[0]
            ends = (next(operations[chain[0]].refs()), result)
            ranks = [len(flow.graph.values[name].shape) for name in ends]
            for name in _named().get(_key(ranks, pattern), ()):
                if _fits_its_place(name, chain, flow):
                    return Rearranged(name, pattern, frozenset(chain), result)
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
    """A run of elements; splitting it makes it stand for its parts, the outer one first."""

    def __init__(self, size: int, new: bool = False) -> None:
        self.size, self.new = size, new
        self.parts: tuple[_Axis, ...] = ()

    def leaves(self) -> Iterator["_Axis"]:
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def split(self, outer: int) -> None:
        self.parts = (_Axis(outer, self.new), _Axis(self.size // outer, self.new))


_Dims = list[list[_Axis]]


def _pattern(chain: list[Operation], flow: Flow) -> str | None:
    """What some views and a copy do, in letters by the order of their axes: `a (b c) -> a c b`."""
    values = flow.graph.values
    first = values[next(chain[0].refs())].shape
    before: _Dims = [[_Axis(size)] if size > 1 else [] for size in first]
    dims = [list(axes) for axes in before]
    for op in chain:
        shapes = (values[next(op.refs())].shape, values[op.outputs[0]].shape)
        moved = _moved(op, dims, *shapes) if len(op.outputs) == 1 else None
        if moved is None:
            return None
        dims = moved
    return _write_pattern(before, dims)


def _moved(
    op: Operation, dims: _Dims, before: tuple[int, ...], after: tuple[int, ...]
) -> _Dims | None:
    rank = len(before)
    if op.name in _RESHAPES:
        return _regrouped([axis for axes in dims for axis in axes], after)
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
        one, other = (int(i) % rank for i in op.args[1:3] if isinstance(i, int))
        swapped = list(dims)
        swapped[one], swapped[other] = dims[other], dims[one]
        return swapped
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
        halves = _regrouped(dims[dim], (before[dim] // size, size))
        return None if halves is None else [*dims[:dim], halves[0], *dims[dim + 1 :], halves[1]]
    return None


_RESHAPES = {"view", "reshape", "_unsafe_view", "flatten", "unflatten", "unsqueeze", "squeeze"}


def _regrouped(axes: list[_Axis], shape: tuple[int, ...]) -> _Dims | None:
    """The axes put together, or split, so that they make up a shape."""
    left = [leaf for axis in axes for leaf in axis.leaves()]
    dims: _Dims = []
    for size in shape:
        dim: list[_Axis] = []
        while size > 1:
            if not left:
                return None
            axis = left.pop(0)
            if axis.size > size:
                if axis.size % size:
                    return None
                axis.split(size)
                left.insert(0, axis.parts[1])
                axis = axis.parts[0]
            elif size % axis.size:
                return None
            dim.append(axis)
            size //= axis.size
        dims.append(dim)
    return None if left else dims


def _write_pattern(before: _Dims, after: _Dims) -> str | None:
    sides = [
        [[leaf for axis in axes for leaf in axis.leaves()] for axes in dims]
        for dims in (before, after)
    ]
    together = _neighbours(sides[0]) & _neighbours(sides[1])
    letters: dict[_Axis, str] = {}
    texts = []
    for dims in sides:
        text = []
        for leaves in dims:
            kept = [leaf for leaf in leaves if not any(leaf is b for _, b in together)]
            for leaf in kept:
                letter = chr(ord("a") + len(letters))
                letters.setdefault(leaf, letter.upper() if leaf.new else letter)
            names = " ".join(letters[leaf] for leaf in kept)
            if kept:
                text.append(f"({names})" if len(kept) > 1 else names)
        texts.append(" ".join(text))
    return " -> ".join(texts) if texts[0] != texts[1] else None


def _neighbours(dims: _Dims) -> set[tuple[_Axis, _Axis]]:
    """Axes that lie side by side in one dimension: on both sides, they are one."""
    return {pair for axes in dims for pair in pairwise(axes)}


@functools.cache
def _named() -> dict[str, tuple[str, ...]]:
    """Return the operations that each text of `_write_pattern` may mean, also without a batch."""
    found: dict[str, tuple[str, ...]] = {}
    for operation, patterns in REARRANGEMENTS:
        for pattern in patterns:
            for key in _keys(pattern):
                found[key] = tuple(dict.fromkeys((*found.get(key, ()), operation)))
    return found


def _keys(pattern: str) -> Iterator[str]:
    """As it is, with a batch of one, and without a batch."""
    ranks = [len(re.findall(r"\(.*?\)|\S+", side)) for side in pattern.split("->")]
    yield _key(ranks, _canonical(pattern))
    single = _canonical(pattern.replace("b", " "))
    yield _key(ranks, single)
    if all(re.search(r"(^|\s)b\s", side) and "(b" not in side for side in pattern.split("->")):
        yield _key([rank - 1 for rank in ranks], single)


def _key(ranks: list[int], pattern: str) -> str:
    return f"{ranks[0]} to {ranks[1]} dimensions: {pattern}"


def _canonical(pattern: str) -> str:
    axes: dict[str, _Axis] = {}
    sides: list[_Dims] = []
    for text in pattern.split("->"):
        pieces = [together or alone for together, alone in re.findall(r"\((.*?)\)|(\S+)", text)]
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


# --- what shapes do not tell ----------------------------------------------------------------------


def _fits_its_place(name: str, chain: list[int], flow: Flow) -> bool:
    """Heads come from a projection and go to a product, or come from a product."""
    if name not in {"split_heads", "merge_heads", "repeat_kv"}:
        return True
    source = flow.producer.get(flow.base(next(flow.operations[chain[0]].refs(), "")))
    made = flow.operations[source] if source is not None else None
    if name == "merge_heads":
        return made is not None and made.name in ATTENTION_PRODUCTS
    readers = {flow.operations[i].name for i in readers_of(chain[-1], flow)}
    if name == "repeat_kv":
        return bool(readers & ATTENTION_PRODUCTS)
    projected = (
        made is not None and kind(made) == "contraction" and made.name not in ATTENTION_PRODUCTS
    )
    return projected and bool(readers & ATTENTION_PRODUCTS)


ATTENTION_PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention"}


def readers_of(index: int, flow: Flow) -> Iterator[int]:
    """The operations that read a result, through views."""
    for user in flow.users[index]:
        if flow.operations[user].view:
            yield from readers_of(user, flow)
        else:
            yield user
