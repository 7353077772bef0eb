"""Names in emitted code: the author's where there are any, else what a value is."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import cached_property

from runner.emit.naming.author_variables import Variable, authors_variables, modules_of, with_forms
from runner.emit.naming.name_tables import (
    GATED,
    GENERIC,
    IN_KERNEL,
    MADE,
    MADE_ALWAYS,
    MADE_INSIDE,
    OPERANDS,
    ORDINALS,
    PREFIXED,
    READ_AS,
    RESULTS,
)
from runner.graph.ir import Operation, Ref, Scope
from runner.graph.operations import ACTIVATIONS, POINTWISE, field_name, kind
from runner.graph.terms import snake_case
from runner.tree.interface import Program, interface
from runner.tree.part import Part
from runner.tree.part_names import attribute

RESERVED = {"self", "torch", "nn", "F", "math", "Model", "forward", "training", *keyword.kwlist}
_BUILTIN = set(dir(builtins))
_FREE = {
    "input", "hash", "id", "type", "iter", "vars", "dir", "copyright", "credits", "license", "exit",
    "quit", "help",
}  # fmt: skip
"""Builtin names that authors use for tensors and that emitted code does not call."""


def identifier(text: str) -> str:
    """A Python name from any text: `layers.0.attn` -> `layers_0_attn`."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "value"
    if name[0].isdigit():
        name = f"m{name}"
    return f"{name}_" if name in RESERVED | _BUILTIN - _FREE else name


def unique(name: str, taken: Container[str], between: str = "_") -> str:
    """The name, or with a number where it is taken."""
    if name not in taken:
        return name
    count = 2
    while f"{name}{between}{count}" in taken:
        count += 1
    return f"{name}{between}{count}"


def camel(stem: str) -> str:
    """`linear_768x3072_fp32` -> `Linear768x3072Fp32`."""
    text = ""
    for piece in filter(None, re.split(r"[^0-9A-Za-z]+", stem)):
        between = "_" if text[-1:].isdigit() and piece[0].isdigit() else ""
        text += between + piece[0].upper() + piece[1:]
    return text if text[:1].isalpha() else f"Model{text}"


def relative(path: str, base: str) -> str:
    """A module's path as seen from another: `conv1` of `layer1.0.conv1` in `layer1.0`."""
    if base and path == base:
        return ""
    return path[len(base) + 1 :] if base and path.startswith(base + ".") else path


_STREAM = {"contraction", "pointwise", "normalization", "pooling", "view", "copy", "other"}
"""Kinds of operations whose result may be called what went in: `x = self.conv(x)`."""
_PACKED = {"query", "key", "value", "qkv"}
_KEEPS = {"contiguous", "clone", "reshape", "flatten", "to", "_to_copy", "type_as", "dropout"}
"""Operators whose result is the same thing as what they read."""
_OTHER_SCALE = {"exp", "log"}
"""Operators whose result must not be called by a parameter such as `A_log`."""
JOINS = {"cat", "concat", "concatenate", "stack"}
"""Operators that make one tensor of a list."""
_SCALES = {"add", "sub", "mul", "div", "neg"}


def child_names(part: Part) -> dict[int, str]:
    """What a parent calls its children: their place in the author's modules, below the parent's."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    places = [_place_below(child, part) for child in part.children]
    lists = Counter(_list_of(place) for place in places if place[-1:].isdigit())
    for child, place in zip(part.children, places, strict=True):
        if _is_module(child) and place[-1:].isdigit() and child.name != place:
            wish = place if lists[_list_of(place)] > 1 else child.name
        elif child.name == attribute(child.module_path) or f"_{place}".endswith(f"_{child.name}"):
            wish = place or child.name
        else:
            wish = f"{place}_{child.name}" if place else child.name
        names[id(child)] = unique(wish, taken)
        taken.add(names[id(child)])
    return names


def _place_below(child: Part, part: Part) -> str:
    """`layers_0` of `blocks.2.layers.0` in `blocks.2`; empty for a bare number."""
    where = relative(child.module_path, part.module_path)
    return "" if where.replace(".", "").isdigit() else identifier(where) if where else ""


def _list_of(place: str) -> str:
    """`stages` of `stages_1_0`."""
    return re.sub(r"(_\d+)+$", "", place)


def _is_module(part: Part) -> bool:
    """Whether a part is named by the author's class."""
    return bool(part.scopes) and part.name == snake_case(part.scopes[-1].cls)


class Namer:
    """Names each value of a program once, and a component's parameters by what they are to it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        arguments: dict[str, list[Variable]] = {
            i.name: [((), i.argument)] for i in program.graph.inputs
        }
        self._assigned = authors_variables(program) | arguments
        self._variables = with_forms(program, self._assigned)
        self.authors = {n: identifier(v[0][1]) for n, v in self._variables.items()}
        self._roles = self._reading_roles()
        self._wishes: dict[str, tuple[str, ...]] = {}
        for op in program.graph.operations:
            for name in filter(None, op.outputs):
                self._wishes[name] = tuple(dict.fromkeys(self._names(name, op)))

    def wishes(self, name: str) -> Sequence[str]:
        """Names for a value, the best first."""
        return self._wishes.get(name) or (self.of(name),)

    def seen_from(self, name: str, scopes: tuple[Scope, ...]) -> str | None:
        """The author's variable for a value in a call of a module, or in one that leads there."""
        inside = modules_of(scopes)
        for modules, variable in self._variables.get(name, ()):
            if inside[: len(modules)] == modules:
                return identifier(variable)
        return None

    def of(self, name: str) -> str:
        """The name of a value, wherever that is free."""
        if name in self.authors:
            return self.authors[name]
        if name in self._wishes:
            return self._wishes[name][0]
        return identifier(self.program.graph.states[name].path.rpartition(".")[2])

    def result(self, name: str) -> str:
        """A component's name for an output: the author's, else torch's among several, else ''."""
        if name in self.authors:
            return self.authors[name]
        op = self._maker(name)
        if op is None or op.name not in RESULTS or len(op.outputs) == 1:
            return ""
        return RESULTS[op.name][op.outputs.index(name)]

    # --- values -----------------------------------------------------------------------------------

    def _maker(self, name: str) -> Operation | None:
        i = self.program.producers.get(name)
        return None if i is None else self.program.graph.operations[i]

    def _names(self, name: str, op: Operation) -> Iterator[str]:
        if name in self.authors:
            yield self.authors[name]
        if len(op.outputs) > 1 or op.returns_list:
            yield from self._one_of_several(name, op)
            return
        if role := self._roles.get(name):
            yield role
        made = self._operation(name, op)
        for operation in reversed(made):
            if operation in MADE_ALWAYS:
                yield MADE_ALWAYS[operation]
        if self.program.spec(name).dtype == "bool":
            yield "mask"
        operands = [n for n in op.refs() if not self.program.is_state(n)]
        if operands:
            yield from self._taken_over(name, op, operands)
        elif (state := next(op.refs(), None)) is not None and op.name not in _OTHER_SCALE:
            yield self.of(state)
        if made[0] in PREFIXED and operands:
            main = self.of(self._main_operand(name, operands))
            yield MADE[made[0]] if main in GENERIC else f"{main}_{MADE[made[0]]}"
        if len(made) > 1 and made[0] in MADE:
            yield MADE[made[0]]
        if op.name == "select" and operands and self.of(operands[0]) in GENERIC:
            yield f"{self.of(operands[0])}_t"
        if len(operands) == 1 and (_keeps(op) or made[-1] not in MADE):
            yield self.of(operands[0])
        if made[-1] in MADE:
            yield MADE[made[-1]]
        whole = self._viewed(name)
        smaller = self.program.spec(name).numel < self.program.spec(whole).numel
        if smaller and self.of(whole) not in GENERIC:
            yield f"{self.of(whole)}_part"
        yield from ("hidden", "output") if self.program.spec(name).floating else ("indices",)

    def _one_of_several(self, name: str, op: Operation) -> Iterator[str]:
        if role := self._roles.get(name):
            yield role
        place = op.outputs.index(name)
        if op.name in RESULTS:
            yield RESULTS[op.name][place]
        elif len(op.outputs) <= len(ORDINALS):
            yield ORDINALS[place]
        else:
            yield f"part_{place + 1}"

    def _operation(self, name: str, op: Operation) -> tuple[str, ...]:
        """What a value is the result of: its kernel, where it leaves that, and its operator."""
        own = field_name(op)
        kernel = self.program.owner.get(self.program.producers[name])
        if kernel is None:
            return (own,)
        operation = self.program.kernels[kernel].operation
        if self._kernel_left(name) is None:
            return (MADE_INSIDE.get((operation, own), own),)
        return (own,) if operation == own else (operation, own)

    def _kernel_left(self, name: str) -> int | None:
        """The kernel that a value is a result of; none of what several make for themselves."""
        if self.program.producers[name] in self.program.repeated:
            return None
        kernel = self.program.owner.get(self.program.producers[name])
        readers = self.program.consumers.get(name, ())
        if name in self.program.returned or any(
            self.program.owner.get(c) != kernel for c in readers
        ):
            return kernel
        return None

    def _main_operand(self, name: str, operands: Sequence[str]) -> str:
        """Of what a kernel or an operation reads, the value that was there first."""
        kernel = self._kernel_left(name)
        made = self.program.producers
        if kernel is not None:
            before = (n for n in self._boundaries[kernel] if made.get(n, -1) < made[name])
            operands = tuple(before) or operands
        return min(operands, key=lambda n: made.get(n, -1))

    def _taken_over(self, name: str, op: Operation, operands: Sequence[str]) -> Iterator[str]:
        """The name of a tensor on its way through the model, where nothing reads it any more."""
        i = self.program.producers[name]
        kernel = self._kernel_left(name)
        inside = {i} if kernel is None else {*self.program.kernels[kernel].members}
        first = self._main_operand(name, operands)
        read_later = (c for c in self.program.consumers.get(first, ()) if c >= i)
        if (
            kind(op) in _STREAM
            and self.program.spec(first).floating
            and self.of(first) in GENERIC
            and inside.issuperset(read_later)
        ):
            yield self.of(first)

    @cached_property
    def _boundaries(self) -> list[tuple[str, ...]]:
        """What each kernel reads."""
        return [interface(self.program, k.members).inputs for k in self.program.kernels]

    def _reading_roles(self) -> dict[str, str]:
        """Names by what reads a value, also a view of it."""
        roles: dict[str, str] = {}
        for kernel, inputs in zip(self.program.kernels, self._boundaries, strict=True):
            if kernel.operation.endswith("attention"):
                roles |= self._operands_of_products(kernel.members)
                roles |= self._of_attention(kernel.members, inputs) if len(inputs) > 2 else {}
        for i in reversed(range(len(self.program.graph.operations))):
            self._read_by(i, roles)
        return roles

    def _read_by(self, i: int, roles: dict[str, str]) -> None:
        """Enter what an operation calls the values that it reads."""
        op = self.program.graph.operations[i]
        kernel = self.program.owner.get(i)
        names = READ_AS.get(op.name, ())
        if kernel is not None:
            names = IN_KERNEL.get((self.program.kernels[kernel].operation, op.name), names)
            if self.program.kernels[kernel].operation in GATED and op.name == "mul":
                names = self._of_gate(op)
        arguments = op.args[0] if op.args and isinstance(op.args[0], tuple) else op.args
        for argument, name in zip(arguments, names, strict=False):
            if isinstance(argument, Ref) and name:
                roles[argument.name] = name
        role = roles.get(op.outputs[0]) if len(op.outputs) == 1 else ""
        if role == "gate" and op.name in ACTIVATIONS:
            roles.setdefault(next(op.refs()), "gate")
        if role and (op.view or (role in _PACKED and _keeps(op))):
            source = next(op.refs())
            before = roles.setdefault(source, role)
            if before != role:
                roles[source] = "qkv" if {before, role} <= _PACKED else ""

    def _of_gate(self, op: Operation) -> tuple[str, ...]:
        """Which factor of a gated activation went through the activation."""
        made = [self._maker(argument.name) for argument in op.args if isinstance(argument, Ref)]
        gates = [m is not None and m.name in ACTIVATIONS | {"sigmoid", "tanh"} for m in made]
        return tuple("gate" if gate else "up" for gate in gates) if sum(gates) == 1 else ()

    # --- parameters -------------------------------------------------------------------------------

    def parameters(self, part: Part) -> tuple[str, ...]:
        """Names of the parameters of a component's forward, by what they are to the component."""
        inputs = part.io.inputs
        if len(part.operations) == len(self.program.graph.operations):  # the model itself
            return _distinct([self.of(value) for value in inputs])
        own, operations = self._operands(part), self.program.graph.operations
        roles: dict[str, str] = {}
        for i in reversed(part.operations):
            self._read_by(i, roles)
        modules = {attribute(scope.path) for i in part.operations for scope in operations[i].scopes}
        names = []
        for place, value in enumerate(inputs):
            name = own.get(value) or self._seen_through_views(value, part) or roles.get(value)
            if not name or name in modules or (name in GENERIC and len(inputs) == 1):
                of_its_own = place > 0 and self.of(value) not in GENERIC
                name = self.of(value) if of_its_own else "x"
            names.append(name)
        if (
            len(inputs) == 1
            and names[0] == self._result_of(part)
            and inputs[0] not in self._assigned
        ):
            names = ["x"]
        if len(inputs) == 2 and len({*names}) == 1 and (residual := self._residual(part)):
            names[inputs.index(residual)] = "residual"
        unnamed = [self.of(value) for value, name in zip(inputs, names, strict=True) if name == "x"]
        if len(unnamed) == len({*unnamed} - ({*names} - {"x"})) > 1:
            names = [unnamed.pop(0) if name == "x" else name for name in names]
        for place, value in enumerate(inputs):  # `x_t` beside the `x` that it is a part of
            if names.count(names[place]) > 1 and self._viewed(value) in inputs:
                names[place] = names[place] if self._viewed(value) == value else self.of(value)
        if len({*names}) < len(names) and (joined := self.joined(part)):
            names = [f"{joined}_{place}" for place in range(1, len(names) + 1)]
        return _distinct(names)

    def _result_of(self, part: Part) -> str:
        """The author's variable for what a part gives, where it is one tensor of numbers."""
        results = [name for name in part.io.outputs if self.program.spec(name).floating]
        return self.authors.get(results[0], "") if len(results) == 1 else ""

    def joined(self, part: Part) -> str:
        """The author's list whose tensors a kernel joins, if that is all that it does."""
        operations = [self.program.graph.operations[i] for i in part.operations]
        op = operations[0] if len(operations) == 1 else None
        if op is None or op.origin is None or op.name not in JOINS:
            return ""
        if tuple(op.refs()) != part.io.inputs:
            return ""
        return identifier(op.origin.joined_list) if op.origin.joined_list else ""

    def _operands(self, part: Part) -> dict[str, str]:
        """The names of what a kernel reads, where its field has some for that."""
        if part.kernel is None:
            return {}
        operation, inputs = part.kernel.operation, part.io.inputs
        if operation.endswith("attention") and len(inputs) > 2:
            return self._of_attention(part.operations, inputs)
        if operation == "rope":
            return self._of_rotation(part)
        known = [self._seen_through_views(value, part) for value in inputs]
        if all(known) and len({*known}) == len(known):
            return {}
        if operation == "add" and len(inputs) == 2:
            nearest = self._nearest(inputs)
            if len({self.program.spec(n).shape for n in inputs}) > 1:
                return dict(zip(inputs, ("x", "other"), strict=True))
            return {inputs[nearest]: "residual", inputs[1 - nearest]: "x"}
        names = OPERANDS.get(operation, ())
        return dict(zip(inputs, names, strict=True)) if len(names) == len(inputs) else {}

    def _of_attention(self, members: Sequence[int], inputs: Sequence[str]) -> dict[str, str]:
        """query and key are what is multiplied first, value what is multiplied last."""
        operations = [self.program.graph.operations[i] for i in members]
        products = [op for op in operations if kind(op) == "contraction"]
        if len(products) < 2:
            return {}
        sources = [self._source(n, inputs) for n in products[0].refs()]
        names = dict(zip(filter(None, sources), ("query", "key"), strict=False))
        for source in (self._source(n, inputs, views=True) for n in products[-1].refs()):
            if source is not None:
                names.setdefault(source, "value")
        return names

    def _operands_of_products(self, members: Sequence[int]) -> dict[str, str]:
        """The same for what is multiplied, whatever it was made from, and names of the products."""
        operations = [self.program.graph.operations[i] for i in members]
        products = [op for op in operations if kind(op) == "contraction"]
        if len(products) < 2:
            return {}
        names = dict(zip(products[0].refs(), ("query", "key"), strict=False))
        names |= {products[0].outputs[0]: "scores", products[-1].outputs[0]: "attended"}
        made = {
            name for op in operations if op not in products for name in op.outputs if not op.view
        }
        for name in products[-1].refs():
            if self._viewed(name) not in made:
                names.setdefault(name, "value")
        return names

    def _source(self, name: str, inputs: Sequence[str], *, views: bool = False) -> str | None:
        """The input that a value is a form of, or a view of."""
        while name not in inputs:
            op = self._maker(name)
            if op is None or not (op.view or (op.name in POINTWISE | _KEEPS and not views)):
                return None
            name = next(op.refs())
        return name

    def _of_rotation(self, part: Part) -> dict[str, str]:
        """A rotation turns what has the shape of a result, by a table that is smaller."""
        sizes = {self.program.spec(n).numel for n in part.io.outputs}
        turned = [n for n in part.io.inputs if self.program.spec(n).numel in sizes]
        names = ("query", "key") if len(turned) == 2 else ("x",)
        return dict(zip(turned, names, strict=False))

    def _residual(self, part: Part) -> str | None:
        """The input that is added as it came in; of two, the one that was there first."""
        adds = (self.program.graph.operations[i] for i in part.operations)
        added = [n for op in adds if op.name == "add" for n in op.refs() if n in part.io.inputs]
        return added[self._nearest(added)] if added else None

    def _nearest(self, inputs: Sequence[str]) -> int:
        """Return which of several values has the fewest operations that lead to it alone."""
        above = [self._above(name) for name in inputs]

        def own_operations(place: int) -> tuple[int, int]:
            others = set().union(*(above[k] for k in range(len(inputs)) if k != place))
            return len(above[place] - others), self.program.producers.get(inputs[place], -1)

        return min(range(len(inputs)), key=own_operations)

    def _above(self, name: str) -> set[int]:
        """The operations that lead to a value."""
        found: set[int] = set()
        waiting = [name]
        while waiting:
            i = self.program.producers.get(waiting.pop())
            if i is not None and i not in found:
                found.add(i)
                waiting += self.program.graph.operations[i].refs()
        return found

    def _viewed(self, name: str) -> str:
        """What a value is a view of; the value itself where it is none."""
        while (op := self._maker(name)) is not None and op.view:
            name = next(op.refs())
        return name

    def _seen_through_views(self, name: str, part: Part) -> str | None:
        """The author's name, around a part, of a value or of what it is a view of."""
        while (variable := self.seen_from(name, part.scopes)) is None:
            op = self._maker(name)
            if op is None or not op.view:
                return None
            name = next(op.refs())
        return variable


def _keeps(op: Operation) -> bool:
    """Whether a result is the same thing as what an operation reads, or that scaled by a number."""
    return op.view or op.name in _KEEPS or (op.name in _SCALES and len([*op.refs()]) == 1)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names; equal ones are told apart: `first`, `second`, or `feature_1`, `feature_2`."""
    counts = Counter(names)
    used: Counter[str] = Counter()
    distinct: list[str] = []
    for name in names:
        used[name] += 1
        if counts[name] > 1:
            in_order = name in GENERIC and counts[name] <= len(ORDINALS)
            stem = "part" if name in GENERIC else name
            name = ORDINALS[used[name] - 1] if in_order else f"{stem}_{used[name]}"
        distinct.append(unique(name, {*distinct, *RESERVED}))
    return tuple(distinct)
