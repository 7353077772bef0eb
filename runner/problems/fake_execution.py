"""Provides fake tensors, which have a shape, strides and a device but no values."""

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import init
from torch.overrides import TorchFunctionMode

from runner.torch_internals import FakeCopyMode, FakeTensor, FakeTensorMode, without_modes


class FakeTensors(FakeTensorMode):
    """Fake tensor mode in which the values of small constants stay readable on the CPU."""

    avoid_device_init = True

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True, allow_fallback_kernels=False)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._to_copy.default and type(args[0]) is torch.Tensor:
            # torch 2.9 would move the real tensor to the device, which has no memory for it.
            args = (self.from_tensor(args[0]), *args[1:])
        return super().__torch_dispatch__(func, types, args, kwargs)

    def copy_model(self, model: nn.Module) -> nn.Module:
        """Return a copy of a model, with fake tensors in place of its real ones."""
        with FakeCopyMode(self):  # type: ignore[no-untyped-call]
            return copy.deepcopy(model)

    def copy_tensor(self, tensor: FakeTensor) -> FakeTensor:
        """Return a copy of a fake tensor of another mode, with its known values."""
        copied: FakeTensor = self.from_tensor(tensor)
        if tensor.constant is not None:
            with without_modes():
                copied.constant = tensor.constant.clone()
        return copied


class SkipFillMode(TorchFunctionMode):
    """Mode that skips functions which only fill a tensor with values, if it is fake or meta."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FILL_FUNCTIONS:
            tensor = args[0] if args else kwargs.get("tensor")
            if isinstance(tensor, FakeTensor):
                tensor.constant = None
            if isinstance(tensor, FakeTensor) or (tensor is not None and tensor.is_meta):
                return tensor
        return func(*args, **kwargs)


_FILL_FUNCTIONS = frozenset(
    (
        *(getattr(torch.Tensor, name) for name in ("zero_", "fill_", "uniform_", "normal_")),
        *(function for name, function in vars(init).items() if name[-1] == "_" != name[0]),
    )
)


def move_model(model: nn.Module, fake: FakeTensors, device: torch.device) -> None:
    """Move a model's parameters and buffers as `model.to(device)` does; torch refuses fake ones.

    Tensors in plain attributes, neither parameters nor buffers, stay on their device.
    """
    moved: dict[int, FakeTensor] = {}
    for module in model.modules():
        tables: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for table in tables:
            for name, tensor in table.items():
                if isinstance(tensor, FakeTensor):
                    tensor.fake_device, tensor.constant = device, None
                elif tensor is not None:
                    if id(tensor) not in moved:
                        moved[id(tensor)] = copy_to_device(tensor, fake, device)
                    table[name] = moved[id(tensor)]


def copy_to_device(tensor: torch.Tensor, fake: FakeTensors, device: torch.device) -> FakeTensor:
    """Return a fake `tensor.to(device)` for a real tensor or one of the meta device."""
    return FakeTensor(fake, torch.empty_like(tensor, device="meta", requires_grad=False), device)


def recurrent_outputs(sequence: torch.Tensor, state: Any, *args: Any) -> tuple[torch.Tensor, ...]:
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
