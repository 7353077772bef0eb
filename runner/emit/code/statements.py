"""This file knows about what is a statement of an emitted `forward`, and what is inside one.

A value that is used once, in the author's statement that computes it, stays inside that statement's
expression, if that fits a line.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from runner.emit.code.class_body import Call, Item, ItemFlow
from runner.emit.code.line_breaks import WIDTH, typical_width
from runner.emit.code.literals import ATOM, Text
from runner.emit.code.module_attributes import Owned
from runner.emit.code.operation_code import Device, literal, spell, subscript
from runner.emit.naming.value_names import Namer
from runner.graph.ir import Operation, Ref
from runner.graph.operations import is_random
from runner.tree.interface import Program
from runner.tree.part import Part

INDENT = 8
LARGE_BYTES = 256 << 20
"""From here on, a variable holds a value no longer than the original did; below, a `del` costs the
reader more than it saves (measured on level 3: at most 15 percent of the peak)."""
_SUBSCRIPTS = {"slice.Tensor", "select.int", "unsqueeze.default"}


class Statements:
    """Of the items of one `forward`."""

    def __init__(
        self,
        program: Program,
        namer: Namer,
        part: Part,
        items: Sequence[Item],
        flow: ItemFlow,
        owned: Owned,
        device: Device,
        attributes: Mapping[int, str] | None,
    ) -> None:
        """`attributes`: of calls that may stand inside another statement; None: none may."""
        self.program, self.namer, self.part, self.items = program, namer, part, items
        self.flow, self.owned, self.device = flow, owned, device
        self.attributes = attributes
        self.depth = sum(not scope.builtin for scope in part.scopes)
        self.inlined: set[str] = set()
        self.split: set[str] = set()
        """What has a name because a statement would be too long."""

    def choose(self) -> None:
        """Decide it, for all values."""
        for position, item in enumerate(self.items):
            nests = self._can_be_inlined(position, item)
            if not isinstance(item, Call):
                target = None if nests else self.namer.of
                if typical_width(self.expression(item, self.namer.of)) > self._room(item, target):
                    self._split(item)
            else:
                given = (self.value(name, self.namer.of) for name in self.flow.reads(item))
                room = self._room(item, None if nests else self.namer.of)
                if sum(typical_width(each) + 2 for each in given) > room - len(item.attribute):
                    self._split(item)
            if nests and not self._holds_what_is_split(item):
                self.inlined.add(self.flow.makes(item)[0])

    def is_inside(self, name: str) -> bool:
        """Whether a value has no statement of its own."""
        return name in self.inlined

    def value(self, name: str, variable: Callable[[str], str]) -> str:
        """A value where it is read; `variable` says what those with a statement are called."""
        return self._value(name, variable).text

    def expression(self, item: Item, variable: Callable[[str], str]) -> str:
        """The right side of a statement."""
        return self._expression(item, variable).text

    def leaves(self, item: Item) -> list[str]:
        """Variables that a statement reads."""
        found: list[str] = []
        for name in self.flow.reads(item):
            if name in self.inlined:
                found += self.leaves(self.items[self.flow.producer[name]])
            else:
                found.append(name)
        return found

    def _split(self, item: Item) -> None:
        """A statement that is too long: what this item reads is computed in others before it."""
        reads = set(self.flow.reads(item))
        self.split |= reads & self.inlined
        self.inlined -= reads

    def _holds_what_is_split(self, item: Item) -> bool:
        """Whether a large value that got a name would still be held while another is computed.

        The author's statement had let go of it. If what is computed of it is a statement, too, that
        takes the name over.
        """
        (name,) = self.flow.makes(item)
        if not any(each in self.split and self.is_large(each) for each in self.flow.reads(item)):
            return False
        self.split.add(name)
        together = set(self.flow.reads(self.items[self.flow.reader[name]])) - {name}
        return any(self.is_large(each) and self._is_made_inside(each) for each in together)

    def is_large(self, name: str) -> bool:
        """Whether a variable may hold a value no longer than the original did."""
        return self.program.spec(name).nbytes >= LARGE_BYTES

    def _is_made_inside(self, name: str) -> bool:
        position = self.flow.producer.get(name)
        return position is not None and self._can_be_inlined(position, self.items[position])

    def _room(self, item: Item, target: Callable[[str], str] | None) -> int:
        """Columns for an expression, beside its target, if any, and the comment with its shape."""
        makes = self.flow.makes(item)
        if makes == self.part.io.outputs and len(makes) == 1:
            return WIDTH - INDENT - len("return ")
        targets = sum(len(target(name)) + 2 for name in makes if target and name)
        comment = typical_width(shape_comment(self.program, makes[0])) if len(makes) == 1 else 0
        return WIDTH - INDENT - targets - 1 - comment

    def _can_be_inlined(self, position: int, item: Item) -> bool:
        if len(self.flow.makes(item)) != 1:
            return False
        (name,) = self.flow.makes(item)
        if self.flow.uses.get(name) != 1 or self.flow.producer[name] != position:
            return False
        if {position, self.flow.reader[name]} & self.flow.repeating:
            return False
        if self._is_overwritten(position, item, self.flow.reader[name]):
            return False
        reader = self.items[self.flow.reader[name]]
        work, others = self._operations(item), self._operations(reader)
        if any(map(is_random, (*work, *others))):
            return False
        if not isinstance(item, Call) and work[0].returns_list:
            return False
        if not isinstance(item, Call) and not isinstance(reader, Call):
            return _statement(work[0]) == _statement(others[0])
        if self.attributes is None:
            if isinstance(item, Call):
                return False
            first = next(op for op in others if not op.view)
            return work[0].view and _statement(work[0]) == _statement(first)
        joins = (
            not isinstance(item, Call) and work[0].origin is not None and work[0].origin.joined_list
        )
        if joins or (_container(item) is not None and _container(item) == _container(reader)):
            return False
        line = self._line(work)
        return line is not None and line == self._line(others)

    def _is_overwritten(self, position: int, item: Item, reader: int) -> bool:
        """Whether a loop between an item and its reader begins with what the item reads.

        The loop's variable is that value's.
        """
        between = (p for p in self.flow.loops if position < p < reader)
        return not {self.flow.carried(self.flow.loops[p]) for p in between}.isdisjoint(
            self.leaves(item)
        )

    def _operations(self, item: Item) -> list[Operation]:
        inside = item.part.operations if isinstance(item, Call) else (item,)
        return [self.program.graph.operations[i] for i in inside]

    def _line(self, operations: Sequence[Operation]) -> int | None:
        """The line of this forward that runs operations; None where the author wrote no such."""
        own = [op for op in operations if not op.view] or operations
        lines = {op.origin.calls[self.depth :][:1] for op in own if op.origin is not None}
        return lines.pop()[0] if len(lines) == 1 and () not in lines else None

    def _value(self, name: str, variable: Callable[[str], str]) -> Text:
        if name in self.inlined:
            return self._expression(self.items[self.flow.producer[name]], variable)
        if self.program.is_state(name):
            held, graph = self.owned.state(name), self.program.graph
            if graph.states[name].kind != "constant" or graph.placement_known:
                return held
            return Text(f"{held.at(ATOM)}.to({self.device()})")
        return Text(variable(name))

    def _expression(self, item: Item, variable: Callable[[str], str]) -> Text:
        def value(name: str) -> Text:
            return self._value(name, variable)

        if isinstance(item, Call):
            assert self.attributes is not None
            attribute = self.attributes[self.flow.producer[item.part.io.outputs[0]]]
            given = ", ".join(value(name).text for name in item.part.io.inputs)
            return Text(f"self.{attribute}({given})")
        op = self.program.graph.operations[item]
        found = self.owned.module(op)
        if found is not None:
            attribute, call = found
            return Text(f"self.{attribute}({', '.join(_argument(a, value) for a in call.inputs)})")
        run = self._subscripts(op)
        if len(run) > 1:
            text = subscript(run, value)
            if text is not None:
                return text
        return spell(op, value, self.device)

    def _subscripts(self, op: Operation) -> list[Operation]:
        """The operation and those before it that one pair of brackets can hold."""
        run = [op]
        while run[0].target in _SUBSCRIPTS:
            source = run[0].args[0]
            if not isinstance(source, Ref) or source.name not in self.inlined:
                break
            before = self.items[self.flow.producer[source.name]]
            if isinstance(before, Call):
                break
            if self.program.graph.operations[before].target not in _SUBSCRIPTS:
                break
            run.insert(0, self.program.graph.operations[before])
        return run


def shape_comment(program: Program, name: str) -> str:
    """What stands behind a statement that makes a value."""
    return f"  # {list(program.spec(name).shape)}"


def _argument(arg: object, value: Callable[[str], Text]) -> str:
    if isinstance(arg, tuple):
        inner = ", ".join(_argument(a, value) for a in arg)
        return f"({inner},)" if len(arg) == 1 else f"({inner})"
    return literal(arg, value).text  # type: ignore[arg-type]


def _container(item: Item) -> str | None:
    """The path of the outermost list or Sequential that holds a child by a number."""
    path = item.part.module_path if isinstance(item, Call) else ""
    found = re.match(r"(.*?)\.\d+(\.|$)", path)
    return found[1] if found else None


def _statement(op: Operation) -> object:
    return (op.origin.file, op.origin.statement) if op.origin else id(op)
