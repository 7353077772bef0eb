"""This file knows about a run that was sent to this cluster, seen from its driver."""

import shutil
from dataclasses import replace
from pathlib import Path

from runner.batch.remote.job_package import JOB_FILE, Sent
from runner.batch.submit import Submission, drive, planned, to_stderr
from runner.config import Settings
from runner.errors import ClusterError
from runner.problems import identify
from runner.store.manifest import Manifest


def driven(folder: Path) -> Manifest:
    """Do what the folder's job.json says.

    Raises:
        KdrunError: it cannot be done here.
    """
    sent = Sent.model_validate_json((folder / JOB_FILE).read_text(encoding="utf-8"))
    settings = Settings.model_validate(sent.settings)
    problems = [identify(file) for file in sent.files(folder)]
    submission = planned(settings, problems, origin=sent.origin, data=sent.data)
    _refuse_another_place(submission, settings)
    run = replace(
        submission.run, arguments=sent.arguments, cluster_job=sent.job, work_directory=sent.aside
    )
    try:
        return drive(replace(submission, run=run), settings, to_stderr)
    finally:
        if sent.aside is not None:
            shutil.rmtree(sent.aside, ignore_errors=True)


def _refuse_another_place(submission: Submission, settings: Settings) -> None:
    """The run's manifest was written before it was sent: who does not see it looks elsewhere."""
    run = submission.run
    if run.shared_store is not None:
        seen = run.shared_store.find_manifest(run.run_id) is not None
    else:
        seen = run.run_id in run.store.run_ids()
    if not seen:
        raise ClusterError(
            f"the cluster does not see run {run.run_id} in {run.shared_store or settings.output}",
            hint="name a --store that both sides reach, such as s3://bucket/prefix",
        )
