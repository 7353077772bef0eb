"""This file knows about drawing many random numbers quickly: a block of them, repeated.

For what a component draws for itself, its inputs and fresh weights. The author's are drawn as they
are.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

BLOCK = 1_048_573
"""Elements that are drawn; a prime, so that no two rows of a tensor begin with the same ones."""

_INTO = {"uniform_", "normal_", "random_", "bernoulli_", "exponential_", "log_normal_", "cauchy_"}
"""Operations that fill a tensor with random numbers."""
_NEW = {"rand": 0, "randn": 0, "randint": 1}
"""Operations that make one, and the shape's place among the arguments; one later with `low`."""


class RepeatedDraws(TorchDispatchMode):
    """Random tensors of more than BLOCK elements repeat their first BLOCK ones."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        if name in _NEW:
            place = _NEW[name] + (func._overloadname.startswith("low"))
            shape = args[place]
            if torch.Size(shape).numel() > BLOCK:
                block = func(*args[:place], [BLOCK], *args[place + 1 :], **kwargs)
                return _fill(block.new_empty(shape), block)
        elif name in _INTO and args[0].numel() > BLOCK and args[0].is_contiguous():
            flat = args[0].view(-1)
            func(flat[:BLOCK], *args[1:], **kwargs)
            _fill(args[0], flat[:BLOCK])
            return args[0]
        return func(*args, **kwargs)


def _fill(tensor: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """The block, again and again."""
    flat = tensor.view(-1)
    for part in torch.split(flat, BLOCK):
        if part.data_ptr() != block.data_ptr():
            part.copy_(block[: part.numel()])
    return tensor
