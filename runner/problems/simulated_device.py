"""A device that torch knows and no machine has: fake tensors on it show where each value lives.

torch calls the hooks that this needs experimental (seen in 2.13); no other file uses them.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration

NAME = "accel"


@functools.cache
def simulated_device() -> torch.device:
    """The device, `accel:0`; that of another backend where one is installed under torch's key."""
    name: str = torch._C._get_privateuse1_backend_name()
    if name == "privateuseone":
        found = torch.accelerator.current_accelerator()
        backend_registration._setup_privateuseone_for_python_backend(
            rename=NAME, backend_module=_DeviceModule()
        )
        # A program that asks for an accelerator hears what it would hear without this one.
        torch.accelerator.current_accelerator = lambda check_available=False: found
        name = NAME
    return torch.device(name, 0)


class _DeviceModule(backend_registration._DummyBackendModule):
    """Answers what torch asks about a device; a program that looks for one finds none."""

    def is_available(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]


@contextlib.contextmanager
def without_known_numbers() -> Iterator[None]:
    """While this lasts, a tracer does not compute on tensors of one number as it goes.

    It would compute on the simulated device, which cannot.
    """
    from torch.fx.experimental import proxy_tensor  # half a second, and seldom needed

    before = proxy_tensor.CONSTANT_NUMEL_LIMIT
    proxy_tensor.CONSTANT_NUMEL_LIMIT = -1
    try:
        yield
    finally:
        proxy_tensor.CONSTANT_NUMEL_LIMIT = before


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
            place = tuple(torch.tensor(i) if isinstance(i, list) else i for i in place)
            return func(args[0], place, *args[2:])
        return func(*args, **kwargs)
