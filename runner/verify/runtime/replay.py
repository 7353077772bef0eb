"""Runs a parent again with one of its components wrong.

A recording holds each component's output in a forward that runs anyway. In a replay, a component
whose inputs are unchanged returns its recorded output: only those downstream of the wrong one run.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from runner.torch_internals import without_modes
from runner.verify.gates.compare import are_identical
from runner.verify.gates.operation_identity import TensorMeta, meta_of
from runner.verify.runtime.disk_cache import DiskCache, size_of
from runner.verify.runtime.forward_wrapping import Forward, wrap_forwards
from runner.verify.runtime.generators import generator_states, set_generators
from runner.verify.runtime.output_leaves import tensors


@dataclass(frozen=True, slots=True)
class ReplayCall:
    """One call of a component that a mutant replaces."""

    compute_right: Callable[[], Any]
    """Returns the right component's output on these arguments."""
    forward: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


WrongKernel = Callable[[ReplayCall], Any]
"""A wrong component: a function from a call to its output."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a component in a recording."""

    path: str
    """The module's path in its parent."""
    arguments: tuple[Any, ...]
    """Arguments, with tensors on the meta device: only shape, dtype and stride."""
    keywords: dict[str, Any]
    outputs: tuple[TensorMeta, ...]
    output: object
    """The output, in memory, or on disk if it is large."""
    generators: tuple[torch.Tensor, ...]
    """States of the random number generators at the beginning of the call."""


@dataclass(slots=True)
class ReplayOutcome:
    """Effect of wrong values on a parent."""

    output: Any = None
    is_changed: bool = False
    """Whether a wrong component gave another output than the right one."""
    reaches_output: bool = False
    """Whether wrong values are in the parent's output."""
    reaches_component: bool = False
    """Whether a component was called with wrong values."""
    absorbed_by: list[str] = field(default_factory=list)
    """Components that were called with wrong values and gave their usual output."""


class Recording:
    """Outputs of the components of one parent in one forward."""

    def __init__(self, modules: dict[str, nn.Module], disk_cache: DiskCache, device: str) -> None:
        self.calls: list[RecordedCall] = []
        self._modules = modules
        self._disk_cache = disk_cache
        self._device = device
        self._stored_versions: list[tuple[torch.Tensor, int]] = []
        self._bytes = 0

    def record_calls(self) -> AbstractContextManager[None]:
        """Return a context that records the forward that runs in its body."""
        return wrap_forwards(self._modules, self._recorder)

    def replay(self, run: Callable[[], Any], mutants: dict[str, WrongKernel]) -> ReplayOutcome:
        """Run the parent with these components wrong; raise the errors that wrong values cause."""
        outcome, dirty, count = (
            ReplayOutcome(),
            set[StorageWeakRef](),
            iter(range(len(self.calls))),
        )
        is_intact = all(tensor._version == version for tensor, version in self._stored_versions)

        def player(path: str, forward: Forward) -> Forward:
            def play(*args: Any, **kwargs: Any) -> Any:
                recorded_call = self.calls[next(count)]
                is_wrong_input = bool(_storages([args, kwargs]) & dirty)
                if path not in mutants and not is_wrong_input and is_intact:
                    return self._disk_cache.load(recorded_call.output)
                outcome.reaches_component |= is_wrong_input

                def compute_right() -> Any:
                    if not is_wrong_input and is_intact:
                        return self._disk_cache.load(recorded_call.output)
                    set_generators(self._device, recorded_call.generators)
                    return forward(*args, **kwargs)

                call = ReplayCall(compute_right, forward, args, kwargs)
                output = mutants[path](call) if path in mutants else compute_right()
                if are_identical(recorded_call.output, output):
                    if is_wrong_input:
                        outcome.absorbed_by.append(path)
                    return self._disk_cache.load(recorded_call.output)
                outcome.is_changed |= path in mutants
                dirty.update(_storages(output))
                return output

            return play

        with wrap_forwards(self._modules, player):
            outcome.output = run()
        outcome.reaches_output = bool(_storages(outcome.output) & dirty)
        return outcome

    def calls_of(self, path: str) -> list[RecordedCall]:
        """Return the recorded calls of the module at this path."""
        return [call for call in self.calls if call.path == path]

    def _recorder(self, path: str, forward: Forward) -> Forward:
        def record(*args: Any, **kwargs: Any) -> Any:
            with without_modes():
                generators = generator_states(self._device)
                arguments = tuple(map(_without_values, args))
                keywords = {name: _without_values(value) for name, value in kwargs.items()}
            output = forward(*args, **kwargs)
            with without_modes():
                size = size_of(output)
                self._bytes += size
                stored_output = self._disk_cache.store_values(
                    output, in_memory=self._bytes <= self._disk_cache.min_bytes
                )
                self._stored_versions += [(t, t._version) for t in tensors(stored_output)]
                metas = tuple(map(meta_of, tensors(output)))
                self.calls.append(
                    RecordedCall(path, arguments, keywords, metas, stored_output, generators)
                )
            return output

        return record


def _storages(value: object) -> set[StorageWeakRef]:
    return {StorageWeakRef(t.untyped_storage()) for t in tensors(value)}  # type: ignore[no-untyped-call]


def _without_values(value: Any) -> Any:
    """Return a value with its tensors on the meta device: shape, dtype and stride."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, dict):
        return {key: _without_values(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(_without_values, value))
    return value
