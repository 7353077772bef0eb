"""Starts programs in confined processes, and talks to them.

A program is a file with a model class: a solution, the component that it replaces, the original, or
a model with solutions in it. All of them run under the same protocol, so that their times compare.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch

from runner.evaluate import program_process
from runner.problems import nested_values
from runner.verify.guard import program_values, sandbox, shared_memory, wire_format
from runner.verify.guard.sandbox import system_paths
from runner.verify.guard.shared_memory import Memory, MemoryFile, NoTensorError, NotToldError
from runner.verify.guard.source_process import start_process
from runner.verify.guard.wire_format import Channel, ConnectionLostError, decode, encode
from runner.verify.guard.worker_client import to_one_line

CALL_TIMEOUT_S = 60.0
"""Seconds that one answer may take."""
COMPILE_TIMEOUT_S = 180.0
"""Seconds that importing a file, or a first call, may take: compilers run in it."""
FLUSH_BYTES = 64 << 20
"""Bytes that are read before short batches, so that no cache holds the inputs any more."""
_LONGEST_REASON = 300
_TOOLS = (shared_memory, wire_format, sandbox, nested_values, program_values)
_SEARCHED_VARIABLES = ("PATH", "LANG", "LD_LIBRARY_PATH", "CUDA_HOME", "CC", "CXX")
"""Environment variables that a program sees, because compilers need them."""

_SCHEDULER_CLOCK = 2
"""The low bits of a clock that counts another process's time: see clock_getcpuclockid(3)."""

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


class Duration(NamedTuple):
    """How long a program took: by the clock, and by the processors that its threads kept busy."""

    wall_s: float
    busy_s: float


class ProgramError(Exception):
    """A program raised an error, ended, or took too long; the message is one line."""


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file with a model class, and how to run it."""

    path: Path
    class_name: str
    arguments: Any
    """Arguments of the class: a list, or a dict by name."""
    training: bool = False
    compiled: bool = False
    """Whether it runs under torch.compile."""
    is_solution: bool = False
    """Whether it is somebody else's. Solutions share a folder for what their compilers keep."""


class ProgramServer:
    """The process that forks for each program and never runs one itself."""

    def __init__(self, folder: Path, threads: int) -> None:
        """`folder`: where programs are copied to, and may write."""
        self._folder, self._threads, self._count = folder, threads, 0
        self._readable = [str(path) for path in system_paths()]
        self.memory = Memory()
        """Remembers what has been sent: several programs get the same weights and inputs."""
        self.flush_buffer = torch.ones(FLUSH_BYTES // 8, dtype=torch.int64)
        """Numbers that programs read, so that no cache holds anything else any more."""
        self.forward_s = 0.0
        """Seconds of all forwards in programs, with what compilers do in the first ones."""
        environment = {n: os.environ[n] for n in _SEARCHED_VARIABLES if n in os.environ}
        own_programs = str(Path(sys.executable).parent)  # ninja, if it was installed beside torch
        environment["PATH"] = os.pathsep.join([environment.get("PATH", os.defpath), own_programs])
        environment |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        environment["THP_MEM_ALLOC_ENABLE"] = "1"  # As in kdrun's own child processes.
        self._process, self._channel = start_process(program_process, _TOOLS, environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @contextmanager
    def start(self, file: ProgramFile) -> Iterator["ConfinedProgram"]:
        """Start a program, and import its file; ProgramError if that fails.

        The file is copied, so that it cannot read what lies beside it.
        """
        self._count += 1
        writable = self._folder / ("solutions" if file.is_solution else "components")
        folder = writable / f"program_{self._count}"
        folder.mkdir(parents=True)
        copy = folder / file.path.name
        shutil.copy(file.path, copy)
        own_end, program_end = socket.socketpair()
        request = {
            "writable": str(writable),
            "file": str(copy),
            "class": file.class_name,
            "training": file.training,
            "compiled": file.compiled,
            "threads": self._threads,
            "readable": self._readable,
        }
        self._channel.send(request, [MemoryFile(program_end.detach())])
        program = ConfinedProgram(own_end, file, self)
        try:
            program.request("import", self.flush_buffer, timeout_s=COMPILE_TIMEOUT_S)
            yield program
        finally:
            program.end()
            own_end.close()
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def start_with_weights(
        self, file: ProgramFile, weights: Mapping[str, torch.Tensor], seed: int | None = None
    ) -> Iterator["ConfinedProgram"]:
        """Start a program, build its model from a seed, and give it weights."""
        with self.start(file) as program:
            program.build(seed)
            program.load_weights(weights)
            yield program


class ConfinedProgram:
    """A file that runs in a process of its own."""

    def __init__(self, connection: socket.socket, file: ProgramFile, server: ProgramServer) -> None:
        self.file, self._server = file, server
        self.busy_s, self.waiting_s = 0.0, 0.0
        """Seconds in batches in which its threads ran, and in which they waited for a processor."""
        self._connection, self._channel = connection, Channel(connection)
        self._process = int(self._channel.receive()[0]["process"])
        self._process_file = os.pidfd_open(self._process) if sys.platform == "linux" else None
        self._is_warm = False

    def build(self, seed: int | None = None) -> None:
        """Build its model anew, from a seed."""
        self._is_warm = False
        seed = secrets.randbelow(1 << 30) if seed is None else seed
        self.request("build", [self.file.arguments, seed], timeout_s=COMPILE_TIMEOUT_S)

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Give its model weights, by their names in the component or in the original."""
        self.request("weights", {name: tensor.detach() for name, tensor in weights.items()})

    def call(self, inputs: Inputs, seed: int, count: int = 2) -> tuple[list[Any], Any]:
        """Return the outputs of calls on the same inputs, and the inputs after the last call."""
        timeout_s = CALL_TIMEOUT_S if self._is_warm else COMPILE_TIMEOUT_S
        started = time.perf_counter()
        answer = self.request(
            "call", [list(inputs[0]), inputs[1], seed, count], timeout_s=timeout_s
        )
        self._is_warm = True
        match answer:
            case [list(outputs), inputs_after, float(seconds)] if len(outputs) == count:
                self._server.forward_s += min(max(seconds, 0.0), time.perf_counter() - started)
                return outputs, inputs_after
        raise ProgramError("its process sent what cannot be read")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let it run inside the block, and stop it afterwards with all processes of its group."""
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop it until it is `running` again: it cannot slow down what is measured meanwhile."""
        self._signal(signal.SIGSTOP)

    def end(self) -> None:
        """Kill it, whatever it does."""
        self._signal(signal.SIGKILL)
        if self._process_file is not None:
            os.close(self._process_file)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            if self._process_file is not None:  # Its number may be another's now.
                signal.pidfd_send_signal(self._process_file, 0)
            os.killpg(self._process, number)

    def place(self, batch: Sequence[Inputs], seed: int, *, flush: bool = True) -> Duration:
        """Send it inputs for `run_batch`, flush the cache, and return how long that took."""
        contents = [[list(args), kwargs] for args, kwargs in batch]
        return self._time_exchange(self._write_message("place", [contents, seed, flush]))[1]

    def run_batch(self) -> float:
        """Call it once on each placed input; return the seconds until it has answered."""
        busy_s, waiting_s = _read_schedule(self._process)
        started = time.perf_counter()
        self.request("run", None, timeout_s=COMPILE_TIMEOUT_S)
        seconds = time.perf_counter() - started
        schedule = _read_schedule(self._process)
        self.busy_s += schedule[0] - busy_s
        self.waiting_s += schedule[1] - waiting_s
        self._server.forward_s += seconds
        return seconds

    def deliver(self, count: int) -> tuple[list[Any], Duration]:
        """Return all outputs of the last batch, and how long it took until they were here."""
        outputs, duration = self._time_exchange(self._write_message("deliver", None))
        if not isinstance(outputs, list) or len(outputs) != count:
            raise ProgramError("its process sent what cannot be read")
        return outputs, duration

    def request(self, kind: str, content: Any, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        """Send a message and return the content of its answer; ProgramError if there is none."""
        return self._exchange(self._write_message(kind, content), timeout_s)

    def _write_message(self, kind: str, content: Any) -> tuple[dict[str, Any], list[MemoryFile]]:
        """Return a message with the files that hold its tensors."""
        tensors: list[torch.Tensor] = []

        def index_tensor(tensor: torch.Tensor) -> int:
            tensors.append(tensor)
            return len(tensors) - 1

        try:
            message = {"kind": kind, "content": encode(content, index_tensor)}
            descriptions, files = self._server.memory.write(tensors)
        except NotToldError as error:
            raise ProgramError(f"{error} cannot be sent to another process") from error
        return message | {"tensors": descriptions}, files

    def _time_exchange(
        self, message: tuple[dict[str, Any], list[MemoryFile]]
    ) -> tuple[Any, Duration]:
        """Return the content of the answer to a message, and how long it took."""
        busy_s, started = self._read_busy_s(), time.perf_counter()
        answer = self._exchange(message, CALL_TIMEOUT_S)
        seconds = time.perf_counter() - started
        return answer, Duration(seconds, self._read_busy_s() - busy_s)

    def _read_busy_s(self) -> float:
        """Return the processor seconds of all its threads, also of those that have ended.

        They are 0 where the system does not tell them.
        """
        if sys.platform != "linux":
            return 0.0
        try:
            return time.clock_gettime(~self._process << 3 | _SCHEDULER_CLOCK)
        except OSError as error:
            raise ProgramError("its process ended") from error

    def _exchange(self, message: tuple[dict[str, Any], list[MemoryFile]], timeout_s: float) -> Any:
        """Send a message that is written already, and return the content of its answer."""
        self._connection.settimeout(timeout_s)
        started = time.monotonic()
        try:
            self._channel.send(*message)
            answer, answer_files = self._channel.receive()
            if isinstance(answer, dict) and "error" in answer:
                raise ProgramError(to_one_line(answer["error"])[:_LONGEST_REASON])
            received = self._server.memory.read(answer["tensors"], answer_files)
            return decode(answer["content"], received.__getitem__)
        except ConnectionLostError as error:
            if time.monotonic() - started >= timeout_s:
                raise ProgramError(f"no answer within {timeout_s:.0f} s") from error
            raise ProgramError("its process ended") from error
        except (NoTensorError, LookupError, TypeError, ValueError) as error:
            raise ProgramError("its process sent what cannot be read") from error


def _read_schedule(process: int) -> tuple[float, float]:
    """Return the seconds in which a process' threads ran, and in which they waited for a processor.

    Both are 0 where the system does not tell them.
    """
    busy_ns = waiting_ns = 0
    for path in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError):
            numbers = path.read_text(encoding="ascii").split()
            busy_ns += int(numbers[0])
            waiting_ns += int(numbers[1])
    return busy_ns / 1e9, waiting_ns / 1e9
