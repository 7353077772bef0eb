"""A device that torch knows and no machine has: fake tensors on it show where each value lives.

torch calls the hooks that this needs experimental (seen in 2.13); no other file uses them.
"""

import functools
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

NAME = "accel"


@functools.cache
def simulated_device() -> torch.device:
    """The device, `accel:0`; the name of torch's third-party backend where one is installed."""
    name: str = torch._C._get_privateuse1_backend_name()
    if name == "privateuseone":
        backend_registration._setup_privateuseone_for_python_backend(rename=NAME)
        name = NAME
    return torch.device(name, 0)


class FakeTensors(FakeTensorMode):
    """Makes every tensor fake. The numbers of small constants stay on the CPU, where they are."""

    avoid_device_init = True  # type: ignore[assignment]


def move(model: nn.Module, device: torch.device) -> None:
    """Do what `model.to(device)` does, which torch refuses for fake parameters.

    A parameter that has several names, or that a list of a module holds too, stays one tensor.
    Tensors in plain attributes stay where they are.
    """
    moved: dict[int, nn.Parameter] = {}
    modules = list(model.modules())
    for module in modules:
        for name, parameter in module._parameters.items():
            if parameter is not None:
                if id(parameter) not in moved:
                    copy = parameter.detach().to(device)
                    moved[id(parameter)] = nn.Parameter(copy, parameter.requires_grad)
                module._parameters[name] = moved[id(parameter)]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = buffer.to(device)

    def replaced(value: Any) -> Any:
        return moved.get(id(value), value)

    for module in modules:
        for name, value in vars(module).items():
            if name.startswith(("_parameters", "_buffers", "_modules")):
                continue
            if any(id(leaf) in moved for leaf in tree_leaves(value)):
                vars(module)[name] = tree_map(replaced, value)
