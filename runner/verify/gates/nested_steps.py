"""Judges steps below the root's step in place, on the values that the model gives their parents.

While the root's step runs, each child that has a step of its own is called with the model's inputs
and weights. Its refactored model is then called with the same inputs and weights, and so on for the
children of that one. Of the calls of one file, the first in each trial is judged: the composition
runs the others with their own weights.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from torch import nn

from runner.problems import to_plain_containers
from runner.torch_internals import without_modes
from runner.verify.gates.context import Context
from runner.verify.gates.difference import Difference
from runner.verify.gates.operation_identity import TensorMeta, meta_of
from runner.verify.gates.self_test import find_components, make_model
from runner.verify.gates.weights import (
    Weights,
    WeightTable,
    copy_buffers,
    describe_weights,
    snapshot_weights,
)
from runner.verify.layout import StepFolder
from runner.verify.loading_files import CHILDREN
from runner.verify.runtime.disk_cache import size_of
from runner.verify.runtime.forward_wrapping import Forward, wrap_forwards
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.runner import ForwardObservation, ForwardRunner, SharedInputs

IN_THE_MODEL = "on what it gets in the model: "


@dataclass(frozen=True, slots=True)
class ParentRun:
    """One forward of a parent: its output, and the inputs and weights that lead to it."""

    inputs: SharedInputs
    expected: object
    weights: Weights
    weight_table: WeightTable
    buffers: Weights
    """The buffers after the forward; empty in eval mode."""
    observation: ForwardObservation | None
    """Result of watching the forward; None if it was not watched."""
    is_in_model: bool = True
    """Whether it ran on the author's inputs, or on what the model gives it."""
    restore_generators: Callable[[], None] | None = None
    """Restores the generators as the forward found them; None if it was seeded."""


@dataclass(slots=True)
class LoadedStep:
    """A step whose files are loaded, and the result of its comparisons so far."""

    step: StepFolder
    module: ModuleType
    mapping: dict[str, str]
    total: Difference = field(default_factory=Difference)

    def build_refactored(self) -> Any:
        """Return a new RefactoredModel."""
        return make_model(
            self.module.RefactoredModel, getattr(self.module, "get_init_inputs", None)
        )

    def find_children(
        self, model: nn.Module, runner: ForwardRunner
    ) -> dict[str, tuple[nn.Module, str]]:
        """Return module path -> (module, file in the step) of each child."""
        folder = runner.directory / self.step.folder / CHILDREN
        return find_components(model, folder, runner.directory)

    def component_files(self, children: dict[str, tuple[nn.Module, str]]) -> dict[str, str]:
        """Return module path -> the component file that a child's file is a copy of."""
        return {
            path: self.step.children.get(file.rpartition("/")[2].removesuffix(".py")) or file
            for path, (_, file) in children.items()
        }


class NestedSteps:
    """Steps that wait for the model to call their parents, and are judged there once a trial."""

    def __init__(
        self, context: Context, judge: Callable[[StepFolder, ParentRun, int], None]
    ) -> None:
        self._runner, self._disk_cache = context.runner, context.disk_cache
        self._findings = context.findings
        self._judge = judge
        self._waiting: dict[str, StepFolder] = {}
        self.model_inputs: dict[str, tuple[TensorMeta, ...]] = {}
        """Component -> the inputs that the model calls it with in the first trial, as in the tree;
        get_inputs() may draw other sizes in others, such as another number of edges."""

    def begin_trial(self, steps: list[StepFolder]) -> None:
        """Judge these steps when their parents are called for the first time from now on."""
        self._waiting = {step.parent: step for step in steps if step.parent is not None}

    def watch_modules(
        self, modules: dict[str, nn.Module], names: dict[str, str], trial: int
    ) -> AbstractContextManager[None]:
        """Return a context that judges the waiting steps of those modules that run in the body."""
        waiting = {path: module for path, module in modules.items() if names[path] in self._waiting}
        return wrap_forwards(
            waiting,
            lambda path, forward: self._wrap_forward(names[path], modules[path], forward, trial),
        )

    def _wrap_forward(
        self, component: str, module: nn.Module, forward: Forward, trial: int
    ) -> Forward:
        runner = self._runner

        def forward_and_judge(*args: Any, **kwargs: Any) -> Any:
            step = self._waiting.pop(component, None)
            if step is None:
                return forward(*args, **kwargs)
            input_metas = tuple(map(meta_of, tensors([*args, *kwargs.values()])))
            self.model_inputs.setdefault(component, input_metas)
            with without_modes():
                table, weights = describe_weights(module), snapshot_weights(module)
                begin = runner.save_generators()
                versions = [(tensor, tensor._version) for tensor in tensors([args, kwargs])]
                watch = runner.make_watch(module) if trial == 0 and not runner.standalone else None
            inputs = args, kwargs
            output, observation = runner.observe(watch, lambda: forward(*args, **kwargs), inputs)
            with without_modes(), runner.streaming or nullcontext():
                end = runner.save_generators()
                remark = f"{step.folder} ran on inputs of its own alone: "
                if any(tensor._version != version for tensor, version in versions):
                    self._findings.note(f"{remark}{component} writes into its inputs")
                else:
                    buffers = copy_buffers(module) if runner.options.mode == "train" else {}
                    with self._hold_output(
                        to_plain_containers(output), [args, kwargs, weights]
                    ) as expected:
                        if expected is None and output is not None:
                            self._findings.note(f"{remark}no room beside the model")
                        else:
                            shared_inputs = SharedInputs(lambda: inputs)
                            parts = weights, table, buffers, observation
                            run = ParentRun(
                                shared_inputs, expected, *parts, restore_generators=begin
                            )
                            self._judge(step, run, trial)
                end()
            return output

        return forward_and_judge

    def _hold_output(self, output: object, shared_values: object) -> AbstractContextManager[object]:
        """Return a context with the parent's output, in memory or on disk while the step runs."""
        if self._disk_cache.may_stay(size_of(output)):
            return nullcontext(output)
        return self._disk_cache.free_memory(output, shared_values)
