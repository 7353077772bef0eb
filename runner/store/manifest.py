"""Defines `manifest.json`: a run's settings and state, and a row for each ended problem."""

import os
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from runner.statuses import Status
from runner.store.manifest_row import Row
from runner.store.result import Document
from runner.store.row_files import Rows

MANIFEST_FILE = "manifest.json"

RunState = Literal["running", "finished", "interrupted"]


class Manifest(Document):
    """Describes one `kdrun submit`; rewritten as its problems end."""

    run_id: str
    state: RunState
    arguments: dict[str, Any]
    """The settings, as resolved from flags, environment and settings file."""
    versions: dict[str, str]
    cluster: dict[str, Any] = Field(default_factory=dict)
    """Address, nodes, cores and memory as Ray reported them at the start."""
    driver_host: str
    driver_pid: int
    """Process that drives the run; if it is gone and the state is `running`, it was killed."""
    data: str
    """Directory that the problems were read from."""
    started: datetime
    updated: datetime | None = None
    """Time of the driver's last update; from another machine only this shows whether it lives."""
    finished: datetime | None = None
    """Present exactly when the state is not `running`."""
    selected: int
    """Number of problems that the run selected, those with an earlier result included."""
    counts: dict[Status, int]
    rows: Sequence[Row]

    @model_validator(mode="after")
    def check_counts(self) -> Self:
        if (self.state == "running") == (self.finished is not None):
            raise ValueError(f"{self.state} with finished={self.finished}")
        if self.counts != count(self.rows):
            raise ValueError("counts are not those of the rows")
        if len(self.rows) > self.selected:
            raise ValueError(f"{len(self.rows)} rows for {self.selected} problems")
        return self

    def state_now(self) -> str:
        """Return the state; `killed` instead of `running` if a driver on this machine is gone."""
        if self.state == "running" and self.driver_host == socket.gethostname():
            try:
                os.kill(self.driver_pid, 0)
            except ProcessLookupError:
                return "killed"
            except PermissionError:
                pass
        return self.state

    @property
    def all_passed(self) -> bool:
        """Whether every selected problem passed, and at least one was selected."""
        return 0 < self.selected == self.counts.get("passed", 0)

    def pieces(self) -> Iterator[str]:
        """Yield the manifest's JSON in pieces, one for each row."""
        head = self.model_dump_json(indent=1, exclude_none=True, exclude={"rows"})
        yield head.removesuffix("\n}") + ',\n "rows": ['
        between = "\n"
        texts = self.rows.texts() if isinstance(self.rows, Rows) else map(Row.text, self.rows)
        for text in texts:
            yield between + text
            between = ",\n"
        yield "\n ]\n}\n" if self.rows else "]\n}\n"

    def to_json(self) -> str:
        return "".join(self.pieces())


def count(rows: Sequence[Row]) -> dict[Status, int]:
    return dict(Counter(row.status for row in rows))
