"""Writes a run's log for programs: one line of JSON for each event.

Every line has `time`, `run` and `event`; a line about a problem also has `problem` and `stage`.

`said`      a message about the whole run, as `text`
`stage`     a problem has reached a stage
`repeated`  an attempt has ended and another will follow: the fields of a row's `repeats`
`ended`     a problem has ended: the fields of its row in the manifest
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from runner.batch.run import Watcher
from runner.errors import unwritable_error
from runner.store.manifest_row import Repeat, Row

LOG_FILE = "log.jsonl"
"""Log file in a run's folder. A driver that resumes a run appends to it."""


class EventLog(Watcher):
    """A watcher that writes each event to a stream."""

    def __init__(self, stream: TextIO, run_id: str) -> None:
        self.stream = stream
        self.run_id = run_id
        self.stages: dict[str, str] = {}

    def on_message(self, text: str) -> None:
        self._write("said", text=text)

    def on_stages(self, stages: Sequence[tuple[str, str]]) -> None:
        for label, stage in stages:
            if self.stages.get(label) != stage:
                self._write("stage", problem=label, stage=stage)
        self.stages = dict(stages)

    def on_retry(self, label: str, repeat: Repeat) -> None:
        fields = repeat.model_dump(mode="json", exclude_none=True)
        self._write("repeated", problem=label, stage=self.stages.get(label), **fields)

    def on_problem_end(self, row: Row, ended_count: int) -> None:
        fields = row.model_dump(mode="json", exclude_none=True, exclude={"problem", "source_level"})
        stage = self.stages.pop(row.label, None)
        self._write("ended", problem=row.label, stage=stage, **fields)

    def _write(self, event: str, **fields: Any) -> None:
        head = {"time": datetime.now(UTC).isoformat(), "run": self.run_id, "event": event}
        with suppress(OSError):  # A full disk is reported elsewhere, in one line.
            print(json.dumps(head | fields), file=self.stream, flush=True)


@contextmanager
def open_log(folder: Path) -> Iterator[TextIO]:
    """Open a run's log for appending, and close it at the end.

    Raises:
        StoreError: the log cannot be written.
    """
    path = folder / LOG_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = path.open("a", encoding="utf-8")
    except OSError as error:
        raise unwritable_error(path, error, "--output") from error
    try:
        yield log
    finally:
        with suppress(OSError):  # Lines that a full disk did not take are written once more here.
            log.close()
