"""This file knows about the author's own structure: which module call holds which kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from runner.graph.ir import Scope
from runner.tree.fusing import CONCATENATIONS, KernelFlow
from runner.tree.interface import Program

MOSTLY = 0.5
"""Share of a call's kernels from which on the calls inside it are its body, and it their frame."""
_NUMBERED = re.compile(r"^(?P<container>.*?)\.?\d+$")


@dataclass(slots=True)
class Region:
    """One call of a module, or all of forward (no scope): kernels and inner calls, as they run."""

    scope: Scope | None
    items: list[int | Region] = field(default_factory=list)

    def kernels(self) -> Iterator[int]:
        """All kernels in it, at any depth."""
        for item in self.items:
            if isinstance(item, Region):
                yield from item.kernels()
            else:
                yield item

    def inner(self) -> list[Region]:
        return [item for item in self.items if isinstance(item, Region)]

    def walk(self) -> Iterator[Region]:
        """All calls inside, at any depth, outermost first."""
        for region in self.inner():
            yield region
            yield from region.walk()


def regions(program: Program) -> Region:
    """The tree of module calls that hold kernels, without calls that hold just one thing."""
    root = Region(None)
    known: dict[tuple[Scope, ...], Region] = {(): root}
    for k, scopes in enumerate(program.scopes):
        for depth in range(1, len(scopes) + 1):
            if scopes[:depth] not in known:
                known[scopes[:depth]] = Region(scopes[depth - 1])
                known[scopes[: depth - 1]].items.append(known[scopes[:depth]])
        known[scopes].items.append(k)
    _collapse(root)
    while len(root.items) == 1 and isinstance(root.items[0], Region):
        root.items = root.items[0].items
    return root


def _collapse(region: Region) -> None:
    for position, item in enumerate(region.items):
        if isinstance(item, Region):
            _collapse(item)
            while isinstance(item, Region) and len(item.items) == 1:
                item = _merged(item, item.items[0])
            region.items[position] = item


def _merged(outer: Region, inner: int | Region) -> int | Region:
    """A call that holds another one alone: the two as one, by the name that tells more."""
    if isinstance(inner, int) or outer.scope is None or inner.scope is None:
        return inner
    container = is_container(inner.scope) and not is_container(outer.scope)
    numbered = _NUMBERED.match(outer.scope.path) and not _NUMBERED.match(inner.scope.path)
    return Region(outer.scope, inner.items) if container or numbered else inner


def layer_classes(flow: KernelFlow, root: Region, fused: set[int]) -> set[str]:
    """Classes of the blocks that a stack repeats: one numbered container, each feeding the next.

    `fused` holds the ids of regions that are fusions.
    """
    classes: set[str] = set()
    for region in [root, *root.walk()]:
        if blocks := _stacked(flow, region, fused):
            classes |= {
                b.scope.cls for b in blocks if b.scope is not None and not is_container(b.scope)
            }
    return classes


def is_frame(flow: KernelFlow, region: Region, fused: set[int], classes: set[str]) -> bool:
    """Whether a call is little more than the frame around layers, and so no layer itself."""
    held = sum(1 for block in _blocks(flow, region, fused, classes) for _ in block.kernels())
    return held >= MOSTLY * sum(1 for _ in region.kernels())


def _blocks(
    flow: KernelFlow, region: Region, fused: set[int], classes: set[str]
) -> Iterator[Region]:
    """The outermost calls in a region that a stack repeats."""
    stacked = {id(block) for block in _stacked(flow, region, fused)}
    for inner in region.inner():
        named = inner.scope is not None and inner.scope.cls in classes and id(inner) not in fused
        if named or id(inner) in stacked:
            yield inner
        else:
            yield from _blocks(flow, inner, fused, classes)


def is_numbered(scope: Scope) -> bool:
    """Whether a call is known by its place in a container alone: `layers.3`."""
    return scope.path.rpartition(".")[2].isdigit()


def is_container(scope: Scope) -> bool:
    """A class that says nothing about what it holds."""
    return scope.builtin and scope.cls in {"Sequential", "ModuleList", "ModuleDict"}


def _stacked(flow: KernelFlow, region: Region, fused: set[int]) -> list[Region]:
    """The repeated blocks that are called directly in a region."""
    groups: dict[tuple[str, str], list[Region]] = {}
    for inner in region.inner():
        scope = inner.scope
        if scope is None or id(inner) in fused:
            continue
        match = _NUMBERED.match(scope.path)
        if match:
            groups.setdefault((scope.cls, match["container"]), []).append(inner)
    for blocks in groups.values():
        chained = len(blocks) > 1 and all(_feeds(flow, a, b) for a, b in pairwise(blocks))
        if chained and not _concatenated(flow, blocks):
            return blocks
    return []


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
