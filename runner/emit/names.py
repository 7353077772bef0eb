"""This file knows about what emitted code calls values: the author's names where there are any."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Container, Iterable

from runner.graph.ir import Ref, Scope, State
from runner.graph.operations import field_name
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.stems import attribute

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


def child_names(part: Part) -> dict[int, str]:
    """What a parent calls its children: their place in the author's modules, below the parent's."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for child in part.children:
        where = relative(child.module_path, part.module_path)
        place = "" if where.replace(".", "").isdigit() else identifier(where) if where else ""
        if child.name == attribute(child.module_path) or f"_{place}".endswith(f"_{child.name}"):
            wish = place or child.name
        else:
            wish = f"{place}_{child.name}" if place else child.name
        name = unique(wish, taken)
        taken.add(name)
        names[id(child)] = name
    return names


_Statement = tuple[str, int, tuple[str, ...], tuple[Scope, ...]]

_RESULTS = {
    "lstm": ("output", "h_n", "c_n"),
    **dict.fromkeys(("gru", "rnn_tanh", "rnn_relu"), ("output", "h_n")),
    **dict.fromkeys(
        ("topk", "sort", "max", "min", "kthvalue", "cummax", "cummin", "median", "mode"),
        ("values", "indices"),
    ),
}
"""What torch calls the results of an operation that has several."""

_ROLES = {"scaled_dot_product_attention": ("q", "k", "v", "mask")}
"""What an operation's arguments are called in its field."""

_USUAL = ("x", "h")
"""What people call a tensor on its way when they give it no name."""


class Namer:
    """The author's name of each value: what the statement that computes it assigns to."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arguments = {i.name: identifier(i.argument) for i in program.graph.inputs}
        self.targets: dict[str, str] = {}
        results: dict[tuple[_Statement, int], list[str]] = {}
        runs: Counter[_Statement] = Counter()
        before: _Statement | None = None
        graph = program.graph
        for i, op in enumerate(graph.operations):
            if op.origin is None:
                continue
            origin = op.origin
            statement = (origin.file, origin.statement, origin.targets, _authors(op.scopes))
            if statement != before:  # a loop, or a helper that is called again
                runs[statement] += 1
                before = statement
            for name in op.outputs:
                if origin.targets and name and self._leaves_statement(name, i):
                    results.setdefault((statement, runs[statement]), []).append(name)
        for ((_, _, targets, _), _), names in results.items():
            if len(targets) == 1:
                self.targets[names[-1]] = targets[0]
            elif len(targets) == len(names):
                self.targets.update(zip(names, targets, strict=True))

    def _leaves_statement(self, name: str, i: int) -> bool:
        graph = self.program.graph
        origin = graph.operations[i].origin
        readers = self.program.consumers.get(name, ())
        return (
            not readers
            or any(graph.operations[c].origin != origin for c in readers)
            or name in self.program.returned
        )

    def wishes(self, name: str) -> Iterable[str]:
        """Names for a value, the best first."""
        if name in self.arguments:
            yield self.arguments[name]
        if name in self.targets:
            yield identifier(self.targets[name])
        i = self.program.producers.get(name)
        if i is not None:
            op = self.program.graph.operations[i]
            if len(op.outputs) == 1:
                if op.origin is not None and len(op.origin.targets) == 1:
                    yield identifier(op.origin.targets[0])
                yield from self._roles(name)
                if (state := self._shown_state(name)) is not None:
                    yield identifier(state.path.rpartition(".")[2])
                yield from _USUAL
            elif op.name in _RESULTS:
                yield _RESULTS[op.name][op.outputs.index(name)]
            yield identifier(field_name(op))

    def _shown_state(self, name: str) -> State | None:
        """The weight or constant that a value is a view or a cast of."""
        graph = self.program.graph
        while name not in graph.states:
            i = self.program.producers.get(name)
            if i is None or not (graph.operations[i].view or graph.operations[i].name == "to"):
                return None
            name = next(graph.operations[i].refs(), "")
        return graph.states[name]

    def _roles(self, name: str) -> Iterable[str]:
        """What those that read it call it."""
        for i in self.program.consumers.get(name, ()):
            op = self.program.graph.operations[i]
            for role, argument in zip(_ROLES.get(op.name, ()), op.args, strict=False):
                if isinstance(argument, Ref) and argument.name == name:
                    yield role

    def of(self, name: str) -> str:
        """What a value is called outside of code: the author's name, else its operation."""
        if name in self.arguments:
            return self.arguments[name]
        if name in self.targets:
            return identifier(self.targets[name])
        return identifier(field_name(self.program.graph.operations[self.program.producers[name]]))

    def result(self, name: str) -> str:
        """Its name among a component's outputs: the author's, else torch's among several, else ''.

        A variable that the same statement assigns again is the name of what it holds in the end.
        """
        if name in self.arguments or name in self.targets:
            return self.of(name)
        i = self.program.producers.get(name)
        op = self.program.graph.operations[i] if i is not None else None
        if op is None or op.name not in _RESULTS:
            return ""
        return _RESULTS[op.name][op.outputs.index(name)]

    def argument(self, name: str) -> str:
        """Its name as an argument: the author's, also of what it is a view of, else `x`."""
        role = next(iter(self._roles(name)), "x")
        while True:
            if name in self.arguments:
                return self.arguments[name]
            if name in self.targets:
                return identifier(self.targets[name])
            i = self.program.producers.get(name)
            if i is None or not self.program.graph.operations[i].view:
                return role
            name = next(self.program.graph.operations[i].refs())


def _authors(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """The calls down to the author's innermost module: where the statement stands."""
    while scopes and scopes[-1].builtin:
        scopes = scopes[:-1]
    return scopes
