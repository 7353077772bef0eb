"""What every store does: a directory, a real server, and that server behind a bad connection."""

import hashlib
import json
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from documents import COPIED, FILES, LARGE, Make, manifest, row, save

from runner.batch.cluster import no_cluster
from runner.batch.manifest_writer import ManifestWriter
from runner.batch.run import Run
from runner.config import Settings
from runner.errors import StoreError
from runner.store import key_layout
from runner.store.directory import DirectoryStore
from runner.store.objects import Conflict
from runner.store.pull import PullOutcome, pull
from runner.store.result import RunOptions, hash_files
from runner.store.runs import TRIES, RunStore


def quiet(_: PullOutcome) -> None:
    """Nobody listens."""


def pull_all(store: RunStore, destination: Path) -> dict[str, str]:
    done = pull(store, store.manifest("one"), destination, lambda _: True, quiet)
    return {pulled.label: pulled.state for pulled in done}


def keys(store: RunStore, prefix: str = "") -> list[str]:
    return [key for key, _ in store.objects.list_objects(prefix)]


def test_a_store_is_claimed_again_and_again(store: RunStore) -> None:
    store.claim()
    store.claim()
    store.check_layout()
    assert keys(store) == [key_layout.MARKER]


def test_a_store_that_another_driver_claims_at_the_same_moment_is_no_other_thing(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = store.objects.list_objects

    def late(prefix: str) -> Iterator[tuple[str, int]]:
        with suppress(Conflict):
            text = json.dumps({"kdrun_store": key_layout.LAYOUT})
            store.objects.put_if(key_layout.MARKER, text.encode(), None)
        return listed(prefix)

    monkeypatch.setattr(store.objects, "list_objects", late)
    store.claim()


def test_a_place_that_holds_something_else_is_refused_and_left_as_it_is(
    store: RunStore, tmp_path: Path
) -> None:
    (tmp_path / "thesis").write_text("mine")
    store.objects.put("chapters/thesis", tmp_path / "thesis", sha256_of_text("mine"))
    with pytest.raises(StoreError, match="holds something else; choose an empty place"):
        store.claim()
    assert keys(store) == ["chapters/thesis"]


def test_a_place_that_was_never_claimed_is_no_store(store: RunStore) -> None:
    with pytest.raises(StoreError, match=r"no store; `kdrun submit --store \S+` makes one"):
        store.check_layout()


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('{"kdrun_store": 3}', "made by a newer kdrun; upgrade kdrun"),
        ('{"kdrun_store": 1}', "made by an older kdrun, .*; choose an empty place"),
        ("hello", r"kdrun\.json: not ours; choose an empty place"),
    ],
)
def test_a_store_of_another_layout_is_neither_read_nor_written(
    store: RunStore, tmp_path: Path, mark: str, message: str
) -> None:
    (tmp_path / "mark").write_text(mark)
    store.objects.put(key_layout.MARKER, tmp_path / "mark", sha256_of_text(mark))
    for ask in (store.check_layout, store.claim):
        with pytest.raises(StoreError, match=message):
            ask()
    assert keys(store) == [key_layout.MARKER]


def test_what_is_published_is_what_stands_and_every_file_is_right(
    store: RunStore, make: Make
) -> None:
    result, directory = make()
    published = store.publish("one", result, directory)
    assert published.differs == ()
    assert published.committed.result == result
    assert store.find_result("one", "level1/relu") == published.committed
    assert store.damage("one", result) is None
    assert store.labels("one") == ["level1/relu"]


def test_a_component_is_an_object_of_its_own_and_all_that_is_small_is_in_one(
    store: RunStore, make: Make, tmp_path: Path
) -> None:
    prefix = store.publish("one", *make()).committed.prefix
    assert set(keys(store, prefix)) == {f"{prefix}.zip"} | {
        f"{prefix}/{name}" for name in COPIED | {LARGE}
    }
    store.objects.fetch(f"{prefix}.zip", tmp_path / "zip")
    with zipfile.ZipFile(tmp_path / "zip") as archive:
        assert set(archive.namelist()) == FILES.keys() - {LARGE}
    name = "level_0_kernel/relu_2x3_fp32.py"
    component = store.objects.get(f"{prefix}/{name}")
    assert component is not None
    assert component.data.decode() == FILES[name]


def test_a_run_can_be_read_without_kdrun(store: RunStore, make: Make, tmp_path: Path) -> None:
    result, directory = make()
    prefix = store.publish("one", result, directory).committed.prefix
    for key in keys(store, f"{prefix}/"):
        path = tmp_path / "copied" / key.removeprefix(f"{prefix}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        store.objects.fetch(key, path)
    store.objects.fetch(f"{prefix}.zip", tmp_path / "zip")
    with zipfile.ZipFile(tmp_path / "zip") as archive:
        archive.extractall(tmp_path / "copied")
    assert hash_files(tmp_path / "copied") == result.files


def test_the_same_files_make_the_same_zip(store: RunStore, make: Make) -> None:
    both = []
    for run_id, folder in (("one", "here"), ("two", "there")):
        result, directory = make(folder=folder)
        both.append(
            store.objects.get(f"{store.publish(run_id, result, directory).committed.prefix}.zip")
        )
    assert both[0] is not None
    assert both[0] == both[1]


def test_a_result_without_files_is_one_object(store: RunStore, make: Make) -> None:
    result, directory = make(status="error", reason="no class Model", figures=None, files={})
    store.publish("one", result, directory)
    assert keys(store) == ["one/level1/relu/result.json"]
    assert store.damage("one", result) is None


def test_nothing_stands_before_the_commit(store: RunStore, make: Make) -> None:
    result, directory = make()
    store.result_objects("one", result).send(directory)
    assert store.find_result("one", "level1/relu") is None
    assert store.find_result("one", "level1/other") is None


@pytest.mark.parametrize("before", [0, 1, 4, len(COPIED) + 1])
def test_files_that_were_sent_before_an_interruption_are_not_sent_again(
    store: RunStore, make: Make, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    result, directory = make()
    sent: list[str] = []
    put = store.objects.put

    def interrupted(key: str, source: Path, sha256: str) -> None:
        if len(sent) == before:
            raise KeyboardInterrupt
        put(key, source, sha256)
        sent.append(key)

    def recorded(key: str, source: Path, sha256: str) -> None:
        put(key, source, sha256)
        sent.append(key)

    with monkeypatch.context() as patch:
        patch.setattr("runner.store.result_objects.map_concurrently", one_by_one)
        patch.setattr(store.objects, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.publish("one", result, directory)
    assert store.find_result("one", "level1/relu") is None
    assert len(sent) == before
    monkeypatch.setattr(store.objects, "put", recorded)
    prefix = store.publish("one", result, directory).committed.prefix
    assert sorted(sent) == sorted(keys(store, prefix))
    assert store.damage("one", result) is None


def test_of_many_writers_one_wins_and_the_others_agree(store: RunStore, make: Make) -> None:
    start = threading.Barrier(6)
    attempts = [make(folder=f"attempt{n}", seconds={"load": float(n)}) for n in range(6)]

    def publish(n: int) -> str:
        start.wait()
        published = store.publish("one", *attempts[n])
        assert published.differs == ()
        return published.committed.sha256

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(publish, range(6)))) == 1


def test_the_second_writer_says_in_what_the_first_one_s_result_differs(
    store: RunStore, make: Make
) -> None:
    other = FILES | {"original.py": "x", "verification/test_results.json": "[]"}
    first = store.publish("one", *make(folder="first"))
    second = store.publish("one", *make(folder="second", files=other, torch_version="3"))
    assert second.committed == first.committed
    assert second.differs == ("torch_version: 2 stands, not 3", "original.py differs")


def test_a_pass_is_not_lost_to_a_crash_that_was_first(store: RunStore, make: Make) -> None:
    crashed = {"status": "crashed", "reason": "SIGSEGV"}
    store.publish("one", *make(folder="first", **crashed))
    passed, directory = make(folder="second")
    assert store.publish("one", passed, directory).committed.result == passed
    third = store.publish("one", *make(folder="third", **crashed))
    assert third.committed.result == passed
    assert third.differs == ("status: passed stands, not crashed",)


def test_an_attempt_never_writes_over_another_s_files(store: RunStore, make: Make) -> None:
    first, directory = make(folder="first")
    standing = store.publish("one", first, directory).committed
    second, directory = make(folder="second", files=FILES | {"original.py": "changed"})
    now = store.publish("one", second, directory, supersedes=standing.version)
    assert now.committed.result == second
    assert store.damage("one", first) is None
    assert store.damage("one", second) is None


def test_a_result_that_was_superseded_meanwhile_is_not_written_over(
    store: RunStore, make: Make
) -> None:
    planned = store.publish("one", *make(folder="a")).committed.version
    other, directory = make(folder="b", source_sha256="b")
    store.publish("one", other, directory, supersedes=planned)
    late = store.publish("one", *make(folder="c", source_sha256="c"), supersedes=planned)
    assert late.committed.result == other


@pytest.mark.parametrize("name", ["/level_0_kernel/relu_2x3_fp32.py", f"/{LARGE}", ".zip"])
def test_a_damaged_object_is_found_and_mended(
    store: RunStore, make: Make, tmp_path: Path, name: str
) -> None:
    result, directory = make()
    prefix = store.publish("one", result, directory).committed.prefix
    (tmp_path / "bad").write_text("rot")
    store.objects.put(f"{prefix}{name}", tmp_path / "bad", sha256_of_text("rot"))
    pack = prefix.rpartition("/")[2] + ".zip"
    assert store.damage("one", result) == (pack if name == ".zip" else name[1:])
    store.publish("one", result, directory)
    assert store.damage("one", result) is None


def test_a_result_that_cannot_be_read_does_not_stand_and_is_written_over(
    store: RunStore, make: Make
) -> None:
    result, directory = make()
    store.objects.put_if(key_layout.result_key("one", "level1/relu"), b"{", None)
    assert store.find_result("one", "level1/relu") is None
    assert store.publish("one", result, directory).committed.result == result


def test_a_result_of_another_problem_does_not_stand(store: RunStore, make: Make) -> None:
    result, _ = make("level1/other")
    key = key_layout.result_key("one", "level1/relu")
    store.objects.put_if(key, result.to_json().encode(), None)
    assert store.find_result("one", "level1/relu") is None


def test_two_drivers_of_one_run_keep_each_other_s_rows(store: RunStore, tmp_path: Path) -> None:
    labels = [f"level1/p{n}" for n in range(6)]
    start = threading.Barrier(2)

    def drive(mine: list[str]) -> None:
        here = DirectoryStore(tmp_path / mine[0])
        run = Run("one", here, RunOptions(), "", Settings(), store)
        writer = ManifestWriter(run, no_cluster(), labels)
        start.wait()
        for label in mine:
            writer.add(row(label))
            writer.save("running")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(drive, (labels[:3], labels[3:])))
    final = store.manifest("one")
    assert [each.label for each in final.rows] == labels
    assert (final.selected, final.counts) == (6, {"passed": 6})


def test_runs_are_listed_oldest_first(store: RunStore) -> None:
    store.claim()
    save(store, manifest(run_id="b"))
    save(store, manifest(run_id="a"))
    assert store.run_ids() == ["a", "b"]
    assert {store.manifest(name).run_id for name in store.run_ids()} == {"a", "b"}


def test_a_run_that_is_not_there_is_named_with_those_that_are(store: RunStore) -> None:
    save(store, manifest())
    with pytest.raises(StoreError, match=r"no run 'two' in .*; the last ones there: one"):
        store.manifest("two")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not a readable manifest; choose another --run-id"),
        (b"[]", "not a readable manifest"),
        (b'{"versions": {"kdrun": "99.1.0"}}', "written by a newer kdrun; upgrade kdrun"),
    ],
    ids=repr,
)
def test_a_manifest_that_cannot_be_read_is_told_and_left_as_it_is(
    store: RunStore, text: bytes, message: str
) -> None:
    key = key_layout.manifest_key("one")
    store.objects.put_if(key, text, None)
    with pytest.raises(StoreError, match=f"one/manifest.json: {message}"):
        store.manifest("one")
    with pytest.raises(StoreError, match=message):
        save(store, manifest())
    found = store.objects.get(key)
    assert found is not None
    assert found.data == text


def test_a_conditional_write_that_is_always_too_late_ends(
    store: RunStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def too_late(*_: object) -> str:
        asked.append(1)
        raise Conflict

    monkeypatch.setattr(store.objects, "put_if", too_late)
    monkeypatch.setattr("runner.store.runs._wait", lambda: None)
    with pytest.raises(StoreError, match="written by others all the time"):
        store.publish("one", *make())
    assert len(asked) == TRIES


def test_a_run_is_pulled_as_it_was(store: RunStore, make: Make, tmp_path: Path) -> None:
    standing = store.publish("one", *make()).committed
    save(store, manifest(row("level1/relu", standing.sha256)))
    assert pull_all(store, tmp_path / "to") == {"level1/relu": "pulled"}
    place = tmp_path / "to/level1/relu"
    files = {p.relative_to(place).as_posix(): p for p in place.rglob("*") if p.is_file()}
    assert set(files) == {*FILES, "result.json"}
    assert {name: files[name].read_text() for name in FILES} == FILES
    assert files["result.json"].read_text() == standing.text
    assert (tmp_path / "to/runs/one/manifest.json").is_file()
    assert pull_all(store, tmp_path / "to") == {"level1/relu": "there"}


def test_a_log_is_stored_with_its_run(store: RunStore, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("Segmentation fault\n")
    store.put_log("one", "level1/relu", tmp_path / "log")
    found = store.objects.get("one/logs/level1/relu.log")
    assert found is not None
    assert found.data == b"Segmentation fault\n"
    assert store.labels("one") == []


def one_by_one(function: Callable[[Any], Any], items: Iterable[Any], at_once: int = 1) -> list[Any]:
    return [function(item) for item in items]


def sha256_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
