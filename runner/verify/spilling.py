"""This file knows about outputs that wait on disk while the other side of a comparison runs."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from runner.verify.compare import pieces_of, tensors


@dataclass(frozen=True, slots=True)
class SpilledTensor:
    """A tensor on disk, a file a piece: mapped one at a time, so that no address space is held."""

    folder: Path
    shape: tuple[int, ...]
    dtype: torch.dtype

    def pieces(self) -> Iterator[torch.Tensor]:
        """The pieces that `pieces_of` cut, in order."""
        shapes = pieces_of(torch.empty(self.shape, dtype=self.dtype, device="meta"))
        for n, piece in enumerate(shapes):
            yield _mapped(self.folder / str(n), piece, shared=False)


class Spill:
    """A folder under TMPDIR for large outputs; gone when the context ends, however it ends."""

    def __init__(self, spill_bytes: int) -> None:
        self.spill_bytes = spill_bytes
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def keep(self, output: object) -> object:
        """The output itself where it is small or the disk is full, else its tensors on disk."""
        held = {
            t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors(output)
        }
        size = sum(held.values())
        if size < self.spill_bytes or size > 0.8 * shutil.disk_usage(tempfile.gettempdir()).free:
            return output
        return self._spilled(output)

    def _spilled(self, value: object) -> object:
        if isinstance(value, torch.Tensor):
            return self._write(value) if value.numel() else value.clone()
        if isinstance(value, Mapping):
            return {key: self._spilled(item) for key, item in value.items()}
        if isinstance(value, tuple):
            return tuple(self._spilled(item) for item in value)
        if isinstance(value, list):
            return [self._spilled(item) for item in value]
        return value

    def _write(self, tensor: torch.Tensor) -> SpilledTensor:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="kdrun-")
        folder = Path(self._folder.name) / str(self._count)
        folder.mkdir()
        self._count += 1
        for n, piece in enumerate(pieces_of(tensor)):
            _mapped(folder / str(n), piece, shared=True).copy_(piece)
        return SpilledTensor(folder, tuple(tensor.shape), tensor.dtype)


def _mapped(path: Path, like: torch.Tensor, shared: bool) -> torch.Tensor:
    """A tensor on the file's own pages; `shared` makes the file and writes through."""
    flat = torch.from_file(str(path), shared=shared, size=like.numel(), dtype=like.dtype)
    return flat.view(like.shape)
