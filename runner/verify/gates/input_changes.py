"""Compares what two forwards leave in the model's inputs, and moves inputs that hide faults."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from runner.verify.gates.compare import COMPOSITION, compare
from runner.verify.gates.weights import has_overlap
from runner.verify.layout import ORIGINAL
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.runner import Inputs

_Layout = tuple[tuple[int, ...], tuple[int, ...], bool]
"""Shape, strides and requires_grad of a tensor."""


@dataclass(frozen=True, slots=True)
class ChangedInput:
    """An input as a forward left it."""

    layout: _Layout
    values: torch.Tensor


class InputWatch:
    """Finds the inputs that a forward changes: their values, their shape or their strides."""

    def __init__(self, inputs: Inputs) -> None:
        self._tensors = tensors(list(inputs))
        self._before = [(tensor._version, _layout_of(tensor)) for tensor in self._tensors]

    def find_changes(self) -> dict[int, ChangedInput]:
        """Return each input that changed since this object was made, by its position."""
        return {
            n: ChangedInput(_layout_of(tensor), tensor.detach().clone())
            for n, (tensor, before) in enumerate(zip(self._tensors, self._before, strict=True))
            if (tensor._version, _layout_of(tensor)) != before
        }


def input_change_fault(
    original: Mapping[int, ChangedInput], composed: Mapping[int, ChangedInput]
) -> str | None:
    """Return a fault if the composed model leaves an input otherwise than the original does.

    It may leave an input as it is, whatever the original does with it.
    """
    for n, left in composed.items():
        expected = original.get(n)
        if expected is None:
            return f"changes input[{n}] of the model; {ORIGINAL} leaves it as it is"
        difference = compare(expected.values, left.values, COMPOSITION)
        if left.layout != expected.layout or difference.reason:
            return f"leaves other values in input[{n}] of the model than {ORIGINAL}"
    return None


def input_change_warnings(
    original: Mapping[int, ChangedInput], composed: Mapping[int, ChangedInput]
) -> list[str]:
    """Return a sentence for each input that only the original changes."""
    return [
        f"{ORIGINAL} writes into input[{n}] of its caller; the parts leave it as it is"
        for n in original.keys() - composed.keys()
    ]


def move_zeros(inputs: Inputs, generator: torch.Generator) -> None:
    """Draw inputs that are zero throughout from [0, 0.1): zeros hide a view of a wrong part."""
    for tensor in tensors(list(inputs)):
        is_moved = tensor.is_floating_point() and tensor.numel() > 1 and not has_overlap(tensor)
        if is_moved and not tensor.any():
            tensor.copy_(torch.rand(tensor.shape, generator=generator) * 0.1)


def _layout_of(tensor: torch.Tensor) -> _Layout:
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.requires_grad
