"""Sends tensors to other processes in memory files, which both sides map and neither copies.

A file is sealed after writing (memfd_create(2), fcntl(2): F_ADD_SEALS), so that its writer cannot
change what others have mapped. Where the system has no seals, the reader copies. It imports torch
alone, because the process that runs files by themselves runs this text, too.
"""

import ctypes
import fcntl
import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.weak import WeakTensorKeyDictionary

_BLOCK = 64 << 20
"""Bytes in a file from which on the next storage goes into a new file."""
_LARGE = 1 << 16
"""Bytes from which on a storage is written once and found again when it is sent again."""
_ALIGNED = 64


class NotToldError(Exception):
    """A value has no form in which it can be sent, such as an object or a function."""


class NoTensorError(Exception):
    """Another process described a tensor that its files do not contain."""


class Block:
    """A file in memory, closed when the last reference to it is gone."""

    def __init__(self, file: int) -> None:
        self.file, self._process = file, os.getpid()

    def __del__(self) -> None:
        # In a forked process the number may belong to another file.
        if os.getpid() == self._process:
            os.close(self.file)

    @property
    def sealed(self) -> bool:
        """Whether its content cannot change any more."""
        try:
            seals = fcntl.fcntl(self.file, fcntl.F_GET_SEALS)
        except (AttributeError, OSError):
            return False
        return seals & _seals() == _seals()


def _seals() -> int:
    return fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


@dataclass(slots=True)
class _Lies:
    """Place of a storage in a memory file, and the versions of the tensors that use the storage."""

    storage: StorageWeakRef
    block: Block
    place: int
    versions: WeakTensorKeyDictionary

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether torch's versions show no write through this tensor since."""
        known: int | None = self.versions.get(tensor)  # type: ignore[no-untyped-call]
        if known is None and tensor._version in {0, *self.versions.values()}:  # type: ignore[no-untyped-call]
            known = self.versions[tensor] = tensor._version
        return known == tensor._version and not self.storage.expired()  # type: ignore[no-untyped-call]


class Memory:
    """Writes tensors into memory files, reads them, and remembers where each storage lies."""

    def __init__(self) -> None:
        self._known: dict[int, _Lies] = {}

    def write(self, tensors: list[torch.Tensor]) -> tuple[list[Any], list[Block]]:
        """Return a description of each tensor, and the files that hold them.

        Raises OSError if no memory is left, NotToldError for a sparse tensor.
        """
        self._known = {
            key: lies
            for key, lies in self._known.items()
            if not lies.storage.expired()  # type: ignore[no-untyped-call]
        }
        writer = _Writer()
        told: list[Any] = []
        blocks: list[Block] = []
        for tensor in tensors:
            if tensor.layout is not torch.strided:
                raise NotToldError(f"a tensor of layout {tensor.layout}")
            plain = tensor.detach()
            if plain.is_conj() or plain.is_neg():
                plain = plain.resolve_conj().resolve_neg()
            place = None
            if not tensor.is_meta:
                plain = plain.cpu()
                block, place = self._place(tensor, plain, writer)
                if block not in blocks:
                    blocks.append(block)
            told.append(
                {
                    "block": None if place is None else blocks.index(block),
                    "at": place,
                    "bytes": plain.untyped_storage().nbytes(),
                    "dtype": str(plain.dtype).removeprefix("torch."),
                    "shape": list(plain.shape),
                    "stride": list(plain.stride()),
                    "offset": plain.storage_offset(),
                    "parameter": isinstance(tensor, torch.nn.Parameter),
                    "gradients": tensor.requires_grad,
                }
            )
        writer.seal()
        return told, blocks

    def _place(
        self, tensor: torch.Tensor, plain: torch.Tensor, writer: "_Writer"
    ) -> tuple[Block, int]:
        storage = plain.untyped_storage()
        key, size = storage.data_ptr(), storage.nbytes()
        if key in writer.places:
            return writer.places[key]
        if size < _LARGE:
            return writer.write(storage)
        lies = self._known.get(key)
        if lies is None or not lies.holds(tensor):
            lies = _Lies(_weakly(storage), *writer.write(storage), WeakTensorKeyDictionary())
            lies.versions[tensor] = tensor._version
            self._known[key] = lies
        return lies.block, lies.place

    def read(self, told: list[Any], blocks: list[Block]) -> list[torch.Tensor]:
        """Return the described tensors; writes to them stay in this process.

        Raises NoTensorError if the files do not contain them, MemoryError if no memory is left.
        """
        storages: dict[tuple[int, int, int], torch.UntypedStorage] = {}
        maps: dict[int, memoryview] = {}
        found = []
        try:
            for each in told:
                dtype = vars(torch)[each["dtype"]]
                shape, stride, offset = each["shape"], each["stride"], each["offset"]
                if each["at"] is None:
                    tensor = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
                else:
                    number, place, size = each["block"], each["at"], each["bytes"]
                    if number not in maps:
                        maps[number] = _mapped(blocks[number])
                    key = number, place, size
                    if key not in storages:
                        storages[key] = _part(maps[number], place, size)
                    tensor = torch.empty(0, dtype=dtype)
                    tensor.set_(storages[key], offset, shape, stride)
                if each["parameter"]:
                    tensor = torch.nn.Parameter(tensor, requires_grad=each["gradients"])
                elif each["gradients"]:
                    tensor.requires_grad_()
                found.append(tensor)
                if each["at"] is not None and size >= _LARGE and blocks[number].sealed:
                    self._known.setdefault(
                        storages[key].data_ptr(),
                        _Lies(
                            _weakly(storages[key]),
                            blocks[number],
                            place,
                            WeakTensorKeyDictionary(),
                        ),
                    ).versions[tensor] = tensor._version
        except (LookupError, TypeError, ValueError, RuntimeError, OSError) as error:
            raise NoTensorError(str(error)) from error
        return found


def _weakly(storage: torch.UntypedStorage) -> StorageWeakRef:
    return StorageWeakRef(storage)  # type: ignore[no-untyped-call]


class _Writer:
    """Writes storages into new memory files, several into each."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[Block, int]] = {}
        self._blocks: list[Block] = []
        self._end = 0

    def write(self, storage: torch.UntypedStorage) -> tuple[Block, int]:
        """Write a storage; return its file and its position in it."""
        if not self._blocks or self._end >= _BLOCK:
            self._blocks.append(_new_block())
            self._end = 0
        block, size = self._blocks[-1], storage.nbytes()
        place = self._end
        if size:
            data = memoryview((ctypes.c_char * size).from_address(storage.data_ptr())).cast("B")
            written = 0
            while written < size:
                written += os.pwrite(
                    block.file, data[written : written + (1 << 30)], place + written
                )
        self._end = place + size + -size % _ALIGNED
        self.places[storage.data_ptr()] = block, place
        return block, place

    def seal(self) -> None:
        """Make the files read-only for good."""
        for block in self._blocks:
            if hasattr(fcntl, "F_ADD_SEALS") and hasattr(os, "memfd_create"):
                fcntl.fcntl(block.file, fcntl.F_ADD_SEALS, _seals())


def _new_block() -> Block:
    if hasattr(os, "memfd_create"):
        return Block(os.memfd_create("tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    with tempfile.TemporaryFile() as file:
        return Block(os.dup(file.fileno()))


def _mapped(block: Block) -> memoryview:
    """Return a file's bytes: mapped if it is sealed, else copied."""
    size = os.fstat(block.file).st_size
    if not size:
        return memoryview(bytearray())
    if block.sealed:
        return memoryview(mmap.mmap(block.file, size, mmap.MAP_PRIVATE))
    with os.fdopen(os.dup(block.file), "rb") as file:
        file.seek(0)
        return memoryview(bytearray(file.read()))


def _part(whole: memoryview, place: int, size: int) -> torch.UntypedStorage:
    if not size:
        return torch.UntypedStorage(0)  # type: ignore[no-untyped-call]
    part = torch.frombuffer(whole, dtype=torch.uint8, count=size, offset=place)
    return part.untyped_storage()
