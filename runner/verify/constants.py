"""Buffers that are no data: a mask, a table. Where a file makes its own, it is the original's.

A judge runs a file on the original's buffers; whoever imports it runs it on those that it makes.
"""

import torch
from torch import nn

from runner.verify.compare import STEP, compare
from runner.verify.findings import Findings
from runner.verify.layout import Layout
from runner.verify.weights import weights_of

_LARGEST = 64 << 20
"""Bytes of a buffer that is looked at."""


class Constants:
    """Buffers that are the same whatever the seed: the original's, and each file's own.

    What depends on the seed is data, and what a file draws stands for data or for a table that it
    could not write down; neither is compared.
    """

    def __init__(self, layout: Layout, findings: Findings) -> None:
        self._layout, self._findings = layout, findings
        self._original: dict[str, torch.Tensor] = {}
        self._trials: set[int] = set()
        self._own: dict[str, dict[str, torch.Tensor]] = {}

    def original_built(self, model: nn.Module, trial: int) -> None:
        """Take the original's buffers; those that are others in another trial are left out."""
        held = {
            name: tensor.detach().clone()
            for name, tensor in weights_of(model).items()
            if not isinstance(tensor, nn.Parameter) and tensor.nbytes <= _LARGEST
        }
        known = self._original if self._trials else held
        self._original = {n: t for n, t in held.items() if n in known and torch.equal(t, known[n])}
        self._trials.add(trial)

    def of_file(self, file: str, own: dict[str, torch.Tensor]) -> None:
        """Take the constant buffers that a component file makes."""
        self._own[file] = own

    def judge(self) -> None:
        """Each is one of the original's: one file may stand for places that have different ones."""
        for file, own in self._own.items() if len(self._trials) > 1 else ():
            for name, tensor in own.items():
                nodes = self._layout.nodes(file)
                sources = {(node.weight_map or {name: name}).get(name) for node in nodes}
                if not sources or not sources <= self._original.keys():
                    continue
                if all(compare(t, tensor, STEP).reason for t in self._original.values()):
                    fault = f"its own {name} is not the original's {min(filter(None, sources))}"
                    self._findings.found("weights", file, fault)
