"""The rows in which people see a tree: what repeats under one parent is one row, with its count."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from runner.tree.dimensions import DTYPE_CODES
from runner.tree.document import Node, Tree
from runner.tree.repetition import find_repetitions

MOST_ALIKE = 11
"""Neighbours that differ in their sizes alone are rows of their own, up to this many."""
MOST_TURNS = 5
"""Blocks that alternate and differ in their sizes: rows of their own, up to this many times."""
MOST_ROWS = 24
"""Rows under one parent; where there are more, neighbours of one structure always share a row."""

_SIGNATURE = re.compile(r"_\d+(x\d+)*(?=_|$)")
"""The first size in the name of a workload; the title is what stands before it."""
_SHAPE = re.compile(r"\d+(x\d+)*|([a-z]{1,2}\d+)+")
"""A word of it that tells a size: `3x64`, `k7s2p3`."""
_LAYOUT = r"permuted|strides\d+|channels|last|itself"
_UNTOLD = re.compile(rf"to|on|of|nobias|gives\d+|eps\w+|{_LAYOUT}|{'|'.join(DTYPE_CODES.values())}")
"""A word of it that no title needs, such as the dtype or a layout."""
_DIGEST = re.compile(r"(?<!_on)_([0-9a-f]{16}|[0-9a-f]{4})(?=_[a-z0-9]+$)")
"""The digest that stands for the inside of a block, before the dtype."""
_KERNEL = re.compile(r"\d+(x\d+)+")
"""The size in a word such as `conv2d_512x160`, which names a kernel that differs in size."""


_NUMBERED = re.compile(r"([a-z_]{3,}?|)((?:(?<!u)m)?\d+(?:p\d+)?(?:em?\d+)?)")
"""A word that is an argument and its number, or a number: `window16`, `momentum0p1`, `2p0`."""


@dataclass(frozen=True, slots=True)
class Item:
    """Instances that are drawn once: of one workload, or of one structure at several sizes."""

    nodes: tuple[Node, ...]
    in_a_row: int = 1
    """How many of them stand next to each other in one repetition of the row."""

    @property
    def first(self) -> Node:
        return self.nodes[0]

    @property
    def equal(self) -> bool:
        """Whether all are of one workload."""
        return all(node.path == self.first.path for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Row:
    """Neighbours under one parent: the same items, `count` times one after the other."""

    items: tuple[Item, ...]
    count: int = 1


class Outline:
    """The rows of one tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.parents = {c: node.id for node in tree.nodes.values() for c in node.children}
        self._structures: dict[str, Hashable] = {}

    def children_of(self, node: Node) -> list[Node]:
        """In the order in which they run."""
        return [self.tree.nodes[child] for child in node.children]

    def rows(self, node: Node) -> list[Row]:
        """The children of a node, each in exactly one row, in the order in which they run."""
        children = self.children_of(node)
        runs = [tuple(same) for _, same in groupby(children, key=lambda child: child.path)]
        rows = [Row((Item(run, len(run)),)) for run in runs]
        rows = _folded(rows, lambda item: (item.first.path, item.in_a_row), most=1)
        alike = self._alike(rows, MOST_ALIKE, MOST_TURNS)
        return alike if len(alike) <= MOST_ROWS else self._alike(rows, most_alike=1, most_turns=1)

    def _alike(self, rows: Sequence[Row], most_alike: int, most_turns: int) -> list[Row]:
        """Make one row of neighbours, or turns, that differ in their sizes alone and are many."""
        joined = _joined(rows, lambda item: self.structure(item.first), most_alike)
        return _folded(joined, lambda item: (self.structure(item.first), item.in_a_row), most_turns)

    def structure(self, node: Node) -> Hashable:
        """Equal for nodes that differ in their sizes alone."""
        if node.path not in self._structures:
            inside = tuple(map(self.structure, self.children_of(node)))
            self._structures[node.path] = (node.level, title(node), inside)
        return self._structures[node.path]


Token = Callable[[Item], Hashable]
"""Key that is equal for neighbours that may share a row."""


def _folded(rows: Sequence[Row], token: Token, most: int) -> list[Row]:
    """Make one row of rows that alternate more than `most` times: `a b a b` is `a b`, twice."""
    folded: list[Row] = []
    place = 0
    for repeat in find_repetitions(_tokens(rows, token)):
        if repeat.count <= most:
            continue
        folded += rows[place : repeat.start]
        columns = zip(*(rows[unit.start : unit.stop] for unit in repeat.units()), strict=True)
        items = (_merged([row.items[0] for row in column]) for column in columns)
        folded.append(Row(tuple(items), repeat.count))
        place = repeat.start + repeat.size
    return [*folded, *rows[place:]]


def _joined(rows: Sequence[Row], token: Token, most: int) -> list[Row]:
    """Make one row of more than `most` neighbours with one token."""
    joined: list[Row] = []
    tokens = _tokens(rows, token)
    for _, run in groupby(range(len(rows)), key=tokens.__getitem__):
        same = [rows[place] for place in run]
        if len(same) > most:
            item = _merged([row.items[0] for row in same])
            same = [Row((replace(item, in_a_row=len(item.nodes)),))]
        joined += same
    return joined


def _tokens(rows: Sequence[Row], token: Token) -> list[Hashable]:
    """A token for each row; a row that repeats already has one of its own."""
    return [
        (place,) if row.count > 1 else (token(row.items[0]), "") for place, row in enumerate(rows)
    ]


def _merged(items: Sequence[Item]) -> Item:
    return Item(tuple(node for item in items for node in item.nodes), items[0].in_a_row)


# --- words ----------------------------------------------------------------------------------------


def stem(node: Node) -> str:
    """The name of a node's workload: `linear_768x3072_fp32`."""
    return node.path.rpartition("/")[2].removesuffix(".py")


def title(node: Node) -> str:
    """The name of a node's workload without its sizes: `linear`, `swin_block shifted`."""
    return f"{_words(stem(node))[0]} {words_of(stem(node))}".strip()


def heading(node: Node) -> str:
    """The title as people read it: `attention causal window 16 sinks`, `einsum bqd,bkd->bqk`."""
    head, *words = title(node).split(" ")
    if equation := node.attributes.get("equation"):
        return f"{head} {equation}"
    told = [_as_number(word) for word in words if word not in head.split("_") or word == "like"]
    return " ".join([head, *told])


def _as_number(word: str) -> str:
    """`window 16` for `window16`, `p 0.5` for `p0p5`."""
    found = _NUMBERED.fullmatch(word)
    if found is None:
        return word
    number = found[2].replace("m", "-").replace("p", ".")
    return f"{found[1]} {number}".lstrip()


def words_of(name: str) -> str:
    """The words in a workload's name that stand after its operation and are no sizes: `shifted`."""
    words = _words(name)[1]
    pairs = zip(words, [*words[1:], ""], strict=False)
    told = (w for w, after in pairs if not _SHAPE.fullmatch(w) and not _KERNEL.fullmatch(after))
    return " ".join(told)


def _words(name: str) -> tuple[str, list[str]]:
    """Split a workload's name: what stands before its sizes, and the words from there on."""
    operation, words = split_name(name)
    return operation, [word for word in words if not _UNTOLD.fullmatch(word)]


def split_name(name: str) -> tuple[str, list[str]]:
    """Split a workload's name: the operation, and the words that say the rest, without a digest."""
    name = _DIGEST.sub("", name)
    found = _SIGNATURE.search(name)
    if found is None:
        return name, []
    words = name[found.start() + 1 :].partition("_as_")[0].split("_")
    return name[: found.start()], words


def names(item: Item) -> str:
    """Return the author's names for the nodes of an item; empty where `title` says the same."""
    known = title(item.first).replace(" ", "_")
    ends = list(dict.fromkeys(node.name for node in (item.first, item.nodes[-1])))
    bare = [re.sub(r"_\d+$", "", end) for end in ends]
    if known in ends or all(
        b.endswith(known) or b.startswith(f"{known}_") or known.startswith(f"{b}_") for b in bare
    ):
        return ""
    return (" … " if len(item.nodes) > 2 else ", ").join(ends)


def shapes(item: Item) -> str:
    """`2x64x256 → 2x64x384 fp32`; of several sizes, `4x(64…992)x56x56 → 4x32x56x56 fp32`."""
    inputs, outputs = (_tensors(item, side) for side in (_inputs, _outputs))
    codes = {code for _, code in (*inputs, *outputs)}
    if len(codes) == 1:
        said = (_listed([shape for shape, _ in side]) for side in (inputs, outputs))
        return f"{' → '.join(said)} {codes.pop()}"
    return " → ".join(_listed([f"{s} {code}" for s, code in side]) for side in (inputs, outputs))


def _inputs(node: Node) -> list[tuple[list[int], str]]:
    return list(zip(node.input_shapes.values(), node.input_dtypes.values(), strict=False))


def _outputs(node: Node) -> list[tuple[list[int], str]]:
    return list(zip(node.output_shapes.values(), node.output_dtypes.values(), strict=False))


def _tensors(
    item: Item, side: Callable[[Node], list[tuple[list[int], str]]]
) -> list[tuple[str, str]]:
    """Shape and dtype of each tensor on one side; as many as all of the item's nodes have."""
    columns = zip(*map(side, item.nodes), strict=False)
    return [
        (span([shape for shape, _ in column]), DTYPE_CODES.get(column[0][1], column[0][1]))
        for column in columns
    ]


def span(several: Sequence[Sequence[int]]) -> str:
    """One shape, or all of several: `4x(64…992)x56x56`."""
    if len({len(shape) for shape in several}) > 1:
        return f"{_shape(several[0])}…{_shape(several[-1])}"
    return _shape([_ends(lengths) for lengths in zip(*several, strict=True)])


def _ends(lengths: Sequence[int]) -> str:
    low, high = min(lengths), max(lengths)
    if low == high:
        return str(low)
    return f"({low}…{high})" if lengths[0] <= lengths[-1] else f"({high}…{low})"


def _shape(dimensions: Sequence[object]) -> str:
    return "x".join(map(str, dimensions)) or "scalar"


def _listed(texts: Sequence[str]) -> str:
    """Texts with commas; neighbours that are equal are counted: `8x128 × 256`."""
    runs = [(text, len(list(same))) for text, same in groupby(texts)]
    return ", ".join(text if n == 1 else f"{text} × {n}" for text, n in runs) or "nothing"
