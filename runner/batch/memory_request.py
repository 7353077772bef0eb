"""This file knows about the memory that a problem's process will take, and what it is given."""

from dataclasses import dataclass, replace

from runner.batch.machine import GIB
from runner.store.result import Document
from runner.verify.options import EXAMINED_BYTES, QUICK_FLOPS, stays

ESTIMATE_BYTES = 2 * GIB
"""For capturing alone: nothing is computed, but a few models need their real parameters."""
LAZY_CODE_BYTES = 20 << 20
"""Code that is loaded once something runs."""
EXTRA_FACTOR = 1.1
"""What would have room with a little more memory is given that."""
MARGIN_SHARE = 0.1
MARGIN_BYTES = GIB // 4
"""Both on top of what is expected: too little is a second attempt."""
WORKLOAD_BYTES = 1000 << 10
"""Files, modules, code that oneDNN compiles: of one kernel file."""
OPERATION_BYTES = 50 << 10
"""What is known of one operation of the program."""
STEP_BYTES = 5 << 10
"""What was watched of one operation that a recurrent layer unrolls to, and its tensors' traces."""
NO_BOUND = 1 << 60
"""The most that a node has, where a larger one may still come."""


class Forecast(Document):
    """What a captured program says about the memory that its verification will take."""

    forward_bytes: int
    """At the worst moment of one forward pass, scratch included: the whole's, or a part's."""
    inputs_bytes: int = 0
    outputs_bytes: int = 0
    weights_bytes: int = 0
    """Part of the forward's; they may be streamed."""
    flops: int = 0
    operations: int = 0
    """How many the program has."""
    workloads: int = 0
    """How many of them differ."""
    steps: int = 0
    """How many more run at the steps of recurrent layers."""
    process_bytes: int
    """Python, torch and the program itself, resident after it was captured."""

    @property
    def expected_bytes(self) -> int:
        """The largest resident set of the process.

        A small output is kept while the other side runs; where that is quick, too, other inputs are
        tried beside the given ones. A large output waits as digests, or on disk.
        """
        total_bytes = self.process_bytes + LAZY_CODE_BYTES + self.forward_bytes
        total_bytes += self.workloads * WORKLOAD_BYTES + self.operations * OPERATION_BYTES
        total_bytes += self.steps * STEP_BYTES
        if stays(
            self.outputs_bytes, total_bytes, int(EXTRA_FACTOR * request_with_margin(total_bytes))
        ):
            total_bytes += self.outputs_bytes
            if self.inputs_bytes <= EXAMINED_BYTES and self.flops <= QUICK_FLOPS:
                total_bytes += self.inputs_bytes
        return total_bytes


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """Memory that a problem is given, of the most that a node has."""

    granted_bytes: int
    max_bytes: int
    expected_bytes: int | None = None
    """Largest resident set that is expected; None before the program is captured."""
    fits: bool = True
    """Whether all there is would do, with streamed weights if need be."""

    @property
    def can_grow(self) -> bool:
        return self.fits and self.granted_bytes < self.max_bytes

    @classmethod
    def for_capture(cls, max_bytes: int) -> "MemoryRequest":
        return cls(min(ESTIMATE_BYTES, max_bytes), max_bytes)

    def for_model(
        self, expected_bytes: int, capture_bytes: int, weights_bytes: int = 0
    ) -> "MemoryRequest":
        """For a process that is expected to take so much; capturing the program took some already.

        Where all but its weights fits, they are streamed, in all the memory that there is. What
        fits nowhere is given what capturing takes: it is taken apart, and not verified.
        """
        max_bytes = self.max_bytes
        fits = expected_bytes <= max_bytes
        if not fits and expected_bytes - weights_bytes <= max_bytes:
            return MemoryRequest(max_bytes, max_bytes, expected_bytes)
        wanted_bytes = max(
            request_with_margin(expected_bytes) if fits else 0, capture_bytes, self.granted_bytes
        )
        return MemoryRequest(
            min(_round_up(wanted_bytes), max_bytes), max_bytes, expected_bytes, fits
        )

    def with_double_memory(self) -> "MemoryRequest":
        """Twice as much, as far as there is."""
        return replace(self, granted_bytes=min(2 * self.granted_bytes, self.max_bytes))

    def with_max_memory(self) -> "MemoryRequest":
        return replace(self, granted_bytes=self.max_bytes)


def describe_largest_node(max_bytes: int) -> str:
    """`, the largest node has 21.9 GiB`, where that is known."""
    return "" if max_bytes >= NO_BOUND else f", the largest node has {max_bytes / GIB:.1f} GiB"


def describe_shortage(needed_bytes: int, max_bytes: int) -> str:
    """`needs 31.2 GiB, the largest node has 21.9 GiB`."""
    return f"needs {needed_bytes / GIB:.1f} GiB{describe_largest_node(max_bytes)}"


def request_with_margin(expected_bytes: int) -> int:
    """What a process is given that is expected to take so much, where there is as much."""
    return _round_up(max(int(expected_bytes * (1 + MARGIN_SHARE)) + MARGIN_BYTES, ESTIMATE_BYTES))


def _round_up(request_bytes: int) -> int:
    """To quarters of a GiB: Ray schedules by classes of equal requests."""
    quarter_bytes = GIB // 4
    return -(-request_bytes // quarter_bytes) * quarter_bytes


def count_threads(cores: int, node_bytes: int, request_bytes: int) -> int:
    """Threads for a child: its share of the cores, given how many of its size the memory holds."""
    concurrent_children = max(1, min(cores, node_bytes // max(1, request_bytes)))
    return max(1, cores // concurrent_children)
