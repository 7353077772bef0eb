"""Counts the work of an operation from its tensors' sizes, so that no clock decides anything."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

ELEMENT_FLOPS = 20
"""Cost of reading or writing one number, in operations of a matrix product."""
CALL_FLOPS = 600_000
"""Cost of calling an operation, in the same unit: 10 µs, where a second is 6e10."""


def estimate_effort(
    func: Any, inputs: Iterable[torch.Tensor], args: Any, kwargs: Any, result: Any
) -> int:
    """Return the cost of a dispatched operation in floating-point operations of a matrix product.

    `inputs`: the tensors among its arguments. A view moves nothing: it costs only its call.
    """
    if func.is_view:
        return CALL_FLOPS
    results = result if isinstance(result, tuple | list) else [result]
    outputs = [output for output in results if isinstance(output, torch.Tensor)]
    element_count = sum(tensor.numel() for tensor in (*inputs, *outputs))
    count = _FLOPS.get(func.overloadpacket)
    product = count(*args, **kwargs, out_val=result) if count else 0
    return product + ELEMENT_FLOPS * element_count + CALL_FLOPS


def _recurrent_flops(steps: torch.Tensor, *weights: torch.Tensor, **_: Any) -> int:
    """Return the cost of a recurrent layer: each weight, at each step of each sequence."""
    return 2 * steps.shape[0] * steps.shape[1] * sum(weight.numel() for weight in weights[:2])


def _attention_flops(query: torch.Tensor, key: torch.Tensor, *_: Any, **__: Any) -> int:
    """Return the cost of an attention's two products; keys may have fewer heads than queries."""
    return 4 * query.numel() * key.shape[-2]


_ATEN = torch.ops.aten
_FLOPS: dict[Any, Callable[..., int]] = {
    **flop_registry,
    _ATEN._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    _ATEN._scaled_dot_product_flash_attention: _attention_flops,
    _ATEN._scaled_dot_product_efficient_attention: _attention_flops,
    _ATEN._scaled_dot_product_cudnn_attention: _attention_flops,
    _ATEN.mkldnn_rnn_layer: _recurrent_flops,
}
