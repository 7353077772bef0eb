"""The last question to each file: what does it do where nobody watches, on numbers it cannot know?

Each runs once more in a process that looks like anybody's, on weights and a seed that are drawn
for this. It has to give what the operations give that it was seen to make.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from runner.problems import structure
from runner.torch_internals import without_modes
from runner.verify import plain_run, sandbox, wire
from runner.verify.compare import STEP, compare, compared_elements
from runner.verify.components import SelfTests, components_in, load_component, shown
from runner.verify.findings import Findings
from runner.verify.foreign import ForeignFiles
from runner.verify.health import constant_output
from runner.verify.layout import COMPOSITION_TEST, KERNEL_FOLDER, ORIGINAL, Layout
from runner.verify.leaves import tensors
from runner.verify.loading_files import CannotJudge
from runner.verify.operation import meta_of
from runner.verify.replica import Replica
from runner.verify.results import GateName
from runner.verify.running import Bench, Inputs
from runner.verify.sandbox import installed
from runner.verify.spelled import more_than_one
from runner.verify.watching import Event
from runner.verify.weights import vary
from runner.verify.wire import Channel, ConnectionLostError, decode, encode, read_tensors
from runner.verify.worker import shared_memory

_TOOLS = (wire, sandbox, structure)
_MORE = 1 << 31
_FEW = 16
"""Numbers that may well be one by chance."""


class _Server:
    """The process that forks for each file; it never runs one itself."""

    def __init__(self) -> None:
        mine, its = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-"], stdin=subprocess.PIPE, pass_fds=[its.fileno()]
        )
        texts = [_text(plain_run), "tools = {}"]
        texts += [f"exec({_text(tool)!r}, tools)" for tool in _TOOLS]
        texts.append(f"serve({its.fileno()}, tools)")
        assert self.process.stdin is not None
        with self.process.stdin as stdin:
            stdin.write("\n".join(texts).encode())
        its.close()
        self.channel = Channel(mine)


def _text(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _server(process: int) -> _Server:
    """One for each process that judges."""
    return _Server()


def start() -> None:
    """Begin to import torch there, which takes a second."""
    _server(os.getpid())


@dataclass(frozen=True, slots=True)
class _Asked:
    """One file, and what of it is to run."""

    file: str
    cls: str
    model: nn.Module
    inputs: Inputs | None = None
    """None where the file draws its own."""


class Alone:
    """Asks each file; what it does otherwise is a fault of its."""

    def __init__(
        self,
        files: ForeignFiles,
        layout: Layout,
        bench: Bench,
        tests: SelfTests,
        as_the_author_calls: set[str],
        findings: Findings,
    ) -> None:
        """`as_the_author_calls`: kernel files that are one call of the original's author."""
        self._files, self._layout = files, layout
        self._as_the_author_calls = as_the_author_calls
        self._tests, self._findings = tests, findings
        number = bench.options.seed if bench.options.specialised else secrets.randbelow(_MORE)
        self._bench = replace(bench, options=replace(bench.options, seed=number))
        self._count = 0
        self._silent: set[str] = set()
        """Kernels whose output on their own inputs is constant."""

    def judge(self) -> None:
        """Every file of the directory."""
        with tempfile.TemporaryDirectory(prefix="files-", dir=shared_memory()) as folder:
            self._aside, self._copy = Path(folder), Path(folder, "copy")
            shutil.copytree(self._files.directory, self._copy, ignore=_but_texts)
            self._judge()

    def judge_kernels(self) -> None:
        """Whether each kernel is one operation, where something else is wrong already."""
        bench = self._bench
        with tempfile.TemporaryDirectory(prefix="files-") as folder:
            self._aside = Path(folder)
            for path in filter(self._layout.is_kernel, self._layout.components):
                with suppress(CannotJudge):  # why it does not run, its self-test says
                    asked = self._component(path)
                    inputs = load_component(self._files, bench, path, path).draw(0)
                    watch = bench.watch(asked.model)
                    bench.forward(f"{path}: forward", asked.model, inputs, 0, watch)
                    fault = self._kernel_fault(asked, watch.trace.events)
                    self._findings.found("rules", path, fault)

    def _judge(self) -> None:
        directory = self._bench.directory
        for path in self._layout.components:
            inputs = self._asking("self-test", path, partial(self._component, path))
            step = self._layout.step_of(path)
            if step is not None and inputs is not None:
                file = f"{step.folder}/refactored.py"
                load = partial(self._files.load_step, directory / step.folder)
                ask = partial(self._parent, file, "RefactoredModel", load, inputs)
                self._asking("rules", file, ask)
        author = self._asking("rules", ORIGINAL, self._original)
        if author is not None:
            load = partial(self._files.load, directory / COMPOSITION_TEST)
            ask = partial(self._parent, COMPOSITION_TEST, "ComposedModel", load, author)
            self._asking("rules", COMPOSITION_TEST, ask)
            if self._silent:
                self._hear(ask().model, author)

    def _hear(self, composed: nn.Module, inputs: Inputs) -> None:
        """Blame kernels whose own inputs give one number throughout, if the model's do not."""
        directory = self._bench.directory
        found = components_in(composed, directory / KERNEL_FOLDER, directory)
        heard: set[str] = set()

        def listening(file: str, forward: Callable[..., Any]) -> Callable[..., Any]:
            def listen(*args: Any, **kwargs: Any) -> Any:
                output = forward(*args, **kwargs)
                if constant_output(output) is None:
                    heard.add(file)
                return output

            return listen

        for module, file in found.values():
            module.forward = listening(file, module.forward)
        self._bench.forward(f"{COMPOSITION_TEST}: forward", composed, _again(inputs), 0)
        for file in sorted(self._silent & heard):
            fault = "gives one number throughout on its own inputs, and others in the model"
            self._findings.found("self-test", file, f"{fault}: draw what reaches it there")

    def _component(self, path: str) -> _Asked:
        module = self._files.load(self._bench.directory / path)
        return _Asked(path, "Model", self._bench.build(path, module.Model, 0))

    def _original(self) -> _Asked:
        build = self._files.problem().build
        return _Asked(ORIGINAL, "Model", self._bench.build(f"{ORIGINAL}: Model", build, 0))

    def _parent(
        self, file: str, cls: str, load: Callable[[], ModuleType], inputs: Inputs
    ) -> _Asked:
        model = self._bench.build(f"{file}: {cls}", getattr(load(), cls), 0)
        return _Asked(file, cls, model, inputs)

    def _asking(self, gate: GateName, file: str, ask: Callable[[], _Asked]) -> Inputs | None:
        """Run one file; the inputs that it ran on."""
        try:
            inputs, fault = self._compared(ask())
        except CannotJudge as error:
            self._findings.broken(gate, file, str(error))
            return None
        if fault:
            self._findings.found(gate, file, fault)
        return inputs

    def _compared(self, asked: _Asked) -> tuple[Inputs, str | None]:
        bench = self._bench
        generator = torch.Generator().manual_seed(bench.options.seed)
        vary(asked.model, generator, only_defaults=True)  # the others are random already
        inputs, expected = self._run(asked)
        contract = self._tests.contracts.get(asked.file)
        given = tuple(map(meta_of, tensors(list(inputs))))
        if contract is not None and contract.inputs != given:
            watched = f"and {shown(contract.inputs)} where it is watched"
            return inputs, f"imported by itself, get_inputs() gives {shown(given)}, {watched}"
        bench.seed(0)
        kernel = self._layout.is_kernel(asked.file)
        watch = bench.watch(asked.model) if kernel else None
        what = f"{asked.file}: forward"
        actual, seen = bench.forward(what, asked.model, _again(inputs), 0, watch)
        if kernel and constant_output(expected) and compared_elements(expected) > _FEW:
            self._silent.add(asked.file)
        if seen:
            fault = self._kernel_fault(asked, seen.trace.events)
            self._findings.found("rules", asked.file, fault)
        found = compare(expected, actual, STEP)
        if not found.reason:
            return inputs, None
        return inputs, f"imported and run by itself, it gives something else: {found.reason}"

    def _kernel_fault(self, asked: _Asked, events: list[Event]) -> str | None:
        assert isinstance(asked.model, Replica)
        model = asked.model.kdrun_link.model
        if not events and not model.asks_for("_unsafe_view"):  # which torch itself takes
            return "computes nothing: a view belongs into the parent"
        if sum(not event.constant for event in events) < 2:
            return None
        tree = self._layout.tree
        root = tree.root if tree else None
        lone = root is not None and root.path == asked.file
        original = self._files.directory / ORIGINAL if lone else None
        called = asked.file in self._as_the_author_calls
        return more_than_one(model, original, self._aside, called=called)

    def _run(self, asked: _Asked) -> tuple[Inputs, Any]:
        self._count += 1
        aside = self._aside / f"alone{self._count}"
        aside.mkdir()
        folder = self._copy
        if asked.cls == "Model" and asked.file != ORIGINAL:  # it stands alone
            folder = aside / "file"
            folder.mkdir()
            shutil.copy(self._copy / asked.file, folder)
        file = folder / (asked.file if folder is self._copy else Path(asked.file).name)
        assert isinstance(asked.model, Replica)
        places, held = asked.model.kdrun_link.model.places()
        inputs = None if asked.inputs is None else encode(asked.inputs, lambda t: _add(t, held))
        values = self._aside / f"alone{self._count}.values"
        request = {
            "folder": str(folder),
            "aside": str(aside),
            "file": str(file),
            "class": asked.cls,
            "arguments": asked.cls == "Model" or self._has_arguments(asked),
            "paths": sys.path if asked.file == ORIGINAL else [],
            "often": asked.cls == "Model" and asked.file != ORIGINAL,
            "training": self._bench.options.mode == "train",
            "weights": places,
            "inputs": inputs,
            "number": self._bench.options.seed,
            "threads": torch.get_num_threads(),
            "readable": None
            if asked.file == ORIGINAL
            else [str(path) for path in [*installed(), folder, values]],
            "values": str(values),
            "tensors": wire.write_tensors(values, held),
        }
        server = _server(os.getpid())
        try:
            server.channel.send(request)
            code = server.channel.receive()
        except ConnectionLostError as error:
            _server.cache_clear()
            raise CannotJudge(f"{asked.file}: the process that runs it alone is gone") from error
        finally:
            values.unlink(missing_ok=True)
        try:
            return self._read(asked, aside, code)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _has_arguments(self, asked: _Asked) -> bool:
        text = (self._copy / asked.file).read_text(encoding="utf-8", errors="replace")
        return asked.cls == "RefactoredModel" and "def get_init_inputs" in text

    def _read(self, asked: _Asked, aside: Path, code: object) -> tuple[Inputs, Any]:
        where = f"{asked.file}: imported and run by itself"
        try:
            answer = json.loads((aside / "answer.json").read_bytes())
        except (OSError, ValueError):
            raise CannotJudge(f"{where}, it ends with exit code {code}") from None
        if "error" in answer:
            said = " ".join(str(answer["error"]).split())[:300]
            raise CannotJudge(f"{where}, it fails: {said}")
        try:
            given = read_tensors(aside / "inputs", answer["given"])
            made = read_tensors(aside / "outputs", answer["made"])
            args, kwargs = decode(answer["inputs"], given.__getitem__)
            return (tuple(args), kwargs), decode(answer["output"], made.__getitem__)
        except (ConnectionLostError, LookupError, TypeError, ValueError) as error:
            raise CannotJudge(f"{where}, it says what cannot be read: {error}") from error


def _but_texts(folder: str, names: list[str]) -> Iterable[str]:
    """What is not copied: all but folders and texts that files import, and originals of steps."""
    step = Path(folder).parent.name == "steps"
    texts = {n for n in names if n.endswith((".py", ".json")) and not (step and n == ORIGINAL)}
    return [n for n in names if n not in texts and not Path(folder, n).is_dir()]


def _add(tensor: torch.Tensor, held: list[torch.Tensor]) -> int:
    held.append(tensor)
    return len(held) - 1


def _again(inputs: Inputs) -> Inputs:
    """The same inputs, for a forward that may write into them."""
    with without_modes():
        copies = {id(t): t.clone() for t in tensors(list(inputs))}
    args, kwargs = inputs
    return tuple(_each(a, copies) for a in args), {k: _each(v, copies) for k, v in kwargs.items()}


def _each(value: Any, copies: dict[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return copies[id(value)]
    if isinstance(value, dict):
        return {key: _each(item, copies) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_each(item, copies) for item in value)
    return value
