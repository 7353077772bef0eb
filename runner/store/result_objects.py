"""This file knows about which objects hold a result's files: how they are sent, checked, fetched.

A request costs the same for one small file as for a hundred, so a zip holds all that are small: it
is what kdrun reads. What the zip does not hold is an object of its own. Small files are objects as
well, all but those of `steps/`, so that a person opens a component with any browser of buckets.
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
"""Up to this a file goes into the zip; above it, requests are not what costs."""
FETCHED_AT_ONCE = 4
"""Objects of one result; several results are fetched at once."""

Loss = tuple[Literal["missing", "corrupt"], str]
"""What is wrong with which file."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The objects of one result, its `result.json` aside."""

    objects: Objects
    prefix: str
    """Of all their keys: `.../files-<digest>`."""
    files: Mapping[str, str]
    """Name -> sha256."""

    @property
    def pack(self) -> str:
        """The key of the zip; there is none where no file is small."""
        return f"{self.prefix}.zip"

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}"

    def send(self, directory: Path) -> int:
        """What is not there yet, or is not right; how many bytes that were.

        Raises:
            StoreError: the store does not take it, or a file is not what its sha256 says.
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
        """The first file that is missing or is not what its sha256 says, or None.

        The zip is read; of large files the sha256 is asked that they were written with; of copies
        for people, which kdrun does not read, that they are there and as long as they should be.
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
        """Every file that is not there yet into a directory; the first that cannot be had.

        The zip stays beside the directory until its owner is done with both.
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
        """Whether the zip is at that path now; it is there whole or not at all."""
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
        """What the zip holds of the files, and how long each is.

        Raises:
            Damaged: one of them is not right.
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
    """Where the zip is while it is unpacked into a directory."""
    return directory.with_name(f"{directory.name}.zip")
