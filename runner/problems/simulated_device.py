"""A device that torch knows and no machine has: fake tensors on it show where each value lives."""

import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from runner.torch_internals import device_without_hardware

NAME = "accel"


@functools.cache
def simulated_device() -> torch.device:
    """Return the device, `accel:0`; that of another backend where one is installed for torch."""
    found = torch.accelerator.current_accelerator()
    device = device_without_hardware(NAME)
    if device.type == NAME:
        # A program that asks for an accelerator hears what it would hear without this one.
        torch.accelerator.current_accelerator = lambda check_available=False: found
    return device


class NumbersToDevice(TorchFunctionMode):
    """While this lasts, `torch.tensor([1.0], device=...)` and `x[[0, 1]]` work on the device.

    torch copies numbers to a device behind the back of fake tensors.
    """

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in {torch.tensor, torch.as_tensor, torch.asarray}:
            device = kwargs.pop("device", None)
            made = func(*args, **kwargs)
            return made if device is None else made.to(device)
        if func is torch.Tensor.new_tensor:
            like, *numbers = args
            made = torch.tensor(*numbers, **{"dtype": like.dtype, **kwargs})
            return made.to(kwargs.get("device") or like.device)
        if func in {torch.Tensor.__getitem__, torch.Tensor.__setitem__}:
            place = args[1] if isinstance(args[1], tuple) else (args[1],)
            place = tuple(torch.tensor(i) if _is_index(i) else i for i in place)
            return func(args[0], place, *args[2:])
        return func(*args, **kwargs)


def _is_index(value: object) -> bool:
    """Whether it is a list of numbers; any other list means to torch what a tuple means."""
    return isinstance(value, list) and {*map(type, value)} in ({int}, {bool})
