"""Operations are put together into kernels here, and a kernel's parts joined into a larger one."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from runner.graph.dataflow import Flow, GroupedFlow, values_read
from runner.graph.ir import Operation, Scope
from runner.graph.operations import constants, field_name, is_random, kind, reads_only_shape
from runner.graph.recognition.constants import cones, constant_name, expressions, is_argument
from runner.graph.recognition.operation_context import name_in_context


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


class Grouping:
    """The kernels so far, each by its number."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.contracted = GroupedFlow(flow)
        self.fixed = constants(flow.graph)
        """Values that depend on no input and no weight."""
        self.names: list[str] = []
        self.reasons: list[str] = []
        self.calls: dict[tuple[Scope, ...], set[int]] = {}
        """What each call of a module computes from what comes in, its children's calls included."""
        for index, op in enumerate(flow.operations):
            if not op.view and not flow.constant[index]:
                for depth in range(1, len(op.scopes) + 1):
                    self.calls.setdefault(op.scopes[:depth], set()).add(index)
        self.shown = Counter(_shows(op) for op in flow.operations if op.view)
        """How often one statement shows one value in one way: the turns of a loop."""

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
        members = {i for i in candidate.members if not flow.is_local[i]}
        if any(i in self.contracted.group_of or is_random(operations[i]) for i in members):
            return None
        if all(operations[i].view or self.fixed.issuperset(operations[i].outputs) for i in members):
            return None
        for index in sorted(members, reverse=True):
            op = operations[index]
            if not op.view or candidate.results.intersection(op.outputs):
                continue
            if flow.escapes(index, members):
                members.discard(index)
        leaving = self.results(members)
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

    def results(self, members: Collection[int]) -> set[str]:
        """The values of some operations that others read, or the model returns."""
        return {name for i in members for name in self._read_outside(i, members)}

    def _read_outside(self, index: int, members: Collection[int]) -> Iterator[str]:
        for name in self.flow.operations[index].outputs:
            readers = self.flow.consumers.get(name, ())
            if name in self.flow.returned or any(i not in members for i in readers):
                yield name

    def take_the_rest(self) -> None:
        """Every other operation that computes is a kernel by itself; constants come later."""
        for index, op in enumerate(self.flow.operations):
            free = index not in self.contracted.group_of and not self.flow.is_local[index]
            if free and not op.view and not self._may_fold(index):
                name, reason = name_in_context(index, self.flow)
                self._add(name, (index,), reason)

    # --- kernels that join ------------------------------------------------------------------------

    def alive(self) -> list[int]:
        """The kernels, in the order of their last operations."""
        groups = self.contracted.groups
        return sorted((g for g, m in enumerate(groups) if m), key=lambda g: max(groups[g]))

    def compute(self, group: int) -> list[Operation]:
        """A kernel's operations that move or compute something, in order."""
        members = sorted(self.contracted.groups[group])
        return [op for op in map(self.flow.operations.__getitem__, members) if not op.view]

    def kind(self, group: int) -> str:
        return main_kind(self.compute(group))

    def maker(self, name: str) -> tuple[str, int | None]:
        """The value behind views that are in no kernel, and the kernel that computes it."""
        flow, group_of = self.flow, self.contracted.group_of
        while (index := flow.producer.get(name)) is not None:
            if index in group_of or not flow.operations[index].view:
                return name, group_of.get(index)
            name = next(flow.operations[index].refs())
        return name, None

    def operands(self, group: int) -> dict[str, int | None]:
        """What a kernel reads and the model does not own: each value's maker; None for inputs."""
        members = self.contracted.groups[group]
        found: dict[str, int | None] = {}
        for index in sorted(members):
            for name in values_read(self.flow.operations[index]):
                value, maker = self.maker(name)
                producer = self.flow.producer.get(value)
                fixed = producer is not None and maker is None and self.flow.constant[producer]
                if producer not in members and value not in self.flow.graph.states and not fixed:
                    found[value] = maker
        return found

    def only_reader(self, group: int) -> int | None:
        """The one kernel that reads a kernel's results, if there is one."""
        found = (r for index in self.contracted.groups[group] for r in self._read_by(index))
        return _only(reader for reader in found if reader != group)

    def readers(self, group: int) -> frozenset[int]:
        """The kernels that read a kernel's results; -1 where the model returns one."""
        members = self.contracted.groups[group]
        return frozenset(r for index in members for r in self._read_by(index)) - {group}

    def only_reader_of(self, name: str) -> int | None:
        """The one kernel that reads a value, or another that the same operation makes."""
        return _only(self._read_by(self.flow.producer[name]))

    def _read_by(self, index: int) -> Iterator[int]:
        """Constants that borrow a value's shape are read by whoever reads them."""
        if self.flow.returned.intersection(self.flow.operations[index].outputs):
            yield -1
        for user in self.flow.users[index]:
            group = self.contracted.group_of.get(user)
            if group is None:
                yield from self._read_by(user)
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
        """One kernel of several and of what lies between them; False where the flow forbids it.

        `results`: how many values may be read outside, if none of the kernels had more.
        `views`: whether it takes those views of what comes in that serve it alone.
        """
        contracted = self.contracted
        allowed = max(results, *(len(self.results(contracted.groups[g])) for g in groups))
        members = set().union(*(contracted.groups[g] for g in groups))
        members |= self._between(members)
        members |= self._views_before(members) if views else set()
        if len(self.results(members)) > allowed or not contracted.allows(members):
            return False
        kept = min(groups)
        for group in groups:
            contracted.groups[group] = set()
        for index in members:
            contracted.group_of.pop(index, None)
        contracted.extend(kept, members)
        self.names[kept], self.reasons[kept] = name, reason
        return True

    def _between(self, members: Collection[int]) -> set[int]:
        """Views, and constants that borrow a shape, which only these operations read."""
        waiting, below = list(members), set[int]()
        while waiting:
            for user in self.flow.users[waiting.pop()]:
                if user not in self.contracted.group_of and user not in below:
                    below.add(user)
                    waiting.append(user)
        inside = set[int]()
        for index in sorted(below, reverse=True):
            if not self.flow.escapes(index, inside.union(members)):
                inside.add(index)
        return inside

    def _views_before(self, members: set[int]) -> set[int]:
        """Views of what comes in that only these operations read, up to the first of their own.

        That is one in a statement of theirs, or in a module call of which they are all, or one that
        repeats what it shows: the keys of grouped queries.
        """
        flow, inside = self.flow, set(members)
        working = (i for i in members if not flow.operations[i].view and not flow.constant[i])
        compute = [flow.operations[i] for i in working]
        statements = {_statement(op) for op in compute}
        calls = {op.scopes for op in compute if op.scopes and self.calls[op.scopes] <= members}
        for index in sorted(members, reverse=True):
            for source in flow.sources[index]:
                chain = self._views_of_input(source, inside)
                shown = [flow.operations[i] for i in chain]
                own = [
                    n
                    for n, op in enumerate(shown, 1)
                    if op.scopes in calls
                    or _statement(op) in statements
                    or self._repeats(op)
                    or (op.name == "unsqueeze" and any(map(self._repeats, shown[:n])))
                ]
                inside.update(chain[: max(own, default=0)])
        return inside - members

    def _views_of_input(self, index: int, inside: set[int]) -> list[int]:
        """A view that only these operations read, the view that it shows, and so on."""
        flow, chain = self.flow, list[int]()
        while index not in self.contracted.group_of and flow.operations[index].view:
            fixed = flow.is_local[index] or flow.constant[index]
            if fixed or index in inside or flow.escapes(index, {*inside, *chain}):
                break
            if self.shown[_shows(flow.operations[index])] >= _TURNS:
                break  # each turn takes its own part, and all turns are one workload
            chain.append(index)
            if not flow.sources[index]:
                break
            index = flow.sources[index][0]
        return chain

    def _repeats(self, op: Operation) -> bool:
        """Whether a view shows an element more than once, as its argument does not."""
        values = self.flow.graph.values
        shown, of = values[op.outputs[0]], values[next(op.refs())]
        return op.name == "expand" and shown.numel > of.numel

    # --- constants --------------------------------------------------------------------------------

    def _may_fold(self, index: int) -> bool:
        free = index not in self.contracted.group_of
        return free and self.flow.constant[index] and not self.flow.is_local[index]

    def fold_constants(self) -> None:
        """Make each constant in the kernel that takes it in, else in a kernel of its own."""
        flow, contracted = self.flow, self.contracted
        left = [i for i in range(len(flow.operations)) if self._may_fold(i)]
        readers: dict[int, frozenset[int]] = {}
        for index in reversed(left):
            found: set[int] = set()
            for user in flow.users[index]:
                found |= readers.get(user, frozenset({contracted.group_of.get(user, -1)}))
            if any(name in flow.returned for name in flow.operations[index].outputs):
                found.add(-1)
            readers[index] = frozenset(found)
        folded: dict[int, set[int]] = defaultdict(set)
        for index in left:
            if len(readers[index]) == 1 and -1 not in readers[index]:
                folded[next(iter(readers[index]))].add(index)
        for group, members in folded.items():
            for expression in expressions(members, flow):
                if self._takes_in(group, expression):
                    contracted.extend(group, expression)
        for cone in cones([i for i in left if i not in contracted.group_of], flow):
            compute = sorted(i for i in cone if not flow.operations[i].view)
            if compute:
                self._add_cone(cone, compute)

    def _takes_in(self, group: int, expression: set[int]) -> bool:
        """Whether a kernel makes a constant itself: arguments, a mask or a table of its formula."""
        name = self.names[group]
        own = name in _WITH_TABLES or name.endswith("attention")
        if not own and not is_argument(expression, self.kind(group), self.flow):
            return False
        borrowed = any(reads_only_shape(self.flow.operations[i]) for i in expression)
        return not borrowed or self.contracted.allows(expression | self.contracted.groups[group])

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
                if self.flow.is_local[source] and source not in views:
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


def _only(readers: Iterable[int]) -> int | None:
    """The reader where there is one alone; none of many is asked for after the second."""
    found: set[int] = set()
    for reader in readers:
        found.add(reader)
        if reader < 0 or len(found) > 1:
            return None
    return next(iter(found), None)


_TURNS = 8
"""Parts of one value that one statement takes: as many are a loop."""


def _shows(op: Operation) -> tuple[object, ...]:
    """What a view shows, how, and where the author wrote so."""
    return (next(op.refs(), ""), op.name, *_statement(op))


def _statement(op: Operation) -> tuple[object, ...]:
    """The statement that an operation stands in."""
    return (op.scopes, op.origin.file, op.origin.statement) if op.origin else (op.scopes, "", 0)


_WITH_TABLES = {"rope", "sinusoidal_embedding", "segment_sum", "relative_position_bias"}
"""Operations whose formula holds a table or a mask of its own, as an attention's does."""
_CONSTANT = "a constant that is no mere argument of the one kernel that reads it"
_TELLING = ("contraction", "scan", "softmax", "normalization", "reduction", "pooling", "random",
            "other", "pointwise", "copy", "creation")  # fmt: skip


def main_kind(operations: Iterable[Operation]) -> str:
    """The kind that tells most about these operations together."""
    kinds = {kind(op) for op in operations}
    return next((label for label in _TELLING if label in kinds), "view")
