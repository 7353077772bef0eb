"""This file knows about an output directory: decompositions by level and name, runs by id."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from runner.errors import StoreError, unwritable
from runner.store.manifest import MANIFEST_FILE, Manifest
from runner.store.result import RESULT_FILE, ProblemResult, first_mismatch

RUNS = "runs"


class DirectoryStore:
    """Results under one directory.

    `<root>/<source level>/<problem name>/` is a decomposition, `<root>/runs/<run id>/` a run's
    manifest and logs.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def directory(self, label: str) -> Path:
        """Where the decomposition of `level3/vit_block` is."""
        return self.root / label

    def run_directory(self, run_id: str) -> Path:
        return self.root / RUNS / run_id

    def log_path(self, run_id: str, label: str) -> Path:
        return self.run_directory(run_id) / "logs" / f"{label}.log"

    def result(self, label: str) -> ProblemResult | None:
        """The result that stands there, or None where there is none that can be read."""
        try:
            return ProblemResult.read(self.directory(label))
        except StoreError:
            return None

    def damage(self, label: str, result: ProblemResult) -> str | None:
        """The first file that is not what the result says, or None."""
        return first_mismatch(self.directory(label), result.files)

    def write_manifest(self, manifest: Manifest) -> Path:
        """Replace the run's manifest in one move: a reader sees the old one or the new one."""
        path = self.run_directory(manifest.run_id) / MANIFEST_FILE
        write_pieces(path, manifest.pieces())
        return path

    def manifest(self, run_id: str) -> Manifest:
        """Read a run's manifest.

        Raises:
            StoreError: no such run, or a manifest that this version does not understand.
        """
        path = self.run_directory(run_id) / MANIFEST_FILE
        try:
            return Manifest.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            known = ", ".join(self.run_ids()[-3:]) or "none"
            raise StoreError(
                f"no run {run_id!r} in {self.root}", hint=f"the last ones there: {known}"
            ) from None
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}", hint="may this user read it?") from error
        except (UnicodeDecodeError, ValidationError) as error:
            raise StoreError(f"{path}: not a readable manifest", hint="submit it again") from error

    def run_ids(self) -> list[str]:
        """Ids of the runs that have a manifest, oldest first."""
        found = sorted(
            (self.root / RUNS).glob(f"*/{MANIFEST_FILE}"), key=lambda path: path.stat().st_mtime
        )
        return [path.parent.name for path in found]


def write_atomically(path: Path, text: str, setting: str = "--output") -> None:
    """Write a whole file or nothing; `setting` names what decides where it goes.

    Raises:
        StoreError: the place cannot be written to.
    """
    write_pieces(path, [text], setting)


def write_pieces(path: Path, pieces: Iterable[str], setting: str = "--output") -> None:
    """Do the same for a text that comes piece by piece.

    Raises:
        StoreError: the place cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):  # half of it takes space that is wanted
            temporary.unlink(missing_ok=True)
        raise unwritable(path, error, setting) from error


def put_in_place(built: Path, destination: Path) -> None:
    """Make a finished directory take the place of whatever stands there; the two never mix.

    Raises:
        StoreError: the place cannot be written to.
    """
    old = destination.with_name(f".{destination.name}.old")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(old, ignore_errors=True)
        if destination.exists():
            destination.rename(old)
        built.rename(destination)
    except OSError as error:
        raise unwritable(destination, error, "--output") from error
    shutil.rmtree(old, ignore_errors=True)


def commit(result: ProblemResult, directory: Path) -> None:
    """Write `result.json`, the mark that says: everything else is there."""
    write_atomically(directory / RESULT_FILE, result.to_json())
