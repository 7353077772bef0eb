"""This file knows about constants: which of them are one, and what their field calls them."""

from collections.abc import Iterable, Iterator

from runner.graph.flow import Flow
from runner.graph.ir import Arg, Operation, references
from runner.graph.operations import field_name

_ORDERED = {"lt", "gt", "le", "ge", "less", "greater", "less_equal", "greater_equal"}
_ATTENTION = {"softmax", "_softmax", "scaled_dot_product_attention"}
_FEW = 6


def cones(constants: Iterable[int], flow: Flow) -> Iterator[set[int]]:
    """Constants that belong together, without the views at their edge.

    Those are connected ones. Positions that a mask and a table both count from are no reason to
    compute the two together: whole numbers that several results share are a constant of their own.
    """
    for connected in _connected(set(constants), flow):
        for cone in _families(connected, flow):
            for index in sorted(cone, reverse=True):
                if flow.operations[index].view and flow.leaves(index, cone):
                    cone.discard(index)
            yield cone


def _connected(left: set[int], flow: Flow) -> Iterator[set[int]]:
    while left:
        waiting, found = [min(left)], set[int]()
        while waiting:
            index = waiting.pop()
            if index in left:
                left.discard(index)
                found.add(index)
                waiting += (*flow.users[index], *flow.sources[index])
        yield found


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
        *(piece for part in shared for piece in _connected(part, flow)),
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
    """What a constant is: who may see whom, the angles of positions, or what its last step says."""
    operations = [flow.operations[i] for i in sorted(cone) if not flow.operations[i].view]
    names = {op.name for op in operations}
    spec = flow.graph.values[operations[-1].outputs[0]]
    read_by = _readers(cone, flow)
    if {"sin", "cos"} <= names or "polar" in names:
        table = len(_results(cone, flow)) > 1 or not read_by <= {"add", "add_"}
        return "rope_table" if table else "sinusoidal_embedding"
    square = len(spec.shape) > 1 and spec.shape[-1] == spec.shape[-2]
    mask = _mask(operations, names, flow) if square else None
    if mask is not None:
        return mask
    if read_by & _ATTENTION and len(spec.shape) > 1:
        if spec.dtype == "bool" or names & {"where", "masked_fill"}:
            return "attention_mask"
        if "arange" in names and names & {"mul", "div"}:
            return "alibi"  # Press et al., 2021: a slope for each head times the distance
    if "embedding" in read_by and {"log", "where"} <= names:
        return "relative_position_bucket"  # Raffel et al., 2019
    if spec.dtype.startswith("int") and "arange" in names:
        return "positions" if len(operations) > 1 else "arange"
    return field_name(operations[-1])


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
