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

from runner.problems import plain
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
        self, model: nn.Module, bench: ForwardRunner
    ) -> dict[str, tuple[nn.Module, str]]:
        """Return module path -> (module, file in the step) of each child."""
        folder = bench.directory / self.step.folder / CHILDREN
        return find_components(model, folder, bench.directory)

    def component_files(self, found: dict[str, tuple[nn.Module, str]]) -> dict[str, str]:
        """Return module path -> the component file that a child's file is a copy of."""
        return {
            path: self.step.children.get(file.rpartition("/")[2].removesuffix(".py")) or file
            for path, (_, file) in found.items()
        }


class NestedSteps:
    """Steps that passed on their own inputs and wait for the model to call their parents."""

    def __init__(self, bench: ForwardRunner, spill: DiskCache, findings: Findings) -> None:
        self._bench, self._spill, self._findings = bench, spill, findings
        self._pending: dict[str, LoadedStep] = {}

    def add(self, opened: LoadedStep) -> None:
        """Judge this step when its parent is called for the first time."""
        if opened.step.parent is not None:
            self._pending[opened.step.parent] = opened

    @contextmanager
    def watch_modules(self, modules: dict[str, nn.Module], names: dict[str, str]) -> Iterator[None]:
        """Judge the waiting steps of those modules that run in the body."""
        wrapped = {path: module for path, module in modules.items() if names[path] in self._pending}
        for path, module in wrapped.items():
            module.forward = self._wrap_forward(names[path], module, module.forward)
        try:
            yield
        finally:
            for module in wrapped.values():
                module.__dict__.pop("forward", None)

    def _wrap_forward(
        self, component: str, module: nn.Module, forward: Callable[..., Any]
    ) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            opened = self._pending.pop(component, None)
            if opened is None:
                return forward(*args, **kwargs)
            with without_modes():
                held, begin = snapshot_weights(module), self._bench.save_generators()
                before = [(tensor, tensor._version) for tensor in tensors([args, kwargs])]
            output = forward(*args, **kwargs)
            with without_modes(), self._bench.streaming or nullcontext():
                end = self._bench.save_generators()
                where = opened.step.folder
                alone = f"{where} ran on inputs of its own alone: "
                if any(tensor._version != version for tensor, version in before):
                    self._findings.note(f"{alone}{component} writes into its inputs")
                else:
                    state = copy_buffers(module) if self._bench.options.mode == "train" else {}
                    with self._hold_output(plain(output), [args, kwargs, held]) as expected:
                        if expected is None and output is not None:
                            self._findings.note(f"{alone}no room beside the model")
                        else:
                            with self._findings.record_cannot_judge("step", where):
                                opened.total |= self._compare_step(
                                    opened, held, state, args, kwargs, expected, begin
                                )
                                self._findings.record_comparison("step", where, opened.total)
                end()
            return output

        return watched

    def _hold_output(self, output: object, others: object) -> AbstractContextManager[object]:
        """Return a context with the parent's output, in memory or on disk while the step runs."""
        if self._spill.may_stay(size_of(output)):
            return nullcontext(output)
        return self._spill.free_memory(output, others)

    def _compare_step(
        self,
        opened: LoadedStep,
        held: Weights,
        state: Weights,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        expected: object,
        begin: Callable[[], None],
    ) -> Difference:
        bench, file = self._bench, f"{opened.step.folder}/refactored.py"
        model = bench.build_bare(f"{file}: RefactoredModel", opened.build_refactored, 0)
        with foreign_code(f"{opened.step.folder}/weight_map.json", bench.directory):
            transfer_weights(held, model, opened.mapping)
        found = opened.find_children(model, bench)
        modules = {path: module for path, (module, _) in found.items()}
        begin()
        with (
            foreign_code(f"{file}: forward", bench.directory),
            self.watch_modules(modules, opened.component_files(found)),
        ):
            actual = plain(model(*args, **kwargs))
        difference = compare(expected, actual, STEP)
        difference |= compare_state(state, model, opened.mapping)
        if difference.reason:
            return replace(difference, reason=IN_THE_MODEL + difference.reason)
        return difference
