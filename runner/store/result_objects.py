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
from runner.store.objects import Objects, each
from runner.store.result import first_mismatch
from runner.store.zip_packing import Damaged, packed, unpacked

SMALL_BYTES = 1 << 20
"""Largest file that goes into the zip; for larger files a request of their own costs little."""
FETCHED_AT_ONCE = 4
"""Objects of one result that are fetched at the same time; several results are, too."""

Loss = tuple[Literal["missing", "corrupt"], str]
"""A kind of damage, and the file that has it."""


@dataclass(frozen=True, slots=True)
class Contents:
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
        there = dict(self.objects.listed(self.prefix)) if self.files else {}

        def zipped() -> int:
            if self.pack in there and self._holds(small):
                return 0
            with packed(directory, small) as (path, digest):
                self.objects.put(self.pack, path, digest)
                return path.stat().st_size

        def alone(name: str) -> int:
            key, digest = self.key(name), self.files[name]
            right = there.get(key) == sizes[name]
            if right and (name in small or self.objects.sha256(key) == digest):
                return 0
            self.objects.put(key, directory / name, digest)
            return sizes[name]

        sending: list[Callable[[], int]] = [zipped] if small else []
        for name in self.files:
            if name not in small or not name.startswith(STEPS):
                sending.append(partial(alone, name))
        return sum(each(lambda send: send(), sending))

    def damage(self) -> str | None:
        """Return the first file that is missing or differs from its sha256, or None.

        The zip is read and checked. For a large file the sha256 that it was written with is
        compared. For a copy for people, which kdrun never reads, only existence and size are.
        """
        if not self.files:
            return None
        there = dict(self.objects.listed(self.prefix))
        try:
            small = self._checked()
        except Damaged as damaged:
            return damaged.member or self._pack_name

        def bad(name: str) -> bool:
            if name in small:
                return not name.startswith(STEPS) and there.get(self.key(name)) != small[name]
            return self.objects.sha256(self.key(name)) != self.files[name]

        found = each(bad, self.files)
        return next((name for name, is_bad in zip(self.files, found, strict=True) if is_bad), None)

    def fetch(self, directory: Path) -> Loss | None:
        """Fetch every file that a directory lacks; return the first that is missing or corrupt.

        The zip stays beside the directory; the caller deletes it.
        """
        wanted = {
            name: digest
            for name, digest in self.files.items()
            if first_mismatch(directory, {name: digest}) is not None
        }
        directory.mkdir(parents=True, exist_ok=True)
        small: Mapping[str, int] = {}
        try:
            if wanted and self._fetched(beside(directory)):
                small = unpacked(beside(directory), wanted, directory)
        except Damaged as damaged:
            return "corrupt", damaged.member or self._pack_name

        def alone(name: str) -> Loss | None:
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            digest = self.objects.fetch(self.key(name), path)
            if digest is None:
                return "missing", name
            return None if digest == wanted[name] else ("corrupt", name)

        found = each(alone, [name for name in wanted if name not in small], FETCHED_AT_ONCE)
        return next((loss for loss in found if loss is not None), None)

    @property
    def _pack_name(self) -> str:
        return self.pack.rpartition("/")[2]

    def _fetched(self, path: Path) -> bool:
        """Fetch the zip to a path, unless it is there already; return whether there is one."""
        if path.is_file():
            return True
        arriving = path.with_name(f"{path.name}.part")
        try:
            if self.objects.fetch(self.pack, arriving) is None:
                return False
            arriving.replace(path)
        finally:
            arriving.unlink(missing_ok=True)
        return True

    def _checked(self) -> dict[str, int]:
        """Return the sizes of the files that the zip holds.

        Raises:
            DamagedPack: a file differs from its sha256, or the zip cannot be read.
        """
        with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
            path = Path(aside, "packed.zip")
            return unpacked(path, self.files) if self._fetched(path) else {}

    def _holds(self, names: Mapping[str, str]) -> bool:
        try:
            return self._checked().keys() >= names.keys()
        except Damaged:
            return False


def beside(directory: Path) -> Path:
    """Return the path of the zip while it is unpacked into a directory."""
    return directory.with_name(f"{directory.name}.zip")
