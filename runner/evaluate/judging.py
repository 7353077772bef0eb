"""Decides whether an output is right: against float64, beside the error of the component itself.

An error is counted in tolerances of the output's dtype, those of `kdrun verify`. A solution may be
off by one tolerance, or by FACTOR times as much as the component, whichever is more: another order
of the same sums moves the last two bits, half precision moves ten.
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from runner.verify.gates.compare import STEP
from runner.verify.runtime.output_leaves import leaves, structure, tensors

FACTOR = 4.0
"""How many times the component's own error a solution may have."""
_MAX_TOLERANCES = 1e4
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


def to_double(model: nn.Module) -> nn.Module:
    """Return a copy of a model in float64."""
    return copy.deepcopy(model).double()


def widen(value: Any) -> Any:
    """Return inputs with floating-point tensors in float64."""
    if isinstance(value, torch.Tensor):
        if value.is_complex():
            return value.to(torch.complex128)
        return value.double() if value.is_floating_point() else value.clone()
    if isinstance(value, dict):
        return {key: widen(item) for key, item in value.items()}
    return type(value)(map(widen, value)) if type(value) in (list, tuple) else value


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
    finite = torch.isfinite(eager)
    same_pattern = torch.equal(finite, torch.isfinite(actual)) and _equal_where(
        ~finite, eager, actual
    )
    if not same_pattern:
        return OutputError(reason=f"{name} is NaN or infinite in other places")
    finite &= torch.isfinite(exact)
    wide_eager, wide_actual, wide_exact = (
        _as_real(t.to(torch.complex128 if t.is_complex() else torch.float64)[finite])
        for t in (eager, actual, exact)
    )
    if not wide_eager.numel():
        return OutputError(0.0, 0.0, 0.0, 0.0)
    tolerance = STEP[eager.dtype]
    scale = float(wide_eager.abs().max())
    limits = tolerance.atol * min(scale, 1.0) + tolerance.rtol * wide_exact.abs()
    limits.clamp_(min=torch.finfo(torch.float64).tiny)
    eager_tolerances = float(((wide_eager - wide_exact).abs() / limits).max())
    if eager_tolerances > _MAX_TOLERANCES:  # A comparison of values went the other way.
        wide_exact, eager_tolerances = wide_eager, 0.0
    errors = (wide_actual - wide_exact).abs() / limits
    max_diff = float((wide_actual - wide_eager).abs().max())
    tolerances = float(errors.max())
    allowed = allowed_tolerances(eager_tolerances)
    reason = None
    if tolerances > allowed:
        count = int((errors > allowed).sum())
        extent = f"{count} of {wide_eager.numel()} elements"
        own = f", the component's own error is {eager_tolerances:.3g}"
        reason = f"{name} differs by {max_diff:.3g} ({tolerances:.3g} tolerances{own}), {extent}"
    drift = max_diff / scale if scale else max_diff
    return OutputError(tolerances, eager_tolerances, max_diff, drift, reason)


def allowed_tolerances(eager_tolerances: float) -> float:
    """Return the error that a solution may have, in tolerances."""
    return max(1.0, FACTOR * eager_tolerances)


def _equal_where(mask: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether NaN, infinity and negative infinity are in the same places."""
    numbers = [
        torch.nan_to_num(_as_real(t[mask]), nan=0.0, posinf=1.0, neginf=-1.0)
        for t in (first, second)
    ]
    return torch.equal(*numbers)


def _as_real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor).flatten() if tensor.is_complex() else tensor


def have_same_bits(first: Any, second: Any) -> bool:
    """Return whether two outputs of one program are equal; NaN is equal to NaN."""
    pairs = list(zip(tensors(first), tensors(second), strict=False))
    if len(pairs) != len(tensors(first)) or len(pairs) != len(tensors(second)):
        return False
    return all(
        a.shape == b.shape and a.dtype == b.dtype and _equal_with_nan(a, b) for a, b in pairs
    )


def _equal_with_nan(first: torch.Tensor, second: torch.Tensor) -> bool:
    return bool(((first == second) | ((first != first) & (second != second))).all())
