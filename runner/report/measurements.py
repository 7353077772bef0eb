"""Keeps what `kdrun workloads --measure` measured, in a file beside the results that it is of."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from runner import __version__
from runner.errors import StoreError
from runner.report.catalogue import (
    Catalogue,
    Mode,
    Roofs,
    Timing,
    add_times,
)
from runner.store.directory import write_atomically
from runner.store.result import Document
from runner.untrusted_files import read_text

MEASUREMENTS_FILE = "measurements.json"


class MeasuredWorkload(Document):
    """One workload's time, or why it has none."""

    id: str
    """Digest of the workload, as in the catalogue."""
    mode: Mode
    name: str
    timing: Timing | None = None
    untimed: str | None = None


class Measurements(Document):
    """All workloads' times on one device."""

    device: str
    """Name of the device, with the version of torch."""
    measured: datetime
    kdrun_version: str
    roofs: Roofs
    workloads: list[MeasuredWorkload]

    @classmethod
    def of_catalogue(cls, catalogue: Catalogue) -> Self:
        """Return the measurements of a catalogue that was measured."""
        assert catalogue.measured_on is not None
        assert catalogue.roofs is not None
        return cls(
            device=catalogue.measured_on,
            measured=datetime.now(UTC),
            kdrun_version=__version__,
            roofs=catalogue.roofs,
            workloads=[
                MeasuredWorkload(
                    id=row.id, mode=row.mode, name=row.name, timing=row.timing, untimed=row.untimed
                )
                for row in catalogue.workloads
                if row.timing or row.untimed
            ],
        )

    def updated_by(self, newer: Self) -> Self:
        """Return newer measurements, with the older ones of other workloads on the same device."""
        if self.device != newer.device:
            return newer
        measured = {(row.mode, row.id) for row in newer.workloads}
        kept = [row for row in self.workloads if (row.mode, row.id) not in measured]
        return newer.model_copy(update={"workloads": [*newer.workloads, *kept]})


def read_measurements(place: Path) -> Measurements | None:
    """Return the measurements that are kept in a directory; None if there are none.

    Raises:
        StoreError: the file cannot be read.
    """
    path = place / MEASUREMENTS_FILE
    if not path.exists():
        return None
    try:
        return Measurements.model_validate_json(read_text(path))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        hint = "delete it, and measure again with `kdrun workloads --measure`"
        raise StoreError(f"{path}: not readable measurements", hint=hint) from error


def keep_measurements(catalogue: Catalogue, place: Path) -> Path:
    """Write a measured catalogue's times into a directory, and return the file.

    Times of other workloads stay if they are of the same device.

    Raises:
        StoreError: the file cannot be written, or the one that is there cannot be read.
    """
    newer = Measurements.of_catalogue(catalogue)
    older = read_measurements(place)
    kept = older.updated_by(newer) if older else newer
    path = place / MEASUREMENTS_FILE
    write_atomically(path, kept.to_json(), "directory")
    return path


def with_measurements(catalogue: Catalogue, measurements: Measurements) -> Catalogue:
    """Return the catalogue with the kept times, sorted by time; as it was if none is of it."""
    measured = {(row.mode, row.id): row for row in measurements.workloads}
    rows = [
        row.model_copy(update={"timing": found.timing, "untimed": found.untimed})
        if (found := measured.get((row.mode, row.id)))
        else row
        for row in catalogue.workloads
    ]
    if not any(row.timing for row in rows):
        return catalogue
    return add_times(catalogue, rows, measurements.device, measurements.roofs)
