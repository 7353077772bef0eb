"""This file knows about sending problems to Ray, and about what comes back.

For each problem first an estimate, then, with the memory that it says, the decomposition. Whatever
ends a problem is written down at once, so that a driver that dies leaves a manifest that is true.
"""

import os
import platform
import socket
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from runner import __version__
from runner.batch.attempt import Attempt, Kind, clean_up, give_up, perform, stage_of
from runner.batch.cluster import Cluster
from runner.batch.plan import Item, Needs, threads
from runner.batch.work import Record, Target, Task
from runner.errors import ClusterError, StoreError
from runner.store.directory import DirectoryStore
from runner.store.manifest import Job, Manifest, Repeat, Row, RunState, count
from runner.store.result import RunOptions
from runner.store.runs import RunStore

MOST_LOSSES = 3
"""Workers that a problem may lose, as when a node goes away, before it is given up."""
MOST_LOST_IN_A_ROW = 4
"""Problems that may lose a worker before any other answers: then it is Ray that is broken."""
LOOK_S = 0.5
"""How often the stages of what is running are read."""


class Watcher(Protocol):
    """Who is told how a run goes."""

    def running(self, what: Sequence[tuple[str, str]]) -> None:
        """Label and stage of every problem that is being worked on."""

    def ended(self, row: Row, done: int) -> None:
        """One more problem has ended; `done` have in all."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is about."""

    run_id: str
    store: DirectoryStore
    options: RunOptions
    data: str
    arguments: dict[str, Any]
    timeout_s: float
    num_gpus: float = 0
    workers: int | None = None
    shared: RunStore | None = None
    """Where results go from the output directory."""
    elsewhere: bool = False
    """Machines that we know nothing about do the work: problems travel with their tasks."""
    aside: Path | None = None
    """Where they build what then goes to the store; None: in the output directory."""
    job: Job | None = None
    """This driver, where it was sent to a cluster."""

    @property
    def work(self) -> DirectoryStore:
        """Where problems are worked on."""
        return self.store if self.aside is None else DirectoryStore(self.aside)

    def task(self, item: Item, memory_bytes: int, most_bytes: int, threads: int) -> Task:
        """The problem as a worker is told it."""
        directory = self.work.directory(item.label)
        return Task(
            problem=item.problem.path,
            source=_bytes(item.problem.path) if self.elsewhere else None,
            label=item.label,
            directory=directory.absolute(),
            scratch=(directory.parent / f".{directory.name}.{self.run_id}").absolute(),
            options=self.options,
            memory_bytes=memory_bytes,
            most_memory_bytes=most_bytes,
            threads=threads,
            timeout_s=self.timeout_s,
            target=self._target(item),
        )

    def _target(self, item: Item) -> Target | None:
        if self.shared is None:
            return None
        version = item.stored.version if item.stored else None
        return Target(
            address=self.shared.address,
            run_id=self.run_id,
            supersedes=version,
            moved=self.aside is not None,
        )


@dataclass(slots=True)
class _Job:
    """One problem on its way."""

    item: Item
    needs: Needs
    kind: Kind = "estimate"
    attempts: int = 0
    losses: int = 0
    repeats: list[Repeat] = field(default_factory=list)
    task: Task | None = None

    def repeat(self, cause: Literal["worker lost", "out of memory"], said: str) -> None:
        """Note that the attempt does not count, before another is made."""
        granted = self.needs.granted_bytes
        self.repeats.append(Repeat(cause=cause, said=said, requested_memory_bytes=granted))


@dataclass(slots=True)
class Driver:
    """One run over one cluster; `drive()` is all there is to call."""

    run: Run
    items: Sequence[Item]
    cluster: Cluster
    watcher: Watcher
    rows: list[Row] = field(default_factory=list)
    waiting: deque[_Job] = field(default_factory=deque)
    flying: dict[Any, _Job] = field(default_factory=dict)
    """By Ray's reference."""
    lost: set[str] = field(default_factory=set)
    """Problems that lost a worker since the last answer from any."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def drive(self) -> Manifest:
        """Run everything that is to be run; on Ctrl-C stop what runs, and say what is done.

        Raises:
            ClusterError: Ray itself is broken. What is done is done; the rest is not run.
            StoreError: results cannot be stored. They stay where they were made.
        """
        state: RunState = "finished"
        most = self.cluster.node_memory_bytes
        forget = frozenset(item.label for item in self.items if item.earlier is None)
        try:
            for item in self.items:
                if item.earlier is None:
                    self.waiting.append(_Job(item, Needs.of_an_estimate(most)))
                else:
                    self._end(self._earlier_row(item))
            self._save("running", forget)
            if self.waiting:
                import ray
            while self.waiting or self.flying:
                while self.waiting and self._may_send():
                    self._send(self.waiting.popleft())
                ready, _ = ray.wait(list(self.flying), num_returns=1, timeout=LOOK_S)
                for reference in ready:
                    self._receive(self.flying.pop(reference), reference)
                self._tell()
        except KeyboardInterrupt:
            state = "interrupted"
            self._stop()
        except (ClusterError, StoreError):
            self._stop()
            with suppress(StoreError):
                self._save("interrupted")
            raise
        return self._save(state)

    def _may_send(self) -> bool:
        """Estimates go out a few at a time, so that finished ones need not wait behind them."""
        if self.run.workers is not None and len(self.flying) >= self.run.workers:
            return False
        estimates = sum(job.kind == "estimate" for job in self.flying.values())
        return self.waiting[0].kind != "estimate" or estimates < 2 * self.cluster.cores

    def _send(self, job: _Job) -> None:
        import ray

        cluster = self.cluster
        granted = job.needs.granted_bytes
        share = threads(cluster.node_cores, cluster.node_memory_bytes, granted)
        job.task = self.run.task(job.item, granted, cluster.node_memory_bytes, share)
        job.attempts += job.kind == "decompose"
        log = self._log(job)
        remote = ray.remote(perform).options(
            num_cpus=1, num_gpus=self.run.num_gpus, memory=granted, max_retries=0, name=job.kind
        )
        self.flying[remote.remote(job.kind, job.task.model_dump_json(), str(log))] = job

    def _receive(self, job: _Job, reference: Any) -> None:
        """One attempt has ended: send the next one, or write down the end of its problem."""
        import ray

        assert job.task is not None
        try:
            attempt = Attempt.model_validate_json(ray.get(reference))
            self.lost.clear()
        except ray.exceptions.RayError as error:  # a problem's own errors are answers
            self._lose(job, error)
            if job.losses < MOST_LOSSES:
                job.repeat("worker lost", _in_short(error))
                self.waiting.append(job)
                return
            reason = f"its worker was lost {job.losses} times, the last by {_in_short(error)}"
            record = Record(status="crashed", reason=reason, stage="worker")
            attempt = Attempt(record=record, started=datetime.now(UTC))
        record = attempt.record
        if record.out_of_memory and job.needs.can_grow:
            job.repeat("out of memory", record.reason or "")
            job.needs = job.needs.all_there_is()
            self.waiting.appendleft(job)
        elif job.kind == "estimate" and record.status == "passed":
            job.kind = "decompose"
            used = attempt.peak_memory_bytes or 0
            peak = record.peak_bytes or 0
            job.needs = job.needs.of_a_model(peak, used, record.weight_bytes)
            self.waiting.appendleft(job)
        elif job.kind == "estimate" and self.run.options.decomposer and record.status == "failed":
            job.kind = "decompose"  # it may do what capturing cannot
            self.waiting.appendleft(job)
        else:
            if attempt.result is None:
                attempt = give_up(job.task, attempt, self._log(job))
            assert attempt.result is not None
            if attempt.store_error is not None:
                raise StoreError(attempt.store_error)
            self._end(
                Row.of(
                    attempt.result,
                    attempts=max(1, job.attempts),
                    result_sha256=attempt.result_sha256,
                    artifact_prefix=attempt.artifact_prefix,
                    differs=attempt.differs,
                    node=attempt.node,
                    requested_memory_bytes=job.needs.granted_bytes,
                    repeats=job.repeats,
                )
            )
            self._save("running")

    def _lose(self, job: _Job, error: BaseException) -> None:
        job.losses += 1
        self.lost.add(job.item.label)
        if len(self.lost) >= MOST_LOST_IN_A_ROW:
            raise ClusterError(
                f"Ray is broken: {len(self.lost)} problems in a row lost their worker, "
                f"the last by {_in_short(error)}",
                hint="the same command again does what is left",
            )

    def _earlier_row(self, item: Item) -> Row:
        assert item.earlier is not None
        return Row.of(
            item.earlier,
            attempts=0,
            result_sha256=item.stored.sha256 if item.stored else item.earlier.sha256,
            artifact_prefix=item.stored.prefix if item.stored else item.label,
            differs=item.differs,
        )

    def _log(self, job: _Job) -> Path:
        return self.run.work.log_path(self.run.run_id, job.item.label).absolute()

    def _end(self, row: Row) -> None:
        self.rows.append(row)
        self.watcher.ended(row, len(self.rows))

    def _tell(self) -> None:
        stages = [
            (job.item.label, stage)
            for job in self.flying.values()
            if job.task is not None and (stage := stage_of(job.task))
        ]
        self.watcher.running(stages)

    def _stop(self) -> None:
        """End what runs, and everything that it started; remove what it left half done."""
        import ray

        for reference, job in self.flying.items():
            assert job.task is not None
            if stage := stage_of(job.task):
                problem = job.item.problem
                self._end(
                    Row(
                        problem=problem.name,
                        source_level=problem.source_level,
                        status="cancelled",
                        reason=f"stopped in {stage!r}",
                        attempts=max(1, job.attempts),
                    )
                )
            with suppress(ray.exceptions.RayError):
                ray.cancel(reference, force=True)
        if self.flying:
            ray.wait(list(self.flying), num_returns=len(self.flying), timeout=10)
        for job in self.flying.values():
            if job.task is not None:
                clean_up(job.task)

    def _save(self, state: RunState, forget: Collection[str] = ()) -> Manifest:
        """Write how the run stands; what another driver of it has to say is in the answer."""
        order = {item.label: n for n, item in enumerate(self.items)}
        now = datetime.now(UTC)
        manifest = Manifest(
            run_id=self.run.run_id,
            state=state,
            arguments=self.run.arguments,
            versions={
                "kdrun": __version__,
                "python": platform.python_version(),
                "ray": self.cluster.ray_version,
            },
            cluster=asdict(self.cluster),
            driver_host=socket.gethostname(),
            driver_pid=os.getpid(),
            job=self.run.job,
            data=self.run.data,
            started=self.started,
            updated=now,
            finished=None if state == "running" else now,
            selected=len(self.items),
            counts=count(self.rows),
            rows=sorted(self.rows, key=lambda row: order[row.label]),
        )
        if self.run.shared is not None:
            manifest = self.run.shared.save(manifest, order, forget)
        self.run.store.write_manifest(manifest)
        return manifest


def _bytes(file: Path) -> bytes | None:
    """What is in it; None where it cannot be read, which the worker then says."""
    try:
        return file.read_bytes()
    except OSError:
        return None


def _in_short(error: BaseException) -> str:
    """The kind of error, and the line that matters: the last, below Ray's own and its traces."""
    lines = [line.strip() for line in str(error).strip().split("\n") if line.strip()]
    last = lines[-1] if lines else ""
    return f"{type(error).__name__}: {last}" if len(last) < 200 else type(error).__name__
