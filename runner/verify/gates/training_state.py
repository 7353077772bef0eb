"""Compares the buffers that a forward in training mode changes: running statistics and counts.

Both sides begin with the same buffers; after the forward they have to be the same again.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import nn

from runner.verify.gates.compare import STEP, compare
from runner.verify.gates.difference import Difference
from runner.verify.gates.weights import Weights, weights_of


def compare_state(
    expected_buffers: Weights, model: nn.Module, mapping: Mapping[str, str]
) -> Difference:
    """Return the difference of a model's buffers from the other side's after the forward.

    `expected_buffers`: those of the other side; empty in eval mode, where they are not compared.
    """
    total = Difference()
    for name, tensor in weights_of(model).items():
        source = mapping.get(name)
        if source not in expected_buffers or isinstance(tensor, nn.Parameter):
            continue
        with torch.no_grad():
            difference = compare(expected_buffers[source], tensor, STEP)
        if difference.reason:
            reason = difference.reason.replace("output", f"after the forward, buffer {name}", 1)
            difference = replace(difference, reason=reason)
        total |= replace(difference, not_finite=False)
    return total
