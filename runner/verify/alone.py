"""The last question to each file: what does it do where nobody watches, on numbers it cannot know?

Each runs once more in a process that looks like anybody's, on weights and inputs that it draws
there from a seed drawn for this. It has to give what the operations give that it was seen to make.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import deque
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
from runner.verify import memory, plain_run, sandbox, wire
from runner.verify.apart import one_line, reading
from runner.verify.claims import check_value
from runner.verify.compare import STEP, compare, compared_elements
from runner.verify.components import SelfTests, components_in, load_component, shown
from runner.verify.findings import Findings
from runner.verify.foreign import ForeignFiles
from runner.verify.health import constant_output
from runner.verify.layout import COMPOSITION_TEST, KERNEL_FOLDER, ORIGINAL, Layout
from runner.verify.leaves import tensors
from runner.verify.loading_files import CannotJudge
from runner.verify.memory import Block, Memory, NoTensorError
from runner.verify.operation import meta_of
from runner.verify.replica import Model, Replica
from runner.verify.results import GateName
from runner.verify.running import Bench, Inputs
from runner.verify.sandbox import installed
from runner.verify.spelled import more_than_one
from runner.verify.watching import Event
from runner.verify.weights import vary, weights_of
from runner.verify.wire import Channel, ConnectionLostError, decode, encode

_TOOLS = (memory, wire, sandbox, structure)
_SEEDS = 1000
"""Small ones, as people take."""
_FEW = 16
"""Numbers that may well be one by chance."""
_SIDE_BY_SIDE = 256 << 20
"""Bytes of weights up to which the next file begins while one is judged."""
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
"""Fewer pages: a fork takes 3 ms and not 14. Elsewhere than on Linux it means nothing."""


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
        texts = [_text(plain_run), *unset, "tools = {}"]
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """One file, and what of it is to run."""

    file: str
    cls: str
    replica: nn.Module
    inputs: Inputs | None = None
    """None where the file draws its own."""

    @property
    def model(self) -> Model:
        """What is known of it."""
        assert isinstance(self.replica, Replica)
        return self.replica.kdrun_link.model


@dataclass(slots=True)
class _Begun:
    """A file that runs by itself."""

    gate: GateName
    asked: _Asked
    answers: Channel
    aside: Path
    then: Callable[[Inputs, nn.Module], None]
    """What is done once its inputs are known, and its weights are in the judge's model."""


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
        number = bench.options.seed if bench.options.specialised else secrets.randbelow(_SEEDS)
        self._bench = replace(bench, options=replace(bench.options, seed=number))
        self._count = 0
        self._memory = Memory()
        self._silent: set[str] = set()
        """Kernels whose output on their own inputs is constant."""
        self._reading: set[str] = set()
        """Files whose program may be another one for other values."""

    def judge(self) -> None:
        """Every file of the directory."""
        with tempfile.TemporaryDirectory() as folder:
            self._aside, self._copy = Path(folder), Path(folder, "copy")
            shutil.copytree(self._files.directory, self._copy, symlinks=True, ignore=_but_texts)
            self._judge()

    def judge_kernels(self) -> None:
        """Whether each kernel is one operation, where something else is wrong already."""
        bench = self._bench
        with tempfile.TemporaryDirectory() as folder:
            self._aside = Path(folder)
            for path in filter(self._layout.is_kernel, self._layout.components):
                with suppress(CannotJudge):  # why it does not run, its self-test says
                    component = load_component(self._files, bench, path, path)
                    asked = _Asked(path, "Model", component.build(0))
                    watch = bench.watch(asked.replica)
                    bench.forward(f"{path}: forward", asked.replica, component.draw(0), 0, watch)
                    fault = self._kernel_fault(asked, watch.trace.events)
                    self._findings.found("rules", path, fault)

    def _judge(self) -> None:
        """All files, the next one while one is judged."""
        self._waiting = deque[Callable[[], None]]()
        self._running = deque[_Begun]()
        for path in self._layout.components:
            ask = partial(self._component, path)
            then = partial(self._refactored, path)
            self._waiting.append(partial(self._begin, "self-test", path, ask, then))
        self._waiting.append(
            partial(self._begin, "rules", ORIGINAL, self._original, self._composed)
        )
        while self._waiting or self._running:
            while self._waiting and (not self._running or self._small()):
                self._waiting.popleft()()
            if self._running:
                self._finish(self._running.popleft())

    def _small(self) -> bool:
        """Whether another file may run beside the one that runs."""
        held = weights_of(self._running[0].asked.replica).values()
        return len(self._running) < 2 and sum(t.nbytes for t in held) < _SIDE_BY_SIDE

    def _refactored(self, path: str, inputs: Inputs, _: nn.Module) -> None:
        step = self._layout.step_of(path)
        if step is not None:
            file = f"{step.folder}/refactored.py"
            load = partial(self._files.load_step, self._bench.directory / step.folder)
            ask = partial(self._parent, file, "RefactoredModel", load, inputs)
            self._waiting.appendleft(partial(self._begin, "rules", file, ask, _nothing))

    def _composed(self, inputs: Inputs, original: nn.Module) -> None:
        assert isinstance(original, Replica)
        if not original.kdrun_link.model.reads_values:
            for file in sorted(self._reading):
                fault = "reads values to decide what it computes; original.py reads none"
                self._findings.found("rules", file, fault)
        load = partial(self._files.load, self._bench.directory / COMPOSITION_TEST)
        ask = partial(self._parent, COMPOSITION_TEST, "ComposedModel", load, inputs)
        self._waiting.append(partial(self._begin, "rules", COMPOSITION_TEST, ask, self._hear))

    def _begin(
        self,
        gate: GateName,
        file: str,
        ask: Callable[[], _Asked],
        then: Callable[[Inputs, nn.Module], None],
    ) -> None:
        try:
            asked = ask()
            self._running.append(_Begun(gate, asked, *self._run(asked), then))
        except CannotJudge as error:
            self._findings.broken(gate, file, str(error))

    def _finish(self, begun: _Begun) -> None:
        file = begun.asked.file
        try:
            inputs, fault = self._compared(begun)
        except CannotJudge as error:
            self._findings.broken(begun.gate, file, str(error))
            return
        finally:
            begun.answers.close()
            shutil.rmtree(begun.aside, ignore_errors=True)
        if fault:
            self._findings.found(begun.gate, file, fault)
        begun.then(inputs, begun.asked.replica)

    def _hear(self, inputs: Inputs, composed: nn.Module) -> None:
        """Blame kernels whose own inputs give one number throughout, if the model's do not."""
        if not self._silent:
            return
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
        return _Asked(path, "Model", self._bench.build_bare(path, module.Model, 0))

    def _original(self) -> _Asked:
        build = self._files.problem().build
        return _Asked(ORIGINAL, "Model", self._bench.build_bare(f"{ORIGINAL}: Model", build, 0))

    def _parent(
        self, file: str, cls: str, load: Callable[[], ModuleType], inputs: Inputs
    ) -> _Asked:
        replica = self._bench.build_bare(f"{file}: {cls}", getattr(load(), cls), 0)
        return _Asked(file, cls, replica, inputs)

    def _compared(self, begun: _Begun) -> tuple[Inputs, str | None]:
        bench, asked = self._bench, begun.asked
        inputs = self._given(begun)
        contract = self._tests.contracts.get(asked.file)
        given = tuple(map(meta_of, tensors(list(inputs))))
        if contract is not None and contract.inputs != given:
            watched = f"and {shown(contract.inputs)} where it is watched"
            return inputs, f"imported by itself, get_inputs() gives {shown(given)}, {watched}"
        bench.seed(0)
        kernel = self._layout.is_kernel(asked.file)
        watch = bench.watch(asked.replica) if kernel else None
        what = f"{asked.file}: forward"
        after = _again(inputs)
        actual, seen = bench.forward(what, asked.replica, after, 0, watch)
        outputs = self._outputs(begun)
        if kernel and constant_output(actual) and compared_elements(actual) > _FEW:
            self._silent.add(asked.file)
        if asked.model.reads_values:
            self._reading.add(asked.file)
        if seen:
            fault = self._kernel_fault(asked, seen.trace.events)
            self._findings.found("rules", asked.file, fault)
        for expected, left in outputs:
            if reason := compare(expected, actual, STEP).reason:
                return inputs, f"imported and run by itself, it gives something else: {reason}"
            if reason := compare(left, tensors(list(after)), STEP).reason:
                return inputs, f"imported and run by itself, it changes its inputs: {reason}"
        return inputs, None

    def _kernel_fault(self, asked: _Asked, events: list[Event]) -> str | None:
        model = asked.model
        if not events and not model.asks_for("_unsafe_view"):  # which torch itself takes
            return "computes nothing: a view belongs into the parent"
        if sum(not event.constant for event in events) < 2:
            return None
        tree = self._layout.tree
        root = tree.root if tree else None
        lone = root is not None and root.path == asked.file
        original = self._files.directory / ORIGINAL if lone else None
        called = asked.file in self._as_the_author_calls
        with reading(f"{asked.file}: forward"):
            return more_than_one(model, original, self._aside, called=called)

    def _run(self, asked: _Asked) -> tuple[Channel, Path]:
        """Let a file run by itself; what it answers over, and its folder."""
        self._count += 1
        aside = self._aside / str(self._count)
        aside.mkdir()
        folder = self._copy
        if asked.cls == "Model" and asked.file != ORIGINAL:  # it stands alone
            folder = aside / "kernels"
            folder.mkdir()
            shutil.copy(self._copy / asked.file, folder)
        file = folder / (asked.file if folder is self._copy else Path(asked.file).name)
        held: list[torch.Tensor] = []
        inputs = None if asked.inputs is None else encode(asked.inputs, lambda t: _add(t, held))
        told, blocks = self._memory.write(held)
        request = {
            "folder": str(folder),
            "aside": str(aside),
            "file": str(file),
            "class": asked.cls,
            "arguments": asked.cls == "Model" or self._has_arguments(asked),
            "whole": asked.file == ORIGINAL,
            "paths": sys.path if asked.file == ORIGINAL else [],
            "often": asked.cls == "Model" and asked.file != ORIGINAL,
            "training": self._bench.options.mode == "train",
            "weights": asked.model.slots,
            "inputs": inputs,
            "number": self._bench.options.seed,
            "threads": torch.get_num_threads(),
            "readable": None
            if asked.file == ORIGINAL
            else [str(path) for path in [*installed(), folder]],
            "tensors": told,
        }
        mine, its = socket.socketpair()
        try:
            _server(os.getpid()).channel.send(request, [Block(its.detach()), *blocks])
        except ConnectionLostError as error:
            _server.cache_clear()
            raise CannotJudge(f"{asked.file}: the process that runs it alone is gone") from error
        return Channel(mine), aside

    def _has_arguments(self, asked: _Asked) -> bool:
        text = (self._copy / asked.file).read_text(encoding="utf-8", errors="replace")
        return asked.cls == "RefactoredModel" and "def get_init_inputs" in text

    def _given(self, begun: _Begun) -> Inputs:
        """The inputs that a file drew. Its weights are the judge's, and both move the defaults."""
        answer, held = self._heard(begun)
        model = begun.asked.model
        try:
            weights = [None if n is None else held[n] for n in answer["weights"]]
            check_value(answer["inputs"])
            args, kwargs = decode(answer["inputs"], held.__getitem__)
            model.put(weights)
        except (ConnectionLostError, LookupError, TypeError, ValueError) as error:
            raise CannotJudge(f"{_alone(begun)}, it says what cannot be read: {error}") from error
        generator = torch.Generator().manual_seed(self._bench.options.seed)
        before = [None if t is None else t._version for t in weights]
        vary(begun.asked.replica, generator, only_defaults=True)  # the others are random already
        changed = [
            (slot, tensor)
            for slot, tensor, version in zip(model.slots, weights, before, strict=True)
            if tensor is not None and tensor._version != version
        ]
        told, blocks = self._memory.write([tensor for _, tensor in changed])
        change = {"places": [slot for slot, _ in changed], "tensors": told}
        with suppress(ConnectionLostError):  # then it has ended, and gives no output
            begun.answers.send(change, blocks)
        return tuple(args), kwargs

    def _outputs(self, begun: _Begun) -> list[tuple[Any, list[torch.Tensor]]]:
        """What it gave, and its inputs afterwards, for each call that counts."""
        answer, held = self._heard(begun)
        try:
            check_value(answer["outputs"])
            decoded = decode(answer["outputs"], held.__getitem__)
            if not decoded:
                raise ValueError("no output")
            return [(output, tensors(after)) for output, after in decoded]
        except (ConnectionLostError, LookupError, TypeError, ValueError) as error:
            raise CannotJudge(f"{_alone(begun)}, it says what cannot be read: {error}") from error

    def _heard(self, begun: _Begun) -> tuple[Any, list[torch.Tensor]]:
        try:
            answer, blocks = begun.answers.receive()
        except ConnectionLostError:
            raise CannotJudge(f"{_alone(begun)}, it ends before it has answered") from None
        if not isinstance(answer, dict):
            raise CannotJudge(f"{_alone(begun)}, it says what cannot be read")
        if "error" in answer:
            raise CannotJudge(f"{_alone(begun)}, it fails: {one_line(answer['error'])[:300]}")
        try:
            return answer, self._memory.read(answer["tensors"], blocks)
        except (NoTensorError, LookupError, TypeError) as error:
            raise CannotJudge(f"{_alone(begun)}, it says what cannot be read: {error}") from error


def _alone(begun: _Begun) -> str:
    return f"{begun.asked.file}: imported and run by itself"


def _nothing(_: Inputs, __: nn.Module) -> None:
    """Nothing follows."""


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
