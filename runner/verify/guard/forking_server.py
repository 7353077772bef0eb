"""Answers a judge's requests, each in a fork that ends with all that it has started.

A judge starts it as `python -P -` with this text on standard input, followed by the text of a
program, which defines `run_request`, and by those of its tools: no frame, module, argument or file
name tells who asks. It reads requests from a socket, and each is answered over a socket that comes
with it.
"""

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

_SET_CHILD_SUBREAPER = 36


def serve(descriptor: int, run_request: Callable[..., None], tools: dict[str, Any]) -> None:
    """Call `run_request(request, answers, tools)` in a fork for each request.

    It returns when the other side closes the socket.
    """
    channel = tools["Channel"](socket.socket(fileno=descriptor))
    tools["seed_generators"](0)  # It imports modules, which no fork has to import again.
    gc.freeze()  # A garbage collection would write to pages that forks share.
    if sys.platform == "linux":  # Whatever a program leaves running becomes a child of this one.
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    programs: set[int] = set()
    while True:
        try:
            request, files = channel.receive()
        except tools["ConnectionLostError"]:
            _end_children(set())
            os._exit(0)
        if ended := {program for program in programs if os.waitpid(program, os.WNOHANG)[0]}:
            programs -= ended
            _end_children(programs)
        program = os.fork()
        if program:
            programs.add(program)
        else:
            os.setpgid(0, 0)  # Killing the group also ends the processes that the program starts.
            os.close(descriptor)
            answers = tools["Channel"](socket.socket(fileno=os.dup(files.pop(0).descriptor)))
            run_request(request, answers, tools)
            os._exit(0)
        del request, files


def _end_children(programs: set[int]) -> None:
    """Kill the children of this process that are no running programs, with their groups."""
    if sys.platform != "linux" or not (programs or _has_children()):
        return
    own_id = str(os.getpid()).encode()
    # These are quicker than pathlib, and a machine may run thousands of processes.
    names = os.listdir("/proc")  # noqa: PTH208
    for child in (int(name) for name in names if name.isdigit()):
        with contextlib.suppress(OSError):
            with open(f"/proc/{child}/stat", "rb", buffering=0) as file:  # noqa: PTH123
                parent_id = file.read().rpartition(b")")[2].split()[1]
            if parent_id == own_id and child not in programs:
                for kill in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _has_children() -> bool:
    """Return whether this process has children, running or ended."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
