"""Runs a model without values: its tensors have shapes, strides and a device, and no numbers."""

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import init
from torch.overrides import TorchFunctionMode

from runner.torch_internals import FakeCopyMode, FakeTensor, FakeTensorMode


class FakeTensors(FakeTensorMode):
    """Makes every tensor fake. The numbers of small constants stay on the CPU, where they are."""

    avoid_device_init = True

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True, allow_fallback_kernels=False)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._to_copy.default and type(args[0]) is torch.Tensor:
            # torch 2.9 would move the real tensor to the device, which cannot hold one.
            args = (self.from_tensor(args[0]), *args[1:])
        return super().__torch_dispatch__(func, types, args, kwargs)

    def copied(self, model: nn.Module) -> nn.Module:
        """A copy of a model of real tensors, with fake ones."""
        with FakeCopyMode(self):  # type: ignore[no-untyped-call]
            return copy.deepcopy(model)


class LeftAsMade(TorchFunctionMode):
    """Leaves out what fills a tensor with numbers, where tensors have none."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FILLING:
            tensor = args[0] if args else kwargs.get("tensor")
            if isinstance(tensor, FakeTensor):
                tensor.constant = None
            if isinstance(tensor, FakeTensor) or (tensor is not None and tensor.is_meta):
                return tensor
        return func(*args, **kwargs)


_FILLING = frozenset(
    (
        *(getattr(torch.Tensor, name) for name in ("zero_", "fill_", "uniform_", "normal_")),
        *(function for name, function in vars(init).items() if name[-1] == "_" != name[0]),
    )
)


def move(model: nn.Module, fake: FakeTensors, device: torch.device) -> None:
    """Do what `model.to(device)` does, which torch refuses for fake parameters.

    Tensors in plain attributes that are neither parameters nor buffers stay where they are.
    """
    moved: dict[int, FakeTensor] = {}
    for module in model.modules():
        every: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for held in every:
            for name, tensor in held.items():
                if isinstance(tensor, FakeTensor):
                    tensor.fake_device, tensor.constant = device, None
                elif tensor is not None:
                    if id(tensor) not in moved:
                        moved[id(tensor)] = on_device(tensor, fake, device)
                    held[name] = moved[id(tensor)]


def on_device(tensor: torch.Tensor, fake: FakeTensors, device: torch.device) -> FakeTensor:
    """Return `tensor.to(device)` for a tensor without values, on torch's meta device."""
    return FakeTensor(fake, torch.empty_like(tensor, requires_grad=False), device)


def recurrent_by_shape(sequence: torch.Tensor, state: Any, *args: Any) -> tuple[torch.Tensor, ...]:
    """Return tensors as `gru`, `lstm` or `rnn` returns them for these arguments, without values.

    `args`: params, has_biases, num_layers, dropout, train, bidirectional, batch_first.
    """
    *_, bidirectional, batch_first = args
    states = (state,) if isinstance(state, torch.Tensor) else tuple(state)
    batch, steps = sequence.shape[:2] if batch_first else sequence.shape[1::-1]
    features = states[0].shape[-1] * (2 if bidirectional else 1)
    output = sequence.new_empty((steps, batch, features))
    output = output.transpose(0, 1) if batch_first else output
    return output, *(s.new_empty(s.shape) for s in states)
