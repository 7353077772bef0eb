"""SIGTERM before a run has begun: nothing is started, and a command is gone within seconds."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import KDRUN, Begin, wait_for
from whole_problem import WHOLE

pytestmark = pytest.mark.kill

HANGS = "import pathlib, time\npathlib.Path({flag!r}).touch()\ntime.sleep(1000)"


def children(pid: int, program: str) -> Iterator[int]:
    """Processes that a process has started, by the name of their program."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and (folder / "exe").readlink().name == program:
                yield int(folder.name)
        except OSError:  # gone meanwhile
            continue


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_whose_ray_is_still_starting_ends_within_seconds(
    begin: Begin, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1/1_whole.py").write_text(WHOLE)
    command = ("submit", "--data", ".", "--run-id", "early", "--memory", "2GiB")
    run = begin(KDRUN, *command, cwd=tmp_path)
    raylet = wait_for(lambda: next(children(run.pid, "raylet"), None))
    os.kill(raylet, signal.SIGSTOP)  # it will not be up
    began = time.monotonic()
    run.send_signal(number)
    out, err = run.communicate(timeout=180)
    assert time.monotonic() - began < 25
    assert run.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1] == "kdrun: interrupted"
    assert "Traceback" not in err
    assert not (tmp_path / "output/runs/early/manifest.json").exists()
    wait_for(lambda: not Path(f"/proc/{raylet}").exists())


def test_a_problem_that_is_decomposed_ends_with_its_command(begin: Begin, tmp_path: Path) -> None:
    flag = tmp_path / "hangs"
    problem = tmp_path / "hangs.py"
    problem.write_text(WHOLE + HANGS.format(flag=str(flag)))
    run = begin(KDRUN, "decompose", problem, cwd=tmp_path)
    wait_for(flag.exists)
    run.terminate()
    _, err = run.communicate(timeout=180)
    assert (run.returncode, err.splitlines()[-1]) == (130, "kdrun: interrupted")
    assert [path.name for path in (tmp_path / "output").rglob(".*")] == []
