"""This file knows about the memory that a problem's process will take, and what it is given."""

from dataclasses import dataclass, replace

from runner.batch.machine import GIB
from runner.store.result import Document
from runner.verify.options import EXAMINED_BYTES, QUICK_FLOPS, stays_in_memory

ESTIMATE_BYTES = 2 * GIB
"""For capturing alone: nothing is computed, but a few models need their real parameters."""
LATER_BYTES = 20 << 20
"""Code that is loaded once something runs."""
NEARLY = 1.1
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
        expected = self.process_bytes + LATER_BYTES + self.forward_bytes
        expected += self.workloads * WORKLOAD_BYTES + self.operations * OPERATION_BYTES
        expected += self.steps * STEP_BYTES
        if stays_in_memory(self.outputs_bytes, expected, int(NEARLY * granted_for(expected))):
            expected += self.outputs_bytes
            if self.inputs_bytes <= EXAMINED_BYTES and self.flops <= QUICK_FLOPS:
                expected += self.inputs_bytes
        return expected


@dataclass(frozen=True, slots=True)
class Needs:
    """Memory that a problem is given, of the most that a node has."""

    granted_bytes: int
    most_bytes: int
    expected_bytes: int | None = None
    """Largest resident set that is expected; None before the program is captured."""
    fits: bool = True
    """Whether all there is would do, with streamed weights if need be."""

    @property
    def can_grow(self) -> bool:
        return self.fits and self.granted_bytes < self.most_bytes

    @classmethod
    def of_an_estimate(cls, most_bytes: int) -> "Needs":
        return cls(min(ESTIMATE_BYTES, most_bytes), most_bytes)

    def of_a_model(
        self, expected_bytes: int, capture_bytes: int, weights_bytes: int = 0
    ) -> "Needs":
        """For a process that is expected to take so much; capturing the program took some already.

        Where all but its weights fits, they are streamed, in all the memory that there is. What
        fits nowhere is given what capturing takes: it is taken apart, and not verified.
        """
        most = self.most_bytes
        fits = expected_bytes <= most
        if not fits and expected_bytes - weights_bytes <= most:
            return Needs(most, most, expected_bytes)
        wanted = max(granted_for(expected_bytes) if fits else 0, capture_bytes, self.granted_bytes)
        return Needs(min(_rounded(wanted), most), most, expected_bytes, fits)

    def more(self) -> "Needs":
        """Twice as much, as far as there is."""
        return replace(self, granted_bytes=min(2 * self.granted_bytes, self.most_bytes))

    def all_there_is(self) -> "Needs":
        return replace(self, granted_bytes=self.most_bytes)


def than_the_largest(most_bytes: int) -> str:
    """`, the largest node has 21.9 GiB`, where that is known."""
    return "" if most_bytes >= NO_BOUND else f", the largest node has {most_bytes / GIB:.1f} GiB"


def too_large(needed_bytes: int, most_bytes: int) -> str:
    """`needs 31.2 GiB, the largest node has 21.9 GiB`."""
    return f"needs {needed_bytes / GIB:.1f} GiB{than_the_largest(most_bytes)}"


def granted_for(expected_bytes: int) -> int:
    """What a process is given that is expected to take so much, where there is as much."""
    return _rounded(max(int(expected_bytes * (1 + MARGIN_SHARE)) + MARGIN_BYTES, ESTIMATE_BYTES))


def _rounded(wanted_bytes: int) -> int:
    """To quarters of a GiB: Ray schedules by classes of equal requests."""
    quarter = GIB // 4
    return -(-wanted_bytes // quarter) * quarter


def threads(cores: int, node_bytes: int, request_bytes: int) -> int:
    """Threads for a child: its share of the cores, given how many of its size the memory holds."""
    together = max(1, min(cores, node_bytes // max(1, request_bytes)))
    return max(1, cores // together)
