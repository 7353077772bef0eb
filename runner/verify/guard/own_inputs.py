"""Finds kernels whose own inputs show less than the tensors that reach them in the model."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from runner.torch_internals import without_modes
from runner.verify.findings import Findings
from runner.verify.gates.health import constant_output
from runner.verify.gates.self_test import find_components
from runner.verify.layout import KERNEL_FOLDER
from runner.verify.runtime.forward_wrapping import Forward, wrap_forwards
from runner.verify.runtime.output_leaves import pieces_of, tensors

_MAX_CHANCE_ELEMENTS = 16
"""Number of elements up to which equal numbers may be chance."""
_FEW_CHANGES = 0.1
"""Share of elements that a clamp may change in the model and none of on its own inputs."""

Signs = frozenset[str]
"""Texts, each of which says how the inputs and outputs of one call show little."""


class OwnInputs:
    """Compares what kernels show on their own inputs with what they show in the model."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._own: dict[str, Signs] = {}
        """File of a kernel -> the signs of its call on its own inputs."""
        self._in_model: dict[str, Signs] = {}
        """File of a kernel -> the signs of any of its calls in the model."""

    def record_own_call(self, file: str, inputs: list[torch.Tensor], output: object) -> None:
        """Record a kernel's call on its own inputs, which it has not changed."""
        if file.startswith(f"{KERNEL_FOLDER}/"):
            self._own[file] = _find_signs(inputs, tensors(output), _is_one_number, share=0.0)

    def watch(self, composed: nn.Module, directory: Path) -> AbstractContextManager[None]:
        """Return a context that records the calls of the kernels in the composed model."""
        components = find_components(composed, directory / KERNEL_FOLDER, directory)

        def watch_calls(path: str, forward: Forward) -> Forward:
            file = components[path][1]

            def watched_forward(*args: Any, **kwargs: Any) -> Any:
                output = forward(*args, **kwargs)
                if self._own.get(file) != frozenset():
                    inputs = tensors([*args, *kwargs.values()])
                    signs = _find_signs(
                        inputs, tensors(output), _may_be_one_number, share=_FEW_CHANGES
                    )
                    self._in_model[file] = self._in_model.get(file, signs) | signs
                return output

            return watched_forward

        modules = {path: module for path, (module, _) in components.items()}
        return wrap_forwards(modules, watch_calls)

    def judge(self) -> None:
        """Report the kernels that show less on their own inputs."""
        for file, signs in sorted(self._own.items()):
            for sign in sorted(signs - self._in_model.get(file, signs)):
                fault = f"{sign} on its own inputs, and not in the model"
                self._findings.record_verdict(
                    "self-test", file, f"{fault}: draw what reaches it there"
                )


def _find_signs(
    inputs: list[torch.Tensor],
    outputs: list[torch.Tensor],
    is_one_number: Callable[[torch.Tensor], bool],
    *,
    share: float,
) -> Signs:
    """Return the signs of a call; `share`: the share of changed elements that counts as none."""
    with without_modes():
        signs = {
            f"its input {n} is one number throughout"
            for n, tensor in enumerate(inputs, 1)
            if tensor.is_floating_point() and is_one_number(tensor)
        }
        floats = [tensor for tensor in outputs if tensor.numel()]
        if any(t.is_floating_point() for t in floats) and all(map(is_one_number, floats)):
            signs.add("gives one number throughout")
        for n, tensor in enumerate(inputs, 1):
            if any(_is_same(tensor, output, share) for output in outputs):
                signs.add(f"gives its input {n} unchanged")
        return frozenset(signs)


def _is_one_number(tensor: torch.Tensor) -> bool:
    """Return whether a kernel's own tensor has one value throughout, and not by chance."""
    return tensor.numel() > _MAX_CHANCE_ELEMENTS and constant_output(tensor) is not None


def _may_be_one_number(tensor: torch.Tensor) -> bool:
    """Return whether the first piece of a tensor in the model has no two finite values."""
    elements = next(pieces_of(tensor.detach()))
    if elements.dtype.itemsize == 1:
        elements = elements.float()
    finite = elements[elements.isfinite()]
    return not bool((finite != finite[:1]).any())


def _is_same(tensor: torch.Tensor, output: torch.Tensor, share: float) -> bool:
    is_alike = tensor.shape == output.shape and tensor.dtype == output.dtype
    if not is_alike or not tensor.is_floating_point() or tensor.dtype.itemsize == 1:
        return False
    if tensor.numel() <= _MAX_CHANCE_ELEMENTS:
        return False
    if not share:
        return torch.equal(tensor, output)
    first, second = (next(pieces_of(t.detach())) for t in (tensor, output))
    return float((first != second).double().mean()) <= share
