"""Finds by one backward pass which weights hardly change an output, so that few are tried."""

import torch
from torch import nn

from runner.verify.gates.compare import EXACT, STEP
from runner.verify.loading_files import CannotJudge, foreign_code
from runner.verify.runtime.output_leaves import pieces_of, tensors
from runner.verify.runtime.runner import ForwardRunner, Inputs

FORWARDS = 4
"""Upper bound on the cost of a forward with its backward pass, in forwards."""
CLEAR_EFFECT = 10.0
"""Tolerances by which a weight with a clear effect moves the outputs on average."""


def find_weak_weights(
    runner: ForwardRunner, model: nn.Module, inputs: Inputs, weights: dict[str, torch.Tensor]
) -> list[str]:
    """Return the weights whose small changes an output hardly shows; all, if it has no gradients.

    The outputs' elements are added up with random signs, each in units of its own tolerance. To
    first order, a change of a weight adds its gradient times the change to that sum.
    """
    frozen_weights = [tensor for tensor in weights.values() if not tensor.requires_grad]
    try:
        with foreign_code("original.py: weights", runner.directory):
            for tensor in frozen_weights:
                tensor.requires_grad_()
        output, _ = runner.forward("original.py: forward", model, inputs, 0, gradients=True)
        with foreign_code("original.py: backward", runner.directory), torch.enable_grad():
            outputs = [result for result in tensors(output) if result.requires_grad]
            signs = [_signs_by_tolerance(result.detach()) for result in outputs]
            gradients = torch.autograd.grad(
                outputs, list(weights.values()), signs, allow_unused=True
            )
    except CannotJudge:
        return list(weights)
    finally:
        for tensor in frozen_weights:
            tensor.requires_grad_(False)
    clear_change = CLEAR_EFFECT * sum(result.numel() for result in outputs) ** 0.5
    return [
        name
        for (name, weight), gradient in zip(weights.items(), gradients, strict=True)
        if gradient is None or not abs(_change(weight.detach(), gradient)) > clear_change
    ]


def _signs_by_tolerance(output: torch.Tensor) -> torch.Tensor:
    tolerance = STEP.get(output.dtype, EXACT).for_values(output)
    signs = torch.rand_like(output.real if output.is_complex() else output).sub_(0.5).sign_()
    return signs / (tolerance.atol + tolerance.rtol * output.abs())


def _change(weight: torch.Tensor, gradient: torch.Tensor) -> float:
    """Return the first-order effect of moving each element up by a random amount."""
    dense = gradient.to_dense() if gradient.is_sparse else gradient
    pairs = zip(pieces_of(weight), pieces_of(dense), strict=True)  # weights may be large
    changes = ((torch.rand_like(w) * (w.abs() + 0.1), g) for w, g in pairs)
    return sum(float((change.double() * g.double()).sum()) for change, g in changes)
