"""Determines the inputs, weights and outputs of a set of operations."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from runner.graph.distributions import Distribution, distributions
from runner.graph.ir import Graph, Scope, TensorSpec
from runner.graph.operations import constants, kind
from runner.graph.recognition.recognize import Kernel


@dataclass(frozen=True)
class Program:
    """A graph and its kernels, with lookups that are computed once."""

    graph: Graph
    kernels: tuple[Kernel, ...]

    @cached_property
    def producers(self) -> dict[str, int]:
        """Index of the operation that makes each value."""
        return self.graph.producers()

    @cached_property
    def consumers(self) -> dict[str, list[int]]:
        """Indices of the operations that read each value."""
        return self.graph.consumers()

    @cached_property
    def returned_values(self) -> frozenset[str]:
        """Values that the model returns."""
        return frozenset(self.graph.output_names())

    @cached_property
    def owner(self) -> dict[int, int]:
        """The kernel that each operation is in; views between kernels are in none."""
        return {i: k for k, kernel in enumerate(self.kernels) for i in kernel.members}

    @cached_property
    def repeated_views(self) -> frozenset[int]:
        """Views of weights and constants that several kernels contain."""
        times = Counter(i for kernel in self.kernels for i in kernel.members)
        return frozenset(i for i, count in times.items() if count > 1)

    @cached_property
    def constants(self) -> set[str]:
        """Values that are the same for all inputs."""
        return constants(self.graph, of_weights=True)

    @cached_property
    def fixed_values(self) -> set[str]:
        """Values that depend on no input and no weight."""
        return constants(self.graph)

    @cached_property
    def distributions(self) -> dict[str, Distribution]:
        """The distribution of each value's elements, with the author's own initial weights."""
        return distributions(self.graph)

    @cached_property
    def scopes(self) -> list[tuple[Scope, ...]]:
        """The module calls that each kernel is in, outermost first, not counting its constants."""
        return [self._scopes(kernel) for kernel in self.kernels]

    @cached_property
    def kernels_by_call(self) -> Counter[tuple[Scope, ...]]:
        """Number of kernels inside each module call, which is given by the calls around it."""
        return Counter(
            scopes[:depth] for scopes in self.scopes for depth in range(1, len(scopes) + 1)
        )

    def _scopes(self, kernel: Kernel) -> tuple[Scope, ...]:
        operations = [self.graph.operations[i] for i in kernel.members]
        varying = [
            op for op in operations if not self.constants.issuperset(filter(None, op.outputs))
        ]
        working = [op for op in varying if kind(op) not in {"view", "creation"}]
        core = [op for op in working if kind(op) != "copy"] or working or varying
        core = core or [op for op in operations if not op.view] or operations
        return shared_scopes(op.scopes for op in core)

    def spec(self, name: str) -> TensorSpec:
        return self.graph.values[name]

    def is_state(self, name: str) -> bool:
        return name in self.graph.states

    def is_weight(self, name: str) -> bool:
        """Return whether a value is a tensor of the model, and no constant that a file spells."""
        state = self.graph.states.get(name)
        return state is not None and (state.kind != "constant" or state.literal is None)


@dataclass(frozen=True, slots=True)
class Interface:
    """Names of the values at the boundary of a set of operations.

    Inputs are in the order of first use. An attention's are query, key and value, in this order; a
    rotation's are the tensor that it rotates, then its table.
    """

    inputs: tuple[str, ...]
    states: tuple[str, ...]
    """Parameters, buffers and constants that the operations read."""
    outputs: tuple[str, ...]
    """Values that others read, or that the model returns."""


def interface(program: Program, operations: Iterable[int]) -> Interface:
    """Return the inputs, weights and outputs of a set of operations."""
    indices = sorted(operations)
    inside = set(indices)
    computed: set[str] = set()
    inputs: dict[str, None] = {}
    states: dict[str, None] = {}
    for i in indices:
        op = program.graph.operations[i]
        for name in op.refs():
            if program.is_state(name):
                states[name] = None
            elif name not in computed:
                inputs[name] = None
        computed.update(op.outputs)
    operation = _kernel_operation(program, indices)
    if operation.endswith("attention"):
        operands = _in_operand_order(program, indices[-1], set(indices))
        inputs = dict.fromkeys((*(name for name in operands if name in inputs), *inputs))
    outputs = []
    for i in indices:
        for name in program.graph.operations[i].outputs:
            if i in program.repeated_views and name not in program.returned_values:
                continue
            read_outside = any(c not in inside for c in program.consumers.get(name, ()))
            if name and (read_outside or name in program.returned_values):
                outputs.append(name)
    if (
        not outputs and indices
    ):  # nobody reads the results: the operations still run, so the last one's are the outputs
        outputs = [name for name in program.graph.operations[indices[-1]].outputs if name]
    if operation == "rope":
        rotated_sizes = {program.spec(name).numel for name in outputs}
        inputs = dict.fromkeys(
            sorted(inputs, key=lambda n: program.spec(n).numel not in rotated_sizes)
        )
    return Interface(tuple(inputs), tuple(states), tuple(dict.fromkeys(outputs)))


def _kernel_operation(program: Program, indices: list[int]) -> str:
    """Return the operation of the kernel that consists of these operations; empty if none does."""
    kernel = program.owner.get(indices[-1]) if indices else None
    if kernel is None or program.kernels[kernel].members != tuple(indices):
        return ""
    return program.kernels[kernel].operation


def _in_operand_order(program: Program, index: int, unvisited: set[int]) -> Iterator[str]:
    """Yield the inputs in the order of the operands that lead to an operation.

    `unvisited` holds the operations still to visit; each is visited once.
    """
    unvisited.discard(index)
    for name in program.graph.operations[index].refs():
        producer = program.producers.get(name)
        if producer in unvisited:
            yield from _in_operand_order(program, producer, unvisited)
        else:
            yield name


def shared_scopes(paths: Iterable[tuple[Scope, ...]]) -> tuple[Scope, ...]:
    """Return the module calls that all of the paths begin with."""
    common: tuple[Scope, ...] | None = None
    for scopes in paths:
        if common is None:
            common = scopes
        same = 0
        while same < min(len(common), len(scopes)) and common[same] == scopes[same]:
            same += 1
        common = common[:same]
    return common or ()
