"""Sends runs to a cluster as Ray jobs, and follows and stops them from the sender's machine."""

import os
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runner import __version__
from runner.batch.remote.job_entry import FAILURE_PREFIX
from runner.batch.remote.job_package import JOB_FILE, JobDescription, package_job
from runner.batch.remote.jobs import ClusterJob, JobClient, dashboard_url, is_local
from runner.batch.stored_results import open_readable_store, open_store
from runner.batch.submit import MessagePrinter, Submission, drive, send_local_results
from runner.config import Settings
from runner.errors import ClusterError, UsageError, list_known_names
from runner.store.directory import DirectoryStore
from runner.store.manifest import Job, Manifest

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
STORE_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
"""Environment variables that, besides the settings, locate a bucket; none is secret."""
STORE_SETTINGS = {"store", "s3_endpoint_url", "s3_addressing", "s3_checksums", "output"}
"""Settings saved in a job's metadata, so that its results are found by the job's address alone."""
STOP_WAIT_S = 60
"""Seconds that a driver gets to end its problems and write its manifest when it is stopped."""


@dataclass(frozen=True, slots=True)
class DetachedRun:
    """A run that goes on after its user stopped following it."""

    run_id: str
    job: Job

    def __str__(self) -> str:
        arguments = f"{self.run_id} --on-cluster {self.job.address}"
        return (
            f"run {self.run_id} goes on at {self.job.address}; follow it: kdrun logs {arguments} "
            f"--follow; end it: kdrun stop {arguments}"
        )


def check_settings(settings: Settings) -> None:
    """Check settings for a run on another cluster, before any request is sent.

    Raises:
        UsageError: the settings contradict each other, or lack something.
    """
    assert settings.on_cluster is not None
    address = dashboard_url(settings.on_cluster)
    if settings.address is not None:
        raise UsageError("--address and --on-cluster: a run is driven from here or there")
    if settings.store is None and not is_local(address):
        raise UsageError(
            f"--on-cluster {address}: results must go where both sides reach them",
            hint="--store s3://bucket/prefix",
        )
    if settings.send_credentials:
        _credentials()


def submit(
    submission: Submission, settings: Settings, say: MessagePrinter
) -> Manifest | DetachedRun:
    """Send a run to a cluster, print its driver's output, and return the run's manifest.

    Ctrl-C ends the following and not the run; then a DetachedRun is returned.

    Raises:
        ClusterError: no cluster there, or the run's driver failed.
        UsageError: a job of this run is active there already.
        StoreError: results cannot be written.
    """
    assert settings.on_cluster is not None
    client = JobClient(settings.on_cluster)
    run_id = submission.run.run_id
    for cluster_job in client.list_jobs():
        if cluster_job.run_id == run_id and cluster_job.is_active:
            arguments = f"{run_id} --on-cluster {client.address}"
            raise UsageError(
                f"run {run_id} is being worked on at {client.address}",
                hint=f"`kdrun logs {arguments} --follow`, `kdrun stop {arguments}`, "
                "or another --run-id",
            )
    submission = send_local_results(submission, say)
    if not submission.pending_items:
        return drive(submission, settings, say)
    job = _send_job(client, submission, settings)
    say(f"sent to {client.address} as {job.job_id}; Ctrl-C leaves it running")
    try:
        return _follow_to_end(client, job, settings, run_id, say)
    except KeyboardInterrupt:
        return DetachedRun(run_id, job)


def follow(settings: Settings, run_id: str, say: MessagePrinter) -> Manifest | DetachedRun:
    """Print the output of a run that was sent before, from its beginning, until it has ended."""
    client, cluster_job = find_job(settings, run_id)
    try:
        return _follow_to_end(
            client, cluster_job.job, settings_of(cluster_job, settings), run_id, say
        )
    except KeyboardInterrupt:
        return DetachedRun(run_id, cluster_job.job)


def read_driver_log(settings: Settings, run_id: str) -> str:
    """Return the output of a run's driver so far."""
    client, cluster_job = find_job(settings, run_id)
    return client.read_log(cluster_job.job)


def stop(settings: Settings, run_id: str) -> Manifest:
    """Stop a run on a cluster and return its manifest.

    Raises:
        UsageError: the run has ended, or was not sent to a cluster.
        ClusterError: no such run there, or it does not end.
    """
    if settings.on_cluster is None and (manifest := _read_manifest(settings, run_id)).job is None:
        if (state := manifest.state_now()) != "running":
            raise UsageError(f"run {run_id} has ended: {state}")
        hint = "Ctrl-C ends it where it was started"
        raise UsageError(f"run {run_id} was not sent to a cluster", hint=hint)
    client, cluster_job = find_job(settings, run_id)
    if not cluster_job.is_active:
        raise UsageError(f"run {run_id} has ended at {client.address}: {cluster_job.state}")
    client.stop_job(cluster_job.job, STOP_WAIT_S + 10)
    return _close_manifest(settings_of(cluster_job, settings), run_id)


def list_runs(settings: Settings) -> list[ClusterJob]:
    """Return the jobs of all runs that were sent to the cluster that the settings name."""
    assert settings.on_cluster is not None
    return JobClient(settings.on_cluster).list_jobs()


def find_job(settings: Settings, run_id: str) -> tuple[JobClient, ClusterJob]:
    """Return a run's last job, at the address in the settings or else in its manifest.

    Raises:
        UsageError: the run was not sent to a cluster.
        ClusterError: the cluster does not answer, or does not know the run.
        StoreError: no such run.
    """
    if settings.on_cluster is not None:
        client = JobClient(settings.on_cluster)
        return client, client.find_last_job(run_id)
    manifest = _read_manifest(settings, run_id)
    if manifest.job is None:
        state = manifest.state_now()
        end_text = "" if state == "running" else f", and has ended: {state}"
        problems = list_known_names([row.label for row in manifest.rows])
        raise UsageError(
            f"run {run_id} was not sent to a cluster{end_text}",
            hint=f"`kdrun logs {run_id} PROBLEM` shows what one problem printed; {problems}",
        )
    client = JobClient(manifest.job.address)
    return client, client.read_job(manifest.job)


def settings_of(cluster_job: ClusterJob, settings: Settings) -> Settings:
    """Return the settings, with the run's own store if they name none."""
    if settings.store is not None:
        return settings
    run_settings = {
        name: cluster_job.settings[name] for name in STORE_SETTINGS & set(cluster_job.settings)
    }
    return Settings.model_validate(settings.model_dump() | run_settings)


def _send_job(client: JobClient, submission: Submission, settings: Settings) -> Job:
    run = submission.run
    job = Job(address=client.address, job_id=_new_job_id(run.run_id))
    output = settings.output.absolute()
    work_directory = None if run.shared_store is None else Path("/tmp") / job.job_id
    remote_settings: dict[str, Any] = {
        "address": "auto",
        "on_cluster": None,
        "send_credentials": False,
        "run_id": run.run_id,
        "output": work_directory or output,
        # The selected problems are in the job's folder.
        "data": None,
        "level": [],
        "problem": [],
        "start": 0,
        "count": None,
    }
    recorded_settings = settings.model_copy(update={"output": output})
    problems = [item.problem for item in submission.items]
    with package_job(job.job_id, problems) as folder:
        description = JobDescription(
            job=job,
            settings=settings.model_copy(update=remote_settings).model_dump(mode="json"),
            arguments=dict(run.arguments),
            origin=submission.origin,
            data=run.data,
            problems=[item.label for item in submission.items],
            aside=work_directory,
        )
        (folder / JOB_FILE).write_text(description.model_dump_json(indent=1), encoding="utf-8")
        _write_manifest(_initial_manifest(submission, job), settings, description.problems)
        try:
            client.submit_job(
                run.run_id,
                folder,
                recorded_settings.model_dump(mode="json", include=STORE_SETTINGS),
                _job_environment(settings),
            )
        except ClusterError:
            _close_manifest(settings, run.run_id)
            raise
    return job


def _new_job_id(run_id: str) -> str:
    """Return a new job id, unique for each submission and safe in URLs and paths."""
    return f"kdrun-{re.sub('[^A-Za-z0-9_.-]+', '-', run_id)}-{secrets.token_hex(3)}"


def _job_environment(settings: Settings) -> dict[str, str]:
    """Return environment variables for the driver and workers there, but not for models' code."""
    environment = {name: os.environ[name] for name in STORE_VARIABLES if name in os.environ}
    environment["RAY_JOB_STOP_WAIT_TIME_S"] = str(STOP_WAIT_S)
    return environment | (_credentials() if settings.send_credentials else {})


def _credentials() -> dict[str, str]:
    credentials = {name: os.environ[name] for name in CREDENTIALS if name in os.environ}
    if not set(CREDENTIALS[:2]) <= set(credentials):
        raise UsageError(
            f"--send-credentials: no {' and '.join(CREDENTIALS[:2])} in the environment",
            hint='for a profile: eval "$(aws configure export-credentials --format env)"',
        )
    return credentials


def _follow_to_end(
    client: JobClient, job: Job, settings: Settings, run_id: str, say: MessagePrinter
) -> Manifest:
    """Print the driver's output until its end and return the manifest; raise its failure."""
    failures: list[str] = []

    def print_line(line: str) -> None:
        if line.startswith(FAILURE_PREFIX):
            failures.append(line.removeprefix(FAILURE_PREFIX))
        else:
            say(line)

    cluster_job = client.follow_job(job, print_line, say)
    manifest = _close_manifest(settings, run_id)
    if cluster_job.state == "stopped" or manifest.state == "finished":
        return manifest
    if failures:
        is_s3_store = settings.store is not None and settings.store.startswith("s3:")
        credentials_hint = (
            "where the cluster lacks credentials, --send-credentials gives it those from here"
        )
        hint = credentials_hint if is_s3_store and not settings.send_credentials else None
        raise ClusterError(f"on the cluster at {client.address}: {failures[-1]}", hint=hint)
    message = cluster_job.message.strip().partition("\n")[0].partition(", last available logs")[0]
    raise ClusterError(
        f"{job.job_id} at {client.address} {cluster_job.state}: {message or 'it does not say why'}",
        hint="the same command again does what is left",
    )


def _initial_manifest(submission: Submission, job: Job) -> Manifest:
    """Return the manifest of a run that is about to be sent; it makes run and job known."""
    run = submission.run
    now = datetime.now(UTC)
    return Manifest(
        run_id=run.run_id,
        state="running",
        arguments=dict(run.arguments),
        versions={"kdrun": __version__},
        driver_host=urlsplit(job.address).hostname or "",
        driver_pid=0,  # The process does not exist yet.
        job=job,
        data=run.data,
        started=now,
        updated=now,
        selected=len(submission.items),
        counts={},
        rows=[],
    )


def _close_manifest(settings: Settings, run_id: str) -> Manifest:
    """Return the manifest of an ended run; mark it as interrupted if its driver could not."""
    manifest = _read_manifest(settings, run_id)
    if manifest.state == "running":
        now = datetime.now(UTC)
        changes = {"state": "interrupted", "updated": now, "finished": now}
        labels = [row.label for row in manifest.rows]
        manifest = _write_manifest(manifest.model_copy(update=changes), settings, labels)
    return manifest


def _read_manifest(settings: Settings, run_id: str) -> Manifest:
    if settings.store is None:
        return DirectoryStore(settings.output).manifest(run_id)
    return open_readable_store(settings).manifest(run_id)


def _write_manifest(manifest: Manifest, settings: Settings, labels: Collection[str]) -> Manifest:
    """Write the manifest of a run about the problems `labels`, and return it as written."""
    store = open_store(settings)
    if store is not None:
        return store.save_manifest(manifest, labels)
    DirectoryStore(settings.output).write_manifest(manifest)
    return manifest
