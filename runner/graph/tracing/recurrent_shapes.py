"""This file knows about the shapes that recurrent layers return: capture need not unroll them.

On fake tensors torch works the result of `gru`, `lstm` and `rnn` out by its own decomposition, step
by step: a minute for a bidirectional GRU over 512 steps. Only the shapes matter there, and those
follow from the arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from runner.problems.fake_execution import recurrent_by_shape
from runner.torch_internals import FakeTensor, replace_decompositions

_aten = torch.ops.aten


def unrolled_never() -> contextlib.AbstractContextManager[None]:
    """While this lasts, a recurrent layer on fake tensors costs as much as any other operator."""
    operators = _aten.gru.input, _aten.lstm.input, _aten.rnn_tanh.input, _aten.rnn_relu.input
    return replace_decompositions(operators, _by_shape)


def _by_shape(unroll: Callable[..., Any]) -> Callable[..., Any]:
    """The result's shapes for fake tensors; real ones are computed as ever."""

    def kernel(sequence: torch.Tensor, state: Any, *args: Any) -> Any:
        if not isinstance(sequence, FakeTensor):
            return unroll(sequence, state, *args)
        return recurrent_by_shape(sequence, state, *args)

    return kernel
