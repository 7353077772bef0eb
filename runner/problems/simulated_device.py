"""Provides a device without hardware, on which fake tensors show where each value would live."""

import functools
import sys
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from runner.torch_internals import device_without_hardware

NAME = "accel"


@functools.cache
def simulated_device() -> torch.device:
    """Return the device, `accel:0`, or that of another backend that is installed for torch."""
    accelerator = torch.accelerator.current_accelerator()
    device = device_without_hardware(NAME)
    if device.type == NAME:
        # A program that asks for the accelerator gets the same answer as without this device.
        torch.accelerator.current_accelerator = lambda check_available=False: accelerator
    return device


class UnknownSizeError(BaseException):
    """A tensor's size is unknown, since values of another one decide it.

    No author's `except Exception` catches it.
    """


class NumbersOnDeviceMode(TorchFunctionMode):
    """Mode in which `torch.tensor([1.0], device=...)` and `x[[0, 1]]` work on the fake device.

    Without it, torch copies the numbers to the real device, past the fake tensor mode. The mode
    also notes whether the forward asks where a tensor is.
    """

    def __init__(self, *, refuses_unknown_sizes: bool = False) -> None:
        """`refuses_unknown_sizes`: whether a tensor of unknown size is an UnknownSizeError."""
        super().__init__()
        self.refuses_unknown_sizes = refuses_unknown_sizes
        self.has_queries = False
        """Whether code outside of torch, or a layer of torch.nn, asked for a tensor's device."""

    def note_query(self, frame: FrameType) -> None:
        """Note that the code of a frame asks for the device of a tensor."""
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("torch.nn.") or module.partition(".")[0] not in ("torch", "runner"):
            self.has_queries = True

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        # A forward on fake tensors comes here for each attribute that torch itself reads.
        if func not in _HANDLED:
            result = func(*args, **kwargs)
        elif func in _DEVICE_QUERIES:
            self.note_query(sys._getframe(1))
            return func(*args, **kwargs)
        elif func in _MAKES_TENSORS:
            return _make_tensor(func, args, kwargs)
        else:
            result = _subscript(func, args)
        if self.refuses_unknown_sizes and _has_unknown_size(result):
            raise UnknownSizeError
        return result


_MAKES_TENSORS = {torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor}
_DEVICE_QUERIES = {
    *(getattr(torch.Tensor, name).__get__ for name in ("is_cpu", "is_cuda", "is_mps", "is_xpu")),
    *(torch.Tensor.device.__get__, torch.Tensor.get_device, torch.Tensor.type),
}
_SUBSCRIPTS = {torch.Tensor.__getitem__, torch.Tensor.__setitem__}
_HANDLED = _MAKES_TENSORS | _DEVICE_QUERIES | _SUBSCRIPTS


def _make_tensor(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a tensor of numbers, and then move it."""
    if func is torch.Tensor.new_tensor:
        like, *numbers = args
        tensor = torch.tensor(*numbers, **{"dtype": like.dtype, **kwargs})
        return tensor.to(kwargs.get("device") or like.device)
    kwargs = dict(kwargs)
    device = kwargs.pop("device", None)
    tensor = func(*args, **kwargs)
    return tensor if device is None else tensor.to(device)


def _subscript(func: Any, args: tuple[Any, ...]) -> Any:
    """Read or write part of a tensor; numbers in the subscript are on the CPU."""
    subscripts = args[1] if isinstance(args[1], tuple) else (args[1],)
    subscripts = tuple(
        torch.tensor(subscript) if _is_index(subscript) else subscript for subscript in subscripts
    )
    values = args[2:]
    is_number = values and isinstance(values[0], (int, float, complex))
    if is_number and args[0].device.type != "cpu":
        # Torch makes another operator of a number there than on the CPU.
        values = (torch.tensor(values[0], dtype=args[0].dtype),)
    return func(args[0], subscripts, *values)


def _has_unknown_size(result: object) -> bool:
    """Return whether a function gave a tensor, or several, of unknown size."""
    if isinstance(result, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in result.shape)
    if type(result) is torch.Size or not isinstance(result, list | tuple):
        return False
    return any(isinstance(item, torch.Tensor) and _has_unknown_size(item) for item in result)


def _is_index(value: object) -> bool:
    """Return whether a subscript is a list of numbers; torch treats other lists as tuples."""
    return isinstance(value, list) and {*map(type, value)} in ({int}, {bool})
