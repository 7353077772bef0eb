"""Packs the folder that travels with a Ray job: kdrun's code, the problems and the settings.

The folder becomes the working directory of the job's driver and of every worker:

`job.json`     the settings, and the problems in their order
`problems/`    the problem files, by level and name
`runner/`      this version of kdrun, so that no machine there runs another
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import runner
from runner.batch.plan import label
from runner.errors import ProblemError
from runner.problems import Problem
from runner.store.manifest import Job
from runner.store.result import Document

JOB_FILE = "job.json"
PROBLEMS = "problems"


class JobDescription(Document):
    """Content of `job.json`: everything that a job's driver needs to know."""

    job: Job
    settings: dict[str, Any]
    """Settings for the driver on the cluster."""
    arguments: dict[str, Any]
    """Settings of the sender, for the manifest."""
    origin: str
    """Origin of the problems, for people."""
    data: str
    """Directory of the problems on the sender's machine."""
    problems: list[str]
    """Labels of the problems, in the order of the run."""
    aside: Path | None
    """Directory in which workers build what they upload; None for the output directory."""

    def problem_files(self, folder: Path) -> list[Path]:
        """Return the problem files below the job's folder, in the order of the run."""
        return [folder / PROBLEMS / f"{problem_label}.py" for problem_label in self.problems]


@contextmanager
def package_job(job_id: str, problems: Sequence[Problem] = ()) -> Iterator[Path]:
    """Make a temporary folder, named after the job, with kdrun's code and the problems.

    Raises:
        ProblemError: a problem file cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="kdrun-") as temporary_folder:
        folder = Path(temporary_folder) / job_id
        code_folder = Path(runner.__file__).parent
        shutil.copytree(
            code_folder, folder / code_folder.name, ignore=shutil.ignore_patterns("__pycache__")
        )
        for problem in problems:
            destination = folder / PROBLEMS / f"{label(problem)}.py"
            destination.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copyfile(problem.path, destination)
            except OSError as error:
                raise ProblemError(problem.path, f"cannot be read: {error.strerror}") from error
        yield folder
