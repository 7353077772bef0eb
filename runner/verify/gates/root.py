"""Judges the root's component file, which is the whole original in one file.

It runs once, on the author's weights and inputs. Its output is compared with the original's. The
run is also the file's self-test if its own inputs are the author's to the bit, and the expected
side of the root's step.
"""

from collections.abc import Iterator
from typing import Any

from runner.tree.document import ROOT
from runner.verify.gates.compare import COMPOSITION, are_identical, compare_with_control
from runner.verify.gates.context import Context
from runner.verify.gates.nested_steps import ParentRun
from runner.verify.gates.operation_identity import meta_of
from runner.verify.gates.self_test import (
    ComponentFile,
    format_metas,
    judge_output,
    load_component,
    note_contract,
    run_self_test,
)
from runner.verify.gates.steps import StepGate
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
from runner.verify.loading_files import CannotJudge, foreign_code
from runner.verify.runtime.disk_cache import size_of
from runner.verify.runtime.output_leaves import is_tensor, leaves, tensors
from runner.verify.runtime.random_blocks import DifferentDrawError
from runner.verify.runtime.runner import Inputs, SharedInputs


class RootGate:
    """The part of the composition gate that lies between the original and the composed model."""

    def __init__(self, context: Context, steps: StepGate) -> None:
        self.context, self.steps = context, steps
        self.layout, self.runner, self.findings = context.layout, context.runner, context.findings
        self._node = context.layout.tree.nodes[ROOT] if context.layout.tree else None
        self._component: ComponentFile | None = None
        self._has_same_inputs = False

    def judge_own_inputs(self, inputs: SharedInputs) -> None:
        """Judge the root's own inputs; run its self-test now if they are not the author's.

        Called after the original ran, so that a file that changes what it draws changes no expected
        value.
        """
        root = self._node
        if root is None:
            return
        is_kernel = self.layout.is_kernel(root.path)
        if (
            self.steps.self_test_reuse.needs_self_test(root.path)
            if is_kernel
            else self._component is None
        ):
            with (
                self.findings.time_gate("self-test"),
                self.findings.record_cannot_judge("self-test", root.path),
            ):
                component = load_component(self.context.files, self.runner, root.path, root.path)
                self._component = None if is_kernel else component
                self._has_same_inputs = self._has_original_inputs(component, inputs)
                if not self._has_same_inputs:
                    if not self.context.disk_cache.has_room_for(size_of(list(inputs.get()))):
                        inputs.release()
                    run_self_test(root.path, self.context)
                elif is_kernel:
                    self.steps.self_test_reuse.register(component)
        input_metas = tuple(map(meta_of, tensors(list(inputs.get()))))
        contract = self.context.tests.contracts.get(root.path)
        if contract and contract.inputs != input_metas:
            self.findings.record_verdict(
                "self-test",
                root.path,
                f"get_inputs() gives {format_metas(contract.inputs)},"
                f" the original's {format_metas(input_metas)}",
            )

    def _has_original_inputs(self, component: ComponentFile, inputs: SharedInputs) -> bool:
        """Return whether the own inputs are the author's to the bit; if so, record the contract."""
        try:
            own_inputs = component.draw(0, repeated=False, reuse=True)
        except DifferentDrawError:
            return False
        if not are_identical(tensors(list(own_inputs)), tensors(list(inputs.get()))):
            return False
        model = component.build(0, bare=True)
        note_contract(component, model, own_inputs, self.context)
        return True

    def judge(
        self,
        expected: object,
        weights: Weights,
        weight_table: WeightTable,
        inputs: SharedInputs,
        trial: int,
    ) -> None:
        """Run the root's file as the original ran, then its step."""
        if self._component is None:
            return  # no file of its own, or a kernel file, which the composed model runs
        component = self._component
        try:
            with foreign_code(component.path, self.runner.directory):
                run = self._run(component, expected, weights, weight_table, inputs, trial)
        except CannotJudge as error:
            self.findings.record_broken("composition", component.path, str(error))
            return
        step = self.layout.step_of(component.path)
        if step is None or self.findings.has_verdict("step", step.folder):
            return
        with self.findings.time_gate("step"):
            self.steps.begin_trial(trial)
            self.steps.judge_run(step, run, trial)

    def _run(
        self,
        component: ComponentFile,
        expected: object,
        weights: Weights,
        weight_table: WeightTable,
        inputs: SharedInputs,
        trial: int,
    ) -> ParentRun:
        assert self._node is not None
        first = trial == 0
        model = component.build(trial, bare=True)
        names = self._node.weight_map or {name: name for name in weights_of(model)}
        if fault := weight_map_fault(
            names, describe_weights(model), weight_table, frozenset(weight_table.entries)
        ):
            self.findings.record_verdict("weights", component.path, fault)
        with foreign_code(f"{component.path}: weight_map of {ROOT}", self.runner.directory):
            transfer_weights(weights, model, names)
        root_weights, root_table = snapshot_weights(model), describe_weights(model)
        root_inputs = SharedInputs(lambda: self._convert_inputs(component, inputs.get()))
        label = f"{component.path}: forward on the original's inputs"
        watch = self.runner.make_watch(model) if first else None
        actual, observation = self.runner.forward(label, model, root_inputs.get(), trial, watch)
        if first and self._has_same_inputs:
            judge_output(component, actual, self.context)
        difference = compare_with_control(_flatten(expected), _flatten(actual), COMPOSITION)
        self.findings.record_comparison("composition", component.path, difference)
        if difference.bitwise_equal:  # the bits are the same, so one copy of them is enough
            stored = _rebuild_nesting(actual, iter(_flatten(expected)))
        else:
            stored = self.context.disk_cache.store(actual)
        buffers = copy_buffers(model) if self.runner.options.mode == "train" else {}
        return ParentRun(root_inputs, stored, root_weights, root_table, buffers, observation)

    def _convert_inputs(self, component: ComponentFile, inputs: Inputs) -> Inputs:
        """Return the author's inputs in the component's form: only tensors, or all arguments."""
        contract = self.context.tests.contracts.get(component.path)
        arguments = tuple(map(is_tensor, (*inputs[0], *inputs[1].values())))
        takes_all = contract is not None and contract.tensor_arguments == arguments
        return inputs if takes_all else (tuple(tensors(list(inputs))), {})


def _flatten(output: object) -> tuple[object, ...]:
    return tuple(leaf for _, leaf in leaves(output) if is_tensor(leaf))


def _rebuild_nesting(output: Any, replacements: Iterator[object]) -> object:
    """Return the same nesting with other tensors in it."""
    if is_tensor(output):
        return next(replacements)
    if isinstance(output, dict):
        return {key: _rebuild_nesting(item, replacements) for key, item in output.items()}
    if type(output) in (tuple, list):
        return type(output)(_rebuild_nesting(item, replacements) for item in output)
    return output
