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

_FORM_OPERATORS = ACTIVATIONS | {
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
        source = _form_operand(op)
        if source is None or source in variables or program.is_state(source):
            continue
        producer = program.producers.get(source)
        index = program.producers[next(filter(None, op.outputs))]
        if producer is None or program.consumers[source] != [index]:
            continue
        if _statement_key(graph.operations[producer]) != _statement_key(op):
            continue
        names = [variables[n][0][1] for n in op.outputs if n in variables]
        if len(names) == len(op.outputs):
            variables[source] = [(author_scopes(op.scopes), _join_names(names))]
    return variables


def _form_operand(op: Operation) -> str | None:
    """Return the only tensor that an operation reads if it may have the result's name, or None."""
    operands = list(op.refs())
    if len(operands) != 1 or not any(op.outputs) or not isinstance(op.args[0], Ref):
        return None
    return operands[0] if op.view or op.name in _FORM_OPERATORS else None


def _join_names(names: Sequence[str]) -> str:
    """Return one name for several: `qkv` for q, k, v; `gate_up` for gate, up."""
    return ("" if max(map(len, names)) == 1 else "_").join(names)


def _statement_key(op: Operation) -> object:
    if op.origin is None:
        return None
    return (op.origin.file, op.origin.statement, author_scopes(op.scopes))


def find_author_variables(program: Program) -> dict[str, list[Variable]]:
    """Return the variables to which the author's code assigns each value, the innermost first.

    A value that a function returns also has the name that its caller gives it.
    """
    runs = _statement_runs(program)
    leaving_values: dict[tuple[int, _Run], list[str]] = {}
    for op, operation_runs in zip(program.graph.operations, runs, strict=True):
        for depth, run in enumerate(operation_runs):
            for name in filter(None, op.outputs):
                readers = program.consumers.get(name, ())
                is_internal = readers and all(runs[c][depth : depth + 1] == [run] for c in readers)
                if run[0][2] and (not is_internal or name in program.returned_values):
                    leaving_values.setdefault((depth, run), []).append(name)
    variables: dict[str, list[Variable]] = {}
    for (_, run), names in sorted(leaving_values.items(), key=lambda item: -item[0][0]):
        targets = run[0][2]
        if len(targets) == 1:
            names = names[-1:]
        if len(targets) == len(names):
            for name, target in zip(_order_as(targets, names, variables), targets, strict=True):
                if target != "_":
                    variables.setdefault(name, []).append((run[0][3], target))
    return variables


def _order_as(
    targets: Sequence[str], names: Sequence[str], variables: Mapping[str, list[Variable]]
) -> list[str]:
    """Return the values in the order of the targets that they are probably assigned to.

    A function may return values in another order than it computes them: what it calls `loss` itself
    is assigned to `loss`, and the others in their order to the other targets.
    """
    own_names = {name: {text for _, text in variables.get(name, ())} for name in names}
    matched: dict[str, str] = {}
    for target in targets:
        same = [n for n in names if target in own_names[n] and n not in matched.values()]
        if len(same) == 1:
            matched[target] = same[0]
    others = iter([name for name in names if name not in matched.values()])
    return [matched.get(target) or next(others) for target in targets]


def _statement_runs(program: Program) -> list[list[_Run]]:
    """Return for each operation the runs of the statements that led to it, the outermost first."""
    counts: dict[_Statement, int] = {}
    previous: list[_Run] = []
    runs: list[list[_Run]] = []
    for op in program.graph.operations:
        statements = _statement_chain(op)
        operation_runs: list[_Run] = []
        for depth, statement in enumerate(statements):
            run = (
                previous[depth]
                if operation_runs == previous[:depth] and len(previous) > depth
                else None
            )
            if run is not None and run[0] == statement:
                operation_runs.append(run)
                continue
            counts[statement] = counts.get(statement, 0) + 1
            operation_runs.append((statement, counts[statement], 0))
        if operation_runs:
            previous = operation_runs
        runs.append(operation_runs)
    _number_turns(program, runs)
    return runs


def _number_turns(program: Program, runs: list[list[_Run]]) -> None:
    """Number the turns of a loop over one statement, which repeats the same operators."""
    positions: dict[_Run, list[int]] = {}
    for i, operation_runs in enumerate(runs):
        if operation_runs and len(operation_runs[-1][0][2]) == 1:
            positions.setdefault(operation_runs[-1], []).append(i)
    for (statement, count, _), indices in positions.items():
        targets = [program.graph.operations[i].target for i in indices]
        period = next(
            p for p in range(1, len(targets) + 1) if targets == targets[:p] * (len(targets) // p)
        )
        for position, i in enumerate(indices):
            runs[i][-1] = (statement, count, position // period)


def _statement_chain(op: Operation) -> list[_Statement]:
    """Return the statements that led to an operation, each with the author's modules around it."""
    if op.origin is None:
        return []
    origin, modules = op.origin, author_scopes(op.scopes)
    innermost = (origin.file, origin.statement, origin.targets, modules)
    if len(modules) not in {len(origin.callers), len(origin.callers) - 1}:
        return [innermost]
    return [*((*caller, modules[:d]) for d, caller in enumerate(origin.callers)), innermost]


def author_scopes(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """Return the calls of the author's own modules among `scopes`."""
    return tuple(scope for scope in scopes if not scope.builtin)
