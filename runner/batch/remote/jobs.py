"""This file knows about Ray's job API: our jobs on a cluster, sent, found, followed, stopped."""

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

from runner.batch.cluster import REACH_S, authentication_error, token_refused
from runner.errors import ClusterError, UsageError, require_package
from runner.store.manifest import Job

DASHBOARD_PORT = 8265
METADATA = "kdrun"
"""Of a job of ours: which run it is, and where its results go."""
ACTIVE = ("pending", "running")
ANSWER_S = 30.0
"""For a question to the cluster; a laptop that has slept finds its connections dead."""
LOOK_S = 1.0
"""How often a job that is followed is looked at."""
LOG_BYTES_PER_S = 500_000
"""What looking may cost: a long log is read whole each time, so less often."""
RETRY_S = 5.0
LOST_S = 3600.0
"""Without an answer, time asleep not counted, until a job is followed no more."""


@dataclass(frozen=True, slots=True)
class Found:
    """A job of ours, as its cluster tells of it."""

    job: Job
    run_id: str
    settings: Mapping[str, Any]
    """Where its results go, as settings."""
    state: str
    """pending, running, succeeded, failed, stopped."""
    message: str
    started: datetime | None
    ended: datetime | None

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


class Jobs:
    """The jobs of one cluster."""

    def __init__(self, address: str) -> None:
        """Reach it.

        Raises:
            UsageError: the address cannot be meant.
            MissingPackageError: Ray's job client is not installed.
            ClusterError: nobody answers there, or not Ray.
        """
        self.address = dashboard(address)
        self.client = _client(self.address)

    def send(
        self, run_id: str, package: Path, metadata: Mapping[str, Any], environment: dict[str, str]
    ) -> Job:
        """Send a folder to be worked on; its job.json is read by `runner.batch.remote.job_entry`.

        Raises:
            ClusterError: it cannot be sent.
        """
        # No environment of ours is told to the shell; `exec`, so that signals reach the driver.
        job_id = package.name
        with self._asking("send the job"):
            self.client.submit_job(
                entrypoint="exec python -m runner.batch.remote.job_entry",
                submission_id=job_id,
                runtime_env={"working_dir": str(package), "env_vars": environment},
                metadata={METADATA: json.dumps({"run_id": run_id, **metadata})},
            )
        return Job(address=self.address, job_id=job_id)

    def all(self) -> list[Found]:
        """Every job of ours that the cluster remembers, oldest first."""
        with self._asking("list its jobs"):
            listed = self.client.list_jobs()
        found = (_found(self.address, details) for details in listed)
        jobs = [one for one in found if one is not None]
        return sorted(jobs, key=lambda one: one.started or datetime.now(UTC))

    def of_run(self, run_id: str) -> Found:
        """The last job of a run.

        Raises:
            ClusterError: the cluster knows none.
        """
        jobs = self.all()
        mine = [one for one in jobs if one.run_id == run_id]
        if not mine:
            known = ", ".join(dict.fromkeys(one.run_id for one in jobs[-3:])) or "none"
            raise ClusterError(
                f"no run {run_id!r} at {self.address}", hint=f"the last ones there: {known}"
            )
        return mine[-1]

    def look(self, job: Job) -> Found:
        """How a job stands.

        Raises:
            ClusterError: it is not known (any more), or nobody answers.
        """
        with self._asking(f"tell of {job.job_id}"):
            details = self.client.get_job_info(job.job_id)
        found = _found(self.address, details)
        if found is None:
            raise ClusterError(f"{job.job_id} at {self.address}: not a job of kdrun")
        return found

    def log(self, job: Job) -> str:
        """What its driver has said, without what Ray says before it."""
        with self._asking(f"show the log of {job.job_id}"):
            text = str(self.client.get_job_logs(job.job_id))
        _, begun, said = text.partition(f"Running entrypoint for job {job.job_id}: ")
        return said.partition("\n")[2] if begun else ""

    def follow(self, job: Job, tell: Callable[[str], None], say: Callable[[str], None]) -> Found:
        """Tell each line that its driver says, until the job has ended.

        A lost connection is made again; only an hour without an answer ends it.

        Raises:
            ClusterError: nobody answers any more, or the job is not known any more.
        """
        told = 0
        lost_at: float | None = None
        while True:
            try:
                found = self.look(job)  # before the log: what it says last is there then
                log = self.log(job)
            except _Lost as error:
                if lost_at is None:
                    lost_at = time.monotonic()
                    say(f"{error.message}; trying again (the run goes on there)")
                elif time.monotonic() - lost_at > LOST_S:
                    raise
                time.sleep(RETRY_S)
                continue
            if lost_at is not None:
                lost_at = None
                say(f"{self.address} answers again")
            end = len(log) if not found.active else log.rfind("\n") + 1
            for line in log[told:end].splitlines():
                tell(line)
            told = max(told, end)
            if not found.active:
                return found
            time.sleep(max(LOOK_S, len(log) / LOG_BYTES_PER_S))

    def stop(self, job: Job, patience_s: float) -> Found:
        """End a job, as Ctrl-C ends a run, and wait until it has ended.

        Raises:
            ClusterError: it does not end.
        """
        with self._asking(f"stop {job.job_id}"):
            self.client.stop_job(job.job_id)
        end = time.monotonic() + patience_s
        while (found := self.look(job)).active:
            if time.monotonic() > end:
                raise ClusterError(
                    f"{job.job_id} at {self.address} was told to stop, and has not yet",
                    hint=f"look again with `kdrun status --on-cluster {self.address}`",
                )
            time.sleep(0.5)
        return found

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """One question; whatever Ray's client raises is said in one line."""
        from ray.exceptions import RayError

        try:
            yield
        except (OSError, RuntimeError, ValueError, RayError) as error:
            said = _in_short(error)
            if "does not exist" in said:
                raise ClusterError(
                    f"{self.address}: {said}", hint="a head that is started again knows no old jobs"
                ) from error
            raise _Lost(f"{self.address} does not {what}: {said}") from error


class _Lost(ClusterError):
    """No answer, or one that was not Ray's: it may come back."""


def dashboard(address: str) -> str:
    """`http://head:8265`, from what people write for it.

    Raises:
        UsageError: something else is meant.
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
    """Whether an address is this machine's, as far as it can tell: a tunnel's end is, too."""
    host = urlsplit(address if "://" in address else f"//{address}").hostname
    return host in ("localhost", "127.0.0.1", "::1", socket.gethostname())


def _client(address: str) -> Any:
    for package in ("ray", "aiohttp", "requests"):  # the last two: what Ray's job client imports
        require_package(package, "cluster", f"--on-cluster {address}")
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    hint = f"the head's dashboard, which `ray[default]` has, answers at port {DASHBOARD_PORT}"
    try:
        socket.create_connection((parts.hostname or "", port), timeout=REACH_S).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray dashboard at {address}: {error}", hint=hint) from error
    from ray.exceptions import RayError
    from ray.job_submission import JobSubmissionClient

    class Client(JobSubmissionClient):  # type: ignore[misc, unused-ignore]
        """Ray's, which would wait for ever for an answer."""

        def _do_request(self, method: str, endpoint: str, **options: Any) -> Any:
            return super()._do_request(method, endpoint, **({"timeout": ANSWER_S} | options))

    for talkative in ("ray.dashboard.modules.dashboard_sdk", "ray._private.runtime_env.packaging"):
        logging.getLogger(talkative).setLevel(logging.ERROR)
    try:
        with _without("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):  # they would win over the flag
            return Client(address)
    except authentication_error() as error:
        raise token_refused(address) from error
    except (OSError, RuntimeError, ValueError, LookupError, RayError) as error:
        said = f"no Ray dashboard at {address}: {_in_short(error)}"
        raise ClusterError(said, hint=hint) from error


@contextmanager
def _without(*names: str) -> Iterator[None]:
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(before)


def _found(address: str, details: Any) -> Found | None:
    """What Ray tells of a job, where it is one of ours."""
    try:
        about = json.loads((details.metadata or {})[METADATA])
        run_id = str(about.pop("run_id"))
    except (KeyError, ValueError, AttributeError):
        return None
    return Found(
        job=Job(address=address, job_id=details.submission_id),
        run_id=run_id,
        settings=about,
        state=str(getattr(details.status, "value", details.status)).lower(),
        message=details.message or "",
        started=_time(details.start_time),
        ended=_time(details.end_time),
    )


def _time(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def _in_short(error: BaseException) -> str:
    """One line of what may be an answer's whole page."""
    text = re.sub(r"<[^>]*>", " ", str(error))
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first[:200] or type(error).__name__
