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

_LARGEST = 64 << 20
"""Bytes of the largest buffer that is compared."""


class Constants:
    """Buffers that do not depend on the seed: the original's, and those of each component file.

    Buffers that depend on the seed are not compared. They are data, or they stand for data or for a
    table that the file's author could not write down.
    """

    def __init__(self, layout: Layout, findings: Findings) -> None:
        self._layout, self._findings = layout, findings
        self._original: dict[str, torch.Tensor] = {}
        self._trials: set[int] = set()
        self._own: dict[str, dict[str, torch.Tensor]] = {}

    def original_built(self, model: nn.Module, trial: int) -> None:
        """Record the original's buffers; drop those that differ from those of an earlier trial."""
        held = {
            name: tensor.detach().clone()
            for name, tensor in weights_of(model).items()
            if not isinstance(tensor, nn.Parameter) and tensor.nbytes <= _LARGEST
        }
        known = self._original if self._trials else held
        self._original = {n: t for n, t in held.items() if n in known and torch.equal(t, known[n])}
        self._trials.add(trial)

    def of_file(self, file: str, own: dict[str, torch.Tensor]) -> None:
        """Record the constant buffers that a component file makes."""
        self._own[file] = own

    def judge(self) -> None:
        """Report each buffer of a file that differs from the original's at all places of the file.

        One class in a file may stand for places with different buffers. So a buffer may equal
        another compared one of the original's, unless the file has one that equals that of its
        first place.
        """
        for file, own in self._own.items() if len(self._trials) > 1 else ():
            nodes = self._layout.nodes(file)
            there = {
                name: [(node.weight_map or {name: name}).get(name) for node in nodes]
                for name in own
            }
            known = {n: s for n, s in there.items() if s and all(p in self._original for p in s)}
            for name, sources in known.items():
                wanted = [self._original[source] for source in sources if source]
                if any(map(_same, wanted, [own[name]] * len(wanted))):
                    continue
                elsewhere = any(_same(wanted[0], tensor) for tensor in own.values())
                others = (self._original[s] for each in known.values() for s in each if s)
                if elsewhere or not any(_same(other, own[name]) for other in others):
                    fault = f"its own {name} is not the original's {sources[0]}"
                    self._findings.record_verdict("weights", file, fault)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return compare(one, other, STEP).reason is None
