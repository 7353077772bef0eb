"""Finds blocks that a program repeats without a module of their own.

Examples are the steps of an unrolled recurrence, the stages of one long Sequential, and attention
and MLP called in turn from two lists. A block is found by its operations and their order.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from runner.graph.ir import Ref, substitute
from runner.tree.fusions import FEWEST_TURNS, KernelFlow, is_join, lines
from runner.tree.module_regions import Region, callers
from runner.tree.repetition import Repeat, repeats

SMALLEST = 3
"""Fewest kernels in a block."""
_SHARE = 0.5
"""Share of a region's kernels that its blocks must hold."""


@dataclass(frozen=True, slots=True)
class Block:
    """One repetition: module calls and kernels that belong together, with a name."""

    items: tuple[int | Region, ...]
    stem: str
    """The kind of block: `step`, `block` or `stage`."""
    count: int
    """How often it runs in a row."""
    number: int = 0
    """Its position among the region's blocks of the same stem."""

    def region(self) -> Region:
        """Return its items as a region of no module."""
        return Region(None, list(self.items))


def blocks(flow: KernelFlow, region: Region, fused: set[int]) -> list[Block]:
    """Return the repeated blocks among a region's items; none if they hold less than half of it.

    `fused` holds the ids of regions that are fusions.
    """
    found: list[Block] = []
    held: set[int] = set()
    tokens = [_token(flow, item) for item in region.items]
    for repeat in repeats(tokens, _crossing(flow, region)):
        made = _blocks(flow, region, repeat, fused)
        kernels = {k for block in made for k in block.region().kernels()}
        if not held.isdisjoint(kernels):
            continue  # this loop is inside the turns of another one
        for block in made:
            number = sum(other.stem == block.stem for other in found)
            found.append(replace(block, number=number))
        held |= kernels
    return found if len(held) >= _SHARE * sum(1 for _ in region.kernels()) else []


def loops(flow: KernelFlow, region: Region, fused: set[int]) -> list[list[list[int]]]:
    """Return the loops of a call, each as a list of turns, each turn as a list of kernels.

    Every turn runs the same statements. The result is empty if the loops hold less than half of the
    call. `fused` holds the ids of regions that are fusions.
    """
    found: list[list[list[int]]] = []
    held: set[int] = set()
    tokens = [(_token(flow, item), flow.places(_kernels([item]))) for item in region.items]
    for repeat in repeats(tokens, _crossing(flow, region)):
        units = [[region.items[p] for p in unit] for unit in repeat.units()]
        if _called(flow, units, fused):
            continue
        units = _without_what_differs(flow, _turns(flow, region, units) or units)
        turns = [list(_kernels(unit)) for unit in units]
        other = held.isdisjoint(k for turn in turns for k in turn)
        if other and len(turns) >= FEWEST_TURNS and _is_several_parts(flow, turns[-1]):
            found.append(turns)
            held.update(k for turn in turns for k in turn)
    return found if len(held) >= _SHARE * sum(1 for _ in region.kernels()) else []


def _turns(
    flow: KernelFlow, region: Region, units: list[list[int | Region]]
) -> list[list[int | Region]]:
    """Return the items of a loop, a list for each turn.

    `units` are the items of equal stretches of the loop, which may begin in the middle of a turn. A
    turn begins where the loop's first statement, or the first module that it calls, runs again:
    that is the lowest line if the units begin in the middle of a turn. The first and the last turn
    may hold other operations. The result is empty if the units do not run the same statements and
    modules, or if the turns are not as long as the units.
    """
    bodies = [{_statement(flow, item) for item in unit} for unit in units]
    body, unit = bodies[-1], units[-1]
    if any(other != body for other in bodies):
        return []
    inside = [item for item in region.items if _statement(flow, item) in body]
    places = [_statement(flow, item) for item in inside]
    lowest = _lowest(flow, unit)
    first = places[0] if lowest is None else _statement(flow, lowest)
    begins = [n for n, at in enumerate(places) if at == first and (not n or places[n - 1] != at)]
    if begins[0]:
        begins.insert(0, 0)
    turns = [inside[a:b] for a, b in pairwise([*begins, len(inside)])]
    return turns if abs(len(turns) - len(inside) / len(unit)) < 1 else []


def _lowest(flow: KernelFlow, unit: list[int | Region]) -> int | Region | None:
    """Return the first item of a loop's body: the only one that stands above the item before it.

    Returns None if there is not exactly one such item.
    """
    kernels = [next(_kernels([item])) for item in unit]
    own = [len(callers(flow, item)) for item in unit if isinstance(item, int)]
    if not own:
        return None
    lines_ = [callers(flow, k)[: min(own)][-1] for k in kernels]
    back = [item for a, b, item in zip(lines_, lines_[1:], unit[1:], strict=False) if b < a]
    return back[0] if len(back) == 1 else None


def _statement(flow: KernelFlow, item: int | Region) -> Hashable:
    """Return the part of a loop's body that an item is: the called module, or the statement.

    The elements of a module list are one, since each turn calls another of them.
    """
    if isinstance(item, int):
        return flow.places([item])[0]
    if item.scope is None:
        return None
    path = item.scope.path.split(".")
    return tuple(piece for piece in path if not piece.isdigit()), item.scope.method


def _blocks(flow: KernelFlow, region: Region, repeat: Repeat, fused: set[int]) -> list[Block]:
    """Return the blocks that one repetition of a region's items makes; empty if they are none."""
    units = [[region.items[p] for p in unit] for unit in repeat.units()]
    if _called(flow, units, fused):
        return []
    units = _turns(flow, region, units) or units
    joins = any(isinstance(item, int) and is_join(flow, item) for item in units[0])
    units = _without_what_differs(flow, units)
    first, last = 0 if _is_block(flow, units[0]) else 1, len(units)
    last -= 0 if _is_block(flow, units[-1]) else 1
    units = units[first:last]  # the first or last turn may be incomplete
    if len(units) < 2 or not all(_is_block(flow, unit) for unit in units):
        return []
    shared = _modules(units[-1]) == _modules(units[-2]) != set() or _states(
        flow, units[-1]
    ) == _states(flow, units[-2])
    stem = "step" if shared else "block" if joins else "stage"
    return [Block(tuple(unit), stem, len(units)) for unit in units]


def _called(flow: KernelFlow, units: list[list[int | Region]], fused: set[int]) -> bool:
    """Return whether the author's own module is the block, not the operations around its call.

    Consecutive calls of modules make no block, unless each turn of a loop calls the same ones.
    """
    unit = units[0]
    calls = [item for item in unit if isinstance(item, Region) and id(item) not in fused]
    joins = any(isinstance(item, int) and is_join(flow, item) for item in unit)
    called = sum(1 for call in calls for _ in call.kernels())
    alone = len(calls) == 1 and called >= _SHARE * sum(1 for _ in _kernels(unit))
    again = all(_modules(turn) == _modules(unit) for turn in units)
    return alone or (bool(calls) and not joins and not again)


def _modules(unit: Sequence[int | Region]) -> set[str]:
    """Return the paths of the modules that a unit calls."""
    return {item.scope.path for item in unit if isinstance(item, Region) and item.scope is not None}


def _token(flow: KernelFlow, item: int | Region) -> Hashable:
    """Return a key that is equal for items with the same operations."""
    if isinstance(item, int):
        return flow.kernels[item].operation
    cls = item.scope.cls if item.scope is not None else ""
    return (cls, *(flow.kernels[k].operation for k in item.kernels()))


def _crossing(flow: KernelFlow, region: Region) -> list[int]:
    """Return before each item how many earlier results it or a later item reads.

    The number is larger still between two calls that belong to one element of a module list.
    """
    place = {
        k: p
        for p, item in enumerate(region.items)
        for k in ([item] if isinstance(item, int) else item.kernels())
    }
    changes = [0] * (len(region.items) + 1)
    for k, p in place.items():
        last = max((place.get(r, p) for r in flow.exits(k)[0]), default=p)
        if last > p:
            changes[p + 1] += 1
            changes[last + 1] -= 1
    inside = _inside_elements(flow, region)
    return [n + len(place) * (p in inside) for p, n in enumerate(accumulate(changes[:-1]))]


def _inside_elements(flow: KernelFlow, region: Region) -> set[int]:
    """Return the positions between two module calls with the same list index.

    They are of one element, or of the elements of two lists.
    """
    before, start = "", 0
    inside: set[int] = set()
    for place, item in enumerate(region.items):
        scopes = flow.program.scopes[item] if isinstance(item, int) else (item.scope,)
        path = scopes[-1].path.split(".") if scopes and scopes[-1] is not None else []
        number = next((piece for piece in path if piece.isdigit()), "")
        if number:
            inside.update(range(start + 1, place + 1) if number == before else ())
            before, start = number, place
    return inside


def _without_what_differs(
    flow: KernelFlow, units: list[list[int | Region]]
) -> list[list[int | Region]]:
    """Remove kernels with other arguments in each turn (`out[:, t] = y`) that nobody reads."""
    dropped: set[int] = set()
    alike = [unit for unit in units if len(unit) == len(units[-1])]
    for place in range(len(units[-1])):
        kernels = [k for unit in alike if isinstance(k := unit[place], int)]
        if len({_attributes(flow, k) for k in kernels}) <= max(2, len(alike) // 3):
            continue
        if not any(
            flow.exits(k)[0] & set(_kernels(u)) for k, u in zip(kernels, alike, strict=True)
        ):
            dropped.update(kernels)
    same = {(_statement(flow, k), _token(flow, k)) for k in dropped}
    others = {id(unit) for unit in units}.difference(map(id, alike))
    return [
        [
            item
            for item in unit
            if not isinstance(item, int)
            or not (
                (_statement(flow, item), _token(flow, item)) in same
                if id(unit) in others
                else item in dropped
            )
        ]
        for unit in units
    ]


def _attributes(flow: KernelFlow, k: int) -> Hashable:
    """Return the arguments of a kernel's operations without the values that they read."""
    operations = (flow.program.graph.operations[i] for i in flow.kernels[k].members)
    return tuple(
        (op.target, repr(substitute((*op.args, *(v for _, v in op.kwargs)), lambda _: Ref(""))))
        for op in operations
        if not op.view
    )


def _kernels(items: Sequence[int | Region]) -> Iterator[int]:
    return Region(None, list(items)).kernels()


def _is_block(flow: KernelFlow, unit: Sequence[int | Region]) -> bool:
    """Return whether a unit has enough kernels for several fusions, and data flow connects it."""
    kernels = set(_kernels(unit))
    if not _is_several_parts(flow, kernels):
        return False
    neighbours: dict[int, set[int]] = {k: set() for k in kernels}
    for k in kernels:
        for reader in flow.exits(k)[0] & kernels:
            neighbours[k].add(reader)
            neighbours[reader].add(k)
    seen: set[int] = set()
    queue = [min(kernels)]
    while queue:
        k = queue.pop()
        if k not in seen:
            seen.add(k)
            queue += neighbours[k]
    return seen == kernels


def _is_several_parts(flow: KernelFlow, kernels: Collection[int]) -> bool:
    """Return whether there are enough kernels, and more than one straight line."""
    found = lines(flow, kernels)
    return len(kernels) >= SMALLEST and not (
        len(found) == 1 and len(found[0].kernels) == len(kernels)
    )


def _states(flow: KernelFlow, unit: Sequence[int | Region]) -> set[str]:
    """Return the parameters and buffers that a unit reads."""
    graph = flow.program.graph
    return {
        name
        for k in _kernels(unit)
        for i in flow.kernels[k].members
        for name in graph.operations[i].refs()
        if name in graph.states
    }
