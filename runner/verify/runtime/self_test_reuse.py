"""Reuses a kernel's run inside a step as its self-test, if it runs on the kernel's own inputs.

The first kernel of a fusion is usually its convolution or matrix product, and the fusion's own
inputs are that kernel's own inputs, to the bit. Then the kernel need not run again by itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from torch import nn

from runner.torch_internals import without_modes
from runner.verify.findings import Findings
from runner.verify.gates.compare import are_identical
from runner.verify.gates.operation_identity import meta_of
from runner.verify.gates.self_test import (
    ComponentFile,
    SelfTests,
    judge_output,
    load_component,
    note_contract,
)
from runner.verify.layout import Layout
from runner.verify.loading_files import AnyFiles
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.random_blocks import DifferentDrawError, storages_of
from runner.verify.runtime.runner import ForwardRunner, Inputs


class SelfTestReuse:
    """Watches a parent's kernels and uses their runs as self-tests."""

    def __init__(
        self,
        files: AnyFiles,
        layout: Layout,
        runner: ForwardRunner,
        tests: SelfTests,
        findings: Findings,
    ) -> None:
        self._files, self._layout, self._runner = files, layout, runner
        self._tests, self._findings = tests, findings
        self._components: dict[str, ComponentFile] = {}

    def register(self, component: ComponentFile) -> None:
        """Register a component whose own inputs are its parent's and whose contract is recorded."""
        self._components[component.path] = component

    def needs_self_test(self, component: str) -> bool:
        """Return whether a kernel has no self-test verdict yet that a run in a parent may give."""
        if self._runner.standalone:
            return False
        is_judged = (
            self._findings.has_verdict("self-test", component)
            or component in self._tests.not_finite
        )
        return self._layout.is_kernel(component) and not is_judged

    @contextmanager
    def watch_kernels(
        self,
        modules: dict[str, nn.Module],
        names: dict[str, str],
        parent_inputs: Inputs,
        *,
        repeated: bool,
    ) -> Iterator[None]:
        """In the body, judge the kernels that are called with tensors of their parent's inputs."""
        input_storages = storages_of(parent_inputs)
        for path, module in modules.items():
            if self.needs_self_test(names[path]):
                module.forward = self._wrap_forward(
                    names[path], module.forward, input_storages, repeated
                )
        try:
            yield
        finally:
            for module in modules.values():
                module.__dict__.pop("forward", None)

    def _wrap_forward(
        self, component: str, forward: Callable[..., Any], input_storages: set[int], repeated: bool
    ) -> Callable[..., Any]:
        def forward_and_judge(*args: Any, **kwargs: Any) -> Any:
            component_file = None
            if (
                not kwargs
                and self.needs_self_test(component)
                and storages_of(args) <= input_storages
            ):
                with without_modes():
                    restore_generators = self._runner.save_generators()
                    component_file = self._load_if_inputs_match(component, args, repeated)
                    restore_generators()  # the parent's own draws stay the same
            output = forward(*args, **kwargs)
            if component_file:
                with without_modes():
                    judge_output(component_file, self._layout, output, self._tests, self._findings)
            return output

        return forward_and_judge

    def _load_if_inputs_match(
        self, component: str, args: tuple[Any, ...], repeated: bool
    ) -> ComponentFile | None:
        if registered := self._components.get(component):
            contract, call_inputs = self._tests.contracts[component], tensors(list(args))
            call_layout = (
                tuple(map(meta_of, call_inputs)),
                tuple(tuple(t.stride()) for t in call_inputs),
            )
            return registered if call_layout == (contract.inputs, contract.strides) else None
        with (
            self._findings.record_cannot_judge("self-test", component),
            suppress(DifferentDrawError),
        ):
            component_file = load_component(self._files, self._runner, component, component)
            own_inputs = component_file.draw(0, repeated=repeated, reuse=True)
            strides = [
                [t.stride() for t in tensors(list(arguments))]
                for arguments in (own_inputs[0], args)
            ]
            if strides[0] == strides[1] and are_identical(list(own_inputs[0]), list(args)):
                model = component_file.build(0, bare=True)
                note_contract(
                    component_file, self._layout, model, own_inputs, self._tests, self._findings
                )
                return component_file
        return None
