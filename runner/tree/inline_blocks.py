"""Finds blocks that a program repeats without a module of their own.

Examples are the steps of an unrolled recurrence, the stages of one long Sequential, and attention
and MLP called in turn from two lists. A block is found by its operations and their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from runner.graph.ir import Ref, substitute
from runner.tree.fusions import (
    CONCATENATIONS,
    FEWEST_TURNS,
    LARGEST_FUSION,
    KernelFlow,
    is_join,
    straight_lines,
)
from runner.tree.module_regions import Region, caller_lines, is_container
from runner.tree.repetition import Repetition, find_repetitions

SMALLEST_BLOCK = 3
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
    """Number of repetitions in a row."""
    number: int = 0
    """Its position among the region's blocks of the same stem."""

    def region(self) -> Region:
        """Return its items as a region of no module."""
        return Region(None, list(self.items))


def find_blocks(flow: KernelFlow, region: Region, fused_ids: set[int]) -> list[Block]:
    """Return the repeated blocks among a region's items; none if they hold less than half of it.

    `fused_ids` holds the ids of regions that are fusions.
    """
    blocks_so_far: list[Block] = []
    kernels_so_far: set[int] = set()
    tokens = [_item_key(flow, item) for item in region.items]
    for repetition in find_repetitions(tokens, _count_crossing_values(flow, region)):
        new_blocks = _make_blocks(flow, region, repetition, fused_ids)
        kernels = {k for block in new_blocks for k in block.region().kernels()}
        if not kernels_so_far.isdisjoint(kernels):
            continue  # this loop is inside the turns of another one
        for block in new_blocks:
            number = sum(earlier.stem == block.stem for earlier in blocks_so_far)
            blocks_so_far.append(replace(block, number=number))
        kernels_so_far |= kernels
    return blocks_so_far if len(kernels_so_far) >= _SHARE * sum(1 for _ in region.kernels()) else []


def find_loops(flow: KernelFlow, region: Region, fused_ids: set[int]) -> list[list[list[int]]]:
    """Return the loops of a call, each as a list of turns, each turn as a list of kernels.

    Every turn runs the same statements. The result is empty if the loops hold less than half of the
    call. `fused_ids` holds the ids of regions that are fusions.
    """
    loops_so_far: list[list[list[int]]] = []
    kernels_so_far: set[int] = set()
    tokens = [
        (_item_key(flow, item), flow.statement_paths(_kernels([item]))) for item in region.items
    ]
    for repetition in find_repetitions(tokens, _count_crossing_values(flow, region)):
        units = [[region.items[p] for p in unit] for unit in repetition.units()]
        if _is_module_call(flow, units, fused_ids):
            continue
        units = _without_differing_kernels(flow, _split_turns(flow, region, units) or units)
        turns = [list(_kernels(unit)) for unit in units]
        is_separate = kernels_so_far.isdisjoint(k for turn in turns for k in turn)
        if is_separate and len(turns) >= FEWEST_TURNS and _is_several_parts(flow, turns[-2]):
            loops_so_far.append(turns)
            kernels_so_far.update(k for turn in turns for k in turn)
    return loops_so_far if len(kernels_so_far) >= _SHARE * sum(1 for _ in region.kernels()) else []


def _split_turns(
    flow: KernelFlow, region: Region, units: list[list[int | Region]]
) -> list[list[int | Region]]:
    """Return the items of a loop, a list for each turn.

    `units` are the items of equal stretches of the loop, which may begin in the middle of a turn. A
    turn begins where the loop's first statement, or the first module that it calls, runs again:
    that is the lowest line if the units begin in the middle of a turn. The first and the last turn
    may hold other operations. The result is empty if the units do not run the same statements and
    modules, or if the turns are not as long as the units.
    """
    bodies = [{_statement_key(flow, item) for item in unit} for unit in units]
    body, unit = bodies[-1], units[-1]
    if any(turn_body != body for turn_body in bodies):
        return []
    inside = [item for item in region.items if _statement_key(flow, item) in body]
    statements = [_statement_key(flow, item) for item in inside]
    first_item = _first_item_of_body(flow, unit)
    first = statements[0] if first_item is None else _statement_key(flow, first_item)
    starts = [
        n
        for n, statement in enumerate(statements)
        if statement == first and (not n or statements[n - 1] != statement)
    ]
    if starts[0]:
        starts.insert(0, 0)
    turns = [inside[a:b] for a, b in pairwise([*starts, len(inside)])]
    turns[-1] = [item for item in turns[-1] if not _gathers_turns(flow, item, turns[:-1])]
    return turns if abs(len(turns) - len(inside) / len(unit)) < 1 else []


def _gathers_turns(
    flow: KernelFlow, item: int | Region, earlier_turns: Sequence[Sequence[int | Region]]
) -> bool:
    """Return whether an item after a loop reads most of its turns' results, and no turn has it.

    The writes `out[:, t] = y` of all turns are one such kernel, at the place of the last write.
    """
    if not isinstance(item, int):
        return False
    keys = {_item_key(flow, other) for turn in earlier_turns for other in turn}
    sources = {m for _, m in flow.activations(item)}
    read = sum(not sources.isdisjoint(_kernels(turn)) for turn in earlier_turns)
    return _item_key(flow, item) not in keys and read > len(earlier_turns) / 2


def _first_item_of_body(flow: KernelFlow, unit: list[int | Region]) -> int | Region | None:
    """Return the first item of a loop's body: the only one that stands above the item before it.

    Returns None if there is not exactly one such item.
    """
    items: Sequence[int | Region]
    items, line_numbers = _items_of_function(flow, unit)
    if not items:
        kernels = [next(_kernels([item])) for item in unit]
        depths = [len(caller_lines(flow, item)) for item in unit if isinstance(item, int)]
        if not depths:
            return None
        items = unit
        line_numbers = [caller_lines(flow, k)[: min(depths)][-1] for k in kernels]
    pairs = zip(line_numbers, line_numbers[1:], items[1:], strict=False)
    items_above = [item for a, b, item in pairs if b < a]
    return items_above[0] if len(items_above) == 1 else None


def _items_of_function(
    flow: KernelFlow, unit: Sequence[int | Region]
) -> tuple[Sequence[int], list[int]]:
    """Return the items that the function that is a loop's body runs itself, and their lines.

    Both are empty if the body is no call of one function.
    """
    kernels = [item for item in unit if isinstance(item, int)]
    depth = min((len(flow.program.scopes[k]) for k in kernels), default=0)
    own_kernels = [k for k in kernels if len(flow.program.scopes[k]) == depth]
    calls = {flow.functions(k)[:1] for k in own_kernels}
    if len(calls) != 1 or calls == {()}:
        return [], []
    paths = [
        [*(line for _, _, line in functions), line]
        for functions, (_, line) in filter(None, flow.statement_paths(own_kernels))
    ]
    return own_kernels, [path[min(map(len, paths)) - 1] for path in paths]


def _statement_key(flow: KernelFlow, item: int | Region) -> Hashable:
    """Return the part of a loop's body that an item is: the called module, or the statement.

    The elements of a module list are one, since each turn calls another of them.
    """
    if isinstance(item, int):
        return flow.statement_paths([item])[0]
    if item.scope is None:
        return None
    path = item.scope.path.split(".")
    return tuple(piece for piece in path if not piece.isdigit()), item.scope.method


def _make_blocks(
    flow: KernelFlow, region: Region, repetition: Repetition, fused_ids: set[int]
) -> list[Block]:
    """Return the blocks that one repetition of a region's items makes; empty if they are none."""
    units = [[region.items[p] for p in unit] for unit in repetition.units()]
    if _is_module_call(flow, units, fused_ids):
        return []
    units = _split_turns(flow, region, units) or units
    has_join = any(isinstance(item, int) and is_join(flow, item) for item in units[0])
    units = _without_differing_kernels(flow, units)
    keys = [[_item_key(flow, item) for item in unit] for unit in units]
    is_block = [_is_block(flow, unit) for unit in units]
    start = 0 if is_block[0] or keys[0] in keys[1:] else 1
    stop = len(units) - (0 if is_block[-1] or keys[-1] in keys[:-1] else 1)
    units, is_block = units[start:stop], is_block[start:stop]  # the ends may be incomplete turns
    if len(units) < 2 or not any(is_block) or not all(is_block[1:-1]):
        return []
    shares_weights = _module_paths(units[-1]) == _module_paths(units[-2]) != set() or _state_names(
        flow, units[-1]
    ) == _state_names(flow, units[-2])
    stem = "step" if shares_weights else "block" if has_join else "stage"
    return [Block(tuple(unit), stem, len(units)) for unit in units]


def _is_module_call(flow: KernelFlow, units: list[list[int | Region]], fused_ids: set[int]) -> bool:
    """Return whether the author's own module is the block, not the operations around its call.

    Consecutive calls of modules make no block, unless each turn of a loop calls the same ones. Such
    a turn is the block too if it holds a contraction beside the call. Several large calls of one
    class make no block either: each of them is one.
    """
    unit = units[0]
    calls = [item for item in unit if isinstance(item, Region) and id(item) not in fused_ids]
    has_join = any(isinstance(item, int) and _joins_parts(flow, item, unit) for item in unit)
    kernels_in_calls = sum(1 for call in calls for _ in call.kernels())
    is_single_call = len(calls) == 1 and kernels_in_calls >= _SHARE * sum(1 for _ in _kernels(unit))
    calls_same_modules = all(_module_paths(turn) == _module_paths(unit) for turn in units)
    if is_single_call and calls_same_modules:
        return not any(flow.contractions[k] for k in unit if isinstance(k, int))
    large = Counter(
        call.scope.callee
        for call in calls
        if call.scope is not None
        and not is_container(call.scope)
        and sum(1 for _ in call.kernels()) > LARGEST_FUSION
    )
    is_several_blocks = max(large.values(), default=0) > 1
    return is_single_call or (
        bool(calls) and (is_several_blocks or not has_join) and not calls_same_modules
    )


def _joins_parts(flow: KernelFlow, k: int, unit: Sequence[int | Region]) -> bool:
    """Return whether a kernel joins what a turn's parts give or read.

    A U-Net's concatenation of a value from its way down joins a turn with something outside of it.
    """
    if flow.kernels[k].operation not in CONCATENATIONS:
        return is_join(flow, k)
    inside = set(_kernels(unit))
    joined = [
        name
        for name, m in flow.activations(k)
        if m in inside or any(flow.reads_value(other, name, ()) for other in inside - {k})
    ]
    return len(joined) > 1


def _module_paths(unit: Sequence[int | Region]) -> set[str]:
    """Return the paths of the modules that a unit calls."""
    return {item.scope.path for item in unit if isinstance(item, Region) and item.scope is not None}


def _item_key(flow: KernelFlow, item: int | Region) -> Hashable:
    """Return a key that is equal for items with the same operations."""
    if isinstance(item, int):
        return flow.kernels[item].operation
    cls = item.scope.cls if item.scope is not None else ""
    return (cls, *(flow.kernels[k].operation for k in item.kernels()))


def _count_crossing_values(flow: KernelFlow, region: Region) -> list[int]:
    """Return before each item how many earlier results it or a later item reads.

    The number is larger still between two calls that belong to one element of a module list.
    """
    position_of = {
        k: p
        for p, item in enumerate(region.items)
        for k in ([item] if isinstance(item, int) else item.kernels())
    }
    changes = [0] * (len(region.items) + 1)
    for k, p in position_of.items():
        last_reader = max((position_of.get(r, p) for r in flow.readers_of_kernel(k)[0]), default=p)
        if last_reader > p:
            changes[p + 1] += 1
            changes[last_reader + 1] -= 1
    inside = _positions_inside_elements(flow, region)
    return [n + len(position_of) * (p in inside) for p, n in enumerate(accumulate(changes[:-1]))]


def _positions_inside_elements(flow: KernelFlow, region: Region) -> set[int]:
    """Return the positions between two module calls with the same list index.

    They are of one element, or of the elements of two lists.
    """
    number_before, start = "", 0
    inside: set[int] = set()
    for position, item in enumerate(region.items):
        scopes = flow.program.scopes[item] if isinstance(item, int) else (item.scope,)
        path = scopes[-1].path.split(".") if scopes and scopes[-1] is not None else []
        number = next((piece for piece in path if piece.isdigit()), "")
        if number:
            inside.update(range(start + 1, position + 1) if number == number_before else ())
            number_before, start = number, position
    return inside


def _without_differing_kernels(
    flow: KernelFlow, units: list[list[int | Region]]
) -> list[list[int | Region]]:
    """Remove kernels with other arguments in each turn (`out[:, t] = y`) that nobody reads."""
    dropped_kernels: set[int] = set()
    ((length, _),) = Counter(map(len, reversed(units))).most_common(1)
    equal_units = [unit for unit in units if len(unit) == length]
    for position in range(length):
        kernels = [k for unit in equal_units if isinstance(k := unit[position], int)]
        if len({_attributes(flow, k) for k in kernels}) <= max(2, len(equal_units) // 3):
            continue
        if not any(
            flow.readers_of_kernel(k)[0] & set(_kernels(u))
            for k, u in zip(kernels, equal_units, strict=True)
        ):
            dropped_kernels.update(kernels)
    dropped_keys = {(_statement_key(flow, k), _item_key(flow, k)) for k in dropped_kernels}
    unequal_units = {id(unit) for unit in units}.difference(map(id, equal_units))
    return [
        [
            item
            for item in unit
            if not isinstance(item, int)
            or not (
                (_statement_key(flow, item), _item_key(flow, item)) in dropped_keys
                if id(unit) in unequal_units
                else item in dropped_kernels
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
        for reader in flow.readers_of_kernel(k)[0] & kernels:
            neighbours[k].add(reader)
            neighbours[reader].add(k)
    visited: set[int] = set()
    queue = [min(kernels)]
    while queue:
        k = queue.pop()
        if k not in visited:
            visited.add(k)
            queue += neighbours[k]
    return visited == kernels


def _is_several_parts(flow: KernelFlow, kernels: Collection[int]) -> bool:
    """Return whether there are enough kernels, and more than one straight line."""
    straight = straight_lines(flow, kernels)
    return len(kernels) >= SMALLEST_BLOCK and not (
        len(straight) == 1 and len(straight[0].kernels) == len(kernels)
    )


def _state_names(flow: KernelFlow, unit: Sequence[int | Region]) -> set[str]:
    """Return the parameters and buffers that a unit reads."""
    graph = flow.program.graph
    return {
        name
        for k in _kernels(unit)
        for i in flow.kernels[k].members
        for name in graph.operations[i].refs()
        if name in graph.states
    }
