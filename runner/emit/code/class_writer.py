"""Writes a class: its `__init__` and `forward` for a part of the program.

What runs in `forward` are operations, or calls of other emitted classes with the views between
them. Values keep the author's variable names where those are free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.emit.code.child_loops import common_stem, one_of, without_number
from runner.emit.code.class_body import Call, Item, ItemFlow, weights_key, without_zero_states
from runner.emit.code.line_breaks import indented
from runner.emit.code.list_appends import GrowingList, growing_lists
from runner.emit.code.loop_rolling import counted, rolled
from runner.emit.code.module_attributes import Owned, Weight
from runner.emit.code.statements import INDENT, LARGE_BYTES, Statements, shape_comment
from runner.emit.naming.name_tables import GENERIC
from runner.emit.naming.value_names import RESERVED, Namer, unique
from runner.graph.ir import Scope
from runner.tree.interface import Program, shared_scopes
from runner.tree.part import Part

_OPERANDS = {"gate", "up", "query", "key", "value"}


@dataclass(frozen=True, slots=True)
class Written:
    """A class as text, and the weights that it owns."""

    text: str
    weights: tuple[Weight, ...]
    inputs: tuple[str, ...]
    """Names of forward's arguments."""
    signature: str
    made: tuple[str, ...]
    """Statements of `__init__`, however long."""
    lines: tuple[str, ...]
    """Statements of `forward`, however long."""
    inlined: frozenset[str]
    """Values that stand inside another statement's expression."""


def write_class(
    program: Program,
    namer: Namer,
    name: str,
    part: Part,
    items: Sequence[Item],
    *,
    docstring: str = "",
    returns: Callable[[Callable[[str], str]], str] | None = None,
    signature: str | None = None,
    prologue: Sequence[str] = (),
    inlined: frozenset[str] | None = None,
    nested: bool = False,
) -> Written:
    """The class that computes a part's outputs from its inputs by running `items` in order.

    `returns`, `signature` and `prologue` replace what is returned, the arguments, and come first.
    `inlined` says which values stand inside other expressions, where that is decided already.
    `nested`: whether calls may stand inside other expressions, as the author wrote them.
    """
    writer = _Writer(*without_zero_states(program, items), namer, name, part, nested)
    lines = [*prologue, *writer.forward(returns, inlined)]
    made, lines, weights = rolled(writer.owned.lines, lines, writer.owned.weights)
    lines = counted(lines)
    signature = signature or _signature(writer.arguments)
    if joined := namer.joined(part):
        signature = f"self, *{joined}: torch.Tensor"
        members = f"[{', '.join(writer.arguments)}]"
        lines = [line.replace(members, joined) for line in lines if line != f"{joined} = {members}"]
    return Written(
        class_text(name, made, signature, lines, docstring=docstring),
        tuple(weights),
        writer.arguments,
        signature,
        tuple(made),
        tuple(lines),
        frozenset(writer.statements.inlined),
    )


def class_text(
    name: str,
    made: Sequence[str],
    signature: str,
    lines: Sequence[str],
    parameters: Sequence[str] = (),
    *,
    docstring: str = "",
) -> str:
    """A class of the statements that `__init__` and `forward` run."""
    head = [f"class {name}(nn.Module):"]
    if docstring:
        head += [f'    """{docstring}"""', ""]
    if made:
        head += [
            *indented([f"def __init__({', '.join(['self', *parameters])}):"], INDENT - 4),
            "        super().__init__()",
            *indented(made, INDENT),
            "",
        ]
    body = [
        *indented([f"def forward({signature}):"], INDENT - 4),
        *indented(lines, INDENT),
    ]
    return "\n".join(head + body)


def _signature(arguments: Sequence[str]) -> str:
    return ", ".join(["self", *(f"{name}: torch.Tensor" for name in arguments)])


class _Writer:
    def __init__(
        self,
        program: Program,
        items: Sequence[Item],
        namer: Namer,
        name: str,
        part: Part,
        nested: bool,
    ) -> None:
        self.program, self.namer, self.part, self.items = program, namer, part, items
        alone = part.level == "kernel" and bool(part.scopes) and name == "Model"
        self.owned = Owned(program, part.io.states, part.module_path, alone=alone)
        self.flow = ItemFlow(program, part, items)
        self.attributes: dict[int, str] = {}
        calls = self.attributes if nested else None
        self.statements = Statements(
            program, namer, part, items, self.flow, self.owned, self._device, calls
        )
        self.names: dict[str, str] = {}
        self.live: dict[str, str] = {}
        """Variable -> the value that it holds and that is still read."""
        self.held: dict[str, str] = {}
        """Variable -> the value that it holds, read or not."""
        self.bound: dict[str, str] = {}
        """Variable -> the value that Python has in it."""
        self.list_of: dict[int, GrowingList] = {}
        """Statement -> the author's list that it joins."""
        self.list_names: dict[GrowingList, str] = {}
        self.ends = self._ends()
        self._make_owned()
        self.arguments = self._name_arguments()

    def _make_owned(self) -> None:
        """What `__init__` makes, in the order in which it is used."""
        sharing = Counter(weights_key(item) for item in self.items)
        made: dict[object, str] = {}
        for position, item in enumerate(self.items):
            if position in self.flow.repeats:
                continue
            if isinstance(item, Call):
                calls = [self.flow.call(p) for p in self.flow.loops.get(position, [position])]
                keys = tuple(map(weights_key, calls))
                one = len({*keys}) == 1
                key = keys[0] if one else keys
                if key not in made:
                    made[key] = self._own_calls(calls, shared=one and sharing[keys[0]] > 1)
                self.attributes[position] = made[key]
                continue
            op = self.program.graph.operations[item]
            if self.owned.module(op) is None:
                for name in op.refs():
                    if self.program.is_state(name):
                        self.owned.state(name)

    def _own_calls(self, calls: list[Call], shared: bool) -> str:
        """The attribute of a child, or of equal ones that run one after the other."""
        positions = [[self.owned.positions[n] for n in call.part.io.states] for call in calls]
        first = calls[0]
        if shared:
            stem = without_number(first.attribute)
            return self.owned.child(stem, first.construction, first.weights, positions[0])
        if len(calls) == 1:
            return self.owned.child(
                first.attribute, first.construction, first.weights, positions[0]
            )
        stem = common_stem([c.attribute for c in calls])
        return self.owned.children(
            stem, [c.construction for c in calls], [c.weights for c in calls], positions
        )

    def _name_arguments(self) -> tuple[str, ...]:
        names = self.namer.parameters(self.part)
        for name, value in zip(names, self.part.io.inputs, strict=True):
            self.live[name] = self.bound[name] = value
            self.names[value] = name
        return names

    def _device(self) -> str:
        """The device that the model is on: a variable's, a weight's, or that of a buffer for it."""
        for variable, value in self.bound.items():
            if value not in self.program.graph.on_cpu:
                return f"{variable}.device"
        return f"{self.owned.anchor()}.device"

    # --- forward ----------------------------------------------------------------------------------

    def forward(
        self,
        returns: Callable[[Callable[[str], str]], str] | None,
        inlined: frozenset[str] | None,
    ) -> list[str]:
        """The statements of `forward`."""
        if inlined is None:
            self.statements.choose()
        else:
            self.statements.inlined = set(inlined)
        statements = [
            (position, item)
            for position, item in enumerate(self.items)
            if position not in self.flow.repeats
            and not any(map(self.statements.is_inside, self.flow.makes(item)))
        ]
        lists = self._lists(statements)
        self.list_of = {s: each for each in lists for s in each.joins}
        last: dict[str, int] = {}
        for each in lists:
            last.update(zip(each.members, each.made, strict=True))
        for s, (_, item) in enumerate(statements):
            for name in self._leaves(s, item):
                last[name] = s
        for name in self.part.io.outputs:
            last[name] = len(statements)
        lines = self._appended(lists, -1, last)
        for s, (position, item) in enumerate(statements):
            if position in self.flow.loops:
                lines += self._loop(position)
                continue
            text = self._right_side(position, item)
            if s in self.list_of:
                text = self._joining(s, item, text)
            ends = s + 1 == len(statements) and returns is None
            if (
                ends
                and self.flow.makes(item) == self.part.io.outputs
                and len(self.flow.makes(item)) == 1
                and not self._listed(item)
            ):
                return [*lines, f"return {text}"]
            dying = [n for n in self._leaves(s, item) if last[n] == s]
            targets = self._targets(item, last, s, dying)
            lines.append(
                self._commented(f"{targets} = {text}", item)
                if targets
                else f"_ = {text}  # never read, as in the original"
            )
            lines += self._appended(lists, s, last)
            left = [] if ends else self._left_behind(position, last, s)
            if left := left + self._lists_left(position, s):
                lines.append(f"del {', '.join(left)}")
        if returns is not None:
            return [*lines, returns(self._read)]
        return [*lines, "return " + ", ".join(self._read(n) for n in self.part.io.outputs)]

    # --- lists of the author's ---

    def _lists(self, statements: Sequence[tuple[int, Item]]) -> list[GrowingList]:
        made = dict.fromkeys(self.part.io.inputs, -1)
        for s, (position, item) in enumerate(statements):
            if position not in self.flow.loops:
                made |= dict.fromkeys(self.flow.makes(item), s)
        return growing_lists(self.namer, [item for _, item in statements], made)

    def _leaves(self, s: int, item: Item) -> list[str]:
        """Variables that a statement reads; one that joins a list reads that alone."""
        return [] if s in self.list_of else self.statements.leaves(item)

    def _appended(self, lists: Sequence[GrowingList], s: int, last: dict[str, int]) -> list[str]:
        """Statements that put what was just made into the author's lists."""
        lines = []
        for each in lists:
            first = [
                self.names[m]
                for m, made in zip(each.members, each.made, strict=True)
                if made == s == each.made[0]
            ]
            for place, member in enumerate(each.members):
                if each.made[place] != s:
                    continue
                variable = self.names[member]
                if place == 0:
                    name = unique(each.name, {*self.live, *RESERVED})
                    self.list_names[each] = name
                    self.live[name] = each.name
                    self.bound.pop(name, None)
                    lines.append(f"{name} = [{', '.join(first)}]")
                elif not first:
                    lines.append(f"{self.list_names[each]}.append({variable})")
                if last[member] == s and self.live.get(variable) == member:
                    del self.live[variable]  # else another list that took it has seen to that
        return lines

    def _joining(self, s: int, item: Item, text: str) -> str:
        """The expression of a join, from the list instead of its members."""
        each = self.list_of[s]
        name = self.list_names[each]
        if s == each.joins[-1]:
            del self.live[name]
        if isinstance(item, Call):
            return f"{text.partition('(')[0]}(*{name})"
        inner, _, rest = text.partition("]")
        return f"{inner.partition('[')[0]}{name}{rest}"

    def _lists_left(self, position: int, s: int) -> list[str]:
        """Lists whose author's module has returned, which let go of large tensors then."""
        each = self.list_of.get(s)
        if each is None or s != each.joins[-1]:
            return []
        large = [n for n in each.members if self.program.spec(n).nbytes >= LARGE_BYTES]
        made = [n for n in large if n in self.program.producers]
        return [self.list_names[each]] if any(self._has_returned(n, position) for n in made) else []

    def _left_behind(self, position: int, last: dict[str, int], s: int) -> list[str]:
        """Variables of modules that have returned in the original, which held them no longer."""
        left = [
            variable
            for variable, value in self.held.items()
            if last.get(value, -1) <= s
            and self.program.spec(value).nbytes >= LARGE_BYTES
            and self._has_returned(value, position)
        ]
        for variable in left:
            del self.held[variable], self.bound[variable]
        return left

    def _has_returned(self, value: str, position: int) -> bool:
        """Whether the author's module that held a value runs in none of the items to come.

        It is the one that made it; the one around all readers, where several statements read it.
        """
        graph = self.program.graph
        readers = [graph.operations[i] for i in self.program.consumers.get(value, ())]
        statements = {(op.origin.file, op.origin.statement) for op in readers if op.origin}
        scopes = graph.operations[self.program.producers[value]].scopes
        if len(statements) > 1:
            scopes = shared_scopes([scopes, *(op.scopes for op in readers)])
        scope = next((scope for scope in reversed(scopes) if not scope.builtin), None)
        return scope is not None and self.ends.get(scope, -1) <= position

    def _ends(self) -> dict[Scope, int]:
        """For each call of a module, the last item that runs a part of it."""
        ends: dict[Scope, int] = {}
        for position, item in enumerate(self.items):
            for i in item.part.operations if isinstance(item, Call) else (item,):
                ends |= dict.fromkeys(self.program.graph.operations[i].scopes, position)
        return ends

    def _loop(self, position: int) -> list[str]:
        run = self.flow.loops[position]
        first, last = self.flow.call(position), self.flow.call(run[-1])
        carried = self.flow.carried(run)
        variable, result = self.names[carried], last.part.io.outputs[0]
        attribute = self.attributes[position]
        shared = weights_key(first) == weights_key(last)
        each = "_" if shared else one_of(attribute, {*self.live, *RESERVED})
        arguments = ", ".join(self._read(n) for n in first.part.io.inputs)
        self.live[variable] = self.held[variable] = self.bound[variable] = result
        self.names[result] = variable
        several = f"range({len(run)})" if shared else f"self.{attribute}"
        call = f"self.{attribute}" if shared else each
        results = [self.flow.call(p).part.io.outputs[0] for p in run]
        comments = {shape_comment(self.program, name) for name in results}
        comment = comments.pop() if len(comments) == 1 else ""
        return [f"for {each} in {several}:", f"    {variable} = {call}({arguments}){comment}"]

    def _listed(self, item: Item) -> bool:
        return not isinstance(item, Call) and self.program.graph.operations[item].returns_list

    def _read(self, name: str) -> str:
        return self.statements.value(name, self.names.__getitem__)

    def _right_side(self, position: int, item: Item) -> str:
        if isinstance(item, Call):
            arguments = ", ".join(self._read(n) for n in item.part.io.inputs)
            return f"self.{self.attributes[position]}({arguments})"
        return self.statements.expression(item, self.names.__getitem__)

    def _targets(self, item: Item, last: dict[str, int], s: int, dying: list[str]) -> str:
        for name in dying:
            if name in self.names and self.live.get(self.names[name]) == name:
                del self.live[self.names[name]]
        targets = []
        makes = self.flow.makes(item)
        for name in makes:
            if name not in last or last[name] < s:
                targets.append("_")
                continue
            variable = self._variable(name, item, dying)
            self.live[variable] = self.held[variable] = self.bound[variable] = name
            self.names[name] = variable
            targets.append(variable)
        if all(t == "_" for t in targets):
            return ""
        found = (
            None
            if isinstance(item, Call)
            else self.owned.module(self.program.graph.operations[item])
        )
        if found is not None and len(targets) > 1:
            return found[1].unpack.format(*targets).replace("(_, _)", "_")
        return ", ".join(targets) + ("," if self._listed(item) and len(targets) == 1 else "")

    def _variable(self, name: str, item: Item, dying: Sequence[str]) -> str:
        """A free name for what an item makes; a child may pass a running `x` on."""
        taken = {*self.live, *RESERVED}
        wishes = self.namer.wishes(name)
        for before in dying:
            if {name, before} <= self.statements.split and self.statements.is_large(before):
                return self.names[before]  # nothing else lets go of it in time
        if isinstance(item, Call):
            seen = self.namer.seen_from(name, self.part.scopes)
            first = next(iter(item.part.io.inputs), "")
            if seen is not None:
                wishes = (seen, *wishes)
            elif (
                first in dying
                and self.names.get(first) in GENERIC
                and wishes[0] not in _OPERANDS  # which the next kernel tells apart
            ):
                wishes = (self.names[first], *wishes)
        if wishes[0] not in GENERIC and name in self.namer.authors:
            return unique(wishes[0], taken)
        free = [wish for wish in wishes if wish not in taken]
        return free[0] if free else unique(wishes[-1 if wishes[0] in GENERIC else 0], taken)

    def _commented(self, line: str, item: Item) -> str:
        makes = [n for n in self.flow.makes(item) if n in self.names]
        return line + shape_comment(self.program, makes[0]) if len(makes) == 1 else line
