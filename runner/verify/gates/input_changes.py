"""Compares what two forwards leave in the model's inputs, and moves inputs that hide faults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from runner.verify.gates.compare import COMPOSITION, compare
from runner.verify.gates.weights import has_one_value, has_overlap
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


def move_equal_elements(
    values: Iterable[torch.Tensor], generator: torch.Generator, *, whole_numbers: bool
) -> None:
    """Change inputs, or buffers, whose parts are equal: they hide a view of a wrong part.

    Floating-point zeros are drawn from [0, 0.1), and other numbers come up to a tenth nearer to
    zero. `whole_numbers`: integers and booleans change, too: a quarter of the booleans become the
    opposite, and integers others that the tensor holds, or smaller ones.
    """
    for tensor in values:
        if tensor.numel() < 2 or tensor.layout != torch.strided or has_overlap(tensor):
            continue
        if not (tensor.is_floating_point() or (whole_numbers and not tensor.is_complex())):
            continue
        if tensor.is_floating_point() and tensor.dtype.itemsize == 1:
            continue  # float8 can neither be compared nor multiplied
        is_zero = not tensor.any()
        if not is_zero and not _has_equal_parts(tensor):
            continue
        noise = torch.rand(tensor.shape, generator=generator)
        if tensor.is_floating_point():
            tensor.copy_(noise * 0.1 if is_zero else tensor * (1 - noise * 0.1))
        elif tensor.dtype == torch.bool:
            tensor.logical_xor_(noise < 0.25)
        elif has_one_value(tensor):
            value = int(tensor.flatten()[0])
            if value >= 0:
                low, high = (0, 1) if value < 2 else ((value + 1) // 2, value)
                tensor.copy_(low + (noise * (high - low + 1)).long())
        else:
            tensor.copy_(tensor.flatten()[(noise * tensor.numel()).long()])


def _has_equal_parts(tensor: torch.Tensor) -> bool:
    """Return whether all parts of a tensor along one of its dimensions are equal."""
    return any(
        n > 1 and torch.equal(tensor, tensor.narrow(d, 0, 1).expand_as(tensor))
        for d, n in enumerate(tensor.shape)
    )


def _layout_of(tensor: torch.Tensor) -> _Layout:
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.requires_grad
