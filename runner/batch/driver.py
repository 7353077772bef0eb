"""This file knows about sending problems to Ray, and about what comes back.

One task a problem. It starts with a guess of the memory, and where the captured graph asks for
more, it is sent again with that. Whatever ends a problem is written down, so that a driver that
dies leaves a manifest that is true.
"""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from runner.batch import started_tasks
from runner.batch.attempt import Attempt, clean_up, give_up, stage_of
from runner.batch.child.task import Record
from runner.batch.cluster import Cluster, described, in_short, why_lost
from runner.batch.interrupts import Stop
from runner.batch.job import Job
from runner.batch.manifest_writer import Keeper
from runner.batch.memory_request import NO_BOUND, Needs, threads, too_large
from runner.batch.plan import Item
from runner.batch.run import Run, Watcher
from runner.errors import ClusterError, StoreError
from runner.store.manifest import Manifest, RunState
from runner.store.manifest_row import Cause, Row

MOST_LOST_IN_A_ROW = 4
"""Problems whose worker dies, on nodes that live, before any other answers: then Ray is broken."""
LOOK_S = 0.5
"""How often the stages of what is running are read."""
NODES_S = 10.0
"""How often the nodes are looked at."""
PATIENCE_S = 300.0
"""For a node to come back that alone could hold what waits for it."""
AHEAD = 64
"""Problems that wait at Ray for nodes, so that a cluster that can grow sees what is wanted."""


@dataclass(slots=True)
class Driver:
    """One run over one cluster; `drive()` is all there is to call."""

    run: Run
    items: Sequence[Item]
    cluster: Cluster
    watcher: Watcher
    stop: Stop = field(default_factory=Stop)
    waiting: deque[Job] = field(default_factory=deque)
    flying: dict[Any, Job] = field(default_factory=dict)
    """By Ray's reference."""
    lost: set[str] = field(default_factory=set)
    """Problems that lost a worker since the last answer from any."""
    keeper: Keeper = field(init=False)
    finishing: bool = False
    """Nothing more is started."""
    looked: float = 0.0
    nodes_looked: float = 0.0
    homeless: dict[str, float] = field(default_factory=dict)
    """Since when no node can hold a problem that is waiting at Ray."""

    def __post_init__(self) -> None:
        self.keeper = Keeper(
            self.run.run_id,
            self.run.arguments,
            self.run.data,
            self.run.store,
            self.run.shared,
            self.cluster,
            self.run.job,
            [item.label for item in self.items],
        )

    def drive(self) -> Manifest:
        """Run everything that is to be run; where a person stops it, say what is done.

        Raises:
            ClusterError: Ray itself is broken. What is done is done; the rest is not run.
            StoreError: results cannot be stored. They stay where they were made.
        """
        state: RunState = "finished"
        forget = frozenset(item.label for item in self.items if item.earlier is None)
        try:
            for item in self.items:
                if item.earlier is None:
                    self.waiting.append(Job(item, Needs.of_an_estimate(self._most())))
                else:
                    self._end(self._earlier_row(item))
            self.keeper.save("running", forget)
            self.nodes_looked = time.monotonic()
            while self.waiting or self.flying:
                self._turn()
                if self.stop.asked and not self.finishing:
                    self._finish_what_runs()
            if self.finishing:
                state = "interrupted"
        except KeyboardInterrupt:
            self.stop.now = True
            state = "interrupted"
            self._stop()
        except (ClusterError, StoreError):
            with suppress(StoreError):
                self._stop()
                self.keeper.save("interrupted")
            raise
        return self.keeper.save(state)

    def _turn(self) -> None:
        """Send what can be sent, take in what has ended, and tell how things are."""
        import ray

        while self.waiting and self._may_send():
            self._send(self.waiting.popleft())
        ready, _ = ray.wait(list(self.flying), num_returns=1, timeout=LOOK_S)
        if ready:  # whatever else is there now comes along
            flying = list(self.flying)
            ready, _ = ray.wait(flying, num_returns=len(flying), timeout=0)
        for reference in ready:
            self._receive(self.flying.pop(reference), reference)
        now = time.monotonic()
        if now - self.looked >= LOOK_S:
            self.looked = now
            self._tell()
            self.keeper.save_if_due()
        if now - self.nodes_looked >= NODES_S:
            self._look_at_nodes()

    def _most(self) -> int:
        """Memory that a problem can be given at most."""
        grows = self.run.settings.wait_for_nodes
        return NO_BOUND if grows else self.cluster.node_memory_bytes

    def _may_send(self) -> bool:
        """Guesses go out a few at a time, so that what is sized need not wait behind them."""
        settings = self.run.settings
        if settings.workers is not None and len(self.flying) >= settings.workers:
            return False
        if self.waiting[0].sized:
            return True
        guesses = sum(not job.sized for job in self.flying.values())
        return guesses < max(2 * self.cluster.cores, AHEAD if settings.wait_for_nodes else 1)

    def _send(self, job: Job) -> None:
        cluster, settings = self.cluster, self.run.settings
        granted = job.needs.granted_bytes
        share = threads(cluster.node_cores, cluster.node_memory_bytes, granted)
        task = self.run.task(job.item, granted, self._most(), max(share, int(settings.num_cpus)))
        may_grow = job.needs.can_grow and job.may_repeat("out of memory", settings.retries)
        job.send(task.model_copy(update={"sized": job.sized, "may_grow": may_grow}))
        assert job.task is not None
        remote = _remote().options(
            num_cpus=settings.num_cpus,
            num_gpus=settings.num_gpus,
            memory=granted,
            max_retries=0,
            name="decompose",  # Ray keeps figures for each name
        )
        job.note = f"{self.run.run_id}/{job.item.label}/{job.attempts}/{job.sized}"
        sent = remote.remote(job.note, job.task.model_dump_json(), str(self._log(job)))
        self.flying[sent] = job

    def _receive(self, job: Job, reference: Any) -> None:
        """One attempt has ended: send the next one, or write down the end of its problem."""
        import ray

        try:
            attempt = Attempt.model_validate_json(ray.get(reference))
        except ray.exceptions.TaskCancelledError:  # by us, before it began
            return
        except ray.exceptions.RayError as error:  # a problem's own errors are answers
            job.ended(None)
            self._lost(job, error)
            return
        started_tasks.forget(job.note)
        self.lost.clear()
        job.ended(attempt)
        record = attempt.record
        if record.asks_for_more and record.forecast is not None:
            used, forecast = attempt.peak_memory_bytes or 0, record.forecast
            job.needs = job.needs.of_a_model(forecast.expected_bytes, used, forecast.weights_bytes)
            job.sized = True
            self._again(job)
        elif attempt.result is not None:
            self._finish(job, attempt)
        elif record.out_of_memory and job.needs.can_grow:
            self._repeat(job, "out of memory", record.reason or "", attempt)
        elif record.disk_full:
            self._repeat(job, "disk full", record.reason or "", attempt)
        else:
            self._finish(job, attempt)

    def _lost(self, job: Job, error: BaseException) -> None:
        cause, said = why_lost(error)
        if cause == "worker lost":
            self.lost.add(job.item.label)
            if len(self.lost) >= MOST_LOST_IN_A_ROW:
                raise ClusterError(
                    f"Ray is broken: {len(self.lost)} problems in a row lost their worker, "
                    f"the last by {in_short(error)}",
                    hint="the same command again does what is left",
                )
        else:
            self._look_at_nodes()
        job.node = started_tasks.where(job.note)
        started_tasks.forget(job.note)
        self._repeat(job, cause, said, None)

    def _repeat(self, job: Job, cause: Cause, said: str, attempt: Attempt | None) -> None:
        """Try it again, if the cause's limit lets it be, and if the run goes on."""
        if job.may_repeat(cause, self.run.settings.retries):
            repeat = job.repeat(cause, said, attempt)
            self.watcher.repeated(job.item.label, repeat)
            self._again(job, first=attempt is not None)
            return
        if attempt is None:
            reason = f"{job.why_no_more(cause)}, the last by {said}"
            record = Record(status="crashed", reason=reason, stage="worker")
            attempt = Attempt(record=record, started=job.started)
        self._finish(job, attempt)

    def _again(self, job: Job, *, first: bool = True) -> None:
        """Send it again; after a loss last, since others tell whether it was Ray's fault."""
        if self.finishing:
            return
        if first:
            self.waiting.appendleft(job)
        else:
            self.waiting.append(job)

    def _finish(self, job: Job, attempt: Attempt) -> None:
        """Write down the end of a problem."""
        assert job.task is not None
        if attempt.result is None:
            attempt = give_up(job.task, attempt, self._log(job))
        assert attempt.result is not None
        if attempt.store_error is not None:
            raise StoreError(attempt.store_error)
        num_gpus = self.run.settings.num_gpus
        self._end(
            Row.from_result(
                attempt.result,
                attempts=job.attempts,
                result_sha256=attempt.result_sha256,
                artifact_prefix=attempt.artifact_prefix,
                differs=attempt.differs,
                node=attempt.node,
                requested_memory_bytes=job.needs.granted_bytes,
                repeats=job.repeats,
                upload_s=attempt.upload_s,
                uploaded_bytes=attempt.uploaded_bytes,
                gpu_seconds=round(num_gpus * job.held_s, 3) if num_gpus else None,
            )
        )
        self.keeper.save_if_due()

    def _earlier_row(self, item: Item) -> Row:
        assert item.earlier is not None
        return Row.from_result(
            item.earlier,
            attempts=0,
            result_sha256=item.stored.sha256 if item.stored else item.earlier.sha256,
            artifact_prefix=item.stored.prefix if item.stored else item.label,
            differs=item.differs,
        )

    def _log(self, job: Job) -> Path:
        return self.run.work.log_path(self.run.run_id, job.item.label).absolute()

    def _end(self, row: Row) -> None:
        self.keeper.add(row)
        self.watcher.ended(row, self.keeper.done)

    def _stages(self) -> list[tuple[Any, Job, str]]:
        """What has begun, and where it is."""
        return [
            (reference, job, stage)
            for reference, job in self.flying.items()
            if job.task is not None and (stage := stage_of(job.task))
        ]

    def _tell(self) -> None:
        self.watcher.running([(job.item.label, stage) for _, job, stage in self._stages()])

    def _look_at_nodes(self) -> None:
        """See which nodes there are; what waits at Ray for one that is gone does not for ever."""
        self.nodes_looked = now = time.monotonic()
        self.cluster = there = described(self.cluster.address)
        if self.run.settings.wait_for_nodes:
            return
        homeless = {
            job.item.label: (reference, job)
            for reference, job in self.flying.items()
            if job.needs.granted_bytes > there.node_memory_bytes
            and not started_tasks.where(job.note)
        }
        self.homeless = {label: self.homeless.get(label, now) for label in homeless}
        for label, since in self.homeless.items():
            if now - since >= PATIENCE_S:
                self._evict(*homeless[label])

    def _evict(self, reference: Any, job: Job) -> None:
        """End a problem that waits for a node that does not come."""
        import ray

        ray.cancel(reference)
        del self.flying[reference]
        if not self.cluster.node_memory_bytes:
            raise ClusterError(
                f"Ray at {self.cluster.address}: no node has been there for {PATIENCE_S:.0f} s",
                hint="the same command again does what is left",
            )
        reason = too_large(job.needs.granted_bytes, self.cluster.node_memory_bytes)
        record = Record(status="too_large", reason=f"{reason} now", stage="waiting")
        self._finish(job, Attempt(record=record, started=datetime.now(UTC)))

    def _finish_what_runs(self) -> None:
        """After the first Ctrl-C: what has begun goes on, the rest is not started."""
        import ray

        self.finishing = True
        self.waiting.clear()
        for reference, job in list(self.flying.items()):
            if not started_tasks.where(job.note):
                ray.cancel(reference)
                del self.flying[reference]
        self.watcher.said(f"finishing {len(self.flying)} running; Ctrl-C again stops now")

    def _stop(self) -> None:
        """End what runs, and everything that it started; remove what it left half done."""
        import ray

        stopped = self._stages()
        for reference in self.flying:
            with suppress(ray.exceptions.RayError):
                ray.cancel(reference, force=True)
        if self.flying:
            ray.wait(list(self.flying), num_returns=len(self.flying), timeout=10)
        for job in self.flying.values():
            if job.task is not None:
                clean_up(job.task)
        for _, job, stage in stopped:
            problem = job.item.problem
            self._end(
                Row(
                    problem=problem.name,
                    source_level=problem.source_level,
                    status="cancelled",
                    reason=f"stopped in {stage!r}",
                    attempts=job.attempts,
                    repeats=job.repeats,
                )
            )


@cache
def _remote() -> Any:
    """The remote function; made once, since Ray keeps every one that it is given."""
    import ray

    return ray.remote(started_tasks.perform_noted)
