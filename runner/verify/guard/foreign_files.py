"""Offers files of others to the gates as modules, while their code runs in a worker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import torch
from torch import nn

from runner.problems import Problem, read_problem
from runner.verify.findings import Findings
from runner.verify.guard.claims import check_model, check_value
from runner.verify.guard.replica import WorkerModel
from runner.verify.guard.wire_format import ConnectionLostError, decode
from runner.verify.guard.worker_client import (
    IMPORT_OPERATIONS,
    PUBLIC_NAMES,
    WorkerClient,
    refuse_unreadable,
    to_one_line,
)
from runner.verify.layout import COMPOSITION_TEST, KERNEL_FOLDER, ORIGINAL
from runner.verify.loading_files import CHILDREN, CannotJudge, relative_path
from runner.verify.results import Verdict
from runner.verify.runtime.random_blocks import Draws

_NO_MODULES: Mapping[str, ModuleType] = MappingProxyType({})
Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ForeignProblem:
    """The problem's own file, which runs in a worker."""

    problem: Problem
    build: Callable[[], nn.Module]
    get_inputs: Callable[[], Inputs]


class ForeignFiles:
    """Loads files as `Files` does, but runs their code in workers and not in this process."""

    def __init__(
        self, directory: Path, parts: WorkerClient, original: WorkerClient, draws: Draws
    ) -> None:
        self.directory = directory.resolve()
        self._parts, self._original = parts, original
        self._draws = draws
        self._programs: dict[tuple[str, str], dict[str, Any]] = {}
        """Maps a file and class to its recorded programs that do not depend on values."""
        self._text_modules: set[int] = set()
        """Numbers of modules that were loaded from a text and not from a file."""

    def load(self, path: Path) -> ModuleType:
        """Load a file as a module of its own; CannotJudge if it is missing or raises."""
        file = relative_path(path, self.directory)
        return self._load(file, {"step": None, "text": None})

    def load_text(self, path: Path, text: str) -> ModuleType:
        """Load a text as if it were the content of a file."""
        return self._load(relative_path(path, self.directory), {"step": None, "text": text})

    def load_step(self, step: Path, modules: Mapping[str, ModuleType] = _NO_MODULES) -> ModuleType:
        """Load a step's refactored.py, for which `children` is the step's own folder."""
        folder = relative_path(step, self.directory)
        return self._load(f"{folder}/refactored.py", {"step": folder, "text": None})

    def problem(self) -> ForeignProblem:
        """Load the problem's own file."""
        answer, _ = self._original.ask({"do": "problem", "what": ORIGINAL}, [])
        number = _read_number(answer, "module")
        return ForeignProblem(
            read_problem(self.directory / ORIGINAL),
            lambda: self._build_model(self._original, number, ORIGINAL, "Model"),
            lambda: self._draw_inputs(self._original, number, ORIGINAL),
        )

    def judge_devices(self, findings: Findings) -> None:
        """Report the worker's verdicts on running the files on a device that is not the CPU."""
        try:
            self._judge_devices(findings)
        except CannotJudge as error:
            findings.record_broken("device", "model", str(error))

    def _judge_devices(self, findings: Findings) -> None:
        answer, _ = self._parts.ask({"do": "device", "what": "device"}, [])
        with refuse_unreadable("device"):
            for component, verdict, reason in answer["checks"]:
                file, message = to_one_line(component), to_one_line(reason)
                match Verdict(verdict):
                    case Verdict.BROKEN:
                        findings.record_broken("device", file, message)
                    case Verdict.NOTHING_TO_CHECK:
                        findings.record_nothing_to_check("device", file)
                    case Verdict.PASSED:
                        findings.record_verdict("device", file, None)
                    case _:
                        findings.record_verdict("device", file, message)
            for warning in answer["warnings"]:
                findings.warn(to_one_line(warning))

    def _load(self, file: str, source: dict[str, Any]) -> ModuleType:
        answer, _ = self._parts.ask({"do": "load", "what": file, "file": file, **source}, [])
        number = _read_number(answer, "module")
        with refuse_unreadable(file):
            _record_operations(answer)
            names = [name for name in answer["names"] if name in PUBLIC_NAMES]
        if source["text"] is not None:
            self._text_modules.add(number)
        module = ModuleType(file)
        module.__file__ = str(self.directory / file)
        for name in names:
            setattr(module, name, self._make_attribute(name, number, file, answer))
        return module

    def _make_attribute(self, name: str, number: int, file: str, answer: Any) -> Any:
        if name.endswith("Model"):
            return lambda *_, **__: self._build_model(self._parts, number, file, name)
        if name == "WEIGHTS":
            with refuse_unreadable(file):
                check_value(answer["weights"])
                return decode(answer["weights"], _refuse_tensor)
        if name == "get_init_inputs":
            return list  # The worker calls the function itself when it builds a model.
        if name == "get_inputs":
            return lambda: self._draw_inputs(self._parts, number, file)[0]
        return lambda: self._call_function(number, file, name)

    def _call_function(self, number: int, file: str, name: str) -> Any:
        subject = f"{file}: {name}()"
        request = {"do": "value", "what": subject, "module": number, "name": name}
        answer, _ = self._parts.ask(request, [])
        with refuse_unreadable(subject):
            check_value(answer)
            return decode(answer, _refuse_tensor)

    def _draw_inputs(self, worker: WorkerClient, number: int, file: str) -> Inputs:
        request = {
            "do": "inputs",
            "what": f"{file}: get_inputs()",
            "file": file,
            "module": number,
            "number": torch.initial_seed(),
            "repeated": self._draws.repeating,
        }
        answer, tensors = worker.ask(request, [])
        with refuse_unreadable(file):
            check_value(answer["inputs"])
            args, kwargs = decode(answer["inputs"], tensors.__getitem__)
            if any(tensor.is_meta for tensor in tensors):
                raise ValueError("an input without numbers")
            return args, kwargs

    def _build_model(self, worker: WorkerClient, number: int, file: str, name: str) -> nn.Module:
        request = {
            "do": "build",
            "what": f"{file}: {name}",
            "module": number,
            "class": name,
            "number": torch.initial_seed(),
            "bare": torch.get_default_device().type == "meta",
        }
        answer, tensors = worker.ask(request, [])
        with refuse_unreadable(file):
            check_model(answer)
            _record_operations(answer)
        children = KERNEL_FOLDER if file == COMPOSITION_TEST else None
        if file.endswith("/refactored.py"):
            children = f"{file.rpartition('/')[0]}/{CHILDREN}"
        functions = children == KERNEL_FOLDER or file.startswith(f"{KERNEL_FOLDER}/")
        subject = f"{file}: forward"
        is_text = number in self._text_modules
        model = WorkerModel(
            worker,
            _read_number(answer, "model"),
            subject,
            "" if is_text else name,
            children=children,
            functions=functions,
            programs={} if is_text else self._programs.setdefault((file, name), {}),
        )
        return model.build_replica(answer, tensors)


def _record_operations(answer: Any) -> None:
    IMPORT_OPERATIONS.extend(
        (to_one_line(operation), to_one_line(place)) for operation, place in answer["computed"]
    )


def _read_number(answer: Any, name: str) -> int:
    number = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(number, int):
        raise CannotJudge("the process that runs the files says what cannot be read")
    return number


def _refuse_tensor(_: Any) -> Any:
    raise ConnectionLostError("a tensor")
