"""This file knows about the manifest of a run under way: what it says, and when it is saved.

Writing it takes longer the more problems have ended. So it is written at once as long as that is
quick, and later at most a small share of the time goes into it: what a result costs the driver
does not grow with the run. A driver that dies leaves it that much behind; the results themselves
are committed, and the same command finds them. What it keeps of them meanwhile is on disk.
"""

import os
import platform
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from runner import __version__
from runner.batch.cluster import Cluster
from runner.store.directory import DirectoryStore
from runner.store.manifest import Job, Manifest, RunState
from runner.store.manifest_row import Row
from runner.store.row_files import Rows
from runner.store.runs import RunStore

SHARE = 0.05
"""Of the time, that may go into saving."""


@dataclass(slots=True)
class Keeper:
    """The rows of one run, and the manifest that says them."""

    run_id: str
    arguments: Mapping[str, Any]
    data: str
    store: DirectoryStore
    shared: RunStore | None
    cluster: Cluster
    job: Job | None
    """This driver, where it was sent to a cluster."""
    labels: Sequence[str]
    """Every problem that the run is about, in the order of the manifest's rows."""
    rows: Rows = field(init=False)
    done: int = 0
    """How many problems have ended here."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _theirs: Manifest | None = None
    """What another driver of the same run said last, without its rows."""
    _version: str | None = None
    """Of the manifest in the store, as it was written from here."""
    _due: float = 0.0
    _behind: bool = False

    def __post_init__(self) -> None:
        self.rows = Rows(self.store.run_directory(self.run_id), self.labels)

    def add(self, row: Row) -> None:
        """One more problem has ended.

        Raises:
            StoreError: it cannot be kept.
        """
        self.rows.put(row)
        self.done += 1
        self._behind = True

    def save_if_due(self) -> None:
        if self._behind and time.monotonic() >= self._due:
            self.save("running")

    def save(self, state: RunState, forget: Collection[str] = ()) -> Manifest:
        """Write how the run stands; what another driver of it has to say is in the answer, too.

        Raises:
            StoreError: it cannot be written.
        """
        began = time.monotonic()

        def whole(theirs: Manifest | None) -> Manifest:
            if theirs is not None:
                self.rows.merge_rows(theirs.rows, forget)
                self._theirs = theirs.model_copy(update={"rows": []})
            return self._manifest(state)

        if self.shared is None:
            manifest = whole(None)
        else:
            manifest, self._version = self.shared.update_manifest(self.run_id, whole, self._version)
        self.store.write_manifest(manifest)
        ended = time.monotonic()
        self._due = ended + (ended - began) * (1 / SHARE - 1)
        self._behind = False
        return manifest

    def _manifest(self, state: RunState) -> Manifest:
        now = datetime.now(UTC)
        cluster, started, selected = self.cluster, self.started, len(self.labels)
        others: dict[str, Any] = {}
        if self._theirs is not None:
            started = min(started, self._theirs.started)
            selected = max(self._theirs.selected, selected + self.rows.unselected_count)
            others = self._theirs.cluster
        # Not validated, which would read every row.
        return Manifest.model_construct(
            run_id=self.run_id,
            state=state,
            arguments=dict(self.arguments),
            versions={
                "kdrun": __version__,
                "python": platform.python_version(),
                "ray": self.cluster.ray_version,
            },
            cluster=asdict(cluster) if cluster.nodes else others or asdict(cluster),
            driver_host=socket.gethostname(),
            driver_pid=os.getpid(),
            job=self.job,
            data=self.data,
            started=started,
            updated=now,
            finished=None if state == "running" else now,
            selected=selected,
            counts=dict(self.rows.counts),
            rows=self.rows,
        )
