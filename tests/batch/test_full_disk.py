"""A disk that is full, for real: a small one is mounted, where we may."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from runner.batch.attempt import Attempt, decompose, run_task
from runner.batch.child.answer import FailureCause, failure_cause
from runner.batch.child.task import Task
from runner.batch.event_log import EventLog, open_log
from runner.batch.machine import GIB
from runner.batch.run_lock import hold_run_lock
from runner.errors import StoreError
from runner.store.manifest_row import Row
from runner.store.result import ProblemResult, RunOptions
from runner.store.row_files import Rows

pytestmark = pytest.mark.usefixtures("own_fork_server")
MIB = 1 << 20

FILLS = """
with open("filling", "wb") as file:
    while True:
        file.write(bytes(1 << 20))
"""
FILLS_AND_CARRIES_ON = f"""
import time
try:{FILLS.replace(chr(10), chr(10) + "    ")}
except OSError:
    time.sleep(1000)
"""


@pytest.fixture
def task(write: Callable[[str], Path], disk: Path) -> Callable[[str], Task]:
    def made(more: str = "") -> Task:
        problem = write("whole")
        problem.write_text(problem.read_text() + more)
        return Task(
            problem=problem,
            label="level1/whole",
            directory=disk / "out/level1/whole",
            scratch=disk / "out/level1/.scratch",
            options=RunOptions(trials=1),
            memory_bytes=2 * GIB,
            most_memory_bytes=4 * GIB,
            timeout_s=300,
        )

    return made


@pytest.mark.parametrize("more", [FILLS, FILLS_AND_CARRIES_ON], ids=["fails", "carries on"])
def test_a_problem_that_fills_the_disk_is_told_so_and_gives_it_back(
    task: Callable[[str], Task], tmp_path: Path, more: str
) -> None:
    made = task(more)
    done = decompose(made, tmp_path / "log")
    result = ProblemResult.from_directory(made.directory)
    assert result == done.result
    assert result.status == "crashed"
    where = re.escape(str(made.directory.parent))
    assert re.fullmatch(
        rf"wrote [23]\d\.\d MiB in 'capture', which filled the disk of {where} "
        r"\((0 B|[\d.]+ KiB|[01]\.\d MiB) of 32\.0 MiB free\); "
        r"free some space there, or choose another --output",
        str(result.reason),
    )
    assert failure_cause(done.answer) is None
    assert "filling" not in str(sorted(made.directory.parent.rglob("*")))
    made.problem.write_text(made.problem.read_text().replace(more, ""))
    assert decompose(made, tmp_path / "log").answer.status == "passed"


def test_a_disk_that_others_filled_is_no_fault_of_the_problem(
    task: Callable[[str], Task], disk: Path, tmp_path: Path
) -> None:
    made = task("")
    filling = disk / "others"
    with pytest.raises(OSError, match="No space left"):
        filling.write_bytes(bytes(33 * MIB))
    answer = run_task(made.model_dump_json(), str(tmp_path / "log"))
    record = Attempt.model_validate_json(answer).answer
    assert failure_cause(record) is FailureCause.DISK_FULL
    assert record.status != "passed"
    where = re.escape(str(made.directory.parent))
    told = rf"no space left .*disk of {where} \(.* of 32\.0 MiB free\)|: No space left on device"
    advice = "; free some space there, or choose another --output"
    assert re.search(f"({told}){advice}$", str(record.reason))
    filling.unlink()
    assert decompose(made, tmp_path / "log").answer.status == "passed"


def test_the_log_and_the_lock_of_a_run_hide_no_error_on_a_full_disk(disk: Path) -> None:
    folder = disk / "run"
    with open_log(folder) as log, (disk / "filling").open("wb", buffering=0) as file:
        with suppress(OSError):
            while True:
                file.write(bytes(4096))
        EventLog(log, "run").on_message("one line")
    with pytest.raises(StoreError, match=r"No space left on device; free some"):
        hold_run_lock(folder, "run").__enter__()


def test_a_row_that_a_full_disk_does_not_take_is_one_line_and_those_before_stay(disk: Path) -> None:
    rows = Rows(disk / "run", ["level1/a", "level1/b"])
    a, b = (
        Row(problem=name, source_level="level1", status="failed", reason=name * 9999)
        for name in "ab"
    )
    rows.put(a)
    with (disk / "filling").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    with pytest.raises(StoreError, match=r"disk/run: No space left on device; free some space"):
        rows.put(b)
    assert list(rows) == [a]
    (disk / "filling").unlink()
    rows.put(b)
    assert list(rows) == [a, b]
