"""The manifest of a run under way: written at once, but never for more than a share of the time."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.batch import manifest_writer
from runner.batch.cluster import no_cluster
from runner.batch.manifest_writer import ManifestWriter
from runner.batch.run import Run
from runner.batch.run_lock import hold_run_lock
from runner.config import Settings
from runner.errors import StoreError, UsageError
from runner.store.directory import DirectoryStore
from runner.store.manifest_row import Row
from runner.store.objects import Address
from runner.store.result import RunOptions
from runner.store.runs import RunStore


def row(n: int) -> Row:
    return Row(problem=str(n), source_level="level1", status="error", reason="no", attempts=1)


@pytest.fixture
def keeper(tmp_path: Path) -> ManifestWriter:
    labels = [f"level1/{n}" for n in range(10)]
    return keeper_of(labels, tmp_path)


@pytest.fixture
def shared(tmp_path: Path) -> RunStore:
    return RunStore(Address(uri=str(tmp_path / "store")))


def keeper_of(labels: list[str], folder: Path, shared: RunStore | None = None) -> ManifestWriter:
    run = Run("one", DirectoryStore(folder), RunOptions(), "", Settings(), shared)
    return ManifestWriter(run, no_cluster(), labels)


def saved(keeper: ManifestWriter) -> list[str]:
    return [row.problem for row in keeper.run.store.manifest("one").rows]


def test_what_ended_is_written_at_once_and_in_the_order_of_the_plan(keeper: ManifestWriter) -> None:
    for n in (3, 1):
        keeper.add(row(n))
        keeper._due_s = 0  # however slow the disk is
        keeper.save_if_due()
    assert saved(keeper) == ["1", "3"]
    assert keeper.save("finished").counts == {"error": 2}


def test_a_slow_write_is_not_followed_by_another_at_once(
    keeper: ManifestWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = DirectoryStore.write_manifest
    clock = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now

    def slowly(*arguments: Any) -> None:
        clock.now += 0.05
        write(*arguments)

    monkeypatch.setattr(manifest_writer, "time", clock)
    monkeypatch.setattr(DirectoryStore, "write_manifest", slowly)
    keeper.add(row(1))
    keeper.save_if_due()
    keeper.add(row(2))
    for later, there in ((0.0, ["1"]), (0.9, ["1"]), (0.1, ["1", "2"])):
        clock.now += later
        keeper.save_if_due()
        assert saved(keeper) == there
    assert keeper.save("finished").finished > datetime(2026, 1, 1, tzinfo=UTC)  # type: ignore[operator]


def test_two_drivers_of_one_run_say_each_other_s_rows_and_those_outside_of_their_own(
    tmp_path: Path, shared: RunStore
) -> None:
    one = keeper_of(["level1/0", "level1/1"], tmp_path / "one", shared)
    two = keeper_of(["level1/1", "level1/2"], tmp_path / "two", shared)
    for keeper, n in ((one, 0), (two, 2), (one, 1)):
        keeper.add(row(n))
        keeper.save("running")
    for keeper in (one, two):
        manifest = keeper.save("finished")
        assert [each.problem for each in manifest.rows] == ["0", "1", "2"]
        assert (manifest.selected, manifest.counts) == (3, {"error": 3})
        assert shared.manifest("one") == keeper.run.store.manifest("one")
    assert (one.ended_count, two.ended_count) == (2, 1)


def test_what_a_driver_wrote_itself_it_does_not_read_again(
    tmp_path: Path, shared: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = keeper_of(["level1/0", "level1/1"], tmp_path / "one", shared)
    keeper.save("running")
    monkeypatch.setattr(RunStore, "_manifest", None)  # it would be parsed here
    for n in range(2):
        keeper.add(row(n))
        assert len(keeper.save("running").rows) == n + 1
    monkeypatch.undo()
    assert len(shared.manifest("one").rows) == 2


def test_a_run_that_is_driven_is_in_use_and_free_after_it(tmp_path: Path) -> None:
    with hold_run_lock(tmp_path / "one", "one"):
        with pytest.raises(UsageError, match=r"^--run-id one: process \d+ is driving this run; "):
            hold_run_lock(tmp_path / "one", "one").__enter__()
        with hold_run_lock(tmp_path / "two", "two"):
            pass
    with hold_run_lock(tmp_path / "one", "one"):
        pass


def test_a_run_s_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="choose another --output"):
        hold_run_lock(tmp_path / "file" / "one", "one").__enter__()
