"""Decides which values of an emitted `forward` get a statement, and writes their expressions.

A value that is used once, in the same statement of the author's that computes it, stays inside that
statement's expression if the line is not too long for it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from runner.emit.code.class_body import ChildCall, ForwardItem, ItemFlow
from runner.emit.code.line_breaks import WIDTH, typical_width
from runner.emit.code.literals import ATOM, Expression
from runner.emit.code.module_attributes import ModuleAttributes
from runner.emit.code.operation_code import Device, literal, spell, subscript
from runner.emit.naming.value_names import Namer
from runner.graph.ir import CPU, DEVICE, Operation, Ref
from runner.graph.operations import is_random, kind
from runner.tree.interface import Program
from runner.tree.part import Part

INDENT = 8
LARGE_BYTES = 256 << 20
"""Size from which a variable must not hold a value longer than the original did. For smaller ones a
`del` costs the reader more than it saves (measured on level 3: at most 15 percent of the peak)."""
_SUBSCRIPTS = {"slice.Tensor", "select.int", "unsqueeze.default"}


class Statements:
    """Statements of one `forward`: the choice of inlined values, and the text of expressions."""

    def __init__(
        self,
        program: Program,
        namer: Namer,
        part: Part,
        items: Sequence[ForwardItem],
        flow: ItemFlow,
        module_attributes: ModuleAttributes,
        device: Device,
        cpu_device: Callable[[], str | None],
        call_attributes: Mapping[int, str] | None,
    ) -> None:
        """Start without inlined values.

        `call_attributes`: attribute of each call, by its position; None if no call may stand inside
        another statement. `device`: writes an expression of the model's device; `cpu_device`: that
        of an argument that is on the CPU in the model, or None.
        """
        self.program, self.namer, self.part, self.items = program, namer, part, items
        self.flow, self.module_attributes = flow, module_attributes
        self.device, self.cpu_device = device, cpu_device
        self.call_attributes = call_attributes
        self.depth = sum(not scope.builtin for scope in part.scopes)
        """Number of calls of the author's modules around the part."""
        self.inlined: set[str] = set()
        """Values whose expression stands inside another statement."""
        self.split_values: set[str] = set()
        """Values that have a statement because another would be too long with them inside."""

    def choose_inlined(self) -> None:
        """Decide for each value whether it stands inside another statement."""
        for position, item in enumerate(self.items):
            is_inlined = self._can_be_inlined(position, item)
            if not isinstance(item, ChildCall):
                target = None if is_inlined else self.namer.name_of
                if typical_width(
                    self.expression_text(item, self.namer.name_of)
                ) > self._available_columns(item, target):
                    self._split_statement(item)
            else:
                arguments = (
                    self.value_text(name, self.namer.name_of) for name in self.flow.inputs_of(item)
                )
                columns = self._available_columns(item, None if is_inlined else self.namer.name_of)
                if sum(typical_width(argument) + 2 for argument in arguments) > columns - len(
                    item.attribute
                ):
                    self._split_statement(item)
            if is_inlined and not self._holds_split_value(item):
                self.inlined.add(self.flow.outputs_of(item)[0])

    def is_inlined(self, name: str) -> bool:
        """Return whether a value has no statement of its own."""
        return name in self.inlined

    def value_text(self, name: str, variable: Callable[[str], str]) -> str:
        """Return the text that reads a value; `variable` names the values that have a statement."""
        return self._value_expression(name, variable).text

    def expression_text(self, item: ForwardItem, variable: Callable[[str], str]) -> str:
        """Return the right side of an item's statement; `variable` as in `value_text`."""
        return self._item_expression(item, variable).text

    def leaf_values(self, item: ForwardItem) -> list[str]:
        """Return the values that an item's statement reads from variables.

        In place of an inlined value stand those that its expression reads.
        """
        leaves: list[str] = []
        for name in self.flow.inputs_of(item):
            if name in self.inlined:
                leaves += self.leaf_values(self.items[self.flow.producer[name]])
            else:
                leaves.append(name)
        return leaves

    def _split_statement(self, item: ForwardItem) -> None:
        """Give the values that an item reads statements of their own, as its line is too long."""
        inputs = set(self.flow.inputs_of(item))
        self.split_values |= inputs & self.inlined
        self.inlined -= inputs

    def _holds_split_value(self, item: ForwardItem) -> bool:
        """Return whether inlining an item would keep a large split value alive for too long.

        That is so if the same statement computes another large value; the author's statement frees
        the first one before. With a statement of its own, the item can reuse the split variable.
        """
        (name,) = self.flow.outputs_of(item)
        if not any(
            operand in self.split_values and self.is_large(operand)
            for operand in self.flow.inputs_of(item)
        ):
            return False
        self.split_values.add(name)
        siblings = set(self.flow.inputs_of(self.items[self.flow.reader[name]])) - {name}
        return any(self.is_large(operand) and self._is_made_inside(operand) for operand in siblings)

    def is_large(self, name: str) -> bool:
        """Return whether a value is so large that no variable may hold it longer than needed."""
        return self.program.spec(name).nbytes >= LARGE_BYTES

    def _is_made_inside(self, name: str) -> bool:
        position = self.flow.producer.get(name)
        return position is not None and self._can_be_inlined(position, self.items[position])

    def _available_columns(self, item: ForwardItem, target: Callable[[str], str] | None) -> int:
        """Return the columns for an item's expression, less its target and the shape comment.

        `target` names the variable; None if the item has none.
        """
        outputs = self.flow.outputs_of(item)
        if outputs == self.part.io.outputs and len(outputs) == 1:
            return WIDTH - INDENT - len("return ")
        targets = sum(len(target(name)) + 2 for name in outputs if target and name)
        comment = typical_width(shape_comment(self.program, outputs[0])) if len(outputs) == 1 else 0
        return WIDTH - INDENT - targets - 1 - comment

    def _can_be_inlined(self, position: int, item: ForwardItem) -> bool:
        if len(self.flow.outputs_of(item)) != 1:
            return False
        (name,) = self.flow.outputs_of(item)
        if self.flow.uses.get(name) != 1 or self.flow.producer[name] != position:
            return False
        if {position, self.flow.reader[name]} & self.flow.loop_positions:
            return False
        if self._is_overwritten(position, item, self.flow.reader[name]):
            return False
        reader = self.items[self.flow.reader[name]]
        item_work, reader_work = self._operations(item), self._operations(reader)
        if any(map(is_random, (*item_work, *reader_work))):
            return False
        if not isinstance(item, ChildCall) and item_work[0].returns_list:
            return False
        if not isinstance(item, ChildCall) and not isinstance(reader, ChildCall):
            return _statement_key(item_work[0]) == _statement_key(reader_work[0])
        if self.call_attributes is None:
            if isinstance(item, ChildCall):
                return False
            first = next(op for op in reader_work if not op.view)
            return item_work[0].view and _statement_key(item_work[0]) == _statement_key(first)
        joins_list = (
            not isinstance(item, ChildCall)
            and item_work[0].origin is not None
            and item_work[0].origin.joined_list
        )
        if joins_list or (
            _container_path(item) is not None and _container_path(item) == _container_path(reader)
        ):
            return False
        line = self._author_line(item_work)
        return line is not None and line == self._author_line(reader_work)

    def _is_overwritten(self, position: int, item: ForwardItem, reader: int) -> bool:
        """Return whether a loop between an item and its reader overwrites a variable that it reads.

        A loop updates the variable of the value that it begins with.
        """
        loops_between = (p for p in self.flow.loops if position < p < reader)
        return not {self.flow.carried_input(self.flow.loops[p]) for p in loops_between}.isdisjoint(
            self.leaf_values(item)
        )

    def _operations(self, item: ForwardItem) -> list[Operation]:
        indices = item.part.operations if isinstance(item, ChildCall) else (item,)
        return [self.program.graph.operations[i] for i in indices]

    def _author_line(self, operations: Sequence[Operation]) -> int | None:
        """Return the line of this part's forward that runs the operations; None if there is no one.

        Views count only where there is nothing else.
        """
        computing = [op for op in operations if not op.view] or operations
        lines = {op.origin.calls[self.depth :][:1] for op in computing if op.origin is not None}
        return lines.pop()[0] if len(lines) == 1 and () not in lines else None

    def _value_expression(self, name: str, variable: Callable[[str], str]) -> Expression:
        if name in self.inlined:
            return self._item_expression(self.items[self.flow.producer[name]], variable)
        if self.program.is_state(name):
            stored, graph = self.module_attributes.use_state(name), self.program.graph
            if graph.states[name].kind != "constant" or graph.placement_known:
                return stored
            return Expression(f"{stored.at(ATOM)}.to({self.device()})")
        return Expression(variable(name))

    def _item_expression(self, item: ForwardItem, variable: Callable[[str], str]) -> Expression:
        def value(name: str) -> Expression:
            return self._value_expression(name, variable)

        if isinstance(item, ChildCall):
            assert self.call_attributes is not None
            attribute = self.call_attributes[self.flow.producer[item.part.io.outputs[0]]]
            arguments = ", ".join(value(name).text for name in item.part.io.inputs)
            return Expression(f"self.{attribute}({arguments})")
        op = self.program.graph.operations[item]
        module_use = self.module_attributes.use_module(op)
        if module_use is not None:
            attribute, call = module_use
            return Expression(
                f"self.{attribute}({', '.join(_argument_text(a, value) for a in call.inputs)})"
            )
        run = self._subscript_run(op)
        if len(run) > 1:
            expression = subscript(run, value)
            if expression is not None:
                return expression
        return self._spell_on_cpu(op, value) or spell(op, value, self.device)

    def _spell_on_cpu(self, op: Operation, value: Callable[[str], Expression]) -> Expression | None:
        """Return an expression that gives a tensor the place of an argument that is on the CPU.

        Such a file runs wherever its inputs are. None if the operation gives no tensor on the CPU,
        or no argument is there.
        """
        device = op.arg("device")
        makes_one = kind(op) == "creation" and op.outputs[0] in self.program.graph.on_cpu
        if device != CPU and not (device is None and makes_one):
            return None
        expression = self.cpu_device()
        if expression is None:
            return None
        kwargs = tuple(pair for pair in op.kwargs if pair[0] != "device")
        if device is None or len(kwargs) < len(op.kwargs):
            kwargs = (*kwargs, ("device", DEVICE))
        args = tuple(DEVICE if arg == CPU else arg for arg in op.args)
        return spell(replace(op, args=args, kwargs=kwargs), value, lambda: expression)

    def _subscript_run(self, op: Operation) -> list[Operation]:
        """Return the operation and the inlined ones before it that one subscript may express."""
        run = [op]
        while run[0].target in _SUBSCRIPTS:
            source = run[0].args[0]
            if not isinstance(source, Ref) or source.name not in self.inlined:
                break
            previous = self.items[self.flow.producer[source.name]]
            if isinstance(previous, ChildCall):
                break
            if self.program.graph.operations[previous].target not in _SUBSCRIPTS:
                break
            run.insert(0, self.program.graph.operations[previous])
        return run


def shape_comment(program: Program, name: str) -> str:
    """Return the comment behind a statement that makes a value: its shape."""
    return f"  # {list(program.spec(name).shape)}"


def _argument_text(arg: object, value: Callable[[str], Expression]) -> str:
    if isinstance(arg, tuple):
        inner = ", ".join(_argument_text(a, value) for a in arg)
        return f"({inner},)" if len(arg) == 1 else f"({inner})"
    return literal(arg, value).text  # type: ignore[arg-type]


def _container_path(item: ForwardItem) -> str | None:
    """Return the path of the outermost list or Sequential that holds a child, None for others."""
    path = item.part.module_path if isinstance(item, ChildCall) else ""
    match = re.match(r"(.*?)\.\d+(\.|$)", path)
    return match[1] if match else None


def _statement_key(op: Operation) -> object:
    return (op.origin.file, op.origin.statement) if op.origin else id(op)
