"""Pulling from what is missing, damaged or hostile, and over what stands in the way."""

import errno
import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import FILES, LARGE, Make, manifest, row, save

from runner.errors import StoreError
from runner.problems import find_labels
from runner.store import key_layout
from runner.store.manifest import Manifest
from runner.store.pull import PullOutcome, pull
from runner.store.result import first_mismatch, sha256_of
from runner.store.runs import RunStore

LABEL = "level1/relu"
FILES_AND_DIGESTS = {n: hashlib.sha256(text.encode()).hexdigest() for n, text in FILES.items()}
Pull = Callable[..., tuple[str, str]]


@pytest.fixture
def run(store: RunStore, make: Make) -> Manifest:
    """A run of one problem, stored."""
    standing = store.publish("one", *make()).committed
    return save(store, manifest(row(LABEL, standing.sha256)))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "to" / LABEL


@pytest.fixture
def pulled(store: RunStore, place: Path) -> Pull:
    """How a pull of one problem went."""

    def pull_it(run: Manifest, label: str = LABEL) -> tuple[str, str]:
        told: list[PullOutcome] = []
        done = pull(store, run, place.parents[1], lambda name: name == label, told.append)
        assert told == done
        (one,) = done
        return one.state, one.detail

    return pull_it


def spoil(store: RunStore, key: str, text: str) -> None:
    found = store.objects.get(key)
    store.objects.put_if(key, text.encode(), found.version if found else None)


def changed_result(store: RunStore, **changes: object) -> None:
    """A result.json as an enemy would write it."""
    key = key_layout.result_key("one", LABEL)
    found = store.objects.get(key)
    assert found is not None
    spoil(store, key, json.dumps(json.loads(found.data) | changes))


def nothing_appeared(place: Path) -> bool:
    return not place.exists() and not list(place.parent.glob(".*"))


def without(store: RunStore, member: str, tmp_path: Path) -> None:
    """The zip as it is, but for one file that is not in it."""
    _packed(store, tmp_path, {name: text for name, text in _small().items() if name != member})


def altered(store: RunStore, member: str, tmp_path: Path) -> None:
    """The zip as it is, but for what one file says."""
    _packed(store, tmp_path, _small() | {member: "rot"})


@pytest.mark.parametrize("name", ["original.py", "steps/step_1/refactored.py"])
def test_a_corrupt_member_of_the_zip_is_named_and_its_problem_does_not_appear(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, tmp_path: Path, name: str
) -> None:
    altered(store, name, tmp_path)
    assert pulled(run) == ("corrupt", name)
    assert nothing_appeared(place)


@pytest.mark.parametrize("text", ["", "rot", "PK\5\6" + "\0" * 17])
def test_a_zip_that_does_not_open_is_named_and_its_problem_does_not_appear(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, text: str
) -> None:
    spoil(store, f"{_prefix(store)}.zip", text)
    assert pulled(run) == ("corrupt", f"{_prefix(store).rpartition('/')[2]}.zip")
    assert nothing_appeared(place)


def test_a_corrupt_large_file_is_named_and_its_problem_does_not_appear(
    store: RunStore, run: Manifest, pulled: Pull, place: Path
) -> None:
    spoil(store, f"{_prefix(store)}/{LARGE}", "rot")
    assert pulled(run) == ("corrupt", LARGE)
    assert nothing_appeared(place)


def test_what_the_zip_lacks_is_taken_from_its_own_object(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, tmp_path: Path
) -> None:
    without(store, "original.py", tmp_path)
    assert pulled(run) == ("pulled", "")
    assert (place / "original.py").read_text() == FILES["original.py"]


def test_what_neither_the_zip_nor_an_object_holds_is_missing(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, tmp_path: Path
) -> None:
    without(store, "steps/step_1/refactored.py", tmp_path)
    assert pulled(run) == ("missing", "steps/step_1/refactored.py")
    assert nothing_appeared(place)


def test_a_pull_reads_no_copies(
    store: RunStore, run: Manifest, pulled: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    fetch = store.objects.fetch
    monkeypatch.setattr(
        store.objects, "fetch", lambda key, path: (asked.append(key), fetch(key, path))[1]
    )
    assert pulled(run) == ("pulled", "")
    assert asked == [f"{_prefix(store)}.zip", f"{_prefix(store)}/{LARGE}"]


def test_nothing_but_what_is_listed_comes_out_of_a_zip(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, tmp_path: Path
) -> None:
    _packed(store, tmp_path, _small() | {"../../up.py": "x", "more.py": "x", "/abs.py": "x"})
    assert pulled(run) == ("pulled", "")
    came = {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file()}
    assert came == {*FILES, "result.json"}
    assert not list(tmp_path.rglob("up.py"))


def test_a_missing_object_is_named_and_its_problem_does_not_appear(
    store: RunStore, run: Manifest, pulled: Pull, place: Path
) -> None:
    changed_result(store, files=FILES_AND_DIGESTS | {"lost.py": "0" * 64})
    state, _ = pulled(run)
    assert state == "missing"
    assert nothing_appeared(place)


def test_a_result_that_the_manifest_names_and_that_is_gone_is_missing(
    store: RunStore, run: Manifest, pulled: Pull
) -> None:
    lost = row("level1/lost", "0" * 64)
    more = save(store, manifest(*run.rows, lost))
    assert pulled(more, "level1/lost") == ("missing", "result.json")


def test_a_result_that_the_manifest_does_not_name_yet_comes_too(
    store: RunStore, pulled: Pull, make: Make
) -> None:
    store.publish("one", *make())
    assert pulled(save(store, manifest())) == ("pulled", "")


def test_a_problem_that_was_not_committed_is_not_there(
    store: RunStore, run: Manifest, make: Make, tmp_path: Path
) -> None:
    result, directory = make("level1/half")
    store.result_objects("one", result).send(directory)
    done = pull(store, run, tmp_path / "to", lambda label: True, lambda one: None)
    assert [one.label for one in done] == [LABEL]


def test_a_variants_name_is_a_place_in_a_store_and_a_glob_finds_it(
    store: RunStore, run: Manifest, make: Make, tmp_path: Path
) -> None:
    label = "level1/relu+bf16+batch_size=1"
    published = store.publish("one", *make(label)).committed
    assert store.find_result("one", label) == published
    wanted = [*find_labels([LABEL, label], "relu+bf16*")]
    done = pull(store, run, tmp_path / "to", lambda name: name in wanted, lambda one: None)
    assert [one.label for one in done] == [label]
    assert first_mismatch(tmp_path / "to" / label, published.result.files) is None


@pytest.mark.parametrize(
    "name",
    ["../x.py", "/x.py", "a/../../x.py", "a\\..\\x.py", "a//b", ".", "x\n.py", "result.json"],
)
def test_a_file_that_would_leave_the_destination_is_refused(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, tmp_path: Path, name: str
) -> None:
    changed_result(store, files={"original.py": "0" * 64, name: "0" * 64})
    assert pulled(run) == ("refused", f"{name!r} would leave the destination")
    assert nothing_appeared(place)


@pytest.mark.parametrize("label", ["../up", "level1/..", "level1/a\\b"])
def test_a_problem_that_would_leave_the_destination_is_refused(
    store: RunStore, run: Manifest, pulled: Pull, tmp_path: Path, label: str
) -> None:
    bad = run.model_copy(update={"rows": [row(label, "0" * 64)]})
    assert pulled(bad, label) == ("refused", "its name would leave the destination")
    assert not (tmp_path / "up").exists()


def test_a_manifest_of_another_run_is_not_read(store: RunStore) -> None:
    text = manifest(run_id="../../up").to_json()
    store.objects.put_if(key_layout.manifest_key("one"), text.encode(), None)
    with pytest.raises(StoreError, match="not a readable manifest"):
        store.manifest("one")


def test_what_no_kdrun_put_there_is_not_overwritten(
    run: Manifest, pulled: Pull, place: Path
) -> None:
    place.mkdir(parents=True)
    (place / "thesis").write_text("mine")
    assert pulled(run) == ("refused", f"{place} holds something else")
    assert [path.name for path in place.iterdir()] == ["thesis"]


def test_what_stands_there_from_before_is_replaced_as_a_whole(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, make: Make
) -> None:
    assert pulled(run) == ("pulled", "")
    (place / "stale.py").touch()
    version = store.find_result("one", LABEL)
    assert version is not None
    redone, directory = make(folder="redone", files={"original.py": "new"})
    store.publish("one", redone, directory, version.version)
    assert pulled(run) == ("pulled", "")
    assert sorted(path.name for path in place.iterdir()) == ["original.py", "result.json"]


def test_a_file_that_was_changed_here_is_brought_again(
    run: Manifest, pulled: Pull, place: Path
) -> None:
    pulled(run)
    (place / "original.py").write_text("changed")
    assert pulled(run) == ("pulled", "")
    assert (place / "original.py").read_text() == FILES["original.py"]


@pytest.mark.parametrize("before", [0, 1])
def test_a_pull_goes_on_where_it_was_interrupted(
    store: RunStore,
    run: Manifest,
    pulled: Pull,
    monkeypatch: pytest.MonkeyPatch,
    place: Path,
    before: int,
) -> None:
    fetched: list[str] = []
    fetch = store.objects.fetch

    def break_off(key: str, path: Path) -> str | None:
        if len(fetched) == before:
            path.write_text("half of")
            raise StoreError("gone")
        fetched.append(key)
        return fetch(key, path)

    with monkeypatch.context() as patch:
        patch.setattr(store.objects, "fetch", break_off)
        with pytest.raises(StoreError, match="gone"):
            pulled(run)
    assert not place.exists()
    again: list[str] = []
    monkeypatch.setattr(
        store.objects, "fetch", lambda key, path: (again.append(key), fetch(key, path))[1]
    )
    assert pulled(run) == ("pulled", "")
    assert len(fetched) == before
    assert not set(again) & set(fetched)
    assert {p.name for p in place.parent.iterdir()} == {"relu"}
    assert first_mismatch(place, FILES_AND_DIGESTS) is None


def test_a_full_disk_is_one_line_and_nothing_half_appears(
    store: RunStore, run: Manifest, pulled: Pull, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    def full(key: str, path: Path) -> str | None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(store.objects, "fetch", full)
    with pytest.raises(StoreError, match="No space left on device; free some space") as caught:
        pulled(run)
    assert "\n" not in str(caught.value)
    assert not place.exists()


def _prefix(store: RunStore) -> str:
    standing = store.find_result("one", LABEL)
    assert standing is not None
    return standing.prefix


def _small() -> dict[str, str]:
    return {name: text for name, text in FILES.items() if name != LARGE}


def _packed(store: RunStore, tmp_path: Path, texts: dict[str, str]) -> None:
    """Another zip in the place of the one that is there."""
    path = tmp_path / "packed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    store.objects.put(f"{_prefix(store)}.zip", path, sha256_of(path))
