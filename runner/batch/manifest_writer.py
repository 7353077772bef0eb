"""Keeps a run's rows while it is under way, and writes its manifest.

Writing the manifest takes longer the more problems have ended. While it is quick it is written
after every result; later, writing takes at most a small share of the time, so that the cost of a
result does not grow with the run. If the driver dies, the manifest may lack the latest results; the
results themselves are committed, and the same command finds them. Rows are kept on disk.
"""

import os
import platform
import socket
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from runner import __version__
from runner.batch.cluster import Cluster
from runner.batch.run import Run
from runner.store.manifest import Manifest, RunState
from runner.store.manifest_row import Row
from runner.store.row_files import Rows

SAVING_SHARE = 0.05
"""Share of the time that may be spent on saving."""


@dataclass(slots=True)
class ManifestWriter:
    """The rows of one run, and the writer of its manifest."""

    run: Run
    cluster: Cluster
    labels: Sequence[str]
    """Labels of all problems of the run, in the order of the manifest's rows."""
    rows: Rows = field(init=False)
    ended_count: int = 0
    """Number of problems whose end this driver has recorded."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _other_manifest: Manifest | None = None
    """Latest manifest that another driver of the same run wrote, without its rows."""
    _stored_version: str | None = None
    """Version of the stored manifest that this driver wrote last."""
    _due_s: float = 0.0
    _has_unsaved_rows: bool = False

    def __post_init__(self) -> None:
        self.rows = Rows(self.run.store.run_directory(self.run.run_id), self.labels)

    def add(self, row: Row) -> None:
        """Add the row of a problem that has ended.

        Raises:
            StoreError: the row cannot be written to disk.
        """
        self.rows.put(row)
        self.ended_count += 1
        self._has_unsaved_rows = True

    def save_if_due(self) -> None:
        if self._has_unsaved_rows and time.monotonic() >= self._due_s:
            self.save("running")

    def save(self, state: RunState, forgotten_labels: Collection[str] = ()) -> Manifest:
        """Write the manifest and return it, merged with that of another driver of the same run.

        Another driver's rows about `forgotten_labels` are dropped: those problems are run again.

        Raises:
            StoreError: the manifest cannot be written.
        """
        started_s = time.monotonic()

        def merge_with(other_manifest: Manifest | None) -> Manifest:
            if other_manifest is not None:
                self.rows.merge_rows(other_manifest.rows, forgotten_labels)
                self._other_manifest = other_manifest.model_copy(update={"rows": []})
            return self._build_manifest(state)

        if self.run.shared_store is None:
            manifest = merge_with(None)
        else:
            manifest, self._stored_version = self.run.shared_store.update_manifest(
                self.run.run_id, merge_with, self._stored_version
            )
        self.run.store.write_manifest(manifest)
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
            selected = max(self._other_manifest.selected, selected + self.rows.unselected_count)
            other_cluster = self._other_manifest.cluster
        # Without validation, which would read every row from disk.
        return Manifest.model_construct(
            run_id=self.run.run_id,
            state=state,
            arguments=self.run.settings.model_dump(mode="json"),
            versions={
                "kdrun": __version__,
                "python": platform.python_version(),
                "ray": self.cluster.ray_version,
            },
            cluster=asdict(cluster) if cluster.nodes else other_cluster or asdict(cluster),
            driver_host=socket.gethostname(),
            driver_pid=os.getpid(),
            data=self.run.data,
            started=started,
            updated=now,
            finished=None if state == "running" else now,
            selected=selected,
            counts=dict(self.rows.counts),
            rows=self.rows,
        )
