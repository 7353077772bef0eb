"""A device that torch knows and no machine has: fake tensors on it show where each value lives.

torch calls the hooks that this needs experimental (seen in 2.13); no other file uses them.
"""

import functools

import torch
from torch.utils import backend_registration

NAME = "accel"


@functools.cache
def simulated_device() -> torch.device:
    """The device, `accel:0`; the name of torch's third-party backend where one is installed."""
    name: str = torch._C._get_privateuse1_backend_name()
    if name == "privateuseone":
        backend_registration._setup_privateuseone_for_python_backend(rename=NAME)
        name = NAME
    return torch.device(name, 0)
