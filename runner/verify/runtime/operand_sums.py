"""Sums over the operands of an operation, which do not depend on how these are laid out.

Two programs that do the same operation on the same values have the same sums, up to rounding. An
operand with other values, such as one element expanded to its shape, has another sum even where the
output does not show it: in the branch of a `where` that is not taken, or in a softmax's maximum.
"""

from collections.abc import Sequence
from math import prod, sqrt
from typing import NamedTuple, cast

import torch

from runner.torch_internals import without_modes
from runner.verify.runtime.output_leaves import pieces_of

_UNIT = 1e-4
"""Numbers are compared by log(1 + x / unit): by ratio if they are larger than the unit."""
_INFINITY = 200.0
"""The place of an infinite number on that scale, beyond every float32."""
_ERRORS, _ERRORS_OF_HALVES, _ERRORS_OF_GIVEN = (0.02, 1e-4), (0.2, 2e-3), (1e-4, 1e-5)
"""Errors of one element that are accepted: one that is another for each element, one that all
elements share. Tensors that no operation computed from an input are the same in both programs."""
_PAIR_OFFSET, _PAIR_SCALE = 3.0, 0.1


class OperandSum(NamedTuple):
    """A sum over all elements of an operand, or over the products of several operands."""

    total: float
    tolerance: float
    distinct: int
    """Number of elements that lie at places of their own: an expanded operand has fewer."""


OperandSums = tuple[OperandSum | None, ...]
"""The sums over each operand, and over their products; None if it is not compared."""


def may_stand_for(operands: OperandSums, originals: OperandSums) -> bool:
    """Return whether operands may have the values of those of the original.

    An operand that has fewer elements of its own than the original's is another one, even if they
    have the same values for these inputs.
    """
    if len(operands) != len(originals):
        return True
    return all(
        a is None
        or b is None
        or (abs(a.total - b.total) <= max(a.tolerance, b.tolerance) and a.distinct >= b.distinct)
        for a, b in zip(operands, originals, strict=True)
    )


@without_modes()  # a watch may observe the same forward
def sum_operands(operands: Sequence[torch.Tensor | None], computed: Sequence[bool]) -> OperandSums:
    """Return the sum over each operand, and over the products of all of them, element by element.

    The products change if the elements of one operand are permuted, and not if those of all are.
    There are none if the shapes differ. `computed`: whether each was computed from an input.
    """
    sums = tuple(
        None if t is None else _sum_elements(t, c) for t, c in zip(operands, computed, strict=True)
    )
    return (*sums, None if None in sums else _sum_products(cast(Sequence[torch.Tensor], operands)))


def _sum_elements(tensor: torch.Tensor, computed: bool) -> OperandSum | None:
    """Return None if the numbers of a tensor are not in memory."""
    if not _has_numbers(tensor):
        return None
    real = tensor.detach()
    real = torch.view_as_real(real.resolve_conj()) if real.is_complex() else real
    total = sum(float(_scale(piece).sum()) for piece in pieces_of(real))
    tolerance = _tolerance(tensor.dtype if computed else None, real.numel())
    return OperandSum(total, tolerance, _count_distinct(tensor))


def _sum_products(operands: Sequence[torch.Tensor]) -> OperandSum | None:
    if len(operands) < 2 or any(t.is_complex() for t in operands):
        return None
    try:
        shape = torch.broadcast_shapes(*(t.shape for t in operands))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None
    total = 0.0
    for parts in zip(*(pieces_of(t.detach().expand(shape)) for t in operands), strict=True):
        product = _scale(parts[0]) + _PAIR_OFFSET
        for part in parts[1:]:
            product *= (_scale(part) + _PAIR_OFFSET) * _PAIR_SCALE
        total += float(product.sum())
    tolerance = max(_tolerance(t.dtype, shape.numel()) for t in operands)
    return OperandSum(total, tolerance * 4 ** (len(operands) - 1), 0)


def _count_distinct(tensor: torch.Tensor) -> int:
    spans = [(n, stride) for n, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
    return min(prod(n for n, _ in spans), 1 + sum((n - 1) * stride for n, stride in spans))


def _has_numbers(tensor: torch.Tensor) -> bool:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_meta:
        return False
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return False
    return bool(tensor.numel()) and bool(tensor.untyped_storage().nbytes())


def _scale(piece: torch.Tensor) -> torch.Tensor:
    """Return the elements on a scale on which a ratio is a distance."""
    wide = torch.float64 if piece.dtype == torch.float64 else torch.float32
    numbers = piece.detach().to(wide)
    scaled = numbers.abs().div_(_UNIT).log1p_().copysign_(numbers)
    return scaled.nan_to_num_(0.0, _INFINITY, -_INFINITY)


def _tolerance(dtype: torch.dtype | None, elements: int) -> float:
    """Return the accepted error of a sum; `dtype`: None for a tensor that nobody computed."""
    is_half = dtype is not None and dtype.is_floating_point and dtype.itemsize < 4
    of_floats = _ERRORS_OF_GIVEN if dtype is None else _ERRORS
    single, common = _ERRORS_OF_HALVES if is_half else of_floats
    return single * sqrt(elements) + common * elements
