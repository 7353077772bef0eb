"""A directory of results: whole files or none, and runs by their ids."""

import errno
import os
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runner.errors import StoreError, unwritable_error
from runner.store.directory import DirectoryStore, put_in_place, write_atomically
from runner.store.manifest import MANIFEST_FILE, Manifest
from runner.store.manifest_row import Row

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROW = Row(problem="relu", source_level="level1", status="failed", reason="no")


def manifest(**changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "run_id": "one",
        "state": "finished",
        "arguments": {},
        "versions": {},
        "driver_host": socket.gethostname(),
        "driver_pid": os.getpid(),
        "data": "data/samples",
        "started": NOW,
        "finished": NOW,
        "selected": 1,
        "counts": {"failed": 1},
        "rows": [ROW],
    }
    return Manifest.model_validate(fields | changes)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.write_manifest(manifest())
    assert store.manifest("one") == manifest()
    assert store.run_ids() == ["one"]


def test_a_run_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.write_manifest(manifest())
    with pytest.raises(StoreError, match=r"no run 'two' in .*; the last ones there: one"):
        store.manifest("two")


@pytest.mark.parametrize("text", ["", "{}", "[1", '{"run_id": 3}'])
def test_a_manifest_that_cannot_be_read_is_a_store_error(tmp_path: Path, text: str) -> None:
    store = DirectoryStore(tmp_path)
    store.write_manifest(manifest())
    (store.run_directory("one") / MANIFEST_FILE).write_text(text)
    with pytest.raises(StoreError, match="not a readable manifest"):
        store.manifest("one")


@pytest.mark.parametrize(
    "change",
    [{"counts": {"passed": 1}}, {"selected": 0}, {"finished": None}, {"state": "running"}],
    ids=str,
)
def test_a_manifest_adds_up(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        manifest(**change)


def test_all_passed_means_every_selected_problem_and_at_least_one() -> None:
    passed = ROW.model_copy(update={"status": "passed", "reason": None})
    assert manifest(rows=[passed], counts={"passed": 1}).all_passed
    assert not manifest(rows=[passed], counts={"passed": 1}, selected=2).all_passed
    assert not manifest(rows=[], counts={}, selected=0).all_passed


def test_a_run_whose_driver_is_gone_was_killed() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    running = {"state": "running", "finished": None}
    assert manifest(**running).state_now() == "running"
    assert manifest(**running, driver_pid=gone.pid).state_now() == "killed"
    assert manifest(**running, driver_pid=gone.pid, driver_host="far").state_now() == "running"
    assert manifest(driver_pid=gone.pid).state_now() == "finished"


def test_a_result_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / "level1/relu").mkdir(parents=True)
    (tmp_path / "level1/relu/result.json").write_text("{")
    assert DirectoryStore(tmp_path).result("level1/relu") is None


def test_a_directory_takes_the_place_of_another_as_a_whole(tmp_path: Path) -> None:
    for name, file in (("new", "a"), ("place", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
    put_in_place(tmp_path / "new", tmp_path / "place")
    assert [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*"))] == [
        "place",
        "place/a",
    ]


def test_a_place_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="choose another --output"):
        write_atomically(tmp_path / "file" / "manifest.json", "x")
    with pytest.raises(StoreError, match="choose another --output"):
        put_in_place(tmp_path / "missing", tmp_path / "place")


def test_a_disk_that_is_full_asks_for_space_and_not_for_another_place(disk: Path) -> None:
    write_atomically(disk / "manifest.json", "before")
    with pytest.raises(StoreError, match=r"manifest\.json: No space left on device; free some sp"):
        write_atomically(disk / "manifest.json", "x" * (33 << 20))
    assert (disk / "manifest.json").read_text() == "before"
    assert [path.name for path in disk.iterdir()] == ["manifest.json"]


def test_a_quota_that_is_used_up_is_a_disk_that_is_full() -> None:
    used_up = OSError(errno.EDQUOT, "Disk quota exceeded")
    assert str(unwritable_error("here", used_up, "--output")) == (
        "here: Disk quota exceeded; free some space there, or choose another --output"
    )
