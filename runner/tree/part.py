"""This file knows about a part: one instance of a component, and the order in which parts run."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from runner.graph.ir import Scope
from runner.graph.operations import kind
from runner.graph.recognize import Kernel
from runner.tree.document import Level
from runner.tree.interface import Interface, Program


@dataclass(frozen=True, slots=True)
class Part:
    """One instance of a component: a set of operations, and how it comes apart."""

    level: Level
    name: str
    """What people call this instance: its attribute, class or operation."""
    stem: str
    """What its workload is called: `conv2d`, `conv2d_relu`, `transformer_block`."""
    operations: tuple[int, ...]
    """All inside, sorted; views of weights may be in several parts."""
    children: tuple[Part, ...]
    io: Interface
    scopes: tuple[Scope, ...]
    """The module calls that hold it, outermost first."""
    reason: str
    kernel: Kernel | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    """Straight lines of kernels among the children of a fusion, by their positions there."""

    @property
    def module_path(self) -> str:
        return self.scopes[-1].path if self.scopes else ""

    def walk(self) -> Iterator[Part]:
        """This part and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def kernels(self) -> Iterator[Part]:
        """Its kernel instances, in the order in which they run."""
        return (part for part in self.walk() if not part.children)


def in_order(
    program: Program, operations: Iterable[int], children: Sequence[Part]
) -> tuple[Part, ...]:
    """Children, each only reading earlier ones, in an order as close to the author's as can be."""
    inside = {i for child in children for i in child.operations}
    return tuple(
        item
        for item in schedule(program, children, set(operations) - inside)
        if isinstance(item, Part)
    )


def schedule(program: Program, children: Sequence[Part], loose: Iterable[int]) -> list[Part | int]:
    """Children and single operations (indices) in an order in which they can run."""
    units: list[Part | int] = [*children, *sorted(loose)]
    made: dict[str, int] = {}
    for u, unit in enumerate(units):
        names = (
            unit.io.outputs if isinstance(unit, Part) else program.graph.operations[unit].outputs
        )
        made.update((name, u) for name in names if name)
    waits: list[set[int]] = []
    for u, unit in enumerate(units):
        reads = (
            unit.io.inputs
            if isinstance(unit, Part)
            else tuple(program.graph.operations[unit].refs())
        )
        waits.append({made[name] for name in reads if name in made} - {u})
    feeds: dict[int, list[int]] = {}
    for u, needed in enumerate(waits):
        for other in needed:
            feeds.setdefault(other, []).append(u)
    ready = [(_place(program, unit), u) for u, unit in enumerate(units) if not waits[u]]
    heapq.heapify(ready)
    done: list[Part | int] = []
    while ready:
        _, u = heapq.heappop(ready)
        done.append(units[u])
        for other in feeds.get(u, ()):
            waits[other].discard(u)
            if not waits[other]:
                heapq.heappush(ready, (_place(program, units[other]), other))
    if len(done) != len(units):
        raise ValueError("parts that wait for each other")
    return done


def _place(program: Program, unit: Part | int) -> int:
    """Where the author's program would run it: at its first own operation."""
    if not isinstance(unit, Part):
        return unit
    core = [
        i for i in unit.operations if kind(program.graph.operations[i]) not in {"view", "creation"}
    ]
    return next(iter(core or unit.operations), 0)
