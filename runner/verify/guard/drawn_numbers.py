"""Finds random numbers that decide in Python what a file is.

A file that draws a number at its import or while its model is built, and reads it, could be right
for almost all seeds and wrong for a few. Drawn tensors may only fill weights and buffers.
"""

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

from runner.torch_internals import TorchDispatchMode, schema, storage_key
from runner.verify.runtime.output_leaves import tensors

_WHOLE_READERS = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__)
"""Functions that read a tensor of any size, and dispatch no operator."""
_WEIGHT_MAKERS = tuple(str(Path(nn.__file__).parent / name) for name in ("init.py", "utils"))
"""Torch's own files that read drawn numbers, and give tensors alone to who calls them."""
_READING_TAGS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class DrawnNumbers:
    """Follows drawn numbers through tensors, from the import of files to the models built."""

    def __init__(self, directory: Path) -> None:
        """`directory`: of the files."""
        self._directory = f"{directory.resolve()}/"
        self._storages: dict[int, StorageWeakRef] = {}
        self.reading: str | None = None
        """Line that read a drawn number into Python first, as `file:line`; None if none did."""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Follow what runs in the body."""
        self.reading = None
        with _Operations(weakref.proxy(self)), _Readings(weakref.proxy(self)):
            yield

    def record(self, func: Any, arguments: list[torch.Tensor], result: Any) -> None:
        """Record an operation that ran."""
        is_drawn = any(map(self.is_drawn, arguments))
        if is_drawn and not _READING_TAGS.isdisjoint(func.tags):
            self.record_reading()
        if not is_drawn and torch.Tag.nondeterministic_seeded not in func.tags:
            return
        written = arguments if schema(func).is_mutable else []
        for tensor in [*tensors(result), *written]:
            if tensor.layout is torch.strided:
                storage = tensor.untyped_storage()
                self._storages[storage_key(storage)] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]

    def record_reading(self) -> None:
        """Record that the line of a file that is running reads a drawn number."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.startswith(self._directory):
            if frame.f_code.co_filename.startswith(_WEIGHT_MAKERS):
                return
            frame = frame.f_back
        if frame is not None and self.reading is None:
            file = frame.f_code.co_filename.removeprefix(self._directory)
            self.reading = f"{file}:{frame.f_lineno}"

    def is_drawn(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor's numbers come from drawn ones."""
        if tensor.layout is not torch.strided:
            return False
        reference = self._storages.get(storage_key(tensor.untyped_storage()))
        return reference is not None and not reference.expired()  # type: ignore[no-untyped-call]


class _Operations(TorchDispatchMode):
    def __init__(self, drawn: DrawnNumbers) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._drawn = drawn

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self._drawn.record(func, tensors([*args, *kwargs.values()]), result)
        return result


class _Readings(TorchFunctionMode):
    def __init__(self, drawn: DrawnNumbers) -> None:
        super().__init__()
        self._drawn = drawn

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in _WHOLE_READERS and self._drawn.is_drawn(args[0]):
            self._drawn.record_reading()
        return func(*args, **(kwargs or {}))
