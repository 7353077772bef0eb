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

from runner.errors import unwritable_error
from runner.problems import natural_sort_key
from runner.statuses import Status
from runner.store.manifest_row import Row

RowSpan = tuple[int, int]
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
            raise unwritable_error(folder, error, "--output") from error
        weakref.finalize(self, file.close)
        self._descriptor = file.fileno()
        self._end = 0
        self._spans: dict[str, RowSpan | None] = dict.fromkeys(labels)
        self._own_labels = frozenset(self._spans)
        self._merged_labels: set[str] = set()
        self.counts: Counter[Status] = Counter()

    @property
    def unselected_count(self) -> int:
        """Number of rows of problems that this driver did not select."""
        return len(self._spans.keys() - self._own_labels)

    def put(self, row: Row) -> None:
        """Write a row of our own; it replaces any other row of its problem.

        Raises:
            StoreError: the row cannot be written to the disk.
        """
        self._merged_labels.discard(row.label)
        self._write_row(row)

    def merge_rows(self, theirs: Iterable[Row], forget: Collection[str] = ()) -> None:
        """Take over rows from another driver's manifest, and drop those that it no longer has.

        Rows of problems that we have no row of are taken over, except those in `forget`, which are
        about to be run again. For a problem that we skipped because a result existed, the row of
        the driver that did the work replaces ours.
        """
        earlier_labels, self._merged_labels = self._merged_labels, set()
        for row in theirs:
            our_span = self._spans.get(row.label)
            if our_span is None or row.label in earlier_labels:
                if row.label not in forget:
                    self._merged_labels.add(row.label)
                    self._write_row(row)
            elif self._read_row(our_span).reuses_result_of(row):
                self._write_row(row)
        for label in earlier_labels - self._merged_labels:
            self._remove_row(label)
        self._spans = dict(sorted(self._spans.items(), key=lambda item: natural_sort_key(item[0])))

    def texts(self) -> Iterator[str]:
        """Yield each row's text as it is in a manifest, in order."""
        for span in self._spans.values():
            if span is not None:
                yield self._read_text(span)

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

    def _write_row(self, row: Row) -> None:
        text = row.text()
        earlier_span = self._spans.get(row.label)
        if earlier_span is not None and self._read_text(earlier_span) == text:
            return
        data = text.encode()
        try:
            written_bytes = 0
            while written_bytes < len(data):
                written_bytes += os.pwrite(
                    self._descriptor, data[written_bytes:], self._end + written_bytes
                )
        except OSError as error:
            raise unwritable_error(self._folder, error, "--output") from error
        self._remove_row(row.label)
        self._spans[row.label] = (self._end, len(data))
        self._end += len(data)
        self.counts[row.status] += 1

    def _remove_row(self, label: str) -> None:
        span = self._spans.get(label)
        if span is not None:
            self.counts = self.counts - Counter([self._read_row(span).status])
        if label in self._own_labels:
            self._spans[label] = None
        else:
            self._spans.pop(label, None)

    def _read_row(self, span: RowSpan) -> Row:
        return Row.model_validate_json(self._read_text(span))

    def _read_text(self, span: RowSpan) -> str:
        offset, length = span
        return os.pread(self._descriptor, length, offset).decode()
