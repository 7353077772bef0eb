"""Judges whether every file works on a device that is not the CPU.

Model and inputs are put on a simulated device, as KernelBench's harness does with a GPU, and the
forward runs on fake tensors: these have shapes, strides and a device, and no values.
"""

import io
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from itertools import zip_longest
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from runner.problems import load_problem, read_problem, to_plain_containers
from runner.problems.fake_execution import (
    FakeTensors,
    SkipFillMode,
    copy_to_device,
    move_model,
    recurrent_outputs,
)
from runner.problems.simulated_device import NumbersOnDeviceMode, simulated_device
from runner.torch_internals import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
    without_guards,
)
from runner.verify.findings import Findings
from runner.verify.gates.device_lines import PlacementWatch
from runner.verify.gates.self_test import load_component, make_model
from runner.verify.layout import COMPOSITION_TEST, ORIGINAL, Layout, StepFolder
from runner.verify.loading_files import CannotJudge, Files, foreign_code, require_attribute
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.random_blocks import RepeatedDraws
from runner.verify.runtime.runner import ForwardRunner, Inputs, holds_meta_tensor, move_tensors

_CPU = torch.device("cpu")
_DEVICE_QUERIES = (torch.Tensor.device.__get__,)
_NO_GRADIENTS = "device_ready_queues_"
"""Part of torch's own assertion where it takes gradients on a device without hardware."""
_SKIPPED = "not judged on a device that is not the CPU"
_NEEDS_VALUES = (DataDependentOutputException, DynamicOutputShapeException)
"""Errors that fake tensors raise where a program needs values."""
_MISSING_ON_DEVICE = (NotImplementedError, UnsupportedOperatorException)
"""Errors that torch raises for operations that the simulated device does not have."""


@dataclass(frozen=True, slots=True)
class _RunnableFile:
    """A file that has run: how to build its model and draw its inputs."""

    build: Callable[[], Any]
    get_inputs: Callable[[], Inputs]


@dataclass(frozen=True, slots=True)
class _DeviceRun:
    """Devices of the outputs of a file that ran on the simulated device."""

    file: str
    devices: tuple[str, ...]


class _DoesNotRunError(CannotJudge):
    """A file fails on the device."""

    def __init__(self, message: str, fault: str | None) -> None:
        super().__init__(message)
        self.fault = fault
        """The fault, with its line; None if the line is unknown."""


class DeviceGate:
    """Runs each file once on the simulated device, and again only if that fails."""

    def __init__(
        self,
        files: Files,
        layout: Layout,
        runner: ForwardRunner,
        findings: Findings,
        *,
        compares_calls: bool = False,
    ) -> None:
        """`compares_calls`: also compare the calls of each component with those on the CPU."""
        self._compares_calls = compares_calls
        self._files, self._layout = files.reopen(), layout
        self._runner, self._findings = runner, findings
        self._device = simulated_device()
        self._fake_mode = FakeTensors()
        self._inputs: dict[str | None, Callable[[], Inputs]] = {}
        """File -> function that draws its inputs."""
        self._modules: dict[str, ModuleType] = {}
        """Component files that have run."""

    def judge(self) -> None:
        """Judge every file of the directory, if its original runs on such a device."""
        restore_generators = self._runner.save_generators()
        try:
            with redirect_stdout(io.StringIO()):  # other gates have shown the files' output
                original = self._run_original()
                if original is not None:
                    self._judge_files(original)
        finally:
            restore_generators()

    def _judge_files(self, original: _DeviceRun) -> None:
        root = self._layout.tree.root.path if self._layout.tree else None
        runs: dict[str | None, _DeviceRun | None] = {}
        for path in self._layout.components:
            runs[path] = self._judge_file(
                path, self._load_component, original if path == root else None
            )
        for step in self._layout.steps:
            parent = runs.get(step.parent)
            if parent is not None:
                self._judge_file(f"{step.folder}/refactored.py", self._step_loader(step), parent)
        self._judge_file(COMPOSITION_TEST, self._load_composed, original)

    def _run_original(self) -> _DeviceRun | None:
        """Run the problem's own file; if it fails, report the reason and return None."""
        try:
            return self._run_file(ORIGINAL, self._load_problem)
        except _DoesNotRunError as error:
            fault, skip_reason = self._explain(ORIGINAL, self._load_problem, error)
        self._findings.record_nothing_to_check("device", ORIGINAL)
        reason = f"itself does not run on one: {fault}" if fault else skip_reason
        self._findings.warn(f"{_SKIPPED}: {ORIGINAL} {reason}")
        return None

    def _judge_file(
        self, file: str, load: Callable[[str], _RunnableFile], reference: _DeviceRun | None
    ) -> _DeviceRun | None:
        """Judge one file; return the devices of its outputs if it runs."""
        try:
            run = self._run_file(file, load)
        except _DoesNotRunError as error:
            fault, skip_reason = self._explain(file, load, error)
            self._findings.record_verdict(
                "device", file, fault or f"{skip_reason}; {ORIGINAL} can be"
            )
            return None
        fault = None
        if reference is not None and not all(map(str.__eq__, run.devices, reference.devices)):
            fault = self._misplaced_output_fault(file, load, reference)
        if fault is None and self._compares_calls and file in self._layout.components:
            fault = self._other_calls_fault(file, load)
        self._findings.record_verdict("device", file, fault)
        return run

    def _other_calls_fault(self, file: str, load: Callable[[str], _RunnableFile]) -> str | None:
        """Return a fault if a file calls other functions of torch there than on the CPU."""
        recorded: dict[torch.device, list[str]] = {}
        for device in (_CPU, self._device):
            calls = CallsMode()
            try:
                self._run_forward(file, load, device, calls=calls)
            except CannotJudge as error:
                reason = _first_sentence(file, error)
                return f"runs on {self._device} and not on {device}, on shapes alone: {reason}"
            recorded[device] = calls.calls
        for on_cpu, on_device in zip_longest(*recorded.values(), fillvalue="nothing"):
            if on_cpu != on_device:
                return (
                    f"calls {on_device} on {self._device}, and {on_cpu} there on the CPU: "
                    "compute the same on each device"
                )
        return None

    def _explain(
        self, file: str, load: Callable[[str], _RunnableFile], error: "_DoesNotRunError"
    ) -> tuple[str | None, str]:
        """Return (fault, "") of a file that fails there, or (None, reason) if it is unknown."""
        reason = _first_sentence(file, error)
        if _was_caused_by(error, _NEEDS_VALUES):
            return None, f"cannot be run on shapes alone, since it reads values: {reason}"
        if error.fault:
            return error.fault, ""
        if _NO_GRADIENTS in str(error):
            return None, "takes gradients in forward, which the simulated device cannot"
        if _was_caused_by(error, _MISSING_ON_DEVICE):
            return None, f"cannot be run on the simulated device, which lacks something: {reason}"
        try:
            self._run_forward(file, load, _CPU)
        except CannotJudge as on_cpu:
            since = ", since it reads values" if _was_caused_by(on_cpu, _NEEDS_VALUES) else ""
            return None, f"cannot be run on shapes alone{since}: {_first_sentence(file, on_cpu)}"
        return f"runs on the CPU and not on {self._device}: {reason}", ""

    def _misplaced_output_fault(
        self, file: str, load: Callable[[str], _RunnableFile], reference: _DeviceRun
    ) -> str | None:
        """Return a fault that names an output on another device than `reference`, and its line."""
        placement = PlacementWatch(self._runner.directory, file)
        outputs = self._run_forward(file, load, self._device, placement)
        for n, (tensor, device) in enumerate(zip(outputs, reference.devices, strict=False)):
            if tensor.device.type != device:
                place = f"output[{n}] is on {tensor.device}, that of {reference.file} on {device}"
                hint = f"; {placement.explain_output(tensor)}" if tensor.device == _CPU else ""
                return place + hint
        return None

    def _run_file(self, file: str, load: Callable[[str], _RunnableFile]) -> _DeviceRun:
        """Run a file on the device: quickly first, then, if that fails, watching each operation."""
        try:
            outputs = self._run_forward(file, load, self._device)
        except CannotJudge:
            placement = PlacementWatch(self._runner.directory, file)
            try:
                outputs = self._run_forward(file, load, self._device, placement)
            except CannotJudge as error:
                raise _DoesNotRunError(str(error), placement.fault) from error
        return _DeviceRun(file, tuple(tensor.device.type for tensor in outputs))

    def _run_forward(
        self,
        file: str,
        load: Callable[[str], _RunnableFile],
        device: torch.device,
        placement: PlacementWatch | None = None,
        calls: "CallsMode | None" = None,
    ) -> list[torch.Tensor]:
        """Run a file's model on its own inputs; return the outputs. CannotJudge if it raises."""
        with foreign_code(file, self._runner.directory), torch.no_grad():
            runnable = self._make_fake_or_real(lambda: load(file), placement)
            on_meta = device != _CPU and placement is None
            with SkipFillMode():
                model = self._make_on_meta(runnable.build) if on_meta else None
                if model is None:
                    model = self._make_fake_or_real(runnable.build, placement)
            inputs = self._make_on_meta(runnable.get_inputs) if on_meta else None
            if inputs is None:
                inputs = self._make_fake_or_real(runnable.get_inputs, placement)
            model.train(self._runner.options.mode == "train")
            if device != _CPU:
                move_model(model, self._fake_mode, device)
                inputs = move_tensors(inputs, self._move_tensor)
            args, kwargs = inputs
            with (
                without_guards(),
                self._fake_mode,
                NumbersOnDeviceMode(),
                ShapeOnlyMode(),
                placement or nullcontext(),
                calls or nullcontext(),
            ):
                return tensors(to_plain_containers(model(*args, **kwargs)))

    def _move_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta:
            return copy_to_device(tensor, self._fake_mode, self._device)
        with self._fake_mode:
            return tensor.to(self._device)

    def _make_on_meta(self, make: Callable[[], Any]) -> Any:
        """Make something on torch's meta device, which is quicker than fake tensors.

        None if that fails, or if tensors would stay there that are not going to be moved.
        """
        try:
            with torch.device("meta"):
                result = make()
        except Exception:  # whatever the reason: fake tensors are tried next
            return None
        if isinstance(result, nn.Module):
            return None if any(map(holds_meta_tensor, result.modules())) else result
        stays = any(tensor.is_meta for tensor in tensors(move_tensors(result, self._move_tensor)))
        return None if stays else result

    def _make_fake_or_real(self, make: Callable[[], Any], placement: PlacementWatch | None) -> Any:
        """Make something of fake tensors, or of real ones if its code reads values."""
        try:
            with self._fake_mode, placement or nullcontext():
                return make()
        except MemoryError:
            raise
        except Exception:  # whatever the reason: real tensors are tried next
            if self._runner.streaming:
                raise
            with RepeatedDraws():
                result = make()
            return self._fake_mode.copy_model(result) if isinstance(result, nn.Module) else result

    def _load_problem(self, file: str) -> _RunnableFile:
        problem = load_problem(read_problem(self._runner.directory / file))
        self._inputs[file] = problem.get_inputs
        return _RunnableFile(problem.build, problem.get_inputs)

    def _load_component(self, file: str) -> _RunnableFile:
        module = load_component(self._files, self._runner, file, file).module
        self._modules[file] = module

        def get_inputs() -> Inputs:
            return tuple(module.get_inputs()), {}

        self._inputs[file] = get_inputs
        arguments = getattr(module, "get_init_inputs", None)
        return _RunnableFile(lambda: make_model(module.Model, arguments), get_inputs)

    def _step_loader(self, step: StepFolder) -> Callable[[str], _RunnableFile]:
        def load(file: str) -> _RunnableFile:
            children = step.children.items()
            modules = {n: self._modules[c] for n, c in children if c in self._modules}
            module = self._files.load_step(self._runner.directory / step.folder, modules)
            cls = require_attribute(module, "RefactoredModel", self._runner.directory)
            arguments = getattr(module, "get_init_inputs", None)
            return _RunnableFile(lambda: make_model(cls, arguments), self._inputs[step.parent])

        return load

    def _load_composed(self, file: str) -> _RunnableFile:
        module = self._files.load(self._runner.directory / file)
        cls = require_attribute(module, "ComposedModel", self._runner.directory)
        return _RunnableFile(cls, self._inputs[ORIGINAL])


def _was_caused_by(error: BaseException | None, kinds: tuple[type[Exception], ...]) -> bool:
    """Return whether an error is of one of these types, or was caused by one that is."""
    while error is not None and not isinstance(error, kinds):
        error = error.__cause__ or error.__context__
    return error is not None


def _first_sentence(file: str, error: CannotJudge) -> str:
    """Return an error's first sentence without the name of its file."""
    return str(error).removeprefix(f"{file}: ").partition(". ")[0]


_MAY_RETURN_ITSELF = {
    *("contiguous", "to", "type_as", "float", "half", "double", "bfloat16", "int", "long", "bool"),
}
"""Methods that return the tensor itself where nothing is to be done."""


class CallsMode(TorchFunctionMode):
    """Records the calls of torch's functions: their names, and numbers for their tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self._numbers: dict[int, int] = {}
        """Maps the id() of a tensor to its number, a new one each time that a call returns it."""
        self._tensors: list[torch.Tensor] = []
        """All tensors by number; they stay alive, so that no id() recurs."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in _DEVICE_QUERIES:
            owner = getattr(getattr(func, "__self__", None), "__name__", "")
            values = self._describe([*args, *(kwargs or {}).items()])
            self.calls.append(f"{owner or func.__name__}({values})")
            # `x.contiguous()` may be x on one device alone.
            number = self._numbers[id(args[0])] if func.__name__ in _MAY_RETURN_ITSELF else None
            for tensor in tensors(result):
                self._add_tensor(tensor, number)
        return result

    def _add_tensor(self, tensor: torch.Tensor, number: int | None = None) -> int:
        self._numbers[id(tensor)] = len(self._tensors) if number is None else number
        self._tensors.append(tensor)
        return self._numbers[id(tensor)]

    def _describe(self, value: Any) -> str:
        """Return a text of a value that is the same on each device."""
        if isinstance(value, torch.Tensor):
            number = self._numbers.get(id(value))
            return f"tensor {self._add_tensor(value) if number is None else number}"
        if isinstance(value, list | tuple):
            return ", ".join(map(self._describe, value))
        if isinstance(value, dict):
            return self._describe([*value.items()])
        plain = (int, float, complex, str, bool, type(None), torch.dtype, slice)
        return str(value) if isinstance(value, plain) else type(value).__name__


class ShapeOnlyMode(TorchFunctionMode):
    """Returns empty results of recurrent layers and batch norm: fake tensors take long for them."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in _RECURRENT and len(args) == _ARGUMENTS:
            inputs = tensors(args)
            is_packed = isinstance(args[3], list | tuple)
            if not is_packed and len({tensor.device for tensor in inputs}) > 1:
                torch.cat([tensor.flatten() for tensor in inputs])  # raises under PlacementWatch
            if not is_packed:
                return recurrent_outputs(*args)
        if func in _CELLS:
            states = tensors(args[1])
            torch.cat([tensor.flatten() for tensor in tensors(args)])  # raises across devices
            results = tuple(map(torch.empty_like, states))
            return results if func is torch.lstm_cell else results[0]
        if func is functional.batch_norm and len({t.device for t in tensors([args, kwargs])}) == 1:
            return torch.empty_like(args[0])
        return func(*args, **(kwargs or {}))


_RECURRENT = frozenset((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu))
_CELLS = frozenset((torch.lstm_cell, torch.gru_cell, torch.rnn_tanh_cell, torch.rnn_relu_cell))
_ARGUMENTS = 9
"""Number of arguments from a recurrent layer's sequence to `batch_first`.

A packed sequence has its batch sizes before those.
"""
