"""Compares the constant buffers that a file makes, such as a mask or a table, with the original's.

The judge runs a file on the original's buffers, but whoever imports the file runs it on those that
it makes itself.
"""

import torch
from torch import nn

from runner.verify.findings import Findings
from runner.verify.gates.compare import STEP, compare
from runner.verify.gates.weights import weights_of
from runner.verify.layout import Layout

_MAX_BYTES = 64 << 20
"""Bytes of the largest buffer that is compared."""


class ConstantBuffers:
    """Buffers that do not depend on the seed: the original's, and those of each component file.

    Buffers that depend on the seed are not compared. They are data, or they stand for data or for a
    table that the file's author could not write down.
    """

    def __init__(self, layout: Layout, findings: Findings) -> None:
        self._layout, self._findings = layout, findings
        self._original: dict[str, torch.Tensor] = {}
        self._trials: set[int] = set()
        self._file_buffers: dict[str, dict[str, torch.Tensor]] = {}

    def record_original_model(self, model: nn.Module, trial: int) -> None:
        """Record the original's buffers; drop those that differ from those of an earlier trial."""
        buffers = {
            name: tensor.detach().clone()
            for name, tensor in weights_of(model).items()
            if not isinstance(tensor, nn.Parameter) and tensor.nbytes <= _MAX_BYTES
        }
        earlier = self._original if self._trials else buffers
        self._original = {
            n: t for n, t in buffers.items() if n in earlier and torch.equal(t, earlier[n])
        }
        self._trials.add(trial)

    def record_file_buffers(self, file: str, buffers: dict[str, torch.Tensor]) -> None:
        """Record the constant buffers that a component file makes."""
        self._file_buffers[file] = buffers

    def judge(self) -> None:
        """Report each buffer of a file that differs from the original's at all places of the file.

        One class in a file may stand for places with different buffers. So a buffer may equal
        another compared one of the original's, unless the file has one that equals that of its
        first place.
        """
        for file, buffers in self._file_buffers.items() if len(self._trials) > 1 else ():
            nodes = self._layout.nodes(file)
            sources_by_name = {
                name: [(node.weight_map or {name: name}).get(name) for node in nodes]
                for name in buffers
            }
            comparable = {
                n: s
                for n, s in sources_by_name.items()
                if s and all(p in self._original for p in s)
            }
            for name, sources in comparable.items():
                originals = [self._original[source] for source in sources if source]
                if any(map(_are_equal, originals, [buffers[name]] * len(originals))):
                    continue
                is_misplaced = any(_are_equal(originals[0], tensor) for tensor in buffers.values())
                compared = (self._original[s] for names in comparable.values() for s in names if s)
                if is_misplaced or not any(
                    _are_equal(buffer, buffers[name]) for buffer in compared
                ):
                    fault = f"its own {name} is not the original's {sources[0]}"
                    self._findings.record_verdict("weights", file, fault)


def _are_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    return compare(first, second, STEP).reason is None
