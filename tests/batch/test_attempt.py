"""One attempt at a problem: how each way to end becomes a status, a reason, and files."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from runner.batch.attempt import (
    Attempt,
    commit_failure,
    decompose,
    run_task,
    run_without_commit,
)
from runner.batch.child import problem_work
from runner.batch.child.answer import FailureCause, failure_cause
from runner.batch.child.task import Task
from runner.batch.machine import GIB
from runner.store.result import ProblemResult, RunOptions, first_mismatch
from runner.verify import VerifyOptions
from runner.verify import verify as verify_directory

pytestmark = pytest.mark.usefixtures("own_fork_server")
Make = Callable[..., Task]


@pytest.fixture
def task(write: Callable[[str], Path], tmp_path: Path) -> Make:
    def make(name: str = "whole", **changes: Any) -> Task:
        fields: dict[str, Any] = {
            "problem": write(name),
            "label": f"level1/{name}",
            "directory": tmp_path / "out/level1" / name,
            "scratch": tmp_path / "out/level1/.scratch",
            "options": RunOptions(trials=1),
            "memory_bytes": 2 * GIB,
            "most_memory_bytes": 4 * GIB,
            "timeout_s": 300,
        }
        return Task.model_validate(fields | changes)

    return make


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "log"


def test_a_passed_problem_is_in_place_with_a_result_that_vouches_for_every_file(
    task: Make, log: Path
) -> None:
    made = task()
    done = decompose(made, log)
    assert done.answer.status == "passed", done.answer.reason
    result = ProblemResult.from_directory(made.directory)
    assert result == done.result
    files = {p.relative_to(made.directory).as_posix() for p in made.directory.rglob("*.*")}
    assert set(result.files) == {f for f in files if "." in f.rpartition("/")[2]} - {"result.json"}
    assert first_mismatch(made.directory, result.files) is None
    assert result.peak_memory_bytes is not None
    assert set(result.seconds) == {"load", "capture", "decompose", "verify"}


def test_a_forward_under_torch_compile_is_what_its_author_wrote(task: Make, log: Path) -> None:
    made = task()
    source = made.problem.read_text(encoding="utf-8")
    compiled = source.replace(
        "    def forward", "    @torch.compile(fullgraph=True)\n    def forward"
    )
    made.problem.write_text(compiled, encoding="utf-8")
    done = decompose(made, log)
    assert done.answer.status == "passed", done.answer.reason


def test_nothing_but_the_decomposition_is_left(task: Make, log: Path) -> None:
    made = task()
    decompose(made, log)
    assert [path.name for path in made.directory.parent.iterdir()] == ["whole"]


def test_an_earlier_decomposition_is_replaced_as_a_whole(task: Make, log: Path) -> None:
    made = task()
    made.directory.mkdir(parents=True)
    (made.directory / "stale.py").touch()
    decompose(made, log)
    assert not (made.directory / "stale.py").exists()


def test_an_error_replaces_what_passed_unless_the_task_keeps_it(task: Make, log: Path) -> None:
    made = task()
    decompose(made, log)
    made.problem.write_text("x = 1\n")
    for keeps_passed, stands in ((True, "passed"), (False, "error")):
        done = decompose(made.model_copy(update={"keeps_passed": keeps_passed}), log)
        assert done.answer.status == "error"
        assert ProblemResult.from_directory(made.directory).status == stands
        assert (done.artifact_prefix is None) == keeps_passed


def test_a_problem_may_come_with_its_task_and_needs_no_file_then(task: Make, log: Path) -> None:
    here = task()
    decompose(here, log)
    files = ProblemResult.from_directory(here.directory).files
    source = here.problem.read_bytes()
    here.problem.unlink()
    sent = json.loads(here.model_copy(update={"source": source}).model_dump_json())
    done = Attempt.model_validate_json(run_task(json.dumps(sent), str(log)))
    assert done.result is not None
    assert (done.result.status, done.result.source_sha256) == ("passed", sha256(source).hexdigest())
    same = {name for name in files if not name.startswith("verification/")}
    assert {name: done.result.files[name] for name in same} == {name: files[name] for name in same}
    assert not here.problem.exists()


def test_what_comes_with_a_task_may_be_any_bytes(task: Make, log: Path) -> None:
    broken = task().model_copy(update={"source": b"# \xff\nimport torch\n"})
    done = Attempt.model_validate_json(run_task(broken.model_dump_json(), str(log)))
    assert (done.answer.status, done.answer.reason) == (
        "error",
        "not UTF-8: byte 0xff (line 1); save the file as UTF-8",
    )


def test_the_gates_use_what_a_run_would_give_them_however_much_there_is(
    task: Make, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int | None] = []

    def verify_noting(
        directory: Path, options: VerifyOptions, watch: Callable[[str], None], *, trusted: bool
    ) -> Any:
        given.append(options.memory_bytes)
        return verify_directory(directory, options, watch, trusted=trusted)

    monkeypatch.setattr("runner.batch.child.problem_work.verify_directory", verify_noting)
    for memory in (2 * GIB, 64 * GIB):
        made = task(memory_bytes=memory, most_memory_bytes=64 * GIB)
        made.scratch.mkdir(parents=True, exist_ok=True)
        assert json.loads(problem_work.decompose(made.model_dump_json()))["status"] == "passed"
        shutil.rmtree(made.scratch)
    assert given == [2 * GIB, 2 * GIB]


def test_verifying_a_directory_does_not_touch_it(task: Make, log: Path) -> None:
    made = task()
    decompose(made, log)
    before = {path: path.stat().st_mtime_ns for path in made.directory.rglob("*")}
    again = run_without_commit("verify", made, log).answer
    assert again.status == "passed"
    assert again.verification is not None
    assert {path: path.stat().st_mtime_ns for path in made.directory.rglob("*")} == before


def test_a_kernel_that_is_not_the_original_s_fails(task: Make, log: Path) -> None:
    made = task()
    decompose(made, log)
    for path in made.directory.glob("level_0_kernel/*.py"):
        text = path.read_text()
        changed = text.replace("x * 2", "x * 3")
        assert changed != text
        path.write_text(changed)
    record = run_without_commit("verify", made, log).answer
    assert record.status == "failed"
    assert "composition" in str(record.reason) or "coverage" in str(record.reason)


def test_an_estimate_says_how_much_one_forward_pass_needs(task: Make, log: Path) -> None:
    done = run_without_commit("estimate", task(), log)
    assert done.answer.forecast is not None
    assert done.answer.forecast.forward_bytes >= 2 * 2 * 3 * 4
    assert not task().directory.parent.exists() or not list(task().directory.parent.iterdir())


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("segfault", "crashed", "its process was killed by SIGSEGV in 'capture'"),
        ("exit", "crashed", "its process ended with exit code 5 in 'capture'"),
        ("silent_exit", "crashed", "its process ended with exit code 0 in 'capture'"),
        ("kill_parent", "crashed", "its process was killed by SIGKILL in 'capture'"),
        pytest.param(
            *("hang", "timeout", "not finished after 3 s, in 'capture'"), marks=pytest.mark.long
        ),
        ("sys_exit", "error", "SystemExit: 0 (line "),
        ("memory", "too_large", "needs more than 0.5 GiB in 'capture', the largest node has 4.0"),
    ],
)
def test_each_end_has_its_status_and_a_reason(
    task: Make, log: Path, name: str, status: str, reason: str
) -> None:
    limits = {"timeout_s": 3} if name == "hang" else {"memory_bytes": GIB // 2}
    made = task(name, **limits)
    done = commit_failure(made, run_without_commit("estimate", made, log), log)
    result = ProblemResult.from_directory(made.directory)
    assert (result.status, str(result.reason)[: len(reason)]) == (status, reason)
    assert result == done.result
    assert set(result.files) - {"verification/log.txt"} == {"original.py"}


def test_what_is_certainly_too_large_is_taken_apart_and_not_run(task: Make, log: Path) -> None:
    made = task(memory_bytes=GIB, most_memory_bytes=GIB)
    made.problem.write_text(made.problem.read_text().replace("(2, 3)", "(1 << 30)"))
    done = decompose(made, log)
    assert done.result is not None
    assert done.result.status == "too_large"
    assert done.result.reason == "needs 8.0 GiB, the largest node has 1.0 GiB"
    assert failure_cause(done.answer) is None  # nobody tries again what nothing can hold
    assert done.result.figures is not None
    assert "decomposition_tree.json" in done.result.files
    assert done.peak_memory_bytes is not None
    assert done.peak_memory_bytes < GIB


def test_what_is_too_large_ends_as_written_if_that_was_asked_for(task: Make, log: Path) -> None:
    options = RunOptions(unverified=True, trials=1)
    made = task(memory_bytes=GIB, most_memory_bytes=GIB, options=options)
    made.problem.write_text(made.problem.read_text().replace("(2, 3)", "(1 << 30)"))
    result = decompose(made, log).result
    assert result is not None
    assert (result.status, result.reason) == (
        "written",
        "not verified: needs 8.0 GiB, the largest node has 1.0 GiB",
    )
    assert "decomposition_tree.json" in result.files


def test_without_verification_files_are_written_and_nothing_is_run(task: Make, log: Path) -> None:
    result = decompose(task(options=RunOptions(verify=False)), log).result
    assert result is not None
    assert (result.status, result.reason) == ("written", "not verified, as --no-verify asks")
    assert "decomposition_tree.json" in result.files
    assert "verification/test_results.json" not in result.files


def test_a_problem_that_forks_is_done_once(task: Make, log: Path) -> None:
    assert decompose(task("fork"), log).answer.status == "passed"


def test_running_out_of_memory_is_told_apart_so_that_more_can_be_tried(
    task: Make, log: Path
) -> None:
    more = run_without_commit("estimate", task("memory", memory_bytes=GIB // 2), log).answer
    assert failure_cause(more) is FailureCause.OUT_OF_MEMORY
    assert failure_cause(run_without_commit("estimate", task("exit"), log).answer) is None


def test_what_the_child_printed_is_in_the_log(task: Make, log: Path) -> None:
    run_without_commit("estimate", task("segfault"), log)
    assert "Segmentation fault" in log.read_text()


def test_an_empty_log_is_not_kept(task: Make, log: Path) -> None:
    run_without_commit("estimate", task(), log)
    assert not log.exists()


def test_a_problem_file_that_is_gone_is_an_error_of_its_own(task: Make, log: Path) -> None:
    made = task()
    made.problem.unlink()
    done = commit_failure(made, run_without_commit("estimate", made, log), log)
    assert (done.answer.status, done.answer.reason) == ("error", "no such file")


def test_a_worker_says_what_it_cannot_write_and_raises_nothing(task: Make, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file where a directory should be")
    answer = run_task(task().model_dump_json(), str(tmp_path / "log"))
    attempt = Attempt.model_validate_json(answer)
    assert attempt.answer.status == "failed"
    assert "out/level1: a file is where a folder must be" in str(attempt.answer.reason)


def test_a_result_is_readable_json(task: Make, log: Path) -> None:
    made = task()
    decompose(made, log)
    document = json.loads((made.directory / "result.json").read_text())
    assert document["status"] == "passed"
    assert "reason" not in document


STREAMED = '''
import torch
from torch import nn


class Model(nn.Module):
    """16 times 16 MiB."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2048, 2048) for _ in range(16))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def get_inputs():
    return [torch.randn(2, 2048)]


def get_init_inputs():
    return []
'''


def test_a_model_larger_than_memory_is_verified_with_streamed_weights(
    task: Make, log: Path, tmp_path: Path
) -> None:
    problem = tmp_path / "level3" / "deep.py"
    problem.parent.mkdir()
    problem.write_text(STREAMED)
    budget = 192 << 20
    made = task(problem=problem, memory_bytes=budget, most_memory_bytes=budget)
    done = decompose(made, log)
    assert done.result is not None
    assert done.result.status == "passed", done.result.reason
    assert done.result.bitwise_equal
    assert done.result.figures is not None
    assert done.result.figures.estimated_peak_bytes > budget
    assert done.result.health[0].startswith("weights: streamed, seed 0: ")
    report = json.loads((made.directory / "verification/test_results.json").read_text())
    assert report["streamed"] is True
    again = run_without_commit("verify", made, log).answer
    assert again.status == "too_large"
    assert str(again.reason).endswith("streamed only where kdrun has just written the files")


def test_a_process_that_cannot_be_started_is_not_blamed_on_the_output(
    task: Make, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("runner.batch.attempt.run_child", refuse)
    attempt = Attempt.model_validate_json(run_task(task().model_dump_json(), str(log)))
    assert attempt.answer.status == "failed"
    assert "Too many open files" in str(attempt.answer.reason)
    assert "--output" not in str(attempt.answer.reason)
