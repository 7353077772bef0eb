"""Lets capture skip the unrolling of recurrent layers.

On fake tensors torch computes the result of `gru`, `lstm` and `rnn` by its own decomposition, step
by step: a minute for a bidirectional GRU over 512 steps. Only the shapes matter there, and those
follow from the arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from runner.problems.fake_execution import recurrent_outputs
from runner.torch_internals import FakeTensor, replace_decompositions

_aten = torch.ops.aten


def skip_unrolling() -> contextlib.AbstractContextManager[None]:
    """Make a recurrent layer on fake tensors cost as much as any other operator."""
    operators = _aten.gru.input, _aten.lstm.input, _aten.rnn_tanh.input, _aten.rnn_relu.input
    return replace_decompositions(operators, _shape_kernel)


def _shape_kernel(unroll: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that gives shapes for fake tensors, and computes real tensors as before."""

    def kernel(sequence: torch.Tensor, state: Any, *args: Any) -> Any:
        if not isinstance(sequence, FakeTensor):
            return unroll(sequence, state, *args)
        return recurrent_outputs(sequence, state, *args)

    return kernel
