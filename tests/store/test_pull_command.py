"""`kdrun pull`, where something is in the way: what it says, and its exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import FILES, LARGE, Make, manifest, row, save

from runner.cli import main
from runner.store import key_layout
from runner.store.objects import Address
from runner.store.runs import RunStore

Pull = Callable[..., tuple[int, str, str]]
LABELS = ("level1/corrupt", "level1/gone", "level1/right", "level2/large")


@pytest.fixture
def store(tmp_path: Path, make: Make) -> RunStore:
    """A run of four problems in a directory."""
    store = RunStore(Address(uri=str(tmp_path / "store")))
    store.claim()
    rows = [row(label, store.publish("one", *make(label)).committed.sha256) for label in LABELS]
    save(store, manifest(*rows))
    return store


@pytest.fixture
def pull(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Pull:
    """The command, in this process: its exit code, stdout and stderr."""

    def run(destination: Path, *more: str) -> tuple[int, str, str]:
        arguments = ["pull", "one", str(destination), "--store", str(store), *more]
        monkeypatch.setattr("sys.argv", ["kdrun", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def test_what_is_missing_or_corrupt_is_said_and_the_rest_comes(
    store: RunStore, pull: Pull, tmp_path: Path
) -> None:
    inside = Path(str(store))
    pack = next(inside.glob("one/level1/corrupt/files-*.zip"))
    pack.write_bytes(pack.read_bytes()[:-30])
    (inside / "one/level1/gone/result.json").unlink()
    next(inside.glob(f"one/level2/large/files-*/{LARGE}")).unlink()
    to = tmp_path / "to"
    code, out, _ = pull(to)
    assert sorted(out.splitlines()) == [
        f"1 of 4 in {to}",
        f"corrupt    {to}/level1/corrupt: {pack.name}",
        f"missing    {to}/level1/gone: result.json",
        f"missing    {to}/level2/large: {LARGE}",
        f"pulled     {to}/level1/right",
    ]
    assert code == 1
    assert [path.name for path in (to / "level1").iterdir()] == ["right"]
    assert (to / "level1/right/original.py").read_text() == FILES["original.py"]


def test_the_pattern_that_chose_a_run_s_problems_brings_them(pull: Pull, tmp_path: Path) -> None:
    code, out, _ = pull(tmp_path / "to", "--problem", "samples/*RIGHT*")
    assert (code, out.splitlines()[-1]) == (0, f"1 of 1 in {tmp_path / 'to'}")


def test_programs_are_told_the_same(store: RunStore, pull: Pull, tmp_path: Path) -> None:
    next(Path(str(store)).glob("one/level1/gone/files-*.zip")).write_text("rot")
    code, out, _ = pull(tmp_path / "to", "--level", "1", "--json")
    states = {row["problem"]: row["state"] for row in json.loads(out)["problems"]}
    assert states == {
        "level1/corrupt": "pulled",
        "level1/gone": "corrupt",
        "level1/right": "pulled",
    }
    assert code == 1


def test_a_disk_that_is_full_is_one_line_and_what_came_whole_stays(
    store: RunStore, pull: Pull, disk: Path, make: Make
) -> None:
    text = "0.125\n" * 1_000_000
    labels = (*LABELS, "level3/wide")
    wide = store.publish("one", *make(labels[-1], files={"weights.txt": text})).committed
    save(store, manifest(*store.manifest("one").rows, row(labels[-1], wide.sha256)))
    (disk / "filling").write_bytes(bytes(30 << 20))
    advice = "free some space there, or choose another DEST"
    line = f"kdrun: {disk}/to: No space left on device; {advice}\n"
    code, _, err = pull(disk / "to")
    assert (code, err) == (2, line)
    assert not (disk / "to/level3/wide").exists()
    (disk / "filling").unlink()
    code, out, _ = pull(disk / "to")
    assert code == 0
    assert out.endswith(f"5 of 5 in {disk}/to\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"versions": {"kdrun": "99.0.0"}}', "written by a newer kdrun; upgrade kdrun"),
        ("{", "not a readable manifest; choose another --run-id"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_one_line(
    store: RunStore, pull: Pull, tmp_path: Path, text: str, message: str
) -> None:
    (Path(str(store)) / key_layout.manifest_key("one")).write_text(text)
    code, _, err = pull(tmp_path / "to")
    assert (code, err) == (2, f"kdrun: {store}/one/manifest.json: {message}\n")
    assert not (tmp_path / "to").exists()
