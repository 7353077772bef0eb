"""Each file once more, beside the judge's forward of it: what does it do where nobody watches?

It runs in a process that looks like anybody's, on weights and inputs of a seed that nobody knows.
It has to give what the operations give that it was seen to make.
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
"""Small ones, as people take, and large ones, as torch takes by itself."""
_FEW = 16
"""Numbers that may well be one by chance."""
_SEEN = 1 << 20
"""Elements of an output that are looked at."""
_BEGUN, _BEGUN_BYTES = 2, 512 << 20
"""Files that are imported before the judge needs them, and bytes that their weights may have."""
_TWICE = 64 << 20
"""Bytes of weights up to which a file's model is built twice."""
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
"""Fewer pages: a fork takes 3 ms and not 14. Elsewhere than on Linux it means nothing."""

_Name = tuple[str, str]
"""A file, and the class in it that runs."""


def secret_seed() -> int:
    """A seed that no file can know."""
    return secrets.randbelow(secrets.choice(_SEEDS))


class _Server:
    """The process that forks for each file; it never runs one itself."""

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
    """A file of kdrun's without what it imports of kdrun: that is in the same names already."""
    lines = Path(str(module.__file__)).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("from runner."))


@lru_cache(maxsize=1)
def _server(process: int) -> _Server:
    """One for each process that judges."""
    return _Server()


def start() -> None:
    """Begin to import torch there, which takes a second."""
    _server(os.getpid())


@dataclass(slots=True)
class _Run:
    """A file that runs by itself."""

    file: str
    answers: Channel
    aside: Path

    @property
    def called(self) -> str:
        """How a sentence about it begins."""
        return f"{self.file}: imported and run by itself"

    def send(self, message: dict[str, Any], blocks: list[Block]) -> None:
        """Say what to run it on."""
        with suppress(ConnectionLostError):  # then it has ended, and has said why
            self.answers.send(message, blocks)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a file did by itself."""

    outputs: list[tuple[Any, list[torch.Tensor | None]]]
    """Of each call that is compared, what it gave, and each input; None where that stayed."""
    constants: dict[str, torch.Tensor]
    """Buffers that its model holds whatever the seed."""
    keeps: str | None
    """Where it holds something that a call changed."""


class Alone:
    """Runs each file by itself; what it does otherwise there is a fault of its."""

    def __init__(self, layout: Layout, options: VerifyOptions, findings: Findings) -> None:
        """`options`: with a seed that no file knows."""
        self._layout, self._options, self._findings = layout, options, findings
        self._memory = Memory()
        self._sizes = _in_order(layout)
        """Bytes of the weights of each file."""
        self._waiting = dict(self._sizes)
        """Files that did not run yet."""
        self._ready: dict[_Name, _Run] = {}
        """Files that are imported, and wait for inputs."""
        self._count = 0
        self._silent: set[str] = set()
        """Files whose output on their own inputs is constant."""
        self._heard: set[str] = set()
        """Kernels whose output in the model is not."""
        self._reading: set[str] = set()
        """Files whose program may be another one for other values."""
        self._original_reads = True
        self._original: str | None = None
        """Its program, as a problem's file."""
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
        """The judge is about to do what a file was seen to do: what takes the output.

        None where the file has run by itself already.
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
        """Whether what a kernel was just seen to do is one operation."""
        assert isinstance(model, Replica)
        known = model.kdrun_link.model
        if not events and not known.asks_for("_unsafe_view"):  # which torch itself takes
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
        """Report what needed all files: several operations, values that are read, files not run.

        `as_the_author_calls`: kernels that do what one call of the original's author does.
        `one_in_the_model`: kernels of whose operations all but one depend on no input there.
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
        """Learn from the original, with the weights of a trial's seed, what is constant in it."""
        self._constants.original_built(model, trial)

    def _original_ran(self, model: Model) -> None:
        self._original_reads = model.reads_values
        self._original = text_of(model)

    def _begin_next(self) -> None:
        """Import the files that run next, unless they are large."""
        begun = 0
        for name, size in [*self._waiting.items()][:_BEGUN]:
            begun += size
            if begun <= _BEGUN_BYTES and name not in self._ready:
                with suppress(CannotJudge):  # said where it is needed
                    self._ready[name] = self._started(*name)

    def _started(self, file: str, cls: str) -> _Run:
        """Let a file be imported by itself."""
        self._count += 1
        aside = self._aside / str(self._count)
        aside.mkdir()
        component = cls == "Model"
        folder = aside / "kernels" if component else self._copy
        if component:  # it stands alone
            folder.mkdir()
            with suppress(OSError):  # where it is missing, it is told so there
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
        """What a file is imported as: by itself, or, where a secret says so, in a package."""
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
        """Compare what a file gave with what the judge has, and its inputs afterwards.

        `inputs`: with whether the judge's forward changed them.
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
        """Return what a file answered. CannotJudge where that is an error, or no answer."""
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
        """Hear which kernels give more than one number in the composed model."""
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
    """Whether the first elements are finite numbers of which two differ."""
    some = tensor.detach().flatten()[:_SEEN]
    if some.dtype.itemsize == 1:  # torch compares no float8
        some = some.float()
    finite = some[some.isfinite()]
    return bool((finite != finite[:1]).any())


def _in_order(layout: Layout) -> dict[_Name, int]:
    """Files as the judge will probably run them, and the bytes of their weights as the tree says.

    Steps, kernels, then the root, its step, and the composed model.
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
    """The gate that says what is wrong with a file."""
    composed = file == COMPOSITION_TEST or file.endswith("/refactored.py")
    return "rules" if composed else "self-test"


def _but_texts(folder: str, names: list[str]) -> Iterable[str]:
    """What is not copied: all but folders and texts that files import, and originals of steps."""
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
