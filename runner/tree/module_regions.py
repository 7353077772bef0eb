"""Builds the tree of the author's module calls, with the kernels that each call contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from runner.graph.ir import Scope
from runner.tree.fusions import (
    CONCATENATIONS,
    KernelFlow,
    is_join,
    is_residual,
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


def build_regions(flow: KernelFlow) -> Region:
    """Return the tree of module calls that hold kernels, without calls that hold only one item."""
    root = Region(None)
    region_by_scopes: dict[tuple[Scope, ...], Region] = {(): root}
    for k, scopes in enumerate(flow.program.scopes):
        for depth in range(1, len(scopes) + 1):
            if scopes[:depth] not in region_by_scopes:
                region_by_scopes[scopes[:depth]] = Region(scopes[depth - 1])
                region_by_scopes[scopes[: depth - 1]].items.append(region_by_scopes[scopes[:depth]])
        region_by_scopes[scopes].items.append(k)
    containers = flow.program.graph.containers
    for region in list(region_by_scopes.values()):
        _gather_list_elements(flow, region, containers)
    for region in list(region_by_scopes.values()):
        _join_sublayers(flow, region)
    several = Counter(stage_kind(r) for r in region_by_scopes.values() if len(r.items) > 1)
    _collapse(root, containers, several)
    while len(root.items) == 1 and isinstance(root.items[0], Region):
        root.items = root.items[0].items
    return root


# --- containers that nobody calls -----------------------------------------------------------------


def _gather_list_elements(flow: KernelFlow, region: Region, containers: frozenset[str]) -> None:
    """Group the calls of one element of a module list, if the element is a container itself.

    `for layer in self.down: x = layer["down"](layer["block"](x))` never calls `down.0`, but its
    author would draw it as one block. The block includes the kernels between its calls, a
    concatenation that only it reads, and the residual add that it ends in.
    """
    new_items: list[int | Region] = []
    position = 0
    while position < len(region.items):
        path = _list_element_path(region.scope, region.items[position], containers)
        end = _run_end(flow, region, position, path, containers) if path else position + 1
        run = region.items[position:end]
        if sum(isinstance(item, Region) for item in run) < 2:
            new_items.append(region.items[position])
            position += 1
            continue
        element = Region(Scope(path, "ModuleDict", 0, builtin=True), run)
        inside = set(element.kernels())
        while new_items and _feeds_only(flow, new_items[-1], inside):
            element.items.insert(0, new_items.pop())
        position = end
        for next_position in range(end, len(region.items)):
            k = region.items[next_position]
            if isinstance(k, Region) or not _continues(flow, k, inside):
                break
            inside.add(k)
            if is_join(flow, k):
                element.items += region.items[position : next_position + 1]
                position = next_position + 1
        _gather_list_elements(flow, element, containers)
        new_items.append(element)
    region.items = new_items
    _add_what_runs_between(flow, region)


def _join_sublayers(flow: KernelFlow, region: Region) -> None:
    """Join the elements of a list that take turns: an attention, an MLP, an attention, an MLP.

    Each has one residual add. Two in turn, or three with a cross-attention, are one layer.
    """
    position = 0
    while position < len(region.items):
        run = _elements_of_one_list(region.items[position:])
        size = _turn_size(flow, run)
        if size > 1:
            turns = [run[n : n + size] for n in range(0, len(run), size)]
            joined = [Region(turn[0].scope, [i for r in turn for i in r.items]) for turn in turns]
            region.items[position : position + len(run)] = joined
            run = joined
        position += max(1, len(run))


def _elements_of_one_list(items: list[int | Region]) -> list[Region]:
    """Return the elements of one module list with which the items begin."""
    run: list[Region] = []
    for item in items:
        if isinstance(item, int) or item.scope is None or not is_list_element(item):
            break
        if run and run[0].scope and parent_path(item.scope) != parent_path(run[0].scope):
            break
        run.append(item)
    return run


def _turn_size(flow: KernelFlow, elements: list[Region]) -> int:
    """Return how many sublayers make one layer, 2 or 3; 1 if the elements are no sublayers."""
    classes = [[call.scope and call.scope.cls for call in element.inner()] for element in elements]
    for size in (2, 3):
        takes_turns = all(a not in classes[:n] for n, a in enumerate(classes[:size])) and all(
            of_element == classes[n % size] for n, of_element in enumerate(classes)
        )
        if takes_turns and len(elements) >= 2 * size and len(elements) % size == 0:
            return size if all(_adds_once(flow, element) for element in elements) else 1
    return 1


def _adds_once(flow: KernelFlow, element: Region) -> bool:
    inside = set(element.kernels())
    return sum(is_residual(flow, k, inside) for k in inside) == 1


def _list_element_path(scope: Scope | None, item: int | Region, containers: frozenset[str]) -> str:
    """Return the path of the container element that an item's module is in; empty if none."""
    if isinstance(item, int) or item.scope is None:
        return ""
    prefix = f"{scope.path}." if scope is not None and scope.path else ""
    pieces = item.scope.path.removeprefix(prefix).split(".")
    paths = [prefix + ".".join(pieces[:n]) for n in range(1, len(pieces))]
    nested_paths = (b for a, b in pairwise(paths) if a in containers and b in containers)
    if scope is not None and scope.path in containers and paths and paths[0] in containers:
        return paths[0]
    return next(nested_paths, "")


def _run_end(
    flow: KernelFlow, region: Region, start: int, path: str, containers: frozenset[str]
) -> int:
    """Return where the unbroken run of calls of one element ends.

    A module that is called again belongs to the run if its line is below the line of the first
    call: an activation that a block uses twice. Otherwise a loop has begun its next turn.
    """
    end, visited = start, set[str]()
    first_lines = _call_lines(flow, region.items[start])
    for position in range(start, len(region.items)):
        item = region.items[position]
        if isinstance(item, int):
            continue
        module_path = item.scope.path if item.scope is not None else ""
        if module_path in visited and _call_lines(flow, item) <= first_lines:
            break
        if not _is_one_turn(path, _list_element_path(region.scope, item, containers)):
            break
        visited.add(module_path)
        end = position + 1
    return end


def _call_lines(flow: KernelFlow, item: int | Region) -> list[int]:
    """Return the lines of the statements that lead to a call, one for each forward."""
    return caller_lines(flow, item if isinstance(item, int) else next(item.kernels()))


def _is_one_turn(element: str, other_element: str) -> bool:
    """Return whether two elements are the same, or have one index in two lists of one module."""
    module, _, number = element.rpartition(".")
    other_module, _, other_number = other_element.rpartition(".")
    lists = module.rpartition(".")[0], other_module.rpartition(".")[0]
    return element == other_element or (
        bool(other_element) and number == other_number and lists[0] == lists[1]
    )


def _add_what_runs_between(flow: KernelFlow, region: Region) -> None:
    """Put the kernels of a loop over a module list into the regions of the list's elements.

    A kernel between two elements belongs to the first if its line is below the line of an element's
    first call, else to the second. Kernels of the same lines before the first and after the last
    element are included.
    """
    elements: dict[str, list[Region]] = {}
    for item in region.inner():
        if is_list_element(item) and item.scope is not None:
            elements.setdefault(parent_path(item.scope), []).append(item)
    for turns in elements.values():
        positions = [n for n, item in enumerate(region.items) if id(item) in map(id, turns)]
        gaps = [region.items[a + 1 : b] for a, b in pairwise(positions)]
        between = [k for gap in gaps for k in gap if isinstance(k, int)]
        if len(between) < sum(map(len, gaps)) or not between:
            continue
        depth = len(caller_lines(flow, between[0])) - 1
        first_line = _line_at_depth(flow, next(turns[-1].kernels()), depth)
        lines_between = {_line_at_depth(flow, k, depth) for k in between}
        kernels_before = _leading_run(
            flow,
            region.items[: positions[0]][::-1],
            {n for n in lines_between if n <= first_line},
            depth,
        )
        kernels_after = _leading_run(
            flow,
            region.items[positions[-1] + 1 :],
            {n for n in lines_between if n > first_line},
            depth,
        )
        for turn, head, tail in zip(
            turns, [kernels_before[::-1], *gaps], [*gaps, kernels_after], strict=True
        ):
            heads = [
                k
                for k in head
                if isinstance(k, int) and _line_at_depth(flow, k, depth) <= first_line
            ]
            tails = [
                k
                for k in tail
                if isinstance(k, int) and _line_at_depth(flow, k, depth) > first_line
            ]
            turn.items = [*heads, *turn.items, *tails]
        moved_kernels = {k for turn in turns for k in turn.items if isinstance(k, int)}
        region.items = [k for k in region.items if isinstance(k, Region) or k not in moved_kernels]


def _leading_run(
    flow: KernelFlow, items: list[int | Region], body: set[int], depth: int
) -> list[int | Region]:
    """Return the leading items that are kernels of certain lines of a forward."""
    stand = (isinstance(k, int) and _line_at_depth(flow, k, depth) in body for k in items)
    return items[: next((n for n, inside in enumerate(stand) if not inside), len(items))]


def caller_lines(flow: KernelFlow, k: int) -> list[int]:
    """Return the lines of the statements that lead to a kernel, one for each forward."""
    origin = flow.program.graph.operations[flow.kernels[k].members[-1]].origin
    if origin is None:
        return [-1]
    own_line = origin.functions[0][2] if origin.functions else origin.statement
    return [*(line for _, line, _ in origin.callers), own_line]


def _line_at_depth(flow: KernelFlow, k: int, depth: int) -> int:
    """Return the line of a forward, `depth` forwards below the model's, that leads to a kernel."""
    return caller_lines(flow, k)[min(depth, len(caller_lines(flow, k)) - 1)]


def _feeds_only(flow: KernelFlow, item: int | Region, inside: set[int]) -> bool:
    """Return whether an item is a concatenation that only these kernels read."""
    if isinstance(item, Region) or flow.kernels[item].operation not in CONCATENATIONS:
        return False
    readers, _, returned = flow.readers_of_kernel(item)
    return readers <= inside and not returned


def _continues(flow: KernelFlow, k: int, inside: set[int]) -> bool:
    """Return whether a kernel works element by element on results of these kernels."""
    producers = {m for _, m in flow.activations(k)}
    return flow.kernels[k].kind == "pointwise" and not producers.isdisjoint(inside)


# --- calls with one item --------------------------------------------------------------------------


def _collapse(region: Region, containers: frozenset[str], several: Counter[str]) -> None:
    """Replace each call that holds only one item by that item.

    A stage that holds one block stays if other stages of its kind hold several. `several` counts
    the calls of each kind that hold several items.
    """
    for position, item in enumerate(region.items):
        if isinstance(item, Region):
            _collapse(item, containers, several)
            while isinstance(item, Region) and len(item.items) == 1:
                (inner,) = item.items
                if isinstance(inner, Region) and _is_short_stage(item, inner, several):
                    break
                item = _merge_calls(item, inner, containers)
            region.items[position] = item


def _is_short_stage(stage: Region, block: Region, several: Counter[str]) -> bool:
    """Return whether other calls of the kinds of a stage, and of its only block, hold several."""
    kind, inner_kind = stage_kind(stage), stage_kind(block)
    return (
        kind != inner_kind
        and "" not in (kind, inner_kind)
        and several[kind] > 0
        and several[inner_kind] > (len(block.items) > 1)
    )


def stage_kind(region: Region) -> str:
    """Return what equal stages of a model share: their class, or their path without numbers."""
    if region.scope is None:
        return ""
    if not is_container(region.scope):
        return region.scope.callee
    pieces = region.scope.path.split(".")
    numbers_left_out = ["*" if piece.isdigit() else piece for piece in pieces]
    return ".".join(numbers_left_out) if "*" in numbers_left_out else ""


def _merge_calls(outer: Region, inner: int | Region, containers: frozenset[str]) -> int | Region:
    """Merge a call with the only call inside it, under the name that says more."""
    if isinstance(inner, int) or outer.scope is None or inner.scope is None:
        return inner
    keeps_outer_class = (
        is_container(inner.scope) and not is_container(outer.scope) and not outer.scope.method
    )
    is_element = (
        parent_path(outer.scope) in containers and parent_path(inner.scope) not in containers
    )
    return Region(outer.scope, inner.items) if keeps_outer_class or is_element else inner


def parent_path(scope: Scope) -> str:
    """Return the path of the module that contains a called one."""
    return scope.path.rpartition(".")[0]


def is_numbered(scope: Scope) -> bool:
    """Return whether a call is known only by its index in a container: `layers.3`."""
    return scope.path.rpartition(".")[2].isdigit()


def is_container(scope: Scope) -> bool:
    """Return whether a module is a Sequential, a ModuleList or a ModuleDict of torch.nn."""
    return scope.builtin and scope.cls in {"Sequential", "ModuleList", "ModuleDict"}


def is_list_element(region: Region) -> bool:
    """Return whether a region is a list element whose modules are called one by one."""
    return region.scope is not None and region.scope.cls == "ModuleDict" and region.scope.builtin
