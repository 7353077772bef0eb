"""Defines verdicts, checks and verifications, and which figures each verdict requires."""

from collections.abc import Collection
from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from runner.verify.gates.power_report import Power

SCHEMA_VERSION = 1

GateName = Literal[
    "rules", "weights", "self-test", "step", "composition", "coverage", "device", "power"
]
GATES: tuple[GateName, ...] = (
    *("rules", "weights", "self-test", "step", "composition", "coverage", "device"),
)
"""The order in which a reader looks for the first fault to fix."""
GATES_WITH_POWER: tuple[GateName, ...] = (*GATES, "power")
"""All gates of a verification that also mutates kernels."""

COMPARING: frozenset[GateName] = frozenset({"step", "composition"})
"""Gates that compare values; the others count, read source or look at shapes."""


class Verdict(StrEnum):
    """Outcome of a check; it begins as `not_run`, and only an examination can change it."""

    NOT_RUN = "not_run"
    """Not examined."""
    PASSED = "passed"
    FAILED = "failed"
    """Judged, and wrong."""
    BROKEN = "broken"
    """Could not be judged: a file is missing, or its code raises."""
    VACUOUS = "vacuous"
    """Equal, but no difference could have been noticed."""
    NOTHING_TO_CHECK = "nothing_to_check"
    """The tree has no such part: a problem that is one kernel has no steps."""


COMPARED = frozenset({Verdict.PASSED, Verdict.FAILED, Verdict.VACUOUS})
GOOD = frozenset({Verdict.PASSED, Verdict.NOTHING_TO_CHECK})


NOT_FINITE = "gives NaN or infinity"
"""Beginning of a self-test's reason where the component's own inputs may be the cause."""


class _ResultDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class Check(_ResultDocument):
    """One component under one gate."""

    gate: GateName
    component: str
    """A file or step folder, relative to the decomposition directory; `model` for the whole."""
    verdict: Verdict = Verdict.NOT_RUN
    reason: str | None = None
    """One line for people; present exactly when the verdict is bad."""
    max_diff: float | None = None
    """Largest absolute difference, infinite where shapes or NaN patterns differ.

    Present exactly when a comparing gate compared values.
    """
    bitwise_equal: bool | None = None
    """Whether every bit is the same; present with max_diff."""
    negative_control: Literal["noticed", "vacuous"] | None = None
    """Whether the comparison fails if one side is made larger by a hundredth.

    Present exactly when values were compared and found equal.
    """

    @model_validator(mode="after")
    def require_reason(self) -> Self:
        """Require a reason exactly for verdicts that somebody has to act on."""
        if (self.verdict in GOOD) == (self.reason is not None):
            raise ValueError(f"{self.gate} {self.component}: {self.verdict}, reason={self.reason}")
        return self

    @model_validator(mode="after")
    def compared_means_measured(self) -> Self:
        """Require a measured difference exactly for verdicts that stand on values."""
        compared = self.gate in COMPARING and self.verdict in COMPARED
        if compared != (self.max_diff is not None) or compared != (self.bitwise_equal is not None):
            raise ValueError(
                f"{self.gate} {self.component}: {self.verdict} with max_diff={self.max_diff},"
                f" bitwise_equal={self.bitwise_equal}"
            )
        equal = compared and self.verdict is not Verdict.FAILED
        if equal != (self.negative_control is not None):
            raise ValueError(f"{self.gate} {self.component}: equal, and nobody saw it fail")
        return self


class GateResult(_ResultDocument):
    """One gate over all components that it examined."""

    gate: GateName
    verdict: Verdict = Verdict.NOT_RUN
    """The worst verdict of its checks."""
    checks: list[Check] = Field(default_factory=list)
    max_diff: float | None = None
    """The largest difference of its checks; present exactly when one was measured."""

    @model_validator(mode="after")
    def require_matching_figures(self) -> Self:
        """Require that verdict and difference follow from the checks; none means `not_run`."""
        if any(check.gate != self.gate for check in self.checks):
            raise ValueError(f"a check of another gate among those of {self.gate}")
        if self.verdict != worst_verdict([check.verdict for check in self.checks]):
            raise ValueError(f"{self.gate}: {self.verdict} is not what its checks say")
        if self.max_diff != largest_difference(self.checks):
            raise ValueError(f"{self.gate}: max_diff={self.max_diff} is not what its checks say")
        return self

    @classmethod
    def from_checks(cls, gate: GateName, checks: list[Check]) -> Self:
        """Return the result that follows from a gate's checks."""
        verdict = worst_verdict([check.verdict for check in checks])
        return cls(gate=gate, verdict=verdict, checks=checks, max_diff=largest_difference(checks))


_FROM_BAD_TO_GOOD = (
    Verdict.FAILED,
    Verdict.BROKEN,
    Verdict.VACUOUS,
    Verdict.NOT_RUN,
    Verdict.PASSED,
    Verdict.NOTHING_TO_CHECK,
)


def worst_verdict(verdicts: list[Verdict]) -> Verdict:
    """Return the worst of some verdicts; `not_run` if there are none."""
    return min(verdicts, key=_FROM_BAD_TO_GOOD.index, default=Verdict.NOT_RUN)


def largest_difference(checks: list[Check]) -> float | None:
    """Return the largest difference that was measured."""
    return max((check.max_diff for check in checks if check.max_diff is not None), default=None)


class OperationCount(_ResultDocument):
    """Number of compute operations of one kind at one set of shapes."""

    operation: str
    """Name, input shapes and dtypes, attributes, output shapes."""
    count: int
    where: list[str]
    """Source lines that run it, `file:line`; only the first few."""


class Coverage(_ResultDocument):
    """Compute operations of a model against those of the kernels that replace it, as multisets."""

    component: str
    original_operations: int
    """Number of operations that kernels have to run: those from inputs or weights to outputs."""
    kernel_operations: int
    constant_operations: tuple[int, int]
    """For each side, operations that depend on no input and no weight; they may be recomputed."""
    unused_operations: int
    """Operations of the original whose result reaches no output; kernels may leave them out."""
    missing: list[OperationCount]
    """Operations of the original that no kernel runs."""
    extra: list[OperationCount]
    """Operations of kernels that the original does not run."""

    @property
    def equal(self) -> bool:
        """Whether the multisets are the same."""
        return not self.missing and not self.extra


class Verification(_ResultDocument):
    """The verdict on one decomposition directory, with all that led to it."""

    schema_version: int = SCHEMA_VERSION
    status: Literal["passed", "failed"]
    """`passed` exactly when every gate passed."""
    mode: Literal["eval", "train"]
    trials: int
    """Number of seeds that each comparison was made with."""
    seed: int
    device: str
    arithmetic: str | None = None
    """Settings of a GPU's arithmetic; None on a CPU."""
    torch_version: str
    streamed: bool = False
    """Whether weights did not fit and were made anew for each operation that read them."""
    gates: list[GateResult]
    """Results of all gates, also of those that were not run; `power` only if it was requested."""
    first_failure: str | None = None
    """Gate, component and reason in one line; present exactly when the verification failed."""
    bitwise_equal: bool | None = None
    """Whether the composed model gives the original's bits; None if it was not compared."""
    max_diff: float | None = None
    """Largest absolute difference between the composed model and the original."""
    health: list[str] = Field(default_factory=list)
    """Reasons why a pass says less, a sentence each: a constant output, a weight without effect."""
    warnings: list[str] = Field(default_factory=list)
    """The sentences of `health` that a user can act on; they are printed."""
    advice: list[str] = Field(default_factory=list)
    """Places where an engineer would have drawn the tree differently, a line each; for no gate."""
    not_examined: list[str] = Field(default_factory=list)
    """Effects that were not examined because that would have cost too much, a phrase each.

    The cost is counted from sizes: the phrases do not depend on how busy a machine is, and are the
    same on machines of one kind.
    """
    constant_kernels: frozenset[str] = Field(default=frozenset(), exclude=True)
    """Kernels that gave one number throughout on their own inputs; in no document."""
    power: Power | None = None
    """Every wrong kernel that was tried; present only with the gate of that name."""
    coverage: list[Coverage] = Field(default_factory=list)
    """Coverage of the model and of every step that ran."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall time of each gate."""

    @model_validator(mode="after")
    def passed_means_every_gate(self) -> Self:
        """Require status `passed` exactly if all gates passed: a skipped gate is no pass."""
        names = tuple(gate.gate for gate in self.gates)
        if names not in (GATES, GATES_WITH_POWER):
            raise ValueError("a verification lists every gate, in order")
        if self.power is not None and "power" not in names:
            raise ValueError("wrong kernels were tried, and no gate judges what became of them")
        passed = all(gate.verdict in GOOD for gate in self.gates)
        if passed != (self.status == "passed") or passed != (self.first_failure is None):
            raise ValueError(f"status {self.status} is not what the gates say")
        return self

    def gate(self, name: GateName) -> GateResult:
        """Return the result of one gate."""
        return self.gates[GATES_WITH_POWER.index(name)]


def list_faults(gates: list[GateResult], limit: int) -> list[str]:
    """Return the first `limit` faults to act on, a line each, the first failure first."""
    bad_checks = [check for gate in gates for check in gate.checks if check.verdict not in GOOD]
    bad_checks.sort(key=lambda check: check.verdict is not Verdict.FAILED)
    return [f"{check.gate}: {check.component}: {check.reason}" for check in bad_checks[:limit]]


def first_failure(gates: list[GateResult]) -> str | None:
    """Return the first fault to fix: a failed check comes before one that could not be judged."""
    bad_checks = [check for gate in gates for check in gate.checks if check.verdict not in GOOD]
    if bad_checks:
        first = next(
            (check for check in bad_checks if check.verdict is Verdict.FAILED), bad_checks[0]
        )
        return f"{first.gate}: {first.component}: {first.reason}"
    open_gates = [gate.gate for gate in gates if gate.verdict not in GOOD]
    return f"{open_gates[0]}: {Verdict.NOT_RUN}" if open_gates else None


def components_with_bad_inputs(gates: list[GateResult]) -> frozenset[str]:
    """Return components that gave NaN or raised on their own inputs, if that is the only fault."""
    faults = [check for gate in gates for check in gate.checks if check.verdict not in GOOD]
    components = frozenset(check.component for check in faults if check.gate == "self-test")
    if any(not _is_about_inputs(check, components) for check in faults):
        return frozenset()
    return components


def _is_about_inputs(check: Check, components: Collection[str]) -> bool:
    """Return whether a check says no more than that a component cannot take its own inputs."""
    reason = check.reason or ""
    is_raised_by_one = check.verdict is Verdict.BROKEN and any(
        f"{file}: forward: " in reason for file in components
    )
    return is_raised_by_one or reason.startswith(NOT_FINITE)
