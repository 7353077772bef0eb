"""Implements the fork server: a small process that forks one disposable child for each request.

`python -m runner.batch.child.fork_server MODULE...` imports the modules once (torch takes seconds),
then reads one JSON request per line and answers with one JSON line. Each request's function runs in
a fork with its own session, its own memory limit and its output in a log. The fork is killed, with
everything that it started, when its time is up or when the client closes the connection. The server
has one thread, because fork is not safe with more, and knows nothing about what its children do.
"""

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOG_HEAD_BYTES = 1 << 20
LOG_TAIL_BYTES = 1 << 16
DISK_CHECK_INTERVAL_S = 1.0
"""Seconds between two checks of the free disk space."""
MIN_FREE_BYTES = 64 << 20
"""Free bytes that a child must leave on the disk; on a small disk a twentieth of it."""


def main(modules: list[str]) -> None:
    """Serve requests from stdin until it closes."""
    _fork_supervised_server()
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Output of an import must not look like a reply.
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # Orphans of a child become ours, so that we can end them.
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The client handles Ctrl-C.
    gc.disable()  # Collections while torch is imported find nothing, and take a fifth of the time.
    try:
        working_directory = str(Path.cwd())
    except FileNotFoundError:  # It was deleted while this process started.
        working_directory = "/"
    os.chdir("/")  # MKL does not load from a working directory that is deleted meanwhile.
    for module in modules:
        importlib.import_module(module)
    with contextlib.suppress(OSError):
        os.chdir(working_directory)
    # `python -P` leaves out the working directory; added last, it cannot hide installed packages.
    sys.path.append(working_directory)
    # Children work in other folders, so relative entries are made absolute.
    python_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(p).resolve()) for p in python_path if p)
    gc.freeze()  # Otherwise a child's first collection copies the pages of all imported modules.
    gc.enable()
    # Python may cache bytecode of the modules above, but none of a problem's files.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    print(json.dumps({"ready": os.getpid()}), file=replies, flush=True)
    for line in _read_lines():
        outcome = serve_request(json.loads(line), wake_read)
        print(json.dumps(outcome), file=replies, flush=True)
    os._exit(0)  # Freeing torch's modules one by one takes half a second.


def _fork_supervised_server() -> None:
    """Continue in a fork; the parent stays as its supervisor.

    The supervisor waits for the server's end, then kills whatever children left running, and ends
    in the same way as the server.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    server = os.fork()
    if server == 0:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.closerange(0, 2)  # Otherwise the client would not see that the server closed its end.
    _, status = os.waitpid(server, 0)
    _kill_all(None)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve_request(request: dict[str, Any], wake_read: int) -> dict[str, Any]:
    """Run one request in a fork, wait for its end, and return the fields of `Outcome` but `answer`.

    The fork is killed at its deadline, and when it fills the disk. The server ends when its client
    does.
    """
    _import_for_children(request["imports"])
    started = time.monotonic()
    deadline = started + request["timeout_s"]
    output_read, output_write = os.pipe2(os.O_CLOEXEC)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _run_child(request, output_write)
    os.close(output_write)
    os.set_blocking(output_read, False)
    timed_out, filled_bytes = False, 0
    disk = _Disk(Path(request["directory"]))
    poll = select.poll()
    poll.register(0, 0)  # Reports only that stdin was closed: the client has gone.
    poll.register(wake_read, select.POLLIN)
    poll.register(output_read, select.POLLIN)
    with _Log(Path(request["log"])) as log:
        while True:
            ready = dict(
                poll.poll(min(DISK_CHECK_INTERVAL_S, max(0.0, deadline - time.monotonic())) * 1000)
            )
            if 0 in ready:
                _kill_all(pid)
                os._exit(0)
            if output_read in ready and not log.copy(output_read):
                poll.unregister(output_read)
            if wake_read in ready:
                os.read(wake_read, 4096)
            reaped, status, usage = os.wait4(pid, os.WNOHANG)
            if reaped:
                break
            timed_out = time.monotonic() >= deadline
            filled_bytes = disk.filled_bytes()
            if timed_out or filled_bytes:
                _kill_group(pid)
                _, status, usage = os.wait4(pid, 0)
                break
        _kill_all(None)
        while log.copy(output_read):
            pass
    os.close(output_read)
    # A child may have deleted its file and started another.
    is_full = filled_bytes > 0 or disk.is_full()
    filled_bytes = filled_bytes or disk.filled_bytes()
    disk.close()
    code = os.waitstatus_to_exitcode(status)
    return {
        "exit_code": code if code >= 0 else None,
        "signal": signal_name(-code) if code < 0 else None,
        "timed_out": timed_out,
        "peak_memory_bytes": usage.ru_maxrss * (1024 if sys.platform == "linux" else 1),
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "disk_full": is_full,
        "filled_bytes": filled_bytes,
        "seconds": time.monotonic() - started,
    }


def _import_for_children(modules: list[str]) -> None:
    """Import modules that children need; one that cannot be imported tells its child why."""
    new = [module for module in modules if module not in sys.modules]
    for module in new:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    if new:
        gc.freeze()


def _run_child(request: dict[str, Any], output_write: int) -> None:
    """Run in the fork: set session and limits, call the function, write its answer, and exit."""
    code = 1
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output_write, 1)
        os.dup2(output_write, 2)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        faulthandler.enable()
        os.chdir(request["directory"])
        os.environ.update(request["environment"])
        tempfile.tempdir = None  # Forget the folder cached before the fork; TMPDIR is new.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # This is not Linux, or a container that forbids it.
            # The kernel's OOM killer kills this process before one of Ray's.
            Path("/proc/self/oom_score_adj").write_text("1000")
        limit_memory(request["memory_bytes"])
        module, function = request["function"].split(":")
        answer = getattr(importlib.import_module(module), function)(request["argument"])
        limit_memory(None)
        record = Path(request["record"])
        record.with_suffix(".partial").write_text(request["seal"] + answer, encoding="utf-8")
        record.with_suffix(".partial").replace(record)
        code = 0
    except SystemExit as error:  # The problem's own code called sys.exit().
        traceback.print_exc()
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def limit_memory(budget_bytes: int | None) -> None:
    """Limit this process to `budget_bytes` more than it has now; None removes the limit.

    RLIMIT_DATA counts private writable memory, but not libraries, mapped files or the addresses
    that CUDA reserves. Only the soft limit is set, so that a child can lift it and report that it
    was reached.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if budget_bytes is None:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        return
    status = Path("/proc/self/status")
    used_bytes = 0
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        used_bytes = int(fields["VmData"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used_bytes + budget_bytes, hard))


def allow_memory(extra_bytes: int) -> None:
    """Raise this process' memory limit by `extra_bytes`, if it has one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (soft + extra_bytes, hard))


def _kill_group(pid: int) -> None:
    """Kill a child and its process group; a new child may not lead a group yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _kill_all(pid: int | None) -> None:
    """Kill the child, if one is given, and then every process that children left running."""
    if pid is not None:
        _kill_group(pid)
    while True:
        for orphan in _list_children():
            _kill_group(orphan)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _list_children() -> list[int]:
    """Return the ids of this process' direct children, which include orphans of killed children."""
    own_pid = os.getpid()
    children = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == own_pid:
            children.append(int(entry.parent.name))
    return children


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def signal_name(number: int) -> str:
    """Return `SIGKILL`, or `signal 40` for a signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


class _Disk:
    """The file system of a child's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # The handle stays valid if the child removes the directory.
        self.handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        space = os.fstatvfs(self.handle)
        self.min_free_bytes = min(MIN_FREE_BYTES, space.f_blocks * space.f_frsize // 20)

    def is_full(self) -> bool:
        space = os.fstatvfs(self.handle)
        return space.f_bavail * space.f_frsize < self.min_free_bytes

    def filled_bytes(self) -> int:
        """Return the bytes in the child's directory if they are what filled the disk, else 0."""
        written_bytes = self._written_bytes() if self.is_full() else 0
        return written_bytes if written_bytes >= self.min_free_bytes else 0

    def _written_bytes(self) -> int:
        total_bytes = 0
        for folder, _, names in os.walk(self.directory):
            for name in names:
                with contextlib.suppress(OSError):  # The child may delete files meanwhile.
                    total_bytes += os.lstat(Path(folder, name)).st_blocks * 512
        return total_bytes

    def close(self) -> None:
        os.close(self.handle)


class _Log:
    """A log file with the first MiB and the last 64 KiB of a child's output.

    If the disk is full the log is cut short, and nothing else fails.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("wb", buffering=0)
        self.head_bytes = 0
        self.dropped_bytes = 0
        self.tail = b""

    def copy(self, source: int) -> bool:
        """Copy the available output; return False at its end and when none is available."""
        try:
            chunk = os.read(source, 1 << 16)
        except BlockingIOError:
            return False
        head_room_bytes = max(0, LOG_HEAD_BYTES - self.head_bytes)
        self._write(chunk[:head_room_bytes])
        self.head_bytes += len(chunk[:head_room_bytes])
        tail = self.tail + chunk[head_room_bytes:]
        self.tail = tail[-LOG_TAIL_BYTES:]
        self.dropped_bytes += len(tail) - len(self.tail)
        return bool(chunk)

    def __enter__(self) -> "_Log":
        return self

    def __exit__(self, *_: object) -> None:
        if self.dropped_bytes:
            self._write(f"\n... {self.dropped_bytes} bytes left out ...\n".encode())
        self._write(self.tail)
        self.file.close()

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            while data:
                data = data[self.file.write(data) or 0 :]


def _read_lines() -> Iterator[bytes]:
    """Yield the lines of stdin as they arrive.

    Reads without a buffered file, which would hide waiting lines from poll().
    """
    pending = b""
    while chunk := os.read(0, 1 << 16):
        pending += chunk
        while b"\n" in pending:
            line, pending = pending.split(b"\n", 1)
            yield line


if __name__ == "__main__":
    main(sys.argv[1:])
