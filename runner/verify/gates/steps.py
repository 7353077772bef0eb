"""Judges steps: a parent and its refactored model, on the same weights and inputs."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from torch import nn

from runner.quantities import counted
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
    SelfTests,
    count_operation_names,
    forbid_computation,
    format_metas,
    judge_output,
    load_component,
    note_contract,
    outside_tensor_fault,
)
from runner.verify.gates.training_state import compare_state
from runner.verify.gates.weights import (
    Weights,
    WeightTable,
    copy_buffers,
    describe_weights,
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
        bench: ForwardRunner,
        spill: DiskCache,
        tests: SelfTests,
        power: PowerGate,
        findings: Findings,
    ) -> None:
        self.files, self.layout, self.bench, self.spill = files, layout, bench, spill
        self.tests, self.power, self.findings = tests, power, findings
        self._self_test_reuse = SelfTestReuse(files, layout, bench, tests, findings)
        self._nested_steps = NestedSteps(bench, spill, findings)
        self._calls: set[tuple[str, tuple[TensorMeta, ...], str]] = set()

    def judge(self, step: StepFolder) -> None:
        """Judge a step on its parent's own weights and inputs."""
        with self.record_failure(step):
            opened = self.load_step(step)
            original = f"{step.folder}/original.py"
            parent = load_component(self.files, self.bench, original, step.parent or original)
            for trial in range(self.bench.options.seeds):
                try:
                    self.compare_trial(opened, self._run_parent(parent, trial), trial)
                except MissingValuesError:
                    with self.spill.storing_values():
                        self.compare_trial(opened, self._run_parent(parent, trial), trial)
                if opened.total.reason:
                    break
            self.finish_step(opened)
            if opened.total.reason is None:
                self._nested_steps.add(opened)

    @contextmanager
    def record_failure(self, step: StepFolder) -> Iterator[None]:
        """Record CannotJudge, if the body raises it, as the verdict of this step's gates."""
        refactored = f"{step.folder}/refactored.py"
        try:
            with foreign_code(step.folder, self.bench.directory):
                yield
        except CannotJudge as error:
            self.findings.record_broken("step", step.folder, str(error))
            for gate in ("rules", "weights", "coverage"):
                component = refactored if gate == "rules" else step.folder
                if not self.findings.has_verdict(gate, component):
                    self.findings.record_broken(gate, component, f"the step did not run: {error}")

    def load_step(self, step: StepFolder) -> LoadedStep:
        """Check a step's source and load it; CannotJudge if a part is missing."""
        refactored = f"{step.folder}/refactored.py"
        findings = self.findings
        with findings.record_cannot_judge("rules", refactored):
            tree = parse_file(self.bench.directory / refactored, refactored)
            if fault := parent_fault(tree, "RefactoredModel"):
                findings.record_verdict("rules", refactored, fault)
        if fault := self._children_fault(step):
            findings.record_verdict("rules", refactored, fault)
        with forbid_computation(refactored, self.bench, findings):
            module = self.files.load_step(self.bench.directory / step.folder)
        require_attribute(module, "RefactoredModel", self.bench.directory)
        return LoadedStep(step, module, read_weight_map(self.bench.directory / step.folder))

    def finish_step(self, opened: LoadedStep) -> None:
        """Record the verdict, after the last trial."""
        step, total, findings = opened.step, opened.total, self.findings
        if not findings.has_verdict("step", step.folder):
            findings.record_comparison("step", step.folder, total)
            if total.reason is None and not total.noticed:
                findings.warn(f"{step.folder} is vacuous: {VACUOUS}")

    def compare_trial(self, opened: LoadedStep, parent: "ParentRun", trial: int) -> None:
        """Run the refactored model on the inputs and weights of its parent, and compare."""
        bench, findings = self.bench, self.findings
        step, mapping = opened.step, opened.mapping
        inputs, expected, seen = parent.inputs, parent.expected, parent.observation
        where = f"{step.folder}/refactored.py"
        with forbid_computation(where, bench, findings):
            refactored = bench.build_bare(
                f"{where}: RefactoredModel", opened.build_refactored, trial
            )
        if trial == 0:
            fault = weight_map_fault(mapping, describe_weights(refactored), parent.weight_table)
            findings.record_verdict("weights", step.folder, fault)
        with foreign_code(f"{step.folder}/weight_map.json", bench.directory):
            transfer_weights(parent.weights, refactored, mapping)
        found = self._find_children(opened, refactored) if trial == 0 else {}
        recording = self.power.make_recording(step.folder, found) if trial == 0 else None
        actual, ran = self._run_refactored(opened, refactored, found, parent, trial, recording)
        if seen and ran:
            self._judge_run(step, seen, ran)
            places = {name: storage_of(tensor) for name, tensor in parent.weights.items()}
            findings.record_verdict(
                "weights", step.folder, unread_weight_fault(mapping, places, seen, ran)
            )
        left = compare_state(parent.buffers, refactored, mapping)
        if recording is None:
            del refactored
        difference = compare_with_control(expected, actual, STEP) | left
        if difference.reason is None and count_elements(expected) == 0:
            self.findings.record_vacuous(
                "step", step.folder, "the output holds no numbers", difference
            )
        if recording and seen and ran and can_be_seen_to_fail(difference, ran.trace.parent_faults):
            what = f"{where}: forward"
            self.power.judge(
                Comparison(
                    step.folder,
                    opened.component_files(found),
                    {path: module for path, (module, _) in found.items()},
                    lambda: bench.forward(what, refactored, inputs.get(), trial)[0],
                    actual if difference.bitwise_equal else expected,
                    difference.bitwise_equal,
                    STEP,
                    seen.computes_for_nothing,
                ),
                recording,
            )
        opened.total |= difference

    def _run_parent(self, parent: ComponentFile, trial: int) -> "ParentRun":
        bench, first = self.bench, trial == 0
        inputs = SharedInputs(lambda: parent.draw(trial))
        model = parent.build(trial)
        bench.vary(model, trial)
        known, held = describe_weights(model), snapshot_weights(model)
        given = inputs.get()
        if first:
            note_contract(parent, self.layout, model, given, self.tests, self.findings)
        watch = bench.make_watch(model) if first else None
        output, seen = bench.forward(f"{parent.path}: forward", model, given, trial, watch)
        if first and self.layout.step_of(parent.path):
            judge_output(parent, self.layout, output, self.tests, self.findings)
        state = copy_buffers(model) if bench.options.mode == "train" else {}
        return ParentRun(inputs, self.spill.store(output), held, known, state, seen)

    def _find_children(
        self, opened: LoadedStep, model: nn.Module
    ) -> dict[str, tuple[nn.Module, str]]:
        """Return module path -> (module, file) of each child."""
        found = opened.find_children(model, self.bench)
        where = f"{opened.step.folder}/refactored.py"
        if not found:
            self.findings.record_verdict("rules", where, "uses no class of children/")
        self.findings.record_verdict("rules", where, outside_tensor_fault(model, found))
        return found

    def _run_refactored(
        self,
        opened: LoadedStep,
        model: nn.Module,
        found: dict[str, tuple[nn.Module, str]],
        parent: "ParentRun",
        trial: int,
        recording: Recording | None,
    ) -> tuple[object, ForwardObservation | None]:
        what = f"{opened.step.folder}/refactored.py: forward"
        given = parent.inputs.get()
        if trial:
            return self.bench.forward(what, model, given, trial)
        watch = self.bench.make_watch(model)
        modules = {path: module for path, (module, _) in found.items()}
        names = opened.component_files(found)
        with (
            nullcontext() if parent.repeated else self._nested_steps.watch_modules(modules, names),
            self._self_test_reuse.watch_kernels(modules, names, given, repeated=parent.repeated),
            recording.record_calls() if recording else nullcontext(),
            watch.watch_components(found, names),
        ):
            return self.bench.forward(what, model, given, trial, watch)

    def _judge_run(
        self, step: StepFolder, seen: ForwardObservation, ran: ForwardObservation
    ) -> None:
        findings, trace = self.findings, ran.trace
        outside = trace.parent_faults[0] if trace.parent_faults else None
        findings.record_verdict("rules", f"{step.folder}/refactored.py", outside)
        self._calls |= {(call.component, call.inputs, step.folder) for call in trace.calls}
        for component, what in trace.component_faults.items():
            findings.record_verdict("rules", component, what)
        for call in trace.calls if not trace.parent_faults else ():
            self._note_operations(call, trace.events)
        coverage = compare_coverage(step.folder, seen, ran)
        findings.record_coverage(coverage)
        fault = coverage_fault(coverage) or self._calls_fault(step, ran)
        findings.record_verdict("coverage", step.folder, fault)

    def _note_operations(self, call: ComponentCall, events: list[Event]) -> None:
        """Add the operations of a kernel to its contract, if this call was its self-test."""
        contract = self.tests.contracts.get(call.component)
        if contract and contract.operations is None and contract.inputs == call.inputs:
            ran = count_operation_names(events[slice(*call.event_span)])
            self.tests.contracts[call.component] = replace(contract, operations=ran)

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

    def _inputs_agree(self, one: tuple[TensorMeta, ...], other: tuple[TensorMeta, ...]) -> bool:
        """Return whether inputs agree; specialised programs may differ in sizes for other values.

        torch drops the dimension of rows that a mask selects if there is only one.
        """
        if not self.bench.options.specialised:
            return one == other
        return len(one) == len(other) and all(
            a == b and abs(len(s) - len(t)) <= 1 for (s, a), (t, b) in zip(one, other, strict=True)
        )

    def _calls_fault(self, step: StepFolder, ran: ForwardObservation) -> str | None:
        """Return a fault if other children ran than the tree lists, or in another order."""
        order = [call.component for call in ran.trace.calls]
        calls = Counter(order)
        for node in self.layout.nodes(step.parent or ""):
            assert self.layout.tree is not None
            children = [self.layout.tree.nodes[child].path for child in node.children]
            said = Counter(children)
            for component in sorted(said.keys() | calls.keys()):
                if said[component] != calls[component]:
                    return (
                        f"{component} runs {counted(calls[component], 'time')},"
                        f" {node.id} has {said[component]} such children"
                    )
            for n, (ran_now, told) in enumerate(zip(order, children, strict=True)):
                if ran_now != told:
                    place = f"child {n + 1} of {node.id} is {told} in {TREE_FILE}"
                    return f"{place}, and {ran_now} runs there"
        return None

    def _children_fault(self, step: StepFolder) -> str | None:
        if step.parent is None:
            return "its original.py is none of the component files"
        for name, component in step.children.items():
            if component is None:
                return f"children/{name}.py is none of the component files"
        for node in self.layout.nodes(step.parent)[:1]:
            assert self.layout.tree is not None
            said = {self.layout.tree.nodes[child].path for child in node.children}
            if said != set(step.children.values()):
                return f"children/ are not the children that the tree gives {node.id}"
        return None
