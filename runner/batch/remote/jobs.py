"""Submits, lists, follows and stops kdrun's jobs on a cluster through Ray's job API."""

import json
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runner.batch.cluster import CONNECT_TIMEOUT_S, authentication_error, token_error
from runner.errors import ClusterError, UsageError, require_package
from runner.store.manifest import Job

DASHBOARD_PORT = 8265
METADATA = "kdrun"
"""Key of a job's metadata with the run's id and the settings that locate its results."""
ACTIVE = ("pending", "running")
ANSWER_TIMEOUT_S = 30.0
"""Seconds that a request may take; after a laptop has slept its old connections are dead."""
MIN_CHECK_INTERVAL_S = 1.0
"""Least number of seconds between two reads of a job that is followed."""
LOG_BYTES_PER_S = 500_000
"""Bytes of log to read per second at most; as each read is of the whole log, long logs are read
less often."""
RETRY_INTERVAL_S = 5.0
MAX_SILENCE_S = 3600.0
"""Seconds without an answer, not counting time asleep, after which following ends."""


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job of kdrun, as its cluster describes it."""

    job: Job
    run_id: str
    settings: Mapping[str, Any]
    """Settings that locate its results."""
    state: str
    """One of pending, running, succeeded, failed, stopped."""
    message: str
    started: datetime | None
    ended: datetime | None

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


class JobClient:
    """Client of one cluster's job API."""

    def __init__(self, address: str) -> None:
        """Connect to the dashboard at an address.

        Raises:
            UsageError: the text is not an address of a dashboard.
            MissingPackageError: Ray's job client is not installed.
            ClusterError: nothing answers there, or not Ray.
        """
        self.address = dashboard_url(address)
        self.client = _open_client(self.address)

    def submit_job(
        self, run_id: str, package: Path, metadata: Mapping[str, Any], environment: dict[str, str]
    ) -> Job:
        """Submit a folder as a job; `runner.batch.remote.job_entry` reads its job.json there.

        Raises:
            ClusterError: the job cannot be submitted.
        """
        # `exec` replaces the shell, so that signals reach the driver. Variables go into env_vars
        # and not into this command.
        job_id = package.name
        with self._translate_errors("send the job"):
            self.client.submit_job(
                entrypoint="exec python -m runner.batch.remote.job_entry",
                submission_id=job_id,
                runtime_env={"working_dir": str(package), "env_vars": environment},
                metadata={METADATA: json.dumps({"run_id": run_id, **metadata})},
            )
        return Job(address=self.address, job_id=job_id)

    def list_jobs(self) -> list[ClusterJob]:
        """Return every job of kdrun that the cluster remembers, oldest first."""
        with self._translate_errors("list its jobs"):
            details_of_jobs = self.client.list_jobs()
        parsed_jobs = (_parse_job(self.address, details) for details in details_of_jobs)
        jobs = [job for job in parsed_jobs if job is not None]
        return sorted(jobs, key=lambda job: job.started or datetime.now(UTC))

    def find_last_job(self, run_id: str) -> ClusterJob:
        """Return the last job of a run.

        Raises:
            ClusterError: the cluster knows no job of this run.
        """
        jobs = self.list_jobs()
        run_jobs = [job for job in jobs if job.run_id == run_id]
        if not run_jobs:
            last_run_ids = ", ".join(dict.fromkeys(job.run_id for job in jobs[-3:])) or "none"
            raise ClusterError(
                f"no run {run_id!r} at {self.address}", hint=f"the last ones there: {last_run_ids}"
            )
        return run_jobs[-1]

    def read_job(self, job: Job) -> ClusterJob:
        """Return the present state of a job.

        Raises:
            ClusterError: the cluster does not know the job, or does not answer.
        """
        with self._translate_errors(f"tell of {job.job_id}"):
            details = self.client.get_job_info(job.job_id)
        cluster_job = _parse_job(self.address, details)
        if cluster_job is None:
            raise ClusterError(f"{job.job_id} at {self.address}: not a job of kdrun")
        return cluster_job

    def read_log(self, job: Job) -> str:
        """Return the output of a job's driver so far, without Ray's own lines before it."""
        with self._translate_errors(f"show the log of {job.job_id}"):
            text = str(self.client.get_job_logs(job.job_id))
        _, separator, output = text.partition(f"Running entrypoint for job {job.job_id}: ")
        return output.partition("\n")[2] if separator else ""

    def follow_job(
        self, job: Job, print_line: Callable[[str], None], say: Callable[[str], None]
    ) -> ClusterJob:
        """Print each line of the driver's output until the job has ended; return its last state.

        A lost connection is retried; following ends after an hour without an answer.

        Raises:
            ClusterError: the cluster no longer answers, or no longer knows the job.
        """
        printed_length = 0
        silent_since: float | None = None
        while True:
            try:
                cluster_job = self.read_job(
                    job
                )  # Read before the log, so that the log of an ended job is complete.
                log = self.read_log(job)
            except _NoAnswerError as error:
                if silent_since is None:
                    silent_since = time.monotonic()
                    say(f"{error.message}; trying again (the run goes on there)")
                elif time.monotonic() - silent_since > MAX_SILENCE_S:
                    raise
                time.sleep(RETRY_INTERVAL_S)
                continue
            if silent_since is not None:
                silent_since = None
                say(f"{self.address} answers again")
            end = len(log) if not cluster_job.is_active else log.rfind("\n") + 1
            for line in log[printed_length:end].splitlines():
                print_line(line)
            printed_length = max(printed_length, end)
            if not cluster_job.is_active:
                return cluster_job
            time.sleep(max(MIN_CHECK_INTERVAL_S, len(log) / LOG_BYTES_PER_S))

    def stop_job(self, job: Job, timeout_s: float) -> ClusterJob:
        """Stop a job as SIGTERM stops a run, wait until it has ended, and return its last state.

        Raises:
            ClusterError: the job does not end within `timeout_s`.
        """
        with self._translate_errors(f"stop {job.job_id}"):
            self.client.stop_job(job.job_id)
        deadline = time.monotonic() + timeout_s
        while (cluster_job := self.read_job(job)).is_active:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{job.job_id} at {self.address} was told to stop, and has not yet",
                    hint=f"look again with `kdrun status --on-cluster {self.address}`",
                )
            time.sleep(0.5)
        return cluster_job

    @contextmanager
    def _translate_errors(self, action: str) -> Iterator[None]:
        """Turn every exception of Ray's client during one request into a one-line ClusterError."""
        from ray.exceptions import RayError

        try:
            yield
        except (OSError, RuntimeError, ValueError, RayError) as error:
            message = _first_line(error)
            if "does not exist" in message:
                raise ClusterError(
                    f"{self.address}: {message}",
                    hint="a head that is started again knows no old jobs",
                ) from error
            raise _NoAnswerError(f"{self.address} does not {action}: {message}") from error


class _NoAnswerError(ClusterError):
    """The cluster did not answer, or not as Ray does; a later request may succeed."""


def dashboard_url(address: str) -> str:
    """Return the dashboard's URL, such as `http://head:8265`, for an address as people write it.

    Raises:
        UsageError: the text is not an address of a dashboard.
    """
    if address.startswith("ray://"):
        raise UsageError(
            f"--on-cluster {address}: Ray's client port, not its dashboard",
            hint=f"such as http://{urlsplit(address).hostname or 'head'}:{DASHBOARD_PORT}",
        )
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        hint = f"the dashboard of its head, such as http://10.0.0.5:{DASHBOARD_PORT}"
        raise UsageError(f"--on-cluster {address}: not an address", hint=hint)
    if "://" not in address and port is None:
        return f"http://{parts.hostname}:{DASHBOARD_PORT}"
    return parts.geturl().rstrip("/")


def is_local(address: str) -> bool:
    """Whether an address is this machine's; the local end of a tunnel also looks like that."""
    host = urlsplit(address if "://" in address else f"//{address}").hostname
    return host in ("localhost", "127.0.0.1", "::1", socket.gethostname())


def _open_client(address: str) -> Any:
    for package in ("ray", "aiohttp", "requests"):  # Ray's job client imports the last two.
        require_package(package, "cluster", f"--on-cluster {address}")
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    hint = f"the head's dashboard, which `ray[default]` has, answers at port {DASHBOARD_PORT}"
    try:
        socket.create_connection((parts.hostname or "", port), timeout=CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray dashboard at {address}: {error}", hint=hint) from error
    from ray.exceptions import RayError
    from ray.job_submission import JobSubmissionClient

    class Client(JobSubmissionClient):  # type: ignore[misc, unused-ignore]
        """Ray's client, with a time limit for answers, which it lacks."""

        def _do_request(self, method: str, endpoint: str, **options: Any) -> Any:
            return super()._do_request(
                method, endpoint, **({"timeout": ANSWER_TIMEOUT_S} | options)
            )

    for logger_name in (
        "ray.dashboard.modules.dashboard_sdk",
        "ray._private.runtime_env.packaging",
    ):
        logging.getLogger(logger_name).setLevel(logging.ERROR)
    try:
        with _unset_variables(
            "RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"
        ):  # They would override the flag.
            return Client(address)
    except authentication_error() as error:
        raise token_error(address) from error
    except (OSError, RuntimeError, ValueError, LookupError, RayError) as error:
        message = f"no Ray dashboard at {address}: {_first_line(error)}"
        raise ClusterError(message, hint=hint) from error


@contextmanager
def _unset_variables(*names: str) -> Iterator[None]:
    saved = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(saved)


def _parse_job(address: str, details: Any) -> ClusterJob | None:
    """Return a job from Ray's description, or None if kdrun did not submit it."""
    try:
        metadata = json.loads((details.metadata or {})[METADATA])
        run_id = str(metadata.pop("run_id"))
    except (KeyError, ValueError, AttributeError):
        return None
    return ClusterJob(
        job=Job(address=address, job_id=details.submission_id),
        run_id=run_id,
        settings=metadata,
        state=str(getattr(details.status, "value", details.status)).lower(),
        message=details.message or "",
        started=_parse_time(details.start_time),
        ended=_parse_time(details.end_time),
    )


def _parse_time(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's message, which may be a whole HTML page."""
    text = re.sub(r"<[^>]*>", " ", str(error))
    first_line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first_line[:200] or type(error).__name__
