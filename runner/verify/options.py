"""This file knows about what a caller may choose in a verification."""

from dataclasses import dataclass
from typing import Literal

GIB = 1 << 30
FULL = 0.9
"""Of the memory, with an output that stays."""
EXAMINED_BYTES = 1 << 28
"""Inputs of up to this size are tried with others beside them, to see that outputs change."""
KEPT_BYTES = 1 << 27
"""Outputs of up to this size stay in memory wherever there are 2 GiB of it."""
QUICK_FLOPS = 6e10
"""A forward of about a second: quicker ones are run again on other inputs, beside the first."""
DRAWN_AGAIN_BYTES = 1 << 28
"""Inputs that are not there are drawn up to this size, to be compared with those that are."""


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
    """0 with others' files: one that no file knows is drawn, and the verdict says which."""
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
        return GIB if self.memory_bytes is None else spilled_from(self.memory_bytes)


def spilled_from(memory_bytes: int) -> int:
    """The size from which on an output waits on disk, or as digests, unless there is room."""
    return max(1 << 20, min(GIB, memory_bytes // 16))


def stays(size: int, peak_bytes: int, memory_bytes: int) -> bool:
    """Whether an output stays in memory while the other side runs, which peaks as this one did."""
    return size < spilled_from(memory_bytes) or peak_bytes + size <= FULL * memory_bytes
