"""Fetches the KernelBench dataset and checks a copy of it against the manifest.

An untrusted source never decides a path: files are looked up by the manifest's names, accepted by
the manifest's sha256, and written under the manifest's names.
"""

import hashlib
import io
import lzma
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath

from runner.errors import DatasetError
from runner.problems.selection import own_data_paths
from runner.quantities import join_first
from runner.untrusted_files import read_file

COMMIT = "423217d9fda91e0c2d67e4a43bf62f96f6d104f1"
ARCHIVE_URL = f"https://github.com/ScalingIntelligence/KernelBench/archive/{COMMIT}.tar.gz"
OWN_PROBLEM = "level3/gpt_oss.py"
"""File of this project's own problem, which is added to the 50 of level 3."""

_DOWNLOAD_TIMEOUT_S = 60
_LARGEST_DOWNLOAD_BYTES = 2**30
_LARGEST_FILE_BYTES = 2**20  # the largest of the dataset has 20 KiB
_IGNORED = {"__pycache__", ".DS_Store"}

_BROKEN_ARCHIVE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(OSError, EOFError, ValueError, RuntimeError),  # RuntimeError: encrypted, unknown compression
)

Contents = Iterator[tuple[str, bytes]]
"""Pairs of a name, `level1/1_...py`, and the file's bytes; a name may come more than once."""


@dataclass(frozen=True, slots=True)
class FetchReport:
    """Result of `fetch_dataset`, which only ever writes files with the manifest's sha256."""

    destination: Path
    source: str
    written: int
    """Number of files that were missing or different before."""
    kept: int
    """Number of files that were already there with the right content."""
    missing: tuple[str, ...] = ()
    """Names that the source lacks."""
    changed: tuple[str, ...] = ()
    """Names whose content in the source differs from the pinned commit."""

    @property
    def complete(self) -> bool:
        return not self.missing and not self.changed


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Differences between a directory and the dataset at the pinned commit."""

    root: Path
    right: int
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """Files that belong neither to the dataset nor to this project."""

    @property
    def ok(self) -> bool:
        return not (self.missing or self.changed or self.extra)


def read_manifest() -> dict[str, str]:
    """Return name (`level1/19_ReLU.py`) -> sha256 of the 250 files, in numeric order."""
    path = next((p for p in own_data_paths("manifest.txt") if p.is_file()), None)
    if path is None:
        raise DatasetError("this kdrun has no data/manifest.txt", hint="install it again")
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines if line and not line.startswith("#"))


def find_dataset_level(path: Path) -> str | None:
    """Return the level (`level1`) whose dataset file has the same bytes; None if no file has.

    Raises OSError if the file cannot be read.
    """
    levels = {sha256: name.partition("/")[0] for name, sha256 in read_manifest().items()}
    return levels.get(_sha256(read_file(path)))


def fetch_dataset(source: str | None, destination: Path) -> FetchReport:
    """Write the dataset at the pinned commit, and this project's own problem, to `destination`.

    `source` is a checkout, a (bare) git directory, or an archive (.tar.gz, .tgz, .tar, .zip); None
    downloads it. Files that are already right are kept, and if all are, the source is not read.
    The directory is replaced completely or not at all. If the source lacks some files, the others
    are written and the report names the missing ones.

    Raises DatasetError if the source cannot be read or has no file of the dataset, or if the
    destination holds other files.
    """
    if source is not None and not Path(source).expanduser().exists():
        raise DatasetError(
            f"--from {source}: no such file or directory",
            hint="a checkout, a git directory or an archive of KernelBench",
        )
    expected = read_manifest()
    own_files = _own_problem()
    present = _read_destination(destination, expected)
    correct = {
        name: content for name, content in present.items() if _sha256(content) == expected.get(name)
    }
    correct_before = len(correct) + (
        OWN_PROBLEM in own_files and present.get(OWN_PROBLEM) == own_files[OWN_PROBLEM]
    )
    changed: set[str] = set()
    if len(correct) < len(expected):
        accepted, changed = _select_matching(_contents(source), expected)
        if not accepted and not changed:
            raise DatasetError(
                f"{source or ARCHIVE_URL} has no KernelBench problems in it",
                hint="it needs KernelBench/level1, level2 and level3",
            )
        correct |= accepted
    files = correct | own_files
    if len(files) > correct_before:
        _replace(destination, files)
    return FetchReport(
        destination=destination,
        source=source or ARCHIVE_URL,
        written=len(files) - correct_before,
        kept=correct_before,
        missing=tuple(name for name in expected if name not in correct and name not in changed),
        changed=tuple(name for name in expected if name not in correct and name in changed),
    )


def check_dataset(root: Path) -> CheckReport:
    """Compare `root` with the manifest, file by file.

    Raises:
        DatasetError: `root` is no directory, or has no file of KernelBench in it.
    """
    if not root.is_dir():
        raise DatasetError(f"no dataset in {root}", hint="`kdrun data fetch` gets it")
    expected = read_manifest()
    files = _files(root)
    if not expected.keys() & files.keys():
        raise DatasetError(
            f"{root} is not KernelBench: it has none of its {len(expected)} files",
            hint="`kdrun data fetch` gets it",
        )
    all_expected = expected | {name: _sha256(text) for name, text in _own_problem().items()}
    present = {n: _sha256(files[n].read_bytes()) for n in all_expected if n in files}
    return CheckReport(
        root=root,
        right=sum(present.get(name) == sha for name, sha in all_expected.items()),
        missing=tuple(name for name in all_expected if name not in present),
        changed=tuple(n for n, sha in all_expected.items() if n in present and present[n] != sha),
        extra=tuple(name for name in files if name not in all_expected),
    )


def _own_problem() -> dict[str, bytes]:
    path = next((p for p in own_data_paths(f"samples/{OWN_PROBLEM}") if p.is_file()), None)
    return {OWN_PROBLEM: path.read_bytes()} if path else {}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _files(root: Path) -> dict[str, Path]:
    """Return relative name -> path of every file below `root`, without caches and the like."""
    files = {p.relative_to(root): p for p in sorted(root.rglob("*")) if not p.is_dir()}
    return {n.as_posix(): p for n, p in files.items() if not _IGNORED.intersection(n.parts)}


def _read_destination(destination: Path, expected: dict[str, str]) -> dict[str, bytes]:
    """Return the destination's files; DatasetError if replacing it would lose any other file."""
    if not destination.exists():
        return {}
    if not destination.is_dir():
        raise DatasetError(f"{destination} is not a directory")
    files = _files(destination)
    foreign = [name for name in files if name not in expected and name != OWN_PROBLEM]
    if foreign:
        raise DatasetError(
            f"{destination} holds files that are not the dataset's: {join_first(foreign, 1)}",
            hint="move them away first",
        )
    return {name: path.read_bytes() for name, path in files.items() if path.is_file()}


def _select_matching(
    contents: Contents, expected: dict[str, str]
) -> tuple[dict[str, bytes], set[str]]:
    """Return the files that match the manifest, and names that only came with other content."""
    accepted: dict[str, bytes] = {}
    changed: set[str] = set()
    for name, content in contents:
        if name in expected and _sha256(content) == expected[name]:
            accepted[name] = content
        elif name in expected:
            changed.add(name)
    return accepted, changed - set(accepted)


def _replace(destination: Path, files: dict[str, bytes]) -> None:
    """Write a new directory beside the old one, then swap them."""
    destination = destination.resolve()  # of a link, the directory it points to is replaced
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=destination.parent, prefix=".kdrun-fetch-"
        ) as temporary:
            new, old = Path(temporary, "new"), Path(temporary, "old")
            for name, content in files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if destination.exists():
                destination.rename(old)
            try:
                new.rename(destination)
            except OSError:
                if old.exists():
                    old.rename(destination)
                raise
    except OSError as error:
        raise DatasetError(f"cannot write {destination}: {error.strerror or error}") from error


def _contents(source: str | None) -> Contents:
    if source is None:
        return _archive_contents(io.BytesIO(_download(ARCHIVE_URL)), ARCHIVE_URL)
    path = Path(source).expanduser()
    if path.is_file():
        return _archive_contents(io.BytesIO(path.read_bytes()), source)
    is_bare_git = (path / "HEAD").is_file() and (path / "objects").is_dir()
    if is_bare_git or ((path / ".git").exists() and _has_commit(path)):
        return _git_contents(path)
    return _directory_contents(path)


def _download(url: str) -> bytes:
    hint = "where there is no network, --from takes a checkout, a git directory or an archive"
    try:
        with urllib.request.urlopen(url, timeout=_DOWNLOAD_TIMEOUT_S) as response:
            content: bytes = response.read(_LARGEST_DOWNLOAD_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise DatasetError(
            f"cannot download {url}: {error.code} {error.reason}", hint=hint
        ) from error
    except (OSError, HTTPException) as error:  # URLError and time-outs are OSErrors
        reason = getattr(error, "reason", None) or error
        reason = getattr(reason, "strerror", None) or reason
        raise DatasetError(f"cannot download {url}: {reason}", hint=hint) from error
    if len(content) > _LARGEST_DOWNLOAD_BYTES:
        raise DatasetError(f"cannot download {url}: it is larger than 1 GiB", hint=hint)
    return content


def _directory_contents(path: Path) -> Contents:
    for folder in (path / "KernelBench", path):
        for file in sorted(folder.glob("level[123]/*.py")):
            if file.is_file():
                yield f"{file.parent.name}/{file.name}", file.read_bytes()


def _has_commit(path: Path) -> bool:
    return _git(path, "cat-file", "-e", f"{COMMIT}^{{commit}}").returncode == 0


def _git_contents(path: Path) -> Contents:
    if not _has_commit(path):
        reason = _git(path, "rev-parse", "--git-dir").stderr.decode(errors="replace").strip()
        if reason:  # it is no repository, or git does not trust it
            raise DatasetError(f"git cannot read {path}: {reason.splitlines()[0]}")
        raise DatasetError(
            f"{path} does not have KernelBench's commit {COMMIT[:7]}",
            hint=f"git -C {path} fetch origin {COMMIT}",
        )
    archive = _git(path, "archive", "--format=tar", COMMIT, "KernelBench")
    if archive.returncode:
        lines = archive.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise DatasetError(f"git cannot read {path} at {COMMIT[:7]}: {lines[0]}")
    yield from _tar_contents(io.BytesIO(archive.stdout), str(path))


def _git(path: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    git = shutil.which("git")
    if git is None:
        raise DatasetError(f"reading {path} needs git, which is not installed")
    return subprocess.run(
        [git, "-C", str(path), *arguments], capture_output=True, env=environment, check=False
    )


def _archive_contents(file: io.BytesIO, source: str) -> Contents:
    try:
        is_zip = file.read(2) == b"PK"
        file.seek(0)
        yield from _zip_contents(file, source) if is_zip else _tar_contents(file, source)
    except DatasetError:
        raise
    except _BROKEN_ARCHIVE as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(": ")
        raise DatasetError(
            f"{source} is not a whole .tar.gz, .tgz or .zip archive: {reason}",
            hint="download it again",
        ) from error


def _tar_contents(file: io.BytesIO, source: str) -> Contents:
    with tarfile.open(fileobj=file, mode="r:*") as archive:
        for member in archive:
            name = _member_name(member.name, source)
            if not name or not member.isfile() or member.size > _LARGEST_FILE_BYTES:
                continue
            if content := archive.extractfile(member):
                yield name, content.read()


def _zip_contents(file: io.BytesIO, source: str) -> Contents:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = _member_name(member.filename, source)
            if name and not member.is_dir() and member.file_size <= _LARGEST_FILE_BYTES:
                yield name, archive.read(member)


def _member_name(member: str, source: str) -> str | None:
    """Return a member's name as `level1/1_...py`; None if it is no Python file.

    Raises DatasetError for a member outside of the archive's folder. Links are neither followed nor
    written: a link in place of a problem is a missing problem (tar), or one with a wrong content
    (zip).
    """
    path = PurePosixPath(member.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise DatasetError(
            f"{source} has a member that leaves its folder: {member}",
            hint="nothing was written; get the archive from KernelBench's own page",
        )
    return "/".join(path.parts[-2:]) if path.suffix == ".py" else None
