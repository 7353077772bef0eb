"""Sends the judge's requests to workers and reads their answers."""

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
"""Characters of the longest text of a worker that is shown."""
TOLD = (
    *("Model", "RefactoredModel", "ComposedModel", "get_inputs", "get_init_inputs"),
    *("get_expected_output_shape", "run_tests", "WEIGHTS"),
)
"""Names of a file that the judge may use."""
COMPUTED: list[tuple[str, str]] = []
"""Operations, with their lines, that files computed at import or while a model was built."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn errors of reading a worker's answer, in the body, into CannotJudge."""
    try:
        yield
    except (ConnectionLostError, LookupError, TypeError, ValueError, AttributeError) as error:
        said = one_line(f"{type(error).__name__}: {error}")
        raise CannotJudge(
            f"{what}: the process that runs the files said what cannot be read: {said}"
        ) from error


def one_line(text: object) -> str:
    """Return a worker's text as one printable line, without characters that move a cursor."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else "?" for c in line)[:_LONGEST]


class Apart:
    """The judge's connection to one worker, for one request at a time."""

    def __init__(self, process: int, channel: Channel, memory: Memory) -> None:
        self._process, self._channel, self._memory = process, channel, memory
        self._ended: str | None = None
        self._forgotten: list[int] = []

    def ask(self, request: dict[str, Any], held: list[torch.Tensor]) -> tuple[Any, list[Any]]:
        """Return a worker's answer and its tensors; CannotJudge if it fails or has ended."""
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
        """Release a worker's model, with the next request."""
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
        """End the worker; return how it ended, if it did so by itself, else that it hung up."""
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
    """Return the MissingError of a problem whose import is not installed, or None."""
    if "missing" not in answer:
        return None
    said = {name: one_line(answer.get(name, "")) for name in ("what", "where", "hint", "missing")}
    where = f" {said['where']}" if said["where"] else ""
    cause = MissingError("original.py", said["what"], where, hint=said["hint"])
    cause.__cause__ = ModuleNotFoundError(name=said["missing"])
    return cause
