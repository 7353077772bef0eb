"""Judges steps below the root's step once more, on the values that the model gives their parents.

While the root's step runs, each child that has a step of its own is called with the model's inputs
and weights. Its refactored model is then called with the same inputs and weights, and so on for the
children of that one. No value is stored for it, and no forward runs except those of the steps.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from torch import nn

from runner.problems import to_plain_containers
from runner.torch_internals import without_modes
from runner.verify.findings import Findings
from runner.verify.gates.compare import STEP, compare
from runner.verify.gates.difference import Difference
from runner.verify.gates.self_test import find_components, make_model
from runner.verify.gates.training_state import compare_state
from runner.verify.gates.weights import Weights, copy_buffers, snapshot_weights, transfer_weights
from runner.verify.layout import StepFolder
from runner.verify.loading_files import CHILDREN, foreign_code
from runner.verify.runtime.disk_cache import DiskCache, size_of
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.runner import ForwardRunner

IN_THE_MODEL = "on what it gets in the model: "


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
    """Steps that passed on their own inputs and wait for the model to call their parents."""

    def __init__(self, runner: ForwardRunner, disk_cache: DiskCache, findings: Findings) -> None:
        self._runner, self._disk_cache, self._findings = runner, disk_cache, findings
        self._pending: dict[str, LoadedStep] = {}

    def add(self, loaded_step: LoadedStep) -> None:
        """Judge this step when its parent is called for the first time."""
        if loaded_step.step.parent is not None:
            self._pending[loaded_step.step.parent] = loaded_step

    @contextmanager
    def watch_modules(self, modules: dict[str, nn.Module], names: dict[str, str]) -> Iterator[None]:
        """Judge the waiting steps of those modules that run in the body."""
        waiting_modules = {
            path: module for path, module in modules.items() if names[path] in self._pending
        }
        for path, module in waiting_modules.items():
            module.forward = self._wrap_forward(names[path], module, module.forward)
        try:
            yield
        finally:
            for module in waiting_modules.values():
                module.__dict__.pop("forward", None)

    def _wrap_forward(
        self, component: str, module: nn.Module, forward: Callable[..., Any]
    ) -> Callable[..., Any]:
        def forward_and_judge(*args: Any, **kwargs: Any) -> Any:
            loaded_step = self._pending.pop(component, None)
            if loaded_step is None:
                return forward(*args, **kwargs)
            with without_modes():
                weights, begin = snapshot_weights(module), self._runner.save_generators()
                versions = [(tensor, tensor._version) for tensor in tensors([args, kwargs])]
            output = forward(*args, **kwargs)
            with without_modes(), self._runner.streaming or nullcontext():
                end = self._runner.save_generators()
                folder = loaded_step.step.folder
                prefix = f"{folder} ran on inputs of its own alone: "
                if any(tensor._version != version for tensor, version in versions):
                    self._findings.note(f"{prefix}{component} writes into its inputs")
                else:
                    buffers = copy_buffers(module) if self._runner.options.mode == "train" else {}
                    with self._hold_output(
                        to_plain_containers(output), [args, kwargs, weights]
                    ) as expected:
                        if expected is None and output is not None:
                            self._findings.note(f"{prefix}no room beside the model")
                        else:
                            with self._findings.record_cannot_judge("step", folder):
                                loaded_step.total |= self._compare_step(
                                    loaded_step, weights, buffers, args, kwargs, expected, begin
                                )
                                self._findings.record_comparison("step", folder, loaded_step.total)
                end()
            return output

        return forward_and_judge

    def _hold_output(self, output: object, shared_values: object) -> AbstractContextManager[object]:
        """Return a context with the parent's output, in memory or on disk while the step runs."""
        if self._disk_cache.may_stay(size_of(output)):
            return nullcontext(output)
        return self._disk_cache.free_memory(output, shared_values)

    def _compare_step(
        self,
        loaded_step: LoadedStep,
        weights: Weights,
        buffers: Weights,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        expected: object,
        begin: Callable[[], None],
    ) -> Difference:
        runner, file = self._runner, f"{loaded_step.step.folder}/refactored.py"
        model = runner.build_bare(f"{file}: RefactoredModel", loaded_step.build_refactored, 0)
        with foreign_code(f"{loaded_step.step.folder}/weight_map.json", runner.directory):
            transfer_weights(weights, model, loaded_step.mapping)
        children = loaded_step.find_children(model, runner)
        modules = {path: module for path, (module, _) in children.items()}
        begin()
        with (
            foreign_code(f"{file}: forward", runner.directory),
            self.watch_modules(modules, loaded_step.component_files(children)),
        ):
            actual = to_plain_containers(model(*args, **kwargs))
        difference = compare(expected, actual, STEP)
        difference |= compare_state(buffers, model, loaded_step.mapping)
        if difference.reason:
            return replace(difference, reason=IN_THE_MODEL + difference.reason)
        return difference
