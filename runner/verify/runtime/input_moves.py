"""Moves inputs to a device with their strides, and with the memory that two of them share.

`Tensor.to` makes a dense copy of an expanded or sliced tensor, and two copies of shared memory.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import torch

from runner.torch_internals import storage_key

T = TypeVar("T")


def move_inputs(values: T, device: str) -> T:
    """Return inputs, nested or not, on the device; a storage is moved once and as a whole."""
    target = torch.device(device)
    storages: dict[int, torch.UntypedStorage] = {}

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value if value.device.type == target.type else move_tensor(value)
        if isinstance(value, Mapping):
            return {key: move(item) for key, item in value.items()}
        if type(value) in (tuple, list):
            return type(value)(map(move, value))
        return value

    def move_tensor(tensor: torch.Tensor) -> torch.Tensor:
        is_plain = type(tensor) is torch.Tensor and tensor.layout == torch.strided
        if not is_plain or tensor.requires_grad or tensor.is_conj() or tensor.is_neg():
            return tensor.to(target)
        storage = tensor.untyped_storage()
        if storage_key(storage) not in storages:
            content = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
            storages[storage_key(storage)] = content.to(target).untyped_storage()
        empty_tensor = torch.empty(0, dtype=tensor.dtype, device=target)
        place = tensor.storage_offset(), tensor.shape, tensor.stride()
        return empty_tensor.set_(storages[storage_key(storage)], *place)

    result: T = move(values)
    return result
