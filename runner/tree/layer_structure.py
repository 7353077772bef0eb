"""Which module calls are layers, and which are no more than the frames around layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from runner.tree.fusions import (
    CONCATENATIONS,
    LARGEST_FUSION,
    KernelFlow,
    fits_fusion,
    is_residual,
    pieces,
)
from runner.tree.module_regions import Region, holder_of, is_container, is_uncalled

MOSTLY = 0.5
"""Share of a call's kernels from which on the calls inside it are its body, and it their frame."""
LARGEST_LAYER = 24
"""Parts of a layer; one with more that is mostly calls too large for a fusion is their frame."""


@dataclass(frozen=True, slots=True)
class Row:
    """Calls of one class in one region, each of which feeds the next."""

    cls: str
    calls: list[Region]
    held: bool
    """They are elements of one container."""
    alike: bool
    """Nothing else is called of that container."""


class Structure:
    """Which module calls are layers, and which are no more than the frames around layers.

    A container that holds blocks of one class is a stack, wherever it is. Blocks among others (in a
    Sequential, or as attributes) are layers too, but in no call whose class is repeated itself: the
    outermost repeated class is the layer. No attribute's name decides.
    """

    def __init__(self, flow: KernelFlow, root: Region, fused: set[int]) -> None:
        self.flow, self.fused = flow, fused
        self.containers = flow.program.graph.containers
        self.times = Counter(_own_class(r) for r in root.walk() if id(r) not in fused)
        self.wide: dict[str, bool] = {}
        """By an author's class: whether one of its calls would be a layer of too many parts."""
        self.of_class: dict[str, list[Region]] = {}
        for region in root.walk():
            if _own_class(region):
                self.of_class.setdefault(_own_class(region), []).append(region)
        self.methods: dict[str, set[str]] = {}
        """By a module's path: how it is called, by a method's name or, the empty one, itself."""
        for region in root.walk():
            if region.scope is not None:
                self.methods.setdefault(region.scope.path, set()).add(region.scope.method)
        self.recursive = {_own_class(r) for r in root.walk() if _holds_itself(r)}
        """Classes that call themselves, at any depth."""
        self.outermost: dict[int, bool] = {}
        """By a region's id: whether neither it nor a call around it is of a repeated class."""
        self._mark(root, True)
        rows = [row for region in [root, *root.walk()] for row in self._layer_rows(region)]
        self.classes = {row.cls for row in rows} - {""}
        self.stacked = {row.cls for row in rows if row.alike} - {""}
        """Classes of which a container holds nothing else."""
        self.halves = {id(r) for around in [root, *root.walk()] for r in self._halves(around)}
        """By a region's id: calls around small blocks that stand side by side."""

    def _mark(self, region: Region, outermost: bool) -> None:
        self.outermost[id(region)] = outermost
        for inner in region.inner():
            cls = _own_class(inner)
            repeated = self.times[cls] > 1 if cls else is_uncalled(inner) or self._is_mixed(inner)
            self._mark(inner, outermost and not repeated)

    def is_repeated(self, region: Region) -> bool:
        """Whether the class of a call is called several times."""
        return self.times[_own_class(region)] > 1 and bool(_own_class(region))

    def is_frame(self, region: Region) -> bool:
        """Whether a call is little more than the frame around layers, and so no layer itself."""
        if self._is_one_of_several_methods(region):
            return True
        return id(region) not in self.halves and self._is_around_layers(region)

    def _is_one_of_several_methods(self, region: Region) -> bool:
        """Whether a module's methods are called by name, and this one mostly calls large modules.

        A codec's `encode` and `decode` are no blocks: its encoder, quantizer and decoder are.
        """
        if region.scope is None or not region.scope.method:
            return False
        large = sum(_size(inner) for inner in region.inner() if _size(inner) > LARGEST_FUSION)
        return len(self.methods[region.scope.path]) > 1 and large >= MOSTLY * _size(region)

    def _is_around_layers(self, region: Region) -> bool:
        kernels = _size(region)
        level = max((_size(r) for r in region.walk() if _own_class(r) in self.recursive), default=0)
        if level >= MOSTLY * kernels:
            return True  # a U-Net by recursion: each level holds the next
        if self._is_mixed(region):
            return self._is_too_wide(region, kernels)
        cls = _own_class(region)
        repeated = bool(cls) and self.times[cls] > 1
        blocks = [b for b in self._blocks(region) if _own_class(b) or not repeated]
        held = sum(map(_size, blocks))
        if held >= MOSTLY * kernels or self._is_called_elsewhere(region):
            return True
        if cls not in self.of_class:
            return self._is_too_wide(region, kernels)
        if cls not in self.wide:
            alike = self.of_class[cls]
            self.wide[cls] = any(self._is_too_wide(r, _size(r)) for r in alike)
        return self.wide[cls]

    def _is_called_elsewhere(self, region: Region) -> bool:
        """Whether most of a call is one module's call, which is called outside of it, too."""
        most = max(region.inner(), key=_size, default=None)
        if most is None or not _own_class(region) or not _own_class(most):
            return False
        within = list(map(id, region.walk()))
        assert most.scope is not None
        return (
            _size(most) >= MOSTLY * _size(region)
            and any(
                r.scope is not None and r.scope.path == most.scope.path and id(r) not in within
                for r in self.of_class[_own_class(most)]
            )
            and self.times[_own_class(region)] == 1
        )

    def _is_mixed(self, region: Region) -> bool:
        """Whether a container in a list holds calls of several classes: it is a block itself."""
        classes = {r.scope.cls for r in region.inner() if r.scope and id(r) not in self.fused}
        return (
            region.scope is not None
            and is_container(region.scope)
            and not is_uncalled(region)
            and holder_of(region.scope) in self.containers
            and len(classes) > 1
        )

    def _halves(self, around: Region) -> Iterator[Region]:
        """Calls in a region that stand side by side, such as an encoder and a decoder.

        One whose blocks are small enough for fusions, and few, is a layer and no frame. So is a
        small one with blocks of the same class.
        """
        calls = list(self._calls(around))
        large = [r for r in calls if _own_class(r) and _size(r) > LARGEST_FUSION]
        if len(large) < 2:
            return
        in_a_row = {id(call) for row in self._rows(around) for call in row.calls}
        held = {_own_class(block) for r in large for block in self._blocks(r)} - {""}
        for region in calls:
            blocks = {_own_class(block) for block in self._blocks(region)}
            alike = bool(_own_class(region) and blocks) and blocks <= held
            if not alike and id(region) not in map(id, large):
                continue
            if (
                id(region) not in in_a_row
                and self._holder(region) not in self.containers
                and _own_class(region) not in self.recursive
                and not self._is_called_elsewhere(region)
                and self._parts(region) <= LARGEST_LAYER
                and all(map(self._is_small_block, self._blocks(region)))
            ):
                yield region

    def _calls(self, around: Region) -> Iterator[Region]:
        """The calls in a region, those of one of several methods replaced by what it calls."""
        for region in around.inner():
            if self._is_one_of_several_methods(region):
                yield from self._calls(region)
            else:
                yield region

    def _is_small_block(self, block: Region) -> bool:
        """Whether a block is one fusion, which ends in one residual add at most."""
        if block.scope is not None and is_container(block.scope):
            return all(map(self._is_small_block, block.inner()))
        kernels = set(block.kernels())
        adds = sum(is_residual(self.flow, k, kernels) for k in kernels)
        return adds < 2 and fits_fusion(self.flow, kernels)

    def _blocks(self, region: Region) -> Iterator[Region]:
        """The outermost calls in a region that are layers."""
        stacked = {id(call) for row in self._layer_rows(region) for call in row.calls}
        for inner in region.inner():
            cls = _own_class(inner)
            named = self.outermost[id(region)] and cls in self.classes
            named |= cls in self.stacked and self._is_alone(inner, region)  # a list of one
            if id(inner) not in self.fused and (named or id(inner) in stacked):
                yield inner
            else:
                yield from self._blocks(inner)

    def _layer_rows(self, region: Region) -> Iterator[Row]:
        yield from self._stacks(region)
        for row in self._rows(region):
            large = all(map(self._is_large, row.calls))
            if row.alike or (self.outermost[id(region)] and (row.held or large)):
                yield row

    def _stacks(self, region: Region) -> Iterator[Row]:
        """Lists of large calls of several classes, each of which feeds the next."""
        lists: dict[str, list[Region]] = {}
        for inner in region.inner():
            if self._holder(inner) in self.containers:
                lists.setdefault(self._holder(inner), []).append(inner)
        for calls in lists.values():
            classes = {_own_class(call) for call in calls}
            if (
                len(classes) > 1
                and "" not in classes
                and all(map(self._is_large, calls))
                and all(_feeds(self.flow, a, b) for a, b in pairwise(calls))
                and not _concatenated(self.flow, calls)
            ):
                yield Row("", calls, held=True, alike=True)

    def _is_large(self, region: Region) -> bool:
        """Whether a call is too much for one fusion: many kernels, or several blocks of its own."""
        blocks = [r for r in region.walk() if id(r) not in self.fused and _own_class(r)]
        return _size(region) > LARGEST_FUSION or len(blocks) > 1

    def _rows(self, region: Region) -> Iterator[Row]:
        """The rows of calls that are called directly in a region."""
        groups: dict[tuple[str, str], list[Region]] = {}
        for inner in region.inner():
            if inner.scope is not None and id(inner) not in self.fused:
                holder = holder_of(inner.scope)
                held_by = holder if holder in self.containers else ""
                groups.setdefault((inner.scope.callee, held_by), []).append(inner)
        for (cls, holder), calls in groups.items():
            chained = len(calls) > 1 and all(_feeds(self.flow, a, b) for a, b in pairwise(calls))
            if chained and not _concatenated(self.flow, calls):
                others = [item for item in region.items if item not in calls]
                alike = bool(holder) and all(self._holder(item) != holder for item in others)
                builtin = calls[0].scope is not None and is_container(calls[0].scope)
                yield Row("" if builtin else cls, calls, bool(holder), alike)

    def _is_alone(self, call: Region, region: Region) -> bool:
        """Whether a container holds a call and nothing else."""
        holder = self._holder(call)
        return holder in self.containers and all(
            self._holder(item) != holder for item in region.items if item is not call
        )

    def _holder(self, item: int | Region) -> str:
        """The path of the module that holds the called one, of a lone kernel too."""
        if isinstance(item, int):
            scopes = self.flow.program.scopes[item]
            return holder_of(scopes[-1]) if scopes else ""
        return holder_of(item.scope) if item.scope is not None else ""

    def _is_too_wide(self, region: Region, kernels: int) -> bool:
        """Whether a layer would have too many parts, mostly of blocks that a fusion cannot hold.

        Blocks are repeated calls with many kernels, and elements of a list that nobody calls.
        """
        if self._parts(region) <= LARGEST_LAYER:
            return False
        large = [r for r in region.walk() if _size(r) > LARGEST_FUSION and _own_class(r)]
        times = Counter(map(_own_class, large))
        repeated = [r for r in large if times[_own_class(r)] > 1]
        blocks = [*repeated, *filter(is_uncalled, region.inner())]
        return len({k for r in blocks for k in r.kernels()}) >= MOSTLY * kernels

    def _parts(self, region: Region) -> int:
        loose = [item for item in region.items if isinstance(item, int)]
        return pieces(self.flow, loose) + sum(
            1
            if fits_fusion(self.flow, list(inner.kernels()))
            and not self.is_opened(inner)
            and not self.is_two_blocks(inner)
            else self._parts(inner)
            for inner in region.inner()
        )

    def is_two_blocks(self, region: Region) -> bool:
        """Whether it is a container with two residual adds: attention, then MLP."""
        assert region.scope is not None
        inside = set(region.kernels())
        adds = sum(is_residual(self.flow, k, inside) for k in inside)
        return is_container(region.scope) and adds > 1

    def is_opened(self, region: Region) -> bool:
        """Whether a call with many kernels holds calls of one class, each with contractions."""
        several = (
            _own_class(inner)
            for inner in region.walk()
            if sum(self.flow.contractions[k] for k in inner.kernels()) > 1
        )
        times = Counter(cls for cls in several if cls)
        return _size(region) > LARGEST_FUSION and max(times.values(), default=0) > 1


def _own_class(region: Region) -> str:
    """The author's class of a call; empty for a container."""
    scope = region.scope
    return "" if scope is None or is_container(scope) else scope.callee


def wrapped(region: Region) -> str:
    """The author's class of the one call that holds most of another call; empty where none does."""
    most = max(region.inner(), key=_size, default=None)
    if most is None or not _own_class(region) or _size(most) <= MOSTLY * _size(region):
        return ""
    return _own_class(most)


def wrappers(root: Region) -> frozenset[str]:
    """Classes whose calls hold one other call each, but of several classes: `Residual`."""
    inside: dict[str, set[str]] = {}
    for region in root.walk():
        if cls := _own_class(region):
            inside.setdefault(cls, set()).add(wrapped(region))
    return frozenset(cls for cls, found in inside.items() if len(found) > 1 and "" not in found)


def _holds_itself(region: Region) -> bool:
    """Whether a call of an author's class calls that class again, at any depth."""
    cls = _own_class(region)
    return bool(cls) and any(_own_class(inner) == cls for inner in region.walk())


def _size(region: Region) -> int:
    return sum(1 for _ in region.kernels())


def _concatenated(flow: KernelFlow, blocks: list[Region]) -> bool:
    """Whether a concatenation reads what several calls gave: they are one dense block."""
    block_of = {k: n for n, block in enumerate(blocks) for k in block.kernels()}
    for k, kernel in enumerate(flow.kernels):
        if kernel.operation in CONCATENATIONS:
            read = {block_of.get(m) for _, m in flow.activations(k) if m is not None}
            if len(read - {None, block_of.get(k)}) > 1:
                return True
    return False


def _feeds(flow: KernelFlow, first: Region, second: Region) -> bool:
    """Whether what one call computes reaches the other, through anything in between."""
    goal = set(second.kernels())
    last = max(goal)
    queue = list(first.kernels())
    seen = set(queue)
    while queue:
        for reader in flow.exits(queue.pop())[0] - seen:
            if reader in goal:
                return True
            if reader < last:
                seen.add(reader)
                queue.append(reader)
    return False
