"""Finds the author's variables for values, from the statements that assign them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runner.graph.ir import Operation, Ref, Scope
from runner.graph.operations import ACTIVATIONS
from runner.tree.interface import Program

_Statement = tuple[str, int, tuple[str, ...], tuple[Scope, ...]]
"""A statement: file, first line, targets, and the calls of modules in which it runs."""
_Run = tuple[_Statement, int, int]
"""One execution of a statement: the statement, its count of executions, and the turn of a loop
that repeats only this statement."""
Variable = tuple[tuple[Scope, ...], str]
"""The calls of the author's modules in which a variable stands, and its name."""

_FORMS = ACTIVATIONS | {
    "contiguous", "clone", "reshape", "flatten", "to", "_to_copy", "type_as", "add", "sub", "mul",
    "div", "dropout", "tril", "triu", "tanh", "sigmoid", "clamp",
}  # fmt: skip
"""Operators whose input may have the name of their result: `x = F.relu(self.conv(x))`."""


def extend_through_forms(
    program: Program, assigned: Mapping[str, list[Variable]]
) -> dict[str, list[Variable]]:
    """Return the variables, extended to values that a statement only reshapes before it assigns.

    In `q = self.wq(x).view(...)`, the result of `self.wq` is named `q`, too.
    """
    variables = dict(assigned)
    graph = program.graph
    for op in reversed(graph.operations):
        source = _renamed_operand(op)
        if source is None or source in variables or program.is_state(source):
            continue
        made_by = program.producers.get(source)
        if made_by is None or program.consumers[source] != [_index(program, op)]:
            continue
        if _place(graph.operations[made_by]) != _place(op):
            continue
        names = [variables[n][0][1] for n in op.outputs if n in variables]
        if len(names) == len(op.outputs):
            variables[source] = [(author_scopes(op.scopes), _together(names))]
    return variables


def _index(program: Program, op: Operation) -> int:
    return program.producers[next(filter(None, op.outputs))]


def _renamed_operand(op: Operation) -> str | None:
    """Return the only tensor that an operation reads if it may have the result's name, or None."""
    read = list(op.refs())
    if len(read) != 1 or not any(op.outputs) or not isinstance(op.args[0], Ref):
        return None
    return read[0] if op.view or op.name in _FORMS else None


def _together(names: Sequence[str]) -> str:
    """Return one name for several: `qkv` for q, k, v; `gate_up` for gate, up."""
    return ("" if max(map(len, names)) == 1 else "_").join(names)


def _place(op: Operation) -> object:
    if op.origin is None:
        return None
    return (op.origin.file, op.origin.statement, author_scopes(op.scopes))


def find_author_variables(program: Program) -> dict[str, list[Variable]]:
    """Return the variables to which the author's code assigns each value, the innermost first.

    A value that a function returns also has the name that its caller gives it.
    """
    runs = _runs(program)
    leaving: dict[tuple[int, _Run], list[str]] = {}
    for op, own in zip(program.graph.operations, runs, strict=True):
        for depth, run in enumerate(own):
            for name in filter(None, op.outputs):
                readers = program.consumers.get(name, ())
                stays = readers and all(runs[c][depth : depth + 1] == [run] for c in readers)
                if run[0][2] and (not stays or name in program.returned):
                    leaving.setdefault((depth, run), []).append(name)
    variables: dict[str, list[Variable]] = {}
    for (_, run), names in sorted(leaving.items(), key=lambda item: -item[0][0]):
        targets = run[0][2]
        if len(targets) == 1:
            names = names[-1:]
        if len(targets) == len(names):
            for name, target in zip(names, targets, strict=True):
                if target != "_":
                    variables.setdefault(name, []).append((run[0][3], target))
    return variables


def _runs(program: Program) -> list[list[_Run]]:
    """Return for each operation the runs of the statements that led to it, the outermost first."""
    counts: dict[_Statement, int] = {}
    before: list[_Run] = []
    runs: list[list[_Run]] = []
    for op in program.graph.operations:
        statements = _statements(op)
        own: list[_Run] = []
        for depth, statement in enumerate(statements):
            run = before[depth] if own == before[:depth] and len(before) > depth else None
            if run is not None and run[0] == statement:
                own.append(run)
                continue
            counts[statement] = counts.get(statement, 0) + 1
            own.append((statement, counts[statement], 0))
        if own:
            before = own
        runs.append(own)
    _tell_turns_apart(program, runs)
    return runs


def _tell_turns_apart(program: Program, runs: list[list[_Run]]) -> None:
    """Number the turns of a loop over one statement, which repeats the same operators."""
    together: dict[_Run, list[int]] = {}
    for i, own in enumerate(runs):
        if own and len(own[-1][0][2]) == 1:
            together.setdefault(own[-1], []).append(i)
    for (statement, count, _), places in together.items():
        targets = [program.graph.operations[i].target for i in places]
        period = next(
            p for p in range(1, len(targets) + 1) if targets == targets[:p] * (len(targets) // p)
        )
        for place, i in enumerate(places):
            runs[i][-1] = (statement, count, place // period)


def _statements(op: Operation) -> list[_Statement]:
    """Return the statements that led to an operation, each with the author's modules around it."""
    if op.origin is None:
        return []
    origin, modules = op.origin, author_scopes(op.scopes)
    own = (origin.file, origin.statement, origin.targets, modules)
    if len(modules) not in {len(origin.callers), len(origin.callers) - 1}:
        return [own]
    return [*((*caller, modules[:d]) for d, caller in enumerate(origin.callers)), own]


def author_scopes(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """Return the calls of the author's own modules among `scopes`."""
    return tuple(scope for scope in scopes if not scope.builtin)
