"""Reads and writes an output directory: decompositions by level and name, runs by id."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from runner.errors import StoreError, unwritable_error
from runner.store.manifest import MANIFEST_FILE, Manifest
from runner.store.result import RESULT_FILE, ProblemResult, first_mismatch

RUNS = "runs"


class DirectoryStore:
    """Reads and writes the results under one output directory.

    `<root>/<source level>/<problem name>/` is a decomposition, `<root>/runs/<run id>/` a run's
    manifest and logs.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def directory(self, label: str) -> Path:
        """Return the directory of a decomposition; its label is such as `level3/vit_block`."""
        return self.root / label

    def run_directory(self, run_id: str) -> Path:
        return self.root / RUNS / run_id

    def log_path(self, run_id: str, label: str) -> Path:
        return self.run_directory(run_id) / "logs" / f"{label}.log"

    def result(self, label: str) -> ProblemResult | None:
        """Return a problem's result, or None if it has none that can be read."""
        return ProblemResult.find(self.directory(label))

    def damage(self, label: str, result: ProblemResult) -> str | None:
        """Return the first file that is missing or differs from its sha256, or None."""
        return first_mismatch(self.directory(label), result.files)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the run's manifest atomically: a reader sees the old one or the new one."""
        write_pieces(self.run_directory(manifest.run_id) / MANIFEST_FILE, manifest.pieces())

    def manifest(self, run_id: str) -> Manifest:
        """Read a run's manifest.

        Raises:
            StoreError: the run does not exist, or this version cannot read its manifest.
        """
        try:
            return read_manifest(self.run_directory(run_id) / MANIFEST_FILE)
        except FileNotFoundError:
            last_ids = ", ".join(self.run_ids()[-3:]) or "none"
            raise StoreError(
                f"no run {run_id!r} in {self.root}", hint=f"the last ones there: {last_ids}"
            ) from None

    def run_ids(self) -> list[str]:
        """Return the ids of the runs that have a manifest, the least recently written first."""
        paths = sorted(
            (self.root / RUNS).glob(f"*/{MANIFEST_FILE}"), key=lambda path: path.stat().st_mtime
        )
        return [path.parent.name for path in paths]


def read_manifest(path: Path) -> Manifest:
    """Read a manifest from its file.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: this version cannot read it.
    """
    try:
        return Manifest.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", hint="may this user read it?") from error
    except (UnicodeDecodeError, ValidationError) as error:
        raise StoreError(f"{path}: not a readable manifest", hint="submit it again") from error


def write_atomically(path: Path, text: str, setting: str = "--output") -> None:
    """Write a file atomically: it appears complete or not at all.

    `setting` is the option that decides the path; the error's hint names it.

    Raises:
        StoreError: the file cannot be written.
    """
    write_pieces(path, [text], setting)


def write_pieces(path: Path, pieces: Iterable[str], setting: str = "--output") -> None:
    """Write a file as `write_atomically` does, from a text that comes in pieces.

    Raises:
        StoreError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):  # a partly written file would only take space on the disk
            temporary.unlink(missing_ok=True)
        raise unwritable_error(path, error, setting) from error


def refuse_unwritable(path: Path, setting: str) -> None:
    """Raise StoreError now if a file cannot be written later; leave the file as it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("ab"):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        raise unwritable_error(path, error, setting) from error


def put_in_place(built: Path, destination: Path) -> None:
    """Move a finished directory to its destination, and delete what was there before.

    Files of the old directory and of the new one never mix.

    Raises:
        StoreError: the destination cannot be written to.
    """
    old = destination.with_name(f".{destination.name}.old")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(old, ignore_errors=True)
        if destination.exists():
            destination.rename(old)
        built.rename(destination)
    except OSError as error:
        raise unwritable_error(destination, error, "--output") from error
    shutil.rmtree(old, ignore_errors=True)


def commit(result: ProblemResult, directory: Path) -> None:
    """Write `result.json`, which marks that all other files of the decomposition are complete."""
    write_atomically(directory / RESULT_FILE, result.to_json())
