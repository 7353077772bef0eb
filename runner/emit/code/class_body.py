"""Holds the items that a class's `forward` runs: operations, calls of children, loops of calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runner.emit.code.child_loops import SHORTEST_LOOP, carried_input, continues_loop, strip_number
from runner.emit.code.module_attributes import Weight
from runner.emit.code.module_choice import module_call, zero_states
from runner.graph.ir import Operation
from runner.tree.interface import Program
from runner.tree.part import Part


@dataclass(frozen=True, slots=True)
class ChildCall:
    """A call of a child that is a class of its own."""

    part: Part
    attribute: str
    """Preferred name of the attribute that holds the child."""
    cls: str
    """Name of the child's class."""
    weights: tuple[Weight, ...]
    """Parameters and buffers of the child's class."""
    arguments: str = ""
    """Arguments of the child's constructor, as Python."""

    @property
    def construction(self) -> str:
        """The expression with which `__init__` makes the child: `Block(channels=64)`."""
        return f"{self.cls}({self.arguments})"


ForwardItem = int | ChildCall
"""A step of `forward`: the index of an operation, or the call of a child."""


class ItemFlow:
    """The data flow between a class's items: the producer and the readers of each value."""

    def __init__(self, program: Program, part: Part, items: Sequence[ForwardItem]) -> None:
        self.program, self.part, self.items = program, part, items
        self.producer: dict[str, int] = {}
        """Value -> position of the item that makes it."""
        self.uses: dict[str, int] = {}
        """Value -> how many times it is read; an output counts two more, so it is never inlined."""
        self.reader: dict[str, int] = {}
        """Value -> position of the last item that reads it."""
        for position, item in enumerate(items):
            for name in self.inputs_of(item):
                self.uses[name] = self.uses.get(name, 0) + 1
                self.reader[name] = position
            for name in self.outputs_of(item):
                self.producer.setdefault(name, position)
        for name in part.io.outputs:
            self.uses[name] = self.uses.get(name, 0) + 2
        self.loops = {run[0]: run for run in self._find_loops()}
        """Position of a loop's first call -> positions of all its calls."""
        self.later_turns = {position for run in self.loops.values() for position in run[1:]}
        """Positions of all calls in loops but the first of each."""
        self.loop_positions = {*self.loops, *self.later_turns}

    def inputs_of(self, item: ForwardItem) -> list[str]:
        """Return the values that an item reads, without weights and constants."""
        if isinstance(item, ChildCall):
            return list(item.part.io.inputs)
        return [
            n for n in self.program.graph.operations[item].refs() if not self.program.is_state(n)
        ]

    def outputs_of(self, item: ForwardItem) -> tuple[str, ...]:
        """Return the values that an item makes."""
        return (
            item.part.io.outputs
            if isinstance(item, ChildCall)
            else self.program.graph.operations[item].outputs
        )

    def call(self, position: int) -> ChildCall:
        """Return the child call at a position."""
        item = self.items[position]
        assert isinstance(item, ChildCall)
        return item

    def _find_loops(self) -> list[list[int]]:
        """Return the runs of calls that become loops, each as the positions of its calls.

        The calls are of one class; each reads the result of the one before, and beside it the same
        values as all others.
        """
        runs: list[list[int]] = []
        for position, item in enumerate(self.items):
            if isinstance(item, ChildCall) and len(item.part.io.outputs) == 1:
                if runs and runs[-1][-1] == position - 1 and self._continues_loop(runs[-1], item):
                    runs[-1].append(position)
                else:
                    runs.append([position])
        return [run for run in runs if len(run) >= SHORTEST_LOOP and self._consumes_input(run)]

    def _continues_loop(self, run: list[int], item: ChildCall) -> bool:
        previous = self.call(run[-1])
        if previous.cls != item.cls and not are_numbered_layers(previous, item):
            return False
        return continues_loop([self.call(p).part for p in run], item.part, self.uses)

    def _consumes_input(self, run: list[int]) -> bool:
        """Return whether nothing reads the loop's initial value after the loop's first call.

        The loop overwrites that value's variable.
        """
        initial = self.carried_input(run)
        return initial not in self.part.io.outputs and self.reader.get(initial, -1) == run[0]

    def carried_input(self, run: list[int]) -> str:
        """Return the initial value of the variable that a loop updates on each turn."""
        return carried_input(self.call(run[0]).part, self.call(run[1]).part)


def drop_zero_states(
    program: Program, items: Sequence[ForwardItem]
) -> tuple[Program, list[ForwardItem]]:
    """Return the program and items without the zero initial states of recurrent modules.

    `nn.LSTM` and its like make these zeros themselves when they are called without a state.
    """
    graph = program.graph
    operations = list(graph.operations)
    dropped: set[int] = set()

    def maker(name: str) -> Operation | None:
        i = program.producers.get(name)
        return graph.operations[i] if i is not None and i in items else None

    for i in (item for item in items if not isinstance(item, ChildCall)):
        states = zero_states(operations[i], maker)
        if not states or any({*program.consumers[name]} != {i} for name in states):
            continue
        op = operations[i]
        args = (None if key == "hx" else arg for key, arg in zip(op.schema, op.args, strict=False))
        changed = replace(op, args=tuple(args))
        training = graph.mode == "train"
        if module_call(changed, graph.values, program.is_weight, training=training) is not None:
            operations[i] = changed
            dropped |= {program.producers[name] for name in states}
    if not dropped:
        return program, list(items)
    changed_graph = replace(graph, operations=tuple(operations))
    return Program(changed_graph, program.kernels), [i for i in items if i not in dropped]


def are_numbered_layers(first: ChildCall, second: ChildCall) -> bool:
    """Return whether two calls are layers of one kind in one list: `layers_0` and `layers_1`."""
    parts, names = (first.part, second.part), (first.attribute, second.attribute)
    return (
        all(part.level == "layer" for part in parts)
        and len({part.stem for part in parts}) == 1
        and len({strip_number(name) for name in names}) == 1
    )


def weights_key(item: ForwardItem) -> object:
    """Return a key that is equal for calls of one class with the same weights.

    One module can run all of these calls.
    """
    if not isinstance(item, ChildCall):
        return None
    return (item.construction, item.part.io.states) if item.part.io.states else id(item)
