"""A device that torch knows and no machine has: fake tensors on it show where each value lives.

torch calls the hooks that this needs experimental (seen in 2.13); no other file uses them.
"""

import copy
import functools
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeCopyMode, FakeTensor, FakeTensorMode
from torch.nn import init
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration

NAME = "accel"


@functools.cache
def simulated_device() -> torch.device:
    """The device, `accel:0`; that of another backend where one is installed under torch's key."""
    name: str = torch._C._get_privateuse1_backend_name()
    if name == "privateuseone":
        backend_registration._setup_privateuseone_for_python_backend(
            rename=NAME, backend_module=_Module()
        )
        name = NAME
    return torch.device(name, 0)


class _Module(backend_registration._DummyBackendModule):
    """What torch asks of a device's module, autocast's question too."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]


class FromNumbers(TorchFunctionMode):
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


class FakeTensors(FakeTensorMode):
    """Makes every tensor fake. The numbers of small constants stay on the CPU, where they are."""

    avoid_device_init = True

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True, allow_fallback_kernels=False)

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
