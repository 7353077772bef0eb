"""Runs each file once more by itself and compares the result with the judge's forward of it.

A file runs in a process that looks like any user's, on weights and inputs from a seed that nobody
can know. Its output has to be that of the operations that the worker reported.
"""

import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from runner.problems import nested_values
from runner.torch_internals import DisableTorchFunction, without_modes
from runner.untrusted_files import LARGEST_SOURCE
from runner.verify.findings import Findings
from runner.verify.gates.compare import STEP, compare
from runner.verify.guard import (
    program_values,
    retained_state,
    sandbox,
    shared_memory,
    standalone_process,
    wire_format,
)
from runner.verify.guard.claims import check_value
from runner.verify.guard.constant_buffers import ConstantBuffers
from runner.verify.guard.one_operation import (
    MultipleOperations,
    find_kernel_operations,
    find_multiple_operations,
    find_products,
    format_last_program,
)
from runner.verify.guard.own_inputs import OwnInputs
from runner.verify.guard.replica import Replica, WorkerModel
from runner.verify.guard.sandbox import system_paths
from runner.verify.guard.shared_memory import Memory, MemoryFile, NoTensorError, NotToldError
from runner.verify.guard.source_process import start_process
from runner.verify.guard.wire_format import Channel, ConnectionLostError, decode, encode
from runner.verify.guard.worker_client import refuse_unreadable, to_one_line
from runner.verify.layout import COMPOSITION_TEST, ORIGINAL, Layout
from runner.verify.loading_files import CannotJudge
from runner.verify.options import VerifyOptions
from runner.verify.results import GateName
from runner.verify.runtime.input_moves import move_inputs
from runner.verify.runtime.operation_watch import Event
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.runner import Inputs

_TOOLS = (shared_memory, wire_format, sandbox, retained_state, nested_values, program_values)
_SEED_LIMITS = (1000, 1 << 48)
"""Limits of secret seeds: small ones, as people choose, and large ones, as torch chooses itself."""
_PREPARED_FILES, _PREPARED_BYTES = 2, 512 << 20
"""Number of files that are imported before the judge needs them, and the limit on their weights."""
_REBUILD_BYTES = 64 << 20
"""Bytes of weights up to which a file's model is built twice."""
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
"""Huge pages mean fewer pages: a fork takes 3 ms instead of 14. Only Linux reads these settings."""

_REGISTRIES = re.compile(r"\._(modules|parameters|buffers)\.")
"""Dictionaries of nn.Module in the paths of values."""
_FileClass = tuple[str, str]
"""A file, and the class in it that runs."""


def secret_seed() -> int:
    """Return a random seed that no file can know."""
    return secrets.randbelow(secrets.choice(_SEED_LIMITS))


class _Server:
    """The process that forks for each file and never runs one itself."""

    def __init__(self) -> None:
        self.process, self.channel = start_process(
            standalone_process, _TOOLS, os.environ | _HUGE_PAGES, removed_variables=[*_HUGE_PAGES]
        )


@lru_cache(maxsize=1)
def _get_server(process: int) -> _Server:
    """Return the server of the judging process with this id."""
    return _Server()


def start_server() -> None:
    """Start the server early, because importing torch there takes a second."""
    _get_server(os.getpid())


@dataclass(slots=True)
class _StandaloneRun:
    """A file that runs by itself."""

    file: str
    channel: Channel
    folder: Path

    @property
    def message_start(self) -> str:
        """Beginning of messages about it."""
        return f"{self.file}: imported and run by itself"

    def send(self, message: dict[str, Any], files: list[MemoryFile]) -> None:
        """Send it the weights and inputs."""
        # If the connection is lost, the process has ended, and reading its answer tells that.
        with suppress(ConnectionLostError):
            self.channel.send(message, files)


@dataclass(frozen=True, slots=True)
class _StandaloneAnswer:
    """A file's answer after it has run by itself."""

    outputs: list[tuple[Any, list[torch.Tensor | None]]]
    """For each compared call, the output and the inputs afterwards, None if unchanged."""
    buffers: dict[str, tuple[torch.Tensor, float]]
    """Each buffer, with the mean difference of its elements from that of another seed."""
    change: str | None
    """Path of a Python value that changed from call to call, or None."""


class StandaloneRuns:
    """Runs each file by itself and reports how it differs from the judge's own forward."""

    def __init__(self, layout: Layout, options: VerifyOptions, findings: Findings) -> None:
        """`options`: with a seed that no file knows."""
        self._layout, self._options, self._findings = layout, options, findings
        self._memory = Memory()
        self._sizes = _order_files(layout)
        """Bytes of the weights of each file, in the order in which they will probably run."""
        self._pending = dict(self._sizes)
        """Files that did not run yet."""
        self._prepared: dict[_FileClass, _StandaloneRun] = {}
        """Files that are imported and wait for inputs."""
        self._count = 0
        self._own_inputs = OwnInputs(findings)
        self._value_readers: set[str] = set()
        """Files whose program may change with the values."""
        self._original_reads_values: bool | None = None
        """Whether the original's program may change with the values; None if it did not run."""
        self._original_program: str | None = None
        """The original's program as the text of a problem's file, or None."""
        self._multiple_operations: dict[str, MultipleOperations] = {}
        """Kernels that are more than one operation."""
        self._constant_buffers = ConstantBuffers(findings)

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._scratch, self._copy = Path(self._folder.name), Path(self._folder.name, "copy")
        shutil.copytree(self._layout.directory, self._copy, symlinks=True, ignore=_list_ignored)
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._prepared.values():
            run.channel.close()
        self._folder.cleanup()

    def start_run(
        self, file: str, model: nn.Module, inputs: Inputs
    ) -> Callable[[Any], None] | None:
        """Start a file's run before the judge's forward; return a function that takes its output.

        None if the file has run already, or cannot run.
        """
        if not isinstance(model, Replica):
            return None
        worker_model = model.kdrun_link.model
        if file == ORIGINAL:
            return lambda _: self._record_original_run(worker_model)
        name = file, worker_model.cls
        if self._pending.pop(name, None) is None:
            return None
        try:
            run = self._prepared.pop(name, None) or self._start_file(*name)
            message, files = self._make_message(worker_model, inputs)
            versions = [tensor._version for tensor in tensors(list(inputs))]
        except CannotJudge as error:
            self._findings.record_broken(_responsible_gate(file), file, str(error))
            return None
        run.send(message, files)
        self._prepare_next()

        def judge_output(output: Any) -> None:
            input_tensors = tensors(list(inputs))
            changed = [t._version != n for t, n in zip(input_tensors, versions, strict=True)]
            self._judge_run(run, worker_model, output, [*zip(input_tensors, changed, strict=True)])

        return judge_output

    def judge_operation(self, file: str, model: nn.Module, events: list[Event]) -> None:
        """Report a kernel that computes nothing, and record one that is more than one operation."""
        assert isinstance(model, Replica)
        worker_model = model.kdrun_link.model
        # torch itself calls _unsafe_view, so a kernel may consist of it.
        if not events and not any("_unsafe_view" in name for name in worker_model.called_names()):
            fault = "computes nothing: a view belongs into the parent"
            self._findings.record_verdict("rules", file, fault)
        elif sum(not event.constant for event in events) > 1:
            tree = self._layout.tree
            is_root = tree is not None and tree.root.path == file
            original = self._layout.directory / ORIGINAL if is_root else None
            with refuse_unreadable(f"{file}: forward"):
                operations = find_multiple_operations(
                    worker_model, original, self._scratch
                ) or find_products(worker_model, events, self._layout.directory / ORIGINAL)
            if operations:
                self._multiple_operations[file] = operations

    def finish(self, author_call_kernels: set[str], single_operation_kernels: set[str]) -> None:
        """Report faults that need all files: several operations, values read, files not run.

        `author_call_kernels`: kernels that do what one call of the original's author does.
        `single_operation_kernels`: kernels of whose operations all but one depend on no input
        there.
        """
        record = self._findings.record_verdict
        self._constant_buffers.judge()
        rejected = {
            file: operations
            for file, operations in self._multiple_operations.items()
            if not (operations.excused and file in author_call_kernels)
            and file not in single_operation_kernels
        }
        original_kernels = (
            find_kernel_operations(self._original_program, self._scratch)
            if rejected and self._original_program
            else set()
        )
        for file, operations in rejected.items():
            if operations.operations not in original_kernels:
                record("rules", file, operations.fault)
        self._own_inputs.judge()
        if self._original_reads_values and not self._options.specialised:
            fault = "reads values to decide what it computes"
            self._findings.warn(f"{ORIGINAL} {fault}: what other values lead to was not judged")
        if self._original_reads_values is False:
            for file in sorted(self._value_readers):
                fault = "reads values to decide what it computes; original.py reads none"
                record("rules", file, fault)
        if self._findings.all_good:
            for file, cls in self._pending:
                self._findings.record_broken(
                    _responsible_gate(file), file, f"{cls} was not run by itself"
                )

    def record_original_model(self, model: nn.Module, trial: int) -> None:
        """Record the original's buffers for a trial's seed, to find constant ones."""
        self._constant_buffers.record_original_model(model, trial)

    def record_map(
        self, parent: str | None, mapping: Mapping[str, str], children: Mapping[str, str]
    ) -> None:
        """Record which weights of a parent those of its children are."""
        self._constant_buffers.record_map(parent, mapping, children)

    def _record_original_run(self, model: WorkerModel) -> None:
        self._original_reads_values = model.reads_values
        self._original_program = format_last_program(model)

    def _prepare_next(self) -> None:
        """Let the files that run next be imported already, unless their weights are large."""
        total_bytes = 0
        for name, size in [*self._pending.items()][:_PREPARED_FILES]:
            total_bytes += size
            if total_bytes <= _PREPARED_BYTES and name not in self._prepared:
                with suppress(CannotJudge):  # The error is raised again when the file is needed.
                    self._prepared[name] = self._start_file(*name)

    def _start_file(self, file: str, cls: str) -> _StandaloneRun:
        """Let the server import a file by itself."""
        self._count += 1
        scratch = self._scratch / str(self._count)
        scratch.mkdir()
        is_component = cls == "Model"
        folder = scratch / "kernels" if is_component else self._copy
        if is_component:  # A component has to work without the other files.
            folder.mkdir()
            with suppress(OSError):  # If the file is missing, importing it there raises.
                shutil.copy(self._copy / file, folder)
        request = {
            "folder": str(folder),
            "aside": str(scratch),
            "file": str(folder / (Path(file).name if is_component else file)),
            "module": self._module_name(file) if is_component else Path(file).stem,
            "class": cls,
            "component": is_component,
            "kernel": self._layout.is_kernel(file),
            "small": self._sizes[file, cls] <= _REBUILD_BYTES,
            "training": self._options.mode == "train",
            "number": self._options.seed + self._options.seeds - 1,
            "threads": torch.get_num_threads(),
            "readable": [str(path) for path in [*system_paths(), folder]],
        }
        own_end, child_end = socket.socketpair()
        try:
            _get_server(os.getpid()).channel.send(request, [MemoryFile(child_end.detach())])
        except ConnectionLostError as error:
            _get_server.cache_clear()
            raise CannotJudge(f"{file}: the process that runs it alone is gone") from error
        return _StandaloneRun(file, Channel(own_end), scratch)

    def _module_name(self, file: str) -> str:
        """Return a file's module name: with its folder as a package for odd seeds, else without."""
        path = Path(file)
        return f"{path.parent.name}.{path.stem}" if self._options.seed % 2 else path.stem

    def _make_message(
        self, model: WorkerModel, inputs: Inputs
    ) -> tuple[dict[str, Any], list[MemoryFile]]:
        """Return the message with the judge's weights and inputs, and the files that hold them."""
        message_tensors: list[torch.Tensor] = []
        weights: list[list[Any]] = []
        with without_modes(), DisableTorchFunction():
            for slot, tensor in zip(model.slots, model.tensors(), strict=True):
                if tensor is not None:
                    weights.append([slot, _index_tensor(tensor, message_tensors)])
            try:
                encoded = encode(
                    [list(inputs[0]), inputs[1]], lambda t: _index_tensor(t, message_tensors)
                )
                descriptions, files = self._memory.write(message_tensors)
            except NotToldError as error:
                raise CannotJudge(f"{model.subject}: is given {error}") from error
            except OSError as error:
                raise MemoryError(f"no room for tensors: {error}") from error
        return {"weights": weights, "inputs": encoded, "tensors": descriptions}, files

    def _judge_run(
        self,
        run: _StandaloneRun,
        model: WorkerModel,
        output: Any,
        inputs: list[tuple[torch.Tensor, bool]],
    ) -> None:
        """Compare a file's output, and its inputs afterwards, with the judge's.

        `inputs`: each with whether the judge's forward changed it.
        """
        file = run.file
        try:
            fault = self._find_fault(run, output, inputs)
            self._findings.record_verdict(_responsible_gate(file), file, fault)
        except CannotJudge as error:
            self._findings.record_broken(_responsible_gate(file), file, str(error))
        finally:
            run.channel.close()
            shutil.rmtree(run.folder, ignore_errors=True)
        if model.reads_values:
            self._value_readers.add(file)
        self._own_inputs.record_own_call(file, [tensor for tensor, _ in inputs], output)

    def _find_fault(
        self, run: _StandaloneRun, output: Any, inputs: list[tuple[torch.Tensor, bool]]
    ) -> str | None:
        actual, answer = move_inputs(output, "cpu"), self._receive_answer(run)
        self._constant_buffers.record_file_buffers(run.file, answer.buffers)
        if answer.change is not None:
            path = _REGISTRIES.sub(".", to_one_line(answer.change)[:300])
            return f"keeps something from call to call: {path}"
        for expected, inputs_after in answer.outputs:
            if reason := compare(expected, actual, STEP).reason:
                return f"imported and run by itself, it gives something else: {reason}"
            if len(inputs_after) != len(inputs):
                raise CannotJudge(f"{run.message_start}, it says what cannot be read: its inputs")
            for input_after, (tensor, changed) in zip(inputs_after, inputs, strict=True):
                if input_after is None and changed:
                    return "imported and run by itself, it does not change its inputs"
                if input_after is not None and (
                    reason := compare(input_after, move_inputs(tensor, "cpu"), STEP).reason
                ):
                    return f"imported and run by itself, it changes its inputs: {reason}"
        return None

    def _receive_answer(self, run: _StandaloneRun) -> _StandaloneAnswer:
        """Return a file's answer; CannotJudge if it is an error or cannot be read."""
        try:
            answer, files = run.channel.receive()
        except ConnectionLostError:
            raise CannotJudge(f"{run.message_start}, it ends before it has answered") from None
        if isinstance(answer, dict) and "error" in answer:
            raise CannotJudge(
                f"{run.message_start}, it fails: {to_one_line(answer['error'])[:300]}"
            )
        try:
            received = self._memory.read(answer["tensors"], files)
            check_value(answer["outputs"])
            decoded = decode(answer["outputs"], received.__getitem__)
            if not decoded:
                raise ValueError("no output")
            outputs = [(output, list(after)) for output, after in decoded]
            buffers = {name: (received[n], float(d)) for name, n, d in answer["buffers"]}
            return _StandaloneAnswer(outputs, buffers, answer["keeps"])
        except (ConnectionLostError, NoTensorError, LookupError, TypeError, ValueError) as error:
            raise CannotJudge(
                f"{run.message_start}, it says what cannot be read: {error}"
            ) from error

    def record_own_weights(self, file: str, model: nn.Module) -> None:
        """Record the weights that a kernel's file draws, before others take their place."""
        if self._layout.is_kernel(file):
            self._own_inputs.record_own_weights(file, model)

    def watch_kernels(self, composed: nn.Module) -> AbstractContextManager[None]:
        """Return a context that records what the kernels' calls in the model show."""
        return self._own_inputs.watch(composed, self._layout.directory)


def _order_files(layout: Layout) -> dict[_FileClass, int]:
    """Return files, in the order in which they will probably run, with their weights' bytes.

    Steps come first, then kernels, the root, its step and the composed model.
    """
    root = layout.tree.root.path if layout.tree else None
    files: dict[_FileClass, int] = {}

    def add(component: str, *names: _FileClass) -> None:
        shapes = [n.weight_shapes.values() for n in layout.nodes(component)[:1]]
        size = 4 * sum(prod(shape) for node_shapes in shapes for shape in node_shapes)
        for name in names:
            files.setdefault(name, size)

    steps = [(step.parent, f"{step.folder}/refactored.py") for step in layout.steps]
    for is_root in (False, True):
        if is_root:
            for path in layout.components:
                if path != root:
                    add(path, (path, "Model"))
        for parent, refactored in steps:
            if parent is not None and (parent == root) == is_root:
                add(parent, (parent, "Model"), (refactored, "RefactoredModel"))
    if root:
        add(root, (root, "Model"), (COMPOSITION_TEST, "ComposedModel"))
    return files


def _responsible_gate(file: str) -> GateName:
    """Return the gate that reports a file's faults."""
    composed = file == COMPOSITION_TEST or file.endswith("/refactored.py")
    return "rules" if composed else "self-test"


def _list_ignored(folder: str, names: list[str]) -> Iterable[str]:
    """Return the names not to copy: each step's original, and all but folders and texts."""
    step = Path(folder).parent.name == "steps"
    return [n for n in names if not _is_importable(Path(folder, n)) or (step and n == ORIGINAL)]


def _is_importable(path: Path) -> bool:
    kind = path.lstat()
    text = path.suffix in {".py", ".json"} and kind.st_size <= LARGEST_SOURCE
    regular = stat.S_ISREG(kind.st_mode) or stat.S_ISLNK(kind.st_mode)
    return stat.S_ISDIR(kind.st_mode) or (text and regular)


def _index_tensor(tensor: torch.Tensor, known_tensors: list[torch.Tensor]) -> int:
    for n, candidate in enumerate(known_tensors):
        if candidate is tensor:
            return n
    known_tensors.append(tensor)
    return len(known_tensors) - 1
