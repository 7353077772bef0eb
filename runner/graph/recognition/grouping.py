"""Groups operations into kernels, and joins kernels into larger ones."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from runner.graph.dataflow import Flow, GroupedFlow, values_read
from runner.graph.ir import Operation, Scope
from runner.graph.operations import constants, field_name, is_random, kind, reads_only_shape
from runner.graph.recognition.constants import (
    VaryingCode,
    connected_constants,
    constant_cones,
    constant_name,
    is_argument,
)
from runner.graph.recognition.operation_context import name_in_context


@dataclass(frozen=True, slots=True)
class Kernel:
    """One logical operation, as a set of graph operations."""

    operation: str
    """Its name in the field: `conv2d`, `rms_norm`."""
    members: tuple[int, ...]
    """Sorted indices of its operations.

    Each operation that computes is in one kernel; a view of a weight is in each kernel that reads
    it.
    """
    reason: str
    """Why these operations are one kernel: a sentence for the log."""
    kind: str
    """The kind of its main operation, such as `contraction`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Operations that become one kernel if the data flow allows it."""

    operation: str
    members: frozenset[int]
    reason: str
    results: frozenset[str] = frozenset()
    """Values that may be read outside; if empty, one value may be."""
    is_class_name: bool = False
    """Whether `operation` is the name of the author's class, whatever that computes."""


class Grouping:
    """The kernels of a program while they are built; each kernel has a number, its group."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.contracted = GroupedFlow(flow)
        self.fixed_values = constants(flow.graph)
        """Values that depend on no input and no weight."""
        self.names: list[str] = []
        self.reasons: list[str] = []
        self.class_named: set[int] = set()
        """Kernels that have the name of the author's class."""
        self.calls: dict[tuple[Scope, ...], set[int]] = {}
        """For each module call, the operations in it that depend on an input or a parameter; those
        of nested calls are included."""
        for index, op in enumerate(flow.operations):
            if not op.view and not flow.constant[index]:
                for depth in range(1, len(op.scopes) + 1):
                    self.calls.setdefault(op.scopes[:depth], set()).add(index)
        self.view_counts = Counter(_view_key(op) for op in flow.operations if op.view)
        """Number of views of one kind that one statement takes of one value; a loop takes many."""

    def add_candidates(self, candidates: Iterable[Candidate]) -> None:
        """Make a kernel of each candidate that the data flow allows."""
        for candidate in candidates:
            members = self._fit_candidate(candidate)
            if members is not None:
                self._add_kernel(candidate.operation, members, candidate.reason)
                if candidate.is_class_name:
                    self.class_named.add(len(self.names) - 1)

    def _add_kernel(self, name: str, members: Collection[int], reason: str) -> None:
        self.contracted.add(members)
        self.names.append(name)
        self.reasons.append(reason)

    def _fit_candidate(self, candidate: Candidate) -> set[int] | None:
        """Return a candidate's operations without the views that others read too.

        Returns None if it cannot be a kernel: an operation is taken, it computes nothing, other
        operations read more than its results, or kernels would wait for each other.
        """
        operations, flow = self.flow.operations, self.flow
        members = {i for i in candidate.members if not flow.is_local[i]}
        if any(i in self.contracted.group_of or is_random(operations[i]) for i in members):
            return None
        if all(
            operations[i].view or self.fixed_values.issuperset(operations[i].outputs)
            for i in members
        ):
            return None
        for index in sorted(members, reverse=True):
            op = operations[index]
            if not op.view or candidate.results.intersection(op.outputs):
                continue
            if flow.escapes(index, members):
                members.discard(index)
        results_outside = self.results(members)
        allowed_results = candidate.results or (
            results_outside if len(results_outside) == 1 else frozenset()
        )
        if not results_outside <= allowed_results or self._has_unused_work(
            members, results_outside
        ):
            return None
        return members if self.contracted.allows(members) else None

    def _has_unused_work(self, members: Collection[int], results_outside: Collection[str]) -> bool:
        """Return whether some of the operations do not contribute to the result."""
        operations, needed = self.flow.operations, set[int]()
        ends = results_outside or operations[max(members, default=0)].outputs
        for index in sorted(members, reverse=True):
            is_read = not needed.isdisjoint(self.flow.users[index])
            if is_read or not set(ends).isdisjoint(operations[index].outputs):
                needed.add(index)
        return any(i not in needed and not operations[i].view for i in members)

    def results(self, members: Collection[int]) -> set[str]:
        """Return the values of some operations that others read, or that the model returns."""
        return set(self.flow.results(members))

    def add_remaining_operations(self) -> None:
        """Make a kernel of every remaining operation that computes; constants come later."""
        for index, op in enumerate(self.flow.operations):
            is_free = index not in self.contracted.group_of and not self.flow.is_local[index]
            if is_free and not op.view and not self._may_fold(index):
                name, reason = name_in_context(index, self.flow)
                self._add_kernel(name, (index,), reason)

    # --- kernels that join ------------------------------------------------------------------------

    def groups_in_order(self) -> list[int]:
        """Return the numbers of all kernels, in the order of their last operations."""
        groups = self.contracted.groups
        return sorted((g for g, m in enumerate(groups) if m), key=lambda g: max(groups[g]))

    def compute_operations(self, group: int) -> list[Operation]:
        """Return a kernel's operations that are no views, in order."""
        members = sorted(self.contracted.groups[group])
        return [op for op in map(self.flow.operations.__getitem__, members) if not op.view]

    def role(self, group: int) -> str:
        """Return the operator or formula that a kernel is; empty if only a class names it.

        An author's class `Softmax` may compute anything.
        """
        return "" if group in self.class_named else self.names[group]

    def kind(self, group: int) -> str:
        """Return the kind of a kernel's main operation."""
        return main_kind(self.compute_operations(group))

    def maker(self, name: str) -> tuple[str, int | None]:
        """Return the value behind views that are in no kernel, and the kernel that computes it."""
        flow, group_of = self.flow, self.contracted.group_of
        while (index := flow.producer.get(name)) is not None:
            if index in group_of or not flow.operations[index].view:
                return name, group_of.get(index)
            name = next(flow.operations[index].refs())
        return name, None

    def operands(self, group: int) -> dict[str, int | None]:
        """Return the values that a kernel reads, without the model's own tensors and constants.

        Each value has the kernel that computes it; None for the model's inputs.
        """
        members = self.contracted.groups[group]
        makers: dict[str, int | None] = {}
        for index in sorted(members):
            for name in values_read(self.flow.operations[index]):
                value, maker = self.maker(name)
                producer = self.flow.producer.get(value)
                is_constant = (
                    producer is not None and maker is None and self.flow.constant[producer]
                )
                if (
                    producer not in members
                    and value not in self.flow.graph.states
                    and not is_constant
                ):
                    makers[value] = maker
        return makers

    def only_reader(self, group: int) -> int | None:
        """Return the only kernel that reads a kernel's results; None if it is not one."""
        readers = (
            r for index in self.contracted.groups[group] for r in self._groups_reading(index)
        )
        return _single_reader(reader for reader in readers if reader != group)

    def readers(self, group: int) -> frozenset[int]:
        """Return the kernels that read a kernel's results; -1 if the model returns one."""
        members = self.contracted.groups[group]
        return frozenset(r for index in members for r in self._groups_reading(index)) - {group}

    def only_reader_of(self, name: str) -> int | None:
        """Return the only kernel that reads a value, or another output of the same operation."""
        return _single_reader(self._groups_reading(self.flow.producer[name]))

    def _groups_reading(self, index: int) -> Iterator[int]:
        """Yield the kernels that read an operation's values; -1 if the model returns one.

        An operation outside of all kernels, such as a view, stands for the kernels that read it.
        """
        if self.flow.returned.intersection(self.flow.operations[index].outputs):
            yield -1
        for user in self.flow.users[index]:
            group = self.contracted.group_of.get(user)
            if group is None:
                yield from self._groups_reading(user)
            else:
                yield group

    def join(
        self,
        groups: Collection[int],
        name: str,
        reason: str,
        results: int = 1,
        *,
        views: bool = True,
    ) -> bool:
        """Join several kernels, and the operations between them, into one; False if impossible.

        `results` is how many values may be read outside, unless a kernel had more already. `views`
        says whether to include the views of its inputs that only this kernel reads.
        """
        contracted = self.contracted
        most_results = max(results, *(len(self.results(contracted.groups[g])) for g in groups))
        members = set().union(*(contracted.groups[g] for g in groups))
        members |= self._operations_between(members)
        members |= self._views_before(members) if views else set()
        if len(self.results(members)) > most_results or not contracted.allows(members):
            return False
        target = min(groups)
        for group in groups:
            contracted.groups[group] = set()
        for index in members:
            contracted.group_of.pop(index, None)
        contracted.extend(target, members)
        self.names[target], self.reasons[target] = name, reason
        self.class_named.discard(target)
        return True

    def _operations_between(self, members: Collection[int]) -> set[int]:
        """Return views, and constants that borrow a shape, that only these operations read."""
        waiting, users_below = list(members), set[int]()
        while waiting:
            for user in self.flow.users[waiting.pop()]:
                if user not in self.contracted.group_of and user not in users_below:
                    users_below.add(user)
                    waiting.append(user)
        inside = set[int]()
        for index in sorted(users_below, reverse=True):
            if not self.flow.escapes(index, inside.union(members)):
                inside.add(index)
        return inside

    def _views_before(self, members: set[int]) -> set[int]:
        """Return the views of inputs that belong to these operations, and the views after them.

        Only these operations may read them. A view belongs to them if it is in one of their
        statements, or in a module call that they make up entirely, or if it repeats elements (as
        the keys of grouped queries).
        """
        flow, inside = self.flow, set(members)
        compute_indices = (
            i for i in members if not flow.operations[i].view and not flow.constant[i]
        )
        compute = [flow.operations[i] for i in compute_indices]
        statements = {_statement_key(op) for op in compute}
        calls = {op.scopes for op in compute if op.scopes and self.calls[op.scopes] <= members}
        for index in sorted(members, reverse=True):
            for source in flow.sources[index]:
                chain = self._views_of_input(source, inside)
                views = [flow.operations[i] for i in chain]
                ends = [
                    n
                    for n, op in enumerate(views, 1)
                    if op.scopes in calls
                    or _statement_key(op) in statements
                    or self._repeats(op)
                    or (op.name == "unsqueeze" and any(map(self._repeats, views[:n])))
                ]
                inside.update(chain[: max(ends, default=0)])
        return inside - members

    def _views_of_input(self, index: int, inside: set[int]) -> list[int]:
        """Return a view that only these operations read, the view that it reads, and so on."""
        flow, chain = self.flow, list[int]()
        while index not in self.contracted.group_of and flow.operations[index].view:
            is_fixed = flow.is_local[index] or flow.constant[index]
            if is_fixed or index in inside or flow.escapes(index, {*inside, *chain}):
                break
            if self.view_counts[_view_key(flow.operations[index])] >= _FEWEST_LOOP_VIEWS:
                break  # a loop's view: without it, all turns of the loop are one workload
            chain.append(index)
            if not flow.sources[index]:
                break
            index = flow.sources[index][0]
        return chain

    def _repeats(self, op: Operation) -> bool:
        """Return whether a view shows an element more than once, as its argument does not."""
        values = self.flow.graph.values
        output, operand = values[op.outputs[0]], values[next(op.refs())]
        return op.name == "expand" and output.numel > operand.numel

    # --- constants --------------------------------------------------------------------------------

    def _may_fold(self, index: int) -> bool:
        is_free = index not in self.contracted.group_of
        return is_free and self.flow.constant[index] and not self.flow.is_local[index]

    def fold_constants(self) -> None:
        """Put each constant into the kernel that can compute it, else into a kernel of its own."""
        flow, contracted = self.flow, self.contracted
        foldable = [i for i in range(len(flow.operations)) if self._may_fold(i)]
        readers: dict[int, frozenset[int]] = {}
        for index in reversed(foldable):
            reader_groups: set[int] = set()
            for user in flow.users[index]:
                reader_groups |= readers.get(user, frozenset({contracted.group_of.get(user, -1)}))
            if any(name in flow.returned for name in flow.operations[index].outputs):
                reader_groups.add(-1)
            readers[index] = frozenset(reader_groups)
        folded: dict[int, set[int]] = defaultdict(set)
        for index in foldable:
            if len(readers[index]) == 1 and -1 not in readers[index]:
                folded[next(iter(readers[index]))].add(index)
        for group, members in folded.items():
            for expression in connected_constants(members, flow):
                if self._can_compute(group, expression):
                    contracted.extend(group, expression)
        varying = VaryingCode.of(flow)
        constants = [i for i in foldable if i not in contracted.group_of]
        for cone in constant_cones(constants, flow, varying):
            compute = sorted(i for i in cone if not flow.operations[i].view)
            if compute:
                self._add_cone(cone, compute, varying)

    def _can_compute(self, group: int, expression: set[int]) -> bool:
        """Return whether a kernel computes a constant itself.

        The constant is then an argument, or a mask or a table of the kernel's formula. One that is
        computed from an entry of a table is neither: steps that read other entries are equal if
        they are given its result.
        """
        if any(self.flow.is_table_entry[i] for e in expression for i in self.flow.sources[e]):
            return False
        name = self.names[group]
        has_tables = name in _WITH_TABLES or name.endswith("attention")
        if not has_tables and not is_argument(expression, self.kind(group), self.flow):
            return False
        borrows_shape = any(reads_only_shape(self.flow.operations[i]) for i in expression)
        return not borrows_shape or self.contracted.allows(
            expression | self.contracted.groups[group]
        )

    def _add_cone(self, cone: set[int], compute: list[int], varying: VaryingCode) -> None:
        operations = self.flow.operations
        if not self.contracted.allows(cone):
            for index in compute:
                self._add_kernel(field_name(operations[index]), (index,), _CONSTANT)
            return
        self._add_kernel(constant_name(cone, self.flow, varying), cone, _CONSTANT)

    # --- the result -------------------------------------------------------------------------------

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the kernels in an order in which they can run, close to the author's."""
        kernels = []
        for group in self._topological_order():
            members = self.contracted.groups[group]
            compute = [self.flow.operations[i] for i in members if not self.flow.operations[i].view]
            all_members = tuple(sorted(members | self._views_of_state(members)))
            kernels.append(
                Kernel(self.names[group], all_members, self.reasons[group], main_kind(compute))
            )
        return tuple(kernels)

    def _views_of_state(self, members: Collection[int]) -> set[int]:
        """Return the views of parameters and buffers that some operations read."""
        views: set[int] = set()
        waiting = list(members)
        while waiting:
            for source in self.flow.sources[waiting.pop()]:
                if self.flow.is_local[source] and source not in views:
                    views.add(source)
                    waiting.append(source)
        return views

    def _topological_order(self) -> list[int]:
        """Return the kernels in topological order, smallest index first.

        Views outside of kernels are nodes of the sort, too.
        """
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


def _single_reader(readers: Iterable[int]) -> int | None:
    """Return the reader if there is exactly one, and it is a kernel.

    It stops at the second reader, since iterating over all of them is slow.
    """
    distinct: set[int] = set()
    for reader in readers:
        distinct.add(reader)
        if reader < 0 or len(distinct) > 1:
            return None
    return next(iter(distinct), None)


_FEWEST_LOOP_VIEWS = 8
"""Number of views of one value by one statement from which on the statement is in a loop."""


def _view_key(op: Operation) -> tuple[object, ...]:
    """Return a key for a view: the value that it shows, its operator, and its statement."""
    return (next(op.refs(), ""), op.name, *_statement_key(op))


def _statement_key(op: Operation) -> tuple[object, ...]:
    """Return a key for the statement that an operation is written in."""
    return (op.scopes, op.origin.file, op.origin.statement) if op.origin else (op.scopes, "", 0)


_WITH_TABLES = {"rope", "sinusoidal_embedding", "segment_sum", "relative_position_bias"}
"""Operations whose formula contains a table or a mask, as an attention's does."""
_CONSTANT = "a constant that is no mere argument of the one kernel that reads it"
_KINDS_BY_IMPORTANCE = ("contraction", "scan", "softmax", "normalization", "reduction", "pooling",
                        "random", "other", "pointwise", "copy", "creation")  # fmt: skip
"""Kinds of operations, the one that says most about a kernel first."""


def main_kind(operations: Iterable[Operation]) -> str:
    """Return the kind that says most about these operations together."""
    kinds = {kind(op) for op in operations}
    return next((label for label in _KINDS_BY_IMPORTANCE if label in kinds), "view")
