"""A confined process writes to its folder alone, and reaches nothing else."""

import ctypes
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from runner.verify.guard.sandbox import system_paths

pytestmark = pytest.mark.long

PROGRAM = """
import os, socket, sys
from pathlib import Path
from runner.verify.guard.sandbox import confine

folder = Path(sys.argv[1])
import torch
confine(folder, [folder.parent / "readable", Path("/usr"), Path("/lib")])
try:
    {does}
except (OSError, RuntimeError):
    print("refused")
else:
    print("done")
"""
FORBIDDEN = {
    "writes beside its folder": "(folder.parent / 'other').write_text('x')",
    "changes a file by torch": "torch.from_file(str(folder.parent / 'kept'), shared=True, size=1)",
    "removes a file": "(folder.parent / 'kept').unlink()",
    "reads another folder": "(folder.parent / 'kept').read_text()",
    "ends its parent": "os.kill(os.getppid(), 0)",
    "uses the network": "socket.create_connection(('127.0.0.1', 9))",
    "sends a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "lets others write a file": "(folder.parent / 'kept').chmod(0o777)",
    "sets a file's time": "os.utime(folder.parent / 'kept')",
    "leaves its session": "os.setsid()",
    "reads its parent's memory": "open(f'/proc/{os.getppid()}/mem', 'rb')",
}
ALLOWED = {
    "starts another process": "os.waitpid(os.posix_spawn('/usr/bin/true', ['true'], {}), 0)",
    "talks to what it has started": "socket.socketpair()",
    "writes to its folder": "(folder / 'own').write_text('x')",
    "reads what it is given": "(folder.parent / 'readable' / 'a').read_text()",
}


def outcome(tmp_path: Path, does: str) -> str:
    (tmp_path / "own").mkdir()
    (tmp_path / "readable").mkdir()
    (tmp_path / "readable" / "a").write_text("text")
    (tmp_path / "kept").write_text("kept")
    program = textwrap.dedent(PROGRAM).format(does=does)
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "own")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (tmp_path / "kept").read_text() == "kept"
    return ended.stdout.strip()


@pytest.fixture(autouse=True)
def needs_landlock() -> None:
    version = ctypes.CDLL(None).syscall(444, None, 0, 1)
    if version < 6:
        pytest.skip(f"this kernel's Landlock is version {version}; 6 restricts all of this")


@pytest.mark.parametrize("does", FORBIDDEN.values(), ids=FORBIDDEN)
def test_it_is_refused(tmp_path, does):
    assert outcome(tmp_path, does) == "refused"


@pytest.mark.parametrize("does", ALLOWED.values(), ids=ALLOWED)
def test_it_may_do_this(tmp_path, does):
    assert outcome(tmp_path, does) == "done"


LEAVES_PROCESSES = """
import os, time
from runner.verify.guard import forking_server

def start():
    child = os.fork()
    if not child:
        time.sleep(1000)
    return child

def is_running(child):
    try:
        return os.waitpid(child, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False

program, stray = start(), start()
forking_server._end_children({program})
print(is_running(program), is_running(stray))
forking_server._end_children(set())
print(is_running(program))
os.listdir = os.scandir = None
forking_server._end_children(set())  # Without children, nothing has to be listed.
"""


def test_processes_that_a_program_leaves_are_ended_and_looked_for_only_where_there_are_any() -> (
    None
):
    ended = subprocess.run(
        [sys.executable, "-c", LEAVES_PROCESSES], capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("True False\nFalse\n", "")


def test_a_folder_of_packages_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x-packages").mkdir()
    (tmp_path / "x-packages" / "link").symlink_to(tmp_path / "cache")
    monkeypatch.syspath_prepend(tmp_path / "x-packages")
    first = system_paths()
    assert {tmp_path / "cache", Path(torch.__file__).parents[1]} <= {*first}
    monkeypatch.setattr(Path, "iterdir", None)
    assert system_paths() == first
