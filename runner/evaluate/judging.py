"""Decides whether an output is right: against float64, beside the error of the component itself.

An error is counted in tolerances of the output's dtype, those of `kdrun verify`. A solution may be
off by one tolerance, or by FACTOR times as much as the component, whichever is more: another order
of the same sums moves the last two bits, half precision moves ten.
"""

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from runner.torch_internals import tree_map_only
from runner.verify.gates.compare import STEP, are_identical
from runner.verify.runtime.output_leaves import (
    all_finite,
    leaves,
    pieces_of,
    structure,
    tensors,
)

FACTOR = 4.0
"""How many times the component's own error a solution may have."""
_MOST_TOLERANCES = 1e12
"""Error that is reported where the tolerance is about 0."""
_OTHER_DECISION_TOLERANCES = 1e4
"""Error of a component in tolerances from which on float64 decides otherwise than it does."""


@dataclass(frozen=True, slots=True)
class OutputError:
    """The errors of a program's output and of the component's, in tolerances of its dtype."""

    tolerances: float | None = None
    eager_tolerances: float | None = None
    max_diff: float | None = None
    drift: float | None = None
    """Largest difference from the component's output, relative to its largest value."""
    reason: str | None = None
    """The fault in one line; None if the output is right."""


def shorten(value: float | None) -> float | None:
    """Return a number with four digits, as it is written into an evaluation."""
    return None if value is None else float(f"{value:.4g}")


def to_double(model: nn.Module) -> nn.Module:
    """Return a copy of a model in float64."""
    return copy.deepcopy(model).double()


def widen(value: Any) -> Any:
    """Return inputs with floating-point tensors in float64."""

    def widen_tensor(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_complex():
            return tensor.to(torch.complex128)
        return tensor.double() if tensor.is_floating_point() else tensor.clone()

    return tree_map_only(torch.Tensor, widen_tensor, value)


def judge_output(exact: Any, eager: Any, actual: Any) -> OutputError:
    """Judge an output beside the component's own (`eager`) and that of float64 (`exact`).

    `exact` is None if the component does not run in float64: the component's own output decides.
    """
    if structure(actual) != structure(eager):
        return OutputError(reason=f"gives {structure(actual)} instead of {structure(eager)}")
    exact_leaves = [leaf for _, leaf in leaves(eager if exact is None else exact)]
    total = OutputError(0.0, 0.0, 0.0, 0.0)
    pairs = zip(leaves(eager), leaves(actual), exact_leaves, strict=True)
    for (name, eager_leaf), (_, actual_leaf), exact_leaf in pairs:
        if not isinstance(eager_leaf, torch.Tensor):
            if eager_leaf != actual_leaf:
                return OutputError(reason=f"{name} is {actual_leaf!r} instead of {eager_leaf!r}")
            continue
        assert isinstance(actual_leaf, torch.Tensor)
        assert isinstance(exact_leaf, torch.Tensor)
        if fault := _find_layout_fault(name, eager_leaf, actual_leaf):
            return OutputError(reason=fault)
        error = _judge_tensor(name, exact_leaf, eager_leaf, actual_leaf)
        if error.reason:
            return error
        total = _add_errors(total, error)
    return total


def _add_errors(first: OutputError, second: OutputError) -> OutputError:
    """Return the larger errors of two right outputs."""

    def larger(name: str) -> float:
        return max(getattr(first, name) or 0.0, getattr(second, name) or 0.0)

    return OutputError(
        larger("tolerances"), larger("eager_tolerances"), larger("max_diff"), larger("drift")
    )


def _find_layout_fault(name: str, eager: torch.Tensor, actual: torch.Tensor) -> str | None:
    if actual.shape != eager.shape:
        return f"{name} has shape {list(actual.shape)} instead of {list(eager.shape)}"
    if actual.dtype != eager.dtype:
        dtypes = [str(t.dtype).removeprefix("torch.") for t in (actual, eager)]
        return f"{name} is {dtypes[0]} instead of {dtypes[1]}"
    strides = [
        [step for n, step in zip(t.shape, t.stride(), strict=True) if n > 1]
        for t in (actual, eager)
    ]
    if strides[0] != strides[1]:
        return f"{name} has strides {list(actual.stride())} instead of {list(eager.stride())}"
    return None


def _judge_tensor(
    name: str, exact: torch.Tensor, eager: torch.Tensor, actual: torch.Tensor
) -> OutputError:
    if not (eager.is_floating_point() or eager.is_complex()):
        wrong = int((eager != actual).sum())
        if wrong:
            return OutputError(reason=f"{name} differs in {wrong} of {eager.numel()} elements")
        return OutputError(0.0, 0.0, 0.0, 0.0)
    if not _has_same_pattern(eager, actual):
        return OutputError(reason=f"{name} is NaN or infinite in other places")
    scale = max((_largest(piece) for piece in pieces_of(eager)), default=0.0)
    errors = _measure_errors(exact, eager, actual, scale)
    if errors.eager_tolerances > _OTHER_DECISION_TOLERANCES:
        exact = eager  # A comparison of values went the other way.
        errors = _measure_errors(exact, eager, actual, scale)
    allowed = allowed_tolerances(errors.eager_tolerances)
    reason = None
    if errors.tolerances > allowed:
        count = sum(
            int((_count_tolerances(a, x, eager.dtype, scale) > allowed).sum())
            for a, x in zip(pieces_of(actual), pieces_of(exact), strict=True)
        )
        extent = f"{count} of {eager.numel() * (2 if eager.is_complex() else 1)} elements"
        factors = _format_factor(errors.tolerances), _format_factor(errors.eager_tolerances)
        size = f"{factors[0]} times the tolerance, the component itself by {factors[1]} times"
        reason = f"{name} differs by {errors.max_diff:.3g} ({size}), in {extent}"
    drift = errors.max_diff / scale if scale else errors.max_diff
    return OutputError(errors.tolerances, errors.eager_tolerances, errors.max_diff, drift, reason)


@dataclass(frozen=True, slots=True)
class _Errors:
    """Errors of a tensor: in tolerances against float64, and the largest difference."""

    tolerances: float = 0.0
    eager_tolerances: float = 0.0
    max_diff: float = 0.0


def _measure_errors(
    exact: torch.Tensor, eager: torch.Tensor, actual: torch.Tensor, scale: float
) -> _Errors:
    """Return the largest errors over all elements."""
    worst = _Errors()
    for x, e, a in zip(pieces_of(exact), pieces_of(eager), pieces_of(actual), strict=True):
        eager_error = _largest(_count_tolerances(e, x, eager.dtype, scale))
        if torch.equal(a, e):
            worst = replace(
                worst,
                tolerances=max(worst.tolerances, eager_error),
                eager_tolerances=max(worst.eager_tolerances, eager_error),
            )
            continue
        worst = _Errors(
            max(worst.tolerances, _largest(_count_tolerances(a, x, eager.dtype, scale))),
            max(worst.eager_tolerances, eager_error),
            max(worst.max_diff, _largest(_widen(a) - _widen(e))),
        )
    return worst


def _count_tolerances(
    actual: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype, scale: float
) -> torch.Tensor:
    """Return each element's error in tolerances of a dtype; 0 where one of them is not finite."""
    wide = _widen(exact)
    difference = _widen(actual).sub(wide).abs_()
    tolerance = STEP[dtype]
    limits = wide.abs().mul_(tolerance.rtol).add_(tolerance.atol * min(scale, 1.0))
    limits.clamp_(min=torch.finfo(torch.float64).tiny)
    if not all_finite(difference):
        difference.nan_to_num_(nan=0.0, posinf=0.0)
        limits.nan_to_num_(nan=1.0)
    return difference.div_(limits).clamp_(max=_MOST_TOLERANCES)


def _widen(piece: torch.Tensor) -> torch.Tensor:
    return _as_real(piece.to(torch.complex128 if piece.is_complex() else torch.float64))


def _largest(piece: torch.Tensor) -> float:
    """Return the largest magnitude of the elements that are finite."""
    if not piece.numel():
        return 0.0
    piece = _as_real(piece)
    lowest, highest = map(float, piece.aminmax())
    largest = max(-lowest, highest)
    if math.isfinite(largest):
        return largest
    return float(piece.abs().nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0).max())


def _has_same_pattern(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether NaN, infinity and negative infinity are in the same places."""
    for a, b in zip(pieces_of(first), pieces_of(second), strict=True):
        if all_finite(a) and all_finite(b):
            continue
        mask = ~torch.isfinite(a)
        if not torch.equal(mask, ~torch.isfinite(b)):
            return False
        numbers = [
            torch.nan_to_num(_as_real(t[mask]), nan=0.0, posinf=1.0, neginf=-1.0) for t in (a, b)
        ]
        if not torch.equal(*numbers):
            return False
    return True


def _format_factor(factor: float) -> str:
    """Return a factor such as `0.0132` or `1,010`."""
    return f"{factor:,.0f}" if 100 <= factor < 1e9 else f"{factor:.3g}"


def allowed_tolerances(eager_tolerances: float) -> float:
    """Return the error that a solution may have, in tolerances."""
    return max(1.0, FACTOR * eager_tolerances)


def _as_real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor).flatten() if tensor.is_complex() else tensor


def have_same_bits(first: Any, second: Any) -> bool:
    """Return whether the tensors of two nested values are equal to the last bit."""
    return are_identical(tensors(first), tensors(second))
