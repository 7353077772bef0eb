"""What the forward of a class runs: operations, calls of children, and loops over equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runner.emit.code.child_loops import SHORTEST_LOOP, carried, continues, without_number
from runner.emit.code.module_attributes import Weight
from runner.emit.code.module_choice import module_call, zero_states
from runner.graph.ir import Operation
from runner.tree.interface import Program
from runner.tree.part import Part


@dataclass(frozen=True, slots=True)
class Call:
    """A child that runs as a class of its own."""

    part: Part
    attribute: str
    cls: str
    weights: tuple[Weight, ...]
    arguments: str = ""

    @property
    def construction(self) -> str:
        """How `__init__` makes the child: `Block(channels=64)`."""
        return f"{self.cls}({self.arguments})"


Item = int | Call


class ItemFlow:
    """Who makes and who reads each value among a class's items."""

    def __init__(self, program: Program, part: Part, items: Sequence[Item]) -> None:
        self.program, self.part, self.items = program, part, items
        self.producer: dict[str, int] = {}
        self.uses: dict[str, int] = {}
        self.reader: dict[str, int] = {}
        for position, item in enumerate(items):
            for name in self.reads(item):
                self.uses[name] = self.uses.get(name, 0) + 1
                self.reader[name] = position
            for name in self.makes(item):
                self.producer.setdefault(name, position)
        for name in part.io.outputs:
            self.uses[name] = self.uses.get(name, 0) + 2
        self.loops = {run[0]: run for run in self._loops()}
        """The first position of a loop -> all its positions."""
        self.repeats = {position for run in self.loops.values() for position in run[1:]}
        self.repeating = {*self.loops, *self.repeats}

    def reads(self, item: Item) -> list[str]:
        if isinstance(item, Call):
            return list(item.part.io.inputs)
        return [
            n for n in self.program.graph.operations[item].refs() if not self.program.is_state(n)
        ]

    def makes(self, item: Item) -> tuple[str, ...]:
        return (
            item.part.io.outputs
            if isinstance(item, Call)
            else self.program.graph.operations[item].outputs
        )

    def call(self, position: int) -> Call:
        item = self.items[position]
        assert isinstance(item, Call)
        return item

    def _loops(self) -> list[list[int]]:
        """Runs of calls of one class, each reading the one before and what all of them read."""
        runs: list[list[int]] = []
        for position, item in enumerate(self.items):
            if isinstance(item, Call) and len(item.part.io.outputs) == 1:
                if runs and runs[-1][-1] == position - 1 and self._continues(runs[-1], item):
                    runs[-1].append(position)
                else:
                    runs.append([position])
        return [run for run in runs if len(run) >= SHORTEST_LOOP and self._ends_there(run)]

    def _continues(self, run: list[int], item: Call) -> bool:
        before = self.call(run[-1])
        if before.cls != item.cls and not are_numbered_layers(before, item):
            return False
        return continues([self.call(p).part for p in run], item.part, self.uses)

    def _ends_there(self, run: list[int]) -> bool:
        """Whether nobody reads what goes in once the loop has run."""
        given = self.carried(run)
        return given not in self.part.io.outputs and self.reader.get(given, -1) == run[0]

    def carried(self, run: list[int]) -> str:
        return carried(self.call(run[0]).part, self.call(run[1]).part)


def without_zero_states(program: Program, items: Sequence[Item]) -> tuple[Program, list[Item]]:
    """Leave it to recurrent modules to make the zeros that they begin with."""
    graph = program.graph
    operations = list(graph.operations)
    dropped: set[int] = set()

    def maker(name: str) -> Operation | None:
        i = program.producers.get(name)
        return graph.operations[i] if i is not None and i in items else None

    for i in (item for item in items if not isinstance(item, Call)):
        states = zero_states(operations[i], maker)
        if not states or any({*program.consumers[name]} != {i} for name in states):
            continue
        op = operations[i]
        args = (None if key == "hx" else arg for key, arg in zip(op.schema, op.args, strict=False))
        changed = replace(op, args=tuple(args))
        training = graph.mode == "train"
        if module_call(changed, graph.values, program.is_state, training=training) is not None:
            operations[i] = changed
            dropped |= {program.producers[name] for name in states}
    if not dropped:
        return program, list(items)
    changed_graph = replace(graph, operations=tuple(operations))
    return Program(changed_graph, program.kernels), [i for i in items if i not in dropped]


def are_numbered_layers(one: Call, other: Call) -> bool:
    """Whether two layers are of one kind and of one list: `layers_0` and `layers_1`."""
    parts, names = (one.part, other.part), (one.attribute, other.attribute)
    return (
        all(part.level == "layer" for part in parts)
        and len({part.stem for part in parts}) == 1
        and len({without_number(name) for name in names}) == 1
    )


def weights_key(item: Item) -> object:
    """The same for calls of one class with the very same weights: one module runs them all."""
    if not isinstance(item, Call):
        return None
    return (item.construction, item.part.io.states) if item.part.io.states else id(item)
