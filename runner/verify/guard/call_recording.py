"""Records the torch calls of a forward of foreign code, so that the judge can repeat them.

Either calls of torch's public functions are recorded, or the operators that they dispatch. A call
that the judge cannot repeat (an author's own function, a value that has no JSON form) is recorded
as the operators that it dispatches.
"""

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    TorchDispatchMode,
    storage_key,
    without_modes,
)
from runner.verify.guard.shared_memory import NotToldError
from runner.verify.guard.wire_format import encode
from runner.verify.runtime.output_leaves import tensors

Item = list[Any]
"""One event of a forward: its kind, then its data. `Player` replays them."""
_OF_TORCH = str(Path(torch.__file__).parent)
_OURS = str(Path(runner.__file__).parent)
_UNKNOWN = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
"""Tags of operators after which another program may run for other values."""
_READ = {"tolist", "numpy", "item", "__array__", "__bool__", "__int__", "__float__", "__index__"}
_NEW_DATA = "torch.Tensor.data.__set__"
"""The function behind `x.data = y`, which torch does not list among its functions."""
_NEVER = frozenset(
    {"torch.Tensor.backward", "torch.Tensor.register_hook", "torch.Tensor.__setstate__"}
)


@lru_cache(maxsize=1)
def public_functions() -> dict[str, Callable[..., Any]]:
    """Return torch's public functions of tensors by name."""
    found: dict[str, Callable[..., Any]] = {_NEW_DATA: torch.Tensor.data.__set__}  # type: ignore[attr-defined]
    for functions in get_overridable_functions().values():
        for function in functions:
            name = resolve_name(function)
            if name is not None and name not in _NEVER:
                found.setdefault(name, function)
    return found


@lru_cache(maxsize=1)
def _names() -> dict[Any, str]:
    return {function: name for name, function in public_functions().items()}


class Recorder:
    """Records the calls of one forward."""

    def __init__(
        self, directory: Path, known: dict[int, torch.Tensor], first: int, *, functions: bool
    ) -> None:
        """`known`: the inputs and weights, which the judge has, by number.

        `first`: the number of the first tensor that the judge does not have. `functions`: record
        calls of torch's functions instead of the operators that they dispatch.
        """
        self._functions = functions
        self._directory = f"{directory.resolve()}/"
        self.items: list[Item] = []
        self.given: list[torch.Tensor] = []
        """Tensors that existed before the forward and that the judge does not have."""
        self.same_for_other_values = True
        self._numbers: dict[int, tuple[int, weakref.ref[torch.Tensor]]] = {}
        self._storages: dict[int, list[int]] = {}
        """Maps a storage to the numbers of the tensors that share it."""
        self._next = first
        self._dead: list[int] = []
        self._made: dict[int, StorageWeakRef] = {}
        self._inside: list[str] = []
        """Lines that stand for the running components; "" for a component with lines of its own.

        A component whose forward is torch's own has none.
        """
        for number, tensor in known.items():
            self._add(tensor, number)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record all calls in the body."""
        with _Operations(self), _Functions(self) if self._functions else _Readings(self):
            yield

    def outputs(self, value: Any) -> Any:
        """Return the forward's result as JSON, with the numbers of this recording for tensors."""
        return encode(to_plain_containers(value), self.number)

    def number(self, tensor: torch.Tensor) -> int:
        """Return a tensor's number.

        A tensor that no recorded call made is recorded as an alias of a known tensor, or sent as it
        is.
        """
        found = self._numbers.get(id(tensor))
        if found is not None and found[1]() is tensor:
            return found[0]
        with without_modes(), DisableTorchFunction():
            return self._handed_over(tensor)

    def _handed_over(self, tensor: torch.Tensor) -> int:
        others = self._living(tensor)
        number = self._add(tensor)
        if others and tensor.layout is torch.strided:
            place = [list(tensor.shape), list(tensor.stride()), tensor.storage_offset()]
            dtype = str(tensor.dtype).removeprefix("torch.")
            negated = [tensor.is_conj(), tensor.is_neg()]
            self.items.append(["alias", number, others[0], *place, dtype, *negated])
        else:
            self.items.append(["given", number, len(self.given)])
            self.given.append(tensor.detach().clone())
        return number

    def _living(self, tensor: torch.Tensor) -> list[int]:
        if tensor.layout is not torch.strided or not tensor.numel():
            return []
        return self._storages.get(storage_key(tensor.untyped_storage()), [])

    def _add(self, tensor: torch.Tensor, number: int | None = None) -> int:
        if number is None:
            number, self._next = self._next, self._next + 1
        key = None
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            key = storage_key(storage)
            self._storages.setdefault(key, []).append(number)
            self._made[number] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        place = id(tensor)

        def gone(_: Any) -> None:
            self._dead.append(number)
            if self._numbers.get(place, (None,))[0] == number:
                del self._numbers[place]
            if key is not None and number in self._storages.get(key, ()):
                self._storages[key].remove(number)

        self._numbers[place] = number, weakref.ref(tensor, gone)
        return number

    def kept(self, before: set[int]) -> list[int]:
        """Return the numbers of tensors that still exist after the forward, one for each storage.

        `before`: numbers of the tensors that existed before it; their storages are left out.
        """
        held = {}
        for number, reference in self._made.items():
            if number not in before and not reference.expired():  # type: ignore[no-untyped-call]
                held[reference.cdata] = number
        known = {self._made[n].cdata for n in before if n in self._made}
        return [number for key, number in held.items() if key not in known]

    def record(self, item: Item) -> None:
        """Append an item, after one that names the tensors that were freed since the last item."""
        if self._dead:
            self.items.append(["gone", self._dead])
            self._dead = []
        self.items.append(item)

    def operation(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator and record it."""
        if func is torch.ops.prim.device.default:  # A fake tensor is asked for its device.
            return func(*args, **kwargs)
        told = [encode(args, self.number), encode(kwargs, self.number)]
        where = self.where()
        if any(tag in _UNKNOWN for tag in func.tags):
            self.same_for_other_values = False
        result = func(*args, **kwargs)
        item = ["operation", func.name(), *told, self._result(result), where]
        self.record(item if self._functions else [*item, self._author_calls()])
        return result

    def function(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of torch and record the call."""
        name = _names().get(func)
        told: list[Any] | None = None
        if name is not None:
            with suppress(NotToldError):
                told = [encode(args, self.number), encode(kwargs, self.number)]
        if name is not None and name.rpartition(".")[2] in _READ:
            self.same_for_other_values = False
        begun = len(self.items)
        result = func(*args, **kwargs)
        if told is None or name is None:
            return result
        did = len(self.items) > begun
        makes = any(id(t) not in self._numbers for t in tensors(result))
        if not did and not makes and not name.endswith(".__set__"):
            return result  # It only asks for a shape or the like.
        try:
            with without_modes():
                shown = self._result(result)
        except NotToldError:
            return result
        inside = self.items[begun:]
        if any(item[0] in {"enter", "leave"} for item in inside):
            return result  # It called a module, whose calls are recorded on their own.
        self.items[begun:] = [item for item in inside if item[0] == "gone"]
        self.record(["function", name, *told, shown, self.where()])
        return result

    def _result(self, result: Any) -> Any:
        found = tensors(result)
        if not found:
            return None
        return encode(result, self._new_number)

    def _new_number(self, tensor: torch.Tensor) -> int:
        known = self._numbers.get(id(tensor))
        if known is not None and known[1]() is tensor:
            return known[0]
        return self._add(tensor)

    @contextmanager
    def component(self, stands_for: str | None) -> Iterator[None]:
        """Mark, in the body, that a component is running.

        `stands_for`: its file if its forward is torch's own, else None.
        """
        if stands_for is None:
            self._inside.append("")
        else:
            frame = self._asking()
            self._inside.append(f"{stands_for}:1\n{id(frame)}")
        try:
            yield
        finally:
            self._inside.pop()

    def where(self) -> str:
        """Return `file:line`, relative to the directory, of the code that is calling torch."""
        frame = self._asking()
        if frame is None:
            return "elsewhere"
        if self._inside and self._inside[-1]:
            place, _, caller = self._inside[-1].partition("\n")
            if caller == str(id(frame)):
                return place
        return f"{frame.f_code.co_filename[len(self._directory) :]}:{frame.f_lineno}"

    def _author_calls(self) -> list[str]:
        """Return the author's calls, outermost first: no frames of torch's or kdrun's."""
        found = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(_OURS):
            # This file's own frames, and torch's around them, are no calls of the author's.
            frame = frame.f_back
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith((_OURS, _OF_TORCH, "<frozen")):
                found.append(f"{code.co_filename}:{code.co_qualname}:{frame.f_lineno}")
            elif code.co_name == "do_forward":
                break
            frame = frame.f_back
        return found[::-1]

    def _asking(self) -> FrameType | None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(self._directory):
            frame = frame.f_back
        return frame


class _Operations(TorchDispatchMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return self._recorder.operation(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in _names() or is_of_torch(func):
            return self._recorder.function(func, args, kwargs or {})
        with self:  # A function that only claims to be torch's.
            return func(*args, **(kwargs or {}))


class _Readings(TorchFunctionMode):
    """Detects functions that read a tensor's numbers into Python; records those that set data."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = _names().get(func, "")
        if name.rpartition(".")[2] in _READ:
            self._recorder.same_for_other_values = False
        if name == _NEW_DATA:
            return self._recorder.function(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def is_of_torch(function: Any) -> bool:
    """Return whether a function is torch's own: written in C++, or in one of torch's files."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is None or code.co_filename.startswith(_OF_TORCH)


@contextmanager
def watching_calls(
    recorder: Recorder, components: dict[str, tuple[nn.Module, str]]
) -> Iterator[None]:
    """Record where each call of a component begins and ends.

    `components`: maps a module path to the module and its file.
    """
    for path, (module, file) in components.items():
        module.forward = _watched(recorder, path, module.forward, file)
    try:
        yield
    finally:
        for module, _ in components.values():
            module.__dict__.pop("forward", None)


def _watched(
    recorder: Recorder, path: str, forward: Callable[..., Any], file: str
) -> Callable[..., Any]:
    def watched(*args: Any, **kwargs: Any) -> Any:
        with without_modes(), DisableTorchFunction():
            told = [encode(to_plain_containers(given), recorder.number) for given in (args, kwargs)]
            recorder.record(["enter", path, *told])
        with recorder.component(file if is_of_torch(forward) else None):
            output = forward(*args, **kwargs)
        with without_modes(), DisableTorchFunction():
            recorder.record(["leave", encode(to_plain_containers(output), recorder.number)])
        return output

    return watched
