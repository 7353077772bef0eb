"""Defines a part, one instance of a component, and the order in which parts run."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from runner.graph.ir import Scope
from runner.graph.operations import kind
from runner.graph.recognition.recognize import Kernel
from runner.tree.document import Level
from runner.tree.interface import Interface, Program


@dataclass(frozen=True, slots=True)
class Part:
    """One instance of a component: a set of operations, and the parts that it consists of."""

    level: Level
    name: str
    """Name of this instance: its attribute, class or operation."""
    stem: str
    """First words of its workload's name: `conv2d`, `conv2d_relu`, `transformer_block`."""
    operations: tuple[int, ...]
    """Sorted indices of all operations inside; views of weights may be in several parts."""
    children: tuple[Part, ...]
    """The parts that it consists of, in an order in which they can run."""
    io: Interface
    scopes: tuple[Scope, ...]
    """The module calls around it, outermost first."""
    reason: str
    """Why these operations are one part, for the log."""
    kernel: Kernel | None = None
    """The kernel; None for a part with children."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Straight lines of kernels among the children of a fusion, by their positions."""

    @property
    def module_path(self) -> str:
        """Dotted path of the innermost module around it."""
        return self.scopes[-1].path if self.scopes else ""

    def walk(self) -> Iterator[Part]:
        """Yield this part and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def kernels(self) -> Iterator[Part]:
        """Return its kernel instances, in the order in which they run."""
        return (part for part in self.walk() if not part.children)


def order_parts(
    program: Program, operations: Iterable[int], children: Sequence[Part]
) -> tuple[Part, ...]:
    """Return the children so that each only reads earlier ones, close to the author's order.

    If parts wait for each other, one of them is replaced by its children: the smallest one for
    which that resolves the cycle.
    """
    parts, all_operations = list(children), set(operations)
    while waiting := _schedule_runnable(
        program, *_parts_and_loose_operations(parts, all_operations)
    )[1]:
        candidates = [u for u in waiting if isinstance(u, Part) and u.children]
        smallest, *larger = sorted(candidates, key=lambda part: len(part.operations))
        attempts = [_replace_by_children(parts, part) for part in (smallest, *larger)]
        resolved = (
            p
            for p in attempts
            if not _schedule_runnable(program, *_parts_and_loose_operations(p, all_operations))[1]
        )
        parts = next(resolved, attempts[0])
    schedule_of_parts, _ = _schedule_runnable(
        program, *_parts_and_loose_operations(parts, all_operations)
    )
    return tuple(item for item in schedule_of_parts if isinstance(item, Part))


def _parts_and_loose_operations(
    parts: Sequence[Part], operations: set[int]
) -> tuple[Sequence[Part], set[int]]:
    """Return the parts, and the operations that are in none of them."""
    return parts, operations.difference(*(part.operations for part in parts))


def _replace_by_children(parts: Iterable[Part], split_part: Part) -> list[Part]:
    """Return the parts, one of them replaced by its children."""
    reason = f"not in {split_part.name}, which would wait for a part that waits for it"
    inner = [replace(child, reason=f"{child.reason}; {reason}") for child in split_part.children]
    return [item for part in parts for item in (inner if part is split_part else [part])]


def schedule(program: Program, children: Sequence[Part], loose: Iterable[int]) -> list[Part | int]:
    """Return children and single operations (indices) in an order in which they can run."""
    runnable, waiting = _schedule_runnable(program, children, loose)
    assert not waiting, "parts that wait for each other"
    return runnable


def _schedule_runnable(
    program: Program, children: Sequence[Part], loose: Iterable[int]
) -> tuple[list[Part | int], list[Part | int]]:
    """Return children and operations in an order in which they can run, and those that cannot."""
    units: list[Part | int] = [*children, *sorted(loose)]
    maker_of: dict[str, int] = {}
    for u, unit in enumerate(units):
        names = (
            unit.io.outputs if isinstance(unit, Part) else program.graph.operations[unit].outputs
        )
        maker_of.update((name, u) for name in names if name)
    waits: list[set[int]] = []
    for u, unit in enumerate(units):
        reads = (
            unit.io.inputs
            if isinstance(unit, Part)
            else tuple(program.graph.operations[unit].refs())
        )
        waits.append({maker_of[name] for name in reads if name in maker_of} - {u})
    feeds: dict[int, list[int]] = {}
    for u, makers in enumerate(waits):
        for reader in makers:
            feeds.setdefault(reader, []).append(u)
    ready = [(_first_operation(program, unit), u) for u, unit in enumerate(units) if not waits[u]]
    heapq.heapify(ready)
    runnable: list[Part | int] = []
    while ready:
        _, u = heapq.heappop(ready)
        runnable.append(units[u])
        for reader in feeds.get(u, ()):
            waits[reader].discard(u)
            if not waits[reader]:
                heapq.heappush(ready, (_first_operation(program, units[reader]), reader))
    return runnable, [unit for u, unit in enumerate(units) if waits[u]]


def _first_operation(program: Program, unit: Part | int) -> int:
    """Return where the author's program would run a part: at its first operation that computes."""
    if not isinstance(unit, Part):
        return unit
    core = [
        i for i in unit.operations if kind(program.graph.operations[i]) not in {"view", "creation"}
    ]
    return next(iter(core or unit.operations), 0)
