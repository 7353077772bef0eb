"""This file knows about many small files in one object: a zip that any tool opens."""

import hashlib
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from runner.store.result import sha256_of

_CHUNK_BYTES = 1 << 20
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error),
    *(KeyError, EOFError, NotImplementedError, RuntimeError),  # no such member, cut off, encrypted
)


@contextmanager
def packed(directory: Path, members: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """Files of a directory as one zip, for as long as it is needed, with its sha256.

    The same files make the same bytes.
    """
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        path = Path(aside, "packed.zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for name in sorted(members):
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, (directory / name).read_bytes())
        yield path, sha256_of(path)


def bad_member(pack: Path, files: Mapping[str, str]) -> str | None:
    """The first of the files that is not in the pack with its sha256, or None."""
    return _each_member(pack, files, None)


def unpack(pack: Path, files: Mapping[str, str], directory: Path) -> str | None:
    """Put the files, and nothing else that is in the pack, below a directory.

    The first that is missing or is not what its sha256 says, or None; nothing after it is written.
    """
    return _each_member(pack, files, directory)


def _each_member(pack: Path, files: Mapping[str, str], directory: Path | None) -> str | None:
    name = next(iter(files))
    try:
        with zipfile.ZipFile(pack) as archive:
            for name, digest in files.items():
                with archive.open(name) as source:
                    if directory is None:
                        right = _digest(source) == digest
                    else:
                        right = _write(source, directory / name) == digest
                if not right:
                    return name
    except _BROKEN:
        return name
    return None


def _digest(source: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _write(source: IO[bytes], path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as target:
        shutil.copyfileobj(source, target, _CHUNK_BYTES)
    return sha256_of(path)
