"""Writes a component's inputs and weights to a safetensors file; runs in a child process."""

import json
from pathlib import Path
from typing import Any

CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
    "int32": "I32", "int16": "I16", "int8": "I8", "bool": "BOOL",
}  # fmt: skip


def draw(argument: str) -> str:
    """Draw the tensors that `wanted` names, and write them to the file `to`.

    `argument` is JSON: `file`, `wanted`, `to`, `most_bytes`. `wanted` has a weight's name in the
    component, or an input's position, by the tensor's name in the file. Return JSON: `error`, null
    if there was none. A child process calls it.
    """
    import torch

    from runner.verify.guard.program_values import import_file

    request = json.loads(argument)
    torch.manual_seed(0)
    try:
        module = import_file(Path(request["file"]), "component")
        sources = request["wanted"]
        state = (
            module.Model().state_dict() if any(isinstance(w, str) for w in sources.values()) else {}
        )
        inputs = module.get_inputs() if any(isinstance(w, int) for w in sources.values()) else []
        tensors = {n: state[w] if isinstance(w, str) else inputs[w] for n, w in sources.items()}
        total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        if total > request["most_bytes"]:
            return json.dumps({"error": f"{total >> 20} MiB of them"})
        write(tensors, Path(request["to"]))
    except Exception as error:  # the file may be anybody's code: its error is the answer
        return json.dumps({"error": str(error).partition("\n")[0] or type(error).__name__})
    return json.dumps({"error": None})


def write(tensors: dict[str, Any], path: Path) -> None:
    """Write a safetensors file: the header's length, a header with offsets, the tensors' bytes."""
    import torch

    header: dict[str, Any] = {}
    blobs = []
    at = 0
    for name, tensor in tensors.items():
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": CODES[str(tensor.dtype).removeprefix("torch.")],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + len(raw)],
        }
        blobs.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))
