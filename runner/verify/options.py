"""This file knows about what a caller may choose in a verification."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to judge; the verdict records all of it but the memory."""

    mode: Literal["eval", "train"] = "eval"
    trials: int = 2
    """Seeds that each comparison is made with, at least 1."""
    device: str = "cpu"
    memory_bytes: int | None = None
    """What this process may use; outputs that are large beside it wait on disk."""
    streamed: bool = False
    """The weights do not fit: each holds values only while an operation reads it."""
    seed: int = 0
    power: bool = False
    """Make each kernel wrong, too, and see that a comparison fails."""
    specialised: bool = False
    """The program was captured for the values of the first seed, and is compared on those alone."""

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"trials={self.trials}: a comparison needs at least one seed")

    @property
    def seeds(self) -> int:
        """How many trials a comparison of the whole has."""
        return 1 if self.specialised else self.trials

    @property
    def spill_bytes(self) -> int:
        """An output from this size on waits on disk while the other side runs."""
        gib = 1 << 30
        return gib if self.memory_bytes is None else max(1 << 20, min(gib, self.memory_bytes // 16))
