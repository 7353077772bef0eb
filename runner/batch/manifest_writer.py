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

SAVING_SHARE = 0.05
"""Of the time, that may go into saving."""


@dataclass(slots=True)
class ManifestWriter:
    """The rows of one run, and the manifest that says them."""

    run_id: str
    arguments: Mapping[str, Any]
    data: str
    store: DirectoryStore
    shared_store: RunStore | None
    cluster: Cluster
    cluster_job: Job | None
    """This driver, where it was sent to a cluster."""
    labels: Sequence[str]
    """Every problem that the run is about, in the order of the manifest's rows."""
    rows: Rows = field(init=False)
    ended_count: int = 0
    """How many problems have ended here."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _other_manifest: Manifest | None = None
    """What another driver of the same run said last, without its rows."""
    _stored_version: str | None = None
    """Of the manifest in the store, as it was written from here."""
    _due_s: float = 0.0
    _has_unsaved_rows: bool = False

    def __post_init__(self) -> None:
        self.rows = Rows(self.store.run_directory(self.run_id), self.labels)

    def add(self, row: Row) -> None:
        """One more problem has ended.

        Raises:
            StoreError: it cannot be kept.
        """
        self.rows.put(row)
        self.ended_count += 1
        self._has_unsaved_rows = True

    def save_if_due(self) -> None:
        if self._has_unsaved_rows and time.monotonic() >= self._due_s:
            self.save("running")

    def save(self, state: RunState, forgotten_labels: Collection[str] = ()) -> Manifest:
        """Write how the run stands; what another driver of it has to say is in the answer, too.

        Raises:
            StoreError: it cannot be written.
        """
        started_s = time.monotonic()

        def merge_with(other_manifest: Manifest | None) -> Manifest:
            if other_manifest is not None:
                self.rows.hear(other_manifest.rows, forgotten_labels)
                self._other_manifest = other_manifest.model_copy(update={"rows": []})
            return self._build_manifest(state)

        if self.shared_store is None:
            manifest = merge_with(None)
        else:
            manifest, self._stored_version = self.shared_store.update(
                self.run_id, merge_with, self._stored_version
            )
        self.store.write_manifest(manifest)
        ended_s = time.monotonic()
        self._due_s = ended_s + (ended_s - started_s) * (1 / SAVING_SHARE - 1)
        self._has_unsaved_rows = False
        return manifest

    def _build_manifest(self, state: RunState) -> Manifest:
        now = datetime.now(UTC)
        cluster, started, selected = self.cluster, self.started, len(self.labels)
        other_cluster: dict[str, Any] = {}
        if self._other_manifest is not None:
            started = min(started, self._other_manifest.started)
            selected = max(self._other_manifest.selected, selected + self.rows.outside)
            other_cluster = self._other_manifest.cluster
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
            cluster=asdict(cluster) if cluster.nodes else other_cluster or asdict(cluster),
            driver_host=socket.gethostname(),
            driver_pid=os.getpid(),
            job=self.cluster_job,
            data=self.data,
            started=started,
            updated=now,
            finished=None if state == "running" else now,
            selected=selected,
            counts=dict(self.rows.counts),
            rows=self.rows,
        )
