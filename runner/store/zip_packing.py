"""This file knows about many small files in one object: a zip that any tool opens."""

import hashlib
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from runner.errors import StoreError
from runner.store.result import sha256_of

CHUNK_BYTES = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError),  # a version, encryption, an offset
)


class Damaged(Exception):
    """A pack is not what was put there."""

    def __init__(self, member: str) -> None:
        super().__init__(member)
        self.member = member
        """The first file in it that is not right; empty where it does not open at all."""


@contextmanager
def packed(directory: Path, files: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Files of a directory as one zip, for as long as it is needed, with its sha256.

    The same files make the same bytes.

    Raises:
        StoreError: a file is not what its sha256 says.
    """
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        path = Path(aside, "packed.zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(files):
                data = (directory / name).read_bytes()
                if hashlib.sha256(data).hexdigest() != files[name]:
                    raise changed(directory / name)
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data)
        yield path, sha256_of(path)


def unpacked(pack: Path, files: Mapping[str, str], directory: Path | None = None) -> dict[str, int]:
    """Those of the files that are in the pack, each right, and how long it is.

    They, and nothing else that is in the pack, are put below the directory, if there is one.

    Raises:
        Damaged: one is not what its sha256 says; nothing after it is written.
    """
    sizes: dict[str, int] = {}
    name = ""
    try:
        with zipfile.ZipFile(pack) as archive:
            held = {entry.filename: entry for entry in archive.infolist()}
            wanted = [name for name in files if name in held]
            if directory is not None:
                for folder in {(directory / name).parent for name in wanted}:
                    folder.mkdir(parents=True, exist_ok=True)
            for name in wanted:
                path = directory / name if directory else None
                sizes[name], digest = _read(archive, held[name], path)
                if digest != files[name]:
                    raise Damaged(name)
    except _BROKEN as error:
        raise Damaged(name) from error
    return sizes


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path | None) -> tuple[int, str]:
    """How long a member is, and its sha256; it is at the path then, if there is one."""
    if entry.compress_type not in _METHODS or entry.header_offset < 0:
        raise zipfile.BadZipFile
    size, digest = 0, hashlib.sha256()
    with archive.open(entry) as source, path.open("wb") if path else nullcontext() as target:
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            if target is not None:
                target.write(chunk)
    return size, digest.hexdigest()


def changed(source: Path) -> StoreError:
    """A file that is stored is not the one that the result speaks of."""
    return StoreError(f"{source}: changed while it was stored", hint="submit it again")
