"""Runs each file once more by itself and compares the result with the judge's forward of it.

A file runs in a process that looks like any user's, on weights and inputs from a seed that nobody
can know. Its output has to be that of the operations that the worker reported.
"""

import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import torch
from torch import nn

from runner.problems import nested_values
from runner.torch_internals import DisableTorchFunction, without_modes
from runner.untrusted_files import LARGEST_SOURCE
from runner.verify.findings import Findings
from runner.verify.gates.compare import STEP, compare, count_elements
from runner.verify.gates.health import constant_output
from runner.verify.gates.self_test import find_components
from runner.verify.guard import (
    retained_state,
    sandbox,
    shared_memory,
    standalone_process,
    wire_format,
)
from runner.verify.guard.claims import check_value
from runner.verify.guard.constant_buffers import Constants
from runner.verify.guard.one_operation import Several, kernels_of, more_than_one, text_of
from runner.verify.guard.replica import Model, Replica
from runner.verify.guard.sandbox import installed
from runner.verify.guard.shared_memory import Block, Memory, NoTensorError, NotToldError
from runner.verify.guard.wire_format import Channel, ConnectionLostError, decode, encode
from runner.verify.guard.worker_client import one_line, reading
from runner.verify.layout import COMPOSITION_TEST, KERNEL_FOLDER, ORIGINAL, Layout
from runner.verify.loading_files import CannotJudge
from runner.verify.options import VerifyOptions
from runner.verify.results import GateName
from runner.verify.runtime.input_moves import move_inputs
from runner.verify.runtime.operation_watch import Event
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.runner import Inputs

_TOOLS = (shared_memory, wire_format, sandbox, retained_state, nested_values)
_SEEDS = (1000, 1 << 48)
"""Limits of secret seeds: small ones, as people choose, and large ones, as torch chooses itself."""
_FEW = 16
"""Largest number of elements that may well be equal by chance."""
_SEEN = 1 << 20
"""Number of elements of an output that are examined."""
_BEGUN, _BEGUN_BYTES = 2, 512 << 20
"""Number of files that are imported before the judge needs them, and the limit on their weights."""
_TWICE = 64 << 20
"""Bytes of weights up to which a file's model is built twice."""
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
"""Huge pages mean fewer pages: a fork takes 3 ms instead of 14. Only Linux reads these settings."""

_Name = tuple[str, str]
"""A file, and the class in it that runs."""


def secret_seed() -> int:
    """Return a random seed that no file can know."""
    return secrets.randbelow(secrets.choice(_SEEDS))


class _Server:
    """The process that forks for each file and never runs one itself."""

    def __init__(self) -> None:
        mine, its = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-"],
            stdin=subprocess.PIPE,
            pass_fds=[its.fileno()],
            env=os.environ | _HUGE_PAGES,
        )
        unset = [f"os.environ.pop({name!r}, None)" for name in _HUGE_PAGES]
        texts = [_text(standalone_process), *unset, "tools = {}"]
        texts += [f"exec({_text(tool)!r}, tools)" for tool in _TOOLS]
        texts.append(f"serve({its.fileno()}, tools)")
        assert self.process.stdin is not None
        with self.process.stdin as stdin:
            stdin.write("\n".join(texts).encode())
        its.close()
        self.channel = Channel(mine)


def _text(module: ModuleType) -> str:
    """Return a module's source without its imports of kdrun.

    Those names are in the same dict already.
    """
    lines = Path(str(module.__file__)).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("from runner."))


@lru_cache(maxsize=1)
def _server(process: int) -> _Server:
    """Return the server of the judging process with this id."""
    return _Server()


def start() -> None:
    """Start the server early, because importing torch there takes a second."""
    _server(os.getpid())


@dataclass(slots=True)
class _Run:
    """A file that runs by itself."""

    file: str
    answers: Channel
    aside: Path

    @property
    def called(self) -> str:
        """Beginning of messages about it."""
        return f"{self.file}: imported and run by itself"

    def send(self, message: dict[str, Any], blocks: list[Block]) -> None:
        """Send it the weights and inputs."""
        # If the connection is lost, the process has ended, and reading its answer tells that.
        with suppress(ConnectionLostError):
            self.answers.send(message, blocks)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A file's answer after it has run by itself."""

    outputs: list[tuple[Any, list[torch.Tensor | None]]]
    """For each compared call, the output and the inputs afterwards, None if unchanged."""
    constants: dict[str, torch.Tensor]
    """Buffers that are the same for every seed."""
    keeps: str | None
    """Path of a Python value that changed from call to call, or None."""


class Alone:
    """Runs each file by itself and reports how it differs from the judge's own forward."""

    def __init__(self, layout: Layout, options: VerifyOptions, findings: Findings) -> None:
        """`options`: with a seed that no file knows."""
        self._layout, self._options, self._findings = layout, options, findings
        self._memory = Memory()
        self._sizes = _in_order(layout)
        """Bytes of the weights of each file, in the order in which they will probably run."""
        self._waiting = dict(self._sizes)
        """Files that did not run yet."""
        self._ready: dict[_Name, _Run] = {}
        """Files that are imported and wait for inputs."""
        self._count = 0
        self._silent: set[str] = set()
        """Files whose output on their own inputs is constant."""
        self._heard: set[str] = set()
        """Kernels whose output in the composed model is not constant."""
        self._reading: set[str] = set()
        """Files whose program may change with the values."""
        self._original_reads = True
        self._original: str | None = None
        """The original's program as the text of a problem's file, or None."""
        self._several: dict[str, Several] = {}
        """Kernels that are more than one operation."""
        self._constants = Constants(layout, findings)

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._aside, self._copy = Path(self._folder.name), Path(self._folder.name, "copy")
        shutil.copytree(self._layout.directory, self._copy, symlinks=True, ignore=_but_texts)
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._ready.values():
            run.answers.close()
        self._folder.cleanup()

    def beside(self, file: str, model: nn.Module, inputs: Inputs) -> Callable[[Any], None] | None:
        """Start a file's run before the judge's forward; return a function that takes its output.

        None if the file has run already, or cannot run.
        """
        if not isinstance(model, Replica):
            return None
        known = model.kdrun_link.model
        if file == ORIGINAL:
            return lambda _: self._original_ran(known)
        name = file, known.cls
        if self._waiting.pop(name, None) is None:
            return None
        try:
            run = self._ready.pop(name, None) or self._started(*name)
            message, blocks = self._on(known, inputs)
            versions = [tensor._version for tensor in tensors(list(inputs))]
        except CannotJudge as error:
            self._findings.record_broken(_gate(file), file, str(error))
            return None
        run.send(message, blocks)
        self._begin_next()

        def done(output: Any) -> None:
            given = tensors(list(inputs))
            changed = [t._version != n for t, n in zip(given, versions, strict=True)]
            self._judge(run, known, output, [*zip(given, changed, strict=True)])

        return done

    def judge_operation(self, file: str, model: nn.Module, events: list[Event]) -> None:
        """Report a kernel that computes nothing, and record one that is more than one operation."""
        assert isinstance(model, Replica)
        known = model.kdrun_link.model
        # torch itself calls _unsafe_view, so a kernel may consist of it.
        if not events and not known.asks_for("_unsafe_view"):
            fault = "computes nothing: a view belongs into the parent"
            self._findings.record_verdict("rules", file, fault)
        elif sum(not event.constant for event in events) > 1:
            tree = self._layout.tree
            lone = tree is not None and tree.root.path == file
            original = self._layout.directory / ORIGINAL if lone else None
            with reading(f"{file}: forward"):
                several = more_than_one(known, original, self._aside)
            if several:
                self._several[file] = several

    def finish(self, as_the_author_calls: set[str], one_in_the_model: set[str]) -> None:
        """Report faults that need all files: several operations, values read, files not run.

        `author_call_kernels`: kernels that do what one call of the original's author does.
        `single_operation_kernels`: kernels of whose operations all but one depend on no input
        there.
        """
        found = self._findings.record_verdict
        self._constants.judge()
        more = {
            file: several
            for file, several in self._several.items()
            if not (several.excused and file in as_the_author_calls)
            and file not in one_in_the_model
        }
        known = kernels_of(self._original, self._aside) if more and self._original else set()
        for file, several in more.items():
            if several.operations not in known:
                found("rules", file, several.fault)
        for file in sorted(self._silent & self._heard):
            fault = "gives one number throughout on its own inputs, and others in the model"
            found("self-test", file, f"{fault}: draw what reaches it there")
        if not self._original_reads:
            for file in sorted(self._reading):
                fault = "reads values to decide what it computes; original.py reads none"
                found("rules", file, fault)
        if self._findings.all_good:
            for file, cls in self._waiting:
                self._findings.record_broken(_gate(file), file, f"{cls} was not run by itself")

    def original_built(self, model: nn.Module, trial: int) -> None:
        """Record the original's buffers for a trial's seed, to find constant ones."""
        self._constants.original_built(model, trial)

    def _original_ran(self, model: Model) -> None:
        self._original_reads = model.reads_values
        self._original = text_of(model)

    def _begin_next(self) -> None:
        """Let the files that run next be imported already, unless their weights are large."""
        begun = 0
        for name, size in [*self._waiting.items()][:_BEGUN]:
            begun += size
            if begun <= _BEGUN_BYTES and name not in self._ready:
                with suppress(CannotJudge):  # The error is raised again when the file is needed.
                    self._ready[name] = self._started(*name)

    def _started(self, file: str, cls: str) -> _Run:
        """Let the server import a file by itself."""
        self._count += 1
        aside = self._aside / str(self._count)
        aside.mkdir()
        component = cls == "Model"
        folder = aside / "kernels" if component else self._copy
        if component:  # A component has to work without the other files.
            folder.mkdir()
            with suppress(OSError):  # If the file is missing, importing it there raises.
                shutil.copy(self._copy / file, folder)
        request = {
            "folder": str(folder),
            "aside": str(aside),
            "file": str(folder / (Path(file).name if component else file)),
            "module": self._module(file) if component else Path(file).stem,
            "class": cls,
            "component": component,
            "kernel": self._layout.is_kernel(file),
            "small": self._sizes[file, cls] <= _TWICE,
            "training": self._options.mode == "train",
            "number": self._options.seed + self._options.seeds - 1,
            "threads": torch.get_num_threads(),
            "readable": [str(path) for path in [*installed(), folder]],
        }
        mine, its = socket.socketpair()
        try:
            _server(os.getpid()).channel.send(request, [Block(its.detach())])
        except ConnectionLostError as error:
            _server.cache_clear()
            raise CannotJudge(f"{file}: the process that runs it alone is gone") from error
        return _Run(file, Channel(mine), aside)

    def _module(self, file: str) -> str:
        """Return a file's module name: with its folder as a package for odd seeds, else without."""
        path = Path(file)
        return f"{path.parent.name}.{path.stem}" if self._options.seed % 2 else path.stem

    def _on(self, model: Model, inputs: Inputs) -> tuple[dict[str, Any], list[Block]]:
        """Return the message with the judge's weights and inputs, and the files that hold them."""
        held: list[torch.Tensor] = []
        weights: list[list[Any]] = []
        with without_modes(), DisableTorchFunction():
            for place, tensor in zip(model.slots, model.tensors(), strict=True):
                if tensor is not None:
                    weights.append([place, _add(tensor, held)])
            try:
                told = encode([list(inputs[0]), inputs[1]], lambda t: _add(t, held))
                metas, blocks = self._memory.write(held)
            except NotToldError as error:
                raise CannotJudge(f"{model.what}: is given {error}") from error
            except OSError as error:
                raise MemoryError(f"no room for tensors: {error}") from error
        return {"weights": weights, "inputs": told, "tensors": metas}, blocks

    def _judge(
        self, run: _Run, model: Model, output: Any, inputs: list[tuple[torch.Tensor, bool]]
    ) -> None:
        """Compare a file's output, and its inputs afterwards, with the judge's.

        `inputs`: each with whether the judge's forward changed it.
        """
        file = run.file
        try:
            fault = self._fault(run, output, inputs)
            self._findings.record_verdict(_gate(file), file, fault)
        except CannotJudge as error:
            self._findings.record_broken(_gate(file), file, str(error))
        finally:
            run.answers.close()
            shutil.rmtree(run.aside, ignore_errors=True)
        if model.reads_values:
            self._reading.add(file)
        floats = any(tensor.is_floating_point() for tensor in tensors(output))
        if floats and count_elements(output) > _FEW and constant_output(output):
            self._silent.add(file)

    def _fault(self, run: _Run, output: Any, inputs: list[tuple[torch.Tensor, bool]]) -> str | None:
        actual, answer = move_inputs(output, "cpu"), self._answered(run)
        self._constants.of_file(run.file, answer.constants)
        if answer.keeps is not None:
            return f"keeps something from call to call: {one_line(answer.keeps)[:300]}"
        for expected, left in answer.outputs:
            if reason := compare(expected, actual, STEP).reason:
                return f"imported and run by itself, it gives something else: {reason}"
            if len(left) != len(inputs):
                raise CannotJudge(f"{run.called}, it says what cannot be read: its inputs")
            for own, (tensor, changed) in zip(left, inputs, strict=True):
                if own is None and changed:
                    return "imported and run by itself, it does not change its inputs"
                if own is not None and (
                    reason := compare(own, move_inputs(tensor, "cpu"), STEP).reason
                ):
                    return f"imported and run by itself, it changes its inputs: {reason}"
        return None

    def _answered(self, run: _Run) -> _Answer:
        """Return a file's answer; CannotJudge if it is an error or cannot be read."""
        try:
            answer, blocks = run.answers.receive()
        except ConnectionLostError:
            raise CannotJudge(f"{run.called}, it ends before it has answered") from None
        if isinstance(answer, dict) and "error" in answer:
            raise CannotJudge(f"{run.called}, it fails: {one_line(answer['error'])[:300]}")
        try:
            held = self._memory.read(answer["tensors"], blocks)
            check_value(answer["outputs"])
            decoded = decode(answer["outputs"], held.__getitem__)
            if not decoded:
                raise ValueError("no output")
            outputs = [(output, list(after)) for output, after in decoded]
            constants = {name: held[n] for name, n in answer["constants"]}
            return _Answer(outputs, constants, answer["keeps"])
        except (ConnectionLostError, NoTensorError, LookupError, TypeError, ValueError) as error:
            raise CannotJudge(f"{run.called}, it says what cannot be read: {error}") from error

    @contextmanager
    def listening(self, composed: nn.Module) -> Iterator[None]:
        """Record, in the body, which kernels return more than one number in the composed model."""
        directory = self._layout.directory
        found = find_components(composed, directory / KERNEL_FOLDER, directory)

        def heard_by(file: str, forward: Callable[..., Any]) -> Callable[..., Any]:
            def listen(*args: Any, **kwargs: Any) -> Any:
                output = forward(*args, **kwargs)
                if file not in self._heard:
                    with without_modes():
                        if any(map(_varies, tensors(output))):
                            self._heard.add(file)
                return output

            return listen

        before = [(module, vars(module).get("forward")) for module, _ in found.values()]
        for module, file in found.values():
            module.forward = heard_by(file, module.forward)
        try:
            yield
        finally:
            for module, forward in before:
                vars(module).pop("forward")
                if forward is not None:
                    module.forward = forward


def _varies(tensor: torch.Tensor) -> bool:
    """Return whether two of the first elements are finite and differ."""
    some = tensor.detach().flatten()[:_SEEN]
    if some.dtype.itemsize == 1:  # torch cannot compare float8.
        some = some.float()
    finite = some[some.isfinite()]
    return bool((finite != finite[:1]).any())


def _in_order(layout: Layout) -> dict[_Name, int]:
    """Return files, in the order in which they will probably run, with their weights' bytes.

    Steps come first, then kernels, the root, its step and the composed model.
    """
    root = layout.tree.root.path if layout.tree else None
    files: dict[_Name, int] = {}

    def add(component: str, *names: _Name) -> None:
        shapes = [n.weight_shapes.values() for n in layout.nodes(component)[:1]]
        size = 4 * sum(prod(shape) for each in shapes for shape in each)
        for name in names:
            files.setdefault(name, size)

    steps = [(step.parent, f"{step.folder}/refactored.py") for step in layout.steps]
    for last in (False, True):
        if last:
            for path in layout.components:
                if path != root:
                    add(path, (path, "Model"))
        for parent, refactored in steps:
            if parent is not None and (parent == root) == last:
                add(parent, (parent, "Model"), (refactored, "RefactoredModel"))
    if root:
        add(root, (root, "Model"), (COMPOSITION_TEST, "ComposedModel"))
    return files


def _gate(file: str) -> GateName:
    """Return the gate that reports a file's faults."""
    composed = file == COMPOSITION_TEST or file.endswith("/refactored.py")
    return "rules" if composed else "self-test"


def _but_texts(folder: str, names: list[str]) -> Iterable[str]:
    """Return the names not to copy: each step's original, and all but folders and texts."""
    step = Path(folder).parent.name == "steps"
    return [n for n in names if not _is_imported(Path(folder, n)) or (step and n == ORIGINAL)]


def _is_imported(path: Path) -> bool:
    kind = path.lstat()
    text = path.suffix in {".py", ".json"} and kind.st_size <= LARGEST_SOURCE
    regular = stat.S_ISREG(kind.st_mode) or stat.S_ISLNK(kind.st_mode)
    return stat.S_ISDIR(kind.st_mode) or (text and regular)


def _add(tensor: torch.Tensor, held: list[torch.Tensor]) -> int:
    for n, other in enumerate(held):
        if other is tensor:
            return n
    held.append(tensor)
    return len(held) - 1
