"""The author's own structure: which module call holds which kernels, and which calls are layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from runner.graph.ir import Scope
from runner.tree.fusing import (
    CONCATENATIONS,
    LARGEST_FUSION,
    KernelFlow,
    fits_fusion,
    is_join,
    is_residual,
    pieces,
)

MOSTLY = 0.5
"""Share of a call's kernels from which on the calls inside it are its body, and it their frame."""
LARGEST_LAYER = 24
"""Parts of a layer; one with more that is mostly calls too large for a fusion is their frame."""


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


def regions(flow: KernelFlow) -> Region:
    """The tree of module calls that hold kernels, without calls that hold just one thing."""
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
    """Put the calls of one element of a list together, where the element is a container itself.

    `for layer in self.down: x = layer["down"](layer["block"](x))` calls no `down.0`, which its
    author would draw all the same. What runs between its calls is in it, and so are the
    concatenation that it alone reads and the residual add that it ends in.
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
    """The container between two calls that is an element of a container; empty where none is."""
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
    """Where the unbroken run of calls of one element ends; each of its modules is called once."""
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
    """Whether two elements are one, or have one number in two lists of one module."""
    module, _, number = element.rpartition(".")
    beside, _, same = other.rpartition(".")
    lists = module.rpartition(".")[0], beside.rpartition(".")[0]
    return element == other or (bool(other) and number == same and lists[0] == lists[1])


def _add_what_runs_between(flow: KernelFlow, region: Region) -> None:
    """Put what a loop over a list runs around its calls into the list's elements.

    What runs between two elements is the end of the first where it stands below the second's first
    call. The same lines run before the first element, and after the last.
    """
    elements: dict[str, list[Region]] = {}
    for item in region.inner():
        if _is_uncalled(item) and item.scope is not None:
            elements.setdefault(_holder(item.scope), []).append(item)
    for turns in elements.values():
        places = [n for n, item in enumerate(region.items) if id(item) in map(id, turns)]
        gaps = [region.items[a + 1 : b] for a, b in pairwise(places)]
        between = [k for gap in gaps for k in gap if isinstance(k, int)]
        if len(between) < sum(map(len, gaps)) or not between:
            continue
        depth = len(_callers(flow, between[0])) - 1
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
    """The kernels that items begin with, as long as they stand in some lines of a forward."""
    stand = (isinstance(k, int) and _line(flow, k, depth) in body for k in items)
    return items[: next((n for n, inside in enumerate(stand) if not inside), len(items))]


def _callers(flow: KernelFlow, k: int) -> list[int]:
    """The lines of the statements that lead to a kernel, one for each forward."""
    origin = flow.program.graph.operations[flow.kernels[k].members[-1]].origin
    if origin is None:
        return [-1]
    own = origin.functions[0][2] if origin.functions else origin.statement
    return [*(line for _, line, _ in origin.callers), own]


def _line(flow: KernelFlow, k: int, depth: int) -> int:
    """The line of a forward, `depth` forwards below the model's, that leads to a kernel."""
    return _callers(flow, k)[min(depth, len(_callers(flow, k)) - 1)]


def _feeds_only(flow: KernelFlow, item: int | Region, inside: set[int]) -> bool:
    """Whether an item is a concatenation that only these kernels read."""
    if isinstance(item, Region) or flow.kernels[item].operation not in CONCATENATIONS:
        return False
    readers, _, returned = flow.exits(item)
    return readers <= inside and not returned


def _continues(flow: KernelFlow, k: int, inside: set[int]) -> bool:
    """Whether a kernel works element by element on what these kernels gave."""
    made_by = {m for _, m in flow.activations(k)}
    return flow.kernels[k].kind == "pointwise" and not made_by.isdisjoint(inside)


# --- calls that hold one thing --------------------------------------------------------------------


def _collapse(region: Region, containers: frozenset[str]) -> None:
    for position, item in enumerate(region.items):
        if isinstance(item, Region):
            _collapse(item, containers)
            while isinstance(item, Region) and len(item.items) == 1:
                item = _merged(item, item.items[0], containers)
            region.items[position] = item


def _merged(outer: Region, inner: int | Region, containers: frozenset[str]) -> int | Region:
    """A call that holds another one alone: the two as one, by the name that tells more."""
    if isinstance(inner, int) or outer.scope is None or inner.scope is None:
        return inner
    held = is_container(inner.scope) and not is_container(outer.scope) and not outer.scope.method
    element = _holder(outer.scope) in containers and _holder(inner.scope) not in containers
    return Region(outer.scope, inner.items) if held or element else inner


def _holder(scope: Scope) -> str:
    """The path of the module that holds a called one."""
    return scope.path.rpartition(".")[0]


def is_numbered(scope: Scope) -> bool:
    """Whether a call is known by its place in a container alone: `layers.3`."""
    return scope.path.rpartition(".")[2].isdigit()


def is_container(scope: Scope) -> bool:
    """A class that says nothing about what it holds."""
    return scope.builtin and scope.cls in {"Sequential", "ModuleList", "ModuleDict"}


# --- layers and the frames around them ------------------------------------------------------------


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
            repeated = self.times[cls] > 1 if cls else _is_uncalled(inner) or self._is_mixed(inner)
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
            and not _is_uncalled(region)
            and _holder(region.scope) in self.containers
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
                holder = _holder(inner.scope)
                held_by = holder if holder in self.containers else ""
                groups.setdefault((inner.scope.called, held_by), []).append(inner)
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
            return _holder(scopes[-1]) if scopes else ""
        return _holder(item.scope) if item.scope is not None else ""

    def _is_too_wide(self, region: Region, kernels: int) -> bool:
        """Whether a layer would have too many parts, mostly of blocks that a fusion cannot hold.

        Blocks are repeated calls with many kernels, and elements of a list that nobody calls.
        """
        if self._parts(region) <= LARGEST_LAYER:
            return False
        large = [r for r in region.walk() if _size(r) > LARGEST_FUSION and _own_class(r)]
        times = Counter(map(_own_class, large))
        repeated = [r for r in large if times[_own_class(r)] > 1]
        blocks = [*repeated, *filter(_is_uncalled, region.inner())]
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
    return "" if scope is None or is_container(scope) else scope.called


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


def _is_uncalled(region: Region) -> bool:
    """Whether a region is an element of a list whose modules are called one by one."""
    return region.scope is not None and region.scope.cls == "ModuleDict" and region.scope.builtin


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
