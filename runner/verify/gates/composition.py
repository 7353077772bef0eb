"""Judges the composition: a model made of kernel files alone, compared with the original.

The original runs first, then its replacement, on the same inputs and on the same weight tensors.
The activations of two models never exist at once.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from torch import nn

from runner.errors import MissingError, ProblemError
from runner.problems import (
    check_outputs,
    is_checkout,
    out_of_memory,
)
from runner.quantities import counted
from runner.torch_internals import storage_of
from runner.tree.document import Node
from runner.verify.findings import Findings
from runner.verify.gates.compare import (
    COMPOSITION,
    VACUOUS,
    compare_with_control,
    count_elements,
)
from runner.verify.gates.coverage import (
    collect_author_calls,
    compare_coverage,
    coverage_fault,
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
    weights_without_effect,
)
from runner.verify.gates.parent_source import parent_fault, parse_file
from runner.verify.gates.power import MODEL, Comparison, PowerGate, can_be_seen_to_fail
from runner.verify.gates.root import RootGate
from runner.verify.gates.self_test import (
    SelfTests,
    count_operation_names,
    documented_inputs,
    find_components,
    forbid_computation,
    format_metas,
    has_same_layout,
    outside_tensor_fault,
)
from runner.verify.gates.steps import StepGate
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
from runner.verify.layout import COMPOSITION_TEST, KERNEL_FOLDER, ORIGINAL, Layout, require_name_map
from runner.verify.loading_files import (
    AnyFiles,
    AnyProblem,
    CannotJudge,
    foreign_code,
    require_attribute,
)
from runner.verify.original_check import describe_inputs
from runner.verify.runtime.disk_cache import DiskCache
from runner.verify.runtime.operation_watch import ComponentCall, Event
from runner.verify.runtime.output_leaves import MissingValuesError
from runner.verify.runtime.replay import Recording
from runner.verify.runtime.runner import ForwardObservation, ForwardRunner, Inputs, SharedInputs

_MAX_NAMED_FILES = 5
"""Number of files that a remark names."""


class CompositionGate:
    """Judges the whole model; its first trial also serves rules, weights, coverage and health."""

    def __init__(
        self,
        files: AnyFiles,
        layout: Layout,
        bench: ForwardRunner,
        spill: DiskCache,
        tests: SelfTests,
        power: PowerGate,
        steps: StepGate,
        findings: Findings,
    ) -> None:
        self.files, self.layout, self.bench, self.spill = files, layout, bench, spill
        self.tests, self.power, self.steps, self.findings = tests, power, steps, findings
        self._root = RootGate(files, layout, bench, spill, tests, steps, findings)
        self.kernels_not_finite: set[str] = set()
        """Kernel files that gave NaN or infinity on the original's own inputs."""
        self.author_call_kernels: set[str] = set()
        """Kernel files that do the same as one call of a function or module of the author's."""
        self.single_operation_kernels: set[str] = set()
        """Kernel files that run at most one operation there that depends on an input."""
        self._fingerprints: set[object] = set()
        self._other_strides: list[str] = []
        """Kernel files that the model calls with other strides than their own inputs have."""
        self._run_self_tests: Callable[[], None] = lambda: None

    def judge(self, self_tests: Callable[[], None], missing: frozenset[str]) -> None:
        """Judge the whole model; `run_self_tests` is called after the root's step.

        `missing_packages`: packages that the original imports and that were not installed before
        any file ran.

        Raises:
            ProblemError: the original needs one of them, and nothing else is wrong so far.
        """
        findings = self.findings
        self._run_self_tests = self_tests
        with findings.record_cannot_judge("rules", COMPOSITION_TEST):
            tree = parse_file(self.bench.directory / COMPOSITION_TEST, COMPOSITION_TEST)
            if fault := parent_fault(tree, "ComposedModel"):
                findings.record_verdict("rules", COMPOSITION_TEST, fault)
        try:
            problem = self._load_original(missing)
            with foreign_code("the composition", self.bench.directory):
                total = self._compare(problem)
        except CannotJudge as error:
            self._root.close_step()
            findings.record_broken("composition", MODEL, str(error))
            for gate in ("rules", "weights", "coverage"):
                component = COMPOSITION_TEST if gate == "rules" else MODEL
                if not findings.has_verdict(gate, component):
                    findings.record_broken(gate, component, f"the composition did not run: {error}")
            return
        self._root.close_step()
        findings.composition = total
        if not findings.has_verdict("composition", MODEL):
            findings.record_comparison("composition", MODEL, total)
        self._note_health(total)

    def _compare(self, problem: AnyProblem) -> Difference:
        directory = self.bench.directory
        with forbid_computation(COMPOSITION_TEST, self.bench, self.findings):
            test = self.files.load(directory / COMPOSITION_TEST)
        require_attribute(test, "ComposedModel", directory)
        mapping = require_name_map(
            require_attribute(test, "WEIGHTS", directory), f"{COMPOSITION_TEST}: WEIGHTS"
        )
        total = Difference()
        for trial in range(self.bench.options.seeds):
            try:
                total |= self._run_trial(problem, test, mapping, trial)
            except MissingValuesError:
                with self.spill.storing_values():
                    total |= self._run_trial(problem, test, mapping, trial)
            if total.reason:
                break
        return total

    def _load_original(self, missing: frozenset[str]) -> AnyProblem:
        directory = self.bench.directory
        try:
            with foreign_code(ORIGINAL, directory), self.bench.default_dtype(ORIGINAL):
                return self.files.problem()
        except CannotJudge as error:
            cause = error.__cause__
            if not isinstance(cause, MissingError) or not self.findings.all_good:
                raise
            package = str(getattr(cause.__cause__, "name", "")).partition(".")[0]
            if package not in missing:
                raise
            packages = self.layout.tree.metadata.packages if self.layout.tree else {}
            if not is_checkout(packages.get(package, "")):
                raise cause from error
            hint = f"run in the folder that holds {package}, or name that folder in PYTHONPATH"
            raise ProblemError(cause.path, cause.what, hint=hint) from error

    def _run_trial(
        self, problem: AnyProblem, test: ModuleType, mapping: dict[str, str], trial: int
    ) -> Difference:
        bench, findings = self.bench, self.findings
        inputs = SharedInputs(lambda: self._draw_inputs(problem, trial))
        expected, held, known, seen, state = self._run_original(problem, mapping, inputs, trial)
        if trial == 0:
            self._root.judge_own_inputs(inputs)
        self._root.judge(expected, held, known, inputs, trial)
        if trial == 0:
            with findings.time_gate("self-test"):
                self._run_self_tests()
        with forbid_computation(COMPOSITION_TEST, bench, findings):
            composed = bench.build_bare(
                f"{COMPOSITION_TEST}: ComposedModel",
                lambda: test.__dict__["ComposedModel"](),
                trial,
            )
        if seen:
            unused = frozenset(known.entries) - seen.weights_used
            fault = weight_map_fault(mapping, describe_weights(composed), known, unused)
            findings.record_verdict("weights", MODEL, fault)
        with foreign_code(f"{COMPOSITION_TEST}: WEIGHTS", bench.directory):
            transfer_weights(held, composed, mapping)
        places = {name: storage_of(tensor) for name, tensor in held.items()}
        del held
        found = self._find_kernels(composed) if trial == 0 else {}
        recording = self.power.make_recording(MODEL, found) if trial == 0 else None
        waited = {
            file for _, file in found.values() if self._root.self_test_reuse.needs_self_test(file)
        }
        actual, ran = self._run_composed(composed, found, inputs, trial, recording)
        self.kernels_not_finite |= waited & self.tests.not_finite.keys()  # found in this very run
        left = compare_state(state, composed, mapping)
        if recording is None:
            del composed
        if seen and ran:
            self._judge_run(seen, ran)
            findings.record_verdict(
                "weights", MODEL, unread_weight_fault(mapping, places, seen, ran)
            )
        difference = compare_with_control(expected, actual, COMPOSITION) | left
        if difference.reason is None and count_elements(expected) == 0:
            reason = "the output holds no numbers: no difference could have been seen"
            findings.record_vacuous("composition", MODEL, reason, difference)
        if recording and seen and ran and can_be_seen_to_fail(difference, ran.trace.parent_faults):
            what = f"{COMPOSITION_TEST}: forward"
            self.power.judge(
                Comparison(
                    MODEL,
                    {path: file for path, (_, file) in found.items()},
                    {path: module for path, (module, _) in found.items()},
                    lambda: bench.forward(what, composed, inputs.get(), trial)[0],
                    actual if difference.bitwise_equal else expected,
                    difference.bitwise_equal,
                    COMPOSITION,
                    seen.computes_for_nothing,
                ),
                recording,
            )
        if waited and recording is None:
            del actual
            for component in sorted(waited):
                findings.record_verdict("rules", component, self._watch.retained_tensor_fault())
        return difference

    def _draw_inputs(self, problem: AnyProblem, trial: int) -> Inputs:
        return self.bench.draw(f"{ORIGINAL}: get_inputs()", problem.get_inputs, trial)

    def _run_original(
        self, problem: AnyProblem, mapping: dict[str, str], inputs: SharedInputs, trial: int
    ) -> tuple[object, Weights, WeightTable, ForwardObservation | None, Weights]:
        bench = self.bench
        model = bench.build(f"{ORIGINAL}: Model", problem.build, trial)
        if bench.standalone:
            bench.standalone.original_built(model, trial)
        bench.vary(model, trial, frozenset(mapping.values()))
        known, held = describe_weights(model), snapshot_weights(model)
        given = inputs.get()
        watch = bench.make_watch(model) if trial == 0 else None
        try:
            output, seen = bench.forward(f"{ORIGINAL}: forward", model, given, trial, watch)
        except CannotJudge as error:
            inputs_of = f"inputs of seed {bench.options.seed + trial}"
            raise CannotJudge(f"{error}; {inputs_of}: {describe_inputs(given)}") from error
        state = copy_buffers(model) if bench.options.mode == "train" else {}
        with foreign_code(f"{ORIGINAL}: forward", bench.directory):
            check_outputs(problem.problem, output)
        del given
        expected = self.spill.store(output)
        self._fingerprints.add(fingerprint(expected))
        if seen:
            self._examine_output(problem, model, inputs, output, expected is output, seen)
        return expected, held, known, seen, state

    def _examine_output(
        self,
        problem: AnyProblem,
        model: nn.Module,
        inputs: SharedInputs,
        output: Any,
        is_small: bool,
        seen: ForwardObservation,
    ) -> None:
        findings = self.findings
        for warning in inputs_without_effect(seen):
            findings.warn(warning)
        for note in weights_without_effect(seen, model):
            findings.note(note)
        constant = constant_output(output)
        if constant:
            findings.warn(constant)
            return
        if not is_small or self.bench.streaming:
            findings.not_examined = [UNEXAMINED]
        else:
            try:
                health = find_blind_spots(
                    self.bench, model, inputs, output, seen, lambda t: self._draw_inputs(problem, t)
                )
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                health = Health(not_examined=[UNEXAMINED])  # the gates need less
            for note in health.notes:
                findings.note(note)
            findings.not_examined = health.not_examined

    def _find_kernels(self, model: nn.Module) -> dict[str, tuple[nn.Module, str]]:
        """Return module path -> (module, file) of each kernel in the composed model."""
        directory = self.bench.directory
        found = find_components(model, directory / KERNEL_FOLDER, directory)
        if not found:
            self.findings.record_verdict(
                "rules", COMPOSITION_TEST, f"uses no class of {KERNEL_FOLDER}/"
            )
        self.findings.record_verdict("rules", COMPOSITION_TEST, outside_tensor_fault(model, found))
        return found

    def _run_composed(
        self,
        model: nn.Module,
        found: dict[str, tuple[nn.Module, str]],
        inputs: SharedInputs,
        trial: int,
        recording: Recording | None,
    ) -> tuple[object, ForwardObservation | None]:
        what = f"{COMPOSITION_TEST}: forward"
        given = inputs.get()
        if trial:
            return self.bench.forward(what, model, given, trial)
        names = {path: file for path, (_, file) in found.items()}
        modules = {path: module for path, (module, _) in found.items()}
        watch = self._watch = self.bench.make_watch(model)
        suspects = {c for c in self.tests.not_finite if not self.layout.is_kernel(c)}
        below = {kernel for c in suspects for kernel in self.layout.kernels_below(c)}
        with (
            self._root.self_test_reuse.watch_kernels(modules, names, given, repeated=False),
            recording.record_calls() if recording else nullcontext(),
            watch.watch_components(found, names, frozenset(self.tests.not_finite) | below),
        ):
            output, seen = self.bench.forward(what, model, given, trial, watch)
        self.kernels_not_finite = watch.trace.not_finite
        return output, seen

    def _judge_run(self, seen: ForwardObservation, ran: ForwardObservation) -> None:
        findings, trace = self.findings, ran.trace
        outside = trace.parent_faults[0] if trace.parent_faults else None
        findings.record_verdict("rules", COMPOSITION_TEST, outside)
        for component, what in trace.component_faults.items():
            findings.record_verdict("rules", component, what)
        coverage = compare_coverage(MODEL, seen, ran)
        findings.record_coverage(coverage)
        findings.record_verdict("coverage", MODEL, coverage_fault(coverage))
        authors = collect_author_calls(seen.trace.events)
        for component in sorted({call.component for call in trace.calls} | self._kernel_files()):
            calls = [call for call in trace.calls if call.component == component]
            if all(work_of(trace.events[slice(*c.event_span)]) in authors for c in calls):
                self.author_call_kernels.add(component)
            if all(_has_one_operation(trace.events[slice(*c.event_span)]) for c in calls):
                self.single_operation_kernels.add(component)
            self._judge_calls(component, calls, self.layout.nodes(component))
            self._judge_kernel(component, calls, trace.events)
        if self._other_strides:
            files, more = (
                self._other_strides[:_MAX_NAMED_FILES],
                len(self._other_strides) - _MAX_NAMED_FILES,
            )
            rest = f" and {more} more" if more > 0 else ""
            told = f"in the model other strides than in their own inputs: {', '.join(files)}{rest}"
            self.findings.note(told)

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
            often, have = counted(len(calls), "time"), counted(len(nodes), "instance")
            fault = f"runs {often}, the tree has {have}"
        elif Counter(call.inputs for call in calls) != Counter(map(documented_inputs, nodes)):
            fault = "runs on other inputs than the tree says"
        self.findings.record_verdict("coverage", component, fault)
        strides = {call.strides for call in calls}
        if contract and any(
            not all(map(has_same_layout, [s for s, _ in contract.inputs], contract.strides, real))
            for real in strides
        ):
            self._other_strides.append(component)

    def _judge_kernel(
        self, component: str, calls: list[ComponentCall], events: list[Event]
    ) -> None:
        """Compare a kernel's operations in the model with those on its own, equal inputs."""
        contract = self.tests.contracts.get(component)
        if contract is None or contract.operations is None:
            return
        shapes = [shape for shape, _ in contract.inputs]
        for call in calls:
            same = contract.inputs == call.inputs and all(
                map(has_same_layout, shapes, contract.strides, call.strides)
            )
            seen = events[slice(*call.event_span)]
            ran, alone = count_operation_names(seen), contract.operations
            # Where the model computes an input from constants, the kernel's operations on it are
            # constant too.
            less = alone - count_operation_names(seen, constants=True)
            if same and (less or ran - alone):
                told = (
                    f"{_format_names(ran)} in the model,"
                    f" {_format_names(contract.operations)} by itself"
                )
                self.findings.record_verdict("rules", component, f"runs {told}")

    def _note_health(self, total: Difference) -> None:
        if total.reason is None and not total.noticed:
            self.findings.warn(f"the composition is vacuous: {VACUOUS}")
        if total.not_finite:
            self.findings.warn("the output holds NaN or infinity")
        if len(self._fingerprints) == 1 and self.bench.options.seeds > 1 and total.reason is None:
            self.findings.warn("the output is the same for every seed")


def _has_one_operation(events: list[Event]) -> bool:
    return sum(not event.constant for event in events) <= 1


def _format_names(operations: Counter[str]) -> str:
    return " + ".join(sorted(operations.elements())[:6]) or "nothing"
