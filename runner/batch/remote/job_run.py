"""Drives a run that was sent to this cluster as a Ray job."""

import shutil
from dataclasses import replace
from pathlib import Path

from runner.batch.remote.job_package import JOB_FILE, JobDescription
from runner.batch.submit import Submission, drive, plan_submission, print_to_stderr
from runner.config import Settings
from runner.errors import ClusterError
from runner.problems import identify_problem
from runner.store.manifest import Manifest


def drive_sent_run(folder: Path) -> Manifest:
    """Drive the run that the folder's job.json describes, and return its manifest.

    Raises:
        KdrunError: the run cannot be driven here.
    """
    description = JobDescription.model_validate_json(
        (folder / JOB_FILE).read_text(encoding="utf-8")
    )
    settings = Settings.model_validate(description.settings)
    problems = [identify_problem(file) for file in description.problem_files(folder)]
    submission = plan_submission(
        settings, problems, origin=description.origin, data=description.data
    )
    _refuse_unseen_run(submission, settings)
    run = replace(
        submission.run,
        arguments=description.arguments,
        cluster_job=description.job,
        work_directory=description.aside,
    )
    try:
        return drive(replace(submission, run=run), settings, print_to_stderr)
    finally:
        if description.aside is not None:
            shutil.rmtree(description.aside, ignore_errors=True)


def _refuse_unseen_run(submission: Submission, settings: Settings) -> None:
    """Raise ClusterError if this machine does not see the manifest that the sender wrote."""
    run = submission.run
    if run.shared_store is not None:
        is_visible = run.shared_store.find_manifest(run.run_id) is not None
    else:
        is_visible = run.run_id in run.store.run_ids()
    if not is_visible:
        raise ClusterError(
            f"the cluster does not see run {run.run_id} in {run.shared_store or settings.output}",
            hint="name a --store that both sides reach, such as s3://bucket/prefix",
        )
