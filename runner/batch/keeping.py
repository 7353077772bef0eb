"""This file knows about the manifest of a run that is under way: its rows, and when they are saved.

Writing it takes longer the more problems have ended. So it is written at once as long as that is
quick, and later at most a small share of the time goes into it: what a result costs the driver
does not grow with the run. A driver that dies leaves it that much behind; the results themselves
are committed, and the same command finds them.
"""

import os
import platform
import socket
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from runner import __version__
from runner.batch.cluster import Cluster
from runner.store.directory import DirectoryStore
from runner.store.manifest import Job, Manifest, Row, RunState
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
    rows: list[Row] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _due: float = 0.0
    _behind: bool = False

    def add(self, row: Row) -> None:
        """One more problem has ended."""
        self.rows.append(row)
        self.counts[row.status] += 1
        self._behind = True

    def save_if_due(self) -> None:
        if self._behind and time.monotonic() >= self._due:
            self.save("running")

    def save(self, state: RunState, forget: Collection[str] = ()) -> Manifest:
        """Write how the run stands; what another driver of it has to say is in the answer.

        Raises:
            StoreError: it cannot be written.
        """
        began = time.monotonic()
        order = {label: n for n, label in enumerate(self.labels)}
        now = datetime.now(UTC)
        manifest = Manifest(
            run_id=self.run_id,
            state=state,
            arguments=dict(self.arguments),
            versions={
                "kdrun": __version__,
                "python": platform.python_version(),
                "ray": self.cluster.ray_version,
            },
            cluster=asdict(self.cluster),
            driver_host=socket.gethostname(),
            driver_pid=os.getpid(),
            job=self.job,
            data=self.data,
            started=self.started,
            updated=now,
            finished=None if state == "running" else now,
            selected=len(self.labels),
            counts=dict(self.counts),  # type: ignore[arg-type]
            rows=sorted(self.rows, key=lambda row: order[row.label]),
        )
        if self.shared is not None:
            manifest = self.shared.save(manifest, order, forget)
        self.store.write_manifest(manifest)
        ended = time.monotonic()
        self._due = ended + (ended - began) * (1 / SHARE - 1)
        self._behind = False
        return manifest
