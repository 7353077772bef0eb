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
from runner.batch.remote.job_entry import FAILED
from runner.batch.remote.job_package import JOB_FILE, Sent, parcel
from runner.batch.remote.jobs import Found, Jobs, dashboard, is_local
from runner.batch.stored_results import looked_at, store_of
from runner.batch.submit import Say, Submission, drive, sent_from_here
from runner.config import Settings
from runner.errors import ClusterError, UsageError, list_known_names
from runner.store.directory import DirectoryStore
from runner.store.manifest import Job, Manifest

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
PLACE = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
"""What says, beside the settings, where a bucket is; nobody's secret."""
STORE_SETTINGS = {"store", "s3_endpoint_url", "s3_addressing", "s3_checksums", "output"}
"""What a job is given to remember, so that its results are found by its address alone."""
STOP_S = 60
"""For a driver that is told to stop: it ends its problems and writes its manifest."""


@dataclass(frozen=True, slots=True)
class Left:
    """Who followed a run stopped following it."""

    run_id: str
    job: Job

    def __str__(self) -> str:
        there = f"{self.run_id} --on-cluster {self.job.address}"
        return (
            f"run {self.run_id} goes on at {self.job.address}; follow it: kdrun logs {there} "
            f"--follow; end it: kdrun stop {there}"
        )


def check(settings: Settings) -> None:
    """Refuse what cannot be a run on another cluster, before anything is asked.

    Raises:
        UsageError: it cannot be meant.
    """
    assert settings.on_cluster is not None
    address = dashboard(settings.on_cluster)
    if settings.address is not None:
        raise UsageError("--address and --on-cluster: a run is driven from here or there")
    if settings.store is None and not is_local(address):
        raise UsageError(
            f"--on-cluster {address}: results must go where both sides reach them",
            hint="--store s3://bucket/prefix",
        )
    if settings.send_credentials:
        _credentials()


def submit(submission: Submission, settings: Settings, say: Say) -> Manifest | Left:
    """Send a run to a cluster, follow what its driver says, and return what became of it.

    Raises:
        ClusterError: no cluster there, or the run's driver came to an end of its own.
        UsageError: it is being worked on there already.
        StoreError: results cannot be written.
    """
    assert settings.on_cluster is not None
    jobs = Jobs(settings.on_cluster)
    run_id = submission.run.run_id
    for one in jobs.all():
        if one.run_id == run_id and one.active:
            there = f"{run_id} --on-cluster {jobs.address}"
            raise UsageError(
                f"run {run_id} is being worked on at {jobs.address}",
                hint=f"`kdrun logs {there} --follow`, `kdrun stop {there}`, or another --run-id",
            )
    submission = sent_from_here(submission, say)
    if not submission.todo:
        return drive(submission, settings, say)
    job = _send(jobs, submission, settings)
    say(f"sent to {jobs.address} as {job.job_id}; Ctrl-C leaves it running")
    try:
        return _followed(jobs, job, settings, run_id, say)
    except KeyboardInterrupt:
        return Left(run_id, job)


def follow(settings: Settings, run_id: str, say: Say) -> Manifest | Left:
    """Follow a run that was sent before, from its beginning."""
    jobs, found = find(settings, run_id)
    try:
        return _followed(jobs, found.job, settings_of(found, settings), run_id, say)
    except KeyboardInterrupt:
        return Left(run_id, found.job)


def printed(settings: Settings, run_id: str) -> str:
    """What the driver of a run has said until now."""
    jobs, found = find(settings, run_id)
    return jobs.log(found.job)


def stop(settings: Settings, run_id: str) -> Manifest:
    """End a run as Ctrl-C would, and return how it stands.

    Raises:
        UsageError: it has ended, or was not sent to a cluster.
        ClusterError: no such run there, or it does not end.
    """
    if settings.on_cluster is None and (manifest := _manifest(settings, run_id)).job is None:
        if (state := manifest.state_now()) != "running":
            raise UsageError(f"run {run_id} has ended: {state}")
        hint = "Ctrl-C ends it where it was started"
        raise UsageError(f"run {run_id} was not sent to a cluster", hint=hint)
    jobs, found = find(settings, run_id)
    if not found.active:
        raise UsageError(f"run {run_id} has ended at {jobs.address}: {found.state}")
    jobs.stop(found.job, STOP_S + 10)
    return _ended(settings_of(found, settings), run_id)


def listed(settings: Settings) -> list[Found]:
    """Every run that was sent to the cluster which the settings name."""
    assert settings.on_cluster is not None
    return Jobs(settings.on_cluster).all()


def find(settings: Settings, run_id: str) -> tuple[Jobs, Found]:
    """A run's last job: at the address that is named, or else at the one in its manifest.

    Raises:
        UsageError: it was not sent to a cluster.
        ClusterError: nobody answers there, or it is not known there.
        StoreError: no such run.
    """
    if settings.on_cluster is not None:
        jobs = Jobs(settings.on_cluster)
        return jobs, jobs.of_run(run_id)
    manifest = _manifest(settings, run_id)
    if manifest.job is None:
        state = manifest.state_now()
        ended = "" if state == "running" else f", and has ended: {state}"
        problems = list_known_names([row.label for row in manifest.rows])
        raise UsageError(
            f"run {run_id} was not sent to a cluster{ended}",
            hint=f"`kdrun logs {run_id} PROBLEM` shows what one problem printed; {problems}",
        )
    jobs = Jobs(manifest.job.address)
    return jobs, jobs.look(manifest.job)


def settings_of(found: Found, settings: Settings) -> Settings:
    """The settings, with the run's own store where they name none."""
    if settings.store is not None:
        return settings
    there = {name: found.settings[name] for name in STORE_SETTINGS & set(found.settings)}
    return Settings.model_validate(settings.model_dump() | there)


def _send(jobs: Jobs, submission: Submission, settings: Settings) -> Job:
    run = submission.run
    job = Job(address=jobs.address, job_id=_job_id(run.run_id))
    output = settings.output.absolute()
    aside = None if run.shared is None else Path("/tmp") / job.job_id
    there: dict[str, Any] = {
        "address": "auto",
        "on_cluster": None,
        "send_credentials": False,
        "run_id": run.run_id,
        "output": aside or output,
        # What they select is in the parcel.
        "data": None,
        "level": [],
        "problem": [],
        "start": 0,
        "count": None,
    }
    remembered = settings.model_copy(update={"output": output})
    problems = [item.problem for item in submission.items]
    with parcel(job.job_id, problems) as folder:
        sent = Sent(
            job=job,
            settings=settings.model_copy(update=there).model_dump(mode="json"),
            arguments=dict(run.arguments),
            origin=submission.origin,
            data=run.data,
            problems=[item.label for item in submission.items],
            aside=aside,
        )
        (folder / JOB_FILE).write_text(sent.model_dump_json(indent=1), encoding="utf-8")
        _write(_announced(submission, job), settings, sent.problems)
        try:
            jobs.send(
                run.run_id,
                folder,
                remembered.model_dump(mode="json", include=STORE_SETTINGS),
                _environment(settings),
            )
        except ClusterError:
            _ended(settings, run.run_id)
            raise
    return job


def _job_id(run_id: str) -> str:
    """New for each time that a run is sent; part of URLs and paths."""
    return f"kdrun-{re.sub('[^A-Za-z0-9_.-]+', '-', run_id)}-{secrets.token_hex(3)}"


def _environment(settings: Settings) -> dict[str, str]:
    """What the driver and the workers there are told beside the settings; models' code is not."""
    told = {name: os.environ[name] for name in PLACE if name in os.environ}
    told["RAY_JOB_STOP_WAIT_TIME_S"] = str(STOP_S)
    return told | (_credentials() if settings.send_credentials else {})


def _credentials() -> dict[str, str]:
    found = {name: os.environ[name] for name in CREDENTIALS if name in os.environ}
    if not set(CREDENTIALS[:2]) <= set(found):
        raise UsageError(
            f"--send-credentials: no {' and '.join(CREDENTIALS[:2])} in the environment",
            hint='for a profile: eval "$(aws configure export-credentials --format env)"',
        )
    return found


def _followed(jobs: Jobs, job: Job, settings: Settings, run_id: str, say: Say) -> Manifest:
    """Tell what the driver says, and judge by the manifest; what it ended with is an error here."""
    failed: list[str] = []

    def tell(line: str) -> None:
        if line.startswith(FAILED):
            failed.append(line.removeprefix(FAILED))
        else:
            say(line)

    found = jobs.follow(job, tell, say)
    manifest = _ended(settings, run_id)
    if found.state == "stopped" or manifest.state == "finished":
        return manifest
    if failed:
        in_s3 = settings.store is not None and settings.store.startswith("s3:")
        lacks = "where the cluster lacks credentials, --send-credentials gives it those from here"
        hint = lacks if in_s3 and not settings.send_credentials else None
        raise ClusterError(f"on the cluster at {jobs.address}: {failed[-1]}", hint=hint)
    said = found.message.strip().partition("\n")[0].partition(", last available logs")[0]
    raise ClusterError(
        f"{job.job_id} at {jobs.address} {found.state}: {said or 'it does not say why'}",
        hint="the same command again does what is left",
    )


def _announced(submission: Submission, job: Job) -> Manifest:
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


def _ended(settings: Settings, run_id: str) -> Manifest:
    """The run's manifest, which says that it ended even where its driver could not."""
    manifest = _manifest(settings, run_id)
    if manifest.state == "running":
        now = datetime.now(UTC)
        changes = {"state": "interrupted", "updated": now, "finished": now}
        labels = [row.label for row in manifest.rows]
        manifest = _write(manifest.model_copy(update=changes), settings, labels)
    return manifest


def _manifest(settings: Settings, run_id: str) -> Manifest:
    if settings.store is None:
        return DirectoryStore(settings.output).manifest(run_id)
    return looked_at(settings).manifest(run_id)


def _write(manifest: Manifest, settings: Settings, labels: Collection[str]) -> Manifest:
    """Where the run's manifest is; `labels` are the problems that it is about."""
    shared = store_of(settings)
    if shared is not None:
        return shared.save_manifest(manifest, labels)
    DirectoryStore(settings.output).write_manifest(manifest)
    return manifest
