"""Compares the constant buffers that a file makes, such as a mask or a table, with the original's.

Which buffer of the original a file's buffer is, the weight maps of the composition and the steps
say, which the weights gate has verified.

The judge runs a file on the original's buffers, but whoever imports the file runs it on those that
it makes itself.
"""

from collections import defaultdict
from collections.abc import Mapping

import torch
from torch import nn

from runner.verify.findings import Findings
from runner.verify.gates.compare import STEP, are_identical, compare
from runner.verify.gates.weights import plain_tensors, weights_of

_MAX_BYTES = 64 << 20
"""Bytes of the largest buffer that is compared."""

_NOISE = 1e-5
"""Largest part of the original's values by which a seed moves a buffer that is compared."""
_FileWeight = tuple[str, str]
"""A component file and the name of a weight in it."""


class ConstantBuffers:
    """Buffers that do not depend on the seed: the original's, and those of each component file.

    Buffers that depend on the seed are not compared. They are data, or they stand for data or for a
    table that the file's author could not write down.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._original: dict[str, torch.Tensor] = {}
        self._trials: set[int] = set()
        self._file_buffers: dict[str, dict[str, tuple[torch.Tensor, float]]] = {}
        self._sources: dict[_FileWeight, set[str]] = defaultdict(set)
        """For a kernel's weight, its names in the original at all places of the kernel."""
        self._parts: dict[_FileWeight, set[_FileWeight]] = defaultdict(set)
        """For a parent's weight, the children's weights that it is."""

    def record_original_model(self, model: nn.Module, trial: int) -> None:
        """Record the original's buffers; drop those that differ from those of an earlier trial.

        Tensors in plain attributes count, too: a kernel may have one as a buffer.
        """
        by_name = plain_tensors(model) | weights_of(model)
        buffers = {
            name: tensor.detach().clone()
            for name, tensor in by_name.items()
            if not isinstance(tensor, nn.Parameter) and tensor.nbytes <= _MAX_BYTES
        }
        earlier = self._original if self._trials else buffers
        self._original = {
            n: t for n, t in buffers.items() if n in earlier and are_identical(t, earlier[n])
        }
        self._trials.add(trial)

    def record_file_buffers(
        self, file: str, buffers: dict[str, tuple[torch.Tensor, float]]
    ) -> None:
        """Record the buffers that a component file makes, each with how far a seed moves it."""
        self._file_buffers[file] = buffers

    def record_map(
        self, parent: str | None, mapping: Mapping[str, str], children: Mapping[str, str]
    ) -> None:
        """Record a weight map: name in the model of children -> name in the parent.

        `parent`: the parent's file; None for the original. `children`: module path -> file.
        """
        for name, source in mapping.items():
            path = name.rpartition(".")[0]
            while path and path not in children:
                path = path.rpartition(".")[0]
            if not path:
                continue
            child = children[path], name.removeprefix(f"{path}.")
            if parent is None:
                self._sources[child].add(source)
            else:
                self._parts[parent, source].add(child)

    def judge(self) -> None:
        """Report each buffer of a file that differs from the original's at all places of the file.

        One file may stand for places with different buffers.
        """
        for file, buffers in self._file_buffers.items() if len(self._trials) > 1 else ():
            for name, (buffer, spread) in buffers.items():
                sources = sorted(self._find_sources((file, name)))
                if not sources or any(source not in self._original for source in sources):
                    continue
                if any(spread > _NOISE * _largest(self._original[source]) for source in sources):
                    continue
                if not any(_are_equal(self._original[source], buffer) for source in sources):
                    fault = f"its own {name} is not the original's {sources[0]}"
                    self._findings.record_verdict("weights", file, fault)

    def _find_sources(self, weight: _FileWeight) -> set[str]:
        """Return the names in the original that a weight of a file has at its places."""
        found, stack, visited = set(), [weight], set()
        while stack:
            current = stack.pop()
            if current not in visited:
                visited.add(current)
                found |= self._sources.get(current, set())
                stack += self._parts.get(current, ())
        return found


def _largest(tensor: torch.Tensor) -> float:
    """Return the largest finite absolute value."""
    kind = torch.complex128 if tensor.is_complex() else torch.float64
    return float(tensor.to(kind).abs().nan_to_num(0, 0, 0).max()) if tensor.numel() else 0.0


def _are_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    return compare(first, second, STEP).reason is None
