"""Reads and writes the runs of a store: their committed results, manifests and logs.

A problem's files are sent first; then a conditional write of its `result.json` commits them.
Readers trust only the files that a `result.json` lists. Nothing in a store is ever deleted, and
only `manifest.json` and a superseded `result.json` are overwritten.
"""

import hashlib
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from runner import __version__
from runner.errors import StoreError
from runner.store import key_layout
from runner.store.manifest import Manifest
from runner.store.objects import Address, Blob, Conflict, Objects, map_concurrently, open_objects
from runner.store.result import ProblemResult
from runner.store.result_objects import ResultObjects

TRIES = 50
"""Attempts at one conditional write while others write the same object."""


@dataclass(frozen=True, slots=True)
class CommittedResult:
    """A result that is committed to a store."""

    result: ProblemResult
    text: str
    """Text of its result.json."""
    version: str
    """Version of the object, which a write that supersedes it has to name."""
    prefix: str
    """Prefix of the keys of its files, relative to the store."""

    @property
    def sha256(self) -> str:
        """sha256 of its result.json."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Publication:
    """The outcome of publishing a result."""

    committed: CommittedResult
    differs: tuple[str, ...] = ()
    """How the committed result, of another writer who was first, differs from ours: sentences."""
    sent_bytes: int = 0
    """Bytes of the files that the store did not have yet."""


class RunStore:
    """A store of runs at one address."""

    def __init__(self, address: Address, *, patient: bool = True) -> None:
        self.address = address
        self.objects: Objects = open_objects(address, patient=patient)

    def __str__(self) -> str:
        return self.objects.uri

    # Checks before a run begins.

    def claim(self) -> None:
        """Mark this place as a store, and check that conditional writes work.

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
        self.check_layout()

    def is_new(self) -> bool:
        """Return whether the place is empty, so that the first run makes it a store.

        Raises:
            StoreError: the place holds something else, or does not answer.
        """
        if self._is_marked():
            return False
        # The marker is looked for again: another driver may have written it between the two calls.
        if any(True for _ in self.objects.list_objects("")) and not self._is_marked():
            raise StoreError(f"{self}: holds something else", hint="choose an empty place")
        return True

    def _is_marked(self) -> bool:
        return self.objects.get(key_layout.MARKER) is not None

    def check_layout(self) -> None:
        """Check that this is a store, and that this version can read it.

        Raises:
            StoreError: it is no store, or was made by an older or newer kdrun.
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

    def find_result(self, run_id: str, label: str) -> CommittedResult | None:
        """Return a problem's committed result, or None if it has none that can be read."""
        blob = self.objects.get(key_layout.result_key(run_id, label))
        return None if blob is None else _parse_result(run_id, label, blob)

    def find_results(self, run_id: str, labels: Iterable[str]) -> dict[str, CommittedResult]:
        """Return the committed results of many problems, by label."""
        results = map_concurrently(lambda label: (label, self.find_result(run_id, label)), labels)
        return {label: result for label, result in results if result is not None}

    def labels(self, run_id: str) -> list[str]:
        """Return the labels of the problems of a run that have any object in the store."""
        levels = [level for level in self.objects.folders(f"{run_id}/") if level != key_layout.LOGS]
        return [
            f"{level}/{name}"
            for level in levels
            for name in self.objects.folders(f"{run_id}/{level}/")
        ]

    def result_objects(self, run_id: str, result: ProblemResult) -> ResultObjects:
        """Return the objects that hold a result's files."""
        return ResultObjects(self.objects, key_layout.files_prefix(run_id, result), result.files)

    def damage(self, run_id: str, result: ProblemResult) -> str | None:
        """Return the first file that is missing or differs from its sha256, or None."""
        return self.result_objects(run_id, result).damage()

    def publish(
        self, run_id: str, result: ProblemResult, directory: Path, supersedes: str | None = None
    ) -> Publication:
        """Send a finished decomposition to the store and commit its result.

        `supersedes` is the version of the committed result that this one is to replace. If another
        writer has committed a result meanwhile, that result stays, unless it did not pass and ours
        did.
        """
        sent_bytes = self.result_objects(run_id, result).send(directory)
        return replace(self._commit(run_id, result, supersedes), sent_bytes=sent_bytes)

    def put_log(self, run_id: str, label: str, log: Path) -> int:
        """Store what a problem's process printed, and return its size in bytes."""
        with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
            copy = Path(folder, "log")  # the process may still write to the log
            copy.write_bytes(log.read_bytes())
            digest = hashlib.sha256(copy.read_bytes()).hexdigest()
            self.objects.put(key_layout.log_key(run_id, label), copy, digest)
            return copy.stat().st_size

    def _commit(self, run_id: str, result: ProblemResult, supersedes: str | None) -> Publication:
        key = key_layout.result_key(run_id, result.label)
        data = result.to_json().encode()
        expected = supersedes
        for _ in range(TRIES):
            try:
                version = self.objects.put_if(key, data, expected)
            except Conflict:
                blob = self.objects.get(key)
                expected = blob.version if blob else None
                committed = _parse_result(run_id, result.label, blob) if blob else None
                is_pass = committed is not None and committed.result.status == "passed"
                if committed is None or (result.status == "passed" and not is_pass):
                    _wait()  # Then replace it: a pass replaces what did not pass.
                    continue
                return Publication(committed, differences(result, committed.result))
            blob = Blob(data, version)
            committed = _parse_result(run_id, result.label, blob)
            assert committed is not None
            return Publication(committed)
        raise StoreError(f"{self}/{key}: written by others all the time", hint="submit it again")

    # Runs.

    def update_manifest(
        self,
        run_id: str,
        compose: Callable[[Manifest | None], Manifest],
        known_version: str | None = None,
    ) -> tuple[Manifest, str]:
        """Write a run's manifest, and return it with its new version.

        `compose` gets the stored manifest (None if there is none) and returns the one to write. If
        `known_version` is given and is still the stored version, the caller wrote that manifest
        itself: it is not read, and `compose` gets None.
        """
        key = key_layout.manifest_key(run_id)
        version, theirs = known_version, None
        for attempt in range(TRIES):
            if attempt or known_version is None:
                blob = self.objects.get(key)
                version = blob.version if blob else None
                theirs = self._manifest(key, blob) if blob else None
            manifest = compose(theirs)
            try:
                return manifest, self.objects.put_if(key, manifest.to_json().encode(), version)
            except Conflict:
                _wait()
        raise StoreError(f"{self}/{key}: written by others all the time", hint="submit it again")

    def find_manifest(self, run_id: str) -> Manifest | None:
        """Return a run's manifest, or None if there is no such run.

        Raises:
            StoreError: this version cannot read the manifest.
        """
        key = key_layout.manifest_key(run_id)
        blob = self.objects.get(key)
        return None if blob is None else self._manifest(key, blob)

    def manifest(self, run_id: str) -> Manifest:
        """Return a run's manifest.

        Raises:
            StoreError: the run does not exist, or this version cannot read its manifest.
        """
        manifest = self.find_manifest(run_id)
        if manifest is None:
            last_ids = ", ".join(self.run_ids()[-3:]) or "none"
            raise StoreError(
                f"no run {run_id!r} in {self}", hint=f"the last ones there: {last_ids}"
            )
        return manifest

    def run_ids(self) -> list[str]:
        """Return the ids of all runs, sorted by name."""
        return sorted(self.objects.folders(""))

    def _manifest(self, key: str, blob: Blob) -> Manifest:
        try:
            manifest = Manifest.model_validate_json(blob.data)
            if key_layout.manifest_key(manifest.run_id) != key:
                raise ValueError("a manifest of another run")
            return manifest
        except ValueError as error:  # pydantic's ValidationError is a ValueError
            if is_from_newer_kdrun(_versions(blob.data)):
                raise StoreError(
                    f"{self}/{key}: written by a newer kdrun", hint="upgrade kdrun"
                ) from error
            raise StoreError(
                f"{self}/{key}: not a readable manifest", hint="choose another --run-id"
            ) from error


def _parse_result(run_id: str, label: str, blob: Blob) -> CommittedResult | None:
    try:
        result = ProblemResult.model_validate_json(blob.data)
    except ValidationError:
        return None
    if result.label != label:
        return None
    prefix = key_layout.files_prefix(run_id, result)
    return CommittedResult(result, blob.data.decode(), blob.version, prefix)


def differences(ours: ProblemResult, theirs: ProblemResult) -> tuple[str, ...]:
    """Return the fields and files in which two results of a problem differ, a sentence each."""
    sentences = []
    for name in ("status", "source_sha256", "kdrun_version", "torch_version", "options"):
        our_value, their_value = getattr(ours, name), getattr(theirs, name)
        if our_value != their_value:
            sentences.append(f"{name}: {their_value} stands, not {our_value}")
    if ours.status == theirs.status == "passed":
        names = {
            name
            for name, _ in ours.files.items() ^ theirs.files.items()
            if not name.startswith("verification/")
        }
        sentences.extend(f"{name} differs" for name in sorted(names))
    return tuple(sentences)


def is_from_newer_kdrun(versions: Any) -> bool:
    """Return whether a document's versions name a newer kdrun than this one."""
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
