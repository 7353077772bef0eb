"""Copies a run's decompositions from a store into a directory.

Each problem is fetched into a temporary directory, checked file by file, and then moved to its
place. Files that were fetched before an interruption are not fetched again.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.errors import StoreError, is_full, unwritable
from runner.store import key_layout
from runner.store.directory import DirectoryStore, put_in_place, write_atomically
from runner.store.key_layout import unsafe
from runner.store.manifest import Manifest
from runner.store.manifest_row import Row
from runner.store.objects import each
from runner.store.result import RESULT_FILE, first_mismatch, sha256_of
from runner.store.result_objects import beside
from runner.store.runs import RunStore, Standing

PROBLEMS_AT_ONCE = 8

State = Literal["pulled", "there", "missing", "corrupt", "refused"]
"""How pulling one problem ended:

pulled    its files were fetched
there     it was in the destination already, and every file is right
missing   the store lacks a file that result.json lists, or a result that the manifest lists
corrupt   a file in the store differs from its sha256 in result.json
refused   a name would lead out of the destination, or other files are in the way"""


@dataclass(frozen=True, slots=True)
class Pulled:
    """Describes how pulling one problem ended."""

    label: str
    state: State
    what: str = ""
    """The file at fault or the reason, in a few words; empty if nothing is wrong."""

    @property
    def well(self) -> bool:
        return self.state in ("pulled", "there")


def pull(
    store: RunStore,
    manifest: Manifest,
    destination: Path,
    wanted: Callable[[str], bool],
    tell: Callable[[Pulled], None],
) -> list[Pulled]:
    """Copy the problems of a run whose labels `is_selected` accepts, and the run's manifest.

    `report` is called with the outcome of each problem as it ends.

    Raises:
        StoreError: the store does not answer, or the destination cannot be written to.
    """
    rows = {row.label: row for row in manifest.rows if row.result_sha256 is not None}
    labels = sorted({*rows, *store.labels(manifest.run_id)})

    def one(label: str) -> Pulled | None:
        pulled = _pull_one(store, manifest.run_id, label, rows.get(label), destination)
        if pulled is not None:
            tell(pulled)
        return pulled

    try:
        done = each(one, [label for label in labels if wanted(label)], PROBLEMS_AT_ONCE)
        if any(done):
            DirectoryStore(destination).write_manifest(manifest)
    except OSError as error:
        cause = error.__cause__ if isinstance(error, StoreError) else error
        if not isinstance(cause, OSError) or (isinstance(error, StoreError) and not is_full(cause)):
            raise
        raise unwritable(destination, cause, "DEST") from error
    return [pulled for pulled in done if pulled is not None]


def _pull_one(
    store: RunStore, run_id: str, label: str, row: Row | None, destination: Path
) -> Pulled | None:
    """Return None if the problem has no committed result and the manifest lists none."""
    if unsafe(label):
        return Pulled(label, "refused", "its name would leave the destination")
    standing = store.standing(run_id, label)
    if standing is None:
        if store.objects.get(key_layout.result_key(run_id, label)) is not None:
            return Pulled(label, "corrupt", RESULT_FILE)
        return Pulled(label, "missing", RESULT_FILE) if row else None
    for name in standing.result.files:
        if unsafe(name) or name == RESULT_FILE:
            return Pulled(label, "refused", f"{name!r} would leave the destination")
    place = destination / label
    if _is_there(place, standing):
        return Pulled(label, "there")
    if place.exists() and not (place / RESULT_FILE).is_file():
        return Pulled(label, "refused", f"{place} holds something else")
    # The temporary directory is named after the result: files that an interrupted pull of another
    # result left behind must not get into this one.
    aside = place.with_name(f".{place.name}.{standing.sha256[:8]}.pulling")
    loss = store.contents(run_id, standing.result).fetch(aside)
    beside(aside).unlink(missing_ok=True)
    if loss is not None:
        shutil.rmtree(aside, ignore_errors=True)
        return Pulled(label, *loss)
    write_atomically(aside / RESULT_FILE, standing.text)
    put_in_place(aside, place)
    return Pulled(label, "pulled")


def _is_there(place: Path, standing: Standing) -> bool:
    result = place / RESULT_FILE
    return (
        result.is_file()
        and sha256_of(result) == standing.sha256
        and first_mismatch(place, standing.result.files) is None
    )
