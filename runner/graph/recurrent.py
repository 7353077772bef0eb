"""This file knows about the shapes that recurrent layers return: capture need not unroll them.

On fake tensors torch works the result of `gru`, `lstm` and `rnn` out by its own decomposition, step
by step: a minute for a bidirectional GRU over 512 steps. Only the shapes matter there, and those
follow from the arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor

from runner.problems.without_values import recurrent_by_shape

_aten = torch.ops.aten
_KEYS = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)


@contextlib.contextmanager
def unrolled_never() -> Iterator[None]:
    """While this lasts, a recurrent layer on fake tensors costs as much as any other operator."""
    operators: tuple[OpOverload, ...] = (
        *(_aten.gru.input, _aten.lstm.input),
        *(_aten.rnn_tanh.input, _aten.rnn_relu.input),
    )
    before = [(operator, dict(operator.py_kernels)) for operator in operators]
    try:
        for operator, kernels in before:
            for key in _KEYS:
                if key in kernels:
                    operator.py_kernels[key] = _by_shape(kernels[key])
            operator._dispatch_cache.clear()
        yield
    finally:
        for operator, kernels in before:
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()


def _by_shape(unroll: Callable[..., Any]) -> Callable[..., Any]:
    """The result's shapes for fake tensors; real ones are computed as ever."""

    def kernel(sequence: torch.Tensor, state: Any, *args: Any) -> Any:
        if not isinstance(sequence, FakeTensor):
            return unroll(sequence, state, *args)
        return recurrent_by_shape(sequence, state, *args)

    return kernel
