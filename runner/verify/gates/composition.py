"""Judges the composition: a model made of kernel files alone, compared with the original.

The original runs first, then its replacement, on the same inputs and on the same weight tensors.
The activations of two models never exist at once.
"""

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

from runner.errors import MissingError, ProblemError
from runner.problems import (
    check_outputs,
    is_checkout,
    is_out_of_memory,
)
from runner.quantities import join_first, pluralize
from runner.torch_internals import storage_of
from runner.tree.document import Node
from runner.verify.gates.compare import (
    COMPOSITION,
    VACUOUS,
    compare_with_control,
    count_elements,
)
from runner.verify.gates.context import Context, has_same_layout
from runner.verify.gates.coverage import (
    collect_author_calls,
    compare_coverage,
    coverage_fault,
    find_input_writes,
    find_value_reads,
    unread_weight_fault,
    work_of,
)
from runner.verify.gates.difference import Difference
from runner.verify.gates.health import (
    UNEXAMINED,
    Health,
    constant_output,
    find_blind_spots,
    fingerprint,
    inputs_without_effect,
    numbers_among_inputs,
    weights_without_effect,
)
from runner.verify.gates.input_changes import (
    ChangedInput,
    InputWatch,
    input_change_fault,
    input_change_warnings,
    move_equal_elements,
)
from runner.verify.gates.parent_source import parent_fault, parse_file
from runner.verify.gates.power import MODEL, Comparison, PowerGate, can_be_seen_to_fail
from runner.verify.gates.root import RootGate
from runner.verify.gates.self_test import (
    construction_fault,
    documented_inputs,
    find_components,
    forbid_computation,
    format_metas,
    operations_fault,
    outside_tensor_fault,
    run_self_tests,
    settings_of,
    weight_metas,
)
from runner.verify.gates.steps import StepGate
from runner.verify.gates.training_state import compare_state
from runner.verify.gates.weights import (
    Weights,
    WeightTable,
    buffer_states,
    copy_buffers,
    describe_weights,
    parameter_storages,
    snapshot_weights,
    transfer_weights,
    weight_map_fault,
    written_buffers,
)
from runner.verify.layout import COMPOSITION_TEST, KERNEL_FOLDER, ORIGINAL, require_name_map
from runner.verify.loading_files import (
    AnyProblem,
    CannotJudge,
    foreign_code,
    require_attribute,
)
from runner.verify.original_check import describe_inputs
from runner.verify.runtime.operation_watch import ComponentCall, Event
from runner.verify.runtime.output_leaves import MissingValuesError, tensors
from runner.verify.runtime.replay import Recording
from runner.verify.runtime.runner import ForwardObservation, Inputs, SharedInputs

_MAX_NAMED_FILES = 5
"""Number of files that a remark names."""


@dataclass(slots=True)
class _OriginalRun:
    """Values that one forward of the original left."""

    output: object
    weights: Weights
    """Emptied once the composed model has them, so that they are freed with it."""
    weight_table: WeightTable
    observation: ForwardObservation | None
    buffers: Weights
    """Buffers after a forward in training."""
    changes: dict[int, ChangedInput]
    """Inputs that the forward changed."""


class CompositionGate:
    """Judges the whole model; its first trial also serves rules, weights, coverage and health."""

    def __init__(self, context: Context, power: PowerGate, steps: StepGate) -> None:
        self.context, self.power, self.steps = context, power, steps
        self.layout, self.runner = context.layout, context.runner
        self.tests, self.findings = context.tests, context.findings
        self._root = RootGate(context, steps)
        self.kernels_not_finite: set[str] = set()
        """Kernel files that gave NaN or infinity on the original's own inputs."""
        self.author_call_kernels: set[str] = set()
        """Kernel files that do the same as one call of a function or module of the author's."""
        self.single_operation_kernels: set[str] = set()
        """Kernel files that run at most one operation on an input in each call by the model."""
        self._moves_whole_numbers = False
        """Whether integers and booleans among the inputs and buffers are changed: the original
        decides by no value, and takes the changed ones."""
        self._fingerprints: set[object] = set()
        self._other_strides: list[str] = []
        """Kernel files that the model calls with other strides than their own inputs have."""

    def judge(self, missing_packages: frozenset[str]) -> None:
        """Judge the whole model, after the root's step and the self-tests that are still missing.

        `missing_packages`: packages that the original imports and that were not installed before
        any file ran.

        Raises:
            ProblemError: the original needs one of them, and nothing else is wrong so far.
        """
        findings = self.findings
        with findings.record_cannot_judge("rules", COMPOSITION_TEST):
            tree = parse_file(self.runner.directory / COMPOSITION_TEST, COMPOSITION_TEST)
            if fault := parent_fault(tree, "ComposedModel"):
                findings.record_verdict("rules", COMPOSITION_TEST, fault)
        try:
            problem = self._load_original(missing_packages)
            with foreign_code("the composition", self.runner.directory):
                total = self._compare(problem)
        except CannotJudge as error:
            self.steps.finish()
            findings.record_broken("composition", MODEL, str(error))
            for gate in ("rules", "weights", "coverage"):
                component = COMPOSITION_TEST if gate == "rules" else MODEL
                if not findings.has_verdict(gate, component):
                    findings.record_broken(gate, component, f"the composition did not run: {error}")
            return
        self.steps.finish()
        findings.composition = total
        if not findings.has_verdict("composition", MODEL):
            findings.record_comparison("composition", MODEL, total)
        self._note_health(total)

    def _compare(self, problem: AnyProblem) -> Difference:
        directory = self.runner.directory
        with forbid_computation(COMPOSITION_TEST, self.runner, self.findings):
            test = self.context.files.load(directory / COMPOSITION_TEST)
        require_attribute(test, "ComposedModel", directory)
        mapping = require_name_map(
            require_attribute(test, "WEIGHTS", directory), f"{COMPOSITION_TEST}: WEIGHTS"
        )
        total = Difference()
        for trial in range(self.runner.options.seeds):
            try:
                total |= self._run_trial(problem, test, mapping, trial)
            except MissingValuesError:
                with self.context.disk_cache.storing_values():
                    total |= self._run_trial(problem, test, mapping, trial)
            if total.reason:
                break
        return total

    def _load_original(self, missing_packages: frozenset[str]) -> AnyProblem:
        directory = self.runner.directory
        try:
            with foreign_code(ORIGINAL, directory), self.runner.default_dtype(ORIGINAL):
                return self.context.files.problem()
        except CannotJudge as error:
            cause = error.__cause__
            if not isinstance(cause, MissingError) or not self.findings.all_good:
                raise
            package = str(getattr(cause.__cause__, "name", "")).partition(".")[0]
            if package not in missing_packages:
                raise
            packages = self.layout.tree.metadata.packages if self.layout.tree else {}
            if not is_checkout(packages.get(package, "")):
                raise cause from error
            hint = f"run in the folder that holds {package}, or name that folder in PYTHONPATH"
            raise ProblemError(cause.path, cause.reason, hint=hint, line=cause.line) from error

    def _run_trial(
        self, problem: AnyProblem, test: ModuleType, mapping: dict[str, str], trial: int
    ) -> Difference:
        runner, findings = self.runner, self.findings
        inputs = SharedInputs(lambda: self._draw_inputs(problem, trial))
        original = self._run_original(problem, mapping, inputs, trial)
        expected, original_run = original.output, original.observation
        if trial == 0:
            self._root.judge_own_inputs(inputs)
        self._root.judge(expected, original.weights, original.weight_table, inputs, trial)
        if trial == 0:
            with findings.time_gate("self-test"):
                waiting = self.steps.self_test_reuse.waiting
                run_self_tests(
                    self.context, [c for c in self.layout.components if c not in waiting]
                )
                self.steps.judge_calls()
        with forbid_computation(COMPOSITION_TEST, runner, findings):
            composed_model = runner.build_bare(
                f"{COMPOSITION_TEST}: ComposedModel",
                lambda: test.__dict__["ComposedModel"](),
                trial,
            )
        if original_run:
            written_names = original_run.weights_used | original.buffers.keys()
            unused_names = frozenset(original.weight_table.entries) - written_names
            fault = weight_map_fault(
                mapping, describe_weights(composed_model), original.weight_table, unused_names
            )
            findings.record_verdict("weights", MODEL, fault)
        with foreign_code(f"{COMPOSITION_TEST}: WEIGHTS", runner.directory):
            transfer_weights(original.weights, composed_model, mapping)
        storages = {name: storage_of(tensor) for name, tensor in original.weights.items()}
        parameters = parameter_storages(original.weights, original.weight_table.entries)
        original.weights = {}
        kernels = self._find_kernels(composed_model) if trial == 0 else {}
        if trial == 0 and runner.standalone:
            files = {path: file for path, (_, file) in kernels.items()}
            runner.standalone.record_map(None, mapping, files)
        recording = self.power.make_recording(MODEL, kernels) if trial == 0 else None
        reused_kernels = {
            file for _, file in kernels.values() if self.steps.self_test_reuse.needs_self_test(file)
        }
        input_watch = InputWatch(inputs.get())
        actual, composed_run = self._run_composed(
            composed_model, kernels, parameters, inputs, trial, recording
        )
        self._judge_inputs(original.changes, input_watch.find_changes(), trial)
        del input_watch
        # These kernels have their self-test in this very run.
        self.kernels_not_finite |= reused_kernels & self.tests.not_finite.keys()
        self._judge_weights(kernels)
        buffer_difference = compare_state(original.buffers, composed_model, mapping)
        if recording is None:
            del composed_model
        if original_run and composed_run:
            self._judge_run(original_run, composed_run)
            self._judge_unread_weights(kernels, mapping, original_run)
            findings.record_verdict(
                "weights", MODEL, unread_weight_fault(mapping, storages, original_run, composed_run)
            )
        difference = compare_with_control(expected, actual, COMPOSITION) | buffer_difference
        if difference.reason is None and count_elements(expected) == 0:
            reason = "the output holds no numbers: no difference could have been seen"
            findings.record_vacuous("composition", MODEL, reason, difference)
        if (
            recording
            and original_run
            and composed_run
            and can_be_seen_to_fail(difference, composed_run.trace.parent_faults)
        ):
            label = f"{COMPOSITION_TEST}: forward"
            self.power.judge(
                Comparison(
                    MODEL,
                    {path: file for path, (_, file) in kernels.items()},
                    {path: module for path, (module, _) in kernels.items()},
                    lambda: runner.forward(label, composed_model, inputs.get(), trial)[0],
                    actual if difference.bitwise_equal else expected,
                    difference.bitwise_equal,
                    COMPOSITION,
                    original_run.computes_for_nothing,
                ),
                recording,
            )
        if composed_run and recording is None:
            del actual
            for component in sorted(filter(self.layout.is_kernel, self.tests.reused)):
                fault = self._watch.retained_tensor_fault(component)
                findings.record_verdict("rules", component, fault)
        return difference

    def _draw_inputs(self, problem: AnyProblem, trial: int) -> Inputs:
        inputs = self.runner.draw(f"{ORIGINAL}: get_inputs()", problem.get_inputs, trial)
        if trial and self.runner.standalone and not self.runner.options.specialised:
            generator = torch.Generator().manual_seed(self.runner.options.seed + trial)
            moved = tensors(list(inputs))
            move_equal_elements(moved, generator, whole_numbers=self._moves_whole_numbers)
        return inputs

    def _run_original(
        self, problem: AnyProblem, mapping: dict[str, str], inputs: SharedInputs, trial: int
    ) -> _OriginalRun:
        runner = self.runner
        model = runner.build(f"{ORIGINAL}: Model", problem.build, trial)
        if runner.standalone:
            runner.standalone.record_original_model(model, trial)
        runner.vary(model, trial, frozenset(mapping.values()))
        if trial and runner.standalone and self._moves_whole_numbers:
            generator = torch.Generator().manual_seed(runner.options.seed + trial)
            buffers = [t for name, t in model.named_buffers() if name in mapping.values()]
            whole = (t for t in buffers if not (t.is_floating_point() or t.is_meta))
            move_equal_elements(whole, generator, whole_numbers=True)
        weight_table, weights = describe_weights(model), snapshot_weights(model)
        model_inputs = inputs.get()
        input_watch = InputWatch(model_inputs)
        states = buffer_states(model)
        is_foreign = runner.standalone is not None
        watch = runner.make_watch(model, compares_operands=is_foreign) if trial == 0 else None
        try:
            output, observation = runner.forward(
                f"{ORIGINAL}: forward", model, model_inputs, trial, watch
            )
        except CannotJudge as error:
            if trial and self._moves_whole_numbers:
                self._moves_whole_numbers = False
                inputs.release()
                return self._run_original(problem, mapping, inputs, trial)
            drawn_from = f"inputs of seed {runner.options.seed + trial}"
            raise CannotJudge(f"{error}; {drawn_from}: {describe_inputs(model_inputs)}") from error
        changes = input_watch.find_changes()
        left_buffers = copy_buffers(model) if runner.options.mode == "train" else {}
        if (
            trial == 0
            and runner.options.mode != "train"
            and (written := written_buffers(states, model))
        ):
            self.findings.warn(
                f"{ORIGINAL} writes into its buffers ({join_first(written, 3)}) for its next call; "
                "the parts keep no state, and only the first call is compared"
            )
        with foreign_code(f"{ORIGINAL}: forward", runner.directory):
            check_outputs(problem.problem, output)
        del model_inputs, input_watch
        expected = self.context.disk_cache.store(output)
        self._fingerprints.add(fingerprint(expected))
        if observation:
            self._moves_whole_numbers = not observation.trace.reads_values
            self._examine_output(problem, model, inputs, output, expected is output, observation)
        return _OriginalRun(expected, weights, weight_table, observation, left_buffers, changes)

    def _judge_inputs(
        self, original: dict[int, ChangedInput], composed: dict[int, ChangedInput], trial: int
    ) -> None:
        """Judge what the forwards of the original and of the composed model left in the inputs."""
        fault = input_change_fault(original, composed)
        self.findings.record_verdict("rules", COMPOSITION_TEST, fault)
        if trial == 0:
            for warning in input_change_warnings(original, composed):
                self.findings.warn(warning)

    def _examine_output(
        self,
        problem: AnyProblem,
        model: nn.Module,
        inputs: SharedInputs,
        output: Any,
        is_small: bool,
        observation: ForwardObservation,
    ) -> None:
        findings = self.findings
        for warning in inputs_without_effect(observation):
            findings.warn(warning)
        for note in (
            *numbers_among_inputs(inputs.get()),
            *weights_without_effect(observation, model),
        ):
            findings.note(note)
        constant = constant_output(output)
        if constant:
            findings.warn(constant)
            return
        if not is_small or self.runner.streaming:
            findings.not_examined = [UNEXAMINED]
        else:
            try:
                health = find_blind_spots(
                    self.runner,
                    model,
                    inputs,
                    output,
                    observation,
                    lambda t: self._draw_inputs(problem, t),
                )
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                health = Health(not_examined=[UNEXAMINED])  # the gates need less
            for note in health.notes:
                findings.note(note)
            findings.not_examined = health.not_examined

    def _find_kernels(self, model: nn.Module) -> dict[str, tuple[nn.Module, str]]:
        """Return module path -> (module, file) of each kernel in the composed model."""
        directory = self.runner.directory
        kernels = find_components(model, directory / KERNEL_FOLDER, directory)
        if not kernels:
            self.findings.record_verdict(
                "rules", COMPOSITION_TEST, f"uses no class of {KERNEL_FOLDER}/"
            )
        self.findings.record_verdict(
            "rules", COMPOSITION_TEST, outside_tensor_fault(model, kernels)
        )
        return kernels

    def _run_composed(
        self,
        model: nn.Module,
        kernels: dict[str, tuple[nn.Module, str]],
        parameters: frozenset[int],
        inputs: SharedInputs,
        trial: int,
        recording: Recording | None,
    ) -> tuple[object, ForwardObservation | None]:
        label = f"{COMPOSITION_TEST}: forward"
        model_inputs = inputs.get()
        if trial:
            return self.runner.forward(label, model, model_inputs, trial)
        names = {path: file for path, (_, file) in kernels.items()}
        modules = {path: module for path, (module, _) in kernels.items()}
        watch = self._watch = self.runner.make_watch(
            model, parameters, compares_operands=self.runner.standalone is not None
        )
        suspects = {c for c in self.tests.not_finite if not self.layout.is_kernel(c)}
        suspect_kernels = {kernel for c in suspects for kernel in self.layout.kernels_below(c)}
        with (
            self.steps.self_test_reuse.watch_components(modules, names, watch),
            recording.record_calls() if recording else nullcontext(),
            watch.watch_components(
                kernels, names, frozenset(self.tests.not_finite) | suspect_kernels
            ),
        ):
            output, observation = self.runner.forward(label, model, model_inputs, trial, watch)
        self.kernels_not_finite = watch.trace.not_finite
        return output, observation

    def _judge_run(
        self, original_run: ForwardObservation, composed_run: ForwardObservation
    ) -> None:
        findings, trace = self.findings, composed_run.trace
        first_fault = trace.parent_faults[0] if trace.parent_faults else None
        findings.record_verdict("rules", COMPOSITION_TEST, first_fault)
        for component, component_fault in trace.component_faults.items():
            findings.record_verdict("rules", component, component_fault)
        for component, fault in find_input_writes(original_run, composed_run):
            findings.record_verdict("rules", component, fault)
        value_reads = find_value_reads(original_run, composed_run) if self.runner.standalone else ()
        for file, fault in value_reads:
            findings.record_verdict("rules", file or COMPOSITION_TEST, fault)
        coverage = compare_coverage(MODEL, original_run, composed_run)
        findings.record_coverage(coverage)
        findings.record_verdict("coverage", MODEL, coverage_fault(coverage))
        author_calls = collect_author_calls(original_run.trace.events)
        for component in sorted({call.component for call in trace.calls} | self._kernel_files()):
            calls = [call for call in trace.calls if call.component == component]
            if all(work_of(trace.events[slice(*c.event_span)]) in author_calls for c in calls):
                self.author_call_kernels.add(component)
            if all(_has_one_operation(trace.events[slice(*c.event_span)]) for c in calls):
                self.single_operation_kernels.add(component)
            self._judge_calls(component, calls, self.layout.nodes(component))
            self._judge_kernel(component, calls, trace.events)
        if self._other_strides:
            files, hidden_count = (
                self._other_strides[:_MAX_NAMED_FILES],
                len(self._other_strides) - _MAX_NAMED_FILES,
            )
            suffix = f" and {hidden_count} more" if hidden_count > 0 else ""
            remark = (
                f"in the model other strides than in their own inputs: {', '.join(files)}{suffix}"
            )
            self.findings.note(remark)

    def _kernel_files(self) -> set[str]:
        return {path for path in self.layout.components if self.layout.is_kernel(path)}

    def _judge_calls(self, component: str, calls: list[ComponentCall], nodes: list[Node]) -> None:
        """Compare a kernel file's calls with the tree's instances of it and with its own inputs."""
        contract = self.tests.contracts.get(component)
        for call in calls:
            if contract and contract.inputs != call.inputs:
                self.findings.record_verdict(
                    "self-test",
                    component,
                    f"get_inputs() gives {format_metas(contract.inputs)},"
                    f" in the model it is called with {format_metas(call.inputs)}",
                )
        if self.layout.tree is None:
            return
        fault = None
        if len(calls) != len(nodes):
            call_count, node_count = (
                pluralize(len(calls), "time"),
                pluralize(len(nodes), "instance"),
            )
            fault = f"runs {call_count}, the tree has {node_count}"
        elif Counter(call.inputs for call in calls) != Counter(map(documented_inputs, nodes)):
            fault = "runs on other inputs than the tree says"
        self.findings.record_verdict("coverage", component, fault)
        strides = {call.strides for call in calls}
        if contract and any(
            not all(
                map(
                    has_same_layout, [s for s, _ in contract.inputs], contract.strides, call_strides
                )
            )
            for call_strides in strides
        ):
            self._other_strides.append(component)

    def _judge_kernel(
        self, component: str, calls: list[ComponentCall], events: list[Event]
    ) -> None:
        """Compare a kernel's operations in the model with those on its own, equal inputs."""
        contract = self.tests.contracts.get(component)
        by_name = self.runner.options.specialised or self._watch.trace.reads_values
        if contract is None:
            return
        for call in calls:
            fault = operations_fault(contract, call, events, "in the model", by_name=by_name)
            self.findings.record_verdict("rules", component, fault)

    def _judge_unread_weights(
        self,
        kernels: dict[str, tuple[nn.Module, str]],
        mapping: dict[str, str],
        original_run: ForwardObservation,
    ) -> None:
        """Report weights that reach no output of their own kernel, and the original's output."""
        for path, (_, component) in kernels.items():
            for name in sorted(self.tests.unread_weights.get(component, ())):
                source = mapping.get(f"{path}.{name}")
                if source in original_run.weights_used:
                    fault = f"its {name} reaches no output of its own, the original's {source} does"
                    self.findings.record_verdict("weights", component, fault)

    def _judge_weights(self, kernels: dict[str, tuple[nn.Module, str]]) -> None:
        """Compare the weights that each kernel has in the model with those that it has alone."""
        for module, component in kernels.values():
            if contract := self.tests.contracts.get(component):
                fault = construction_fault(
                    contract, weight_metas(module), settings_of(module), "in the model"
                )
                if fault:
                    self.findings.record_verdict("self-test", component, fault)

    def _note_health(self, total: Difference) -> None:
        if total.reason is None and not total.noticed:
            self.findings.warn(f"the composition is vacuous: {VACUOUS}")
        if total.not_finite:
            self.findings.warn("the output holds NaN or infinity")
        if len(self._fingerprints) == 1 and self.runner.options.seeds > 1 and total.reason is None:
            self.findings.warn("the output is the same for every seed")


def _has_one_operation(events: list[Event]) -> bool:
    return sum(not event.constant for event in events) <= 1
