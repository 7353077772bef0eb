"""This file knows about which operations are one kernel: a module, a formula, a constant, or one.

Nothing is rewritten: a kernel is a set of operations, which run as the author wrote them. What its
field calls it comes from the module's class, from the formula, or from the operator.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from runner.graph.constants import cones, constant_name
from runner.graph.contexts import name_in_context
from runner.graph.flow import Contracted, Flow
from runner.graph.ir import Graph, Operation, Scope
from runner.graph.operations import (
    field_name,
    is_named_activation,
    is_random,
    kind,
    reads_only_shape,
)
from runner.graph.patterns import Found, Patterns
from runner.graph.rearrangements import rearranged
from runner.graph.terms import snake_case


@dataclass(frozen=True, slots=True)
class Kernel:
    """One logical operation: the indices of the operations that it consists of."""

    operation: str
    """What its field calls it: `conv2d`, `rms_norm`."""
    members: tuple[int, ...]
    """Sorted. Compute belongs to exactly one kernel; a view of a weight to each that reads it."""
    reason: str
    """A sentence for the log."""
    kind: str
    """The kind of its most telling operation."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Operations that may be one kernel, if the data flow allows it."""

    operation: str
    members: frozenset[int]
    reason: str
    results: frozenset[str] = frozenset()
    """Values that may be read outside; empty: the one value that is."""


def recognize(graph: Graph) -> tuple[Kernel, ...]:
    """Every compute operation in exactly one kernel, each reading only what earlier ones made.

    requires: a normalised graph. ensures: as said; views that belong to no kernel move no data.
    """
    grouping = _Grouping(Flow(graph))
    patterns = Patterns(grouping.flow)
    grouping.take(map(_spelled, patterns.across_modules()))
    grouping.take(modules(grouping.flow, patterns))
    grouping.take(map(_spelled, patterns.everywhere(grouping.contracted.group_of)))
    grouping.take(_rearrangements(grouping.flow))
    grouping.take_the_rest()
    grouping.fold_constants()
    return grouping.kernels()


class _Grouping:
    """The kernels so far."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.contracted = Contracted(flow)
        self.names: list[str] = []
        self.reasons: list[str] = []

    def take(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            members = self._fitting(candidate)
            if members is not None:
                self._add(candidate.operation, members, candidate.reason)

    def _add(self, name: str, members: Collection[int], reason: str) -> None:
        self.contracted.add(members)
        self.names.append(name)
        self.reasons.append(reason)

    def _fitting(self, candidate: Candidate) -> set[int] | None:
        """The candidate's operations without views that others need too; None if it may not be."""
        operations, flow = self.flow.operations, self.flow
        members = {i for i in candidate.members if not flow.of_state[i]}
        if any(i in self.contracted.group_of or is_random(operations[i]) for i in members):
            return None
        for index in sorted(members, reverse=True):
            op = operations[index]
            if not op.view or candidate.results.intersection(op.outputs):
                continue
            if flow.leaves(index, members):
                members.discard(index)
        leaving = {name for i in members for name in self._read_outside(i, members)}
        allowed = candidate.results or (leaving if len(leaving) == 1 else frozenset())
        if not leaving <= allowed or self._computes_aside(members, leaving):
            return None
        return members if self.contracted.allows(members) else None

    def _computes_aside(self, members: Collection[int], leaving: Collection[str]) -> bool:
        """Whether some of it does not serve the result."""
        operations, serving = self.flow.operations, set[int]()
        ends = leaving or operations[max(members, default=0)].outputs
        for index in sorted(members, reverse=True):
            read = not serving.isdisjoint(self.flow.users[index])
            if read or not set(ends).isdisjoint(operations[index].outputs):
                serving.add(index)
        return any(i not in serving and not operations[i].view for i in members)

    def _read_outside(self, index: int, members: Collection[int]) -> Iterator[str]:
        for name in self.flow.operations[index].outputs:
            readers = self.flow.consumers.get(name, ())
            if name in self.flow.returned or any(i not in members for i in readers):
                yield name

    def take_the_rest(self) -> None:
        """Every other operation that computes is a kernel by itself; constants come later."""
        for index, op in enumerate(self.flow.operations):
            free = index not in self.contracted.group_of and not op.view
            if free and not self._may_fold(index):
                name, reason = name_in_context(index, self.flow)
                self._add(name, (index,), reason)

    # --- constants --------------------------------------------------------------------------------

    def _may_fold(self, index: int) -> bool:
        free = index not in self.contracted.group_of
        return free and self.flow.constant[index] and not self.flow.of_state[index]

    def fold_constants(self) -> None:
        """A constant is made in the kernel that reads it; where several do, it is one itself."""
        flow, contracted = self.flow, self.contracted
        constants = [i for i in range(len(flow.operations)) if self._may_fold(i)]
        readers: dict[int, frozenset[int]] = {}
        for index in reversed(constants):
            found: set[int] = set()
            for user in flow.users[index]:
                found |= readers.get(user, frozenset({contracted.group_of.get(user, -1)}))
            if any(name in flow.returned for name in flow.operations[index].outputs):
                found.add(-1)
            readers[index] = frozenset(found)
        folded: dict[int, set[int]] = defaultdict(set)
        for index in constants:
            if len(readers[index]) == 1 and -1 not in readers[index]:
                folded[next(iter(readers[index]))].add(index)
        for group, members in folded.items():
            borrowed = any(reads_only_shape(flow.operations[i]) for i in members)
            if not borrowed or contracted.allows(members | contracted.groups[group]):
                contracted.extend(group, members)
        for cone in cones([i for i in constants if i not in contracted.group_of], flow):
            compute = sorted(i for i in cone if not flow.operations[i].view)
            if compute:
                self._add_cone(cone, compute)

    def _add_cone(self, cone: set[int], compute: list[int]) -> None:
        operations = self.flow.operations
        if not self.contracted.allows(cone):
            for index in compute:
                self._add(field_name(operations[index]), (index,), _CONSTANT)
            return
        self._add(constant_name(cone, self.flow), cone, _CONSTANT)

    # --- the result -------------------------------------------------------------------------------

    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels in an order in which they can run, the author's where there is a choice."""
        found = []
        for group in self._order():
            members = self.contracted.groups[group]
            compute = [self.flow.operations[i] for i in members if not self.flow.operations[i].view]
            everything = tuple(sorted(members | self._views_of_state(members)))
            found.append(
                Kernel(self.names[group], everything, self.reasons[group], main_kind(compute))
            )
        return tuple(found)

    def _views_of_state(self, members: Collection[int]) -> set[int]:
        views: set[int] = set()
        waiting = list(members)
        while waiting:
            for source in self.flow.sources[waiting.pop()]:
                if self.flow.of_state[source] and source not in views:
                    views.add(source)
                    waiting.append(source)
        return views

    def _order(self) -> list[int]:
        """Topological, smallest index first; loose views are nodes too."""
        flow, contracted = self.flow, self.contracted
        node_of = [contracted.group_of.get(i, -1 - i) for i in range(len(flow.operations))]
        needs: dict[int, set[int]] = {node: set() for node in node_of}
        feeds: dict[int, set[int]] = {node: set() for node in node_of}
        first: dict[int, int] = {}
        for index, node in enumerate(node_of):
            first.setdefault(node, index)
            for source in flow.sources[index]:
                if node_of[source] != node:
                    needs[node].add(node_of[source])
                    feeds[node_of[source]].add(node)
        ready = [(first[node], node) for node, sources in needs.items() if not sources]
        heapq.heapify(ready)
        order = []
        while ready:
            _, node = heapq.heappop(ready)
            order.append(node)
            for user in feeds[node]:
                needs[user].discard(node)
                if not needs[user]:
                    heapq.heappush(ready, (first[user], user))
        assert len(order) == len(needs), "kernels wait for each other"
        return [node for node in order if node >= 0]


_CONSTANT = "a constant that is not read by exactly one kernel"
_TELLING = ("contraction", "scan", "softmax", "normalization", "reduction", "pooling", "random",
            "other", "pointwise", "copy", "creation")  # fmt: skip


def main_kind(operations: Iterable[Operation]) -> str:
    """The kind that tells most about these operations together."""
    kinds = {kind(op) for op in operations}
    return next((label for label in _TELLING if label in kinds), "view")


# --- formulas --------------------------------------------------------------------------------


def _spelled(found: Found) -> Candidate:
    reason = f"spells {found.operation}: {found.formula}"
    return Candidate(found.operation, found.members, reason, found.results)


def _rearrangements(flow: Flow) -> Iterator[Candidate]:
    """Copies into another order that have a name, with the views around them."""
    for index, op in enumerate(flow.operations):
        if op.name in _REARRANGES and not op.view and not flow.constant[index]:
            found = rearranged(index, flow)
            if found is not None:
                reason = f"spells {found.operation}: {found.pattern}"
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
        if op.scopes and not flow.of_state[index]:
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
            reason = f"{scope.path} is a small module of class {scope.cls}"
            spelled = _spelled_by(compute, frozenset(members), flow, patterns)
            if spelled is not None:
                name = spelled[0]
                reason += f" that spells {name}: {spelled[1]}"
            yield Candidate(name, frozenset(members), reason)
        elif _is_biased_contraction(compute, scope, flow):
            reason = f"{scope.path} is one contraction with its own bias, of class {scope.cls}"
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
    states = [flow.graph.states.get(flow.base(name)) for name in compute[1].refs()]
    own = [s for s in states if s is not None and s.path.startswith(scope.path + ".")]
    return len(own) == 1 and compute[0].outputs[0] in {
        flow.base(name) for name in compute[1].refs()
    }
