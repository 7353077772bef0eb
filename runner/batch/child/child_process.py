"""Runs a function in a disposable child process, with limits and without credentials.

Importing this file imports neither torch nor pydantic. So a command can start the fork server
first, and do its own imports while the server imports torch.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from runner.errors import KdrunError

PRELOADED = (
    "torch.export._trace",
    "runner.graph.tracing.capture",
    "runner.verify.judge",
    "runner.batch.child.problem_work",
)
"""Modules that the fork server imports once, so that no child has to."""

_PASSED_VARIABLES = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|VIRTUAL_ENV|CONDA_PREFIX"
    r"|PYTHON\w+|LD_\w+|DYLD_\w+|CUDA_\w+|NVIDIA_\w+|CUBLAS_\w+|CUDNN_\w+|OMP_\w+|GOMP_\w+|KMP_\w+"
    r"|MKL_\w+|OPENBLAS_\w+|DNNL_\w+|ONEDNN_\w+|MALLOC_\w+|TORCH\w*|PYTORCH_\w+|TRITON_\w+"
    r"|XDG_CACHE_HOME|HF_HOME|HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE|DIFFUSERS_OFFLINE)"
)
"""Matches the only environment variables that a problem's code sees: locations of programs and
caches, and settings of torch, its libraries and Python."""
_SECRET_NAMES = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|KEY", re.IGNORECASE)
_SET_FOR_CHILDREN = {
    # A fork keeps only the calling thread, so no thread pool may exist before it. Each child sets
    # its own number of threads.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Two children that share a core would otherwise burn it waiting for each other's threads.
    "OMP_WAIT_POLICY": "PASSIVE",
    # Looking for a GPU must not initialise CUDA: a forked process cannot use it afterwards.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    # cuBLAS is deterministic only with a workspace of a fixed size.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    # Otherwise torch compiles some GPU kernels at their first use, which writes files and starts
    # processes. Components are forbidden to do either.
    "TORCH_DISABLE_NATIVE_JIT": "1",
    # `@torch.compile` in a problem is the function itself: compiled code has other operators than
    # its author wrote, and with `fullgraph=True` it does not run while operators are watched.
    "TORCHDYNAMO_DISABLE": "1",
    # Tensors on huge pages: zeroing small pages takes most of an elementwise operation's time.
    "THP_MEM_ALLOC_ENABLE": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One function call to run in a child."""

    function: str
    """`module:function`; the function takes a JSON text and returns a JSON text."""
    argument: str
    directory: Path
    """Working directory of the child; its answer is written there."""
    log: Path
    memory_bytes: int
    timeout_s: float
    imports: tuple[str, ...] = ()
    """Modules that the server imports first, for this child and those after it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Description of how a child ended."""

    answer: str | None
    """JSON text that the function returned; None exactly when the child ended without returning."""
    exit_code: int | None
    signal: str | None
    timed_out: bool
    peak_memory_bytes: int
    seconds: float
    cpu_seconds: float = 0.0
    disk_full: bool = False
    """Whether the disk of the child's directory was full at the end."""
    filled_bytes: int = 0
    """Bytes that the child wrote there, if they filled the disk; else 0."""

    def describe_end(self) -> str:
        """Return a phrase for people, such as `was killed by SIGSEGV`."""
        if self.signal:
            return f"was killed by {self.signal}"
        return f"ended with exit code {self.exit_code}"


def start_fork_server() -> "_ForkServer":
    """Return this thread's fork server; start it if needed, without waiting for its imports."""
    fork_server: _ForkServer | None = getattr(_thread_state, "fork_server", None)
    if fork_server is None:
        fork_server = _thread_state.fork_server = _ForkServer(PRELOADED)
    return fork_server


def run_child(request: Request) -> Outcome:
    """Run a function in a child of this thread's fork server and return how the child ended.

    Raises:
        KdrunError: the fork server does not start, because torch or kdrun cannot be imported.
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
    """End this thread's fork server, if there is one; the next child starts a new one."""
    fork_server = getattr(_thread_state, "fork_server", None)
    _thread_state.fork_server = None
    if fork_server is not None:
        fork_server.close()


_thread_state = threading.local()


class _ForkServerDied(Exception):
    """Raised when the fork server itself was killed, for example by the kernel's OOM killer."""

    def __init__(self, return_code: int) -> None:
        super().__init__(return_code)
        self.exit_code = return_code if return_code >= 0 else None
        self.signal = signal.Signals(-return_code).name if return_code < 0 else None


class _ForkServer:
    """The client of one `runner.batch.child.fork_server` process; one request at a time."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.error_file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed with this object)
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
        """Wait until the server has imported its modules.

        Raises:
            KdrunError: an import failed.
        """
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
        record = request.directory.absolute() / "record.json"
        record.unlink(missing_ok=True)
        # The seal marks an answer as the server's: a file that a problem's code writes lacks it.
        seal = secrets.token_hex(16)
        message = asdict(request) | {
            "directory": str(record.parent),
            "log": str(request.log.absolute()),
            "record": str(record),
            "seal": seal,
            "environment": _child_environment(request),
        }
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
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
        """End the server, and its child if there is one."""
        atexit.unregister(self.close)
        if not self.is_ready:
            self.process.kill()  # It has no child yet, and does not read stdin while it imports.
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
    """Return the environment variables that differ between children: TMPDIR and the visible GPUs.

    TMPDIR is the child's directory, whose size is watched and which is removed afterwards. Ray sets
    CUDA_VISIBLE_DEVICES for each task, after the fork server was started.
    """
    variables = {"TMPDIR": str(request.directory.absolute())}
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        variables["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
    return variables


def clean_environment(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that a problem's code may see; none opens a store or an account."""
    passed_variables = {
        name: value
        for name, value in environment.items()
        if _PASSED_VARIABLES.fullmatch(name) and not _SECRET_NAMES.search(name)
    }
    return passed_variables | _SET_FOR_CHILDREN
