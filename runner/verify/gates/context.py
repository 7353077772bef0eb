"""Defines what all gates of one verification share."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from runner.verify.findings import Findings
from runner.verify.gates.operation_identity import TensorMeta
from runner.verify.layout import Layout
from runner.verify.loading_files import AnyFiles
from runner.verify.runtime.disk_cache import DiskCache
from runner.verify.runtime.operation_watch import ComponentCall
from runner.verify.runtime.runner import ForwardRunner


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """How often each operation ran, by its name and attributes."""

    required: Counter[str]
    """Operations that compute something from an input or a weight."""
    all: Counter[str]
    """`required`, and those on constants or on empty tensors alone."""


@dataclass(frozen=True, slots=True)
class Contract:
    """Shapes, dtypes and strides of a component's own inputs."""

    inputs: tuple[TensorMeta, ...]
    strides: tuple[tuple[int, ...], ...]
    tensor_arguments: tuple[bool, ...]
    """For each argument, whether it is a tensor: no number, and no tuple of tensors."""
    operations: OperationCounts | None = None
    """Operations that it ran on them, without copies."""
    weights: frozenset[tuple[str, TensorMeta]] = frozenset()
    """Name, shape and dtype of each weight."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Path and text of each value that sets what it computes, for others' files."""
    plain_arguments: tuple[str, ...] = ()
    """Arguments that are no tensors, as text."""

    def has_inputs_of(self, call: ComponentCall) -> bool:
        """Return whether a call has inputs of the same shapes, dtypes and layouts."""
        shapes = [shape for shape, _ in self.inputs]
        return self.inputs == call.inputs and all(
            map(has_same_layout, shapes, self.strides, call.strides)
        )


def has_same_layout(
    shape: tuple[int, ...], first: tuple[int, ...] | list[int], second: tuple[int, ...] | list[int]
) -> bool:
    """Return whether strides agree in all dimensions of more than one element."""
    if 0 in shape:
        return True
    dimensions = [n for n, size in enumerate(shape) if size > 1]
    return len(first) == len(second) and all(first[n] == second[n] for n in dimensions)


@dataclass
class SelfTests:
    """Results of the self-tests so far."""

    contracts: dict[str, Contract] = field(default_factory=dict)
    not_finite: dict[str, str] = field(default_factory=dict)
    """Component -> reason; the original's values decide whether it is a fault."""
    unread_weights: dict[str, frozenset[str]] = field(default_factory=dict)
    """Kernel -> names of its weights that reach no output of its own."""
    reused: set[str] = field(default_factory=set)
    """Components whose run in a parent was their self-test."""

    def note_operations(self, component: str, operations: OperationCounts) -> None:
        """Add to a component's contract the operations that it runs on its own inputs."""
        self.contracts[component] = replace(self.contracts[component], operations=operations)


@dataclass(frozen=True, slots=True)
class Context:
    """A directory that is being judged, the means to run its files, and the results so far."""

    layout: Layout
    files: AnyFiles
    runner: ForwardRunner
    disk_cache: DiskCache
    findings: Findings
    tests: SelfTests = field(default_factory=SelfTests)

    @property
    def root(self) -> str | None:
        """Component file of the tree's root."""
        return self.layout.tree.root.path if self.layout.tree else None
