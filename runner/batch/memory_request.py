"""Computes the memory that a problem's process is expected to need and is granted."""

from dataclasses import dataclass, replace

from runner.batch.machine import GIB
from runner.store.result import Document
from runner.verify.options import EXAMINED_BYTES, QUICK_FLOPS, stays_in_memory

ESTIMATE_BYTES = 2 * GIB
"""Bytes granted for capture: nothing is computed, but a few models need their real parameters."""
MOST_ESTIMATE_BYTES = 4 * GIB
"""Most bytes granted for capture where a node has that much for each of its cores."""
LAZY_CODE_BYTES = 20 << 20
"""Bytes of code that is loaded only when the first operator runs."""
EXTRA_FACTOR = 1.1
"""Factor by which the granted memory is raised if that makes room to keep the output."""
MARGIN_SHARE = 0.1
MARGIN_BYTES = GIB // 4
"""Share and bytes that are both added to the expected memory; too little costs a second attempt."""
WORKLOAD_BYTES = 1000 << 10
"""Bytes for one kernel file: its text, its module and the code that oneDNN compiles for it."""
OPERATION_BYTES = 50 << 10
"""Bytes for the description of one operation of the program."""
STEP_BYTES = 5 << 10
"""Bytes for one operation that a recurrent layer unrolls to: its record and its tensors' traces."""
NO_BOUND = 1 << 60
"""Value of `max_bytes` where larger nodes may still join."""


class Forecast(Document):
    """Memory needs of a problem's verification, computed from its captured program."""

    forward_bytes: int
    """Bytes at the worst moment of a forward pass, of the model or a part, scratch included."""
    inputs_bytes: int = 0
    outputs_bytes: int = 0
    weights_bytes: int = 0
    """Bytes of weights, a part of `forward_bytes`; they may be streamed."""
    flops: int = 0
    operations: int = 0
    """Number of operations in the program."""
    workloads: int = 0
    """Number of different operations (operator, attributes, shapes and dtypes)."""
    steps: int = 0
    """Number of operations that recurrent layers unroll to."""
    process_bytes: int
    """Resident bytes of Python, torch and the program, after its capture."""

    @property
    def expected_bytes(self) -> int:
        """Largest resident set expected of the process, in bytes.

        Original and composed model run one after the other. A small output of the first stays in
        memory meanwhile; if the inputs are small and the model is quick, too, a second set of
        inputs is also in memory. A large output is reduced to digests, or kept on disk.
        """
        total_bytes = self.process_bytes + LAZY_CODE_BYTES + self.forward_bytes
        total_bytes += self.workloads * WORKLOAD_BYTES + self.operations * OPERATION_BYTES
        total_bytes += self.steps * STEP_BYTES
        if stays_in_memory(
            self.outputs_bytes, total_bytes, int(EXTRA_FACTOR * request_with_margin(total_bytes))
        ):
            total_bytes += self.outputs_bytes
            if self.inputs_bytes <= EXAMINED_BYTES and self.flops <= QUICK_FLOPS:
                total_bytes += self.inputs_bytes
        return total_bytes


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """Memory that a problem is granted, and the most that it could be granted."""

    granted_bytes: int
    max_bytes: int
    expected_bytes: int | None = None
    """Largest resident set expected, in bytes; None before the program is captured."""
    fits: bool = True
    """Whether `max_bytes` would be enough, with streamed weights if needed."""

    @property
    def can_grow(self) -> bool:
        return self.fits and self.granted_bytes < self.max_bytes

    @classmethod
    def for_capture(cls, max_bytes: int, bytes_per_core: int = 0) -> "MemoryRequest":
        """Return the request for a program that is not captured yet.

        A node's memory for each of its cores (`bytes_per_core`) takes no other problem's place.
        """
        granted_bytes = min(_round_down(bytes_per_core), MOST_ESTIMATE_BYTES)
        return cls(min(max(granted_bytes, ESTIMATE_BYTES), max_bytes), max_bytes)

    def for_model(
        self, expected_bytes: int, capture_bytes: int, weights_bytes: int = 0
    ) -> "MemoryRequest":
        """Return the request for a process that is expected to need `expected_bytes`.

        If only the weights do not fit, they are streamed and all available memory is granted. A
        problem that fits on no node gets what its capture took (`capture_bytes`): it is decomposed
        but not verified.
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

    def with_more_memory(self, needed_bytes: int = 0) -> "MemoryRequest":
        """Return a request for twice the expected memory, or four times the guess before that.

        It is for `needed_bytes`, with a margin, if that is more. Two retries lead from the guess
        to the memory of most nodes.
        """
        factor = 4 if self.expected_bytes is None else 2
        wanted_bytes = max(factor * self.granted_bytes, request_with_margin(needed_bytes))
        return replace(self, granted_bytes=min(wanted_bytes, self.max_bytes))


def describe_largest_node(max_bytes: int) -> str:
    """Return `, the largest node has 21.9 GiB`; empty if larger nodes may still join."""
    return "" if max_bytes >= NO_BOUND else f", the largest node has {max_bytes / GIB:.1f} GiB"


def describe_shortage(needed_bytes: int, max_bytes: int) -> str:
    """Return `needs 31.2 GiB, the largest node has 21.9 GiB`."""
    return f"needs {needed_bytes / GIB:.1f} GiB{describe_largest_node(max_bytes)}"


def request_with_margin(expected_bytes: int) -> int:
    """Return the bytes to request for a process that is expected to need `expected_bytes`."""
    return _round_up(max(int(expected_bytes * (1 + MARGIN_SHARE)) + MARGIN_BYTES, ESTIMATE_BYTES))


def _round_up(request_bytes: int) -> int:
    """Round up to quarters of a GiB, because Ray schedules equal requests together."""
    return -_round_down(-request_bytes)


def _round_down(request_bytes: int) -> int:
    quarter_bytes = GIB // 4
    return request_bytes // quarter_bytes * quarter_bytes


def count_threads(cores: int, node_bytes: int, request_bytes: int) -> int:
    """Return the threads for a child: its share of the cores of a node full of such children."""
    concurrent_children = max(1, min(cores, node_bytes // max(1, request_bytes)))
    return max(1, cores // concurrent_children)
