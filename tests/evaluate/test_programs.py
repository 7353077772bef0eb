"""Programs in confined processes: when they run, when they end, what they may return."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from solution_files import HEAD

from runner.evaluate.program import ProgramError, ProgramFile, ProgramServer

pytestmark = pytest.mark.long

RELU = """
class ModelNew(nn.Module):
    def forward(self, x):
        return F.relu(x)
"""
SUBCLASS = """
class Late(torch.Tensor):
    pass


nn.Parameter = Late


class ModelNew(nn.Module):
    def forward(self, x):
        return F.relu(x).as_subclass(Late)
"""
HELPER = """
import subprocess, sys

helper = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"], start_new_session=True)


class ModelNew(nn.Module):
    def forward(self, x):
        return x + helper.pid
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramServer]:
    with ProgramServer(tmp_path_factory.mktemp("programs"), threads=1) as server:
        yield server


def solution_file(folder: Path, text: str) -> ProgramFile:
    file = folder / "solution.py"
    file.write_text(HEAD + text, encoding="utf-8")
    return ProgramFile(file, "ModelNew", [], is_solution=True)


def read_state(process: int) -> str:
    """Return a letter such as T for a stopped process; Z also if it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return "Z"
    return text.rpartition(")")[2].split()[0]


def wait_for_state(process: int, state: str) -> bool:
    """Return whether a process gets into a state; signals take a moment."""
    deadline = time.monotonic() + 30
    while read_state(process) != state and time.monotonic() < deadline:
        time.sleep(0.01)
    return read_state(process) == state


def test_a_stopped_program_does_not_run_and_ends_with_its_block(
    server: ProgramServer, tmp_path: Path
) -> None:
    with server.start(solution_file(tmp_path, RELU)) as program:
        process = program._process
        program.build()
        program.stop()
        assert wait_for_state(process, "T")
        with program.running():
            program.place([((torch.ones(4),), {})], seed=0)
            program.run_batch()
            (output,), _ = program.deliver(1)
        assert torch.equal(output, torch.ones(4))
        assert wait_for_state(process, "T")
    assert wait_for_state(process, "Z")


def test_a_helper_that_asks_for_a_session_of_its_own_is_stopped_and_ended_too(
    server: ProgramServer, tmp_path: Path
) -> None:
    with server.start(solution_file(tmp_path, HELPER)) as program:
        program.build()
        with program.running():
            program.place([((torch.zeros(1, dtype=torch.int64),), {})], seed=0)
            program.run_batch()
            (process,), _ = program.deliver(1)
        assert wait_for_state(int(process), "T")
    assert wait_for_state(int(process), "Z")


def test_a_program_cannot_pass_a_class_of_its_own_off_as_a_plain_tensor(
    server: ProgramServer, tmp_path: Path
) -> None:
    with server.start(solution_file(tmp_path, SUBCLASS)) as program:
        program.build()
        program.place([((torch.ones(4),), {})], seed=0)
        with pytest.raises(ProgramError, match=r"return a plain torch\.Tensor"):
            program.run_batch()
