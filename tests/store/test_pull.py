"""Pulling from what is missing, damaged or hostile, and over what stands in the way."""

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import FILES, Make, manifest, row

from runner.errors import StoreError
from runner.store import Manifest, RunStore, layout
from runner.store.pull import Pulled, pull

LABEL = "level1/relu"
Pull = Callable[..., tuple[str, str]]


@pytest.fixture
def run(store: RunStore, make: Make) -> Manifest:
    """A run of one problem, stored."""
    standing = store.publish("one", *make()).standing
    return store.save(manifest(row(LABEL, standing.sha256)), [LABEL])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "to" / LABEL


@pytest.fixture
def pulled(store: RunStore, place: Path) -> Pull:
    """How a pull of one problem went."""

    def pull_it(run: Manifest, label: str = LABEL) -> tuple[str, str]:
        told: list[Pulled] = []
        done = pull(store, run, place.parents[1], lambda name: name == label, told.append)
        assert told == done
        (one,) = done
        return one.state, one.what

    return pull_it


def spoil(store: RunStore, key: str, text: str) -> None:
    found = store.objects.get(key)
    store.objects.put_if(key, text.encode(), found.version if found else None)


def changed_result(store: RunStore, **changes: object) -> None:
    """A result.json as an enemy would write it."""
    key = layout.result_key("one", LABEL)
    found = store.objects.get(key)
    assert found is not None
    spoil(store, key, json.dumps(json.loads(found.data) | changes))


def nothing_appeared(place: Path) -> bool:
    return not place.exists() and not list(place.parent.glob(".*"))


@pytest.mark.parametrize("name", ["original.py", "steps.zip"])
def test_a_corrupt_object_is_named_and_its_problem_does_not_appear(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, tmp_path: Path, name: str
) -> None:
    spoil(store, f"{_prefix(store)}/{name}", "rot")
    what = name if name.endswith(".py") else "steps/step_1/children/relu_2x3_fp32.py"
    assert pulled(run) == ("corrupt", what)
    assert nothing_appeared(place)


def test_a_missing_object_is_named_and_its_problem_does_not_appear(
    store: RunStore, run: Manifest, pulled: Pull, place: Path, tmp_path: Path
) -> None:
    listed = FILES | {"lost.py": "never sent"}
    changed_result(store, files=dict.fromkeys(listed, "0" * 64))
    state, _ = pulled(run)
    assert state == "missing"
    assert nothing_appeared(place)


def test_a_result_that_the_manifest_names_and_that_is_gone_is_missing(
    store: RunStore, run: Manifest, pulled: Pull
) -> None:
    lost = row("level1/lost", "0" * 64)
    more = store.save(manifest(*run.rows, lost), [LABEL, "level1/lost"])
    assert pulled(more, "level1/lost") == ("missing", "result.json")


def test_a_result_that_the_manifest_does_not_name_yet_comes_too(
    store: RunStore, pulled: Pull, make: Make
) -> None:
    store.publish("one", *make())
    assert pulled(store.save(manifest(), [])) == ("pulled", "")


def test_a_problem_that_was_not_committed_is_not_there(
    store: RunStore, run: Manifest, make: Make, tmp_path: Path
) -> None:
    result, directory = make("level1/half")
    for parcel in layout.parcels("one", result):
        store._send(parcel, result, directory, there=False)
    done = pull(store, run, tmp_path / "to", lambda label: True, lambda one: None)
    assert [one.label for one in done] == [LABEL]


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
    store.objects.put_if(layout.manifest_key("one"), text.encode(), None)
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
    version = store.standing("one", LABEL)
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


def test_a_pull_goes_on_where_it_was_interrupted(
    store: RunStore, run: Manifest, pulled: Pull, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    fetched: list[str] = []
    fetch = store.objects.fetch

    def break_off(key: str, path: Path) -> str | None:
        if len(fetched) == 3:
            raise StoreError("gone")
        fetched.append(key)
        return fetch(key, path)

    with monkeypatch.context() as patch:
        patch.setattr("runner.store.pull.FILES_AT_ONCE", 1)
        patch.setattr(store.objects, "fetch", break_off)
        with pytest.raises(StoreError, match="gone"):
            pulled(run)
    assert not place.exists()
    again: list[str] = []
    monkeypatch.setattr(
        store.objects, "fetch", lambda key, path: (again.append(key), fetch(key, path))[1]
    )
    assert pulled(run) == ("pulled", "")
    assert not set(again) & set(fetched)
    assert {p.name for p in place.parent.iterdir()} == {"relu"}


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
    standing = store.standing("one", LABEL)
    assert standing is not None
    return standing.prefix
