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

_FILE_BYTES = 64 << 20
"""Bytes in a file from which on the next storage goes into a new file."""
_REUSE_BYTES = 1 << 16
"""Bytes from which on a storage is written once and found again when it is sent again."""
_ALIGNMENT = 64


class NotToldError(Exception):
    """A value has no form in which it can be sent, such as an object or a function."""


class NoTensorError(Exception):
    """Another process described a tensor that its files do not contain."""


class MemoryFile:
    """A file in memory, closed when the last reference to it is gone."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self._process = descriptor, os.getpid()

    def __del__(self) -> None:
        # In a forked process the number may belong to another file.
        if os.getpid() == self._process:
            os.close(self.descriptor)

    @property
    def is_sealed(self) -> bool:
        """Whether its content cannot change any more."""
        try:
            seals = fcntl.fcntl(self.descriptor, fcntl.F_GET_SEALS)
        except (AttributeError, OSError):
            return False
        return seals & _all_seals() == _all_seals()


def _all_seals() -> int:
    return fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


@dataclass(slots=True)
class _StorageLocation:
    """Place of a storage in a memory file, and the versions of the tensors that use the storage."""

    storage: StorageWeakRef
    file: MemoryFile
    position: int
    versions: WeakTensorKeyDictionary

    def is_current(self, tensor: torch.Tensor) -> bool:
        """Return whether torch's versions show no write through this tensor since."""
        version: int | None = self.versions.get(tensor)  # type: ignore[no-untyped-call]
        if version is None and tensor._version in {0, *self.versions.values()}:  # type: ignore[no-untyped-call]
            version = self.versions[tensor] = tensor._version
        return version == tensor._version and not self.storage.expired()  # type: ignore[no-untyped-call]


class Memory:
    """Writes tensors into memory files, reads them, and remembers where each storage lies."""

    def __init__(self) -> None:
        self._locations: dict[int, _StorageLocation] = {}

    def write(self, tensors: list[torch.Tensor]) -> tuple[list[Any], list[MemoryFile]]:
        """Return a description of each tensor, and the files that hold them.

        Raises OSError if no memory is left, NotToldError for a sparse tensor.
        """
        self._locations = {
            key: location
            for key, location in self._locations.items()
            if not location.storage.expired()  # type: ignore[no-untyped-call]
        }
        writer = _StorageWriter()
        descriptions: list[Any] = []
        files: list[MemoryFile] = []
        for tensor in tensors:
            if tensor.layout is not torch.strided:
                raise NotToldError(f"a tensor of layout {tensor.layout}")
            plain = tensor.detach()
            if plain.is_conj() or plain.is_neg():
                plain = plain.resolve_conj().resolve_neg()
            position = None
            if not tensor.is_meta:
                plain = plain.cpu()
                file, position = self._locate(tensor, plain, writer)
                if file not in files:
                    files.append(file)
            descriptions.append(
                {
                    "block": None if position is None else files.index(file),
                    "at": position,
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
        return descriptions, files

    def _locate(
        self, tensor: torch.Tensor, plain: torch.Tensor, writer: "_StorageWriter"
    ) -> tuple[MemoryFile, int]:
        storage = plain.untyped_storage()
        key, size = storage.data_ptr(), storage.nbytes()
        if key in writer.positions:
            return writer.positions[key]
        if size < _REUSE_BYTES:
            return writer.write(storage)
        location = self._locations.get(key)
        if location is None or not location.is_current(tensor):
            location = _StorageLocation(
                _weak_reference(storage), *writer.write(storage), WeakTensorKeyDictionary()
            )
            location.versions[tensor] = tensor._version
            self._locations[key] = location
        return location.file, location.position

    def read(self, descriptions: list[Any], files: list[MemoryFile]) -> list[torch.Tensor]:
        """Return the described tensors; writes to them stay in this process.

        Raises NoTensorError if the files do not contain them, MemoryError if no memory is left.
        """
        storages: dict[tuple[int, int, int], torch.UntypedStorage] = {}
        maps: dict[int, memoryview] = {}
        tensors = []
        try:
            for description in descriptions:
                dtype = vars(torch)[description["dtype"]]
                shape, stride, offset = (
                    description["shape"],
                    description["stride"],
                    description["offset"],
                )
                if description["at"] is None:
                    tensor = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
                else:
                    number, position, size = (
                        description["block"],
                        description["at"],
                        description["bytes"],
                    )
                    if number not in maps:
                        maps[number] = _map_file(files[number])
                    key = number, position, size
                    if key not in storages:
                        storages[key] = _slice_storage(maps[number], position, size)
                    tensor = torch.empty(0, dtype=dtype)
                    tensor.set_(storages[key], offset, shape, stride)
                if description["parameter"]:
                    tensor = torch.nn.Parameter(tensor, requires_grad=description["gradients"])
                elif description["gradients"]:
                    tensor.requires_grad_()
                tensors.append(tensor)
                if (
                    description["at"] is not None
                    and size >= _REUSE_BYTES
                    and files[number].is_sealed
                ):
                    self._locations.setdefault(
                        storages[key].data_ptr(),
                        _StorageLocation(
                            _weak_reference(storages[key]),
                            files[number],
                            position,
                            WeakTensorKeyDictionary(),
                        ),
                    ).versions[tensor] = tensor._version
        except (LookupError, TypeError, ValueError, RuntimeError, OSError) as error:
            raise NoTensorError(str(error)) from error
        return tensors


def _weak_reference(storage: torch.UntypedStorage) -> StorageWeakRef:
    return StorageWeakRef(storage)  # type: ignore[no-untyped-call]


class _StorageWriter:
    """Writes storages into new memory files, several into each."""

    def __init__(self) -> None:
        self.positions: dict[int, tuple[MemoryFile, int]] = {}
        self._files: list[MemoryFile] = []
        self._end = 0

    def write(self, storage: torch.UntypedStorage) -> tuple[MemoryFile, int]:
        """Write a storage; return its file and its position in it."""
        if not self._files or self._end >= _FILE_BYTES:
            self._files.append(_create_file())
            self._end = 0
        file, size = self._files[-1], storage.nbytes()
        position = self._end
        if size:
            data = memoryview((ctypes.c_char * size).from_address(storage.data_ptr())).cast("B")
            count = 0
            while count < size:
                count += os.pwrite(
                    file.descriptor, data[count : count + (1 << 30)], position + count
                )
        self._end = position + size + -size % _ALIGNMENT
        self.positions[storage.data_ptr()] = file, position
        return file, position

    def seal(self) -> None:
        """Make the files read-only for good."""
        for file in self._files:
            if hasattr(fcntl, "F_ADD_SEALS") and hasattr(os, "memfd_create"):
                fcntl.fcntl(file.descriptor, fcntl.F_ADD_SEALS, _all_seals())


def _create_file() -> MemoryFile:
    if hasattr(os, "memfd_create"):
        return MemoryFile(os.memfd_create("tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    with tempfile.TemporaryFile() as file:
        return MemoryFile(os.dup(file.fileno()))


def _map_file(file: MemoryFile) -> memoryview:
    """Return a file's bytes: mapped if it is sealed, else copied."""
    size = os.fstat(file.descriptor).st_size
    if not size:
        return memoryview(bytearray())
    if file.is_sealed:
        return memoryview(mmap.mmap(file.descriptor, size, mmap.MAP_PRIVATE))
    with os.fdopen(os.dup(file.descriptor), "rb") as stream:
        stream.seek(0)
        return memoryview(bytearray(stream.read()))


def _slice_storage(data: memoryview, position: int, size: int) -> torch.UntypedStorage:
    if not size:
        return torch.UntypedStorage(0)  # type: ignore[no-untyped-call]
    part = torch.frombuffer(data, dtype=torch.uint8, count=size, offset=position)
    return part.untyped_storage()
