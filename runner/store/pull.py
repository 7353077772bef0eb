"""Copies a run's decompositions from a store into a directory.

Each problem is fetched into a temporary directory, checked file by file, and then moved to its
place. Files that were fetched before an interruption are not fetched again.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.errors import StoreError, is_disk_full, unwritable_error
from runner.store import key_layout
from runner.store.directory import DirectoryStore, put_in_place, write_atomically
from runner.store.key_layout import is_unsafe_name
from runner.store.manifest import Manifest
from runner.store.manifest_row import Row
from runner.store.objects import map_concurrently
from runner.store.result import RESULT_FILE, first_mismatch, sha256_of
from runner.store.result_objects import pack_path
from runner.store.runs import CommittedResult, RunStore

PROBLEMS_AT_ONCE = 8

State = Literal["pulled", "there", "missing", "corrupt", "refused"]
"""How pulling one problem ended:

pulled    its files were fetched
there     it was in the destination already, and every file is right
missing   the store lacks a file that result.json lists, or a result that the manifest lists
corrupt   a file in the store differs from its sha256 in result.json
refused   a name would lead out of the destination, or other files are in the way"""


@dataclass(frozen=True, slots=True)
class PullOutcome:
    """Describes how pulling one problem ended."""

    label: str
    state: State
    detail: str = ""
    """The file at fault or the reason, in a few words; empty if nothing is wrong."""

    @property
    def is_present(self) -> bool:
        return self.state in ("pulled", "there")


def pull(
    store: RunStore,
    manifest: Manifest,
    destination: Path,
    is_selected: Callable[[str], bool],
    report: Callable[[PullOutcome], None],
) -> list[PullOutcome]:
    """Copy the problems of a run whose labels `is_selected` accepts, and the run's manifest.

    `report` is called with the outcome of each problem as it ends.

    Raises:
        StoreError: the store does not answer, or the destination cannot be written to.
    """
    rows = {row.label: row for row in manifest.rows if row.result_sha256 is not None}
    labels = sorted({*rows, *store.labels(manifest.run_id)})

    def pull_and_report(label: str) -> PullOutcome | None:
        outcome = _pull_one(store, manifest.run_id, label, rows.get(label), destination)
        if outcome is not None:
            report(outcome)
        return outcome

    try:
        outcomes = map_concurrently(
            pull_and_report, [label for label in labels if is_selected(label)], PROBLEMS_AT_ONCE
        )
        if any(outcomes):
            DirectoryStore(destination).write_manifest(manifest)
    except OSError as error:
        cause = error.__cause__ if isinstance(error, StoreError) else error
        if not isinstance(cause, OSError) or (
            isinstance(error, StoreError) and not is_disk_full(cause)
        ):
            raise
        raise unwritable_error(destination, cause, "DEST") from error
    return [outcome for outcome in outcomes if outcome is not None]


def _pull_one(
    store: RunStore, run_id: str, label: str, row: Row | None, destination: Path
) -> PullOutcome | None:
    """Pull one problem; return None if it has no result in the store, nor in the manifest."""
    if is_unsafe_name(label):
        return PullOutcome(label, "refused", "its name would leave the destination")
    committed = store.find_result(run_id, label)
    if committed is None:
        if store.objects.get(key_layout.result_key(run_id, label)) is not None:
            return PullOutcome(label, "corrupt", RESULT_FILE)
        return PullOutcome(label, "missing", RESULT_FILE) if row else None
    for name in committed.result.files:
        if is_unsafe_name(name) or name == RESULT_FILE:
            return PullOutcome(label, "refused", f"{name!r} would leave the destination")
    target = destination / label
    if _is_there(target, committed):
        return PullOutcome(label, "there")
    if target.exists() and not (target / RESULT_FILE).is_file():
        return PullOutcome(label, "refused", f"{target} holds something else")
    # The temporary directory is named after the result: files that an interrupted pull of another
    # result left behind must not get into this one.
    temporary = target.with_name(f".{target.name}.{committed.sha256[:8]}.pulling")
    damage = store.result_objects(run_id, committed.result).fetch(temporary)
    pack_path(temporary).unlink(missing_ok=True)
    if damage is not None:
        shutil.rmtree(temporary, ignore_errors=True)
        return PullOutcome(label, *damage)
    write_atomically(temporary / RESULT_FILE, committed.text)
    put_in_place(temporary, target)
    return PullOutcome(label, "pulled")


def _is_there(directory: Path, committed: CommittedResult) -> bool:
    result = directory / RESULT_FILE
    return (
        result.is_file()
        and sha256_of(result) == committed.sha256
        and first_mismatch(directory, committed.result.files) is None
    )
