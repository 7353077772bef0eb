"""Starts a Python process that has torch, and the functions of some modules of kdrun as text.

It cannot import kdrun, and no argument, file name or environment variable tells who asks.
"""

import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from runner.verify.guard import forking_server
from runner.verify.guard.wire_format import Channel


def start_process(
    program: ModuleType,
    tools: Sequence[ModuleType],
    environment: Mapping[str, str],
    removed_variables: Sequence[str] = (),
) -> tuple["subprocess.Popen[bytes]", Channel]:
    """Start a server that calls `run_request` of a program's module; return it and its channel.

    `tools`: modules whose names `run_request` gets as one dict. `removed_variables`: those that
    only the start of the process needs.
    """
    own_end, process_end = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-P", "-"],
        stdin=subprocess.PIPE,
        pass_fds=[process_end.fileno()],
        env=environment,
    )
    parts = [_read_source(forking_server), _read_source(program)]
    parts += [f"os.environ.pop({name!r}, None)" for name in removed_variables]
    parts += ["tools = {}", *(f"exec({_read_source(tool)!r}, tools)" for tool in tools)]
    parts.append(f"serve({process_end.fileno()}, run_request, tools)")
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write("\n".join(parts).encode())
    process_end.close()
    return process, Channel(own_end)


def _read_source(module: ModuleType) -> str:
    """Return a module's source without its imports of kdrun.

    Those names are in the same dict already.
    """
    lines = Path(str(module.__file__)).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("from runner."))
