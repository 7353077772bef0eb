"""Builds the tree of the author's module calls, with the kernels that each call contains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from runner.graph.ir import Scope
from runner.tree.fusions import (
    CONCATENATIONS,
    KernelFlow,
    is_join,
)


@dataclass(slots=True)
class Region:
    """One call of a module, or all of forward (no scope): kernels and inner calls, as they run."""

    scope: Scope | None
    items: list[int | Region] = field(default_factory=list)

    def kernels(self) -> Iterator[int]:
        """Yield all kernels in it, at any depth."""
        for item in self.items:
            if isinstance(item, Region):
                yield from item.kernels()
            else:
                yield item

    def inner(self) -> list[Region]:
        """Return the calls directly inside."""
        return [item for item in self.items if isinstance(item, Region)]

    def walk(self) -> Iterator[Region]:
        """Yield all calls inside, at any depth, outermost first."""
        for region in self.inner():
            yield region
            yield from region.walk()


def regions(flow: KernelFlow) -> Region:
    """Return the tree of module calls that hold kernels, without calls that hold only one item."""
    root = Region(None)
    known: dict[tuple[Scope, ...], Region] = {(): root}
    for k, scopes in enumerate(flow.program.scopes):
        for depth in range(1, len(scopes) + 1):
            if scopes[:depth] not in known:
                known[scopes[:depth]] = Region(scopes[depth - 1])
                known[scopes[: depth - 1]].items.append(known[scopes[:depth]])
        known[scopes].items.append(k)
    containers = flow.program.graph.containers
    for region in list(known.values()):
        _gather(flow, region, containers)
    _collapse(root, containers)
    while len(root.items) == 1 and isinstance(root.items[0], Region):
        root.items = root.items[0].items
    return root


# --- containers that nobody calls -----------------------------------------------------------------


def _gather(flow: KernelFlow, region: Region, containers: frozenset[str]) -> None:
    """Group the calls of one element of a module list, if the element is a container itself.

    `for layer in self.down: x = layer["down"](layer["block"](x))` never calls `down.0`, but its
    author would draw it as one block. The block includes the kernels between its calls, a
    concatenation that only it reads, and the residual add that it ends in.
    """
    gathered: list[int | Region] = []
    place = 0
    while place < len(region.items):
        path = _uncalled(region.scope, region.items[place], containers)
        end = _run_end(region, place, path, containers) if path else place + 1
        run = region.items[place:end]
        if sum(isinstance(item, Region) for item in run) < 2:
            gathered.append(region.items[place])
            place += 1
            continue
        element = Region(Scope(path, "ModuleDict", 0, builtin=True), run)
        inside = set(element.kernels())
        while gathered and _feeds_only(flow, gathered[-1], inside):
            element.items.insert(0, gathered.pop())
        place = end
        for after in range(end, len(region.items)):
            k = region.items[after]
            if isinstance(k, Region) or not _continues(flow, k, inside):
                break
            inside.add(k)
            if is_join(flow, k):
                element.items += region.items[place : after + 1]
                place = after + 1
        _gather(flow, element, containers)
        gathered.append(element)
    region.items = gathered
    _add_what_runs_between(flow, region)


def _uncalled(scope: Scope | None, item: int | Region, containers: frozenset[str]) -> str:
    """Return the path of the container element that an item's module is in; empty if none."""
    if isinstance(item, int) or item.scope is None:
        return ""
    above = f"{scope.path}." if scope is not None and scope.path else ""
    pieces = item.scope.path.removeprefix(above).split(".")
    paths = [above + ".".join(pieces[:n]) for n in range(1, len(pieces))]
    nested = (b for a, b in pairwise(paths) if a in containers and b in containers)
    if scope is not None and scope.path in containers and paths and paths[0] in containers:
        return paths[0]
    return next(nested, "")


def _run_end(region: Region, start: int, path: str, containers: frozenset[str]) -> int:
    """Return where the unbroken run of calls of one element ends.

    Each of the element's modules is called once in a run.
    """
    end, seen = start, set[str]()
    for place in range(start, len(region.items)):
        item = region.items[place]
        if isinstance(item, int):
            continue
        called = item.scope.path if item.scope is not None else ""
        if called in seen or not _is_one_turn(path, _uncalled(region.scope, item, containers)):
            break
        seen.add(called)
        end = place + 1
    return end


def _is_one_turn(element: str, other: str) -> bool:
    """Return whether two elements are the same, or have one index in two lists of one module."""
    module, _, number = element.rpartition(".")
    beside, _, same = other.rpartition(".")
    lists = module.rpartition(".")[0], beside.rpartition(".")[0]
    return element == other or (bool(other) and number == same and lists[0] == lists[1])


def _add_what_runs_between(flow: KernelFlow, region: Region) -> None:
    """Put the kernels of a loop over a module list into the regions of the list's elements.

    A kernel between two elements belongs to the first if its line is below the line of an element's
    first call, else to the second. Kernels of the same lines before the first and after the last
    element are included.
    """
    elements: dict[str, list[Region]] = {}
    for item in region.inner():
        if is_uncalled(item) and item.scope is not None:
            elements.setdefault(holder_of(item.scope), []).append(item)
    for turns in elements.values():
        places = [n for n, item in enumerate(region.items) if id(item) in map(id, turns)]
        gaps = [region.items[a + 1 : b] for a, b in pairwise(places)]
        between = [k for gap in gaps for k in gap if isinstance(k, int)]
        if len(between) < sum(map(len, gaps)) or not between:
            continue
        depth = len(callers(flow, between[0])) - 1
        first = _line(flow, next(turns[-1].kernels()), depth)
        around = {_line(flow, k, depth) for k in between}
        before = _run(
            flow, region.items[: places[0]][::-1], {n for n in around if n <= first}, depth
        )
        after = _run(flow, region.items[places[-1] + 1 :], {n for n in around if n > first}, depth)
        for turn, head, tail in zip(turns, [before[::-1], *gaps], [*gaps, after], strict=True):
            heads = [k for k in head if isinstance(k, int) and _line(flow, k, depth) <= first]
            tails = [k for k in tail if isinstance(k, int) and _line(flow, k, depth) > first]
            turn.items = [*heads, *turn.items, *tails]
        gone = {k for turn in turns for k in turn.items if isinstance(k, int)}
        region.items = [k for k in region.items if isinstance(k, Region) or k not in gone]


def _run(
    flow: KernelFlow, items: list[int | Region], body: set[int], depth: int
) -> list[int | Region]:
    """Return the leading items that are kernels of certain lines of a forward."""
    stand = (isinstance(k, int) and _line(flow, k, depth) in body for k in items)
    return items[: next((n for n, inside in enumerate(stand) if not inside), len(items))]


def callers(flow: KernelFlow, k: int) -> list[int]:
    """Return the lines of the statements that lead to a kernel, one for each forward."""
    origin = flow.program.graph.operations[flow.kernels[k].members[-1]].origin
    if origin is None:
        return [-1]
    own = origin.functions[0][2] if origin.functions else origin.statement
    return [*(line for _, line, _ in origin.callers), own]


def _line(flow: KernelFlow, k: int, depth: int) -> int:
    """Return the line of a forward, `depth` forwards below the model's, that leads to a kernel."""
    return callers(flow, k)[min(depth, len(callers(flow, k)) - 1)]


def _feeds_only(flow: KernelFlow, item: int | Region, inside: set[int]) -> bool:
    """Return whether an item is a concatenation that only these kernels read."""
    if isinstance(item, Region) or flow.kernels[item].operation not in CONCATENATIONS:
        return False
    readers, _, returned = flow.exits(item)
    return readers <= inside and not returned


def _continues(flow: KernelFlow, k: int, inside: set[int]) -> bool:
    """Return whether a kernel works element by element on results of these kernels."""
    made_by = {m for _, m in flow.activations(k)}
    return flow.kernels[k].kind == "pointwise" and not made_by.isdisjoint(inside)


# --- calls with one item --------------------------------------------------------------------------


def _collapse(region: Region, containers: frozenset[str]) -> None:
    """Replace each call that holds only one item by that item."""
    for position, item in enumerate(region.items):
        if isinstance(item, Region):
            _collapse(item, containers)
            while isinstance(item, Region) and len(item.items) == 1:
                item = _merged(item, item.items[0], containers)
            region.items[position] = item


def _merged(outer: Region, inner: int | Region, containers: frozenset[str]) -> int | Region:
    """Merge a call with the only call inside it, under the name that says more."""
    if isinstance(inner, int) or outer.scope is None or inner.scope is None:
        return inner
    held = is_container(inner.scope) and not is_container(outer.scope) and not outer.scope.method
    element = holder_of(outer.scope) in containers and holder_of(inner.scope) not in containers
    return Region(outer.scope, inner.items) if held or element else inner


def holder_of(scope: Scope) -> str:
    """Return the path of the module that contains a called one."""
    return scope.path.rpartition(".")[0]


def is_numbered(scope: Scope) -> bool:
    """Return whether a call is known only by its index in a container: `layers.3`."""
    return scope.path.rpartition(".")[2].isdigit()


def is_container(scope: Scope) -> bool:
    """Return whether a module's class says nothing about what it contains."""
    return scope.builtin and scope.cls in {"Sequential", "ModuleList", "ModuleDict"}


def is_uncalled(region: Region) -> bool:
    """Return whether a region is a list element whose modules are called one by one."""
    return region.scope is not None and region.scope.cls == "ModuleDict" and region.scope.builtin
