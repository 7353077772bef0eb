"""Sends the judge's requests to workers and reads their answers."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from runner.errors import MissingError
from runner.torch_internals import DisableTorchFunction, without_modes
from runner.verify.guard.shared_memory import Memory, MemoryFile, NoTensorError, NotToldError
from runner.verify.guard.wire_format import Channel, ConnectionLostError
from runner.verify.loading_files import CannotJudge

_MAX_TEXT = 4000
"""Characters of the longest text of a worker that is shown."""
PUBLIC_NAMES = (
    *("Model", "RefactoredModel", "ComposedModel", "get_inputs", "get_init_inputs"),
    *("get_expected_output_shape", "run_tests", "WEIGHTS"),
)
"""Names of a file that the judge may use."""
IMPORT_OPERATIONS: list[tuple[str, str]] = []
"""Operations, with their lines, that files computed at import or while a model was built."""


@contextmanager
def refuse_unreadable(subject: str) -> Iterator[None]:
    """Turn errors of reading a worker's answer, in the body, into CannotJudge."""
    try:
        yield
    except (ConnectionLostError, LookupError, TypeError, ValueError, AttributeError) as error:
        description = to_one_line(f"{type(error).__name__}: {error}")
        raise CannotJudge(
            f"{subject}: the process that runs the files said what cannot be read: {description}"
        ) from error


def to_one_line(text: object) -> str:
    """Return a worker's text as one printable line, without characters that move a cursor."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else "?" for c in line)[:_MAX_TEXT]


class WorkerClient:
    """The judge's connection to one worker, for one request at a time."""

    def __init__(self, process: int, channel: Channel, memory: Memory) -> None:
        self._process, self._channel, self._memory = process, channel, memory
        self._end_reason: str | None = None
        self._unused_models: list[int] = []

    def ask(self, request: dict[str, Any], tensors: list[torch.Tensor]) -> tuple[Any, list[Any]]:
        """Return a worker's answer and its tensors; CannotJudge if it fails or has ended."""
        subject = request.get("what") or request.get("file") or "it"
        if self._end_reason is not None:
            raise CannotJudge(f"{subject}: the process that runs the files {self._end_reason}")
        while self._unused_models:
            self._exchange({"do": "forget", "model": self._unused_models.pop()}, [], subject)
        with without_modes(), DisableTorchFunction():
            try:
                descriptions, files = self._memory.write(tensors)
            except NotToldError as error:
                raise CannotJudge(f"{subject}: is given {error}") from error
            except OSError as error:
                raise MemoryError(f"no room for tensors: {error}") from error
            try:
                answer, files = self._exchange(request | {"tensors": descriptions}, files, subject)
                answer_tensors: list[Any] = []
                if isinstance(answer, dict) and answer.get("tensors"):
                    answer_tensors = self._memory.read(answer["tensors"], files)
                return answer, answer_tensors
            except (ConnectionLostError, NoTensorError) as error:
                self._end_reason = f"said what cannot be read: {error}"
                raise CannotJudge(
                    f"{subject}: the process that runs the files {self._end_reason}"
                ) from error

    def release_model(self, model: int) -> None:
        """Release a worker's model, with the next request."""
        self._unused_models.append(model)

    def _exchange(
        self, request: dict[str, Any], files: list[MemoryFile], subject: str
    ) -> tuple[Any, list[MemoryFile]]:
        try:
            self._channel.send(request, files)
            answer, answer_files = self._channel.receive()
        except ConnectionLostError:
            self._end_reason = self.close()
            raise CannotJudge(
                f"{subject}: the process that runs the files {self._end_reason}"
            ) from None
        match answer:
            case {"ok": ok}:
                return ok, answer_files
            case {"memory": str(message)}:
                raise MemoryError(to_one_line(message))
            case {"error": str(message)}:
                raise CannotJudge(to_one_line(message)) from _missing_package_error(answer)
        raise ConnectionLostError("no answer")

    def close(self) -> str:
        """End the worker; return how it ended, if it did so by itself, else that it hung up."""
        self._channel.close()
        if self._end_reason is not None:
            return self._end_reason
        process, status = os.waitpid(self._process, os.WNOHANG)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process, signal.SIGKILL)
        if not process:
            os.waitpid(self._process, 0)
            return "hung up"
        code = os.waitstatus_to_exitcode(status)
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else "ended"


def _missing_package_error(answer: dict[str, Any]) -> Exception | None:
    """Return the MissingError of a problem whose import is not installed, or None."""
    if "missing" not in answer:
        return None
    fields = {
        name: to_one_line(answer.get(name, "")) for name in ("what", "where", "hint", "missing")
    }
    location = f" {fields['where']}" if fields["where"] else ""
    cause = MissingError("original.py", fields["what"], location, hint=fields["hint"])
    cause.__cause__ = ModuleNotFoundError(name=fields["missing"])
    return cause
