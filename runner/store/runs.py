"""This file knows about runs in a store: what is committed, by whom, and how each run stands.

A problem's files go first, its `result.json` last and by a conditional write: it is the commit.
Readers trust only what a `result.json` lists. Nothing in a store is ever deleted, and nothing but
`manifest.json` and a superseded `result.json` is written over.
"""

import hashlib
import json
import random
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from runner import __version__
from runner.errors import StoreError
from runner.store import key_layout
from runner.store.manifest import Manifest, merged
from runner.store.objects import Address, Blob, Conflict, Objects, each, open_objects
from runner.store.result import ProblemResult
from runner.store.result_objects import Contents

TRIES = 50
"""Of one conditional write, when others write there at the same time."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A result that is committed."""

    result: ProblemResult
    text: str
    """Its result.json."""
    version: str
    """What a write that supersedes it has to name."""
    prefix: str
    """Below which its files are, relative to the store."""

    @property
    def sha256(self) -> str:
        """Of its result.json."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Published:
    """What stands after an attempt was published."""

    standing: Standing
    differs: tuple[str, ...] = ()
    """In what the result of another writer, who was first, is not the one that was published."""
    sent_bytes: int = 0
    """What was not there yet."""


class RunStore:
    """Runs below one address."""

    def __init__(self, address: Address, *, patient: bool = True) -> None:
        self.address = address
        self.objects: Objects = open_objects(address, patient=patient)

    def __str__(self) -> str:
        return self.objects.uri

    # What can be known before any work.

    def claim(self) -> None:
        """Make sure that results can be written here, and that no writer can overrun another.

        Raises:
            StoreError: the place does not answer, cannot be written to, holds something else, or
                ignores the conditions of conditional writes.
        """
        text = json.dumps({"kdrun_store": key_layout.LAYOUT}) + "\n"
        self.is_new()
        with suppress(Conflict):
            self.objects.put_if(key_layout.MARKER, text.encode(), None)
        for condition, expected in (("If-None-Match", None), ("If-Match", "0" * 32)):
            with suppress(Conflict):
                self.objects.put_if(key_layout.MARKER, text.encode(), expected)
                raise StoreError(
                    f"{self}: the service ignores {condition}, so writers could overrun each other",
                    hint="use a newer version of it, or another one",
                )
        self.look()

    def is_new(self) -> bool:
        """Return whether nothing is there yet, so that the first run makes it a store.

        Raises:
            StoreError: it holds something else, or does not answer.
        """
        if self._is_marked():
            return False
        # Asked twice: what was found may be the mark of another driver, of this moment.
        if self._is_in_use() and not self._is_marked():
            raise StoreError(f"{self}: holds something else", hint="choose an empty place")
        return True

    def _is_marked(self) -> bool:
        return self.objects.get(key_layout.MARKER) is not None

    def _is_in_use(self) -> bool:
        return any(True for _ in self.objects.listed(""))

    def look(self) -> None:
        """Make sure that this is a store, and one that this version can read.

        Raises:
            StoreError: it is not.
        """
        blob = self.objects.get(key_layout.MARKER)
        if blob is None:
            raise StoreError(f"{self}: no store", hint=f"`kdrun submit --store {self}` makes one")
        try:
            number = int(json.loads(blob.data)["kdrun_store"])
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(
                f"{self}/{key_layout.MARKER}: not ours", hint="choose an empty place"
            ) from error
        if number > key_layout.LAYOUT:
            raise StoreError(f"{self}: made by a newer kdrun", hint="upgrade kdrun")
        if number < key_layout.LAYOUT:
            raise StoreError(
                f"{self}: made by an older kdrun, which packed files in another way",
                hint="choose an empty place",
            )

    # Results.

    def standing(self, run_id: str, label: str) -> Standing | None:
        """The result that is committed, or None where there is none that can be read."""
        blob = self.objects.get(key_layout.result_key(run_id, label))
        return None if blob is None else _standing(run_id, label, blob)

    def all_standing(self, run_id: str, labels: Iterable[str]) -> dict[str, Standing]:
        """The same for many problems, by label."""
        found = each(lambda label: (label, self.standing(run_id, label)), labels)
        return {label: standing for label, standing in found if standing is not None}

    def labels(self, run_id: str) -> list[str]:
        """Problems of a run of which anything is there."""
        levels = [level for level in self.objects.folders(f"{run_id}/") if level != key_layout.LOGS]
        return [
            f"{level}/{name}"
            for level in levels
            for name in self.objects.folders(f"{run_id}/{level}/")
        ]

    def contents(self, run_id: str, result: ProblemResult) -> Contents:
        """The objects that hold a result's files."""
        return Contents(self.objects, key_layout.files_prefix(run_id, result), result.files)

    def damage(self, run_id: str, result: ProblemResult) -> str | None:
        """The first file that is missing or is not what the result says, or None."""
        return self.contents(run_id, result).damage()

    def publish(
        self, run_id: str, result: ProblemResult, directory: Path, supersedes: str | None = None
    ) -> Published:
        """Store a decomposition that is finished on disk; what is there already stays.

        `supersedes` is the version of the committed result that this one was made to replace. Where
        another writer has committed meanwhile, the first stands, unless it alone did not pass.
        """
        sent_bytes = self.contents(run_id, result).send(directory)
        return replace(self._commit(run_id, result, supersedes), sent_bytes=sent_bytes)

    def put_log(self, run_id: str, label: str, log: Path) -> int:
        """What a problem's process printed; so many bytes."""
        with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
            copy = Path(aside, "log")  # its owner may still write
            copy.write_bytes(log.read_bytes())
            digest = hashlib.sha256(copy.read_bytes()).hexdigest()
            self.objects.put(key_layout.log_key(run_id, label), copy, digest)
            return copy.stat().st_size

    def _commit(self, run_id: str, result: ProblemResult, supersedes: str | None) -> Published:
        key = key_layout.result_key(run_id, result.label)
        data = result.to_json().encode()
        expected = supersedes
        for _ in range(TRIES):
            try:
                version = self.objects.put_if(key, data, expected)
            except Conflict:
                blob = self.objects.get(key)
                expected = blob.version if blob else None
                standing = _standing(run_id, result.label, blob) if blob else None
                if standing is None or _better(result, standing.result):
                    _wait()
                    continue
                return Published(standing, differences(result, standing.result))
            blob = Blob(data, version)
            standing = _standing(run_id, result.label, blob)
            assert standing is not None
            return Published(standing)
        raise StoreError(f"{self}/{key}: written by others all the time", hint="submit it again")

    # Runs.

    def save(
        self, manifest: Manifest, selection: Collection[str], forget: Collection[str] = ()
    ) -> Manifest:
        """Write a run's manifest, in which the rows of another driver of the same run are kept.

        `selection` is what this driver's run is about. Rows of the problems in `forget` are not
        kept: they are about to be done again.
        """

        def whole(theirs: Manifest | None) -> Manifest:
            return manifest if theirs is None else merged(manifest, theirs, selection, forget)

        return self.update(manifest.run_id, whole)[0]

    def update(
        self, run_id: str, whole: Callable[[Manifest | None], Manifest], known: str | None = None
    ) -> tuple[Manifest, str]:
        """Write a run's manifest, and return it with its version.

        `whole` is given what is there and says what is to be. Where that is at version `known`,
        which says nothing new to who wrote it, it is not read, and `whole` is given None.
        """
        key = key_layout.manifest_key(run_id)
        version, theirs = known, None
        for attempt in range(TRIES):
            if attempt or known is None:
                blob = self.objects.get(key)
                version = blob.version if blob else None
                theirs = self._manifest(key, blob) if blob else None
            manifest = whole(theirs)
            try:
                return manifest, self.objects.put_if(key, manifest.to_json().encode(), version)
            except Conflict:
                _wait()
        raise StoreError(f"{self}/{key}: written by others all the time", hint="submit it again")

    def find_manifest(self, run_id: str) -> Manifest | None:
        """A run's manifest, or None where there is no such run.

        Raises:
            StoreError: it is none that this version understands.
        """
        key = key_layout.manifest_key(run_id)
        blob = self.objects.get(key)
        return None if blob is None else self._manifest(key, blob)

    def manifest(self, run_id: str) -> Manifest:
        """A run's manifest.

        Raises:
            StoreError: no such run, or a manifest that this version does not understand.
        """
        found = self.find_manifest(run_id)
        if found is None:
            known = ", ".join(self.run_ids()[-3:]) or "none"
            raise StoreError(f"no run {run_id!r} in {self}", hint=f"the last ones there: {known}")
        return found

    def run_ids(self) -> list[str]:
        """Ids of all runs, in the order of their names."""
        return sorted(self.objects.folders(""))

    def manifests(self) -> list[Manifest]:
        """Of every run that has one, oldest first."""
        found = each(self.find_manifest, self.run_ids())
        return sorted((each for each in found if each), key=lambda each: each.started)

    def _manifest(self, key: str, blob: Blob) -> Manifest:
        try:
            manifest = Manifest.model_validate_json(blob.data)
            if key_layout.manifest_key(manifest.run_id) != key:
                raise ValueError("a manifest of another run")
            return manifest
        except ValueError as error:  # pydantic's is one
            if made_by_newer(_versions(blob.data)):
                raise StoreError(
                    f"{self}/{key}: written by a newer kdrun", hint="upgrade kdrun"
                ) from error
            raise StoreError(
                f"{self}/{key}: not a readable manifest", hint="choose another --run-id"
            ) from error


def _standing(run_id: str, label: str, blob: Blob) -> Standing | None:
    try:
        result = ProblemResult.model_validate_json(blob.data)
    except ValidationError:
        return None
    if result.label != label:
        return None
    prefix = key_layout.files_prefix(run_id, result)
    return Standing(result, blob.data.decode(), blob.version, prefix)


def _better(ours: ProblemResult, theirs: ProblemResult) -> bool:
    """Whether the second to come takes the first one's place: a pass is not lost to a crash."""
    return ours.status == "passed" != theirs.status


def differences(ours: ProblemResult, theirs: ProblemResult) -> tuple[str, ...]:
    """In what two results of one problem differ, save for times and places."""
    said = []
    for name in ("status", "source_sha256", "kdrun_version", "torch_version", "options"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        if mine != other:
            said.append(f"{name}: {other} stands, not {mine}")
    if ours.status == theirs.status == "passed":
        names = {
            name
            for name, _ in ours.files.items() ^ theirs.files.items()
            if not name.startswith("verification/")
        }
        said.extend(f"{name} differs" for name in sorted(names))
    return tuple(said)


def made_by_newer(versions: Any) -> bool:
    """Whether a document's versions name a kdrun after this one."""
    try:
        theirs = tuple(int(part) for part in versions["kdrun"].split(".")[:3])
        ours = tuple(int(part) for part in __version__.split(".")[:3])
    except (TypeError, KeyError, ValueError, AttributeError):
        return False
    return theirs > ours


def _versions(data: bytes) -> Any:
    try:
        document = json.loads(data)
    except ValueError:
        return None
    return document.get("versions") if isinstance(document, dict) else None


def _wait() -> None:
    time.sleep(random.uniform(0.01, 0.1))
