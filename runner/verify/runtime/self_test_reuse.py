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
        bench: ForwardRunner,
        tests: SelfTests,
        findings: Findings,
    ) -> None:
        self._files, self._layout, self._bench = files, layout, bench
        self._tests, self._findings = tests, findings
        self._components: dict[str, ComponentFile] = {}

    def register(self, component: ComponentFile) -> None:
        """Register a component whose own inputs are its parent's and whose contract is recorded."""
        self._components[component.path] = component

    def needs_self_test(self, component: str) -> bool:
        """Return whether a kernel has no self-test verdict yet that a run in a parent may give."""
        if self._bench.standalone:
            return False
        known = (
            self._findings.has_verdict("self-test", component)
            or component in self._tests.not_finite
        )
        return self._layout.is_kernel(component) and not known

    @contextmanager
    def watch_kernels(
        self, modules: dict[str, nn.Module], names: dict[str, str], given: Inputs, *, repeated: bool
    ) -> Iterator[None]:
        """In the body, judge the kernels that are called with tensors of their parent's inputs."""
        there = storages_of(given)
        for path, module in modules.items():
            if self.needs_self_test(names[path]):
                module.forward = self._wrap_forward(names[path], module.forward, there, repeated)
        try:
            yield
        finally:
            for module in modules.values():
                module.__dict__.pop("forward", None)

    def _wrap_forward(
        self, component: str, forward: Callable[..., Any], there: set[int], repeated: bool
    ) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            same = None
            if not kwargs and self.needs_self_test(component) and storages_of(args) <= there:
                with without_modes():
                    unnoticed = self._bench.save_generators()
                    same = self._load_if_inputs_match(component, args, repeated)
                    unnoticed()  # the parent's own draws stay the same
            output = forward(*args, **kwargs)
            if same:
                with without_modes():
                    judge_output(same, self._layout, output, self._tests, self._findings)
            return output

        return watched

    def _load_if_inputs_match(
        self, component: str, args: tuple[Any, ...], repeated: bool
    ) -> ComponentFile | None:
        if expected := self._components.get(component):
            contract, given = self._tests.contracts[component], tensors(list(args))
            looks = tuple(map(meta_of, given)), tuple(tuple(t.stride()) for t in given)
            return expected if looks == (contract.inputs, contract.strides) else None
        with (
            self._findings.record_cannot_judge("self-test", component),
            suppress(DifferentDrawError),
        ):
            loaded = load_component(self._files, self._bench, component, component)
            own = loaded.draw(0, repeated=repeated, again=True)
            strides = [[t.stride() for t in tensors(list(each))] for each in (own[0], args)]
            if strides[0] == strides[1] and are_identical(list(own[0]), list(args)):
                model = loaded.build(0, bare=True)
                note_contract(loaded, self._layout, model, own, self._tests, self._findings)
                return loaded
        return None
