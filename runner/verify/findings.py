"""Collects the checks and remarks of all gates and makes one verification of them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runner.verify.gates.difference import Difference
from runner.verify.gates.power_report import Power
from runner.verify.loading_files import CannotJudge
from runner.verify.options import VerifyOptions
from runner.verify.results import (
    GATES,
    GATES_WITH_POWER,
    GOOD,
    Check,
    Coverage,
    GateName,
    GateResult,
    Verdict,
    Verification,
    first_failure,
)
from runner.verify.runtime.arithmetic import describe_arithmetic


class Findings:
    """The checks and remarks so far; each component has at most one check for each gate."""

    def __init__(self, on_gate: Callable[[str], None]) -> None:
        self._on_gate = on_gate
        self._checks: dict[tuple[GateName, str], Check] = {}
        self.coverage: list[Coverage] = []
        self.power: Power | None = None
        self.health: list[str] = []
        self.warnings: list[str] = []
        self.advice: list[str] = []
        self.not_examined: list[str] = []
        self.constant_kernels: set[str] = set()
        """Kernels that gave one number throughout on their own inputs."""
        self.seconds: dict[str, float] = {}
        self.composition: Difference | None = None
        """Difference of the composed model from the original over all trials."""
        self._running_gates: list[GateName] = []
        """Gates that are running, each started by the one before it."""
        self._counted_until = 0.0

    @contextmanager
    def time_gate(self, name: GateName) -> Iterator[None]:
        """Report that a gate begins, and count the time of the body as its time alone.

        Gates can be nested: the outer gate's time stands still while the inner gate runs.
        """
        self._count_time()
        self._running_gates.append(name)
        self._on_gate(name)
        try:
            yield
        finally:
            self._count_time()
            self._running_gates.pop()
            if self._running_gates:
                self._on_gate(self._running_gates[-1])

    def _count_time(self) -> None:
        now = time.monotonic()
        if self._running_gates:
            name = self._running_gates[-1]
            self.seconds[name] = round(self.seconds.get(name, 0.0) + now - self._counted_until, 3)
        self._counted_until = now

    @contextmanager
    def record_cannot_judge(self, gate: GateName, component: str) -> Iterator[None]:
        """Record CannotJudge, if the body raises it, as this component's verdict `broken`."""
        try:
            yield
        except CannotJudge as error:
            self.record_broken(gate, component, str(error))

    def record_verdict(self, gate: GateName, component: str, fault: str | None) -> None:
        """Record that a component passed a gate that compares no values, or its one-line fault."""
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        self._add_check(Check(gate=gate, component=component, verdict=verdict, reason=fault))

    def record_broken(self, gate: GateName, component: str, reason: str) -> None:
        """Record that a component could not be judged."""
        self._add_check(
            Check(gate=gate, component=component, verdict=Verdict.BROKEN, reason=reason)
        )

    def record_nothing_to_check(self, gate: GateName, component: str) -> None:
        """Record that the tree has no part that this gate could judge."""
        self._add_check(Check(gate=gate, component=component, verdict=Verdict.NOTHING_TO_CHECK))

    def record_comparison(self, gate: GateName, component: str, difference: Difference) -> None:
        """Record the verdict of a gate that compares values."""
        verdict = Verdict.FAILED if difference.reason else Verdict.PASSED
        self._add_comparison(gate, component, verdict, difference.reason, difference)

    def record_vacuous(
        self, gate: GateName, component: str, reason: str, difference: Difference
    ) -> None:
        """Record that values are equal, but that no difference could have been noticed."""
        self._add_comparison(gate, component, Verdict.VACUOUS, reason, difference)

    def record_coverage(self, coverage: Coverage) -> None:
        """Store the coverage of a step or of the model, in place of an earlier one."""
        coverages = [item for item in self.coverage if item.component != coverage.component]
        self.coverage = [*coverages, coverage]

    @property
    def all_good(self) -> bool:
        """Whether no gate has reported a fault so far."""
        return all(check.verdict in GOOD for check in self._checks.values())

    def note(self, sentence: str) -> None:
        """Add a remark to `health`, once: a reason why a pass says less than it seems to."""
        if sentence not in self.health:
            self.health.append(sentence)

    def warn(self, sentence: str) -> None:
        """Add a remark to `health` and to `warnings`, once: one that a user can act on."""
        self.note(sentence)
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def checks(self, gate: GateName) -> list[Check]:
        """Return the checks of a gate so far."""
        return [check for (name, _), check in self._checks.items() if name == gate]

    def has_verdict(self, gate: GateName, component: str) -> bool:
        """Return whether a gate has a verdict on a component."""
        return (gate, component) in self._checks

    def build_verification(self, options: VerifyOptions, torch_version: str) -> Verification:
        """Return all checks and remarks as a verification, with the resulting status."""
        gates = [
            GateResult.from_checks(name, self.checks(name))
            for name in (GATES_WITH_POWER if options.power else GATES)
        ]
        passed = all(gate.verdict in GOOD for gate in gates)
        total = self.composition
        return Verification(
            status="passed" if passed else "failed",
            mode=options.mode,
            trials=options.seeds,
            seed=options.seed,
            device=options.device,
            arithmetic=describe_arithmetic(options.device),
            torch_version=torch_version,
            streamed=options.streamed,
            gates=gates,
            first_failure=None if passed else first_failure(gates),
            bitwise_equal=total.bitwise_equal if total else None,
            max_diff=total.max_diff if total else None,
            health=self.health,
            warnings=self.warnings,
            advice=self.advice,
            not_examined=self.not_examined,
            constant_kernels=frozenset(self.constant_kernels),
            power=self.power,
            coverage=self.coverage,
            seconds=self.seconds,
        )

    def _add_comparison(
        self,
        gate: GateName,
        component: str,
        verdict: Verdict,
        reason: str | None,
        difference: Difference,
    ) -> None:
        check = Check(
            gate=gate,
            component=component,
            verdict=verdict,
            reason=reason,
            max_diff=difference.max_diff,
            bitwise_equal=difference.bitwise_equal,
            negative_control=(
                None
                if verdict is Verdict.FAILED
                else "noticed"
                if difference.noticed
                else "vacuous"
            ),
        )
        self._add_check(check)

    def _add_check(self, check: Check) -> None:
        """Store a check unless the component already has a bad one; `failed` replaces `broken`."""
        check = check.model_copy(
            update={"component": _encodable(check.component), "reason": _encodable(check.reason)}
        )
        key = (check.gate, check.component)
        earlier_check = self._checks.get(key)
        is_broken = earlier_check is not None and earlier_check.verdict is Verdict.BROKEN
        if (
            earlier_check is None
            or earlier_check.verdict in GOOD
            or (is_broken and check.verdict is Verdict.FAILED)
        ):
            self._checks[key] = check


def _encodable(text: str | None) -> str | None:
    """Escape characters that UTF-8 cannot encode or that a terminal would obey."""
    if text is None or text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
