"""Sends, checks and fetches the objects that hold a result's files.

A request costs as much for one small file as for a zip of a hundred, so all small files are in one
zip, and kdrun reads only that. Each large file is an object of its own. Small files are copied into
objects of their own too, except those of `steps/`, so that people can open a component with any
bucket browser.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from runner.store.key_layout import STEPS
from runner.store.objects import Objects, map_concurrently
from runner.store.result import first_mismatch
from runner.store.zip_packing import DamagedPack, pack_files, unpack_files

SMALL_BYTES = 1 << 20
"""Largest file that goes into the zip; for larger files a request of their own costs little."""
FETCHED_AT_ONCE = 4
"""Objects of one result that are fetched at the same time; several results are, too."""

FileDamage = tuple[Literal["missing", "corrupt"], str]
"""A kind of damage, and the file that has it."""


@dataclass(frozen=True, slots=True)
class ResultObjects:
    """The objects that hold the files of one result, without its `result.json`."""

    objects: Objects
    prefix: str
    """Prefix of all their keys: `.../files-<digest>`."""
    files: Mapping[str, str]
    """sha256 of each file, by name."""

    @property
    def pack(self) -> str:
        """Key of the zip, which exists only if there are small files."""
        return f"{self.prefix}.zip"

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}"

    def send(self, directory: Path) -> int:
        """Send the objects that the store lacks or has damaged; return the number of bytes sent.

        Raises:
            StoreError: the store refuses an object, or a file differs from its sha256.
        """
        sizes = {name: (directory / name).stat().st_size for name in self.files}
        small = {name: self.files[name] for name in sizes if sizes[name] <= SMALL_BYTES}
        stored_sizes = dict(self.objects.list_objects(self.prefix)) if self.files else {}

        def send_pack() -> int:
            if self.pack in stored_sizes and self._pack_holds(small):
                return 0
            with pack_files(directory, small) as (path, digest):
                self.objects.put(self.pack, path, digest)
                return path.stat().st_size

        def send_file(name: str) -> int:
            key, digest = self.key(name), self.files[name]
            is_stored = stored_sizes.get(key) == sizes[name]
            if is_stored and (name in small or self.objects.sha256(key) == digest):
                return 0
            self.objects.put(key, directory / name, digest)
            return sizes[name]

        uploads: list[Callable[[], int]] = [send_pack] if small else []
        for name in self.files:
            if name not in small or not name.startswith(STEPS):
                uploads.append(partial(send_file, name))
        return sum(map_concurrently(lambda send: send(), uploads))

    def damage(self) -> str | None:
        """Return the first file that is missing or differs from its sha256, or None.

        The zip is read and checked. For a large file the sha256 that it was written with is
        compared. For a copy for people, which kdrun never reads, only existence and size are.
        """
        if not self.files:
            return None
        stored_sizes = dict(self.objects.list_objects(self.prefix))
        try:
            small = self._check_pack()
        except DamagedPack as damaged:
            return damaged.member or self._pack_name

        def is_damaged(name: str) -> bool:
            if name in small:
                return (
                    not name.startswith(STEPS) and stored_sizes.get(self.key(name)) != small[name]
                )
            return self.objects.sha256(self.key(name)) != self.files[name]

        verdicts = map_concurrently(is_damaged, self.files)
        return next(
            (name for name, verdict in zip(self.files, verdicts, strict=True) if verdict), None
        )

    def fetch(self, directory: Path) -> FileDamage | None:
        """Fetch every file that a directory lacks; return the first that is missing or corrupt.

        The zip stays beside the directory; the caller deletes it.
        """
        lacking = {
            name: digest
            for name, digest in self.files.items()
            if first_mismatch(directory, {name: digest}) is not None
        }
        directory.mkdir(parents=True, exist_ok=True)
        small: Mapping[str, int] = {}
        try:
            if lacking and self._fetch_pack(pack_path(directory)):
                small = unpack_files(pack_path(directory), lacking, directory)
        except DamagedPack as damaged:
            return "corrupt", damaged.member or self._pack_name

        def fetch_file(name: str) -> FileDamage | None:
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            digest = self.objects.fetch(self.key(name), path)
            if digest is None:
                return "missing", name
            return None if digest == lacking[name] else ("corrupt", name)

        damages = map_concurrently(
            fetch_file, [name for name in lacking if name not in small], FETCHED_AT_ONCE
        )
        return next((damage for damage in damages if damage is not None), None)

    @property
    def _pack_name(self) -> str:
        return self.pack.rpartition("/")[2]

    def _fetch_pack(self, path: Path) -> bool:
        """Fetch the zip to a path, unless it is there already; return whether there is one."""
        if path.is_file():
            return True
        partial_path = path.with_name(f"{path.name}.part")
        try:
            if self.objects.fetch(self.pack, partial_path) is None:
                return False
            partial_path.replace(path)
        finally:
            partial_path.unlink(missing_ok=True)
        return True

    def _check_pack(self) -> dict[str, int]:
        """Return the sizes of the files that the zip holds.

        Raises:
            DamagedPack: a file differs from its sha256, or the zip cannot be read.
        """
        with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
            path = Path(folder, "packed.zip")
            return unpack_files(path, self.files) if self._fetch_pack(path) else {}

    def _pack_holds(self, names: Mapping[str, str]) -> bool:
        try:
            return self._check_pack().keys() >= names.keys()
        except DamagedPack:
            return False


def pack_path(directory: Path) -> Path:
    """Return the path of the zip while it is unpacked into a directory."""
    return directory.with_name(f"{directory.name}.zip")
