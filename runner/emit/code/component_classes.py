"""Writes the classes of a component file: one for each module inside it, inner ones first.

Equal modules share one class. Modules that differ only in numbers also share one, whose `__init__`
takes these numbers as arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from runner.emit.code.child_loops import strip_number
from runner.emit.code.class_body import ChildCall, ForwardItem
from runner.emit.code.class_writer import EmittedClass, class_text, write_class
from runner.emit.code.module_attributes import Weight
from runner.emit.code.number_arguments import Template, merge_variants
from runner.emit.naming.class_names import ENDS, Variant, distinguish_variants
from runner.emit.naming.constructor_names import author_number_names
from runner.emit.naming.value_names import (
    RESERVED,
    Namer,
    camel_case,
    child_names,
    identifier,
    make_unique,
)
from runner.emit.pages.outline import variant_words
from runner.graph.ir import Ref, substitute_operands
from runner.tree.interface import Program
from runner.tree.module_regions import is_container
from runner.tree.part import Part, schedule
from runner.tree.workload import Workload


@dataclass(frozen=True, slots=True)
class _ClassReference:
    """The class of a workload, with the arguments that construct this workload."""

    name: str
    """Temporary name of the class, such as `Block__0`."""
    arguments: str
    """Arguments of the constructor, as Python."""
    weights: tuple[Weight, ...]
    """Parameters and buffers of the class."""


@dataclass(frozen=True, slots=True)
class _ClassDefinition:
    """A class of the file, before its final name is chosen."""

    plain_name: str
    """Name of the class if no other class of the file has the same."""
    variant: Variant
    """All parts that are instances of the class."""
    emitted: EmittedClass
    """The class as written for its first workload."""
    template: Template
    """Statements of the class, with parameters for the numbers that differ."""
    number_names: Mapping[tuple[str, str], str]
    """The author's names for numbers, as `author_number_names` returns them."""


class ClassWriter:
    """Writes the classes of one component file; `texts` holds their sources, `Model` last."""

    def __init__(
        self, program: Program, namer: Namer, workload: Callable[[Part], Workload], root: Part
    ) -> None:
        self.program, self.namer, self.workload = program, namer, workload
        self._classes: dict[str, _ClassReference] = {}
        """Name of a workload -> its class."""
        self._definitions: dict[str, _ClassDefinition] = {}
        """Temporary name such as `Block__0` -> class."""
        self._instances: dict[str, list[Part]] = {}
        """Name of a workload -> its instances in this file."""
        parts_by_structure: dict[Hashable, list[Part]] = {}
        for part in self._inner_classes(root):
            parts_by_structure.setdefault(_structure_key(program, part), []).append(part)
            self._instances.setdefault(workload(part).name, []).append(part)
        for parts in parts_by_structure.values():
            by_workload = {workload(part).name: part for part in reversed(parts)}
            self._define_class(list(by_workload.values())[::-1])
        model = write_class(
            program, namer, "Model", root, self._forward_items(root, root), nested=True
        )
        calls = self._unite_classes()
        names = self._choose_names()
        constructor_calls = _ConstructorCalls(calls, names)
        self.texts = [
            _definition_text(
                names[name],
                constructor_calls.rename_in_template(definition.template),
                definition.emitted.signature,
            )
            for name, definition in self._definitions.items()
        ]
        init_lines, forward_lines = (
            constructor_calls.rename_calls(model.init_lines),
            constructor_calls.rename_calls(model.forward_lines),
        )
        self.model = replace(model, init_lines=init_lines, forward_lines=forward_lines)
        self.texts.append(class_text("Model", init_lines, model.signature, forward_lines))

    def _inner_classes(self, part: Part) -> Iterator[Part]:
        """Yield the parts inside that become classes, each after those inside it."""
        for child, _ in self._paired_children(part, part, part):
            if _is_class(self.program, child, part):
                yield from self._inner_classes(child)
                yield child

    def _paired_children(
        self, first: Part, part: Part, around: Part
    ) -> Iterator[tuple[Part, Part]]:
        """Yield the children of two parts of one structure, in pairs.

        A child that has children but becomes no class is replaced by its own children. `around` is
        the part that becomes the surrounding class.
        """
        for child, twin in zip(first.children, part.children, strict=True):
            if _is_class(self.program, child, around) or not child.children:
                yield child, twin
            else:
                yield from self._paired_children(child, twin, around)

    def _define_class(self, parts: list[Part]) -> None:
        """Write one class for parts of one structure, or one for each if too much differs."""
        first, *other_parts = parts
        base = self._write_variant(first, first)
        variants = [base, *(self._write_variant(first, part, base) for part in other_parts)]
        number_names = author_number_names(self.program, first)
        merged = merge_variants(
            [(variant.init_lines, variant.forward_lines) for variant in variants], number_names
        )
        if merged is None and other_parts:
            for part in parts:
                self._define_class([part])
            return
        plain_name = _class_name(self.program, first)
        name = f"{plain_name}__{len(self._definitions)}"
        workload_names = [self.workload(part).name for part in parts]
        instances = [
            part for workload_name in workload_names for part in self._instances[workload_name]
        ]
        variant = Variant(
            instances, [variant_words(workload_name).split() for workload_name in workload_names]
        )
        assert merged is not None
        self._definitions[name] = _ClassDefinition(plain_name, variant, base, merged, number_names)
        for position, (part, emitted) in enumerate(zip(parts, variants, strict=True)):
            arguments = merged.arguments(position)
            self._classes[self.workload(part).name] = _ClassReference(
                name, arguments, emitted.weights
            )

    def _write_variant(
        self, first: Part, part: Part, base: EmittedClass | None = None
    ) -> EmittedClass:
        """Return the class of `part`, written with the names of `first`.

        Values that `base` inlines are inlined here, too.
        """
        program = self.program if part is first else _substitute_numbers(self.program, first, part)
        inlined = base.inlined if base is not None else None
        items = self._forward_items(first, part)
        return write_class(program, self.namer, "", first, items, inlined=inlined, nested=True)

    def _forward_items(self, first: Part, part: Part) -> list[ForwardItem]:
        """Return the items of forward: operations, and calls of classes with `part`'s numbers."""
        pairs = list(self._paired_children(first, part, first))
        names = child_names(replace(first, children=tuple(child for child, _ in pairs)))
        calls: dict[int, ChildCall] = {}
        loose_operations: set[int] = set()
        for child, twin in pairs:
            if not _is_class(self.program, child, first):
                loose_operations.update(child.operations)
                continue
            cls = self._classes[self.workload(twin).name]
            call = ChildCall(child, names[id(child)], cls.name, cls.weights, cls.arguments)
            calls[id(child)] = call
        called_children = [child for child, _ in pairs if id(child) in calls]
        inner_operations = {i for child in called_children for i in child.operations}
        units = schedule(
            self.program,
            called_children,
            loose_operations | (set(first.operations) - inner_operations),
        )
        return [calls[id(unit)] if isinstance(unit, Part) else unit for unit in units]

    def _unite_classes(self) -> dict[str, str]:
        """Merge classes that turn out to differ only in numbers: `DenseBlock(count=6)`.

        Return the new constructor call of each merged class, by its temporary name.
        """
        calls: dict[str, str] = {}
        plain_names = dict.fromkeys(
            definition.plain_name for definition in self._definitions.values()
        )
        for plain_name in plain_names:
            definitions = {
                name: replace(
                    definition,
                    template=_ConstructorCalls(calls, {}).rename_in_template(definition.template),
                )
                for name, definition in self._definitions.items()
                if definition.plain_name == plain_name and not definition.template.parameters
            }
            if (
                len({definition.emitted.signature for definition in definitions.values()}) != 1
                or len(definitions) == 1
            ):
                continue
            kept_name, first = next(iter(definitions.items()))
            texts = [
                (definition.template.init_lines, definition.template.forward_lines)
                for definition in definitions.values()
            ]
            merged = merge_variants(texts, first.number_names)
            if merged is None:
                continue
            variant = Variant(
                [part for definition in definitions.values() for part in definition.variant.parts],
                [
                    words
                    for definition in definitions.values()
                    for words in definition.variant.words
                ],
            )
            for position, name in enumerate(definitions):
                calls[name] = f"{kept_name}({merged.arguments(position)})"
                if name != kept_name:
                    del self._definitions[name]
            self._definitions[kept_name] = replace(first, variant=variant, template=merged)
        return calls

    def _choose_names(self) -> dict[str, str]:
        """Return the final names of all classes, by their temporary ones.

        Classes that share the author's name get words that distinguish them.
        """
        names_by_plain_name: dict[str, list[str]] = {}
        for name, definition in self._definitions.items():
            names_by_plain_name.setdefault(definition.plain_name, []).append(name)
        names: dict[str, str] = {}
        for plain_name, names_of_class in names_by_plain_name.items():
            variant_words = distinguish_variants(
                [self._definitions[name].variant for name in names_of_class]
            )
            for name, words in zip(names_of_class, variant_words, strict=True):
                prefixes, suffixes = (
                    [w for w in words if w in ENDS],
                    [w for w in words if w not in ENDS],
                )
                preferred = camel_case("_".join([*prefixes, plain_name, *suffixes]))
                names[name] = make_unique(preferred, {*names.values(), *RESERVED}, separator="")
        return names


@dataclass(frozen=True, slots=True)
class _ConstructorCalls:
    """Replaces the temporary constructor calls in statements by the final ones."""

    calls: Mapping[str, str]
    """Temporary class name -> new constructor call, for classes that were merged."""
    names: Mapping[str, str]
    """Temporary class name -> final name."""

    def rename_calls(self, statements: Iterable[str]) -> tuple[str, ...]:
        """Return the statements with final constructor calls."""
        return tuple(_TEMPORARY_CALL.sub(self._replace_call, statement) for statement in statements)

    def rename_in_template(self, template: Template) -> Template:
        """Return the template with final constructor calls."""
        return replace(
            template,
            init_lines=self.rename_calls(template.init_lines),
            forward_lines=self.rename_calls(template.forward_lines),
        )

    def _replace_call(self, match: re.Match[str]) -> str:
        name, _, arguments = self.calls.get(match[1], f"{match[1]}({match[2] or ''}").partition("(")
        return f"{self.names.get(name, name)}({arguments}"


_TEMPORARY_CALL = re.compile(r"\b(\w+__\d+)\((\))?")
"""A call of a class by its temporary name, with the closing bracket if it has no arguments."""


def _definition_text(name: str, template: Template, signature: str) -> str:
    return class_text(
        name, template.init_lines, signature, template.forward_lines, template.parameters
    )


def _is_class(program: Program, part: Part, around: Part) -> bool:
    """Return whether a part becomes a class: it is a layer or one call of the author's module.

    Other fusions, and modules of one operation without weights, are written inline.
    """
    if part.level == "layer":
        return True
    views = [program.graph.operations[i].view for i in part.operations]
    is_single_operation = not part.children and views.count(False) == 1 and not part.io.states
    is_torch_module = not part.children and bool(part.scopes) and part.scopes[-1].builtin
    is_nested = part.scopes != around.scopes
    return is_nested and not is_single_operation and not is_torch_module and _is_call(program, part)


def _is_call(program: Program, part: Part) -> bool:
    """Return whether a part holds all kernels that one call of a module runs."""
    scopes = part.scopes
    inside = program.kernels_by_call[scopes]
    return bool(scopes) and inside == sum(1 for _ in part.kernels())


def _class_name(program: Program, part: Part) -> str:
    """Return the author's class name if a part is a call of one, else a name by its operations."""
    if _is_call(program, part) and not is_container(part.scopes[-1]):
        return identifier(part.scopes[-1].cls)
    return camel_case(strip_number(part.stem))


# --- parts that differ in numbers alone -----------------------------------------------------------


def _names_of_values(program: Program, part: Part) -> list[str]:
    """Return all values of a part, in an order that is the same for parts of one structure."""
    computed = (n for i in part.operations for n in program.graph.operations[i].outputs if n)
    return list(dict.fromkeys((*part.io.inputs, *part.io.states, *computed)))


def _structure_key(program: Program, part: Part) -> Hashable:
    """Return a key that is equal for parts whose graphs differ only in numbers."""
    numbers = {name: n for n, name in enumerate(_names_of_values(program, part))}
    positions = {i: p for p, i in enumerate(part.operations)}
    operations = [program.graph.operations[i] for i in part.operations]
    return (
        part.level,
        _class_name(program, part),
        tuple(
            (op.target, tuple(numbers[n] for n in op.refs()), tuple(map(numbers.get, op.outputs)))
            for op in operations
        ),
        (len(part.io.inputs), len(part.io.states)),
        tuple(numbers[n] for n in part.io.outputs),
        _children_structure(program, part, positions),
    )


def _children_structure(program: Program, part: Part, positions: dict[int, int]) -> Hashable:
    return tuple(
        (
            strip_number(child.stem),
            _class_name(program, child) if _is_class(program, child, part) else "",
            tuple(positions[i] for i in child.operations),
            _children_structure(program, child, positions),
        )
        for child in part.children
    )


def _substitute_numbers(program: Program, first: Part, part: Part) -> Program:
    """Return the program with the numbers of `part` put into `first`, which has its structure."""
    graph = program.graph
    part_values, first_values = (_names_of_values(program, side) for side in (part, first))
    names = dict(zip(part_values, first_values, strict=True))

    operations = list(graph.operations)
    for target_index, source_index in zip(first.operations, part.operations, strict=True):
        op = substitute_operands(graph.operations[source_index], lambda name: Ref(names[name]))
        operations[target_index] = replace(
            graph.operations[target_index], args=op.args, kwargs=op.kwargs
        )
    values = graph.values | {names[n]: graph.values[n] for n in part_values}
    states = graph.states | {
        names[n]: replace(graph.states[n], path=graph.states[names[n]].path) for n in part.io.states
    }
    changed = replace(graph, operations=tuple(operations), values=values, states=states)
    return Program(changed, program.kernels)
