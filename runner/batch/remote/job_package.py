"""This file knows about what travels with a job: kdrun's own code, the problems, the settings.

A job's folder becomes its working directory, on its driver's machine and on every worker's:

`job.json`     what is to be done: the settings, the problems in their order
`problems/`    the problem files, by level and name
`runner/`      this very kdrun, so that no machine there can have another
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
    """What a job's driver is told."""

    job: Job
    settings: dict[str, Any]
    """As they hold there."""
    arguments: dict[str, Any]
    """The settings of who sent it, for the manifest."""
    origin: str
    """Where the problems came from, in words."""
    data: str
    """The directory that they came from."""
    problems: list[str]
    """Their labels, in their order."""
    aside: Path | None
    """Where workers build what then goes to the store; None: in the output directory."""

    def problem_files(self, folder: Path) -> list[Path]:
        """The problems, in their order."""
        return [folder / PROBLEMS / f"{problem_label}.py" for problem_label in self.problems]


@contextmanager
def package_job(job_id: str, problems: Sequence[Problem] = ()) -> Iterator[Path]:
    """A folder of the job's name with our code and the problems in it; it goes when it was sent.

    Raises:
        ProblemError: a problem cannot be read any more.
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
