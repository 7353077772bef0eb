"""Runs a function in a disposable child process: limited, killable, without credentials.

Importing this file imports neither torch nor pydantic: a command first starts the server that forks
its children, and imports what else it needs while that server imports torch.
"""

import atexit
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from runner.errors import KdrunError

PRELOADED = (
    "torch.export._trace",
    "runner.graph.tracing.capture",
    "runner.verify.judge",
    "runner.batch.child.problem_work",
)
"""Modules that every child finds imported; else each would import them at their first use."""

_PASSED_VARIABLES = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|VIRTUAL_ENV|CONDA_PREFIX"
    r"|PYTHON\w+|LD_\w+|DYLD_\w+|CUDA_\w+|NVIDIA_\w+|CUBLAS_\w+|CUDNN_\w+|OMP_\w+|GOMP_\w+|KMP_\w+"
    r"|MKL_\w+|OPENBLAS_\w+|DNNL_\w+|ONEDNN_\w+|MALLOC_\w+|TORCH\w*|PYTORCH_\w+|TRITON_\w+"
    r"|XDG_CACHE_HOME|HF_HOME|HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE|DIFFUSERS_OFFLINE)"
)
"""Environment variables that a problem's code sees: where programs and caches lie, and how torch,
its libraries and Python compute. No other one."""
_SECRET_NAMES = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|KEY", re.IGNORECASE)
_SET_FOR_CHILDREN = {
    # A fork keeps only the thread that called it: no pool may exist before. Children set their own.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Two children that share a core would otherwise burn it waiting for each other's threads.
    "OMP_WAIT_POLICY": "PASSIVE",
    # Asking whether there is a GPU must not start CUDA, which no fork survives.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    # cuBLAS multiplies matrices the same way each time only with a workspace of a fixed size.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    # Some of torch's kernels for GPUs are else compiled at their first use, which writes files and
    # starts processes: no component may do either.
    "TORCH_DISABLE_NATIVE_JIT": "1",
    # Tensors on huge pages: zeroing small ones is most of what an elementwise operation takes.
    "THP_MEM_ALLOC_ENABLE": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One function to run in a child."""

    function: str
    """`module:function`; takes a JSON text, returns a JSON text."""
    argument: str
    directory: Path
    """Where the child works; its record is left there."""
    log: Path
    memory_bytes: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended."""

    answer: str | None
    """What the function returned; None exactly when the child ended without returning."""
    exit_code: int | None
    signal: str | None
    timed_out: bool
    peak_memory_bytes: int
    seconds: float
    cpu_seconds: float = 0.0
    disk_full: bool = False
    """No space was left where it worked."""
    filled_bytes: int = 0
    """What it had written there, where that is what filled the disk."""

    def describe_end(self) -> str:
        """`was killed by SIGSEGV`, for people."""
        if self.signal:
            return f"was killed by {self.signal}"
        return f"ended with exit code {self.exit_code}"


def start_fork_server() -> "_ForkServer":
    """Start this thread's fork_server, if there is none, and return while it imports its modules."""
    fork_server: _ForkServer | None = getattr(_thread_state, "fork_server", None)
    if fork_server is None:
        fork_server = _thread_state.fork_server = _ForkServer(PRELOADED)
    return fork_server


def run_child(request: Request) -> Outcome:
    """Run a function in a child of this thread's fork_server, which is started when there is none.

    Raises:
        KdrunError: no fork_server can be started: torch or kdrun itself does not import.
    """
    for is_last_try in (False, True):
        fork_server = start_fork_server()
        try:
            return fork_server.run(request)
        except _ForkServerDied as error:
            _thread_state.fork_server = None
            if is_last_try:
                return Outcome(None, error.exit_code, error.signal, False, 0, 0.0)
        except BaseException:  # Kill the child before raising: Ctrl-C leaves nothing running.
            _thread_state.fork_server = None
            fork_server.close()
            raise
    raise AssertionError("unreachable")


def close_fork_server() -> None:
    """End this thread's fork_server, if there is one; the next child starts another."""
    fork_server = getattr(_thread_state, "fork_server", None)
    _thread_state.fork_server = None
    if fork_server is not None:
        fork_server.close()


_thread_state = threading.local()


class _ForkServerDied(Exception):
    """The server itself was killed, as the kernel does when memory runs out."""

    def __init__(self, return_code: int) -> None:
        super().__init__(return_code)
        self.exit_code = return_code if return_code >= 0 else None
        self.signal = signal.Signals(-return_code).name if return_code < 0 else None


class _ForkServer:
    """The client of one `runner.batch.child.fork_server` process; one request at a time."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.error_file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as this)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "runner.batch.child.fork_server", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.error_file,
            env=clean_environment(dict(os.environ)),
            start_new_session=True,
            text=True,
        )
        atexit.register(self.close)
        self.is_ready = False

    def wait_until_ready(self) -> None:
        """Return once its modules are imported; KdrunError if they cannot be."""
        try:
            self._read_answer()
            self.is_ready = True
        except _ForkServerDied:
            self.error_file.seek(0)
            lines = self.error_file.read().decode(errors="replace").split("\n")
            last_line = next((line for line in reversed(lines) if line.strip()), "no message")
            raise KdrunError(
                f"no child process can be started: {last_line}",
                hint="does `python -c 'import torch'` work?",
            ) from None

    def run(self, request: Request) -> Outcome:
        if not self.is_ready:
            self.wait_until_ready()
        record = request.directory / "record.json"
        record.unlink(missing_ok=True)
        seal = secrets.token_hex(16)  # what a problem's own code leaves there has none
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(
                json.dumps(
                    {
                        "function": request.function,
                        "argument": request.argument,
                        "directory": str(request.directory.absolute()),
                        "record": str(record.absolute()),
                        "seal": seal,
                        "log": str(request.log.absolute()),
                        "memory_bytes": request.memory_bytes,
                        "timeout_s": request.timeout_s,
                        "environment": _child_environment(request),
                    }
                )
                + "\n"
            )
            self.process.stdin.flush()
        except BrokenPipeError:
            raise _ForkServerDied(self.process.wait()) from None
        outcome_fields = self._read_answer()
        has_returned = (
            outcome_fields["exit_code"] == 0 and not outcome_fields["timed_out"] and record.exists()
        )
        sealed_answer = record.read_text(encoding="utf-8") if has_returned else ""
        record.unlink(missing_ok=True)
        answer = sealed_answer.removeprefix(seal) if sealed_answer.startswith(seal) else None
        return Outcome(answer=answer, **outcome_fields)

    def close(self) -> None:
        """Let the server end its child, if there is one, and itself."""
        atexit.unregister(self.close)
        if not self.is_ready:
            self.process.kill()  # It has no child yet, and hears nothing while it imports.
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _read_answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise _ForkServerDied(self.process.wait())
        answer: dict[str, Any] = json.loads(line)
        return answer


def _child_environment(request: Request) -> dict[str, str]:
    """What is of this child alone: a TMPDIR that is watched and removed, and on a disk.

    Ray sets the GPUs for each task, after the fork_server was started.
    """
    device_names = [name for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ]
    own_variables = {"TMPDIR": str(request.directory.absolute())}
    return own_variables | {name: os.environ[name] for name in device_names}


def clean_environment(environment: dict[str, str]) -> dict[str, str]:
    """What a problem's code may see: nothing that opens a store, a cluster or an account."""
    passed_variables = {
        name: value
        for name, value in environment.items()
        if _PASSED_VARIABLES.fullmatch(name) and not _SECRET_NAMES.search(name)
    }
    return passed_variables | _SET_FOR_CHILDREN
