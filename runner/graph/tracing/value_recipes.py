"""Finds short recipes for tensors of a model in memory, whose making nobody recorded.

A table that a formula gives (a constant, a range, a triangular mask) is recognised by its values. A
parameter or an input is drawn with the mean and the spread that it has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from runner.graph.ir import Recipe
from runner.graph.tracing.provenance import ProvenanceRecorder
from runner.torch_internals import FakeTensorMode

_DIGITS = 2
"""Significant digits of a mean or spread in a recipe."""


class ValueRecorder(ProvenanceRecorder):  # type: ignore[no-untyped-call]
    """Gives recipes by looking at values, in place of a record of how they were made."""

    def __init__(self, *, inputs: bool = False) -> None:
        super().__init__()
        self._inputs = inputs

    def recipe(self, tensor: torch.Tensor) -> Recipe | None:
        """Return operations that make this tensor, or draw values like its own; None if unknown."""
        if tensor.layout is not torch.strided or not tensor.numel() or tensor.is_complex():
            return None
        text = next(_exact_expressions(tensor), None)
        if text is None and (self._inputs or isinstance(tensor, torch.nn.Parameter)):
            text = _drawing_expression(tensor)
        if text is None:
            return None
        recorder = ProvenanceRecorder()
        with FakeTensorMode(allow_non_fake_inputs=True), recorder:
            made = eval(text, {"torch": torch})
        return recorder.recipe(made)


def _exact_expressions(tensor: torch.Tensor) -> Iterator[str]:
    """Yield expressions whose value is exactly the tensor."""
    values = tensor.detach()
    shape, dtype = list(values.shape), values.dtype
    with torch.no_grad():
        first = values.flatten()[0]
        if bool((values == first).all()):
            yield _filled_expression(shape, first.item(), dtype)
        if values.dim() and dtype != torch.bool and values.shape[-1] > 2:
            row = values.flatten(0, -2)[0] if values.dim() > 1 else values
            start, step = row[0].item(), (row[1] - row[0]).item()
            size = values.shape[-1]
            if step and math.isfinite(start + step) and start == int(start) and step == int(step):
                start, step = int(start), int(step)
                ramp = torch.arange(start, start + size * step, step, device=values.device)
                if bool((values == ramp.to(dtype)).all()):
                    cast = "" if dtype == torch.int64 else f", dtype={dtype}"
                    text = f"torch.arange({start}, {start + size * step}, {step}{cast})"
                    yield text if values.dim() == 1 else f"{text}.expand({shape}).clone()"
        if values.dim() > 1 and values.shape[-1] > 1 and values.shape[-2] > 1:
            yield from _triangle_expressions(values)


def _triangle_expressions(values: torch.Tensor) -> Iterator[str]:
    """Yield expressions for a triangular matrix with one number above and one below."""
    *_, rows, columns = values.shape
    matrix = values.flatten(0, -3)[0] if values.dim() > 2 else values
    above, below = matrix[0, -1].item(), matrix[-1, 0].item()
    if above == below or not bool((values == matrix).all()):
        return
    is_upper = torch.ones(rows, columns, dtype=torch.bool, device=values.device).triu(1)
    if not bool((matrix == torch.where(is_upper, above, below).to(matrix.dtype)).all()):
        return
    shape, dtype = list(values.shape), values.dtype
    if below == 0:
        yield f"{_filled_expression(shape, above, dtype)}.triu(1)"
    elif above == 0:
        yield f"{_filled_expression(shape, below, dtype)}.tril()"


def _filled_expression(shape: list[int], value: float | bool, dtype: torch.dtype) -> str:
    cast = "" if dtype == torch.float32 else f", dtype={dtype}"
    if value in (0, 1):
        return f"torch.{'ones' if value else 'zeros'}({shape}{cast})"
    number = f"float('{value}')" if dtype.is_floating_point and value - value != 0 else repr(value)
    return f"torch.full({shape}, {number}{cast or ', dtype=torch.float32'})"


def _drawing_expression(tensor: torch.Tensor) -> str | None:
    """Return an expression that draws values like the tensor's own."""
    values, shape = tensor.detach(), list(tensor.shape)
    cast = "" if values.dtype == torch.float32 else f", dtype={values.dtype}"
    if values.dtype == torch.bool:
        return f"torch.rand({shape}) < {_short(values.float().mean().item())}"
    if not values.is_floating_point():
        first, end = int(values.min()), int(values.max()) + 1
        cast = "" if values.dtype == torch.int64 else f", dtype={values.dtype}"
        return f"torch.randint({first}, {end}, {shape}{cast})"
    finite = values[values.isfinite()].float()
    if not finite.numel():
        return None
    low, high = finite.min().item(), finite.max().item()
    mean, spread = finite.mean().item(), finite.std(correction=0).item()
    if low >= 0 and high <= 1 and 0.2 < spread < 0.35:
        return f"torch.rand({shape}{cast})"
    text = f"torch.randn({shape}{cast})"
    if not 0.9 < spread < 1.1:
        text += f" * {_short(spread)}"
    return text if abs(mean) < spread / 4 else f"{text} + {_short(mean)}"


def _short(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
