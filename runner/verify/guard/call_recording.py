"""Records the torch calls of a forward of foreign code, so that the judge can repeat them.

Either calls of torch's public functions are recorded, or the operators that they dispatch. A call
that the judge cannot repeat (an author's own function, a value that has no JSON form) is recorded
as the operators that it dispatches.
"""

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import (
    TorchFunctionMode,
    get_overridable_functions,
    resolve_name,
)

import runner
from runner.problems import to_plain_containers
from runner.torch_internals import (
    DisableTorchFunction,
    OpOverload,
    TorchDispatchMode,
    consist_of_plain_tensors,
    storage_key,
    without_modes,
)
from runner.verify.guard.shared_memory import NotToldError
from runner.verify.guard.wire_format import encode
from runner.verify.runtime.forward_wrapping import wrap_forwards
from runner.verify.runtime.output_leaves import tensors

Item = list[Any]
"""One event of a forward: its kind, then its data. `Player` replays them."""
_TORCH_FOLDER = str(Path(torch.__file__).parent)
_KDRUN_FOLDER = str(Path(runner.__file__).parent)
_VALUE_DEPENDENT_TAGS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
"""Tags of operators after which another program may run for other values."""
_VALUE_READERS = {
    "tolist",
    "numpy",
    "item",
    "__array__",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
}
_WHOLE_READERS = {"tolist", "numpy", "__array__"}
"""Value readers that take a tensor of any size, and dispatch no operator."""
READING = "aten::equal"
"""Operator that stands for such a call: it compares a tensor with itself."""
_DATA_SETTER = "torch.Tensor.data.__set__"
"""The function behind `x.data = y`, which torch does not list among its functions."""
_EXCLUDED_FUNCTIONS = frozenset(
    {"torch.Tensor.backward", "torch.Tensor.register_hook", "torch.Tensor.__setstate__"}
)


@lru_cache(maxsize=1)
def public_functions() -> dict[str, Callable[..., Any]]:
    """Return torch's public functions of tensors by name."""
    by_name: dict[str, Callable[..., Any]] = {_DATA_SETTER: torch.Tensor.data.__set__}  # type: ignore[attr-defined]
    for functions in get_overridable_functions().values():
        for function in functions:
            name = resolve_name(function)
            if name is not None and name not in _EXCLUDED_FUNCTIONS:
                by_name.setdefault(name, function)
    return by_name


@lru_cache(maxsize=1)
def _function_names() -> dict[Any, str]:
    return {function: name for name, function in public_functions().items()}


class CallRecorder:
    """Records the calls of one forward."""

    def __init__(
        self,
        directory: Path,
        known_tensors: dict[int, torch.Tensor],
        first: int,
        *,
        functions: bool,
    ) -> None:
        """`known_tensors`: the inputs and weights, which the judge has, by number.

        `first`: the number of the first tensor that the judge does not have. `functions`: record
        calls of torch's functions instead of the operators that they dispatch.
        """
        self._record_functions = functions
        self._directory = f"{directory.resolve()}/"
        self.items: list[Item] = []
        self.new_tensors: list[torch.Tensor] = []
        """Tensors that existed before the forward and that the judge does not have."""
        self.value_independent = True
        self._numbers: dict[int, tuple[int, weakref.ref[torch.Tensor]]] = {}
        self._storages: dict[int, list[int]] = {}
        """Maps a storage to the numbers of the tensors that share it."""
        self._next_number = first
        self._freed_numbers: list[int] = []
        self._storage_references: dict[int, StorageWeakRef] = {}
        self._open_frames: list[tuple[FrameType, int]] = []
        """Frames of the author's calls around the last operation, each with its number.

        They are kept, so that the frame of another call never lies at the same address.
        """
        self._frame_count = 0
        self._component_lines: list[str] = []
        """Lines that stand for the running components; "" for a component with lines of its own.

        A component whose forward is torch's own has none.
        """
        for number, tensor in known_tensors.items():
            self._assign_number(tensor, number)

    @contextmanager
    def record_forward(self) -> Iterator[None]:
        """Record all calls in the body."""
        with (
            _OperationMode(self),
            _FunctionMode(self) if self._record_functions else _ReadingMode(self),
        ):
            try:
                yield
            finally:
                self._open_frames = []

    def encode_output(self, value: Any) -> Any:
        """Return the forward's result as JSON, with the numbers of this recording for tensors."""
        return encode(to_plain_containers(value), self.number_tensor)

    def number_tensor(self, tensor: torch.Tensor) -> int:
        """Return a tensor's number.

        A tensor that no recorded call made is recorded as an alias of a known tensor, or sent as it
        is.
        """
        entry = self._numbers.get(id(tensor))
        if entry is not None and entry[1]() is tensor:
            return entry[0]
        with without_modes(), DisableTorchFunction():
            return self._add_unknown_tensor(tensor)

    def _add_unknown_tensor(self, tensor: torch.Tensor) -> int:
        aliases = self._find_aliases(tensor)
        number = self._assign_number(tensor)
        if aliases and tensor.layout is torch.strided:
            layout = [list(tensor.shape), list(tensor.stride()), tensor.storage_offset()]
            dtype = str(tensor.dtype).removeprefix("torch.")
            flags = [tensor.is_conj(), tensor.is_neg()]
            self.items.append(["alias", number, aliases[0], *layout, dtype, *flags])
        else:
            self.items.append(["given", number, len(self.new_tensors)])
            self.new_tensors.append(tensor.detach().clone())
        return number

    def _find_aliases(self, tensor: torch.Tensor) -> list[int]:
        if tensor.layout is not torch.strided or not tensor.numel():
            return []
        return self._storages.get(storage_key(tensor.untyped_storage()), [])

    def _assign_number(self, tensor: torch.Tensor, number: int | None = None) -> int:
        if number is None:
            number, self._next_number = self._next_number, self._next_number + 1
        key = None
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            key = storage_key(storage)
            self._storages.setdefault(key, []).append(number)
            self._storage_references[number] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        tensor_id = id(tensor)

        def forget_tensor(_: Any) -> None:
            self._freed_numbers.append(number)
            if self._numbers.get(tensor_id, (None,))[0] == number:
                del self._numbers[tensor_id]
            if key is not None and number in self._storages.get(key, ()):
                self._storages[key].remove(number)

        self._numbers[tensor_id] = number, weakref.ref(tensor, forget_tensor)
        return number

    def list_retained(self, before: set[int]) -> list[int]:
        """Return the numbers of tensors that still exist after the forward, one for each storage.

        `before`: numbers of the tensors that existed before it; their storages are left out.
        """
        retained = {}
        for number, reference in self._storage_references.items():
            if number not in before and not reference.expired():  # type: ignore[no-untyped-call]
                retained[reference.cdata] = number
        known_storages = {
            self._storage_references[n].cdata for n in before if n in self._storage_references
        }
        return [number for key, number in retained.items() if key not in known_storages]

    def add_item(self, item: Item) -> None:
        """Append an item, after one that names the tensors that were freed since the last item."""
        if self._freed_numbers:
            self.items.append(["gone", self._freed_numbers])
            self._freed_numbers = []
        self.items.append(item)

    def record_operation(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator and record it."""
        if func is torch.ops.prim.device.default:  # A fake tensor is asked for its device.
            return func(*args, **kwargs)
        if func.namespace == "profiler":  # `record_function` names a part, and computes nothing.
            return func(*args, **kwargs)
        encoded = [encode(args, self.number_tensor), encode(kwargs, self.number_tensor)]
        line = self.find_source_line()
        is_dependent = any(tag in _VALUE_DEPENDENT_TAGS for tag in func.tags)
        if is_dependent and not _picks_by_numbers(func, args):
            self.value_independent = False
        result = func(*args, **kwargs)
        item = ["operation", func.name(), *encoded, self._encode_result(result), line]
        self.add_item(item if self._record_functions else [*item, self._author_calls()])
        return result

    def record_function(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of torch, or an operator by its name, and record the call."""
        name, kind = _function_names().get(func), "function"
        if name is None and isinstance(func, OpOverload):
            name, kind = func.name(), "operation"  # type: ignore[no-untyped-call]
        encoded: list[Any] | None = None
        if name is not None:
            with suppress(NotToldError):
                encoded = [encode(args, self.number_tensor), encode(kwargs, self.number_tensor)]
        if name is not None and name.rpartition(".")[2] in _VALUE_READERS:
            self.value_independent = False
        first = len(self.items)
        result = func(*args, **kwargs)
        if encoded is None or name is None or self.record_reading(func, args, first):
            return result
        has_items = len(self.items) > first
        makes_tensor = any(id(t) not in self._numbers for t in tensors(result))
        if not has_items and not makes_tensor and not name.endswith(".__set__"):
            return result  # It only asks for a shape or the like.
        try:
            with without_modes():
                result_numbers = self._encode_result(result)
        except NotToldError:
            return result
        inner_items = self.items[first:]
        if any(item[0] in {"enter", "leave"} for item in inner_items):
            return result  # It called a module, whose calls are recorded on their own.
        if self._hides_values(args, kwargs, inner_items):
            self.value_independent = False
        self.items[first:] = [item for item in inner_items if item[0] == "gone"]
        self.add_item([kind, name, *encoded, result_numbers, self.find_source_line()])
        return result

    def _hides_values(self, args: Any, kwargs: Any, items: list[Item]) -> bool:
        """Return whether a call read whole numbers that none of its operators has as an argument.

        Torch's C++ code reads the batch sizes of a packed sequence so.
        """
        counts = [t for t in tensors([args, kwargs]) if t.dtype is torch.int64 and t.numel()]
        if not counts or not items:
            return False
        text = str([item[2:4] for item in items if item[0] == "operation"])
        return any(f"{{'t': {self.number_tensor(tensor)}}}" not in text for tensor in counts)

    def record_reading(self, func: Any, args: Any, first: int) -> bool:
        """Record a call that read a whole tensor, which dispatches no operator, as a comparison.

        Return whether it was such a call. `first`: the number of items before it.
        """
        name = _function_names().get(func, "").rpartition(".")[2]
        is_reading = name in _WHOLE_READERS and len(self.items) == first
        if is_reading and args[0].numel():
            operands = encode((args[0], args[0]), self.number_tensor)
            line = self.find_source_line()
            self.add_item(["operation", READING, operands, {"d": []}, None, line, []])
        return is_reading

    def _encode_result(self, result: Any) -> Any:
        result_tensors = tensors(result)
        if not result_tensors:
            return None
        return encode(result, self._number_result)

    def _number_result(self, tensor: torch.Tensor) -> int:
        entry = self._numbers.get(id(tensor))
        if entry is not None and entry[1]() is tensor:
            return entry[0]
        return self._assign_number(tensor)

    @contextmanager
    def enter_component(self, stands_for: str | None) -> Iterator[None]:
        """Mark, in the body, that a component is running.

        `stands_for`: its file if its forward is torch's own, else None.
        """
        if stands_for is None:
            self._component_lines.append("")
        else:
            frame = self._calling_frame()
            self._component_lines.append(f"{stands_for}:1\n{id(frame)}")
        try:
            yield
        finally:
            self._component_lines.pop()

    def find_source_line(self) -> str:
        """Return `file:line`, relative to the directory, of the code that is calling torch."""
        frame = self._calling_frame()
        if frame is None:
            return "elsewhere"
        if self._component_lines and self._component_lines[-1]:
            line, _, caller = self._component_lines[-1].partition("\n")
            if caller == str(id(frame)):
                return line
        return f"{frame.f_code.co_filename[len(self._directory) :]}:{frame.f_lineno}"

    def _author_calls(self) -> list[str]:
        """Return the author's calls, outermost first: no frames of torch's or kdrun's.

        Each is `file:function#number:line`, with another number for each call.
        """
        frames: list[FrameType] = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(_KDRUN_FOLDER):
            # This file's own frames, and torch's around them, are no calls of the author's.
            frame = frame.f_back
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith((_KDRUN_FOLDER, _TORCH_FOLDER, "<frozen")):
                frames.append(frame)
            elif code.co_name == "do_forward":
                break
            frame = frame.f_back
        known = {id(frame): number for frame, number in self._open_frames}
        numbers = []
        for frame in reversed(frames):
            self._frame_count += id(frame) not in known
            numbers.append((frame, known.get(id(frame), self._frame_count)))
        self._open_frames = numbers
        return [
            f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}#{number}:{frame.f_lineno}"
            for frame, number in numbers
        ]

    def _calling_frame(self) -> FrameType | None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(self._directory):
            frame = frame.f_back
        return frame


def _picks_by_numbers(func: Any, args: Any) -> bool:
    """Return whether it is `x[rows]` by whole numbers: only masks pick as many as are true."""
    masks = {torch.bool, torch.uint8}
    return func is torch.ops.aten.index.Tensor and masks.isdisjoint(
        i.dtype for i in tensors(args[1])
    )


class _OperationMode(TorchDispatchMode):
    def __init__(self, recorder: CallRecorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if consist_of_plain_tensors(types):
            return NotImplemented
        return self._recorder.record_operation(func, args, kwargs or {})


class _FunctionMode(TorchFunctionMode):
    def __init__(self, recorder: CallRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in _function_names() or is_torch_function(func):
            return self._recorder.record_function(func, args, kwargs or {})
        with self:  # A function that only claims to be torch's.
            return func(*args, **(kwargs or {}))


class _ReadingMode(TorchFunctionMode):
    """Detects functions that read a tensor's numbers into Python; records those that set data."""

    def __init__(self, recorder: CallRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = _function_names().get(func, "")
        if name.rpartition(".")[2] in _VALUE_READERS:
            self._recorder.value_independent = False
        if name == _DATA_SETTER:
            return self._recorder.record_function(func, args, kwargs or {})
        first = len(self._recorder.items)
        result = func(*args, **(kwargs or {}))
        self._recorder.record_reading(func, args, first)
        return result


def is_torch_function(function: Any) -> bool:
    """Return whether a function is torch's own: written in C++, or in one of torch's files."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is None or code.co_filename.startswith(_TORCH_FOLDER)


def record_components(
    recorder: CallRecorder, components: dict[str, tuple[nn.Module, str]]
) -> AbstractContextManager[None]:
    """Return a context that records where each call of a component begins and ends.

    `components`: maps a module path to the module and its file.
    """
    return wrap_forwards(
        {path: module for path, (module, _) in components.items()},
        lambda path, forward: _wrap_forward(recorder, path, forward, components[path][1]),
    )


def _wrap_forward(
    recorder: CallRecorder, path: str, forward: Callable[..., Any], file: str
) -> Callable[..., Any]:
    def recorded_forward(*args: Any, **kwargs: Any) -> Any:
        with without_modes(), DisableTorchFunction():
            encoded = [
                encode(to_plain_containers(arguments), recorder.number_tensor)
                for arguments in (args, kwargs)
            ]
            recorder.add_item(["enter", path, *encoded])
        with recorder.enter_component(file if is_torch_function(forward) else None):
            output = forward(*args, **kwargs)
        with without_modes(), DisableTorchFunction():
            recorder.add_item(
                ["leave", encode(to_plain_containers(output), recorder.number_tensor)]
            )
        return output

    return recorded_forward
