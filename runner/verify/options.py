"""Holds the options of a verification and its limits on memory and work."""

from dataclasses import dataclass
from typing import Literal

GIB = 1 << 30
USABLE_SHARE = 0.9
"""Share of the memory that may be used while an output stays in memory."""
EXAMINED_BYTES = 1 << 28
"""Largest size of inputs that are changed, one at a time, to see whether the output changes."""
KEPT_BYTES = 1 << 27
"""Largest size of outputs that stay in memory on every machine with 2 GiB or more."""
QUICK_FLOPS = 6e10
"""Work of a forward of about a second; quicker ones run again on other inputs."""
DRAWN_AGAIN_BYTES = 1 << 28
"""Largest size of inputs that are drawn only to be compared with tensors in memory."""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Options of a verification; the verdict records all of them but the memory."""

    mode: Literal["eval", "train"] = "eval"
    trials: int = 2
    """Number of seeds that each comparison is made with, at least 1."""
    device: str = "cpu"
    memory_bytes: int | None = None
    """Memory that this process may use; outputs that are large beside it wait on disk."""
    streamed: bool = False
    """Whether weights are streamed, as they do not fit: each has values only while it is read."""
    seed: int = 0
    """First seed. With 0, files of others get a random seed, which the verdict records."""
    power: bool = False
    """Whether kernels are made wrong, too, to see that a comparison fails."""
    specialised: bool = False
    """Whether the program was captured for the first seed's values, and only they are compared."""

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"trials={self.trials}: a comparison needs at least one seed")

    @property
    def seeds(self) -> int:
        """The number of trials that a comparison of the whole model has."""
        return 1 if self.specialised else self.trials

    @property
    def disk_cache_bytes(self) -> int:
        """Size from which on an output waits on disk while the other side runs."""
        return GIB if self.memory_bytes is None else disk_cache_threshold(self.memory_bytes)


def disk_cache_threshold(memory_bytes: int) -> int:
    """Return the size from which on an output leaves memory, unless there is room for it."""
    return max(1 << 20, min(GIB, memory_bytes // 16))


def stays_in_memory(size: int, peak_bytes: int, memory_bytes: int) -> bool:
    """Return whether an output stays in memory during the next run, which peaks as this one did."""
    return (
        size < disk_cache_threshold(memory_bytes)
        or peak_bytes + size <= USABLE_SHARE * memory_bytes
    )
