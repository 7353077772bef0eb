"""This file knows about verdicts: what a gate can say, and what it has to measure before it may."""

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
"""In the order in which a reader looks for the first thing to fix."""
GATES_WITH_POWER: tuple[GateName, ...] = (*GATES, "power")
"""Where it was asked for that kernels are made wrong, too."""

COMPARING: frozenset[GateName] = frozenset({"step", "composition"})
"""Gates whose verdict stands on values; the others count, read and look at shapes."""


class Verdict(StrEnum):
    """How a check ended. It begins as `not_run`; only looking can make it anything else."""

    NOT_RUN = "not_run"
    """Nobody looked."""
    PASSED = "passed"
    FAILED = "failed"
    """Judged, and wrong."""
    BROKEN = "broken"
    """Could not be judged: a file is missing, or the code in it raises."""
    VACUOUS = "vacuous"
    """Equal, but no difference could have been seen."""
    NOTHING_TO_CHECK = "nothing_to_check"
    """The tree has no such part: a problem that is one kernel has no steps."""


COMPARED = frozenset({Verdict.PASSED, Verdict.FAILED, Verdict.VACUOUS})
GOOD = frozenset({Verdict.PASSED, Verdict.NOTHING_TO_CHECK})


NOT_FINITE = "gives NaN or infinity"
"""How a self-test's reason begins where the component's own inputs may be to blame."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class Check(_Document):
    """One component under one gate."""

    gate: GateName
    component: str
    """A file or step folder, relative to the decomposition directory; `model` for the whole."""
    verdict: Verdict = Verdict.NOT_RUN
    reason: str | None = None
    """One line for people; present exactly when the verdict is not a good one."""
    max_diff: float | None = None
    """Largest absolute difference, infinite where shapes or NaN patterns differ.

    Present exactly when a comparing gate compared.
    """
    bitwise_equal: bool | None = None
    """Whether every bit is the same; present with max_diff."""
    negative_control: Literal["noticed", "vacuous"] | None = None
    """Whether the comparison fails where what it compares is a hundredth larger.

    Present exactly where values were compared and found equal.
    """

    @model_validator(mode="after")
    def says_why(self) -> Self:
        """A reason exactly where somebody has to act."""
        if (self.verdict in GOOD) == (self.reason is not None):
            raise ValueError(f"{self.gate} {self.component}: {self.verdict}, reason={self.reason}")
        return self

    @model_validator(mode="after")
    def compared_means_measured(self) -> Self:
        """A comparing gate that reached a verdict on values shows by how much they differ."""
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


class GateResult(_Document):
    """One gate over all that it looked at."""

    gate: GateName
    verdict: Verdict = Verdict.NOT_RUN
    """The worst of its checks."""
    checks: list[Check] = Field(default_factory=list)
    max_diff: float | None = None
    """The largest of its checks' differences; present exactly when any was measured."""

    @model_validator(mode="after")
    def stands_on_its_checks(self) -> Self:
        """A verdict is what the checks say, and no checks is no verdict."""
        if any(check.gate != self.gate for check in self.checks):
            raise ValueError(f"a check of another gate among those of {self.gate}")
        if self.verdict != worst([check.verdict for check in self.checks]):
            raise ValueError(f"{self.gate}: {self.verdict} is not what its checks say")
        if self.max_diff != largest(self.checks):
            raise ValueError(f"{self.gate}: max_diff={self.max_diff} is not what its checks say")
        return self

    @classmethod
    def of(cls, gate: GateName, checks: list[Check]) -> Self:
        """The gate's result from what was looked at."""
        verdict = worst([check.verdict for check in checks])
        return cls(gate=gate, verdict=verdict, checks=checks, max_diff=largest(checks))


_FROM_BAD_TO_GOOD = (
    Verdict.FAILED,
    Verdict.BROKEN,
    Verdict.VACUOUS,
    Verdict.NOT_RUN,
    Verdict.PASSED,
    Verdict.NOTHING_TO_CHECK,
)


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict on the whole; `not_run` where there is nothing."""
    return min(verdicts, key=_FROM_BAD_TO_GOOD.index, default=Verdict.NOT_RUN)


def largest(checks: list[Check]) -> float | None:
    """The largest difference that was measured."""
    return max((check.max_diff for check in checks if check.max_diff is not None), default=None)


class OperationCount(_Document):
    """One kind of compute operation, at one set of shapes."""

    operation: str
    """Name, input shapes and dtypes, attributes, output shapes."""
    count: int
    where: list[str]
    """Lines that run it, `file:line`; the first few."""


class Coverage(_Document):
    """Compute operations of a model against those of the kernels that replace it, as multisets."""

    component: str
    original_operations: int
    """That must be found again: those that depend on inputs or weights, and reach the output."""
    kernel_operations: int
    constant_operations: tuple[int, int]
    """On both sides, operations that depend on no input and no weight; they may be recomputed."""
    unused_operations: int
    """Of the original, operations whose result reaches no output; they may be left out."""
    missing: list[OperationCount]
    """In the original and in no kernel."""
    extra: list[OperationCount]
    """In the kernels and not in the original."""

    @property
    def equal(self) -> bool:
        """Whether the multisets are the same."""
        return not self.missing and not self.extra


class Verification(_Document):
    """What is known about one decomposition directory."""

    schema_version: int = SCHEMA_VERSION
    status: Literal["passed", "failed"]
    """`passed` exactly when every gate passed."""
    mode: Literal["eval", "train"]
    trials: int
    """Seeds that each comparison was made with."""
    seed: int
    device: str
    arithmetic: str | None = None
    """On a GPU, what was asked of it; absent on a CPU."""
    torch_version: str
    streamed: bool = False
    """The weights did not fit: each was made anew for an operation that read it. See `health`."""
    gates: list[GateResult]
    """All of them, also those that were not run; `power` where it was asked for."""
    first_failure: str | None = None
    """One line for people: which gate, which component, how far; present exactly when failed."""
    bitwise_equal: bool | None = None
    """Whether the composed model gives the original's very bits; None where it was not compared."""
    max_diff: float | None = None
    """Largest absolute difference between the composed model and the original."""
    health: list[str] = Field(default_factory=list)
    """What makes a pass worth less, a sentence each: a constant output, a weight without effect."""
    warnings: list[str] = Field(default_factory=list)
    """Those sentences of `health` that a user can act on; they are printed."""
    advice: list[str] = Field(default_factory=list)
    """Where an engineer would have drawn the tree otherwise, a line each; no gate looks at it."""
    not_examined: list[str] = Field(default_factory=list)
    """Effects that were not examined because that would have cost too much, a phrase each.

    The cost is counted from sizes: the phrases do not depend on how busy a machine is, and are the
    same on machines of one kind.
    """
    power: Power | None = None
    """Every wrong kernel that was tried; present only with the gate of that name."""
    coverage: list[Coverage] = Field(default_factory=list)
    """For the model and for every step that ran."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall time by gate."""

    @model_validator(mode="after")
    def passed_means_every_gate(self) -> Self:
        """Nothing passes because it was skipped."""
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
        """The result of one gate."""
        return self.gates[GATES_WITH_POWER.index(name)]


def findings(gates: list[GateResult], most: int) -> list[str]:
    """What somebody has to act on, a line each, the first failure first."""
    bad = [check for gate in gates for check in gate.checks if check.verdict not in GOOD]
    bad.sort(key=lambda check: check.verdict is not Verdict.FAILED)
    return [f"{check.gate}: {check.component}: {check.reason}" for check in bad[:most]]


def first_failure(gates: list[GateResult]) -> str | None:
    """The first thing to fix: a check that was judged wrong before one that could not be judged."""
    bad = [check for gate in gates for check in gate.checks if check.verdict not in GOOD]
    if bad:
        first = next((check for check in bad if check.verdict is Verdict.FAILED), bad[0])
        return f"{first.gate}: {first.component}: {first.reason}"
    unlooked = [gate.gate for gate in gates if gate.verdict not in GOOD]
    return f"{unlooked[0]}: {Verdict.NOT_RUN}" if unlooked else None


def given_bad_inputs(gates: list[GateResult]) -> frozenset[str]:
    """Components that gave NaN, or raised, on what they draw; none where anything else is wrong."""
    faults = [check for gate in gates for check in gate.checks if check.verdict not in GOOD]
    bad = frozenset(check.component for check in faults if check.gate == "self-test")
    if any(not _is_about_inputs(check, bad) for check in faults):
        return frozenset()
    return bad


def _is_about_inputs(check: Check, bad: Collection[str]) -> bool:
    """Whether a fault says no more than that a component cannot take what it draws."""
    reason = check.reason or ""
    raised = check.verdict is Verdict.BROKEN and any(f"{file}: forward: " in reason for file in bad)
    return raised or reason.startswith(NOT_FINITE)
