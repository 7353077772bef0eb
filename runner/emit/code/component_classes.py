"""Writes the classes of a component file: one for each module inside it, inner ones first.

Equal modules are one class. Modules that differ in numbers alone are one class as well, whose
`__init__` takes these numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from runner.emit.code.child_loops import without_number
from runner.emit.code.class_body import Call, Item
from runner.emit.code.class_writer import Written, class_text, write_class
from runner.emit.code.module_attributes import Weight
from runner.emit.code.number_arguments import Template, template
from runner.emit.naming.class_names import ENDS, Variant, told_apart
from runner.emit.naming.constructor_names import written_numbers
from runner.emit.naming.value_names import RESERVED, Namer, camel, child_names, identifier, unique
from runner.emit.pages.outline import variant_words
from runner.graph.ir import Ref, substitute
from runner.tree.interface import Program
from runner.tree.module_regions import is_container
from runner.tree.part import Part, schedule
from runner.tree.workload import Workload


@dataclass(frozen=True, slots=True)
class _Class:
    """The class of a workload, as its users need it."""

    name: str
    arguments: str
    weights: tuple[Weight, ...]


@dataclass(frozen=True, slots=True)
class _Definition:
    """A class whose name is not chosen yet, with all parts that are of it."""

    plain: str
    """The name that it has where no other class would have that, too."""
    variant: Variant
    written: Written
    shared: Template
    told: Mapping[tuple[str, str], str]


class ClassWriter:
    """Writes the classes of one file."""

    def __init__(
        self, program: Program, namer: Namer, workload: Callable[[Part], Workload], root: Part
    ) -> None:
        self.program, self.namer, self.workload = program, namer, workload
        self._classes: dict[str, _Class] = {}
        """By the workload's name."""
        self._definitions: dict[str, _Definition] = {}
        """By a name that no other class has, such as `Block__0`."""
        self._instances: dict[str, list[Part]] = {}
        """By the workload's name."""
        alike: dict[Hashable, list[Part]] = {}
        for part in self._inner(root):
            alike.setdefault(_structure(program, part), []).append(part)
            self._instances.setdefault(workload(part).name, []).append(part)
        for parts in alike.values():
            by_workload = {workload(part).name: part for part in reversed(parts)}
            self._define(list(by_workload.values())[::-1])
        model = write_class(program, namer, "Model", root, self._items(root, root), nested=True)
        calls = self._unite()
        names = self._names()
        made_as = _Calls(calls, names)
        self.texts = [
            _text(names[name], made_as.in_template(each.shared), each.written.signature)
            for name, each in self._definitions.items()
        ]
        made, lines = made_as.renamed(model.made), made_as.renamed(model.lines)
        self.model = replace(model, made=made, lines=lines)
        self.texts.append(class_text("Model", made, model.signature, lines))

    def _inner(self, part: Part) -> Iterator[Part]:
        """The parts inside that are classes, each after those inside it."""
        for child, _ in self._pairs(part, part, part):
            if _is_class(self.program, child, part):
                yield from self._inner(child)
                yield child

    def _pairs(self, first: Part, part: Part, around: Part) -> Iterator[tuple[Part, Part]]:
        """The children of two parts of one structure; of those that are no classes, theirs."""
        for child, twin in zip(first.children, part.children, strict=True):
            if _is_class(self.program, child, around) or not child.children:
                yield child, twin
            else:
                yield from self._pairs(child, twin, around)

    def _define(self, parts: list[Part]) -> None:
        """Write a class for parts of one structure, or several where too much differs."""
        first, *others = parts
        base = self._written(first, first)
        variants = [base, *(self._written(first, part, base) for part in others)]
        told = written_numbers(self.program, first)
        shared = template([(variant.made, variant.lines) for variant in variants], told)
        if shared is None and others:
            for part in parts:
                self._define([part])
            return
        plain = _class_name(self.program, first)
        name = f"{plain}__{len(self._definitions)}"
        workloads = [self.workload(part).name for part in parts]
        instances = [part for each in workloads for part in self._instances[each]]
        variant = Variant(instances, [variant_words(each).split() for each in workloads])
        assert shared is not None
        self._definitions[name] = _Definition(plain, variant, base, shared, told)
        for place, (part, each) in enumerate(zip(parts, variants, strict=True)):
            arguments = shared.arguments(place)
            self._classes[self.workload(part).name] = _Class(name, arguments, each.weights)

    def _written(self, first: Part, part: Part, base: Written | None = None) -> Written:
        """The class of `part`, in the words of `first`."""
        program = self.program if part is first else _with_numbers(self.program, first, part)
        inlined = base.inlined if base is not None else None
        items = self._items(first, part)
        return write_class(program, self.namer, "", first, items, inlined=inlined, nested=True)

    def _items(self, first: Part, part: Part) -> list[Item]:
        """Return what forward runs: operations, and calls of classes with arguments for `part`."""
        pairs = list(self._pairs(first, part, first))
        names = child_names(replace(first, children=tuple(child for child, _ in pairs)))
        calls: dict[int, Call] = {}
        loose: set[int] = set()
        for child, twin in pairs:
            if not _is_class(self.program, child, first):
                loose.update(child.operations)
                continue
            cls = self._classes[self.workload(twin).name]
            call = Call(child, names[id(child)], cls.name, cls.weights, cls.arguments)
            calls[id(child)] = call
        called = [child for child, _ in pairs if id(child) in calls]
        inside = {i for child in called for i in child.operations}
        units = schedule(self.program, called, loose | (set(first.operations) - inside))
        return [calls[id(unit)] if isinstance(unit, Part) else unit for unit in units]

    def _unite(self) -> dict[str, str]:
        """Make one class of those that turn out to differ in numbers alone: `DenseBlock(count=6)`.

        For each of them how it is made now.
        """
        calls: dict[str, str] = {}
        plain_names = dict.fromkeys(each.plain for each in self._definitions.values())
        for plain in plain_names:
            alike = {
                name: replace(each, shared=_Calls(calls, {}).in_template(each.shared))
                for name, each in self._definitions.items()
                if each.plain == plain and not each.shared.parameters
            }
            if len({each.written.signature for each in alike.values()}) != 1 or len(alike) == 1:
                continue
            kept, first = next(iter(alike.items()))
            texts = [(each.shared.made, each.shared.lines) for each in alike.values()]
            shared = template(texts, first.told)
            if shared is None:
                continue
            variant = Variant(
                [part for each in alike.values() for part in each.variant.parts],
                [words for each in alike.values() for words in each.variant.words],
            )
            for place, name in enumerate(alike):
                calls[name] = f"{kept}({shared.arguments(place)})"
                if name != kept:
                    del self._definitions[name]
            self._definitions[kept] = replace(first, variant=variant, shared=shared)
        return calls

    def _names(self) -> dict[str, str]:
        """Choose the names of all classes: the author's, with what sets several of one apart."""
        alike: dict[str, list[str]] = {}
        for name, each in self._definitions.items():
            alike.setdefault(each.plain, []).append(name)
        names: dict[str, str] = {}
        for plain, several in alike.items():
            told = told_apart([self._definitions[name].variant for name in several])
            for name, words in zip(several, told, strict=True):
                before, after = [w for w in words if w in ENDS], [w for w in words if w not in ENDS]
                wish = camel("_".join([*before, plain, *after]))
                names[name] = unique(wish, {*names.values(), *RESERVED}, between="")
        return names


@dataclass(frozen=True, slots=True)
class _Calls:
    """How classes are made in statements: those with other arguments, and the names of all."""

    calls: Mapping[str, str]
    names: Mapping[str, str]

    def renamed(self, statements: Iterable[str]) -> tuple[str, ...]:
        return tuple(_MADE.sub(self._call, each) for each in statements)

    def in_template(self, shared: Template) -> Template:
        return replace(shared, made=self.renamed(shared.made), lines=self.renamed(shared.lines))

    def _call(self, found: re.Match[str]) -> str:
        name, _, arguments = self.calls.get(found[1], f"{found[1]}({found[2] or ''}").partition("(")
        return f"{self.names.get(name, name)}({arguments}"


_MADE = re.compile(r"\b(\w+__\d+)\((\))?")


def _text(name: str, shared: Template, signature: str) -> str:
    return class_text(name, shared.made, signature, shared.lines, shared.parameters)


def _is_class(program: Program, part: Part, around: Part) -> bool:
    """Whether a part is a class of its own: a layer, or what one call of an author's module runs.

    Other fusions, and modules of one operation without weights, are written out where they run.
    """
    if part.level == "layer":
        return True
    views = [program.graph.operations[i].view for i in part.operations]
    small = not part.children and views.count(False) == 1 and not part.io.states
    builtin = not part.children and bool(part.scopes) and part.scopes[-1].builtin
    apart = part.scopes != around.scopes
    return apart and not small and not builtin and _is_call(program, part)


def _is_call(program: Program, part: Part) -> bool:
    """Whether a part is all that one call of a module runs."""
    scopes = part.scopes
    inside = sum(held[: len(scopes)] == scopes for held in program.scopes)
    return bool(scopes) and inside == sum(1 for _ in part.kernels())


def _class_name(program: Program, part: Part) -> str:
    """The author's class where a part is a call of one, else the name of its operations."""
    if _is_call(program, part) and not is_container(part.scopes[-1]):
        return identifier(part.scopes[-1].cls)
    return camel(without_number(part.stem))


# --- parts that differ in numbers alone -----------------------------------------------------------


def _names_of_values(program: Program, part: Part) -> list[str]:
    """Every value inside, in an order that is the same for parts of one structure."""
    made = (n for i in part.operations for n in program.graph.operations[i].outputs if n)
    return list(dict.fromkeys((*part.io.inputs, *part.io.states, *made)))


def _structure(program: Program, part: Part) -> Hashable:
    """Equal for parts that differ in nothing but numbers, as far as can be seen from the graph."""
    number = {name: n for n, name in enumerate(_names_of_values(program, part))}
    place = {i: p for p, i in enumerate(part.operations)}
    operations = [program.graph.operations[i] for i in part.operations]
    return (
        part.level,
        _class_name(program, part),
        tuple(
            (op.target, tuple(number[n] for n in op.refs()), tuple(map(number.get, op.outputs)))
            for op in operations
        ),
        (len(part.io.inputs), len(part.io.states)),
        tuple(number[n] for n in part.io.outputs),
        _structure_of_children(program, part, place),
    )


def _structure_of_children(program: Program, part: Part, place: dict[int, int]) -> Hashable:
    return tuple(
        (
            without_number(c.stem),
            _class_name(program, c) if _is_class(program, c, part) else "",
            tuple(place[i] for i in c.operations),
            _structure_of_children(program, c, place),
        )
        for c in part.children
    )


def _with_numbers(program: Program, first: Part, part: Part) -> Program:
    """The program in which `first` runs with the numbers of `part`, which has its structure."""
    graph = program.graph
    theirs, ours = (_names_of_values(program, each) for each in (part, first))
    names = dict(zip(theirs, ours, strict=True))

    def renamed(name: str) -> Ref:
        return Ref(names[name])

    operations = list(graph.operations)
    for mine, other in zip(first.operations, part.operations, strict=True):
        op = graph.operations[other]
        operations[mine] = replace(
            graph.operations[mine],
            args=tuple(substitute(arg, renamed) for arg in op.args),
            kwargs=tuple((key, substitute(arg, renamed)) for key, arg in op.kwargs),
        )
    values = graph.values | {names[n]: graph.values[n] for n in theirs}
    states = graph.states | {
        names[n]: replace(graph.states[n], path=graph.states[names[n]].path) for n in part.io.states
    }
    changed = replace(graph, operations=tuple(operations), values=values, states=states)
    return Program(changed, program.kernels)
