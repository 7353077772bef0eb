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
from pathlib import Path
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
        programs -= {program for program in programs if os.waitpid(program, os.WNOHANG)[0]}
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
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            fields = entry.read_text().rpartition(")")[2].split()
            child = int(entry.parent.name)
            if int(fields[1]) == os.getpid() and child not in programs:
                for kill in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
