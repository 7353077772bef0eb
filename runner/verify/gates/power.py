"""Judges the power of comparisons: whether they fail when a kernel is wrong.

Every kernel file is mutated in the smallest step that uses it, and in the composition if that step
notices nothing. All uses of the file are wrong at once; operations upstream of them do not run
again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from runner.verify.gates.compare import Tolerance, are_identical, compare, outputs_differ
from runner.verify.gates.context import Context
from runner.verify.gates.difference import Difference
from runner.verify.gates.health import constant_output
from runner.verify.gates.mutants import Mutant, mutants_of
from runner.verify.gates.power_report import KernelPower, MutantResult, Power, UncaughtReason
from runner.verify.layout import StepFolder
from runner.verify.loading_files import CannotJudge, foreign_code
from runner.verify.runtime.output_leaves import is_tensor, leaves, pieces_of
from runner.verify.runtime.replay import Recording, ReplayOutcome

MODEL = "model"
"""Component name in checks of the whole model, that is, of the composition."""

BEYOND_DOUBT = 2e-3
"""Largest difference, absolute and relative, that any tolerance may let pass."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison that passed, with everything that is needed to make it again."""

    component: str
    """The step's folder, or `model`."""
    components: dict[str, str]
    """Module path -> component file."""
    modules: dict[str, nn.Module]
    run: Callable[[], Any]
    """Runs the parent's forward on the inputs of the recording."""
    expected: object
    bitwise: bool
    """Whether the comparison found equal bits, so that any other bit counts as noticed."""
    tolerances: dict[torch.dtype, Tolerance]
    may_compute_for_nothing: bool
    """Whether the original, too, computes values that reach no output."""


class PowerGate:
    """Collects the results of each kernel file's mutants."""

    def __init__(self, context: Context) -> None:
        self._files, self._disk_cache = context.files, context.disk_cache
        self._runner, self._findings = context.runner, context.findings
        self._kernels = {
            path for path in context.layout.components if context.layout.is_kernel(path)
        }
        self._results: dict[str, list[MutantResult]] = {}
        self._faults: dict[str, str] = {}
        self._step_of_kernel = (
            self._smallest_steps(context.layout.steps) if self._runner.options.power else {}
        )

    def make_recording(
        self, component: str, children: dict[str, tuple[nn.Module, str]]
    ) -> Recording | None:
        """Return a recorder for a forward; None if no kernel is to be judged by this comparison."""
        if not self._kernels_to_judge(component):
            return None
        modules = {path: module for path, (module, _) in children.items()}
        return Recording(modules, self._disk_cache, self._runner.options.device)

    def judge(self, comparison: Comparison, recording: Recording) -> None:
        """Judge each kernel that needs this comparison by all of its mutants."""
        with self._findings.time_gate("power"):
            self._judge(comparison, recording)

    def _judge(self, comparison: Comparison, recording: Recording) -> None:
        for kernel in sorted(self._kernels_to_judge(comparison.component)):
            paths = [p for p, component in comparison.components.items() if component == kernel]
            calls = [call for path in paths for call in recording.calls_of(path)]
            if not calls:
                continue
            self._faults.pop(kernel, None)
            source = self._runner.directory / kernel
            instance = comparison.modules[paths[0]]
            mutants = mutants_of(source, calls[0], instance, self._runner, self._files)
            self._results[kernel] = [
                self._judge_mutant(kernel, paths, mutant, comparison, recording)
                for mutant in mutants
            ]

    def finish(self) -> None:
        """Record the verdicts, once everything has run."""
        if not self._runner.options.power:
            return
        reports = []
        for kernel in sorted(self._kernels):
            report = KernelPower(component=kernel, mutants=self._results.get(kernel, []))
            reports.append(report)
            if not report.mutants:
                self._findings.record_broken(
                    "power",
                    kernel,
                    "no comparison that passed uses it, so none can be seen to fail",
                )
                continue
            self._findings.record_verdict("power", kernel, self._faults.get(kernel))
            if not report.is_noticed and kernel not in self._faults:
                self._findings.warn(
                    f"{kernel}: wrong values go unnoticed: {_first_explanation(report)}"
                )
        self._findings.power = Power.from_kernels(reports)

    def _smallest_steps(self, steps: tuple[StepFolder, ...]) -> dict[str, str]:
        """Return kernel file -> folder of the step with the fewest children that uses it."""
        by_size = sorted(steps, key=lambda step: len(step.children))
        return {
            kernel: next(step.folder for step in by_size if kernel in step.children.values())
            for kernel in self._kernels
            if any(kernel in step.children.values() for step in steps)
        }

    def _kernels_to_judge(self, component: str) -> set[str]:
        if not self._runner.options.power:
            return set()
        if component != MODEL:
            return {kernel for kernel, home in self._step_of_kernel.items() if home == component}
        noticed_kernels = {
            kernel
            for kernel, results in self._results.items()
            if KernelPower(component=kernel, mutants=results).is_noticed
        }
        return self._kernels - noticed_kernels

    def _judge_mutant(
        self,
        kernel: str,
        paths: list[str],
        mutant: Mutant,
        comparison: Comparison,
        recording: Recording,
    ) -> MutantResult:
        make_result = partial(
            MutantResult, kind=mutant.kind, change=mutant.change, where=comparison.component
        )
        if mutant.fate:
            return make_result(verdict="caught", caught_by=mutant.fate)
        try:
            with (
                foreign_code(f"{kernel}: {mutant.change}", self._runner.directory),
                torch.no_grad(),
            ):
                wrong_kernels = {
                    path: mutant.make_wrong_kernel(comparison.modules[path]) for path in paths
                }
                outcome = recording.replay(comparison.run, wrong_kernels)
        except CannotJudge:
            return make_result(verdict="caught", caught_by="error")
        if outputs_differ(comparison.expected, outcome.output, comparison.tolerances):
            return make_result(verdict="caught", caught_by="values")
        if excess := _difference_beyond_doubt(comparison.expected, outcome.output):
            self._faults[kernel] = (
                f"{comparison.component} compares as equal what is {excess:.3g} off"
            )
        if comparison.bitwise and not are_identical(comparison.expected, outcome.output):
            return make_result(verdict="caught", caught_by="bits")
        reason, explanation = self._explain_uncaught(kernel, comparison, outcome)
        return make_result(verdict="uncaught", reason=reason, explanation=explanation)

    def _explain_uncaught(
        self, kernel: str, comparison: Comparison, outcome: ReplayOutcome
    ) -> tuple[UncaughtReason, str]:
        """Return why a comparison noticed nothing; a reason that must not occur becomes a fault."""
        if not outcome.is_changed:
            return "same_output", "it gives the same bits"
        if not outcome.reaches_output and not outcome.reaches_component:
            if not comparison.may_compute_for_nothing:
                self._faults[kernel] = f"nothing in {comparison.component} reads what it computes"
            return "dead", "nothing reads what it computes"
        if not outcome.reaches_output:
            names = sorted({comparison.components[path] for path in outcome.absorbed_by})
            return "absorbed", f"{', '.join(names)} gives the same for the wrong values"
        if _has_no_finite_value(comparison.expected):
            return "not_finite", "what is compared is NaN or infinite throughout"
        if remark := constant_output(comparison.expected):
            return "constant", remark
        max_diff = compare(comparison.expected, outcome.output, comparison.tolerances).max_diff
        return "within_tolerance", f"what is compared is {max_diff:.3g} off at most"


def can_be_seen_to_fail(difference: Difference, parent_faults: list[str]) -> bool:
    """Return whether a comparison passed and its parent computes nothing itself."""
    return difference.reason is None and not parent_faults


def _first_explanation(report: KernelPower) -> str:
    """Return the explanation of the first uncaught mutant, usually the scaled output."""
    reasons = [m.explanation for m in report.mutants if m.explanation is not None]
    return next(iter(reasons), "no way to make them wrong was found")


def _difference_beyond_doubt(expected: object, actual: object) -> float | None:
    """Return the largest difference that no tolerance may allow, found without `compare`."""
    for (_, expected_leaf), (_, actual_leaf) in zip(leaves(expected), leaves(actual), strict=True):
        if not is_tensor(expected_leaf) or not is_tensor(actual_leaf):
            continue
        for piece, actual_piece in zip(
            pieces_of(expected_leaf), pieces_of(actual_leaf), strict=True
        ):
            if not piece.numel() or piece.is_complex():
                continue
            expected_values, actual_values = piece.double(), actual_piece.to(piece.device).double()
            error = (expected_values - actual_values).abs().nan_to_num(0.0, 0.0, 0.0)
            exceeds = error > BEYOND_DOUBT * (1 + expected_values.abs().nan_to_num(0.0, 0.0, 0.0))
            if bool(exceeds.any()):
                return float(error[exceeds].max())
    return None


def _has_no_finite_value(output: object) -> bool:
    tensor_leaves = (leaf for _, leaf in leaves(output) if is_tensor(leaf))
    pieces = (piece for leaf in tensor_leaves for piece in pieces_of(leaf) if piece.numel())
    return not any(bool(torch.isfinite(piece).any()) for piece in pieces)
