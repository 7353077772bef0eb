"""Stores large outputs while the other side of a comparison runs.

They stay in memory if there is room for both sides. If not, the sha256 of each piece is usually
enough, since the two sides are equal to the bit. If they differ, the first side runs again, and its
output waits on disk.
"""

import hashlib
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from runner.verify.gates.difference import Difference
from runner.verify.options import stays_in_memory
from runner.verify.runtime.output_leaves import (
    MissingValuesError,
    OffloadedTensor,
    all_finite,
    pieces_of,
    tensors,
)

_RSS_UNIT = 1024 if sys.platform == "linux" else 1


@dataclass(frozen=True)
class DigestedTensor(OffloadedTensor):
    """A tensor of which only the sha256 of each piece is stored."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    digests: tuple[bytes, ...]
    finite: bool

    def pieces(self) -> Iterator[torch.Tensor]:
        """Raise MissingValuesError: the values are not stored."""
        raise MissingValuesError

    def compare_without_values(self, actual: torch.Tensor) -> Difference:
        """Return the difference if all bits are equal; raise MissingValuesError if not."""
        if any(a != b for a, b in zip(self.digests, digests_of(actual), strict=True)):
            raise MissingValuesError
        return Difference(not_finite=not self.finite)


def digests_of(tensor: torch.Tensor) -> Iterator[bytes]:
    """Yield the sha256 of each piece's bytes."""
    for piece in pieces_of(tensor):
        flat = piece.detach().resolve_conj().resolve_neg().contiguous().view(-1).cpu()
        yield hashlib.sha256(flat.view(torch.uint8).numpy().data).digest()


@dataclass(frozen=True)
class DiskTensor(OffloadedTensor):
    """A tensor on disk, one file a piece; one piece is mapped at a time, to save address space."""

    folder: Path
    shape: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...]
    device: torch.device

    def pieces(self) -> Iterator[torch.Tensor]:
        """Yield the pieces that `pieces_of` cut, in order."""
        shapes = pieces_of(torch.empty(self.shape, dtype=self.dtype, device="meta"))
        for n, piece in enumerate(shapes):
            yield _map_file(self.folder / str(n), piece, shared=False)

    def load(self) -> torch.Tensor:
        """Load the tensor with its former strides onto its former device."""
        like = torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device="meta")
        # dense, even if expanded before
        tensor = torch.empty_like(like, device=self.device)
        for piece, source in zip(pieces_of(tensor), self.pieces(), strict=True):
            piece.copy_(source)
        return tensor


class DiskCache:
    """A folder under TMPDIR for large outputs; it is removed when the context ends."""

    def __init__(self, min_bytes: int, memory_bytes: int | None = None) -> None:
        self.min_bytes = min_bytes
        self._memory_bytes = memory_bytes
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0
        self._with_values = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def store(self, output: object) -> object:
        """Return a small output itself, and of a large one as much as a comparison needs."""
        size = size_of(output)
        if size < self.min_bytes or self.has_room_for(size):
            return output
        if not self._with_values:
            return _map_tensors(output, _digest_tensor)
        return self._store_on_disk(output, size)

    def has_room_for(self, size: int) -> bool:
        """Return whether an output may stay while a run needs as much memory as the last one."""
        if self._memory_bytes is None:
            return False
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT
        return stays_in_memory(size, peak, self._memory_bytes)

    def may_stay(self, size: int) -> bool:
        """Return whether an output may stay in memory; True if nobody set a limit."""
        return self._memory_bytes is None or self.has_room_for(size)

    def store_values(self, output: object, *, in_memory: bool) -> object:
        """Return an output with its values: in memory, or on disk as far as there is room."""
        return output if in_memory else self._store_on_disk(output, size_of(output))

    def load(self, output: object) -> Any:
        """Return an output that was stored on disk as it was."""
        return _map_tensors(output, lambda t: t.load() if isinstance(t, DiskTensor) else t)

    @contextmanager
    def free_memory(self, output: object, shared_values: object) -> Iterator[object]:
        """Move an output to disk in the body, so that others can use its memory meanwhile.

        Yields the output on disk, or None if the disk has no room. Memory of `shared_values`
        stays. After the body, the output's tensors hold the same bytes as before.
        """
        shared_storages = {tensor.untyped_storage().data_ptr() for tensor in tensors(shared_values)}
        storages: dict[int, torch.UntypedStorage] = {}
        moved_tensors: dict[int, torch.Tensor] = {}
        for tensor in tensors(output):
            storage = tensor.untyped_storage()
            if (
                storage.nbytes()
                and storage.resizable()
                and storage.data_ptr() not in shared_storages
            ):
                storages[storage.data_ptr()] = storage
                moved_tensors[id(tensor)] = tensor
        size = sum(storage.nbytes() for storage in storages.values())
        if not self._has_disk_space(size + sum(tensor.nbytes for tensor in moved_tensors.values())):
            yield None
            return
        values = {
            key: self._write_tensor(tensor)
            for key, tensor in moved_tensors.items()
            if tensor.numel()
        }
        stored_storages = [
            (storage, self._write_tensor(_bytes_of(storage))) for storage in storages.values()
        ]
        disk_output = _map_tensors(output, lambda tensor: values.get(id(tensor), tensor))
        for storage, _ in stored_storages:
            storage.resize_(0)
        try:
            yield disk_output
        finally:
            for storage, source in stored_storages:
                storage.resize_(source.shape[0])
                pieces = pieces_of(_bytes_of(storage))
                for piece, saved_piece in zip(pieces, source.pieces(), strict=True):
                    piece.copy_(saved_piece)
            for source in [*values.values(), *(source for _, source in stored_storages)]:
                shutil.rmtree(source.folder, ignore_errors=True)

    @contextmanager
    def storing_values(self) -> Iterator[None]:
        """Store the values of large outputs on disk, in the body, instead of digests."""
        self._with_values = True
        try:
            yield
        finally:
            self._with_values = False

    def _store_on_disk(self, output: object, size: int) -> object:
        return _map_tensors(output, self._write_tensor) if self._has_disk_space(size) else output

    def _has_disk_space(self, size: int) -> bool:
        return size <= 0.8 * shutil.disk_usage(tempfile.gettempdir()).free

    def _write_tensor(self, tensor: torch.Tensor) -> DiskTensor:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="kdrun-")
        folder = Path(self._folder.name) / str(self._count)
        folder.mkdir()
        self._count += 1
        for n, piece in enumerate(pieces_of(tensor)):
            _map_file(folder / str(n), piece, shared=True).copy_(piece)
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        return DiskTensor(folder, shape, tensor.dtype, stride, tensor.device)


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _digest_tensor(tensor: torch.Tensor) -> DigestedTensor:
    finite = all(all_finite(piece) for piece in pieces_of(tensor))
    return DigestedTensor(tuple(tensor.shape), tensor.dtype, tuple(digests_of(tensor)), finite)


def free_unused_storage(output: object) -> object:
    """Copy tensors whose storage is mostly unused, so that the rest of it can be freed."""
    used_bytes: Counter[int] = Counter()
    for tensor in tensors(output):
        if tensor.layout == torch.strided:
            used_bytes[tensor.untyped_storage().data_ptr()] += tensor.nbytes

    def copy_if_small(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout != torch.strided:
            return tensor
        storage = tensor.untyped_storage()
        return tensor.clone() if 2 * used_bytes[storage.data_ptr()] < storage.nbytes() else tensor

    return _map_tensors(output, copy_if_small)


def size_of(output: object) -> int:
    """Return the bytes of memory that an output keeps alive."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors(output)}
    return sum(storage.nbytes() for storage in storages.values())


def _map_tensors(value: object, change: Callable[[Any], object]) -> object:
    """Return the same nesting with each tensor that has elements replaced."""
    if isinstance(value, torch.Tensor):
        return change(value) if value.numel() else value.clone()
    if isinstance(value, OffloadedTensor):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_tensors(item, change) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_map_tensors(item, change) for item in value)
    if isinstance(value, list):
        return [_map_tensors(item, change) for item in value]
    return value


def _map_file(path: Path, like: torch.Tensor, shared: bool) -> torch.Tensor:
    """Map a file as a tensor like `like`; `shared` creates the file and writes through to it."""
    flat = torch.from_file(str(path), shared=shared, size=like.numel(), dtype=like.dtype)
    return flat.view(like.shape)
