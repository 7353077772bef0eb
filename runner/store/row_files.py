"""Keeps the rows of a running run on disk, as the JSON text that the manifest holds.

Only each row's offset and length stay in memory. So a driver needs no more memory at the end of ten
thousand problems than at their beginning, and writing a manifest is copying text.
"""

import os
import tempfile
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

from runner.errors import unwritable
from runner.statuses import Status
from runner.store.manifest_row import Row, natural

Place = tuple[int, int]
"""Offset of a row in the file, and its length, in bytes."""


class Rows(Sequence[Row]):
    """The rows of one driver, and rows that another driver of the same run wrote."""

    def __init__(self, folder: Path, labels: Iterable[str]) -> None:
        """Create the file in `folder`; `labels` are the driver's own problems, in the rows' order.

        Raises:
            StoreError: the folder cannot be written to.
        """
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (closed below)
        except OSError as error:
            raise unwritable(folder, error, "--output") from error
        weakref.finalize(self, file.close)
        self._descriptor = file.fileno()
        self._end = 0
        self._places: dict[str, Place | None] = dict.fromkeys(labels)
        self._ours = frozenset(self._places)
        self._heard: set[str] = set()
        self.counts: Counter[Status] = Counter()

    @property
    def outside(self) -> int:
        """Number of rows of problems that this driver did not select."""
        return len(self._places.keys() - self._ours)

    def put(self, row: Row) -> None:
        """Write a row of our own; it replaces any other row of its problem.

        Raises:
            StoreError: the row cannot be written to the disk.
        """
        self._heard.discard(row.label)
        self._write(row)

    def hear(self, theirs: Iterable[Row], forget: Collection[str] = ()) -> None:
        """Take over rows from another driver's manifest, and drop those that it no longer has.

        Rows of problems that we have no row of are taken over, except those in `forget`, which are
        about to be run again. For a problem that we skipped because a result existed, the row of
        the driver that did the work replaces ours.
        """
        before, self._heard = self._heard, set()
        for row in theirs:
            mine = self._places.get(row.label)
            if mine is None or row.label in before:
                if row.label not in forget:
                    self._heard.add(row.label)
                    self._write(row)
            elif self._read(mine).is_told_by(row):
                self._write(row)
        for label in before - self._heard:
            self._drop(label)
        self._places = dict(sorted(self._places.items(), key=lambda item: natural(item[0])))

    def texts(self) -> Iterator[str]:
        """Yield each row's text as it is in a manifest, in order."""
        for place in self._places.values():
            if place is not None:
                yield self._text(place)

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[Row]:
        return map(Row.model_validate_json, self.texts())

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return list(self)[index]

    def _write(self, row: Row) -> None:
        text = row.text()
        before = self._places.get(row.label)
        if before is not None and self._text(before) == text:
            return
        data = text.encode()
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._descriptor, data[written:], self._end + written)
        except OSError as error:
            raise unwritable(self._folder, error, "--output") from error
        self._drop(row.label)
        self._places[row.label] = (self._end, len(data))
        self._end += len(data)
        self.counts[row.status] += 1

    def _drop(self, label: str) -> None:
        place = self._places.get(label)
        if place is not None:
            self.counts = self.counts - Counter([self._read(place).status])
        if label in self._ours:
            self._places[label] = None
        else:
            self._places.pop(label, None)

    def _read(self, place: Place) -> Row:
        return Row.model_validate_json(self._text(place))

    def _text(self, place: Place) -> str:
        begin, length = place
        return os.pread(self._descriptor, length, begin).decode()


def texts(rows: Sequence[Row]) -> Iterator[str]:
    """Return an iterator over each row's text as it is in a manifest."""
    return rows.texts() if isinstance(rows, Rows) else (row.text() for row in rows)
