"""Runs and stores: what a worker sends, and which run the same command goes on with."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.batch.attempt import decompose, give_up
from runner.batch.machine import GIB
from runner.batch.stored import unfinished
from runner.batch.work import Target, Task
from runner.store import Address, Manifest, RunOptions, RunStore

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
            timeout_s=60,
            target=Target(address=store.address, run_id="one"),
        )

    return made


@pytest.mark.usefixtures("own_zygote")
def test_a_worker_sends_what_it_made_and_says_where_it_is(
    task: Callable[..., Task], store: RunStore, tmp_path: Path
) -> None:
    done = decompose(task(), tmp_path / "log")
    standing = store.standing("one", "level1/whole")
    assert standing is not None
    assert standing.result == done.result
    assert (done.artifact_prefix, done.result_sha256) == (standing.prefix, standing.sha256)
    assert store.damage("one", standing.result) is None


@pytest.mark.usefixtures("own_zygote")
def test_what_a_problem_s_process_printed_is_sent_with_its_end(
    task: Callable[..., Task], store: RunStore, tmp_path: Path
) -> None:
    done = decompose(task("segfault"), tmp_path / "log")
    assert done.record.status == "crashed"
    log = store.objects.get("one/logs/level1/segfault.log")
    assert log is not None
    assert b"Segmentation fault" in log.data


@pytest.mark.usefixtures("own_zygote")
def test_a_store_that_fails_costs_nothing_that_was_made(
    task: Callable[..., Task], tmp_path: Path
) -> None:
    (tmp_path / "store").write_text("a file where the store should be")
    made = task()
    done = decompose(made, tmp_path / "log")
    assert done.record.status == "passed"
    assert done.store_error is not None
    assert "choose another --store" in done.store_error
    assert (made.directory / "result.json").is_file()


@pytest.mark.usefixtures("own_zygote")
def test_a_worker_that_lost_its_answer_takes_over_what_it_had_sent(
    task: Callable[..., Task], store: RunStore, tmp_path: Path
) -> None:
    made = task()
    first = decompose(made, tmp_path / "log")
    again = decompose(made, tmp_path / "log")
    assert again.result == first.result
    assert again.differs == []
    given_up = give_up(made, first.model_copy(update={"result": None}), tmp_path / "log")
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
        store.save(each, [])
    found = unfinished(store, {"level": [3]})
    assert (found.run_id if found else None) == expected
