"""What the children of test_child_processes.py do."""

import ctypes
import os
import signal
import sys
import tempfile
import time
from pathlib import Path


def shout(argument: str) -> str:
    return argument.upper()


def is_imported(argument: str) -> str:
    return str(argument in sys.modules)


def allocate(argument: str) -> str:
    kept = []
    for _ in range(int(argument)):
        kept.append(bytearray(1 << 20))
    return "kept"


def allocate_a_tensor(argument: str) -> str:
    import torch

    try:
        torch.ones(int(argument) << 18)
    except RuntimeError as error:
        return str(error)
    return "kept"


def hang(argument: str) -> str:
    time.sleep(1000)
    return ""


def ignore_everything_and_hang(argument: str) -> str:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)
    return ""


def segfault(argument: str) -> str:
    ctypes.string_at(0)
    return ""


def sys_exit(argument: str) -> str:
    sys.exit(7)


def exit_as_if_well(argument: str) -> str:
    os._exit(0)


def forge_an_answer(argument: str) -> str:
    Path("record.json").write_text('{"status": "passed"}')
    os._exit(0)


def leave_a_daemon(argument: str) -> str:
    """Double-forked, in a session of its own, as a server would be started; says its pid."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            time.sleep(1000)
        os._exit(0)
    return os.read(reading, 20).decode()


def leave_a_daemon_and_hang(argument: str) -> str:
    with Path(argument).open("w") as file:
        file.write(leave_a_daemon(""))
    return hang("")


def print_much(argument: str) -> str:
    for n in range(100_000):
        print(f"line {n} " + "." * 40)
    return ""


def environment(argument: str) -> str:
    return "\n".join(os.environ)


def gpu(argument: str) -> str:
    """Whether torch was there before we asked for it, CUDA as it was, and the GPU that is ours."""
    prepared = "torch" in sys.modules
    import torch

    return f"{prepared} {torch.cuda.is_initialized()} {os.environ.get('CUDA_VISIBLE_DEVICES')}"


def kill_the_server(argument: str) -> str:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)
    return ""


def leave_a_daemon_and_kill_the_server(argument: str) -> str:
    """Start a process that belongs to nobody, which writes its number to `argument`."""
    server = os.getppid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            Path(argument).write_text(str(os.getpid()))
            time.sleep(1000)
        os._exit(0)
    while not Path(argument).exists():
        time.sleep(0.01)
    os.kill(server, signal.SIGKILL)
    time.sleep(1000)
    return ""


def threads(argument: str) -> str:
    import torch

    torch.set_num_threads(2)
    x = torch.ones(600, 600)
    return str((x @ x).sum().item())


def leave_a_temporary_file(argument: str) -> str:
    descriptor, path = tempfile.mkstemp()
    os.close(descriptor)
    return path
