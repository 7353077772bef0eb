"""Records which operation reads which value, also for operations that are merged into groups."""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from typing import Protocol

from runner.graph.ir import Graph, Operation
from runner.graph.operations import is_random, reads_only_shape


class Flow:
    """A graph's data flow by operation index, computed once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.operations = graph.operations
        self.producer = graph.producers()
        self.consumers = graph.consumers()
        self.returned = frozenset(graph.output_names())
        self.sources: list[tuple[int, ...]] = []
        """For each operation, the operations whose values it reads."""
        self.users: list[tuple[int, ...]] = []
        """For each operation, the operations that read its values."""
        for op in graph.operations:
            producers = (self.producer[name] for name in op.refs() if name in self.producer)
            self.sources.append(tuple(dict.fromkeys(producers)))
            readers = (i for name in op.outputs for i in self.consumers.get(name, ()))
            self.users.append(tuple(dict.fromkeys(readers)))
        self._keep_drawing_in_order()
        self.constant = self._answer_in_order(self._is_constant)
        """For each operation, whether it depends on no input and no parameter, as a mask does."""
        self.is_local = self._answer_in_order(self._can_be_local)
        """For each operation, whether every kernel that needs its value can make it again: views of
        parameters, buffers and constants, and arithmetic on single numbers that the program writes
        out."""
        self.is_table_entry = [op.view and self._is_entry(op) for op in self.operations]
        """For each operation, whether it shows one number of a table of the model."""
        inputs = {graph_input.name for graph_input in graph.inputs}
        self.is_input_free = self._answer_in_order(
            lambda op, answers: (
                not is_random(op)
                and inputs.isdisjoint(op.refs())
                and all(answers[self.producer[n]] for n in op.refs() if n in self.producer)
            )
        )
        """For each operation, whether it depends on no input."""

    def _keep_drawing_in_order(self) -> None:
        """Make each operation that draws random numbers wait for the previous one that does."""
        random = [i for i, op in enumerate(self.operations) if is_random(op)]
        for before, after in pairwise(random):
            self.users[before] = tuple(dict.fromkeys((*self.users[before], after)))
            self.sources[after] = tuple(dict.fromkeys((*self.sources[after], before)))

    def escapes(self, index: int, inside: Collection[int]) -> bool:
        """Return whether a value of this operation is returned or read outside of `inside`."""
        op = self.operations[index]
        return any(name in self.returned for name in op.outputs) or any(
            user not in inside for user in self.users[index]
        )

    def results(self, inside: Collection[int]) -> list[str]:
        """Return the values of some operations that others read, or that the model returns."""
        return [
            name
            for index in sorted(inside)
            for name in self.operations[index].outputs
            if name in self.returned
            or any(user not in inside for user in self.consumers.get(name, ()))
        ]

    def base(self, name: str) -> str:
        """Return the value that a chain of views, of any length, shows."""
        while name in self.producer:
            op = self.operations[self.producer[name]]
            source = next(op.refs(), None)
            if not op.view or source is None:
                break
            name = source
        return name

    def _answer_in_order(self, rule: Callable[[Operation, list[bool]], bool]) -> list[bool]:
        """Return a rule's answer for each operation; it reads the answers for earlier ones."""
        answers: list[bool] = []
        for op in self.operations:
            answers.append(rule(op, answers))
        return answers

    def _can_be_local(self, op: Operation, answers: list[bool]) -> bool:
        if self._is_number(op) and not op.view:
            return all(
                answers[self.producer[name]] and self._is_literal_or_made(self.base(name))
                if name in self.producer
                else self._is_literal(name)
                for name in op.refs()
            )
        source = next(op.refs(), None)
        if not op.view or source is None:
            return False
        return source in self.graph.states or (
            source in self.producer and answers[self.producer[source]]
        )

    def _is_number(self, op: Operation) -> bool:
        if not op.outputs[0] or not self.constant[self.producer[op.outputs[0]]]:
            return False
        single = all(self.graph.values[name].shape == () for name in op.outputs if name)
        return single and self.returned.isdisjoint(op.outputs)

    def _is_entry(self, op: Operation) -> bool:
        base = self.base(op.outputs[0])
        return self._is_number(op) and not self._is_literal_or_made(base)

    def _is_literal_or_made(self, base: str) -> bool:
        """Return whether a value is no table of the model, of which a number is one entry."""
        return base not in self.graph.states or self._is_literal(base)

    def _is_literal(self, name: str) -> bool:
        state = self.graph.states.get(name)
        return state is not None and state.recipe is None and state.literal is not None

    def _is_constant(self, op: Operation, answers: list[bool]) -> bool:
        if is_random(op):
            return False
        for name in values_read(op):
            state = self.graph.states.get(name)
            if state is not None and state.kind != "parameter":
                continue
            if name not in self.producer or not answers[self.producer[name]]:
                return False
        return True


def values_read(op: Operation) -> Iterator[str]:
    """Yield the values whose numbers, and not only whose shape, an operation reads."""
    for position, name in enumerate(op.refs()):
        if position == 0 and reads_only_shape(op):
            continue
        if position > 0 and op.view:
            return
        yield name


class NumberedFlow(Protocol):
    """A data flow of numbered steps, which are operations or kernels."""

    users: list[tuple[int, ...]]
    """For each step, the steps that read its values."""


class GroupedFlow:
    """A data flow in which groups of steps are merged into one node each, without a cycle."""

    def __init__(self, flow: NumberedFlow) -> None:
        self.flow = flow
        self.group_of: dict[int, int] = {}
        self.groups: list[set[int]] = []

    def add(self, members: Iterable[int]) -> int:
        """Make a group of steps that are in no group yet; return its number. `allows` must hold."""
        self.groups.append(set())
        return self.extend(len(self.groups) - 1, members)

    def extend(self, group: int, members: Iterable[int]) -> int:
        """Add steps to a group and return the group's number."""
        for index in members:
            assert index not in self.group_of
            self.group_of[index] = group
            self.groups[group].add(index)
        return group

    def allows(self, members: Collection[int]) -> bool:
        """Return whether merging the members keeps the flow free of cycles.

        A path that leaves the members and comes back makes a cycle. The search treats every
        existing group as one node, since two groups that are fine by themselves can still wait for
        each other.
        """
        last_member = max(members)
        users = self.flow.users
        queue = [user for index in members for user in users[index] if user not in members]
        visited: set[int] = set()
        while queue:
            index = queue.pop()
            if index in visited:
                continue
            group = self.group_of.get(index)
            node = {index} if group is None else self.groups[group]
            visited |= node
            if min(node) > last_member:
                continue
            for member in node:
                for user in users[member]:
                    if user in members:
                        return False
                    if user not in visited:
                        queue.append(user)
        return True
