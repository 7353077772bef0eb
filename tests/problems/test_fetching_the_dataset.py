"""Fetching from every kind of source, with a dataset of three files in place of the real one."""

import functools
import hashlib
import http.server
import io
import os
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.errors import DatasetError
from runner.problems import dataset
from runner.problems.dataset import OWN_PROBLEM, check_dataset, fetch_dataset, read_manifest

ROOT = Path(__file__).parents[2]
FILES = {
    "level1/1_Relu.py": b"# relu\n",
    "level2/1_Conv.py": b"# conv\n",
    "level3/1_Net.py": b"# net\n",
}
REST = {"README.md": b"read me\n", "src/eval.py": b"# evaluation\n", "level9/1_Odd.py": b"# odd\n"}
PARTS = [*FILES, OWN_PROBLEM]


@pytest.fixture(autouse=True)
def small_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: hashlib.sha256(text).hexdigest() for name, text in FILES.items()}
    monkeypatch.setattr(dataset, "read_manifest", lambda: rows)


def lay_out(folder: Path, files: dict[str, bytes]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return folder


def members(files: dict[str, bytes] = FILES) -> dict[str, bytes]:
    inside = {f"KernelBench-423217d/KernelBench/{name}": text for name, text in files.items()}
    return inside | {f"KernelBench-423217d/{name}": text for name, text in REST.items()}


def tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return path


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def git(folder: Path, *arguments: str) -> str:
    identity = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        identity |= {f"GIT_{role}_NAME": "Nobody", f"GIT_{role}_EMAIL": "nobody@example.org"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=os.environ | identity,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose pinned commit has the files, and whose newest has changed one."""
    folder = lay_out(tmp_path / "checkout", {f"KernelBench/{n}": t for n, t in FILES.items()})
    git(folder, "init", "--quiet")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "pinned")
    monkeypatch.setattr(dataset, "COMMIT", git(folder, "rev-parse", "HEAD"))
    (folder / "KernelBench/level1/1_Relu.py").write_text("# changed later\n")
    git(folder, "commit", "--quiet", "-am", "newer")
    return folder


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    return tmp_path / "data" / "kernelbench"


def contents(folder: Path) -> dict[str, bytes]:
    paths = [p for p in folder.rglob("*") if p.is_file()]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}


def assert_fetched(destination: Path) -> None:
    own = (ROOT / "data/samples" / OWN_PROBLEM).read_bytes()
    assert contents(destination) == FILES | {OWN_PROBLEM: own}
    assert check_dataset(destination).ok
    assert [p.name for p in destination.parent.iterdir()] == [destination.name]


def refusal(source: Path | str, destination: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        fetch_dataset(str(source), destination)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def make_tar(tmp_path: Path) -> Path:
    return tar(tmp_path / "kb.tar.gz", members())


def make_zip(tmp_path: Path) -> Path:
    return zipped(tmp_path / "kb.zip", members())


def make_folder(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "plain", {f"KernelBench/{n}": t for n, t in FILES.items()})


def make_bare_folder(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "levels", FILES)


@pytest.mark.parametrize("make", [make_tar, make_zip, make_folder, make_bare_folder])
def test_every_kind_of_source_gives_the_same_files(
    make: Callable[[Path], Path], tmp_path: Path, destination: Path
) -> None:
    report = fetch_dataset(str(make(tmp_path)), destination)
    assert (report.written, report.kept, report.complete) == (len(PARTS), 0, True)
    assert_fetched(destination)


def test_a_checkout_gives_the_pinned_commit_not_what_is_checked_out(
    checkout: Path, destination: Path
) -> None:
    assert fetch_dataset(str(checkout), destination).complete
    assert_fetched(destination)


@pytest.mark.parametrize("layout", ["bare", "dot_git"])
def test_a_git_directory_gives_the_pinned_commit(
    checkout: Path, destination: Path, tmp_path: Path, layout: str
) -> None:
    source = checkout / ".git"
    if layout == "bare":
        source = tmp_path / "bare.git"
        git(tmp_path, "clone", "--quiet", "--bare", str(checkout), str(source))
    assert fetch_dataset(str(source), destination).complete
    assert_fetched(destination)


def test_a_git_directory_without_the_commit_says_how_to_get_it(
    checkout: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "COMMIT", "0" * 40)
    text = refusal(checkout / ".git", destination)
    assert f"does not have KernelBench's commit 0000000; git -C {checkout / '.git'} fetch" in text
    assert not destination.exists()


def test_a_checkout_without_the_commit_gives_its_files_by_content(
    checkout: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "COMMIT", "0" * 40)
    report = fetch_dataset(str(checkout), destination)
    assert (report.changed, report.complete) == (("level1/1_Relu.py",), False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A web server that has the archive, and nothing else."""
    (tmp_path / "web").mkdir()
    tar(tmp_path / "web" / "kb.tar.gz", members())
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "web")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_without_a_source_it_is_downloaded(
    server: str, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "ARCHIVE_URL", f"{server}/kb.tar.gz")
    assert fetch_dataset(None, destination).source == f"{server}/kb.tar.gz"
    assert_fetched(destination)


@pytest.mark.parametrize("why", ["404", "refused"])
def test_a_download_that_fails_says_what_to_do_instead(
    server: str, destination: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    url = f"{server}/elsewhere" if why == "404" else "http://127.0.0.1:1/kb.tar.gz"
    monkeypatch.setattr(dataset, "ARCHIVE_URL", url)
    with pytest.raises(DatasetError, match=f"cannot download {url}: .*--from takes a checkout"):
        fetch_dataset(None, destination)
    assert not destination.exists()


def test_a_complete_copy_does_not_read_its_source(tmp_path: Path, destination: Path) -> None:
    source = make_tar(tmp_path)
    fetch_dataset(str(source), destination)
    source.write_bytes(b"")
    report = fetch_dataset(str(source), destination)
    assert (report.written, report.kept) == (0, len(PARTS))


def test_a_mistyped_source_is_refused_though_the_copy_is_complete(
    tmp_path: Path, destination: Path
) -> None:
    fetch_dataset(str(make_tar(tmp_path)), destination)
    assert "--from /nowhere/at/all: no such file" in refusal("/nowhere/at/all", destination)


def test_a_damaged_copy_is_made_whole(tmp_path: Path, destination: Path) -> None:
    source = str(make_tar(tmp_path))
    fetch_dataset(source, destination)
    (destination / "level1/1_Relu.py").write_text("# edited\n")
    (destination / "level2/1_Conv.py").unlink()
    (destination / OWN_PROBLEM).write_text("# of an older kdrun\n")
    found = check_dataset(destination)
    assert (found.changed, found.missing) == (
        ("level1/1_Relu.py", OWN_PROBLEM),
        ("level2/1_Conv.py",),
    )
    assert (fetch_dataset(source, destination).written, check_dataset(destination).ok) == (3, True)


def test_a_file_of_somebody_else_is_never_lost(tmp_path: Path, destination: Path) -> None:
    lay_out(destination, {"level1/my_own.py": b"# mine\n"})
    assert refusal(make_tar(tmp_path), destination) == (
        f"{destination} holds files that are not the dataset's: level1/my_own.py; "
        "move them away first"
    )
    assert contents(destination) == {"level1/my_own.py": b"# mine\n"}


def test_check_lists_what_is_neither_the_datasets_nor_ours(
    tmp_path: Path, destination: Path
) -> None:
    fetch_dataset(str(make_tar(tmp_path)), destination)
    lay_out(destination, {"level1/extra.py": b"", "level1/__pycache__/x.pyc": b""})
    report = check_dataset(destination)
    assert (report.extra, report.right, report.ok) == (("level1/extra.py",), len(PARTS), False)


def test_checking_nothing_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "other/level1").mkdir(parents=True)
    (tmp_path / "other/level1/mine.py").touch()
    for folder in ("nowhere", "other"):
        with pytest.raises(DatasetError, match="`kdrun data fetch` gets it"):
            check_dataset(tmp_path / folder)


def test_a_source_with_some_files_gives_those_and_names_the_others(
    tmp_path: Path, destination: Path
) -> None:
    some = {"level1/1_Relu.py": b"# another one\n", "level3/1_Net.py": FILES["level3/1_Net.py"]}
    report = fetch_dataset(str(tar(tmp_path / "kb.tar.gz", members(some))), destination)
    assert (report.changed, report.missing) == (("level1/1_Relu.py",), ("level2/1_Conv.py",))
    assert set(contents(destination)) == {"level3/1_Net.py", OWN_PROBLEM}


def test_a_source_that_is_nothing_of_it_is_refused(tmp_path: Path, destination: Path) -> None:
    assert "no such file" in refusal(tmp_path / "nowhere.tar.gz", destination)
    assert "has no KernelBench problems" in refusal(
        tar(tmp_path / "other.tar.gz", {"other/a.py": b""}), destination
    )
    (tmp_path / "empty").mkdir()
    assert "has no KernelBench problems" in refusal(tmp_path / "empty", destination)
    assert not destination.exists()


@pytest.mark.parametrize("make", [make_tar, make_zip])
def test_half_an_archive_is_refused(
    make: Callable[[Path], Path], tmp_path: Path, destination: Path
) -> None:
    path = make(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "is not a whole .tar.gz, .tgz or .zip archive" in refusal(path, destination)
    assert not destination.exists()


def test_text_that_is_no_archive_is_refused(tmp_path: Path, destination: Path) -> None:
    path = tmp_path / "page.tar.gz"
    path.write_text("<html>moved</html>")
    assert "is not a whole" in refusal(path, destination)


@pytest.mark.parametrize("name", ["../level1/1_Relu.py", "/level1/1_Relu.py"])
@pytest.mark.parametrize("pack", [tar, zipped])
def test_an_archive_that_points_outside_is_refused(
    pack: Callable[[Path, dict[str, bytes]], Path], name: str, tmp_path: Path, destination: Path
) -> None:
    source = pack(tmp_path / "kb.archive", {name: FILES["level1/1_Relu.py"]})
    assert "has a member that leaves its folder" in refusal(source, destination)


def test_the_manifest_has_250_files_in_numeric_order() -> None:
    rows = read_manifest()
    levels = [name.split("/")[0] for name in rows]
    assert [levels.count(f"level{n}") for n in (1, 2, 3)] == [100, 100, 50]
    assert all(len(sha256) == 64 for sha256 in rows.values())
    numbers = [int(name.split("/")[1].split("_")[0]) for name in rows]
    assert numbers == [*range(1, 101), *range(1, 101), *range(1, 51)]
