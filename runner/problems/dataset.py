"""This file knows about the real dataset: where KernelBench comes from, and whether a copy is it.

Nothing of an untrusted source decides a path here: files are wanted by the manifest's names, taken
by the manifest's sha256, and written under those names.
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
from runner.problems.selection import own_data
from runner.untrusted_files import read_file

COMMIT = "423217d9fda91e0c2d67e4a43bf62f96f6d104f1"
ARCHIVE_URL = f"https://github.com/ScalingIntelligence/KernelBench/archive/{COMMIT}.tar.gz"
OWN = "level3/gpt_oss.py"
"""This project's own problem, beside level 3's 50."""

_DOWNLOAD_TIMEOUT_S = 60
_LARGEST_DOWNLOAD_BYTES = 2**30
_LARGEST_FILE_BYTES = 2**20  # the largest of the dataset has 20 KiB
_IGNORED = {"__pycache__", ".DS_Store"}

_BROKEN_ARCHIVE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(OSError, EOFError, ValueError, RuntimeError),  # RuntimeError: encrypted, unknown compression
)

Contents = Iterator[tuple[str, bytes]]
"""`level1/1_...py` and its text, from wherever; a name may come more than once."""


@dataclass(frozen=True, slots=True)
class FetchReport:
    """What `fetch` did. Only files with the manifest's sha256 are ever written."""

    destination: Path
    source: str
    written: int
    """Files that were not there before, or not like this."""
    kept: int
    """Files that were there already, right as they are."""
    missing: tuple[str, ...] = ()
    """Names that the source does not have."""
    changed: tuple[str, ...] = ()
    """Names that the source has with another content than at the pinned commit."""

    @property
    def complete(self) -> bool:
        return not self.missing and not self.changed


@dataclass(frozen=True, slots=True)
class CheckReport:
    """How a directory differs from the dataset at the pinned commit."""

    root: Path
    right: int
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """Files that are neither the dataset's nor this project's own."""

    @property
    def ok(self) -> bool:
        return not (self.missing or self.changed or self.extra)


def manifest() -> dict[str, str]:
    """Name, such as `level1/19_ReLU.py`, to sha256 of the 250 files, in numeric order."""
    path = next((p for p in own_data("manifest.txt") if p.is_file()), None)
    if path is None:
        raise DatasetError("this kdrun has no data/manifest.txt", hint="install it again")
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(_manifest_row(line) for line in lines if line and not line.startswith("#"))


def known_level(path: Path) -> str | None:
    """The level at which the dataset has a file with these bytes, `level1`; None where it does not.

    Raises OSError where the file cannot be read.
    """
    digest = _sha256(read_file(path))
    return next((name.partition("/")[0] for name, own in manifest().items() if own == digest), None)


def fetch(source: str | None, destination: Path) -> FetchReport:
    """Put the dataset at the pinned commit, and this project's own problem, into `destination`.

    `source` is a checkout, a (bare) git directory, or an archive (.tar.gz, .tgz, .tar, .zip); None
    downloads. What is right there already is kept, and a complete copy does not read the source.
    The directory changes as a whole or not at all. A source that lacks some files gives the others,
    and the report names those.

    Raises DatasetError for a source that cannot be read or has nothing of the dataset, and for a
    destination that holds other files.
    """
    if source is not None and not Path(source).expanduser().exists():
        raise DatasetError(
            f"--from {source}: no such file or directory",
            hint="a checkout, a git directory or an archive of KernelBench",
        )
    wanted = manifest()
    own = _own()
    before = _present(destination, wanted)
    good = {n: text for n, text in before.items() if _sha256(text) == wanted.get(n)}
    right_before = len(good) + (OWN in own and before.get(OWN) == own[OWN])
    changed: set[str] = set()
    if len(good) < len(wanted):
        found, changed = _sift(_contents(source), wanted)
        if not found and not changed:
            raise DatasetError(
                f"{source or ARCHIVE_URL} has no KernelBench problems in it",
                hint="it needs KernelBench/level1, level2 and level3",
            )
        good |= found
    files = good | own
    if len(files) > right_before:
        _replace(destination, files)
    return FetchReport(
        destination=destination,
        source=source or ARCHIVE_URL,
        written=len(files) - right_before,
        kept=right_before,
        missing=tuple(n for n in wanted if n not in good and n not in changed),
        changed=tuple(n for n in wanted if n not in good and n in changed),
    )


def check(root: Path) -> CheckReport:
    """Compare `root` with the manifest, file by file.

    Raises:
        DatasetError: there is no directory, or no file of KernelBench in it.
    """
    if not root.is_dir():
        raise DatasetError(f"no dataset in {root}", hint="`kdrun data fetch` gets it")
    wanted = manifest()
    files = _files(root)
    if not wanted.keys() & files.keys():
        raise DatasetError(
            f"{root} is not KernelBench: it has none of its {len(wanted)} files",
            hint="`kdrun data fetch` gets it",
        )
    expected = wanted | {name: _sha256(text) for name, text in _own().items()}
    present = {n: _sha256(files[n].read_bytes()) for n in expected if n in files}
    return CheckReport(
        root=root,
        right=sum(present.get(name) == sha for name, sha in expected.items()),
        missing=tuple(name for name in expected if name not in present),
        changed=tuple(n for n, sha in expected.items() if n in present and present[n] != sha),
        extra=tuple(name for name in files if name not in expected),
    )


def _manifest_row(line: str) -> tuple[str, str]:
    name, sha256 = line.split()
    return name, sha256


def _own() -> dict[str, bytes]:
    path = next((p for p in own_data(f"samples/{OWN}") if p.is_file()), None)
    return {OWN: path.read_bytes()} if path else {}


def _sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _files(root: Path) -> dict[str, Path]:
    """Every file below, by its name from there; caches and the like are nobody's."""
    files = {p.relative_to(root): p for p in sorted(root.rglob("*")) if not p.is_dir()}
    return {n.as_posix(): p for n, p in files.items() if not _IGNORED.intersection(n.parts)}


def _present(destination: Path, wanted: dict[str, str]) -> dict[str, bytes]:
    """The destination's files; DatasetError where replacing the directory would lose any other."""
    if not destination.exists():
        return {}
    if not destination.is_dir():
        raise DatasetError(f"{destination} is not a directory")
    files = _files(destination)
    others = [name for name in files if name not in wanted and name != OWN]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise DatasetError(
            f"{destination} holds files that are not the dataset's: {others[0]}{more}",
            hint="move them away first",
        )
    return {name: path.read_bytes() for name, path in files.items() if path.is_file()}


def _sift(contents: Contents, wanted: dict[str, str]) -> tuple[dict[str, bytes], set[str]]:
    """The wanted files, and the names that only came with another content."""
    found: dict[str, bytes] = {}
    changed: set[str] = set()
    for name, text in contents:
        if name in wanted and _sha256(text) == wanted[name]:
            found[name] = text
        elif name in wanted:
            changed.add(name)
    return found, changed - set(found)


def _replace(destination: Path, files: dict[str, bytes]) -> None:
    """Write a new directory beside the old one, then swap them."""
    destination = destination.resolve()  # where it is a link, what it points to is replaced
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".kdrun-fetch-") as room:
            new, old = Path(room, "new"), Path(room, "old")
            for name, text in files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text)
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
        with path.open("rb") as file:
            return _archive_contents(io.BytesIO(file.read()), source)
    if _is_bare_git(path):
        return _git_contents(path)
    if (path / ".git").exists() and _has_commit(path):
        return _git_contents(path)
    return _directory_contents(path)


def _download(url: str) -> bytes:
    hint = "where there is no network, --from takes a checkout, a git directory or an archive"
    try:
        with urllib.request.urlopen(url, timeout=_DOWNLOAD_TIMEOUT_S) as response:
            text: bytes = response.read(_LARGEST_DOWNLOAD_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise DatasetError(
            f"cannot download {url}: {error.code} {error.reason}", hint=hint
        ) from error
    except (OSError, HTTPException) as error:  # URLError is an OSError; so is a time-out
        why = getattr(error, "reason", None) or error
        why = getattr(why, "strerror", None) or why
        raise DatasetError(f"cannot download {url}: {why}", hint=hint) from error
    if len(text) > _LARGEST_DOWNLOAD_BYTES:
        raise DatasetError(f"cannot download {url}: it is larger than 1 GiB", hint=hint)
    return text


def _directory_contents(path: Path) -> Contents:
    for place in (path / "KernelBench", path):
        for file in sorted(place.glob("level[123]/*.py")):
            if file.is_file():
                yield f"{file.parent.name}/{file.name}", file.read_bytes()


def _is_bare_git(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir()


def _has_commit(path: Path) -> bool:
    return _git(path, "cat-file", "-e", f"{COMMIT}^{{commit}}").returncode == 0


def _git_contents(path: Path) -> Contents:
    if not _has_commit(path):
        why = _git(path, "rev-parse", "--git-dir").stderr.decode(errors="replace").strip()
        if why:  # not a repository after all, or one that git does not trust
            raise DatasetError(f"git cannot read {path}: {why.splitlines()[0]}")
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
        why = (str(error) or type(error).__name__).splitlines()[0].rstrip(": ")
        raise DatasetError(
            f"{source} is not a whole .tar.gz, .tgz or .zip archive: {why}",
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
    """`level1/1_...py`, or None for what is no problem. An archive that points outside is refused.

    Links are never followed, neither by us nor by what is written: a link where a problem should be
    is a missing problem (tar), or one with a wrong content (zip).
    """
    path = PurePosixPath(member.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise DatasetError(
            f"{source} has a member that leaves its folder: {member}",
            hint="nothing was written; get the archive from KernelBench's own page",
        )
    return "/".join(path.parts[-2:]) if path.suffix == ".py" else None
