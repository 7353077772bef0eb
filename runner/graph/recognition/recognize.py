"""This file knows about which operations are one kernel: a module, a formula, a constant, or one.

Nothing is rewritten: a kernel is a set of operations, which run as the author wrote them. What its
field calls it comes from the module's class, from the formula, or from the operator.
"""

from collections import defaultdict
from collections.abc import Iterator

from runner.graph.dataflow import Flow
from runner.graph.ir import Graph, Operation, Scope
from runner.graph.operations import is_named_activation, kind
from runner.graph.recognition.attention import attention
from runner.graph.recognition.experts import experts, summed_experts
from runner.graph.recognition.formula_search import Found, Patterns
from runner.graph.recognition.grouping import Candidate, Grouping, Kernel
from runner.graph.recognition.layout_copies import layouts
from runner.graph.recognition.parameter_kernels import owned
from runner.graph.recognition.rearrangements import rearranged
from runner.graph.recognition.rotary_embedding import rotations
from runner.graph.terms import snake_case

__all__ = ["Kernel", "modules", "recognize"]


def recognize(graph: Graph) -> tuple[Kernel, ...]:
    """Every compute operation in exactly one kernel, each reading only what earlier ones made.

    requires: a normalised graph. ensures: as said; views that belong to no kernel move no data.
    """
    grouping = Grouping(Flow(graph))
    patterns = Patterns(grouping.flow)
    grouping.take(map(_spelled, patterns.across_modules()))
    grouping.take(modules(grouping.flow, patterns))
    grouping.take(map(_spelled, patterns.everywhere(grouping.contracted.group_of)))
    grouping.take(_rearrangements(grouping.flow))
    grouping.take_the_rest()
    rotations(grouping)
    experts(grouping)
    summed_experts(grouping)
    attention(grouping)
    layouts(grouping)
    owned(grouping)
    grouping.fold_constants()
    return grouping.kernels()


# --- formulas --------------------------------------------------------------------------------


def _spelled(found: Found) -> Candidate:
    reason = f"the formula of {found.operation}: {found.formula}"
    return Candidate(found.operation, found.members, reason, found.results)


def _rearrangements(flow: Flow) -> Iterator[Candidate]:
    """Copies into another order that have a name, with the views around them."""
    for index, op in enumerate(flow.operations):
        if op.name in _REARRANGES and not op.view and not flow.constant[index]:
            found = rearranged(index, flow)
            if found is not None:
                reason = f"the rearrangement {found.operation}: {found.pattern}"
                yield Candidate(found.operation, found.members, reason, frozenset({found.result}))


# --- modules --------------------------------------------------------------------------------------

_SMALL = range(2, 17)
_REARRANGES = {"contiguous", "clone", "reshape", "flatten"}
_IN_SMALL_MODULES = {"pointwise", "reduction", "creation", "copy", "normalization"}


def modules(flow: Flow, patterns: Patterns) -> Iterator[Candidate]:
    """Calls of the author's small modules: a formula, or a contraction with its own bias.

    A module is called what its field calls the formula that all of it spells, else its class.
    """
    inside: dict[tuple[Scope, ...], list[int]] = defaultdict(list)
    has_children: set[tuple[Scope, ...]] = set()
    for index, op in enumerate(flow.operations):
        if op.scopes and not flow.is_local[index]:
            inside[op.scopes].append(index)
            if not op.view:
                has_children.update(op.scopes[:depth] for depth in range(1, len(op.scopes)))
    for scopes, members in inside.items():
        scope = scopes[-1]
        if scope.builtin or scopes in has_children:
            continue
        compute = [flow.operations[i] for i in members if not flow.operations[i].view]
        name = snake_case(scope.cls)
        if _is_one_formula(compute) or _is_rearrangement(compute, len(members)):
            reason = f"a call of the author's class {scope.cls}"
            spelled = _spelled_by(compute, frozenset(members), flow, patterns)
            if spelled is not None:
                name = spelled[0]
                reason += f", the formula of {name}: {spelled[1]}"
            yield Candidate(name, frozenset(members), reason)
        elif _is_own_weighing(compute, scope, flow):
            reason = f"a call of the author's class {scope.cls}: one operation with its own weight"
            yield Candidate(name, frozenset(members), reason)
        elif _is_biased_contraction(compute, scope, flow):
            reason = f"a call of the author's class {scope.cls}: one contraction with its own bias"
            yield Candidate(name, frozenset(members), reason)


def _spelled_by(
    compute: list[Operation], members: frozenset[int], flow: Flow, patterns: Patterns
) -> tuple[str, str] | None:
    """What the field calls all of a module, and how it is written there."""
    if len(compute) > 1:
        found = patterns.of(members)
        return None if found is None else (found.operation, found.formula)
    moved = rearranged(flow.producer[compute[0].outputs[0]], flow)
    return None if moved is None else (moved.operation, moved.pattern)


def _is_one_formula(compute: list[Operation]) -> bool:
    if len(compute) not in _SMALL:
        return False
    kinds = [kind(op) for op in compute]
    working = [k for k in kinds if k != "creation"]
    named = sum(
        k == "normalization" or is_named_activation(op)
        for k, op in zip(kinds, compute, strict=True)
    )
    return (
        set(kinds) <= _IN_SMALL_MODULES
        and len(working) >= 2
        and set(working) != {"copy"}
        and named <= 1
    )


def _is_rearrangement(compute: list[Operation], operations: int) -> bool:
    """One copy in another order, as in a channel shuffle: views and what they are copied by."""
    return len(compute) == 1 and operations > 2 and compute[0].name in _REARRANGES


def _is_biased_contraction(compute: list[Operation], scope: Scope, flow: Flow) -> bool:
    if len(compute) != 2 or kind(compute[0]) != "contraction" or compute[1].name != "add":
        return False
    return _owns(compute[1], scope, flow) and compute[0].outputs[0] in {
        flow.base(name) for name in compute[1].refs()
    }


def _is_own_weighing(compute: list[Operation], scope: Scope, flow: Flow) -> bool:
    """A scale or a shift that has a module to itself, such as LayerScale."""
    return (
        len(compute) == 1 and compute[0].name in {"mul", "add"} and _owns(compute[0], scope, flow)
    )


def _owns(op: Operation, scope: Scope, flow: Flow) -> bool:
    """Whether one operand is a tensor of the module itself."""
    states = [flow.graph.states.get(flow.base(name)) for name in op.refs()]
    own = [s for s in states if s is not None and s.path.startswith(scope.path + ".")]
    return len(own) == 1
