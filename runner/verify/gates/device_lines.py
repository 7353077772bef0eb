"""Names the line that makes a tensor on the CPU, and the line that mixes it with other devices."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from runner.torch_internals import TorchDispatchMode
from runner.verify.loading_files import relative_path
from runner.verify.runtime.output_leaves import tensors

Line = tuple[str, int]
"""A file, relative to the directory, and a line number."""
_HINT = "give it the device of what it meets, as in device=x.device"
_VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)


class PlacementWatch(TorchDispatchMode):
    """Watches a run that fails on a device, and explains the failure in one line."""

    def __init__(self, directory: Path, file: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._directory, self._file = directory.resolve(), file
        self._lines: dict[int, tuple[torch.Tensor, Line | None]] = {}
        """Tensor id -> the tensor, which is kept alive, and the line that made it on the CPU."""
        self.fault: str | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        inputs = tensors([args, kwargs])
        try:
            result = func(*args, **kwargs)
        except Exception:
            self.fault = self._explain(func, inputs)
            raise
        new_tensors = [tensor for tensor in tensors(result) if tensor.device.type == "cpu"]
        line = self._line_of(inputs) if new_tensors else None
        for tensor in new_tensors:
            self._lines.setdefault(id(tensor), (tensor, line or self._current_line()))
        return result

    def explain_output(self, tensor: torch.Tensor) -> str:
        """Return a hint with the line that made an output on the CPU."""
        line = self._line_of([tensor])
        return f"{self._describe_line(line)} makes it: {_HINT}" if line else _HINT

    def _explain(self, func: Any, inputs: list[torch.Tensor]) -> str | None:
        current_line = self._describe_line(self._current_line())
        on_cpu = [tensor for tensor in inputs if tensor.device.type == "cpu" and tensor.dim()]
        devices = {str(tensor.device) for tensor in inputs if tensor.device.type != "cpu"}
        if on_cpu and devices:
            device, line = min(devices), self._line_of(on_cpu)
            if line is None:
                return f"{current_line} mixes a tensor on cpu with one on {device}: {_HINT}"
            origin = self._describe_line(line)
            mixes = "mixes it" if origin == current_line else f"{current_line} mixes it"
            return f"{origin} makes a tensor on cpu and {mixes} with one on {device}: {_HINT}"
        if func in _VIEWS and not on_cpu:
            return (
                f"{current_line}: .view() of a tensor with strides {list(inputs[0].stride())},"
                " a layout that the CPU does not give it:"
                " call .contiguous() before it, or .reshape() instead"
            )
        return None

    def _line_of(self, candidates: Iterable[torch.Tensor]) -> Line | None:
        lines = (self._lines[id(tensor)][1] for tensor in candidates if id(tensor) in self._lines)
        return next(lines, None)

    def _current_line(self) -> Line | None:
        """Return the innermost line of the directory that is running."""
        frame = sys._getframe(1)
        prefix = f"{self._directory}/"
        while frame is not None:
            if frame.f_code.co_filename.startswith(prefix):
                return relative_path(
                    Path(frame.f_code.co_filename), self._directory
                ), frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return None

    def _describe_line(self, line: Line | None) -> str:
        if line is None:
            return "it"
        file, number = line
        return f"line {number}" if file == self._file else f"line {number} of {file}"
