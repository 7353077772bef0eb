"""Names the values of a program: by the author's variables, else by their meaning."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import cached_property

from runner.emit.naming.author_variables import (
    Variable,
    author_scopes,
    extend_through_forms,
    find_author_variables,
)
from runner.emit.naming.name_tables import (
    ARGUMENT_NAMES,
    GATED_KERNELS,
    GENERIC_NAMES,
    KERNEL_ARGUMENT_NAMES,
    KERNEL_PARAMETER_NAMES,
    ORDINALS,
    OUTPUT_NAMES,
    PREFIXED_OPERATIONS,
    RESULT_NAMES,
    RESULT_OPERATIONS,
    SPECIFIC_RESULT_NAMES,
)
from runner.graph.ir import Operation, Ref, Scope
from runner.graph.operations import ACTIVATIONS, POINTWISE, field_name, kind
from runner.graph.terms import snake_case
from runner.tree.interface import Program, interface
from runner.tree.part import Part
from runner.tree.part_names import attribute

RESERVED = {
    *("self", "torch", "nn", "F", "math", "Model", "forward", "training", "tensors"),
    *keyword.kwlist,
}
"""Names that no value has: Python's, those of emitted files, and a function of a composition."""
_BUILTIN = set(dir(builtins))
_ALLOWED_BUILTINS = {
    "input", "hash", "id", "type", "iter", "vars", "dir", "copyright", "credits", "license", "exit",
    "quit", "help",
}  # fmt: skip
"""Builtin names that authors use for tensors and that emitted code does not call."""


def identifier(text: str) -> str:
    """Return a Python name made from any text: `layers.0.attn` -> `layers_0_attn`."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "value"
    if name[0].isdigit():
        name = f"m{name}"
    return f"{name}_" if name in RESERVED | _BUILTIN - _ALLOWED_BUILTINS else name


def make_unique(name: str, taken_names: Container[str], separator: str = "_") -> str:
    """Return the name, with a number behind `separator` if it is taken."""
    if name not in taken_names:
        return name
    count = 2
    while f"{name}{separator}{count}" in taken_names:
        count += 1
    return f"{name}{separator}{count}"


def camel_case(stem: str) -> str:
    """Return a class name for a stem: `linear_768x3072_fp32` -> `Linear768x3072Fp32`."""
    text = ""
    for piece in filter(None, re.split(r"[^0-9A-Za-z]+", stem)):
        separator = "_" if text[-1:].isdigit() and piece[0].isdigit() else ""
        text += separator + piece[0].upper() + piece[1:]
    return text if text[:1].isalpha() else f"Model{text}"


def relative_path(path: str, base: str) -> str:
    """Return a module's path relative to another's: `conv1` for `layer1.0.conv1` in `layer1.0`.

    '' if both are the same, the path itself if it is not inside `base`.
    """
    if base and path == base:
        return ""
    return path[len(base) + 1 :] if base and path.startswith(base + ".") else path


_INHERITING_KINDS = {
    "contraction",
    "pointwise",
    "normalization",
    "pooling",
    "view",
    "copy",
    "other",
}
"""Kinds of operations whose result may take over the name of their input: `x = self.conv(x)`."""
_PACKED_ROLES = {"query", "key", "value", "qkv"}
"""Roles of operands of an attention that one tensor may hold together."""
_KEEPING_OPERATORS = {
    "contiguous",
    "clone",
    "reshape",
    "flatten",
    "to",
    "_to_copy",
    "type_as",
    "dropout",
}
"""Operators whose result means the same as their input."""
_RESCALING_OPERATORS = {"exp", "log"}
"""Operators whose result must not take the name of a parameter such as `A_log`."""
JOINS = {"cat", "concat", "concatenate", "stack"}
"""Operators that make one tensor of a list."""
_SCALING_OPERATORS = {"add", "sub", "mul", "div", "neg"}
"""Operators that only scale or shift a tensor if their other operand is a number."""


def child_names(part: Part) -> dict[int, str]:
    """Return attribute names for a parent's children, by the id() of each child.

    A name is the child's path in the author's modules below the parent's, its own name, or both.
    """
    names: dict[int, str] = {}
    taken_names: set[str] = set()
    paths = [_path_below(child, part) for child in part.children]
    lists = Counter(_list_prefix(path) for path in paths if path[-1:].isdigit())
    for child, path in zip(part.children, paths, strict=True):
        if _is_module(child) and path[-1:].isdigit() and child.name != path:
            preferred = path if lists[_list_prefix(path)] > 1 else child.name
        elif child.name == attribute(child.module_path) or f"_{path}".endswith(f"_{child.name}"):
            preferred = path or child.name
        else:
            preferred = f"{path}_{child.name}" if path else child.name
        names[id(child)] = make_unique(preferred, taken_names)
        taken_names.add(names[id(child)])
    return names


def _path_below(child: Part, part: Part) -> str:
    """Return `layers_0` for `blocks.2.layers.0` in `blocks.2`; '' for bare numbers."""
    path = relative_path(child.module_path, part.module_path)
    return "" if path.replace(".", "").isdigit() else identifier(path) if path else ""


def _list_prefix(path: str) -> str:
    """Return the name without the numbers at its end: `stages` for `stages_1_0`."""
    return re.sub(r"(_\d+)+$", "", path)


def _is_module(part: Part) -> bool:
    """Return whether a part has the name of the author's class."""
    return bool(part.scopes) and part.name == snake_case(part.scopes[-1].cls)


class Namer:
    """Names each value of a program, and the parameters of components by their role there."""

    def __init__(self, program: Program) -> None:
        self.program = program
        arguments: dict[str, list[Variable]] = {
            i.name: [((), i.argument)] for i in program.graph.inputs
        }
        self._assigned = find_author_variables(program) | arguments
        self._variables = extend_through_forms(program, self._assigned)
        self.author_names = {n: identifier(v[0][1]) for n, v in self._variables.items()}
        self._roles = self._find_roles()
        self._candidate_names: dict[str, tuple[str, ...]] = {}
        for op in program.graph.operations:
            for name in filter(None, op.outputs):
                self._candidate_names[name] = tuple(dict.fromkeys(self._candidates(name, op)))

    def candidate_names(self, name: str) -> Sequence[str]:
        """Return candidate names for a value, the best first."""
        return self._candidate_names.get(name) or (self.name_of(name),)

    def author_variable(self, name: str, scopes: tuple[Scope, ...]) -> str | None:
        """Return the author's variable for a value in a call of a module, None if there is none.

        `scopes` are the module calls that lead there; a variable of any of these counts.
        """
        modules_around = author_scopes(scopes)
        for modules, variable in self._variables.get(name, ()):
            if modules_around[: len(modules)] == modules:
                return identifier(variable)
        return None

    def name_of(self, name: str) -> str:
        """Return the best name of a value, whether it is free or not."""
        if name in self.author_names:
            return self.author_names[name]
        if name in self._candidate_names:
            return self._candidate_names[name][0]
        return identifier(self.program.graph.states[name].path.rpartition(".")[2])

    def result_name(self, name: str) -> str:
        """Return a component's name for an output: the author's, else torch's, else ''.

        Torch has names for the results of operations with several, such as `values`, `indices`.
        """
        if name in self.author_names:
            return self.author_names[name]
        op = self._producer(name)
        if op is None or op.name not in OUTPUT_NAMES or len(op.outputs) == 1:
            return ""
        return OUTPUT_NAMES[op.name][op.outputs.index(name)]

    # --- values -----------------------------------------------------------------------------------

    def _producer(self, name: str) -> Operation | None:
        i = self.program.producers.get(name)
        return None if i is None else self.program.graph.operations[i]

    def _candidates(self, name: str, op: Operation) -> Iterator[str]:
        if name in self.author_names:
            yield self.author_names[name]
        if len(op.outputs) > 1 or op.returns_list:
            yield from self._output_candidates(name, op)
            return
        if role := self._roles.get(name):
            yield role
        operation_names = self._operation_names(name, op)
        for operation in reversed(operation_names):
            if operation in SPECIFIC_RESULT_NAMES:
                yield SPECIFIC_RESULT_NAMES[operation]
        if self.program.spec(name).dtype == "bool":
            yield "mask"
        operands = [n for n in op.refs() if not self.program.is_state(n)]
        if operands:
            yield from self._inherited_names(name, op, operands)
        elif (state := next(op.refs(), None)) is not None and op.name not in _RESCALING_OPERATORS:
            yield self.name_of(state)
        if operation_names[0] in PREFIXED_OPERATIONS and operands:
            main = self.name_of(self._main_operand(name, operands))
            yield (
                RESULT_NAMES[operation_names[0]]
                if main in GENERIC_NAMES
                else f"{main}_{RESULT_NAMES[operation_names[0]]}"
            )
        if len(operation_names) > 1 and operation_names[0] in RESULT_NAMES:
            yield RESULT_NAMES[operation_names[0]]
        if op.name == "select" and operands and self.name_of(operands[0]) in GENERIC_NAMES:
            yield f"{self.name_of(operands[0])}_t"
        if len(operands) == 1 and (_keeps_meaning(op) or operation_names[-1] not in RESULT_NAMES):
            yield self.name_of(operands[0])
        if operation_names[-1] in RESULT_NAMES:
            yield RESULT_NAMES[operation_names[-1]]
        base = self._view_base(name)
        is_smaller = self.program.spec(name).numel < self.program.spec(base).numel
        if is_smaller and self.name_of(base) not in GENERIC_NAMES:
            yield f"{self.name_of(base)}_part"
        yield from ("hidden", "output") if self.program.spec(name).floating else ("indices",)

    def _output_candidates(self, name: str, op: Operation) -> Iterator[str]:
        if role := self._roles.get(name):
            yield role
        position = op.outputs.index(name)
        if op.name in OUTPUT_NAMES:
            yield OUTPUT_NAMES[op.name][position]
        elif len(op.outputs) <= len(ORDINALS):
            yield ORDINALS[position]
        else:
            yield f"part_{position + 1}"

    def _operation_names(self, name: str, op: Operation) -> tuple[str, ...]:
        """Return the operations that a value is the result of: its kernel, then its operator.

        The kernel's counts only if something outside of the kernel reads the value.
        """
        operator = field_name(op)
        kernel = self.program.owner.get(self.program.producers[name])
        if kernel is None:
            return (operator,)
        operation = self.program.kernels[kernel].operation
        if self._kernel_of_result(name) is None:
            return (RESULT_OPERATIONS.get((operation, operator), operator),)
        return (operator,) if operation == operator else (operation, operator)

    def _kernel_of_result(self, name: str) -> int | None:
        """Return the index of the kernel that a value is a result of; None if it is none.

        A value that is read only inside its kernel is no result, nor is one that several kernels
        compute for themselves.
        """
        if self.program.producers[name] in self.program.repeated_views:
            return None
        kernel = self.program.owner.get(self.program.producers[name])
        readers = self.program.consumers.get(name, ())
        if name in self.program.returned_values or any(
            self.program.owner.get(c) != kernel for c in readers
        ):
            return kernel
        return None

    def _main_operand(self, name: str, operands: Sequence[str]) -> str:
        """Return the value that was made first of those that a kernel or an operation reads."""
        kernel = self._kernel_of_result(name)
        producers = self.program.producers
        if kernel is not None:
            earlier = (
                n for n in self._kernel_inputs[kernel] if producers.get(n, -1) < producers[name]
            )
            operands = tuple(earlier) or operands
        return min(operands, key=lambda n: producers.get(n, -1))

    def _inherited_names(self, name: str, op: Operation, operands: Sequence[str]) -> Iterator[str]:
        """Yield the generic name of the main operand, if nothing later reads that operand."""
        i = self.program.producers[name]
        kernel = self._kernel_of_result(name)
        members = {i} if kernel is None else {*self.program.kernels[kernel].members}
        operand = self._main_operand(name, operands)
        later_readers = (c for c in self.program.consumers.get(operand, ()) if c >= i)
        if (
            kind(op) in _INHERITING_KINDS
            and self.program.spec(operand).floating
            and self.name_of(operand) in GENERIC_NAMES
            and members.issuperset(later_readers)
        ):
            yield self.name_of(operand)

    @cached_property
    def _kernel_inputs(self) -> list[tuple[str, ...]]:
        """The values that each kernel reads."""
        return [interface(self.program, k.members).inputs for k in self.program.kernels]

    def _find_roles(self) -> dict[str, str]:
        """Return names of values by the operations that read them, or a view of them."""
        roles: dict[str, str] = {}
        for kernel, inputs in zip(self.program.kernels, self._kernel_inputs, strict=True):
            if kernel.operation.endswith("attention"):
                roles |= self._product_roles(kernel.members)
                roles |= self._attention_roles(kernel.members, inputs) if len(inputs) > 2 else {}
        for i in reversed(range(len(self.program.graph.operations))):
            self._enter_roles(i, roles)
        return roles

    def _enter_roles(self, i: int, roles: dict[str, str]) -> None:
        """Enter the names that an operation gives to the values that it reads into `roles`."""
        op = self.program.graph.operations[i]
        kernel = self.program.owner.get(i)
        names = ARGUMENT_NAMES.get(op.name, ())
        if kernel is not None:
            names = KERNEL_ARGUMENT_NAMES.get(
                (self.program.kernels[kernel].operation, op.name), names
            )
            if self.program.kernels[kernel].operation in GATED_KERNELS and op.name == "mul":
                names = self._gate_roles(op)
        arguments = op.args[0] if op.args and isinstance(op.args[0], tuple) else op.args
        for argument, name in zip(arguments, names, strict=False):
            if isinstance(argument, Ref) and name:
                roles[argument.name] = name
        role = roles.get(op.outputs[0]) if len(op.outputs) == 1 else ""
        if role == "gate" and op.name in ACTIVATIONS:
            roles.setdefault(next(op.refs()), "gate")
        if role and (op.view or (role in _PACKED_ROLES and _keeps_meaning(op))):
            source = next(op.refs())
            earlier_role = roles.setdefault(source, role)
            if earlier_role != role:
                roles[source] = "qkv" if {earlier_role, role} <= _PACKED_ROLES else ""

    def _gate_roles(self, op: Operation) -> tuple[str, ...]:
        """Return `gate` for the factor that went through an activation and `up` for the other.

        Empty if not exactly one of them did.
        """
        producers = [
            self._producer(argument.name) for argument in op.args if isinstance(argument, Ref)
        ]
        gates = [m is not None and m.name in ACTIVATIONS | {"sigmoid", "tanh"} for m in producers]
        return tuple("gate" if gate else "up" for gate in gates) if sum(gates) == 1 else ()

    # --- parameters -------------------------------------------------------------------------------

    def parameter_names(self, part: Part) -> tuple[str, ...]:
        """Return names of the parameters of a component's forward, by their role there."""
        inputs = part.io.inputs
        if len(part.operations) == len(self.program.graph.operations):  # the model itself
            return _make_distinct([self.name_of(value) for value in inputs])
        parameter_roles, operations = self._parameter_roles(part), self.program.graph.operations
        roles: dict[str, str] = {}
        for i in reversed(part.operations):
            self._enter_roles(i, roles)
        modules = {attribute(scope.path) for i in part.operations for scope in operations[i].scopes}
        names = []
        for position, value in enumerate(inputs):
            name = (
                parameter_roles.get(value)
                or self._author_variable_through_views(value, part)
                or roles.get(value)
            )
            if not name or name in modules or (name in GENERIC_NAMES and len(inputs) == 1):
                has_own_name = position > 0 and self.name_of(value) not in GENERIC_NAMES
                name = self.name_of(value) if has_own_name else "x"
            names.append(name)
        if (
            len(inputs) == 1
            and names[0] == self._only_output_name(part)
            and inputs[0] not in self._assigned
        ):
            names = ["x"]
        if len(inputs) == 2 and len({*names}) == 1 and (residual := self._residual_input(part)):
            names[inputs.index(residual)] = "residual"
        names_for_x = [
            self.name_of(value) for value, name in zip(inputs, names, strict=True) if name == "x"
        ]
        if len(names_for_x) == len({*names_for_x} - ({*names} - {"x"})) > 1:
            names = [names_for_x.pop(0) if name == "x" else name for name in names]
        for position, value in enumerate(inputs):  # `x_t` beside the `x` that it is a part of
            if names.count(names[position]) > 1 and self._view_base(value) in inputs:
                names[position] = (
                    names[position] if self._view_base(value) == value else self.name_of(value)
                )
        if len({*names}) < len(names) and (list_name := self.joined_list(part)):
            names = [f"{list_name}_{position}" for position in range(1, len(names) + 1)]
        return _make_distinct(names)

    def _only_output_name(self, part: Part) -> str:
        """Return the author's variable for a part's only floating-point output, else ''."""
        results = [name for name in part.io.outputs if self.program.spec(name).floating]
        return self.author_names.get(results[0], "") if len(results) == 1 else ""

    def joined_list(self, part: Part) -> str:
        """Return the author's list whose tensors a part joins; '' if it does anything else."""
        operations = [self.program.graph.operations[i] for i in part.operations]
        op = operations[0] if len(operations) == 1 else None
        if op is None or op.origin is None or op.name not in JOINS:
            return ""
        if tuple(op.refs()) != part.io.inputs:
            return ""
        return identifier(op.origin.joined_list) if op.origin.joined_list else ""

    def _parameter_roles(self, part: Part) -> dict[str, str]:
        """Return the field's own names for the inputs of a kernel; empty if there are none."""
        if part.kernel is None:
            return {}
        operation, inputs = part.kernel.operation, part.io.inputs
        if operation.endswith("attention") and len(inputs) > 2:
            return self._attention_roles(part.operations, inputs)
        if operation == "rope":
            return self._rotation_roles(part)
        variables = [self._author_variable_through_views(value, part) for value in inputs]
        if all(variables) and len({*variables}) == len(variables):
            return {}
        if operation == "add" and len(inputs) == 2:
            residual = self._least_computed(inputs)
            if len({self.program.spec(n).shape for n in inputs}) > 1:
                return dict(zip(inputs, ("x", "other"), strict=True))
            return {inputs[residual]: "residual", inputs[1 - residual]: "x"}
        names = KERNEL_PARAMETER_NAMES.get(operation, ())
        return dict(zip(inputs, names, strict=True)) if len(names) == len(inputs) else {}

    def _attention_roles(self, members: Sequence[int], inputs: Sequence[str]) -> dict[str, str]:
        """Return the roles of an attention's inputs.

        Query and key are the operands of the first product, value is the other one of the last.
        """
        operations = [self.program.graph.operations[i] for i in members]
        products = [op for op in operations if kind(op) == "contraction"]
        if len(products) < 2:
            return {}
        sources = [self._source_input(n, inputs) for n in products[0].refs()]
        names = dict(zip(filter(None, sources), ("query", "key"), strict=False))
        for source in (self._source_input(n, inputs, views=True) for n in products[-1].refs()):
            if source is not None:
                names.setdefault(source, "value")
        return names

    def _product_roles(self, members: Sequence[int]) -> dict[str, str]:
        """Return the roles of the values that an attention multiplies, and of its products."""
        operations = [self.program.graph.operations[i] for i in members]
        products = [op for op in operations if kind(op) == "contraction"]
        if len(products) < 2:
            return {}
        names = dict(zip(products[0].refs(), ("query", "key"), strict=False))
        names |= {products[0].outputs[0]: "scores", products[-1].outputs[0]: "attended"}
        computed = {
            name for op in operations if op not in products for name in op.outputs if not op.view
        }
        for name in products[-1].refs():
            if self._view_base(name) not in computed:
                names.setdefault(name, "value")
        return names

    def _source_input(self, name: str, inputs: Sequence[str], *, views: bool = False) -> str | None:
        """Return the input from which views or elementwise operations made a value, else None.

        With `views`, only views count.
        """
        while name not in inputs:
            op = self._producer(name)
            if op is None or not (
                op.view or (op.name in POINTWISE | _KEEPING_OPERATORS and not views)
            ):
                return None
            name = next(op.refs())
        return name

    def _rotation_roles(self, part: Part) -> dict[str, str]:
        """Return the roles of a rotation's inputs; a rotated one has the size of an output."""
        sizes = {self.program.spec(n).numel for n in part.io.outputs}
        rotated = [n for n in part.io.inputs if self.program.spec(n).numel in sizes]
        names = ("query", "key") if len(rotated) == 2 else ("x",)
        return dict(zip(rotated, names, strict=False))

    def _residual_input(self, part: Part) -> str | None:
        """Return the input that a part adds unchanged, else None.

        Of several, it is the one that `_least_computed` chooses.
        """
        additions = (self.program.graph.operations[i] for i in part.operations)
        addends = [
            n for op in additions if op.name == "add" for n in op.refs() if n in part.io.inputs
        ]
        return addends[self._least_computed(addends)] if addends else None

    def _least_computed(self, inputs: Sequence[str]) -> int:
        """Return the position of the value with the fewest operations that lead to it alone."""
        ancestors = [self._ancestors(name) for name in inputs]

        def own_operations(place: int) -> tuple[int, int]:
            shared = set().union(*(ancestors[k] for k in range(len(inputs)) if k != place))
            return len(ancestors[place] - shared), self.program.producers.get(inputs[place], -1)

        return min(range(len(inputs)), key=own_operations)

    def _ancestors(self, name: str) -> set[int]:
        """Return the operations that lead to a value."""
        ancestors: set[int] = set()
        waiting = [name]
        while waiting:
            i = self.program.producers.get(waiting.pop())
            if i is not None and i not in ancestors:
                ancestors.add(i)
                waiting += self.program.graph.operations[i].refs()
        return ancestors

    def _view_base(self, name: str) -> str:
        """Return the value that a value is a view of; the value itself if it is no view."""
        while (op := self._producer(name)) is not None and op.view:
            name = next(op.refs())
        return name

    def _author_variable_through_views(self, name: str, part: Part) -> str | None:
        """Return the author's variable around a part for a value or for what it is a view of."""
        while (variable := self.author_variable(name, part.scopes)) is None:
            op = self._producer(name)
            if op is None or not op.view:
                return None
            name = next(op.refs())
        return variable


def _keeps_meaning(op: Operation) -> bool:
    """Return whether a result means the same as the operation's input, perhaps scaled."""
    return (
        op.view
        or op.name in _KEEPING_OPERATORS
        or (op.name in _SCALING_OPERATORS and len([*op.refs()]) == 1)
    )


def _make_distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with equal ones made distinct.

    Generic ones become `first`, `second`; others become `feature_1`, `feature_2`.
    """
    counts = Counter(names)
    numbers: Counter[str] = Counter()
    distinct: list[str] = []
    for name in names:
        numbers[name] += 1
        if counts[name] > 1:
            is_ordinal = name in GENERIC_NAMES and counts[name] <= len(ORDINALS)
            stem = "part" if name in GENERIC_NAMES else name
            name = ORDINALS[numbers[name] - 1] if is_ordinal else f"{stem}_{numbers[name]}"
        distinct.append(make_unique(name, {*distinct, *RESERVED}))
    return tuple(distinct)
