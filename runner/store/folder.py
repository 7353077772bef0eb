"""Reads and writes a store's objects in a directory: a key is a path, an object is a file."""

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from runner.errors import StoreError, unwritable_error
from runner.store.objects import Blob, Conflict
from runner.store.result import sha256_of

LOCK = ".kdrun-lock"
_TEMPORARY = ".kdrun-new-"


class FolderObjects:
    """Stores objects in one directory, which machines may share; implements `Objects`."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.uri = str(root)

    def put(self, key: str, source: Path, sha256: str) -> None:
        with self._replace_object(key) as temporary:
            shutil.copyfile(source, temporary)

    def put_if(self, key: str, data: bytes, expected: str | None) -> str:
        with self._hold_lock():
            current = self.get(key)
            if (current.version if current else None) != expected:
                raise Conflict(key)
            with self._replace_object(key) as temporary:
                temporary.write_bytes(data)
        return hashlib.sha256(data).hexdigest()

    def get(self, key: str) -> Blob | None:
        source = self._open(key)
        if source is None:
            return None
        with source:
            data = source.read()
        return Blob(data, hashlib.sha256(data).hexdigest())

    def fetch(self, key: str, path: Path) -> str | None:
        source = self._open(key)
        if source is None:
            return None
        with source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
        return sha256_of(path)

    def sha256(self, key: str) -> str | None:
        source = self._open(key)
        if source is None:
            return None
        with source:
            return hashlib.file_digest(source, "sha256").hexdigest()

    def list_objects(self, prefix: str) -> Iterator[tuple[str, int]]:
        folder = prefix.rpartition("/")[0]
        for directory, _, files in os.walk(self.root / folder):
            for name in files:
                path = Path(directory, name)
                key = path.relative_to(self.root).as_posix()
                if key.startswith(prefix) and not name.startswith((_TEMPORARY, LOCK)):
                    yield key, path.stat().st_size

    def folders(self, prefix: str) -> list[str]:
        folder = self.root / prefix
        try:
            return sorted(path.name for path in folder.iterdir() if path.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreadable(folder, error) from error

    def _open(self, key: str) -> BufferedReader | None:
        try:
            return (self.root / key).open("rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(self.root / key, error) from error

    @contextmanager
    def _replace_object(self, key: str) -> Iterator[Path]:
        """Yield a temporary path to write to; on success the file becomes the key's object."""
        path = self.root / key
        temporary = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            temporary.replace(path)
        except OSError as error:
            raise unwritable_error(path, error, "--store") from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Hold the directory's lock, so that no other conditional write runs at the same time."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise unwritable_error(self.root, error, "--store") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path}: {error.strerror}", hint="may this user read it?")
