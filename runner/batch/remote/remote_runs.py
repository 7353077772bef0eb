"""This file knows about runs on a cluster, seen from the machine that sent them."""

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
from runner.errors import ClusterError, UsageError, there_are
from runner.store.directory import DirectoryStore
from runner.store.manifest import Job, Manifest

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
STORE_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
"""What says, beside the settings, where a bucket is; nobody's secret."""
STORE_SETTINGS = {"store", "s3_endpoint_url", "s3_addressing", "s3_checksums", "output"}
"""What a job is given to remember, so that its results are found by its address alone."""
STOP_WAIT_S = 60
"""For a driver that is told to stop: it ends its problems and writes its manifest."""


@dataclass(frozen=True, slots=True)
class DetachedRun:
    """Who followed a run stopped following it."""

    run_id: str
    job: Job

    def __str__(self) -> str:
        arguments = f"{self.run_id} --on-cluster {self.job.address}"
        return (
            f"run {self.run_id} goes on at {self.job.address}; follow it: kdrun logs {arguments} "
            f"--follow; end it: kdrun stop {arguments}"
        )


def check_settings(settings: Settings) -> None:
    """Refuse what cannot be a run on another cluster, before anything is asked.

    Raises:
        UsageError: it cannot be meant.
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
    """Send a run to a cluster, follow what its driver says, and return what became of it.

    Raises:
        ClusterError: no cluster there, or the run's driver came to an end of its own.
        UsageError: it is being worked on there already.
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
                hint=f"`kdrun logs {arguments} --follow`, `kdrun stop {arguments}`, or another --run-id",
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
    """Follow a run that was sent before, from its beginning."""
    client, cluster_job = find_job(settings, run_id)
    try:
        return _follow_to_end(
            client, cluster_job.job, settings_of(cluster_job, settings), run_id, say
        )
    except KeyboardInterrupt:
        return DetachedRun(run_id, cluster_job.job)


def read_driver_log(settings: Settings, run_id: str) -> str:
    """What the driver of a run has said until now."""
    client, cluster_job = find_job(settings, run_id)
    return client.read_log(cluster_job.job)


def stop(settings: Settings, run_id: str) -> Manifest:
    """End a run as Ctrl-C would, and return how it stands.

    Raises:
        UsageError: it has ended, or was not sent to a cluster.
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
    """Every run that was sent to the cluster which the settings name."""
    assert settings.on_cluster is not None
    return JobClient(settings.on_cluster).list_jobs()


def find_job(settings: Settings, run_id: str) -> tuple[JobClient, ClusterJob]:
    """A run's last job: at the address that is named, or else at the one in its manifest.

    Raises:
        UsageError: it was not sent to a cluster.
        ClusterError: nobody answers there, or it is not known there.
        StoreError: no such run.
    """
    if settings.on_cluster is not None:
        client = JobClient(settings.on_cluster)
        return client, client.find_last_job(run_id)
    manifest = _read_manifest(settings, run_id)
    if manifest.job is None:
        state = manifest.state_now()
        end_text = "" if state == "running" else f", and has ended: {state}"
        problems = there_are([row.label for row in manifest.rows])
        raise UsageError(
            f"run {run_id} was not sent to a cluster{end_text}",
            hint=f"`kdrun logs {run_id} PROBLEM` shows what one problem printed; {problems}",
        )
    client = JobClient(manifest.job.address)
    return client, client.read_job(manifest.job)


def settings_of(cluster_job: ClusterJob, settings: Settings) -> Settings:
    """The settings, with the run's own store where they name none."""
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
        # What they select is in the parcel.
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
    """New for each time that a run is sent; part of URLs and paths."""
    return f"kdrun-{re.sub('[^A-Za-z0-9_.-]+', '-', run_id)}-{secrets.token_hex(3)}"


def _job_environment(settings: Settings) -> dict[str, str]:
    """What the driver and the workers there are told beside the settings; models' code is not."""
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
    """Tell what the driver says, and judge by the manifest; what it ended with is an error here."""
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
    """The run as it stands when it is sent: whoever looks for it finds it, and its job."""
    run = submission.run
    now = datetime.now(UTC)
    return Manifest(
        run_id=run.run_id,
        state="running",
        arguments=dict(run.arguments),
        versions={"kdrun": __version__},
        driver_host=urlsplit(job.address).hostname or "",
        driver_pid=0,  # not known yet
        job=job,
        data=run.data,
        started=now,
        updated=now,
        selected=len(submission.items),
        counts={},
        rows=[],
    )


def _close_manifest(settings: Settings, run_id: str) -> Manifest:
    """The run's manifest, which says that it ended even where its driver could not."""
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
    """Where the run's manifest is; `labels` are the problems that it is about."""
    shared = open_store(settings)
    if shared is not None:
        return shared.save(manifest, labels)
    DirectoryStore(settings.output).write_manifest(manifest)
    return manifest
