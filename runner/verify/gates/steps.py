"""Judges steps: a parent and its refactored model, on the same weights and inputs."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from torch import nn

from runner.quantities import pluralize
from runner.torch_internals import storage_of
from runner.tree.document import TREE_FILE
from runner.verify.findings import Findings
from runner.verify.gates.compare import STEP, VACUOUS, compare_with_control, count_elements
from runner.verify.gates.coverage import compare_coverage, coverage_fault, unread_weight_fault
from runner.verify.gates.nested_steps import LoadedStep, NestedSteps
from runner.verify.gates.operation_identity import TensorMeta
from runner.verify.gates.parent_source import parent_fault, parse_file
from runner.verify.gates.power import Comparison, PowerGate, can_be_seen_to_fail
from runner.verify.gates.self_test import (
    ComponentFile,
    Contract,
    SelfTests,
    count_operations,
    forbid_computation,
    format_metas,
    judge_output,
    load_component,
    note_contract,
    operations_fault,
    outside_tensor_fault,
    weight_metas,
    weights_fault,
)
from runner.verify.gates.training_state import compare_state
from runner.verify.gates.weights import (
    Weights,
    WeightTable,
    copy_buffers,
    describe_weights,
    parameter_storages,
    snapshot_weights,
    transfer_weights,
    weight_map_fault,
)
from runner.verify.layout import Layout, StepFolder, read_weight_map
from runner.verify.loading_files import AnyFiles, CannotJudge, foreign_code, require_attribute
from runner.verify.runtime.disk_cache import DiskCache
from runner.verify.runtime.operation_watch import ComponentCall, Event
from runner.verify.runtime.output_leaves import MissingValuesError
from runner.verify.runtime.replay import Recording
from runner.verify.runtime.runner import ForwardObservation, ForwardRunner, SharedInputs
from runner.verify.runtime.self_test_reuse import SelfTestReuse


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
    """Result of watching the forward; None after the first trial."""
    repeated: bool = True
    """Whether the inputs are the component's own, in which large draws are repeated blocks."""


class StepGate:
    """Judges one step at a time; the first trial serves self-test, rules, weights, coverage too."""

    def __init__(
        self,
        files: AnyFiles,
        layout: Layout,
        runner: ForwardRunner,
        disk_cache: DiskCache,
        tests: SelfTests,
        power: PowerGate,
        findings: Findings,
    ) -> None:
        self.files, self.layout, self.runner, self.disk_cache = files, layout, runner, disk_cache
        self.tests, self.power, self.findings = tests, power, findings
        self._self_test_reuse = SelfTestReuse(files, layout, runner, tests, findings)
        self._nested_steps = NestedSteps(runner, disk_cache, findings)
        self._calls: set[tuple[str, tuple[TensorMeta, ...], str]] = set()
        self._later_checks: list[tuple[str, Callable[[Contract], str | None]]] = []
        """Files of children with what is checked about them once their contracts are known."""

    def judge(self, step: StepFolder) -> None:
        """Judge a step on its parent's own weights and inputs."""
        with self.record_failure(step):
            loaded_step = self.load_step(step)
            original = f"{step.folder}/original.py"
            parent = load_component(self.files, self.runner, original, step.parent or original)
            for trial in range(self.runner.options.seeds):
                try:
                    self.compare_trial(loaded_step, self._run_parent(parent, trial), trial)
                except MissingValuesError:
                    with self.disk_cache.storing_values():
                        self.compare_trial(loaded_step, self._run_parent(parent, trial), trial)
                if loaded_step.total.reason:
                    break
            self.finish_step(loaded_step)
            if loaded_step.total.reason is None:
                self._nested_steps.add(loaded_step)

    @contextmanager
    def record_failure(self, step: StepFolder) -> Iterator[None]:
        """Record CannotJudge, if the body raises it, as the verdict of this step's gates."""
        refactored_file = f"{step.folder}/refactored.py"
        try:
            with foreign_code(step.folder, self.runner.directory):
                yield
        except CannotJudge as error:
            self.findings.record_broken("step", step.folder, str(error))
            for gate in ("rules", "weights", "coverage"):
                component = refactored_file if gate == "rules" else step.folder
                if not self.findings.has_verdict(gate, component):
                    self.findings.record_broken(gate, component, f"the step did not run: {error}")

    def load_step(self, step: StepFolder) -> LoadedStep:
        """Check a step's source and load it; CannotJudge if a part is missing."""
        refactored_file = f"{step.folder}/refactored.py"
        findings = self.findings
        with findings.record_cannot_judge("rules", refactored_file):
            tree = parse_file(self.runner.directory / refactored_file, refactored_file)
            if fault := parent_fault(tree, "RefactoredModel"):
                findings.record_verdict("rules", refactored_file, fault)
        if fault := self._children_fault(step):
            findings.record_verdict("rules", refactored_file, fault)
        with forbid_computation(refactored_file, self.runner, findings):
            module = self.files.load_step(self.runner.directory / step.folder)
        require_attribute(module, "RefactoredModel", self.runner.directory)
        return LoadedStep(step, module, read_weight_map(self.runner.directory / step.folder))

    def finish_step(self, loaded_step: LoadedStep) -> None:
        """Record the verdict, after the last trial."""
        step, total, findings = loaded_step.step, loaded_step.total, self.findings
        if not findings.has_verdict("step", step.folder):
            findings.record_comparison("step", step.folder, total)
            if total.reason is None and not total.noticed:
                findings.warn(f"{step.folder} is vacuous: {VACUOUS}")

    def compare_trial(self, loaded_step: LoadedStep, parent: "ParentRun", trial: int) -> None:
        """Run the refactored model on the inputs and weights of its parent, and compare."""
        runner, findings = self.runner, self.findings
        step, mapping = loaded_step.step, loaded_step.mapping
        inputs, expected, original_run = parent.inputs, parent.expected, parent.observation
        refactored_file = f"{step.folder}/refactored.py"
        with forbid_computation(refactored_file, runner, findings):
            refactored_model = runner.build_bare(
                f"{refactored_file}: RefactoredModel", loaded_step.build_refactored, trial
            )
        if trial == 0:
            fault = weight_map_fault(
                mapping, describe_weights(refactored_model), parent.weight_table
            )
            findings.record_verdict("weights", step.folder, fault)
        with foreign_code(f"{step.folder}/weight_map.json", runner.directory):
            transfer_weights(parent.weights, refactored_model, mapping)
        children = self._find_children(loaded_step, refactored_model) if trial == 0 else {}
        if trial == 0 and runner.standalone and step.parent:
            files = loaded_step.component_files(children)
            runner.standalone.record_map(step.parent, mapping, files)
        recording = self.power.make_recording(step.folder, children) if trial == 0 else None
        actual, refactored_run = self._run_refactored(
            loaded_step, refactored_model, children, parent, trial, recording
        )
        if original_run and refactored_run:
            self._judge_run(step, original_run, refactored_run)
            storages = {name: storage_of(tensor) for name, tensor in parent.weights.items()}
            findings.record_verdict(
                "weights",
                step.folder,
                unread_weight_fault(mapping, storages, original_run, refactored_run),
            )
        buffer_difference = compare_state(parent.buffers, refactored_model, mapping)
        if recording is None:
            del refactored_model
        difference = compare_with_control(expected, actual, STEP) | buffer_difference
        if difference.reason is None and count_elements(expected) == 0:
            self.findings.record_vacuous(
                "step", step.folder, "the output holds no numbers", difference
            )
        if (
            recording
            and original_run
            and refactored_run
            and can_be_seen_to_fail(difference, refactored_run.trace.parent_faults)
        ):
            label = f"{refactored_file}: forward"
            self.power.judge(
                Comparison(
                    step.folder,
                    loaded_step.component_files(children),
                    {path: module for path, (module, _) in children.items()},
                    lambda: runner.forward(label, refactored_model, inputs.get(), trial)[0],
                    actual if difference.bitwise_equal else expected,
                    difference.bitwise_equal,
                    STEP,
                    original_run.computes_for_nothing,
                ),
                recording,
            )
        loaded_step.total |= difference

    def _run_parent(self, parent: ComponentFile, trial: int) -> "ParentRun":
        runner, first = self.runner, trial == 0
        inputs = SharedInputs(lambda: parent.draw(trial))
        model = parent.build(trial)
        runner.vary(model, trial)
        weight_table, weights = describe_weights(model), snapshot_weights(model)
        model_inputs = inputs.get()
        if first:
            note_contract(parent, self.layout, model, model_inputs, self.tests, self.findings)
        watch = runner.make_watch(model) if first else None
        output, observation = runner.forward(
            f"{parent.path}: forward", model, model_inputs, trial, watch
        )
        if observation:
            operations = count_operations(observation.trace.events)
            contract = self.tests.contracts[parent.path]
            self.tests.contracts[parent.path] = replace(contract, operations=operations)
        if first and self.layout.step_of(parent.path):
            judge_output(parent, self.layout, output, self.tests, self.findings)
        buffers = copy_buffers(model) if runner.options.mode == "train" else {}
        return ParentRun(
            inputs, self.disk_cache.store(output), weights, weight_table, buffers, observation
        )

    def _find_children(
        self, loaded_step: LoadedStep, model: nn.Module
    ) -> dict[str, tuple[nn.Module, str]]:
        """Return module path -> (module, file) of each child."""
        children = loaded_step.find_children(model, self.runner)
        refactored_file = f"{loaded_step.step.folder}/refactored.py"
        if not children:
            self.findings.record_verdict("rules", refactored_file, "uses no class of children/")
        self.findings.record_verdict(
            "rules", refactored_file, outside_tensor_fault(model, children)
        )
        return children

    def _run_refactored(
        self,
        loaded_step: LoadedStep,
        model: nn.Module,
        children: dict[str, tuple[nn.Module, str]],
        parent: "ParentRun",
        trial: int,
        recording: Recording | None,
    ) -> tuple[object, ForwardObservation | None]:
        folder = loaded_step.step.folder
        label = f"{folder}/refactored.py: forward"
        model_inputs = parent.inputs.get()
        if trial:
            return self.runner.forward(label, model, model_inputs, trial)
        watch = self.runner.make_watch(model, parameter_storages(parent.weights))
        modules = {path: module for path, (module, _) in children.items()}
        names = loaded_step.component_files(children)
        for path, (module, _) in children.items():
            check = partial(weights_fault, weights=weight_metas(module), place=f"in {folder}")
            self._later_checks.append((names[path], check))
        with (
            nullcontext() if parent.repeated else self._nested_steps.watch_modules(modules, names),
            self._self_test_reuse.watch_kernels(
                modules, names, model_inputs, repeated=parent.repeated
            ),
            recording.record_calls() if recording else nullcontext(),
            watch.watch_components(children, names),
        ):
            return self.runner.forward(label, model, model_inputs, trial, watch)

    def _judge_run(
        self, step: StepFolder, original_run: ForwardObservation, refactored_run: ForwardObservation
    ) -> None:
        findings, trace = self.findings, refactored_run.trace
        first_fault = trace.parent_faults[0] if trace.parent_faults else None
        findings.record_verdict("rules", f"{step.folder}/refactored.py", first_fault)
        events, place = trace.events, f"in {step.folder}"
        by_name = self.runner.options.specialised or trace.reads_values
        for call in trace.calls:
            check = partial(
                operations_fault, call=call, events=events, place=place, by_name=by_name
            )
            self._later_checks.append((call.component, check))
        self._calls |= {(call.component, call.inputs, step.folder) for call in trace.calls}
        for component, component_fault in trace.component_faults.items():
            findings.record_verdict("rules", component, component_fault)
        for call in trace.calls if not trace.parent_faults else ():
            self._note_operations(call, trace.events)
        coverage = compare_coverage(step.folder, original_run, refactored_run)
        findings.record_coverage(coverage)
        fault = coverage_fault(coverage) or self._calls_fault(step, refactored_run)
        findings.record_verdict("coverage", step.folder, fault)

    def _note_operations(self, call: ComponentCall, events: list[Event]) -> None:
        """Add the operations of a kernel to its contract, if this call was its self-test."""
        contract = self.tests.contracts.get(call.component)
        if contract and contract.operations is None and contract.inputs == call.inputs:
            operations = count_operations(events[slice(*call.event_span)])
            self.tests.contracts[call.component] = replace(contract, operations=operations)

    def judge_calls(self) -> None:
        """Compare the inputs that steps called their children with to the children's own inputs."""
        for component, inputs, folder in sorted(self._calls):
            contract = self.tests.contracts.get(component)
            if contract and not self._inputs_agree(contract.inputs, inputs):
                self.findings.record_verdict(
                    "self-test",
                    component,
                    f"get_inputs() gives {format_metas(contract.inputs)},"
                    f" but {folder} calls it with {format_metas(inputs)}",
                )

        for component, check in self._later_checks:
            contract = self.tests.contracts.get(component)
            if contract and (fault := check(contract)):
                self.findings.record_verdict("self-test", component, fault)

    def _inputs_agree(
        self, own_inputs: tuple[TensorMeta, ...], call_inputs: tuple[TensorMeta, ...]
    ) -> bool:
        """Return whether inputs agree; specialised programs may differ in sizes for other values.

        torch drops the dimension of rows that a mask selects if there is only one.
        """
        if not self.runner.options.specialised:
            return own_inputs == call_inputs
        return len(own_inputs) == len(call_inputs) and all(
            a == b and abs(len(s) - len(t)) <= 1
            for (s, a), (t, b) in zip(own_inputs, call_inputs, strict=True)
        )

    def _calls_fault(self, step: StepFolder, refactored_run: ForwardObservation) -> str | None:
        """Return a fault if other children ran than the tree lists, or in another order."""
        actual_children = [call.component for call in refactored_run.trace.calls]
        calls = Counter(actual_children)
        for node in self.layout.nodes(step.parent or ""):
            assert self.layout.tree is not None
            expected_children = [self.layout.tree.nodes[child].path for child in node.children]
            expected_counts = Counter(expected_children)
            for component in sorted(expected_counts.keys() | calls.keys()):
                if expected_counts[component] != calls[component]:
                    return (
                        f"{component} runs {pluralize(calls[component], 'time')},"
                        f" {node.id} has {expected_counts[component]} such children"
                    )
            for n, (actual_child, expected_child) in enumerate(
                zip(actual_children, expected_children, strict=True)
            ):
                if actual_child != expected_child:
                    place = f"child {n + 1} of {node.id} is {expected_child} in {TREE_FILE}"
                    return f"{place}, and {actual_child} runs there"
        return None

    def _children_fault(self, step: StepFolder) -> str | None:
        if step.parent is None:
            return "its original.py is none of the component files"
        for name, component in step.children.items():
            if component is None:
                return f"children/{name}.py is none of the component files"
        for node in self.layout.nodes(step.parent)[:1]:
            assert self.layout.tree is not None
            tree_children = {self.layout.tree.nodes[child].path for child in node.children}
            if tree_children != set(step.children.values()):
                return f"children/ are not the children that the tree gives {node.id}"
        return None
