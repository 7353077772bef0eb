"""Judges the root's component file, which is the whole original in one file.

It runs once, on the author's weights and inputs. Its output is compared with the original's. The
run is also the file's self-test if its own inputs are the author's to the bit, and the expected
side of the root's step.
"""

from collections.abc import Iterator
from typing import Any

from runner.tree.document import ROOT
from runner.verify.findings import Findings
from runner.verify.gates.compare import COMPOSITION, are_identical, compare_with_control
from runner.verify.gates.nested_steps import LoadedStep
from runner.verify.gates.operation_identity import meta_of
from runner.verify.gates.self_test import (
    ComponentFile,
    SelfTests,
    format_metas,
    judge_output,
    load_component,
    note_contract,
    run_self_test,
)
from runner.verify.gates.steps import ParentRun, StepGate
from runner.verify.gates.weights import (
    Weights,
    WeightTable,
    copy_buffers,
    describe_weights,
    snapshot_weights,
    transfer_weights,
    weight_map_fault,
    weights_of,
)
from runner.verify.layout import Layout
from runner.verify.loading_files import AnyFiles, CannotJudge, foreign_code
from runner.verify.runtime.disk_cache import DiskCache, size_of
from runner.verify.runtime.output_leaves import is_tensor, leaves, tensors
from runner.verify.runtime.random_blocks import DifferentDrawError
from runner.verify.runtime.runner import ForwardRunner, Inputs, SharedInputs
from runner.verify.runtime.self_test_reuse import SelfTestReuse


class RootGate:
    """The part of the composition gate that lies between the original and the composed model."""

    def __init__(
        self,
        files: AnyFiles,
        layout: Layout,
        bench: ForwardRunner,
        spill: DiskCache,
        tests: SelfTests,
        steps: StepGate,
        findings: Findings,
    ) -> None:
        self.files, self.layout, self.bench, self.spill = files, layout, bench, spill
        self.tests, self.steps, self.findings = tests, steps, findings
        self._node = layout.tree.nodes[ROOT] if layout.tree else None
        self._component: ComponentFile | None = None
        self._has_same_inputs = False
        self._loaded_step: LoadedStep | None = None
        self.self_test_reuse = SelfTestReuse(files, layout, bench, tests, findings)

    def judge_own_inputs(self, inputs: SharedInputs) -> None:
        """Judge the root's own inputs; run its self-test now if they are not the author's.

        Called after the original ran, so that a file that changes what it draws changes no expected
        value.
        """
        root = self._node
        if root is None:
            return
        alone = self.layout.is_kernel(root.path)
        if self.self_test_reuse.needs_self_test(root.path) if alone else self._component is None:
            with (
                self.findings.time_gate("self-test"),
                self.findings.record_cannot_judge("self-test", root.path),
            ):
                component = load_component(self.files, self.bench, root.path, root.path)
                self._component = None if alone else component
                self._has_same_inputs = self._has_original_inputs(component, inputs)
                if not self._has_same_inputs:
                    if not self.spill.has_room_for(size_of(list(inputs.get()))):
                        inputs.release()
                    where = self.files, self.layout, self.bench, self.tests, self.findings
                    run_self_test(root.path, *where)
                elif alone:
                    self.self_test_reuse.register(component)
        given = tuple(map(meta_of, tensors(list(inputs.get()))))
        contract = self.tests.contracts.get(root.path)
        if contract and contract.inputs != given:
            self.findings.record_verdict(
                "self-test",
                root.path,
                f"get_inputs() gives {format_metas(contract.inputs)},"
                f" the original's {format_metas(given)}",
            )

    def _has_original_inputs(self, component: ComponentFile, inputs: SharedInputs) -> bool:
        """Return whether the own inputs are the author's to the bit; if so, record the contract."""
        try:
            own = component.draw(0, repeated=False, again=True)
        except DifferentDrawError:
            return False
        if not are_identical(tensors(list(own)), tensors(list(inputs.get()))):
            return False
        model = component.build(0, bare=True)
        note_contract(component, self.layout, model, own, self.tests, self.findings)
        return True

    def judge(
        self, expected: object, held: Weights, known: WeightTable, inputs: SharedInputs, trial: int
    ) -> None:
        """Run the root's file as the original ran, then its step."""
        if self._component is None:
            return  # no file of its own, or a kernel file, which the composed model runs
        component = self._component
        try:
            with foreign_code(component.path, self.bench.directory):
                run = self._run(component, expected, held, known, inputs, trial)
        except CannotJudge as error:
            self.findings.record_broken("composition", component.path, str(error))
            return
        step = self.layout.step_of(component.path)
        if step is None or self.findings.has_verdict("step", step.folder):
            return
        with self.findings.time_gate("step"), self.steps.record_failure(step):
            if self._loaded_step is None:
                self._loaded_step = self.steps.load_step(step)
            self.steps.compare_trial(self._loaded_step, run, trial)

    def close_step(self) -> None:
        """Record the verdict on its step after the last trial."""
        if self._loaded_step is not None:
            self.steps.finish_step(self._loaded_step)

    def _run(
        self,
        component: ComponentFile,
        expected: object,
        held: Weights,
        known: WeightTable,
        inputs: SharedInputs,
        trial: int,
    ) -> ParentRun:
        assert self._node is not None
        first = trial == 0
        model = component.build(trial, bare=True)
        names = self._node.weight_map or {name: name for name in weights_of(model)}
        if fault := weight_map_fault(
            names, describe_weights(model), known, frozenset(known.entries)
        ):
            self.findings.record_verdict("weights", component.path, fault)
        with foreign_code(f"{component.path}: weight_map of {ROOT}", self.bench.directory):
            transfer_weights(held, model, names)
        mine, table = snapshot_weights(model), describe_weights(model)
        given = SharedInputs(lambda: self._convert_inputs(component, inputs.get()))
        what = f"{component.path}: forward on the original's inputs"
        watch = self.bench.make_watch(model) if first else None
        actual, seen = self.bench.forward(what, model, given.get(), trial, watch)
        if first and self._has_same_inputs:
            judge_output(component, self.layout, actual, self.tests, self.findings)
        found = compare_with_control(_flatten(expected), _flatten(actual), COMPOSITION)
        self.findings.record_comparison("composition", component.path, found)
        if found.bitwise_equal:  # the bits are the same, so one copy of them is enough
            kept = _rebuild_nesting(actual, iter(_flatten(expected)))
        else:
            kept = self.spill.store(actual)
        state = copy_buffers(model) if self.bench.options.mode == "train" else {}
        return ParentRun(given, kept, mine, table, state, seen, repeated=False)

    def _convert_inputs(self, component: ComponentFile, inputs: Inputs) -> Inputs:
        """Return the author's inputs in the component's form: only tensors, or all arguments."""
        contract = self.tests.contracts.get(component.path)
        whole = contract is not None and contract.argument_count == sum(map(len, inputs))
        return inputs if whole else (tuple(tensors(list(inputs))), {})


def _flatten(output: object) -> tuple[object, ...]:
    return tuple(leaf for _, leaf in leaves(output) if is_tensor(leaf))


def _rebuild_nesting(output: Any, others: Iterator[object]) -> object:
    """Return the same nesting with other tensors in it."""
    if is_tensor(output):
        return next(others)
    if isinstance(output, dict):
        return {key: _rebuild_nesting(item, others) for key, item in output.items()}
    if type(output) in (tuple, list):
        return type(output)(_rebuild_nesting(item, others) for item in output)
    return output
