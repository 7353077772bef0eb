"""Writes an `nn.Module` class, with `__init__` and `forward`, for one part of the program.

`forward` runs operations, or calls of other emitted classes and the views between them. Values keep
the author's variable names where those are free.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.emit.code.child_loops import common_stem, loop_variable, strip_number
from runner.emit.code.class_body import (
    ChildCall,
    ForwardItem,
    ItemFlow,
    drop_zero_states,
    weights_key,
)
from runner.emit.code.line_breaks import indent_lines
from runner.emit.code.list_appends import GrowingList, growing_lists
from runner.emit.code.loop_rolling import roll_module_loops, roll_number_loops
from runner.emit.code.module_attributes import ModuleAttributes, Weight
from runner.emit.code.statements import INDENT, LARGE_BYTES, Statements, shape_comment
from runner.emit.naming.name_tables import GENERIC_NAMES
from runner.emit.naming.value_names import RESERVED, Namer, make_unique
from runner.graph.ir import Scope
from runner.tree.interface import Program, shared_scopes
from runner.tree.part import Part

_OPERANDS = {"gate", "up", "query", "key", "value"}


@dataclass(frozen=True, slots=True)
class EmittedClass:
    """An emitted class: its text, its weights, and the statements that it is built from."""

    text: str
    weights: tuple[Weight, ...]
    inputs: tuple[str, ...]
    """Names of forward's arguments, without `self`."""
    signature: str
    """Text between the brackets of `def forward(...)`."""
    init_lines: tuple[str, ...]
    """Statements of `__init__`, not yet broken into lines."""
    forward_lines: tuple[str, ...]
    """Statements of `forward`, not yet broken into lines."""
    inlined: frozenset[str]
    """Values that have no variable: their expression stands inside another statement."""


def write_class(
    program: Program,
    namer: Namer,
    name: str,
    part: Part,
    items: Sequence[ForwardItem],
    *,
    docstring: str = "",
    returns: Callable[[Callable[[str], str]], str] | None = None,
    signature: str | None = None,
    prologue: Sequence[str] = (),
    inlined: frozenset[str] | None = None,
    nested: bool = False,
) -> EmittedClass:
    """Return the class that computes a part's outputs from its inputs by running `items` in order.

    `returns` writes the return statement in place of the default one; `signature` replaces the
    arguments of `forward`; `prologue` holds statements that run first. `inlined` fixes the values
    that stand inside other expressions; None lets the writer choose them. With `nested`, calls of
    children may stand inside other expressions, as the author wrote them.
    """
    writer = _ForwardWriter(*drop_zero_states(program, items), namer, name, part, nested)
    forward_lines = [*prologue, *writer.write_forward(returns, inlined)]
    init_lines, forward_lines, weights = roll_module_loops(
        writer.module_attributes.init_lines, forward_lines, writer.module_attributes.weights
    )
    forward_lines = roll_number_loops(forward_lines)
    calls_children = any(isinstance(item, ChildCall) for item in items)
    list_name = "" if signature or calls_children else namer.joined_list(part)
    signature = signature or ", ".join(
        ["self", *(f"{name}: torch.Tensor" for name in writer.arguments)]
    )
    if list_name:
        signature = f"self, *{list_name}: torch.Tensor"
        members = f"[{', '.join(writer.arguments)}]"
        forward_lines = [
            line.replace(members, list_name)
            for line in forward_lines
            if line != f"{list_name} = {members}"
        ]
    return EmittedClass(
        class_text(name, init_lines, signature, forward_lines, docstring=docstring),
        tuple(weights),
        writer.arguments,
        signature,
        tuple(init_lines),
        tuple(forward_lines),
        frozenset(writer.statements.inlined),
    )


def class_text(
    name: str,
    init_lines: Sequence[str],
    signature: str,
    forward_lines: Sequence[str],
    parameters: Sequence[str] = (),
    *,
    docstring: str = "",
) -> str:
    """Return the source of a class from the statements of its `__init__` and `forward`."""
    head = [f"class {name}(nn.Module):"]
    if docstring:
        head += [f'    """{docstring}"""', ""]
    if init_lines:
        head += [
            *indent_lines([f"def __init__({', '.join(['self', *parameters])}):"], INDENT - 4),
            "        super().__init__()",
            *indent_lines(init_lines, INDENT),
            "",
        ]
    body = [
        *indent_lines([f"def forward({signature}):"], INDENT - 4),
        *indent_lines(forward_lines, INDENT),
    ]
    return "\n".join(head + body)


class _ForwardWriter:
    """Writes the statements of one class's `__init__` and `forward`."""

    def __init__(
        self,
        program: Program,
        items: Sequence[ForwardItem],
        namer: Namer,
        name: str,
        part: Part,
        nested: bool,
    ) -> None:
        self.program, self.namer, self.part, self.items = program, namer, part, items
        name_by_class = part.level == "kernel" and bool(part.scopes) and name == "Model"
        self.module_attributes = ModuleAttributes(
            program, part.io.states, part.module_path, name_by_class=name_by_class
        )
        self.flow = ItemFlow(program, part, items)
        self.call_attributes: dict[int, str] = {}
        calls = self.call_attributes if nested else None
        self.statements = Statements(
            program,
            namer,
            part,
            items,
            self.flow,
            self.module_attributes,
            self._device_expression,
            self._cpu_device_expression,
            calls,
        )
        self.names: dict[str, str] = {}
        self.live_vars: dict[str, str] = {}
        """Variable -> the value that it holds, for values that a later statement reads."""
        self.held_vars: dict[str, str] = {}
        """Variable -> the value that it holds, for variables that `forward` assigns, even if
        nothing reads it any more."""
        self.bound_vars: dict[str, str] = {}
        """Variable -> the value that it holds, arguments included, until a `del`."""
        self.list_of: dict[int, GrowingList] = {}
        """Index of a statement -> the author's list that it joins."""
        self.list_names: dict[GrowingList, str] = {}
        self.last_positions = self._find_last_positions()
        self._declare_attributes()
        self.arguments = self._name_arguments()

    def _declare_attributes(self) -> None:
        """Make the attributes of the class in the order in which `forward` first uses them."""
        sharing = Counter(weights_key(item) for item in self.items)
        attributes: dict[object, str] = {}
        for position, item in enumerate(self.items):
            if position in self.flow.later_turns:
                continue
            if isinstance(item, ChildCall):
                calls = [self.flow.call(p) for p in self.flow.loops.get(position, [position])]
                keys = tuple(map(weights_key, calls))
                is_shared = len({*keys}) == 1
                key = keys[0] if is_shared else keys
                if key not in attributes:
                    attributes[key] = self._declare_children(
                        calls, shared=is_shared and sharing[keys[0]] > 1
                    )
                self.call_attributes[position] = attributes[key]
                continue
            op = self.program.graph.operations[item]
            if self.module_attributes.use_module(op) is None:
                for name in op.refs():
                    if self.program.is_state(name):
                        self.module_attributes.use_state(name)

    def _declare_children(self, calls: list[ChildCall], shared: bool) -> str:
        """Return the attribute for one child, or for the list of children that a loop runs."""
        positions = [
            [self.module_attributes.positions[n] for n in call.part.io.states] for call in calls
        ]
        first = calls[0]
        if shared:
            stem = strip_number(first.attribute)
            return self.module_attributes.add_child(
                stem, first.construction, first.weights, positions[0]
            )
        if len(calls) == 1:
            return self.module_attributes.add_child(
                first.attribute, first.construction, first.weights, positions[0]
            )
        stem = common_stem([c.attribute for c in calls])
        return self.module_attributes.add_children(
            stem, [c.construction for c in calls], [c.weights for c in calls], positions
        )

    def _name_arguments(self) -> tuple[str, ...]:
        names = self.namer.parameter_names(self.part)
        for name, value in zip(names, self.part.io.inputs, strict=True):
            self.live_vars[name] = self.bound_vars[name] = value
            self.names[value] = name
        return names

    def _device_expression(self) -> str:
        """Return an expression of the model's device, taken from a variable, a weight or a buffer.

        The buffer is an empty one that is added where the class has neither.
        """
        for variable, value in self.bound_vars.items():
            if value not in self.program.graph.on_cpu:
                return f"{variable}.device"
        return f"{self.module_attributes.device_anchor()}.device"

    def _cpu_device_expression(self) -> str | None:
        """Return the device of an argument that is on the CPU in the model; None if none is.

        A tensor that the model makes on the CPU is made there, so that the file runs wherever its
        inputs are.
        """
        on_cpu = self.program.graph.on_cpu
        return next((f"{var}.device" for var, v in self.bound_vars.items() if v in on_cpu), None)

    # --- forward ----------------------------------------------------------------------------------

    def write_forward(
        self,
        returns: Callable[[Callable[[str], str]], str] | None,
        inlined: frozenset[str] | None,
    ) -> list[str]:
        """Return the statements of `forward`."""
        if inlined is None:
            self.statements.choose_inlined()
        else:
            self.statements.inlined = set(inlined)
        statements = [
            (position, item)
            for position, item in enumerate(self.items)
            if position not in self.flow.later_turns
            and not any(map(self.statements.is_inlined, self.flow.outputs_of(item)))
        ]
        lists = self._find_lists(statements)
        self.list_of = {
            index: growing_list for growing_list in lists for index in growing_list.joins
        }
        last_reads: dict[str, int] = {}
        for growing_list in lists:
            last_reads.update(zip(growing_list.members, growing_list.makers, strict=True))
        for index, (_, item) in enumerate(statements):
            for name in self._leaf_values(index, item):
                last_reads[name] = index
        for name in self.part.io.outputs:
            last_reads[name] = len(statements)
        lists_by_maker: dict[int, list[GrowingList]] = defaultdict(list)
        for growing_list in lists:
            for maker in dict.fromkeys(growing_list.makers):
                lists_by_maker[maker].append(growing_list)
        lines = self._write_appends(lists_by_maker[-1], -1, last_reads)
        for index, (position, item) in enumerate(statements):
            if position in self.flow.loops:
                lines += self._write_loop(position)
                continue
            text = self._right_side(position, item)
            if index in self.list_of:
                text = self._write_join(index, item, text)
            is_last = index + 1 == len(statements) and returns is None
            if (
                is_last
                and self.flow.outputs_of(item) == self.part.io.outputs
                and len(self.flow.outputs_of(item)) == 1
                and not self._returns_list(item)
            ):
                return [*lines, f"return {text}"]
            final_reads = [n for n in self._leaf_values(index, item) if last_reads[n] == index]
            targets = self._assign_targets(item, last_reads, index, final_reads)
            lines.append(
                self._add_comment(f"{targets} = {text}", item)
                if targets
                else f"_ = {text}  # never read, as in the original"
            )
            lines += self._write_appends(lists_by_maker[index], index, last_reads)
            dead_variables = [] if is_last else self._release_variables(position, last_reads, index)
            if dead_variables := dead_variables + self._dead_lists(position, index):
                lines.append(f"del {', '.join(dead_variables)}")
        if returns is not None:
            return [*lines, returns(self._value_text)]
        return [*lines, "return " + ", ".join(self._value_text(n) for n in self.part.io.outputs)]

    # --- the author's lists of tensors ------------------------------------------------------------

    def _find_lists(self, statements: Sequence[tuple[int, ForwardItem]]) -> list[GrowingList]:
        makers = dict.fromkeys(self.part.io.inputs, -1)
        for index, (position, item) in enumerate(statements):
            if position not in self.flow.loops:
                makers |= dict.fromkeys(self.flow.outputs_of(item), index)
        return growing_lists(self.namer, [item for _, item in statements], makers)

    def _leaf_values(self, index: int, item: ForwardItem) -> list[str]:
        """Return the values that a statement reads from variables, none if it joins a list."""
        return [] if index in self.list_of else self.statements.leaf_values(item)

    def _write_appends(
        self, lists: Sequence[GrowingList], index: int, last_reads: dict[str, int]
    ) -> list[str]:
        """Return the statements that put the values made by a statement into the author's lists."""
        lines = []
        for growing_list in lists:
            initial_members = [
                self.names[m]
                for m, maker in zip(growing_list.members, growing_list.makers, strict=True)
                if maker == index == growing_list.makers[0]
            ]
            for position, member in enumerate(growing_list.members):
                if growing_list.makers[position] != index:
                    continue
                variable = self.names[member]
                if position == 0:
                    name = make_unique(growing_list.name, {*self.live_vars, *RESERVED})
                    self.list_names[growing_list] = name
                    self.live_vars[name] = growing_list.name
                    self.bound_vars.pop(name, None)
                    lines.append(f"{name} = [{', '.join(initial_members)}]")
                elif not initial_members:
                    lines.append(f"{self.list_names[growing_list]}.append({variable})")
                if last_reads[member] == index and self.live_vars.get(variable) == member:
                    del self.live_vars[variable]  # unless another list has already released it
        return lines

    def _write_join(self, index: int, item: ForwardItem, text: str) -> str:
        """Return a join's expression, rewritten to read the list instead of its members."""
        growing_list = self.list_of[index]
        name = self.list_names[growing_list]
        if index == growing_list.joins[-1]:
            del self.live_vars[name]
        if isinstance(item, ChildCall):
            return f"{text.partition('(')[0]}(*{name})"
        inner, _, tail = text.partition("]")
        return f"{inner.partition('[')[0]}{name}{tail}"

    def _dead_lists(self, position: int, index: int) -> list[str]:
        """Return the list to delete after its last join, so that its large tensors are freed.

        This is the case where the author's module that held one of them has returned.
        """
        growing_list = self.list_of.get(index)
        if growing_list is None or index != growing_list.joins[-1]:
            return []
        large = [n for n in growing_list.members if self.program.spec(n).nbytes >= LARGE_BYTES]
        computed = [n for n in large if n in self.program.producers]
        return (
            [self.list_names[growing_list]]
            if any(self._has_returned(n, position) for n in computed)
            else []
        )

    def _release_variables(
        self, position: int, last_reads: dict[str, int], index: int
    ) -> list[str]:
        """Forget and return the variables whose values the original no longer holds.

        These are large values that nothing reads any more, of modules that have returned.
        """
        dead_variables = [
            variable
            for variable, value in self.held_vars.items()
            if last_reads.get(value, -1) <= index
            and self.program.spec(value).nbytes >= LARGE_BYTES
            and self._has_returned(value, position)
        ]
        for variable in dead_variables:
            del self.held_vars[variable], self.bound_vars[variable]
        return dead_variables

    def _has_returned(self, value: str, position: int) -> bool:
        """Return whether the author's module that held a value runs in none of the items to come.

        That module is the one that made the value or, where several statements read it, the
        innermost one that also contains all of them.
        """
        graph = self.program.graph
        readers = [graph.operations[i] for i in self.program.consumers.get(value, ())]
        statements = {(op.origin.file, op.origin.statement) for op in readers if op.origin}
        scopes = graph.operations[self.program.producers[value]].scopes
        if len(statements) > 1:
            scopes = shared_scopes([scopes, *(op.scopes for op in readers)])
        scope = next((scope for scope in reversed(scopes) if not scope.builtin), None)
        return scope is not None and self.last_positions.get(scope, -1) <= position

    def _find_last_positions(self) -> dict[Scope, int]:
        """Return, for each call of a module, the position of the last item that runs part of it."""
        last_positions: dict[Scope, int] = {}
        for position, item in enumerate(self.items):
            for i in item.part.operations if isinstance(item, ChildCall) else (item,):
                last_positions |= dict.fromkeys(self.program.graph.operations[i].scopes, position)
        return last_positions

    def _write_loop(self, position: int) -> list[str]:
        run = self.flow.loops[position]
        first, final = self.flow.call(position), self.flow.call(run[-1])
        initial = self.flow.carried_input(run)
        variable, result = self.names[initial], final.part.io.outputs[0]
        attribute = self.call_attributes[position]
        shared = weights_key(first) == weights_key(final)
        element = "_" if shared else loop_variable(attribute, {*self.live_vars, *RESERVED})
        arguments = ", ".join(self._value_text(n) for n in first.part.io.inputs)
        self.live_vars[variable] = self.held_vars[variable] = self.bound_vars[variable] = result
        self.names[result] = variable
        iterable = f"range({len(run)})" if shared else f"self.{attribute}"
        call = f"self.{attribute}" if shared else element
        results = [self.flow.call(p).part.io.outputs[0] for p in run]
        comments = {shape_comment(self.program, name) for name in results}
        comment = comments.pop() if len(comments) == 1 else ""
        return [f"for {element} in {iterable}:", f"    {variable} = {call}({arguments}){comment}"]

    def _returns_list(self, item: ForwardItem) -> bool:
        return not isinstance(item, ChildCall) and self.program.graph.operations[item].returns_list

    def _value_text(self, name: str) -> str:
        return self.statements.value_text(name, self.names.__getitem__)

    def _right_side(self, position: int, item: ForwardItem) -> str:
        if isinstance(item, ChildCall):
            arguments = ", ".join(self._value_text(n) for n in item.part.io.inputs)
            return f"self.{self.call_attributes[position]}({arguments})"
        return self.statements.expression_text(item, self.names.__getitem__)

    def _assign_targets(
        self, item: ForwardItem, last_reads: dict[str, int], index: int, final_reads: list[str]
    ) -> str:
        for name in final_reads:
            if name in self.names and self.live_vars.get(self.names[name]) == name:
                del self.live_vars[self.names[name]]
        targets = []
        outputs = self.flow.outputs_of(item)
        for name in outputs:
            if name not in last_reads or last_reads[name] < index:
                targets.append("_")
                continue
            variable = self._choose_variable(name, item, final_reads)
            self.live_vars[variable] = self.held_vars[variable] = self.bound_vars[variable] = name
            self.names[name] = variable
            targets.append(variable)
        if all(t == "_" for t in targets):
            return ""
        module_use = (
            None
            if isinstance(item, ChildCall)
            else self.module_attributes.use_module(self.program.graph.operations[item])
        )
        if module_use is not None and len(targets) > 1:
            return module_use[1].unpack.format(*targets).replace("(_, _)", "_")
        return ", ".join(targets) + ("," if self._returns_list(item) and len(targets) == 1 else "")

    def _choose_variable(self, name: str, item: ForwardItem, final_reads: Sequence[str]) -> str:
        """Return a free variable name for a value that an item makes.

        The result of a child may take over a generic name such as `x` from the child's first input.
        """
        taken_names = {*self.live_vars, *RESERVED}
        candidates = self.namer.candidate_names(name)
        for operand in final_reads:
            if {name, operand} <= self.statements.split_values and self.statements.is_large(
                operand
            ):
                return self.names[operand]  # reusing the name frees the large tensor in time
        if isinstance(item, ChildCall):
            variable = self.namer.author_variable(name, self.part.scopes)
            first = next(iter(item.part.io.inputs), "")
            if variable is not None:
                candidates = (variable, *candidates)
            elif (
                first in final_reads
                and self.names.get(first) in GENERIC_NAMES
                and candidates[0] not in _OPERANDS  # the next kernel needs these names to differ
            ):
                candidates = (self.names[first], *candidates)
        if candidates[0] not in GENERIC_NAMES and name in self.namer.author_names:
            return make_unique(candidates[0], taken_names)
        free = [candidate for candidate in candidates if candidate not in taken_names]
        return (
            free[0]
            if free
            else make_unique(candidates[-1 if candidates[0] in GENERIC_NAMES else 0], taken_names)
        )

    def _add_comment(self, line: str, item: ForwardItem) -> str:
        outputs = [n for n in self.flow.outputs_of(item) if n in self.names]
        return line + shape_comment(self.program, outputs[0]) if len(outputs) == 1 else line
