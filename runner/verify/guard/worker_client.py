"""The judge's side of the workers: what it asks them for, and files of theirs as modules here."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from runner.errors import MissingError
from runner.torch_internals import DisableTorchFunction, without_modes
from runner.verify.guard.shared_memory import Block, Memory, NoTensorError, NotToldError
from runner.verify.guard.wire_format import Channel, ConnectionLostError
from runner.verify.loading_files import CannotJudge

_LONGEST = 4000
"""Characters of a reason that a worker gives."""
TOLD = (
    *("Model", "RefactoredModel", "ComposedModel", "get_inputs", "get_init_inputs"),
    *("get_expected_output_shape", "run_tests", "WEIGHTS"),
)
"""Names of a file that a judge asks for."""
COMPUTED: list[tuple[str, str]] = []
"""What files computed while they were imported or a model was built: operation and place."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Read what a worker says. CannotJudge where it cannot be read."""
    try:
        yield
    except (ConnectionLostError, LookupError, TypeError, ValueError, AttributeError) as error:
        said = one_line(f"{type(error).__name__}: {error}")
        raise CannotJudge(
            f"{what}: the process that runs the files said what cannot be read: {said}"
        ) from error


def one_line(text: object) -> str:
    """What a worker says as one line that only shows: nothing that moves a cursor."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else "?" for c in line)[:_LONGEST]


class Apart:
    """One worker, asked for one thing at a time."""

    def __init__(self, process: int, channel: Channel, memory: Memory) -> None:
        self._process, self._channel, self._memory = process, channel, memory
        self._ended: str | None = None
        self._forgotten: list[int] = []

    def ask(self, request: dict[str, Any], held: list[torch.Tensor]) -> tuple[Any, list[Any]]:
        """What a worker answers, and the tensors in it. CannotJudge where it fails or is gone."""
        what = request.get("what") or request.get("file") or "it"
        if self._ended is not None:
            raise CannotJudge(f"{what}: the process that runs the files {self._ended}")
        while self._forgotten:
            self._exchange({"do": "forget", "model": self._forgotten.pop()}, [], what)
        with without_modes(), DisableTorchFunction():
            try:
                told, blocks = self._memory.write(held)
            except NotToldError as error:
                raise CannotJudge(f"{what}: is given {error}") from error
            except OSError as error:
                raise MemoryError(f"no room for tensors: {error}") from error
            try:
                answer, blocks = self._exchange(request | {"tensors": told}, blocks, what)
                tensors: list[Any] = []
                if isinstance(answer, dict) and answer.get("tensors"):
                    tensors = self._memory.read(answer["tensors"], blocks)
                return answer, tensors
            except (ConnectionLostError, NoTensorError) as error:
                self._ended = f"said what cannot be read: {error}"
                raise CannotJudge(
                    f"{what}: the process that runs the files {self._ended}"
                ) from error

    def forget(self, model: int) -> None:
        """Let a worker's model go, with the next request."""
        self._forgotten.append(model)

    def _exchange(
        self, request: dict[str, Any], held: list[Block], what: str
    ) -> tuple[Any, list[Block]]:
        try:
            self._channel.send(request, held)
            answer, blocks = self._channel.receive()
        except ConnectionLostError:
            self._ended = self.close()
            raise CannotJudge(f"{what}: the process that runs the files {self._ended}") from None
        match answer:
            case {"ok": ok}:
                return ok, blocks
            case {"memory": str(said)}:
                raise MemoryError(one_line(said))
            case {"error": str(said)}:
                raise CannotJudge(one_line(said)) from _cause(answer)
        raise ConnectionLostError("no answer")

    def close(self) -> str:
        """End it; how it ended, where it did so by itself."""
        self._channel.close()
        if self._ended is not None:
            return self._ended
        process, status = os.waitpid(self._process, os.WNOHANG)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process, signal.SIGKILL)
        if not process:
            os.waitpid(self._process, 0)
            return "hung up"
        code = os.waitstatus_to_exitcode(status)
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else "ended"


def _cause(answer: dict[str, Any]) -> Exception | None:
    """The error of a problem that imports what is not there."""
    if "missing" not in answer:
        return None
    said = {name: one_line(answer.get(name, "")) for name in ("what", "where", "hint", "missing")}
    where = f" {said['where']}" if said["where"] else ""
    cause = MissingError("original.py", said["what"], where, hint=said["hint"])
    cause.__cause__ = ModuleNotFoundError(name=said["missing"])
    return cause
