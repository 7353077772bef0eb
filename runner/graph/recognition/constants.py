"""This file knows about constants: which of them are one, and what their field calls them."""

import re
from collections.abc import Iterable, Iterator

from runner.graph.dataflow import Flow
from runner.graph.ir import Arg, Operation, Origin, Scope, references
from runner.graph.operations import CONTRACTION, field_name, kind
from runner.graph.terms import snake_case

_ORDERED = {"lt", "gt", "le", "ge", "less", "greater", "less_equal", "greater_equal"}
_ATTENTION = {"softmax", "_softmax", "scaled_dot_product_attention"}
_FEW = 6
_MOST_OF_A_TABLE = 8
"""Operations on what a checkpoint holds that are one table: a table of rotations, a mask."""
_CURVES = {"log", "pow", "exp", "sqrt", "sin", "cos"}
"""What makes numbers of positions that are more than who may see whom."""


def cones(constants: Iterable[int], flow: Flow) -> Iterator[set[int]]:
    """Constants that belong together, without the views at their edge.

    Those are connected ones. Positions that a mask and a table both count from are no reason to
    compute the two together: whole numbers that several results share are a constant of their own.
    So is what a call of a module gives that computes nothing but constants.
    """
    for connected in expressions(constants, flow):
        families = _families(connected, flow)
        for cone in (piece for family in families for piece in _by_module(family, flow)):
            for index in sorted(cone, reverse=True):
                if flow.operations[index].view and flow.escapes(index, cone):
                    cone.discard(index)
            if _is_program(cone, flow):
                yield from ({index} for index in sorted(cone))
            else:
                yield cone


def _is_program(cone: set[int], flow: Flow) -> bool:
    """Whether it computes more of what the model was trained to than a table is made with."""
    states = flow.graph.states
    read = [flow.base(name) for i in cone for name in flow.operations[i].refs()]
    trained = any(name in states and states[name].in_checkpoint for name in read)
    return trained and sum(_computes(i, flow) for i in cone) > _MOST_OF_A_TABLE


def _by_module(cone: set[int], flow: Flow) -> Iterator[set[int]]:
    operations = flow.operations
    varying = {scopes for op in _varying(flow) for scopes in _calls(op)}
    parts: dict[tuple[Scope, ...], set[int]] = {}
    for index in sorted(cone):
        own = (s for s in _calls(operations[index]) if s not in varying and not s[-1].builtin)
        parts.setdefault(next(own, ()), set()).add(index)
    for part in parts.values():
        yield from expressions(part, flow)


def _calls(op: Operation) -> Iterator[tuple[Scope, ...]]:
    """The module calls that an operation is in, the outermost first."""
    return (op.scopes[:depth] for depth in range(1, len(op.scopes) + 1))


def _varying(flow: Flow) -> Iterator[Operation]:
    """What computes from an input or a parameter."""
    for op, fixed in zip(flow.operations, flow.constant, strict=True):
        if not fixed and not op.view:
            yield op


def expressions(constants: Iterable[int], flow: Flow) -> Iterator[set[int]]:
    """Constants that are computed one from the other, or from the same."""
    left = set(constants)
    while left:
        waiting, found = [min(left)], set[int]()
        while waiting:
            index = waiting.pop()
            if index in left:
                left.discard(index)
                found.add(index)
                waiting += (*flow.users[index], *flow.sources[index])
        yield found


def is_argument(expression: Iterable[int], reader: str, flow: Flow) -> bool:
    """Whether a constant only says how the kernel that reads it works: `reader` is its kind.

    That is a number, a fill, a range or a literal; one operation on those too, but not for a
    contraction, of which it would be an operand.
    """
    steps = sum(_computes(index, flow) for index in expression)
    return not steps or (steps == 1 and reader != "contraction")


def _computes(index: int, flow: Flow) -> bool:
    op = flow.operations[index]
    if field_name(op) in {"cast", "copy"} or kind(op) in {"view", "creation"}:
        return False
    return any(flow.graph.values[name].numel > 1 for name in op.outputs if name)


def _families(connected: set[int], flow: Flow) -> list[set[int]]:
    """Parts that share nothing but whole numbers, and what they share."""
    results: dict[int, set[int]] = {}
    for index in sorted(connected, reverse=True):
        inside = [user for user in flow.users[index] if user in connected]
        results[index] = set().union(*(results[user] for user in inside))
        if len(inside) < len(flow.users[index]) or flow.returned.intersection(
            flow.operations[index].outputs
        ):
            results[index].add(index)
    family = {index: index for found in results.values() for index in found}
    for index, found in results.items():
        if not _counts(index, flow) and len(found) > 1:
            kept = family[min(found)]
            merged = {family[result] for result in found}
            family = {r: kept if f in merged else f for r, f in family.items()}
    parts: dict[frozenset[int], set[int]] = {}
    for index in sorted(connected):
        parts.setdefault(frozenset(family[r] for r in results[index]), set()).add(index)
    shared = [part for key, part in parts.items() if len(key) > 1]
    return [
        *(piece for part in shared for piece in expressions(part, flow)),
        *(part for key, part in parts.items() if len(key) <= 1),
    ]


def _counts(index: int, flow: Flow) -> bool:
    """Whole numbers, such as positions."""
    return all(
        flow.graph.values[name].dtype.startswith(("int", "uint"))
        for name in flow.operations[index].outputs
        if name
    )


def constant_name(cone: set[int], flow: Flow) -> str:
    """What a constant is: a mask or a table that the field knows, else what its author calls it."""
    operations = [flow.operations[i] for i in sorted(cone) if not flow.operations[i].view]
    alone = field_name(operations[0]) if len(operations) == 1 else None
    if alone and kind(operations[0]) == "creation":
        return alone
    known = _known_table(cone, operations, flow) or _authors_name(cone, flow)
    return known or alone or "constant"


def _known_table(cone: set[int], operations: list[Operation], flow: Flow) -> str | None:
    names = {op.name for op in operations}
    spec = flow.graph.values[operations[-1].outputs[0]]
    read_by = _readers(cone, flow)
    if {"sin", "cos"} <= names or "polar" in names:
        several = len(_results(cone, flow)) > 1
        if several and (read_by - _ATTENTION) & CONTRACTION:
            return "fourier_basis"
        table = several or not read_by <= {"add", "add_", "linear", "addmm"}
        return "rope_table" if table else "sinusoidal_embedding"
    square = len(spec.shape) > 1 and spec.shape[-1] == spec.shape[-2]
    mask = _mask(operations, names, flow) if square and not names & _CURVES else None
    if mask is not None:
        return mask
    if read_by & _ATTENTION and len(spec.shape) > 1:
        if spec.dtype == "bool" or names & {"where", "masked_fill"}:
            return "attention_mask"
        if "arange" in names and names & {"mul", "div"}:
            return "alibi"  # Press et al., 2021: a slope for each head times the distance
    if "embedding" in read_by and {"log", "where"} <= names:
        return "relative_position_bucket"  # Raffel et al., 2019
    if "arange" in names and (spec.dtype.startswith("int") or names <= {"arange", "to"}):
        return None if len(spec.shape) > 1 else "positions"
    return None


# --- what the author calls it ---------------------------------------------------------------------


def _authors_name(cone: set[int], flow: Flow) -> str | None:
    """The module, the function or the variable that is this constant and nothing else."""
    compute = [flow.operations[i] for i in sorted(cone) if not flow.operations[i].view]
    scopes = set.intersection(*({*_calls(op)} for op in compute))
    scopes -= {call for op in _varying(flow) for call in _calls(op)}
    if modules := [call for call in scopes if not call[-1].builtin]:
        return snake_case(min(modules, key=len)[-1].cls)
    results = [flow.producer[name] for name in _results(cone, flow)]
    result = flow.operations[max(results, default=max(cone))]
    if result.origin is None:
        return None
    return next(filter(None, map(_telling, _called(result, result.origin, flow))), None)


def _called(result: Operation, origin: Origin, flow: Flow) -> Iterator[str]:
    """The function that makes a result, then the variables that it is assigned to."""
    varying = list(_varying(flow))
    functions = {(op.scopes, *_function(op)) for op in varying}
    if (result.scopes, *_function(result)) not in functions:
        yield _VERB.sub("", origin.function)
    statements = {place for op in varying for place in _places(op)}
    for place in _places(result):
        *_, targets = place
        if len(targets) == 1 and place not in statements:
            yield targets[0]


def _function(op: Operation) -> tuple[str, str]:
    return (op.origin.file, op.origin.function) if op.origin is not None else ("", "")


def _places(op: Operation) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """The statements that an operation stands in, the innermost first."""
    if op.origin is not None:
        yield (op.origin.file, op.origin.statement, op.origin.targets)
        yield from reversed(op.origin.callers)


def _telling(name: str) -> str | None:
    name = snake_case(name)
    known = name in _SAY_NOTHING or name.endswith("attention") or not name.isidentifier()
    return None if known or len(name) < _SHORTEST else name


_VERB = re.compile(r"^_*((get|make|build|create|compute|generate|gen|calculate|prepare)_+)?")
_SHORTEST = 3
_SAY_NOTHING = {
    "forward", "get", "make", "build", "create", "compute", "generate", "call", "run", "out",
    "output", "res", "result", "ret", "tmp", "temp", "val", "value", "values", "arr", "tensor",
}  # fmt: skip


# --- masks ----------------------------------------------------------------------------------------


def _mask(operations: list[Operation], names: set[str], flow: Flow) -> str | None:
    """Who may see whom: those before, those near, or both."""
    compared = [
        op
        for op in operations
        if op.name in _ORDERED and all(_counted(arg, flow) for arg in op.args[:2])
    ]
    distance = "abs" in names and names & {"sub", "rsub"} and names & _ORDERED
    if {"tril", "triu"} <= names or len(compared) > 1 or distance:
        return "window_mask"
    return "causal_mask" if compared or names & {"tril", "triu"} else None


def _counted(arg: Arg, flow: Flow) -> bool:
    """Made from positions."""
    waiting, seen = list(references(arg)), set[str]()
    while waiting:
        name = waiting.pop()
        index = flow.producer.get(name)
        if index is None or name in seen:
            continue
        seen.add(name)
        if flow.operations[index].name == "arange":
            return True
        waiting += flow.operations[index].refs()
    return False


def _results(cone: set[int], flow: Flow) -> list[str]:
    return [
        name
        for i in sorted(cone)
        for name in flow.operations[i].outputs
        if any(user not in cone for user in flow.consumers.get(name, ())) or name in flow.returned
    ]


def _readers(cone: set[int], flow: Flow) -> set[str]:
    """The operators that read it, and the softmax a few steps on, where there is one."""
    found: set[str] = set()
    waiting = [(user, 0) for i in cone for user in flow.users[i] if user not in cone]
    seen: set[int] = set()
    while waiting:
        index, steps = waiting.pop()
        op = flow.operations[index]
        if index in seen or steps > _FEW:
            continue
        seen.add(index)
        if op.view:
            waiting += [(user, steps) for user in flow.users[index]]
            continue
        if steps == 0 or op.name in _ATTENTION:
            found.add(op.name)
        if op.name in _SCORES:
            waiting += [(user, steps + 1) for user in flow.users[index]]
    return found


# What scores go through on their way to the softmax.
_SCORES = {"add", "sub", "mul", "div", "baddbmm", "masked_fill", "where", "maximum", "clamp", "to"}
