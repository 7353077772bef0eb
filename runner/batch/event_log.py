"""This file knows about a run's log for programs: JSON, a line for each thing that happens.

Every line has `time`, `run` and `event`; where it is about a problem, `problem` and `stage`, too.

`said`      something about the whole run, as `text`
`stage`     a problem has come to a stage
`repeated`  an attempt has ended and another will follow: the fields of a row's `repeats`
`ended`     a problem has ended: its row, as the manifest has it
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from runner.errors import unwritable_error
from runner.store.manifest_row import Repeat, Row

LOG_FILE = "log.jsonl"
"""In a run's folder. A driver that goes on with the run goes on with the log."""


class Events:
    """A watcher that writes them down."""

    def __init__(self, stream: TextIO, run_id: str) -> None:
        self.stream = stream
        self.run_id = run_id
        self.stages: dict[str, str] = {}

    def said(self, text: str) -> None:
        self._write("said", text=text)

    def running(self, what: Sequence[tuple[str, str]]) -> None:
        for label, stage in what:
            if self.stages.get(label) != stage:
                self._write("stage", problem=label, stage=stage)
        self.stages = dict(what)

    def repeated(self, label: str, repeat: Repeat) -> None:
        told = repeat.model_dump(mode="json", exclude_none=True)
        self._write("repeated", problem=label, stage=self.stages.get(label), **told)

    def ended(self, row: Row, done: int) -> None:
        told = row.model_dump(mode="json", exclude_none=True, exclude={"problem", "source_level"})
        stage = self.stages.pop(row.label, None)
        self._write("ended", problem=row.label, stage=stage, **told)

    def _write(self, event: str, **fields: Any) -> None:
        head = {"time": datetime.now(UTC).isoformat(), "run": self.run_id, "event": event}
        with suppress(OSError):  # a disk that is full stops the run elsewhere, in one line
            print(json.dumps(head | fields), file=self.stream, flush=True)


def opened(folder: Path) -> TextIO:
    """A run's log, to be added to.

    Raises:
        StoreError: it cannot be written.
    """
    path = folder / LOG_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise unwritable_error(path, error, "--output") from error
