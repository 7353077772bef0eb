"""Packs many small files into one zip, and unpacks and checks them."""

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
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError),
    # zipfile raises these for an unknown version, for encryption, and for a wrong offset.
    *(NotImplementedError, RuntimeError, ValueError),
)


class DamagedPack(Exception):
    """A zip from a store cannot be read, or holds a file that differs from its sha256."""

    def __init__(self, member: str) -> None:
        super().__init__(member)
        self.member = member
        """Name of the first damaged file in the zip; empty if the zip itself cannot be opened."""


@contextmanager
def pack_files(directory: Path, files: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield the path of a temporary zip of a directory's files, and the zip's sha256.

    The same files make the same bytes.

    Raises:
        StoreError: a file differs from its sha256 in `files`.
    """
    with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
        path = Path(folder, "packed.zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(files):
                data = (directory / name).read_bytes()
                if hashlib.sha256(data).hexdigest() != files[name]:
                    raise changed_file_error(directory / name)
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data)
        yield path, sha256_of(path)


def unpack_files(
    pack: Path, files: Mapping[str, str], directory: Path | None = None
) -> dict[str, int]:
    """Check the files that are in a zip, and return the size of each.

    They, and nothing else that is in the zip, are written below `directory` if one is given.

    Raises:
        DamagedPack: a file differs from its sha256, or the zip cannot be read; no file after the
            damaged one is written.
    """
    sizes: dict[str, int] = {}
    name = ""
    try:
        with zipfile.ZipFile(pack) as archive:
            members = {entry.filename: entry for entry in archive.infolist()}
            names = [name for name in files if name in members]
            if directory is not None:
                for folder in {(directory / name).parent for name in names}:
                    folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                path = directory / name if directory else None
                sizes[name], digest = _read_member(archive, members[name], path)
                if digest != files[name]:
                    raise DamagedPack(name)
    except _ZIP_ERRORS as error:
        raise DamagedPack(name) from error
    return sizes


def _read_member(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path | None
) -> tuple[int, str]:
    """Read a member of a zip, write it to `path` if one is given; return its size and sha256."""
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


def changed_file_error(source: Path) -> StoreError:
    """Return the error for a file that differs from its sha256 in the result."""
    return StoreError(f"{source}: changed while it was stored", hint="submit it again")
