"""Runs and stores: what a worker sends, and which run the same command goes on with."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner import __version__
from runner.batch.attempt import commit_failure, decompose
from runner.batch.child.task import Task, TaskTarget
from runner.batch.machine import GIB
from runner.batch.plan import PlanItem
from runner.batch.stored_results import find_unfinished_run, plan_with_store
from runner.problems import Problem, identify_problem
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest
from runner.store.objects import Address
from runner.store.result import ProblemResult, RunOptions, hash_files
from runner.store.runs import RunStore
from tests.store.documents import FIGURES, save

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(Address(uri=str(tmp_path / "store")))


@pytest.fixture
def task(write: Callable[[str], Path], tmp_path: Path, store: RunStore) -> Callable[..., Task]:
    def made(name: str = "whole") -> Task:
        return Task(
            problem=write(name),
            label=f"level1/{name}",
            directory=tmp_path / "out/level1" / name,
            scratch=tmp_path / "out/level1/.scratch",
            options=RunOptions(trials=1),
            memory_bytes=2 * GIB,
            most_memory_bytes=4 * GIB,
            timeout_s=300,
            target=TaskTarget(address=store.address, run_id="one"),
        )

    return made


@pytest.mark.usefixtures("own_fork_server")
def test_a_worker_sends_what_it_made_and_says_where_it_is(
    task: Callable[..., Task], store: RunStore, tmp_path: Path
) -> None:
    done = decompose(task(), tmp_path / "log")
    standing = store.find_result("one", "level1/whole")
    assert standing is not None
    assert standing.result == done.result
    assert (done.artifact_prefix, done.result_sha256) == (standing.prefix, standing.sha256)
    assert store.damage("one", standing.result) is None
    sent = [path for path in (tmp_path / "store/one").rglob("*") if path.is_file()]
    sizes = [path.stat().st_size for path in sent if path.name != "result.json"]
    assert done.uploaded_bytes == sum(sizes) > 0


@pytest.mark.usefixtures("own_fork_server")
def test_what_a_problem_s_process_printed_is_sent_with_its_end(
    task: Callable[..., Task], store: RunStore, tmp_path: Path
) -> None:
    done = decompose(task("segfault"), tmp_path / "log")
    assert done.answer.status == "crashed"
    log = store.objects.get("one/logs/level1/segfault.log")
    assert log is not None
    assert b"Segmentation fault" in log.data


@pytest.mark.usefixtures("own_fork_server")
def test_a_store_that_fails_costs_nothing_that_was_made(
    task: Callable[..., Task], tmp_path: Path
) -> None:
    (tmp_path / "store").write_text("a file where the store should be")
    made = task()
    done = decompose(made, tmp_path / "log")
    assert done.answer.status == "passed"
    assert done.store_error is not None
    assert "choose another --store" in done.store_error
    assert (made.directory / "result.json").is_file()


@pytest.mark.usefixtures("own_fork_server")
def test_a_worker_that_lost_its_answer_takes_over_what_it_had_sent(
    task: Callable[..., Task], store: RunStore, tmp_path: Path
) -> None:
    made = task()
    first = decompose(made, tmp_path / "log")
    again = decompose(made, tmp_path / "log")
    assert again.result == first.result
    assert again.differs == []
    given_up = commit_failure(made, first.model_copy(update={"result": None}), tmp_path / "log")
    assert given_up.result == first.result


def run(run_id: str, state: str, minutes: int, **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "run_id": run_id,
        "state": state,
        "arguments": {"level": [3]},
        "versions": {},
        "driver_host": "far",
        "driver_pid": 1,
        "data": "",
        "started": NOW + timedelta(minutes=minutes),
        "finished": None if state == "running" else NOW,
        "selected": 0,
        "counts": {},
        "rows": [],
    }
    return Manifest.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], None),
        ([run("a", "interrupted", 1)], "a"),
        ([run("b", "interrupted", 1), run("a", "interrupted", 2)], "a"),
        ([run("a", "interrupted", 1), run("b", "finished", 2)], None),
        ([run("a", "running", 1)], None),
        ([run("a", "interrupted", 1, arguments={"level": [2]})], None),
    ],
)
def test_the_same_command_goes_on_with_the_last_run_if_it_was_stopped(
    store: RunStore, runs: list[Manifest], expected: str | None
) -> None:
    for each in runs:
        save(store, each)
    found = find_unfinished_run(store, {"level": [3]})
    assert (found.run_id if found else None) == expected


@pytest.fixture
def stored(tmp_path: Path, store: RunStore, write: Callable[[str], Path]) -> Problem:
    """A problem whose result is in the store, and nothing of it here."""
    problem = identify_problem(write("whole"))
    directory = tmp_path / "made"
    directory.mkdir()
    (directory / "original.py").write_text("class Model: ...\n")
    result = ProblemResult(
        problem=problem.name,
        source_level=problem.source_level,
        status="passed",
        figures=FIGURES,
        bitwise_equal=True,
        started=NOW,
        source_sha256=problem.sha256,
        kdrun_version=__version__,
        torch_version="2",
        options=RunOptions(),
        files=hash_files(directory),
    )
    store.publish("one", result, directory)
    return problem


def over(
    store: RunStore, tmp_path: Path, problem: Problem, resume: bool = True, **options: Any
) -> PlanItem:
    output = DirectoryStore(tmp_path / "nothing-here")
    how = {"resume": resume, "only_failed": False}
    (item,) = plan_with_store(store, "one", output, [problem], RunOptions(**options), **how)
    return item


def test_what_the_store_holds_whole_is_not_run_again(
    stored: Problem, store: RunStore, tmp_path: Path
) -> None:
    item = over(store, tmp_path, stored)
    assert item.earlier_result is not None
    assert item.stored_result is not None


def test_what_changed_or_is_asked_for_again_is_run(
    stored: Problem, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert over(store, tmp_path, stored, resume=False).reason == "asked for again"
    assert over(store, tmp_path, stored, trials=5).reason == "other options"
    assert over(store, tmp_path, replace(stored, sha256="other")).reason == "its source changed"
    monkeypatch.setattr("runner.batch.plan.__version__", "99.0.0")
    assert over(store, tmp_path, stored).reason == f"made by kdrun {__version__}"


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("what", ["files-*.zip", "files-*/original.py", "result.json"])
def test_what_the_store_lost_or_holds_damaged_is_run_again(
    stored: Problem, store: RunStore, tmp_path: Path, what: str, lost: bool
) -> None:
    (path,) = (Path(str(store)) / "one").glob(f"*/*/{what}")
    path.unlink() if lost else path.write_text("rot")
    item = over(store, tmp_path, stored)
    if (lost, what) == (True, "files-*.zip"):  # its only file is an object of its own, too
        assert item.earlier_result is not None
    else:
        assert item.earlier_result is None
        assert item.reason == "new" if what == "result.json" else item.reason.endswith("is damaged")
