"""Decides which operations of a graph make one kernel: by a module, by a formula, or alone.

Nothing is rewritten: a kernel is a set of operations, which run as the author wrote them. Its name
comes from the module's class, from the formula, or from the operator.
"""

from collections import defaultdict
from collections.abc import Iterator

from runner.graph.dataflow import Flow
from runner.graph.ir import Graph, Operation, Scope
from runner.graph.operations import is_named_activation, kind
from runner.graph.recognition.attention import join_attention
from runner.graph.recognition.experts import join_expert_products, join_expert_sums
from runner.graph.recognition.formula_search import FormulaMatch, FormulaSearch
from runner.graph.recognition.grouping import Candidate, Grouping, Kernel
from runner.graph.recognition.layout_copies import join_layout_copies
from runner.graph.recognition.parameter_kernels import join_parameter_kernels
from runner.graph.recognition.rearrangements import find_rearrangement
from runner.graph.recognition.rotary_embedding import join_rotations
from runner.graph.recognition.written_pieces import join_written_pieces
from runner.graph.terms import snake_case

__all__ = ["Kernel", "module_candidates", "recognize"]


def recognize(graph: Graph) -> tuple[Kernel, ...]:
    """Group the operations of a graph into kernels.

    The graph must be normalised. Afterwards each operation that computes is in exactly one kernel,
    each kernel reads only values that earlier ones made, and views outside of kernels move no data.
    """
    grouping = Grouping(Flow(graph))
    search = FormulaSearch(grouping.flow)
    grouping.add_candidates(map(_formula_candidate, search.find_across_modules()))
    grouping.add_candidates(module_candidates(grouping.flow, search))
    grouping.add_candidates(
        map(_formula_candidate, search.find_everywhere(grouping.contracted.group_of))
    )
    grouping.add_candidates(_rearrangement_candidates(grouping.flow))
    grouping.add_remaining_operations()
    join_written_pieces(grouping)
    join_rotations(grouping)
    join_expert_products(grouping)
    join_expert_sums(grouping)
    join_attention(grouping)
    join_layout_copies(grouping)
    join_parameter_kernels(grouping)
    grouping.fold_constants()
    return grouping.kernels()


# --- formulas --------------------------------------------------------------------------------


def _formula_candidate(match: FormulaMatch) -> Candidate:
    """Return a match of a formula as a candidate."""
    reason = f"the formula of {match.operation}: {match.formula}"
    return Candidate(match.operation, match.members, reason, match.results)


def _rearrangement_candidates(flow: Flow) -> Iterator[Candidate]:
    """Yield copies that do a named rearrangement, with the views around them."""
    for index, op in enumerate(flow.operations):
        if op.name in _REARRANGES and not op.view and not flow.constant[index]:
            rearrangement = find_rearrangement(index, flow)
            if rearrangement is not None:
                reason = f"the rearrangement {rearrangement.operation}: {rearrangement.pattern}"
                yield Candidate(
                    rearrangement.operation,
                    rearrangement.members,
                    reason,
                    frozenset({rearrangement.result}),
                )


# --- modules --------------------------------------------------------------------------------------

_SMALL = range(2, 17)
"""Numbers of operations with which a module call may be one kernel by its formula."""
_REARRANGES = {"contiguous", "clone", "reshape", "flatten"}
_IN_SMALL_MODULES = {"pointwise", "reduction", "creation", "copy", "normalization"}


def module_candidates(flow: Flow, search: FormulaSearch) -> Iterator[Candidate]:
    """Yield the calls of the author's small modules: a formula, or a contraction with its own bias.

    A module that spells a known formula has the formula's name, any other the name of its class.
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
            spelling = _module_spelling(compute, frozenset(members), flow, search)
            if spelling is not None:
                name = spelling[0]
                reason += f", the formula of {name}: {spelling[1]}"
            yield Candidate(name, frozenset(members), reason, is_class_name=spelling is None)
        elif _is_own_weighing(compute, scope, flow):
            reason = f"a call of the author's class {scope.cls}: one operation with its own weight"
            yield Candidate(name, frozenset(members), reason, is_class_name=True)
        elif _is_biased_contraction(compute, scope, flow):
            reason = f"a call of the author's class {scope.cls}: one contraction with its own bias"
            yield Candidate(name, frozenset(members), reason, is_class_name=True)


def _module_spelling(
    compute: list[Operation], members: frozenset[int], flow: Flow, search: FormulaSearch
) -> tuple[str, str] | None:
    """Return the name and spelling of the formula that all of a module is; None if it is none."""
    if len(compute) > 1:
        match = search.find_exactly(members)
        return None if match is None else (match.operation, match.formula)
    rearrangement = find_rearrangement(flow.producer[compute[0].outputs[0]], flow)
    return None if rearrangement is None else (rearrangement.operation, rearrangement.pattern)


def _is_one_formula(compute: list[Operation]) -> bool:
    """Return whether a module's operations are simple and few enough to be one kernel."""
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
    """Return whether a module is one copy and views, as a channel shuffle is."""
    return len(compute) == 1 and operations > 2 and compute[0].name in _REARRANGES


def _is_biased_contraction(compute: list[Operation], scope: Scope, flow: Flow) -> bool:
    """Return whether a module is a contraction and the addition of the module's own bias."""
    if len(compute) != 2 or kind(compute[0]) != "contraction" or compute[1].name != "add":
        return False
    return _owns(compute[1], scope, flow) and compute[0].outputs[0] in {
        flow.base(name) for name in compute[1].refs()
    }


def _is_own_weighing(compute: list[Operation], scope: Scope, flow: Flow) -> bool:
    """Return whether a module only scales or shifts by its own tensor, as LayerScale does."""
    return (
        len(compute) == 1 and compute[0].name in {"mul", "add"} and _owns(compute[0], scope, flow)
    )


def _owns(op: Operation, scope: Scope, flow: Flow) -> bool:
    """Return whether exactly one operand is a tensor of the module itself."""
    states = [flow.graph.states.get(flow.base(name)) for name in op.refs()]
    own_states = [s for s in states if s is not None and s.path.startswith(scope.path + ".")]
    return len(own_states) == 1
