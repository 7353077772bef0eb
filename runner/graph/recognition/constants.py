"""Groups the constants of a program into kernels and names them.

A constant is a value that depends on no input and no parameter: a mask, a table, positions.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from runner.graph.dataflow import Flow
from runner.graph.ir import Arg, Operation, Origin, Scope, references
from runner.graph.operations import CONTRACTION, field_name, kind
from runner.graph.terms import snake_case

_COMPARISONS = {"lt", "gt", "le", "ge", "less", "greater", "less_equal", "greater_equal"}
_ATTENTION = {"softmax", "_softmax", "_safe_softmax", "scaled_dot_product_attention"}
_MOST_STEPS_TO_SOFTMAX = 6
"""Steps between a constant and the softmax that it may still be a mask for."""
_MOST_TABLE_OPERATIONS = 8
"""Most operations on a checkpoint's tensors that still make one table, of rotations or a mask."""
_CURVES = {"log", "pow", "exp", "sqrt", "sin", "cos"}
"""Functions of positions that no mask needs."""


@dataclass(frozen=True, slots=True)
class VaryingCode:
    """The code that computes something from an input or a parameter, not constants alone."""

    calls: frozenset[tuple[Scope, ...]]
    """Calls of modules."""
    functions: frozenset[tuple[tuple[Scope, ...], str, str]]
    """Functions: the calls of modules that they run in, file and name."""
    statements: frozenset[tuple[str, int, tuple[str, ...]]]
    """Statements: file, line and the names that they assign to."""

    @classmethod
    def of(cls, flow: Flow) -> "VaryingCode":
        pairs = zip(flow.operations, flow.constant, strict=True)
        operations = [op for op, is_constant in pairs if not is_constant and not op.view]
        origins = {op.origin for op in operations}
        return cls(
            frozenset(
                call for scopes in {op.scopes for op in operations} for call in _calls(scopes)
            ),
            frozenset((op.scopes, *_function_of(op.origin)) for op in operations),
            frozenset(statement for origin in origins for statement in _statements_of(origin)),
        )


def constant_cones(
    constants: Iterable[int], flow: Flow, varying: VaryingCode
) -> Iterator[set[int]]:
    """Yield sets of constants that make one kernel each, without the views at their edge.

    A set (a cone) holds connected constants. Integers that several results share, such as the
    positions of both a mask and a table, are a set of their own: sharing them is no reason to
    compute the results together. A module call that computes only constants is a set too.
    """
    for connected in connected_constants(constants, flow):
        families = _split_by_shared_integers(connected, flow)
        pieces = (p for family in families for p in _split_by_module(family, flow, varying))
        for cone in pieces:
            for index in sorted(cone, reverse=True):
                if flow.operations[index].view and flow.escapes(index, cone):
                    cone.discard(index)
            if _is_too_large_for_table(cone, flow):
                yield from ({index} for index in sorted(cone))
            else:
                yield cone


def _is_too_large_for_table(cone: set[int], flow: Flow) -> bool:
    """Return whether constants compute too much from the checkpoint's tensors to be one table."""
    states = flow.graph.states
    read = [flow.base(name) for i in cone for name in flow.operations[i].refs()]
    reads_trained = any(name in states and states[name].in_checkpoint for name in read)
    return reads_trained and sum(_computes_numbers(i, flow) for i in cone) > _MOST_TABLE_OPERATIONS


def _split_by_module(cone: set[int], flow: Flow, varying: VaryingCode) -> Iterator[set[int]]:
    """Split constants by the outermost call of an author's module that computes only constants."""
    operations = flow.operations
    parts: dict[tuple[Scope, ...], set[int]] = {}
    for index in sorted(cone):
        constant_calls = (
            s
            for s in _calls(operations[index].scopes)
            if s not in varying.calls and not s[-1].builtin
        )
        parts.setdefault(next(constant_calls, ()), set()).add(index)
    for part in parts.values():
        yield from connected_constants(part, flow)


def _calls(scopes: tuple[Scope, ...]) -> Iterator[tuple[Scope, ...]]:
    """Yield the module calls around the innermost one, which is the last."""
    return (scopes[:depth] for depth in range(1, len(scopes) + 1))


def connected_constants(constants: Iterable[int], flow: Flow) -> Iterator[set[int]]:
    """Yield the connected components of a set of constants."""
    remaining = set(constants)
    for first in sorted(remaining):
        if first not in remaining:
            continue
        waiting, component = [first], set[int]()
        while waiting:
            index = waiting.pop()
            if index in remaining:
                remaining.discard(index)
                component.add(index)
                waiting += (*flow.users[index], *flow.sources[index])
        yield component


_NORMALIZES = {"normalization", "softmax"}


def is_argument(expression: Iterable[int], reader: str, flow: Flow) -> bool:
    """Return whether a constant only configures the kernel that reads it.

    Such a constant is a number, a fill, a range or a literal, or one operation on these; but the
    latter is neither a normalisation or softmax nor for a contraction, which reads operands.
    `reader` is the kind of the kernel.
    """
    steps = [flow.operations[index] for index in expression if _computes_numbers(index, flow)]
    return not steps or (
        len(steps) == 1 and reader != "contraction" and kind(steps[0]) not in _NORMALIZES
    )


def _computes_numbers(index: int, flow: Flow) -> bool:
    """Return whether an operation computes several numbers, not only fills, casts or copies."""
    op = flow.operations[index]
    if field_name(op) in {"cast", "copy"} or kind(op) in {"view", "creation"}:
        return False
    return any(flow.graph.values[name].numel > 1 for name in op.outputs if name)


def _split_by_shared_integers(connected: set[int], flow: Flow) -> list[set[int]]:
    """Split connected constants into parts that share only integers, and the shared integers."""
    results: dict[int, set[int]] = {}
    for index in sorted(connected, reverse=True):
        inside = [user for user in flow.users[index] if user in connected]
        results[index] = set().union(*(results[user] for user in inside))
        if len(inside) < len(flow.users[index]) or flow.returned.intersection(
            flow.operations[index].outputs
        ):
            results[index].add(index)
    family = {index: index for reached in results.values() for index in reached}
    for index, reached in results.items():
        if not _gives_integers(index, flow) and len(reached) > 1:
            family_index = family[min(reached)]
            merged = {family[result] for result in reached}
            family = {r: family_index if f in merged else f for r, f in family.items()}
    parts: dict[frozenset[int], set[int]] = {}
    for index in sorted(connected):
        parts.setdefault(frozenset(family[r] for r in results[index]), set()).add(index)
    shared_parts = [part for key, part in parts.items() if len(key) > 1]
    return [
        *(piece for part in shared_parts for piece in connected_constants(part, flow)),
        *(part for key, part in parts.items() if len(key) <= 1),
    ]


def _gives_integers(index: int, flow: Flow) -> bool:
    """Return whether an operation gives integers, such as positions."""
    return all(
        flow.graph.values[name].dtype.startswith(("int", "uint"))
        for name in flow.operations[index].outputs
        if name
    )


def constant_name(cone: set[int], flow: Flow, varying: VaryingCode) -> str:
    """Return the name of a constant: a mask or table known in the field, else the author's name."""
    operations = [flow.operations[i] for i in sorted(cone) if not flow.operations[i].view]
    single_name = field_name(operations[0]) if len(operations) == 1 else None
    if single_name and kind(operations[0]) == "creation":
        return single_name
    name = _table_name(cone, operations, flow) or _authors_name(cone, flow, varying)
    main_names = [field_name(op) for op in operations if kind(op) in _NORMALIZES]
    if not name and not single_name and _is_dequantized_weight(cone, operations, flow):
        return "dequantize"
    return name or single_name or (main_names[0] if len(main_names) == 1 else "constant")


def _is_dequantized_weight(cone: set[int], operations: list[Operation], flow: Flow) -> bool:
    """Return whether a contraction reads what is made of integers and scales of the model."""
    graph = flow.graph
    held = {n for op in operations for n in map(flow.base, op.refs()) if n in graph.states}
    floating = {graph.values[n].floating for n in held if graph.states[n].kind == "buffer"}
    is_scaled = any(op.name in {"mul", "div"} for op in operations)
    result = graph.values[operations[-1].outputs[0]]
    reads_both = floating == {True, False} and result.floating and is_scaled
    return reads_both and bool(_reader_names(cone, flow) & CONTRACTION)


def _table_name(cone: set[int], operations: list[Operation], flow: Flow) -> str | None:
    """Return the field's name for a mask or a table; None if it has none."""
    names = {op.name for op in operations}
    spec = flow.graph.values[operations[-1].outputs[0]]
    readers = _reader_names(cone, flow)
    if {"sin", "cos"} <= names or "polar" in names:
        has_several_results = len(flow.results(cone)) > 1
        if has_several_results and (readers - _ATTENTION) & CONTRACTION:
            return "fourier_basis"
        if not has_several_results and readers and readers <= _JOINS:
            return "fourier_features"  # of each position, beside what the position holds
        is_table = has_several_results or not readers <= {"add", "add_", "linear", "addmm"}
        return "rope_table" if is_table else "sinusoidal_embedding"
    square = len(spec.shape) > 1 and spec.shape[-1] == spec.shape[-2]
    mask_name = _mask_name(operations, names, flow) if square and not names & _CURVES else None
    if mask_name is not None:
        return mask_name
    if readers & _ATTENTION and len(spec.shape) > 1:
        if spec.dtype == "bool" or names & {"where", "masked_fill"}:
            return "attention_mask"
        if "arange" in names and names & {"mul", "div"}:
            return "alibi"  # Press et al., 2021: a slope for each head times the distance
    if "embedding" in readers and {"log", "where"} <= names:
        return "relative_position_bucket"  # Raffel et al., 2019
    if "arange" in names and (spec.dtype.startswith("int") or names <= {"arange", "to"}):
        return None if len(spec.shape) > 1 else "positions"
    return None


# --- the author's names ---------------------------------------------------------------------------


def _authors_name(cone: set[int], flow: Flow, varying: VaryingCode) -> str | None:
    """Return the author's name for a constant: of a module, a function or a variable.

    Returns None if each of these computes more than the constant, or is a word without meaning.
    """
    compute = [flow.operations[i] for i in sorted(cone) if not flow.operations[i].view]
    scopes = set.intersection(*({*_calls(op.scopes)} for op in compute)) - varying.calls
    if modules := [call for call in scopes if not call[-1].builtin]:
        return snake_case(min(modules, key=len)[-1].cls)
    results = [flow.producer[name] for name in flow.results(cone)]
    result = flow.operations[max(results, default=max(cone))]
    if result.origin is None:
        return None
    names = _candidate_names(result, result.origin, varying)
    return next(filter(None, map(_meaningful_name, names)), None)


def _candidate_names(result: Operation, origin: Origin, varying: VaryingCode) -> Iterator[str]:
    """Yield the function that makes a result, then the variables that it is assigned to."""
    if (result.scopes, *_function_of(origin)) not in varying.functions:
        yield _VERB_PREFIX.sub("", origin.function)
    for statement in _statements_of(origin):
        *_, targets = statement
        if len(targets) == 1 and statement not in varying.statements:
            yield targets[0]


def _function_of(origin: Origin | None) -> tuple[str, str]:
    """Return the file and the function that an operation is written in."""
    return (origin.file, origin.function) if origin is not None else ("", "")


def _statements_of(origin: Origin | None) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield the statements that an operation is written in, the innermost first."""
    if origin is not None:
        yield (origin.file, origin.statement, origin.targets)
        yield from reversed(origin.callers)


def _meaningful_name(name: str) -> str | None:
    """Return a name in snake case; None if it says nothing about the constant."""
    name = snake_case(name)
    is_meaningless = (
        name in _MEANINGLESS_NAMES or name.endswith("attention") or not name.isidentifier()
    )
    return None if is_meaningless or len(name) < _SHORTEST_NAME else name


_VERB_PREFIX = re.compile(r"^_*((get|make|build|create|compute|generate|gen|calculate|prepare)_+)?")
_SHORTEST_NAME = 3
_MEANINGLESS_NAMES = {
    "forward", "get", "make", "build", "create", "compute", "generate", "call", "run", "out",
    "output", "res", "result", "ret", "tmp", "temp", "val", "value", "values", "arr", "tensor",
}  # fmt: skip
"""Names that say nothing about a value."""


# --- masks ----------------------------------------------------------------------------------------


def _mask_name(operations: list[Operation], names: set[str], flow: Flow) -> str | None:
    """Return the name of a mask by position: causal, or a window of near positions."""
    comparisons = [
        op
        for op in operations
        if op.name in _COMPARISONS and all(_comes_from_positions(arg, flow) for arg in op.args[:2])
    ]
    has_distance = "abs" in names and names & {"sub", "rsub"} and names & _COMPARISONS
    if {"tril", "triu"} <= names or len(comparisons) > 1 or has_distance:
        return "window_mask"
    return "causal_mask" if comparisons or names & {"tril", "triu"} else None


def _comes_from_positions(arg: Arg, flow: Flow) -> bool:
    """Return whether a value is computed from positions."""
    waiting, visited = list(references(arg)), set[str]()
    while waiting:
        name = waiting.pop()
        index = flow.producer.get(name)
        if index is None or name in visited:
            continue
        visited.add(name)
        if flow.operations[index].name == "arange":
            return True
        waiting += flow.operations[index].refs()
    return False


def _reader_names(cone: set[int], flow: Flow) -> set[str]:
    """Return the operators that read a constant, and an attention's softmax a few steps later."""
    names: set[str] = set()
    waiting = [(user, 0) for i in cone for user in flow.users[i] if user not in cone]
    visited: set[int] = set()
    while waiting:
        index, steps = waiting.pop()
        op = flow.operations[index]
        if index in visited or steps > _MOST_STEPS_TO_SOFTMAX:
            continue
        visited.add(index)
        if op.view:
            waiting += [(user, steps) for user in flow.users[index]]
            continue
        if steps == 0 or op.name in _ATTENTION:
            names.add(op.name)
        if op.name in _SCORES:
            waiting += [(user, steps + 1) for user in flow.users[index]]
    return names


_JOINS = {"cat", "concat", "concatenate", "stack"}
# Operators between the scores and the softmax.
_SCORES = {"add", "sub", "mul", "div", "baddbmm", "masked_fill", "where", "maximum", "clamp", "to"}
