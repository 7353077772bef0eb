"""Uses a component's run in a parent as its self-test, so that it need not run again by itself.

That is right if its own inputs have the shapes, dtypes and strides of those in the run, and if
other values make no difference: its inputs are finite numbers, no indices and no masks, and its
operations give finite numbers for all of these. A root whose own inputs are the author's, to the
bit, may run any operation.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from runner.torch_internals import without_modes
from runner.verify.gates.context import Context
from runner.verify.gates.operation_identity import KEEPS_FINITE, meta_of
from runner.verify.gates.self_test import (
    ComponentFile,
    judge_output,
    load_component,
    note_contract,
)
from runner.verify.runtime.forward_wrapping import Forward, wrap_forwards
from runner.verify.runtime.operation_watch import Event, Watch
from runner.verify.runtime.output_leaves import all_finite, pieces_of, tensors

_WIDE_DTYPES = {torch.float32, torch.float64, torch.bfloat16}
"""Dtypes in which products and sums of numbers of ordinary size do not overflow."""


class SelfTestReuse:
    """Watches a parent's components and uses their runs as self-tests."""

    def __init__(self, context: Context) -> None:
        self._context, self._runner = context, context.runner
        self._tests, self._findings = context.tests, context.findings
        self.waiting: set[str] = set()
        """Components whose own inputs are the author's, and that wait for the model to run them."""
        self._components: dict[str, ComponentFile | None] = {}
        """Components whose contracts are recorded; None if that failed or needs their own run."""

    def register(self, component: ComponentFile) -> None:
        """Register a component whose own inputs are its parent's and whose contract is recorded."""
        self._components[component.path] = component
        self.waiting.add(component.path)

    def needs_self_test(self, component: str) -> bool:
        """Return whether a component has no self-test yet that a run in a parent may be."""
        return not (
            self._runner.standalone
            or self._runner.options.power  # a recording would hide a tensor that it retains
            or self._findings.has_verdict("self-test", component)
            or component in self._tests.not_finite
        )

    def watch_components(
        self, modules: dict[str, nn.Module], names: dict[str, str], watch: Watch
    ) -> AbstractContextManager[None]:
        """Return a context that judges components that are called with inputs like their own."""
        untested = {path: m for path, m in modules.items() if self.needs_self_test(names[path])}
        return wrap_forwards(
            untested, lambda path, forward: self._wrap_forward(names[path], forward, watch)
        )

    def _wrap_forward(self, component: str, forward: Forward, watch: Watch) -> Forward:
        def forward_and_judge(*args: Any, **kwargs: Any) -> Any:
            component_file = None
            if not kwargs and self.needs_self_test(component):
                with without_modes():
                    restore_generators = self._runner.save_generators()
                    component_file = self._load(component)
                    restore_generators()  # the parent's own draws stay the same
            first = len(watch.trace.events)
            call_inputs = tensors(list(args))
            call_layout = (
                tuple(map(meta_of, call_inputs)),
                tuple(tuple(t.stride()) for t in call_inputs),
            )
            output = forward(*args, **kwargs)
            if component_file:
                contract = self._tests.contracts[component]
                if call_layout == (contract.inputs, contract.strides) and (
                    component in self.waiting or _keep_finite(watch.trace.events[first:])
                ):
                    with without_modes():
                        judge_output(component_file, output, self._context)
                    self._tests.reused.add(component)
            return output

        return forward_and_judge

    def _load(self, component: str) -> ComponentFile | None:
        """Load a component and record its contract; None if it has to run by itself."""
        if component not in self._components:
            self._components[component] = None
            with self._findings.record_cannot_judge("self-test", component):
                component_file = load_component(
                    self._context.files, self._runner, component, component
                )
                shapes = component_file.draw_shapes()
                own_inputs = shapes or component_file.draw(0)
                model = component_file.build(0, bare=True)
                note_contract(component_file, model, own_inputs, self._context)
                if all(t.dtype in _WIDE_DTYPES for t in tensors(own_inputs)) and (
                    shapes or all(map(all_finite, _pieces(own_inputs)))
                ):
                    self._components[component] = component_file
        return self._components[component]


def _pieces(inputs: object) -> Iterator[Any]:
    for tensor in tensors(inputs):
        yield from pieces_of(tensor)


def _keep_finite(events: Iterable[Event]) -> bool:
    return all(event.operation.name in KEEPS_FINITE for event in events)
