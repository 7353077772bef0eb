"""This file knows about `manifest.json`: what a run was asked, and how each problem stands."""

import os
import socket
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from runner.statuses import Status
from runner.store.manifest_row import Row, natural
from runner.store.result import Document
from runner.store.row_files import texts

MANIFEST_FILE = "manifest.json"

RunState = Literal["running", "finished", "interrupted"]


class Job(Document):
    """A job of Ray's that drives a run, on a cluster that it was sent to."""

    address: str
    """Of the cluster's dashboard."""
    job_id: str


class Manifest(Document):
    """One `kdrun submit`, rewritten whenever a problem ends."""

    run_id: str
    state: RunState
    arguments: dict[str, Any]
    """The settings as they were resolved from flags, environment and file."""
    versions: dict[str, str]
    cluster: dict[str, Any] = Field(default_factory=dict)
    """Address, nodes, cores and memory as Ray reported them at the start."""
    driver_host: str
    driver_pid: int
    """The process that drives it: a run that is `running` without it was killed."""
    job: Job | None = None
    """That process, where it was sent to a cluster."""
    data: str
    """The directory that the problems came from."""
    started: datetime
    updated: datetime | None = None
    """When its driver had its last word; from elsewhere, a `running` run is judged by it."""
    finished: datetime | None = None
    """Present exactly when the state is not `running`."""
    selected: int
    """How many problems the run is about, those with an earlier result included."""
    counts: dict[Status, int]
    rows: Sequence[Row]

    @model_validator(mode="after")
    def adds_up(self) -> Self:
        if (self.state == "running") == (self.finished is not None):
            raise ValueError(f"{self.state} with finished={self.finished}")
        if self.counts != count(self.rows):
            raise ValueError("counts are not those of the rows")
        if len(self.rows) > self.selected:
            raise ValueError(f"{len(self.rows)} rows for {self.selected} problems")
        return self

    def state_now(self) -> str:
        """`killed` where the driver, on this machine, is gone without having said so."""
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
        """Every selected problem, and at least one."""
        return 0 < self.selected == self.counts.get("passed", 0)

    def pieces(self) -> Iterator[str]:
        """Its JSON, a row at a time."""
        head = self.model_dump_json(indent=1, exclude_none=True, exclude={"rows"})
        yield head.removesuffix("\n}") + ',\n "rows": ['
        between = "\n"
        for text in texts(self.rows):
            yield between + text
            between = ",\n"
        yield "\n ]\n}\n" if self.rows else "]\n}\n"

    def to_json(self) -> str:
        return "".join(self.pieces())


def count(rows: Sequence[Row]) -> dict[Status, int]:
    return dict(Counter(row.status for row in rows))


def merged(
    ours: Manifest, theirs: Manifest, selection: Collection[str], forget: Collection[str] = ()
) -> Manifest:
    """Our manifest of a run, and what another driver of it, now or before, has to say besides.

    A row that we only found is told by who made it; rows of what we do not have yet, or did not
    select, stay, but for the problems in `forget`.
    """
    their_rows = {row.label: row for row in theirs.rows}
    rows = []
    for row in ours.rows:
        made = their_rows.pop(row.label, None)
        rows.append(made if made is not None and row.is_told_by(made) else row)
    rows.extend(row for label, row in sorted(their_rows.items()) if label not in forget)
    outside = sum(row.label not in selection for row in rows)
    return ours.model_copy(
        update={
            "rows": sorted(rows, key=lambda row: natural(row.label)),
            "counts": count(rows),
            "selected": max(theirs.selected, ours.selected + outside),
            "started": min(ours.started, theirs.started),
            "cluster": ours.cluster if ours.cluster.get("nodes") else theirs.cluster,
        }
    )
