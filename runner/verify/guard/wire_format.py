"""Encodes the messages between judge and worker: values as JSON, tensors as memory files.

Neither side runs what it reads: there is no pickle, and only torch's own names are looked up. It
imports torch and shared_memory.py alone, because the process that runs files by themselves runs
this text, too.
"""

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import torch

from runner.verify.guard.shared_memory import MemoryFile, NotToldError

_FILES_AT_ONCE = 64
"""Number of files that are sent at once; Linux allows 253."""
_MAX_MESSAGE_BYTES = 1 << 26
"""Bytes of the largest message, tensors not included."""
_MAX_FILES = 1 << 12
_JSON_SCALARS = (type(None), bool, int, float, str)


class ConnectionLostError(Exception):
    """The other side ended, or sent something that is no valid message."""


def encode(value: Any, index_tensor: Callable[[torch.Tensor], Any]) -> Any:
    """Return a value in JSON's types; NotToldError for an object that has no such form.

    `index_tensor` returns the number that stands for a tensor.
    """
    if isinstance(value, torch.Tensor):
        return {"t": index_tensor(value)}
    if type(value) in _JSON_SCALARS:
        return value
    if isinstance(value, torch.Size):
        return {"z": list(value)}
    if isinstance(value, tuple):
        return {"u": [encode(item, index_tensor) for item in value]}
    if isinstance(value, list):
        return [encode(item, index_tensor) for item in value]
    if isinstance(value, Mapping):
        return {"d": [[encode(k, index_tensor), encode(v, index_tensor)] for k, v in value.items()]}
    # A class of its own, such as an enum's or NumPy's.
    if isinstance(value, bool | int | float | str):
        return next(kind(value) for kind in (bool, int, float, str) if isinstance(value, kind))
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, torch.Generator):
        return {"g": value.get_state().numpy().tobytes().hex()}
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    if isinstance(value, slice):
        return {"s": [encode(v, index_tensor) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"e": 0}
    if isinstance(value, torch.device):
        return {"v": str(value)}
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return {"k": str(value).removeprefix("torch.")}
    raise NotToldError(type(value).__name__)


def decode(value: Any, find_tensor: Callable[[Any], Any]) -> Any:
    """Return the value that `encode` was given; ConnectionLostError if it is not encoded correctly.

    `find_tensor` returns the tensor that a number stands for.
    """
    if type(value) in _JSON_SCALARS:
        return value
    if isinstance(value, list):
        return [decode(item, find_tensor) for item in value]
    if not isinstance(value, dict) or len(value) != 1:
        raise ConnectionLostError("no value")
    ((kind, content),) = value.items()
    match kind:
        case "t":
            return find_tensor(content)
        case "z":
            return torch.Size(content)
        case "u":
            return tuple(decode(item, find_tensor) for item in content)
        case "d":
            return {decode(k, find_tensor): decode(v, find_tensor) for k, v in content}
        case "c":
            return complex(*content)
        case "s":
            return slice(*(decode(v, find_tensor) for v in content))
        case "e":
            return ...
        case "g":
            state = bytearray.fromhex(content)
            return torch.Generator().set_state(torch.frombuffer(state, dtype=torch.uint8))
        case "v":
            return torch.device(content)
        case "k" if isinstance(constant := vars(torch).get(content), _TORCH_CONSTANTS):
            return constant
    raise ConnectionLostError(f"no value of kind {kind!r}")


_TORCH_CONSTANTS = (torch.dtype, torch.layout, torch.memory_format)


class Channel:
    """Sends and receives messages over a socket: two lengths, then the files, then the text."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, message: Any, files: Sequence[MemoryFile] = ()) -> None:
        """Send a message and files; ConnectionLostError if the other side is gone."""
        data = json.dumps(message, separators=(",", ":")).encode()
        descriptors = [file.descriptor for file in files]
        try:
            self._socket.sendall(len(data).to_bytes(8, "big") + len(descriptors).to_bytes(8, "big"))
            for start in range(0, len(descriptors), _FILES_AT_ONCE):
                socket.send_fds(self._socket, [b"f"], descriptors[start : start + _FILES_AT_ONCE])
            self._socket.sendall(data)
        except OSError as error:
            raise ConnectionLostError(str(error)) from error

    def receive(self) -> tuple[Any, list[MemoryFile]]:
        """Return the next message and its files; ConnectionLostError if there is none."""
        lengths = self._receive_bytes(16)
        size, count = int.from_bytes(lengths[:8], "big"), int.from_bytes(lengths[8:], "big")
        if size > _MAX_MESSAGE_BYTES or count > _MAX_FILES:
            raise ConnectionLostError(f"a message of {size} bytes and {count} files")
        files: list[MemoryFile] = []
        while len(files) < count:
            files += self._receive_files(min(_FILES_AT_ONCE, count - len(files)))
        try:
            return json.loads(self._receive_bytes(size)), files
        except (ValueError, RecursionError) as error:
            raise ConnectionLostError(f"no message: {error}") from error

    def _receive_files(self, count: int) -> list[MemoryFile]:
        try:
            part, descriptors, _, _ = socket.recv_fds(self._socket, 1, count)
        except OSError as error:
            raise ConnectionLostError(str(error)) from error
        files = [MemoryFile(descriptor) for descriptor in descriptors]
        if not part or len(files) != count:
            raise ConnectionLostError("files are missing")
        return files

    def _receive_bytes(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(min(size - len(data), 1 << 20))
            except OSError as error:
                raise ConnectionLostError(str(error)) from error
            if not part:
                raise ConnectionLostError("it ended")
            data += part
        return bytes(data)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def tensor_at(model: torch.nn.Module, slot: list[str]) -> Any:
    """Return the tensor in a slot of a model: a parameter, a buffer or a plain attribute."""
    kind, name, *keys = slot
    if kind != "plain":
        path, _, leaf = name.rpartition(".")
        return getattr(model.get_submodule(path), leaf, None)
    value: Any = model.get_submodule(name)
    for key in keys:
        value = _get_item(value, key)
    return value


def _get_item(holder: Any, key: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(key, holder.get(int(key)) if key.isdecimal() else None)
    if isinstance(holder, list | tuple):
        return holder[int(key)] if key.isdecimal() and int(key) < len(holder) else None
    return getattr(holder, key, None)


def put_tensor(model: torch.nn.Module, slot: list[str], tensor: torch.Tensor) -> None:
    """Give a tensor of a model new values; the object stays the same unless it is on `meta`."""
    current = tensor_at(model, slot)
    if isinstance(current, torch.Tensor) and not current.is_meta and current.shape == tensor.shape:
        current.requires_grad_(tensor.requires_grad)
        current.data = tensor.detach().to(current.device)
    else:
        replace_tensor(model, slot, tensor)


def replace_tensor(model: torch.nn.Module, slot: list[str], tensor: torch.Tensor) -> None:
    """Put another tensor object into a slot of a model."""
    kind, name, *keys = slot
    if kind != "plain":
        path, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(path), leaf, tensor)
        return
    holder: Any = model.get_submodule(name)
    for key in keys[:-1]:
        holder = _get_item(holder, key)
    last_key = keys[-1]
    if isinstance(holder, dict):
        holder[last_key if last_key in holder else int(last_key)] = tensor
    elif isinstance(holder, list):
        holder[int(last_key)] = tensor
    else:
        setattr(holder, last_key, tensor)
