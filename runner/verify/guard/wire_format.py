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

from runner.verify.guard.shared_memory import Block, NotToldError

_FILES = 64
"""Number of files that are sent at once; Linux allows 253."""
_LARGEST = 1 << 26
"""Bytes of the largest message, tensors not included."""
_MOST_FILES = 1 << 12
_PLAIN = (type(None), bool, int, float, str)


class ConnectionLostError(Exception):
    """The other side ended, or sent something that is no valid message."""


def encode(value: Any, tensor: Callable[[torch.Tensor], Any]) -> Any:
    """Return a value in JSON's types; NotToldError for an object that has no such form.

    `index_tensor` returns the number that stands for a tensor.
    """
    if isinstance(value, torch.Tensor):
        return {"t": tensor(value)}
    if type(value) in _PLAIN:
        return value
    if isinstance(value, torch.Size):
        return {"z": list(value)}
    if isinstance(value, tuple):
        return {"u": [encode(item, tensor) for item in value]}
    if isinstance(value, list):
        return [encode(item, tensor) for item in value]
    if isinstance(value, Mapping):
        return {"d": [[encode(k, tensor), encode(v, tensor)] for k, v in value.items()]}
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
        return {"s": [encode(v, tensor) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"e": 0}
    if isinstance(value, torch.device):
        return {"v": str(value)}
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return {"k": str(value).removeprefix("torch.")}
    raise NotToldError(type(value).__name__)


def decode(value: Any, tensor: Callable[[Any], Any]) -> Any:
    """Return the value that `encode` was given; ConnectionLostError if it is not encoded correctly.

    `find_tensor` returns the tensor that a number stands for.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        return [decode(item, tensor) for item in value]
    if not isinstance(value, dict) or len(value) != 1:
        raise ConnectionLostError("no value")
    ((kind, told),) = value.items()
    match kind:
        case "t":
            return tensor(told)
        case "z":
            return torch.Size(told)
        case "u":
            return tuple(decode(item, tensor) for item in told)
        case "d":
            return {decode(k, tensor): decode(v, tensor) for k, v in told}
        case "c":
            return complex(*told)
        case "s":
            return slice(*(decode(v, tensor) for v in told))
        case "e":
            return ...
        case "g":
            state = bytearray.fromhex(told)
            return torch.Generator().set_state(torch.frombuffer(state, dtype=torch.uint8))
        case "v":
            return torch.device(told)
        case "k" if isinstance(found := vars(torch).get(told), _KINDS):
            return found
    raise ConnectionLostError(f"no value of kind {kind!r}")


_KINDS = (torch.dtype, torch.layout, torch.memory_format)


class Channel:
    """Sends and receives messages over a socket: two lengths, then the files, then the text."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, message: Any, blocks: Sequence[Block] = ()) -> None:
        """Send a message and files; ConnectionLostError if the other side is gone."""
        data = json.dumps(message, separators=(",", ":")).encode()
        files = [block.file for block in blocks]
        try:
            self._socket.sendall(len(data).to_bytes(8, "big") + len(files).to_bytes(8, "big"))
            for start in range(0, len(files), _FILES):
                socket.send_fds(self._socket, [b"f"], files[start : start + _FILES])
            self._socket.sendall(data)
        except OSError as error:
            raise ConnectionLostError(str(error)) from error

    def receive(self) -> tuple[Any, list[Block]]:
        """Return the next message and its files; ConnectionLostError if there is none."""
        lengths = self._take(16)
        size, count = int.from_bytes(lengths[:8], "big"), int.from_bytes(lengths[8:], "big")
        if size > _LARGEST or count > _MOST_FILES:
            raise ConnectionLostError(f"a message of {size} bytes and {count} files")
        blocks: list[Block] = []
        while len(blocks) < count:
            blocks += self._take_files(min(_FILES, count - len(blocks)))
        try:
            return json.loads(self._take(size)), blocks
        except (ValueError, RecursionError) as error:
            raise ConnectionLostError(f"no message: {error}") from error

    def _take_files(self, count: int) -> list[Block]:
        try:
            part, files, _, _ = socket.recv_fds(self._socket, 1, count)
        except OSError as error:
            raise ConnectionLostError(str(error)) from error
        blocks = [Block(file) for file in files]
        if not part or len(blocks) != count:
            raise ConnectionLostError("files are missing")
        return blocks

    def _take(self, size: int) -> bytes:
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


def tensor_at(model: torch.nn.Module, place: list[str]) -> Any:
    """Return the tensor in a slot of a model: a parameter, a buffer or a plain attribute."""
    kind, name, *keys = place
    if kind != "plain":
        path, _, leaf = name.rpartition(".")
        return getattr(model.get_submodule(path), leaf, None)
    found: Any = model.get_submodule(name)
    for key in keys:
        found = _item(found, key)
    return found


def _item(holder: Any, key: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(key, holder.get(int(key)) if key.isdecimal() else None)
    if isinstance(holder, list | tuple):
        return holder[int(key)] if key.isdecimal() and int(key) < len(holder) else None
    return getattr(holder, key, None)


def put_tensor(model: torch.nn.Module, place: list[str], tensor: torch.Tensor) -> None:
    """Give a tensor of a model new values; the object stays the same unless it is on `meta`."""
    old = tensor_at(model, place)
    if isinstance(old, torch.Tensor) and not old.is_meta and old.shape == tensor.shape:
        old.requires_grad_(tensor.requires_grad)
        old.data = tensor.detach().to(old.device)
    else:
        replace_tensor(model, place, tensor)


def replace_tensor(model: torch.nn.Module, place: list[str], tensor: torch.Tensor) -> None:
    """Put another tensor object into a slot of a model."""
    kind, name, *keys = place
    if kind != "plain":
        path, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(path), leaf, tensor)
        return
    holder: Any = model.get_submodule(name)
    for key in keys[:-1]:
        holder = _item(holder, key)
    last = keys[-1]
    if isinstance(holder, dict):
        holder[last if last in holder else int(last)] = tensor
    elif isinstance(holder, list):
        holder[int(last)] = tensor
    else:
        setattr(holder, last, tensor)
