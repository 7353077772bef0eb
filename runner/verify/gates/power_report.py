"""Defines the report on mutated kernels: which ones a comparison caught.

`kdrun decompose --power` writes it as verification/power.json, `kdrun verify --power --to FILE` as
that file.
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA_VERSION = 1

MutantKind = Literal["scaled", "skipped", "swapped", "attribute"]
"""scaled     the output times 1.01; integers one more, booleans the other way round
skipped    the operation left out: an input in place of the output
swapped    two operands of one shape and dtype in each other's place
attribute  one number, word or switch in the kernel's file replaced"""

UncaughtReason = Literal[
    "same_output", "not_finite", "constant", "dead", "absorbed", "within_tolerance"
]
"""same_output       the wrong kernel computes what the right one does, within tolerance
not_finite        what is compared is NaN or infinity throughout
constant          what is compared is one value throughout
dead              nothing reads what the kernel computes
absorbed          a later kernel gives the same for the wrong values: saturated, or masked
within_tolerance  the difference arrives, too small for the comparison"""


class _PowerDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class MutantResult(_PowerDocument):
    """One wrong copy of a kernel file, and whether a comparison failed because of it."""

    kind: MutantKind
    change: str
    """The change in one line, such as `eps=1e-05 becomes eps=2e-05`."""
    where: str
    """The step's folder, or `model` for the composition: the last comparison that it ran in."""
    verdict: Literal["caught", "uncaught"]
    caught_by: Literal["values", "bits", "shapes", "error"] | None = None
    """Evidence that it is wrong; present exactly when caught.

    `bits`: within the tolerance, but its bits differ from those of the right kernel, which are the
    original's.
    """
    reason: UncaughtReason | None = None
    """Reason why nothing could be noticed; present exactly when uncaught."""
    explanation: str | None = None
    """The reason in a sentence, with the figures."""

    @model_validator(mode="after")
    def uncaught_means_explained(self) -> Self:
        """Require a reason exactly for mutants that were not caught."""
        caught = self.verdict == "caught"
        if caught != (self.caught_by is not None):
            raise ValueError(f"{self.change}: {self.verdict} with caught_by={self.caught_by}")
        if caught == (self.reason is not None) or caught == (self.explanation is not None):
            raise ValueError(f"{self.change}: {self.verdict} with reason={self.reason}")
        return self


class KernelPower(_PowerDocument):
    """One kernel file, of which all instances are wrong at once."""

    component: str
    mutants: list[MutantResult]

    @property
    def is_noticed(self) -> bool:
        """Whether wrong values were noticed; a file that cannot run proves nothing."""
        return any(mutant.caught_by in ("values", "bits") for mutant in self.mutants)


class Power(_PowerDocument):
    """The wrong kernels that verification would notice; the same on every run."""

    schema_version: int = SCHEMA_VERSION
    caught: int
    uncaught: int
    unseen: list[str] = Field(default_factory=list)
    """Kernel files of which no wrong value was noticed."""
    kernels: list[KernelPower]

    @model_validator(mode="after")
    def require_matching_counts(self) -> Self:
        """Require that the counts are those of the list."""
        verdicts = [mutant.verdict for kernel in self.kernels for mutant in kernel.mutants]
        if (self.caught, self.uncaught) != (verdicts.count("caught"), verdicts.count("uncaught")):
            raise ValueError(f"{self.caught} caught and {self.uncaught} uncaught do not add up")
        if self.unseen != [kernel.component for kernel in self.kernels if not kernel.is_noticed]:
            raise ValueError("unseen is not what the mutants say")
        return self

    @classmethod
    def from_kernels(cls, kernels: list[KernelPower]) -> Self:
        """Return the document with its counts."""
        verdicts = [mutant.verdict for kernel in kernels for mutant in kernel.mutants]
        return cls(
            caught=verdicts.count("caught"),
            uncaught=verdicts.count("uncaught"),
            unseen=[kernel.component for kernel in kernels if not kernel.is_noticed],
            kernels=kernels,
        )
