"""Reads the weights and inputs that were stored while the model ran, with torch alone.

The folder holds `weights.safetensors`, by the names of original.py, and a file for each component
with the inputs of each of its places, as `<place>/<number>`.
"""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16,
    "I32": torch.int32, "I64": torch.int64, "F16": torch.float16, "BF16": torch.bfloat16,
    "F32": torch.float32, "F64": torch.float64, "C64": torch.complex64,
}  # fmt: skip


def read_tensors(path: Path, prefix: str = "") -> dict[str, torch.Tensor]:
    """Return the tensors of a safetensors file whose names begin with a prefix."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        tensors = {}
        for name, entry in header.items():
            if name == "__metadata__" or not name.startswith(prefix):
                continue
            begin, end = entry["data_offsets"]
            file.seek(8 + size + begin)
            data = bytearray(file.read(end - begin))
            dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
            flat = torch.frombuffer(data, dtype=dtype) if math.prod(shape) else torch.empty(0)
            tensors[name] = flat.to(dtype).view(shape)
    return tensors


def place_inputs(folder: Path, component: str, node: dict[str, Any]) -> list[torch.Tensor]:
    """Return the inputs of a component's place, with the strides that they have in the model."""
    prefix = f"{node['id']}/"
    stored = read_tensors(folder / "inputs" / f"{component}.safetensors", prefix)
    inputs = []
    for number, strides in enumerate(node["input_strides"].values()):
        tensor = stored[f"{prefix}{number}"]
        strided = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
        inputs.append(strided.copy_(tensor) if 0 not in strides else tensor)
    return inputs


def stored_calls(
    folder: Path, component: str, model_class: Callable[[], torch.nn.Module]
) -> Iterator[tuple[torch.nn.Module, list[torch.Tensor]]]:
    """Yield a component's model with the weights of each of its places, and the inputs there."""
    tree = json.loads((folder.parent / "decomposition_tree.json").read_text(encoding="utf-8"))
    weights = read_tensors(folder / "weights.safetensors")
    for node in tree["nodes"].values():
        if node["path"].rpartition("/")[2] == f"{component}.py":
            model = model_class()
            for local, name in node["weight_map"].items():
                owner, _, attribute = local.rpartition(".")
                module, value = model.get_submodule(owner), weights[name]
                if isinstance(getattr(module, attribute), torch.nn.Parameter):
                    value = torch.nn.Parameter(value, requires_grad=value.is_floating_point())
                setattr(module, attribute, value)
            yield (
                model.train(tree["metadata"]["mode"] == "train"),
                place_inputs(folder, component, node),
            )
