"""Groups the nodes of a tree into rows: repetitions under one parent share a row with a count."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from runner.tree.dimensions import DTYPE_CODES, join_dimensions
from runner.tree.document import Node, Tree
from runner.tree.repetition import find_repetitions

MOST_ALIKE = 11
"""Most neighbours differing only in their sizes that keep rows of their own."""
MOST_TURNS = 5
"""Most turns of alternating blocks, differing only in sizes, that keep rows of their own."""
MOST_ROWS = 24
"""Most rows under one parent; beyond it, all neighbours of one structure share a row."""

_DTYPE = "|".join(DTYPE_CODES.values())
_FIRST_SIZE = re.compile(
    rf"_\d+(x\d+)*(?=_|$)|_scalar(?=(_to)?_(\d|scalar|(x|by|in)\d|{_DTYPE})|$)"
)
"""Matches the first size in the name of a workload; the operation stands before it.

`scalar` is a size before another one, a number or the dtype; elsewhere it is the author's word.
"""
_SIZE_WORD = re.compile(r"\d+(x\d+)*|([a-z]{1,2}\d+)+|scalar")
"""Matches a word of the name that is a size: `3x64`, `k7s2p3`."""
_LAYOUT = r"permuted|strides\d+|channels|last|itself"
_OMITTED_WORD = re.compile(rf"to|on|of|nobias|gives\d+|eps\w+|{_LAYOUT}|{_DTYPE}")
"""Matches a word of the name that titles omit, such as the dtype or a layout."""
_DIGEST = re.compile(r"(?<!_on)_([0-9a-f]{16}|[0-9a-f]{4})(?=_[a-z0-9]+$)")
"""Matches the digest of a block's inside, which stands before the dtype."""
_SIZE = re.compile(r"\d+(x\d+)+")
"""Matches the size in `conv2d_512x160`, where the word before it names a kernel of that size."""


_NUMBERED_WORD = re.compile(
    r"(by|to|[a-z_]{3,}?|)((?:(?<!u)(?<!fro)(?<!di)m)?(?:\d+(?:p\d+)?(?:em?\d+)?|inf))"
)
"""Matches an argument with its number, or a number alone: `window16`, `momentum0p1`, `2p0`."""


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """Instances drawn as one: all of one workload, or of one structure at several sizes."""

    nodes: tuple[Node, ...]
    run_length: int = 1
    """Number of instances that follow each other in one repetition of the row."""

    @property
    def first(self) -> Node:
        return self.nodes[0]

    @property
    def equal(self) -> bool:
        """Whether all instances are of one workload."""
        return all(node.path == self.first.path for node in self.nodes)


@dataclass(frozen=True, slots=True)
class OutlineRow:
    """Neighbours under one parent: a sequence of items, repeated `count` times."""

    items: tuple[OutlineItem, ...]
    count: int = 1


class Outline:
    """The rows of one tree, computed for a node at a time."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.parents = {c: node.id for node in tree.nodes.values() for c in node.children}
        self._structures: dict[str, Hashable] = {}

    def children_of(self, node: Node) -> list[Node]:
        """Return the children of a node, in execution order."""
        return [self.tree.nodes[child] for child in node.children]

    def rows(self, node: Node) -> list[OutlineRow]:
        """Return the rows of a node's children, each in exactly one row, in execution order."""
        rows = self.rows_of_equals(node)
        merged = self._merge_similar(rows, MOST_ALIKE, MOST_TURNS)
        return (
            merged
            if len(merged) <= MOST_ROWS
            else self._merge_similar(rows, most_alike=1, most_turns=1)
        )

    def rows_of_equals(self, node: Node) -> list[OutlineRow]:
        """Return the rows of a node's children where only equal workloads share a row."""
        children = self.children_of(node)
        runs = [tuple(same) for _, same in groupby(children, key=lambda child: child.path)]
        rows = [OutlineRow((OutlineItem(run, len(run)),)) for run in runs]
        return _fold_rows(rows, lambda item: (item.first.path, item.run_length), limit=1)

    def _merge_similar(
        self, rows: Sequence[OutlineRow], most_alike: int, most_turns: int
    ) -> list[OutlineRow]:
        """Merge neighbours, then turns, that only differ in sizes and exceed their limit."""
        joined = _join_rows(rows, lambda item: self.structure(item.first), most_alike)
        return _fold_rows(
            joined, lambda item: (self.structure(item.first), item.run_length), most_turns
        )

    def structure(self, node: Node) -> Hashable:
        """Return a key that is equal for nodes that only differ in their sizes."""
        if node.path not in self._structures:
            inside = tuple(map(self.structure, self.children_of(node)))
            self._structures[node.path] = (node.level, title(node), inside)
        return self._structures[node.path]


Token = Callable[[OutlineItem], Hashable]
"""Function that gives a key, which is equal for neighbours that may share a row."""


def _fold_rows(rows: Sequence[OutlineRow], token: Token, limit: int) -> list[OutlineRow]:
    """Merge rows that alternate more than `limit` times: `a b a b` becomes `a b`, twice."""
    folded: list[OutlineRow] = []
    position = 0
    for repeat in find_repetitions(_tokens(rows, token), _offbeats(rows)):
        if repeat.count <= limit:
            continue
        folded += rows[position : repeat.start]
        columns = zip(*(rows[unit.start : unit.stop] for unit in repeat.units()), strict=True)
        items = (_merge_items([row.items[0] for row in column]) for column in columns)
        folded.append(OutlineRow(tuple(items), repeat.count))
        position = repeat.start + repeat.size
    return [*folded, *rows[position:]]


def _offbeats(rows: Sequence[OutlineRow]) -> list[bool]:
    """Return for each row whether no turn begins there, as far as the operations' names tell.

    The first turn of `conv relu, conv relu, conv` may have other sizes than the second one, and
    is none of the equal turns: these still begin with `conv`.
    """
    names = [title(row.items[0].first).partition(" ")[0] for row in rows]
    starts = {unit.start for repeat in find_repetitions(names) for unit in repeat.units()}
    return [position not in starts for position in range(len(rows))]


def _join_rows(rows: Sequence[OutlineRow], token: Token, limit: int) -> list[OutlineRow]:
    """Merge neighbours with equal tokens if there are more than `limit`."""
    joined: list[OutlineRow] = []
    tokens = _tokens(rows, token)
    for _, run in groupby(range(len(rows)), key=tokens.__getitem__):
        same = [rows[position] for position in run]
        if len(same) > limit:
            item = _merge_items([row.items[0] for row in same])
            same = [OutlineRow((replace(item, run_length=len(item.nodes)),))]
        joined += same
    return joined


def _tokens(rows: Sequence[OutlineRow], token: Token) -> list[Hashable]:
    """Return a token for each row; a row that already repeats gets a unique one."""
    return [
        (position,) if row.count > 1 else (token(row.items[0]), "")
        for position, row in enumerate(rows)
    ]


def _merge_items(items: Sequence[OutlineItem]) -> OutlineItem:
    return OutlineItem(tuple(node for item in items for node in item.nodes), items[0].run_length)


# --- words ----------------------------------------------------------------------------------------


def workload_name(node: Node) -> str:
    """Return the name of a node's workload: `linear_768x3072_fp32`."""
    return node.path.rpartition("/")[2].removesuffix(".py")


def title(node: Node) -> str:
    """Return the name of a node's workload without sizes: `linear`, `swin_block shifted`."""
    return f"{_title_words(workload_name(node))[0]} {variant_words(workload_name(node))}".strip()


def heading(node: Node) -> str:
    """Return the readable title: `attention causal window 16 sinks`, `einsum bqd,bkd->bqk`."""
    head, *words = title(node).split(" ")
    if equation := node.attributes.get("equation"):
        return f"{head} {equation}"
    readable_words = [
        _as_number(word) for word in words if word not in head.split("_") or word == "like"
    ]
    return " ".join([head, *readable_words])


def _as_number(word: str) -> str:
    """Return `window 16` for `window16`, `p 0.5` for `p0p5`."""
    match = _NUMBERED_WORD.fullmatch(word)
    if match is None:
        return word
    number = match[2].replace("m", "-").replace("p", ".")
    return f"{match[1]} {number}".lstrip()


def variant_words(name: str) -> str:
    """Return the words after the operation in a workload's name, without sizes: `shifted`."""
    words = _title_words(name)[1]
    pairs = zip(words, [*words[1:], ""], strict=False)
    kept_words = (
        word
        for word, next_word in pairs
        if not _SIZE_WORD.fullmatch(word) and not _SIZE.fullmatch(next_word)
    )
    return " ".join(kept_words)


def _title_words(name: str) -> tuple[str, list[str]]:
    """Split a workload's name into the operation and the words after it that titles may use."""
    operation, words = split_name(name)
    return operation, [word for word in words if not _OMITTED_WORD.fullmatch(word)]


def split_name(name: str) -> tuple[str, list[str]]:
    """Split a workload's name into the operation and the words after it, without the digest."""
    name = _DIGEST.sub("", name)
    match = _FIRST_SIZE.search(name)
    if match is None:
        return name, []
    words = name[match.start() + 1 :].partition("_as_")[0].split("_")
    return name[: match.start()], words


def author_names(item: OutlineItem) -> str:
    """Return the author's names for the nodes of an item; "" if they say the same as its title."""
    title_name = title(item.first).replace(" ", "_")
    end_names = list(dict.fromkeys(node.name for node in (item.first, item.nodes[-1])))
    bare_names = [re.sub(r"_\d+$", "", end_name) for end_name in end_names]
    if title_name in end_names or all(
        name.endswith(title_name)
        or name.startswith(f"{title_name}_")
        or title_name.startswith(f"{name}_")
        for name in bare_names
    ):
        return ""
    return (" … " if len(item.nodes) > 2 else ", ").join(end_names)


def format_shapes(item: OutlineItem) -> str:
    """Return `2x64x256 → 2x64x384 fp32`, or with ranges, `4x(64…992)x56x56 → 4x32x56x56 fp32`."""
    inputs, outputs = (_tensor_texts(item, side) for side in (_inputs, _outputs))
    codes = {code for _, code in (*inputs, *outputs)}
    if len(codes) == 1:
        side_texts = (
            _count_repetitions([shape for shape, _ in side]) for side in (inputs, outputs)
        )
        return f"{' → '.join(side_texts)} {codes.pop()}"
    return " → ".join(
        _count_repetitions([f"{s} {code}" for s, code in side]) for side in (inputs, outputs)
    )


def _inputs(node: Node) -> list[tuple[list[int], str]]:
    return list(zip(node.input_shapes.values(), node.input_dtypes.values(), strict=False))


def _outputs(node: Node) -> list[tuple[list[int], str]]:
    return list(zip(node.output_shapes.values(), node.output_dtypes.values(), strict=False))


def _tensor_texts(
    item: OutlineItem, side: Callable[[Node], list[tuple[list[int], str]]]
) -> list[tuple[str, str]]:
    """Return shape and dtype of each input (or output), as many as every node of the item has."""
    columns = zip(*map(side, item.nodes), strict=False)
    return [
        (shape_range([shape for shape, _ in column]), DTYPE_CODES.get(column[0][1], column[0][1]))
        for column in columns
    ]


def shape_range(shapes: Sequence[Sequence[int]]) -> str:
    """Return shapes as one text, with the range of each dimension: `4x(64…992)x56x56`."""
    if len({len(shape) for shape in shapes}) > 1:
        first, last = (join_dimensions(shape) or "scalar" for shape in (shapes[0], shapes[-1]))
        return f"{first}…{last}"
    return join_dimensions(map(_size_range, zip(*shapes, strict=True))) or "scalar"


def _size_range(lengths: Sequence[int]) -> str:
    low, high = min(lengths), max(lengths)
    if low == high:
        return str(low)
    return f"({low}…{high})" if lengths[0] <= lengths[-1] else f"({high}…{low})"


def _count_repetitions(texts: Sequence[str]) -> str:
    """Return texts joined by commas, with equal neighbours counted: `8x128 × 256`."""
    runs = [(text, len(list(group))) for text, group in groupby(texts)]
    return (
        ", ".join(text if count == 1 else f"{text} × {count}" for text, count in runs) or "nothing"
    )
