"""Drives a run: sends problems to Ray, retries attempts that fail, and records results.

Each problem is one Ray task. It first gets a guessed amount of memory; if the captured graph needs
more, the driver sends it again with that amount. The end of every problem is recorded, so that the
manifest is correct even if the driver dies.
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
from runner.batch.attempt import Attempt, commit_failure, read_stage, remove_scratch
from runner.batch.child.answer import FailureAnswer, FailureCause, failure_cause
from runner.batch.cluster import Cluster, describe_cluster, explain_loss, summarize_error
from runner.batch.interrupts import StopRequest
from runner.batch.job import ProblemJob
from runner.batch.manifest_writer import ManifestWriter
from runner.batch.memory_request import NO_BOUND, MemoryRequest, count_threads, describe_shortage
from runner.batch.plan import PlanItem
from runner.batch.run import Run, Watcher
from runner.errors import ClusterError, StoreError
from runner.store.manifest import Manifest, RunState
from runner.store.manifest_row import Cause, Row

MAX_LOST_IN_A_ROW = 4
"""Number of problems in a row that lose their worker on live nodes before Ray counts as broken."""
STAGE_CHECK_INTERVAL_S = 0.5
"""Seconds between two reads of the running problems' stages."""
NODE_CHECK_INTERVAL_S = 10.0
"""Seconds between two checks of the cluster's nodes."""
NODE_WAIT_S = 300.0
"""Seconds to wait for a node with enough memory for a problem after the last such node is gone."""
GROWING_GUESS_LIMIT = 64
"""Jobs of guessed size sent at a time to a cluster that can grow, unless twice its cores are more;
its autoscaler sees the demand from jobs that wait."""


@dataclass(slots=True)
class Driver:
    """Drives one run over one cluster; call `drive()`."""

    run: Run
    items: Sequence[PlanItem]
    cluster: Cluster
    watcher: Watcher
    stop: StopRequest = field(default_factory=StopRequest)
    waiting_jobs: deque[ProblemJob] = field(default_factory=deque)
    sent_jobs: dict[Any, ProblemJob] = field(default_factory=dict)
    """Jobs that were sent to Ray and have not answered, by Ray's object reference."""
    lost_labels: set[str] = field(default_factory=set)
    """Labels of problems that lost a worker since the last answer from any problem."""
    manifest_writer: ManifestWriter = field(init=False)
    is_finishing: bool = False
    """Whether the run is being stopped: running problems finish, no other is started."""
    stages_checked_s: float = 0.0
    nodes_checked_s: float = 0.0
    unplaceable_since: dict[str, float] = field(default_factory=dict)
    """For each problem that waits at Ray and fits on no node: the time when that was first seen."""

    def __post_init__(self) -> None:
        labels = [item.label for item in self.items]
        self.manifest_writer = ManifestWriter(self.run, self.cluster, labels)

    def drive(self) -> Manifest:
        """Run all pending problems and return the manifest, interrupted or finished.

        Raises:
            ClusterError: Ray itself is broken. Committed results are kept; the rest is not run.
            StoreError: results cannot be stored. They stay on the machine that made them.
        """
        state: RunState = "finished"
        forgotten_labels = frozenset(
            item.label for item in self.items if item.earlier_result is None
        )
        try:
            memory = self._first_guess()
            for item in self.items:
                if item.earlier_result is None:
                    self.waiting_jobs.append(ProblemJob(item, memory))
                else:
                    self._add_row(self._build_earlier_row(item))
            self.manifest_writer.save("running", forgotten_labels)
            self.nodes_checked_s = time.monotonic()
            while self.waiting_jobs or self.sent_jobs:
                self._run_turn()
                if self.stop.is_requested and not self.is_finishing:
                    self._cancel_waiting()
            if self.is_finishing:
                state = "interrupted"
        except KeyboardInterrupt:
            self.stop.interrupt_raised = True
            state = "interrupted"
            self._cancel_all()
        except (ClusterError, StoreError):
            with suppress(StoreError):
                self._cancel_all()
                self.manifest_writer.save("interrupted")
            raise
        return self.manifest_writer.save(state)

    def _run_turn(self) -> None:
        """Send jobs while there is room, receive answers, and report progress."""
        import ray

        while self.waiting_jobs and self._may_send_next():
            self._send_job(self.waiting_jobs.popleft())
        ready, _ = ray.wait(list(self.sent_jobs), num_returns=1, timeout=STAGE_CHECK_INTERVAL_S)
        if ready:  # Receive all other answers that are ready, too.
            references = list(self.sent_jobs)
            ready, _ = ray.wait(references, num_returns=len(references), timeout=0)
        for reference in ready:
            self._receive_answer(self.sent_jobs.pop(reference), reference)
        now = time.monotonic()
        if now - self.stages_checked_s >= STAGE_CHECK_INTERVAL_S:
            self.stages_checked_s = now
            stages = [(job.item.label, stage) for _, job, stage in self._read_stages()]
            self.watcher.on_stages(stages)
            self.manifest_writer.save_if_due()
        if now - self.nodes_checked_s >= NODE_CHECK_INTERVAL_S:
            self._check_nodes()

    def _max_memory_bytes(self) -> int:
        """Return the most memory that a problem can be granted."""
        may_grow = self.run.settings.wait_for_nodes
        return NO_BOUND if may_grow else self.cluster.node_memory_bytes

    def _may_send_next(self) -> bool:
        """Whether to send the next job now.

        Only a few jobs of guessed size are sent at a time, so that those of known size do not queue
        behind them.
        """
        settings = self.run.settings
        if settings.workers is not None and len(self.sent_jobs) >= settings.workers:
            return False
        if self.waiting_jobs[0].is_sized:
            return True
        guesses = sum(not job.is_sized for job in self.sent_jobs.values())
        return guesses < max(
            2 * self.cluster.cores, GROWING_GUESS_LIMIT if settings.wait_for_nodes else 1
        )

    def _send_job(self, job: ProblemJob) -> None:
        cluster, settings = self.cluster, self.run.settings
        granted = job.memory.granted_bytes
        thread_count = count_threads(cluster.node_cores, cluster.node_memory_bytes, granted)
        task = self.run.build_task(
            job.item, granted, self._max_memory_bytes(), max(thread_count, int(settings.num_cpus))
        )
        may_grow = job.memory.can_grow and job.may_repeat(Cause.OUT_OF_MEMORY, settings.retries)
        job.start_attempt(task.model_copy(update={"sized": job.is_sized, "may_grow": may_grow}))
        assert job.task is not None
        remote = _remote_function().options(
            num_cpus=settings.num_cpus,
            num_gpus=settings.num_gpus,
            memory=granted,
            max_retries=0,
            name="decompose",  # Ray keeps metrics for each name, so all problems share one.
        )
        job.start_key = f"{self.run.run_id}/{job.item.label}/{job.attempts}/{job.is_sized}"
        reference = remote.remote(
            job.start_key, job.task.model_dump_json(), str(self._log_path(job))
        )
        self.sent_jobs[reference] = job

    def _receive_answer(self, job: ProblemJob, reference: Any) -> None:
        """Handle the end of an attempt: send the next one, or record the problem's end."""
        import ray

        try:
            attempt = Attempt.model_validate_json(ray.get(reference))
        except ray.exceptions.TaskCancelledError:  # The driver cancelled it before it started.
            return
        except ray.exceptions.RayError as error:  # A problem's own errors arrive as answers.
            job.end_attempt(None)
            self._handle_loss(job, error)
            return
        started_tasks.delete_start_record(job.start_key)
        self.lost_labels.clear()
        job.end_attempt(attempt)
        answer = attempt.answer
        cause = failure_cause(answer)
        if cause is FailureCause.NEEDS_MORE and answer.forecast is not None:
            used_bytes, forecast = attempt.peak_memory_bytes or 0, answer.forecast
            job.memory = job.memory.for_model(
                forecast.expected_bytes, used_bytes, forecast.weights_bytes
            )
            job.is_sized = True
            self.requeue(job)
        elif attempt.result is not None:
            self._finish_problem(job, attempt)
        elif cause is FailureCause.OUT_OF_MEMORY and job.memory.can_grow:
            self._retry_or_finish(job, Cause.OUT_OF_MEMORY, answer.reason or "", attempt)
        elif cause is FailureCause.DISK_FULL:
            self._retry_or_finish(job, Cause.DISK_FULL, answer.reason or "", attempt)
        else:
            self._finish_problem(job, attempt)

    def _handle_loss(self, job: ProblemJob, error: BaseException) -> None:
        """Handle an attempt that ended without an answer: retry the problem, or record its end."""
        cause, message = explain_loss(error)
        if cause is Cause.WORKER_LOST:
            self.lost_labels.add(job.item.label)
            if len(self.lost_labels) >= MAX_LOST_IN_A_ROW:
                raise ClusterError(
                    f"Ray is broken: {len(self.lost_labels)} problems in a row lost their worker, "
                    f"the last by {summarize_error(error)}",
                    hint="the same command again does what is left",
                )
        else:
            self._check_nodes()
        job.lost_node = started_tasks.find_start_host(job.start_key)
        started_tasks.delete_start_record(job.start_key)
        self._retry_or_finish(job, cause, message, None)

    def _retry_or_finish(
        self, job: ProblemJob, cause: Cause, message: str, attempt: Attempt | None
    ) -> None:
        """Retry the problem if the limit for this cause allows it; else record its end."""
        if job.may_repeat(cause, self.run.settings.retries):
            repeat = job.add_repeat(cause, message, attempt)
            self.watcher.on_retry(job.item.label, repeat)
            self.requeue(job, at_front=attempt is not None)
            return
        if attempt is None:
            reason = f"{job.explain_limit(cause)}, the last by {message}"
            answer = FailureAnswer(status="crashed", reason=reason, stage="worker")
            attempt = Attempt(answer=answer, started=job.started)
        self._finish_problem(job, attempt)

    def requeue(self, job: ProblemJob, *, at_front: bool = True) -> None:
        """Queue a job again: at the front, or at the back.

        After a loss other problems go first, because their answers show whether Ray is broken. So
        they do before a job that needs a whole node: while it waited at Ray, Ray would keep a core
        for it, as its fair share, and start nothing there.
        """
        if self.is_finishing:
            return
        if at_front and not self._needs_whole_node(job):
            self.waiting_jobs.appendleft(job)
        else:
            self.waiting_jobs.append(job)

    def _needs_whole_node(self, job: ProblemJob) -> bool:
        """Whether a job, beside another one that is first tried, is too large for a node."""
        if self.run.settings.wait_for_nodes or self.cluster.node_cores < 2:
            return False
        granted_bytes, others_bytes = job.memory.granted_bytes, self._first_guess().granted_bytes
        return (
            granted_bytes > others_bytes
            and granted_bytes + others_bytes > self.cluster.node_memory_bytes
        )

    def _first_guess(self) -> MemoryRequest:
        """Return the request for a problem that is not captured yet."""
        return MemoryRequest.for_capture(
            self._max_memory_bytes(),
            self.cluster.node_memory_bytes // max(1, self.cluster.node_cores),
        )

    def _finish_problem(self, job: ProblemJob, attempt: Attempt) -> None:
        """Record the end of a problem; commit a result if its attempt did not."""
        assert job.task is not None
        if attempt.result is None:
            attempt = commit_failure(job.task, attempt, self._log_path(job))
        assert attempt.result is not None
        if attempt.store_error is not None:
            raise StoreError(attempt.store_error)
        num_gpus = self.run.settings.num_gpus
        self._add_row(
            Row.from_result(
                attempt.result,
                attempts=job.attempts,
                result_sha256=attempt.result_sha256,
                artifact_prefix=attempt.artifact_prefix,
                differs=attempt.differs,
                node=attempt.node,
                requested_memory_bytes=job.memory.granted_bytes,
                repeats=job.repeats,
                upload_s=attempt.upload_s,
                uploaded_bytes=attempt.uploaded_bytes,
                gpu_seconds=round(num_gpus * job.held_s, 3) if num_gpus else None,
            )
        )
        self.manifest_writer.save_if_due()

    def _build_earlier_row(self, item: PlanItem) -> Row:
        assert item.earlier_result is not None
        return Row.from_result(
            item.earlier_result,
            attempts=0,
            result_sha256=item.stored_result.sha256
            if item.stored_result
            else item.earlier_result.sha256,
            artifact_prefix=item.stored_result.prefix if item.stored_result else item.label,
            differs=item.differs,
        )

    def _log_path(self, job: ProblemJob) -> Path:
        return self.run.work_store.log_path(self.run.run_id, job.item.label).absolute()

    def _add_row(self, row: Row) -> None:
        self.manifest_writer.add(row)
        self.watcher.on_problem_end(row, self.manifest_writer.ended_count)

    def _read_stages(self) -> list[tuple[Any, ProblemJob, str]]:
        """Return reference, job and stage of each job whose child has started."""
        return [
            (reference, job, stage)
            for reference, job in self.sent_jobs.items()
            if job.task is not None and (stage := read_stage(job.task))
        ]

    def _check_nodes(self) -> None:
        """Update the cluster's description; end problems that have waited too long for a node."""
        self.nodes_checked_s = now = time.monotonic()
        self.cluster = cluster = describe_cluster(self.cluster.address)
        if self.run.settings.wait_for_nodes:
            return
        unplaceable = {
            job.item.label: (reference, job)
            for reference, job in self.sent_jobs.items()
            if job.memory.granted_bytes > cluster.node_memory_bytes
            and not started_tasks.find_start_host(job.start_key)
        }
        self.unplaceable_since = {
            label: self.unplaceable_since.get(label, now) for label in unplaceable
        }
        for label, since in self.unplaceable_since.items():
            if now - since >= NODE_WAIT_S:
                self._evict_job(*unplaceable[label])

    def _evict_job(self, reference: Any, job: ProblemJob) -> None:
        """Cancel a job that fits on no node, and record its problem as too large.

        Raises:
            ClusterError: the cluster has no node at all.
        """
        import ray

        ray.cancel(reference)
        del self.sent_jobs[reference]
        if not self.cluster.node_memory_bytes:
            raise ClusterError(
                f"Ray at {self.cluster.address}: no node has been there for {NODE_WAIT_S:.0f} s",
                hint="the same command again does what is left",
            )
        reason = describe_shortage(job.memory.granted_bytes, self.cluster.node_memory_bytes)
        answer = FailureAnswer(status="too_large", reason=f"{reason} now", stage="waiting")
        self._finish_problem(job, Attempt(answer=answer, started=datetime.now(UTC)))

    def _cancel_waiting(self) -> None:
        """After the first Ctrl-C: cancel jobs that have not started, and let the others finish."""
        import ray

        self.is_finishing = True
        self.waiting_jobs.clear()
        for reference, job in list(self.sent_jobs.items()):
            if not started_tasks.find_start_host(job.start_key):
                ray.cancel(reference)
                del self.sent_jobs[reference]
        self.watcher.on_message(f"finishing {len(self.sent_jobs)} running; Ctrl-C again stops now")

    def _cancel_all(self) -> None:
        """Cancel all jobs with their processes, remove their scratch directories, record them."""
        import ray

        running = self._read_stages()
        for reference in self.sent_jobs:
            with suppress(ray.exceptions.RayError):
                ray.cancel(reference, force=True)
        if self.sent_jobs:
            ray.wait(list(self.sent_jobs), num_returns=len(self.sent_jobs), timeout=10)
        for job in self.sent_jobs.values():
            if job.task is not None:
                remove_scratch(job.task)
        for _, job, stage in running:
            problem = job.item.problem
            self._add_row(
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
def _remote_function() -> Any:
    """Return the Ray remote function; created once, because Ray keeps every one it is given."""
    import ray

    return ray.remote(started_tasks.record_start_and_run)
