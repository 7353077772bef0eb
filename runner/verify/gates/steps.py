"""Judges steps: a parent and its refactored model, on the same weights and inputs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from torch import nn

from runner.quantities import pluralize
from runner.torch_internals import storage_of
from runner.tree.document import TREE_FILE
from runner.verify.gates.compare import STEP, VACUOUS, compare_with_control, count_elements
from runner.verify.gates.context import Context, Contract
from runner.verify.gates.coverage import (
    compare_coverage,
    coverage_fault,
    find_value_reads,
    unread_weight_fault,
)
from runner.verify.gates.nested_steps import IN_THE_MODEL, LoadedStep, NestedSteps, ParentRun
from runner.verify.gates.operation_identity import TensorMeta
from runner.verify.gates.parent_source import parent_fault, parse_file
from runner.verify.gates.power import Comparison, PowerGate, can_be_seen_to_fail
from runner.verify.gates.self_test import (
    ComponentFile,
    construction_fault,
    count_operations,
    forbid_computation,
    format_metas,
    judge_output,
    load_component,
    note_contract,
    operations_fault,
    outside_tensor_fault,
    settings_of,
    weight_metas,
)
from runner.verify.gates.training_state import compare_state
from runner.verify.gates.weights import (
    WeightTable,
    copy_buffers,
    describe_weights,
    parameter_storages,
    snapshot_weights,
    transfer_weights,
    weight_map_fault,
)
from runner.verify.layout import StepFolder, read_weight_map
from runner.verify.loading_files import CannotJudge, foreign_code, require_attribute
from runner.verify.runtime.operation_watch import ComponentCall, Event, Watch
from runner.verify.runtime.output_leaves import MissingValuesError
from runner.verify.runtime.replay import Recording
from runner.verify.runtime.runner import ForwardObservation, SharedInputs
from runner.verify.runtime.self_test_reuse import SelfTestReuse


class StepGate:
    """Judges one step at a time; the first trial serves self-test, rules, weights, coverage too."""

    def __init__(self, context: Context, power: PowerGate) -> None:
        self.context, self.power = context, power
        self.layout, self.runner = context.layout, context.runner
        self.tests, self.findings = context.tests, context.findings
        self.self_test_reuse = SelfTestReuse(context)
        self._nested_steps = NestedSteps(context, self.judge_run)
        self._loaded_steps: dict[str, LoadedStep] = {}
        self._calls: set[tuple[str, tuple[TensorMeta, ...], str]] = set()
        self._later_checks: list[tuple[str, Callable[[Contract], str | None]]] = []
        """Files of children with what is checked about them once their contracts are known."""

    def judge_alone(self, steps: Iterable[StepFolder]) -> None:
        """Judge steps that have no verdict yet, on their parents' own weights and inputs."""
        for step in steps:
            if not self.findings.has_verdict("step", step.folder):
                with self._record_failure(step):
                    self._judge_alone(step)

    def _judge_alone(self, step: StepFolder) -> None:
        loaded_step = self._load_step(step)
        original = f"{step.folder}/original.py"
        parent = load_component(self.context.files, self.runner, original, step.parent or original)
        for trial in range(self.runner.options.seeds):
            try:
                self._compare_trial(loaded_step, self._run_parent(parent, trial), trial)
            except MissingValuesError:
                with self.context.disk_cache.storing_values():
                    self._compare_trial(loaded_step, self._run_parent(parent, trial), trial)
            if loaded_step.total.reason:
                break
        self._record_step(loaded_step)

    @contextmanager
    def _record_failure(self, step: StepFolder) -> Iterator[None]:
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

    def _load_step(self, step: StepFolder) -> LoadedStep:
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
            module = self.context.files.load_step(self.runner.directory / step.folder)
        require_attribute(module, "RefactoredModel", self.runner.directory)
        mapping = read_weight_map(self.runner.directory / step.folder)
        loaded_step = self._loaded_steps[step.folder] = LoadedStep(step, module, mapping)
        return loaded_step

    def begin_trial(self, trial: int) -> None:
        """Let the steps below the root's wait for the model to call their parents in this trial.

        In others' directories they have been judged on their own inputs in all trials.
        """
        if trial and self.runner.standalone:
            return
        self._nested_steps.begin_trial(
            [
                step
                for step in self.layout.steps
                if step.parent != self.context.root and self._is_good(step)
            ]
        )

    def _is_good(self, step: StepFolder) -> bool:
        loaded_step = self._loaded_steps.get(step.folder)
        if loaded_step is None:
            return not self.findings.has_verdict("step", step.folder)
        return loaded_step.total.reason is None

    def judge_run(self, step: StepFolder, run: ParentRun, trial: int) -> None:
        """Judge a step on what the model gives its parent."""
        with self._record_failure(step):
            loaded_step = self._loaded_steps.get(step.folder) or self._load_step(step)
            self._compare_trial(loaded_step, run, trial)

    def finish(self) -> None:
        """Record the verdicts of the steps that were judged in the model, after the last trial.

        A step below the root's has none if no wrong value could be noticed there, such as behind a
        ReLU that gives zeros alone: it is then judged on its parent's own inputs.
        """
        for step in self.layout.steps:
            if loaded_step := self._loaded_steps.get(step.folder):
                total = loaded_step.total
                if total.reason or total.noticed or step.parent == self.context.root:
                    self._record_step(loaded_step)

    def _record_step(self, loaded_step: LoadedStep) -> None:
        folder, total = loaded_step.step.folder, loaded_step.total
        is_new = not self.findings.has_verdict("step", folder)
        self.findings.record_comparison("step", folder, total)
        if is_new and total.reason is None and not total.noticed:
            self.findings.warn(f"{folder} is vacuous: {VACUOUS}")

    def _compare_trial(self, loaded_step: LoadedStep, parent: ParentRun, trial: int) -> None:
        """Run the refactored model on the inputs and weights of its parent, and compare.

        If the parent was watched, the run also serves rules, weights, coverage and power.
        """
        runner, findings = self.runner, self.findings
        step, mapping = loaded_step.step, loaded_step.mapping
        original_run = parent.observation
        refactored_file = f"{step.folder}/refactored.py"
        with forbid_computation(refactored_file, runner, findings):
            refactored_model = runner.build_bare(
                f"{refactored_file}: RefactoredModel", loaded_step.build_refactored, trial
            )
        children = loaded_step.find_children(refactored_model, runner)
        recording = None
        if original_run:
            written_names = original_run.weights_used | parent.buffers.keys()
            unused_names = frozenset(parent.weight_table.entries) - written_names
            self._judge_model(
                loaded_step, refactored_model, children, parent.weight_table, unused_names
            )
            recording = self.power.make_recording(step.folder, children)
        with foreign_code(f"{step.folder}/weight_map.json", runner.directory):
            transfer_weights(parent.weights, refactored_model, mapping)
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
        difference = compare_with_control(parent.expected, actual, STEP)
        difference |= compare_state(parent.buffers, refactored_model, mapping)
        if difference.reason and parent.restore_generators:
            difference = replace(difference, reason=IN_THE_MODEL + difference.reason)
        if difference.reason is None and count_elements(parent.expected) == 0:
            findings.record_vacuous("step", step.folder, "the output holds no numbers", difference)
        if (
            recording
            and original_run
            and refactored_run
            and can_be_seen_to_fail(difference, refactored_run.trace.parent_faults)
        ):
            self.power.judge(
                Comparison(
                    step.folder,
                    loaded_step.component_files(children),
                    {path: module for path, (module, _) in children.items()},
                    lambda: self._run(loaded_step, refactored_model, parent, trial)[0],
                    actual if difference.bitwise_equal else parent.expected,
                    difference.bitwise_equal,
                    STEP,
                    original_run.computes_for_nothing,
                ),
                recording,
            )
        loaded_step.total |= difference

    def _judge_model(
        self,
        loaded_step: LoadedStep,
        model: nn.Module,
        children: dict[str, tuple[nn.Module, str]],
        weight_table: WeightTable,
        unused_names: frozenset[str],
    ) -> None:
        """Judge what a refactored model consists of, before it runs."""
        step, mapping, findings = loaded_step.step, loaded_step.mapping, self.findings
        fault = weight_map_fault(mapping, describe_weights(model), weight_table, unused_names)
        findings.record_verdict("weights", step.folder, fault)
        refactored_file = f"{step.folder}/refactored.py"
        if not children:
            findings.record_verdict("rules", refactored_file, "uses no class of children/")
        findings.record_verdict("rules", refactored_file, outside_tensor_fault(model, children))
        names = loaded_step.component_files(children)
        for path, (module, _) in children.items():
            check = partial(
                construction_fault,
                weights=weight_metas(module),
                settings=settings_of(module),
                place=f"in {step.folder}",
            )
            self._later_checks.append((names[path], check))
        if self.runner.standalone and step.parent:
            self.runner.standalone.record_map(step.parent, mapping, names)

    def _run_parent(self, parent: ComponentFile, trial: int) -> ParentRun:
        runner, first = self.runner, trial == 0
        inputs = SharedInputs(lambda: parent.draw(trial))
        model = parent.build(trial)
        runner.vary(model, trial)
        weight_table, weights = describe_weights(model), snapshot_weights(model)
        model_inputs = inputs.get()
        if first:
            note_contract(parent, model, model_inputs, self.context)
        watch = runner.make_watch(model) if first else None
        output, observation = runner.forward(
            f"{parent.path}: forward", model, model_inputs, trial, watch
        )
        if observation:
            operations = count_operations(observation.trace.events)
            self.tests.note_operations(parent.path, operations)
        if first and self.layout.step_of(parent.path):
            judge_output(parent, output, self.context)
        buffers = copy_buffers(model) if runner.options.mode == "train" else {}
        expected = self.context.disk_cache.store(output)
        return ParentRun(
            inputs, expected, weights, weight_table, buffers, observation, is_in_model=False
        )

    def _run_refactored(
        self,
        loaded_step: LoadedStep,
        model: nn.Module,
        children: dict[str, tuple[nn.Module, str]],
        parent: ParentRun,
        trial: int,
        recording: Recording | None,
    ) -> tuple[object, ForwardObservation | None]:
        modules = {path: module for path, (module, _) in children.items()}
        names = loaded_step.component_files(children)
        with ExitStack() as stack:
            if parent.is_in_model:
                stack.enter_context(self._nested_steps.watch_modules(modules, names, trial))
            if parent.observation is None:
                return self._run(loaded_step, model, parent, trial)
            parameters = parameter_storages(parent.weights, parent.weight_table.entries)
            watch = self.runner.make_watch(model, parameters)
            stack.enter_context(self.self_test_reuse.watch_components(modules, names, watch))
            if recording:
                stack.enter_context(recording.record_calls())
            stack.enter_context(watch.watch_components(children, names))
            return self._run(loaded_step, model, parent, trial, watch)

    def _run(
        self,
        loaded_step: LoadedStep,
        model: nn.Module,
        parent: ParentRun,
        trial: int,
        watch: Watch | None = None,
    ) -> tuple[object, ForwardObservation | None]:
        """Run a refactored model as its parent ran."""
        return self.runner.forward(
            f"{loaded_step.step.folder}/refactored.py: forward",
            model,
            parent.inputs.get(),
            trial,
            watch,
            restore_generators=parent.restore_generators,
        )

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
        if self.runner.standalone and step.parent:
            for _, reading_fault in find_value_reads(refactored_run, original_run):
                findings.record_verdict("rules", step.parent, reading_fault)
        coverage = compare_coverage(step.folder, original_run, refactored_run)
        findings.record_coverage(coverage)
        fault = coverage_fault(coverage) or self._calls_fault(step, refactored_run)
        findings.record_verdict("coverage", step.folder, fault)

    def _note_operations(self, call: ComponentCall, events: list[Event]) -> None:
        """Add the operations of a kernel to its contract, if this call was its self-test."""
        contract = self.tests.contracts.get(call.component)
        if contract and contract.operations is None and contract.has_inputs_of(call):
            operations = count_operations(events[slice(*call.event_span)])
            self.tests.note_operations(call.component, operations)

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
        for component, inputs in self._nested_steps.model_inputs.items():
            contract = self.tests.contracts.get(component)
            if contract and contract.inputs != inputs:
                self.findings.record_verdict(
                    "self-test",
                    component,
                    f"get_inputs() gives {format_metas(contract.inputs)},"
                    f" in the model it is called with {format_metas(inputs)}",
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
