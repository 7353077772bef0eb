"""`kdrun prompt`: a child process gathers the facts of one problem, and its brief is written."""

import tempfile
from pathlib import Path

from runner.batch import attempt
from runner.batch.child.task import Task
from runner.batch.cluster import usable_bytes
from runner.batch.decomposer import decomposer_process
from runner.batch.machine import cores
from runner.batch.submit import run_options
from runner.config import Settings
from runner.errors import ProblemError
from runner.problems import find_problem, identify_problem
from runner.prompts import Brief, render_brief


def brief(pattern: str, settings: Settings, output: Path | None) -> tuple[Brief, str | None]:
    """Return the brief for the one problem that a path, a name, a glob or `module:function` means,
    and a note where its program could not be captured.

    Raises:
        UsageError: none is meant, or several are.
        ProblemError: its file is broken.
    """
    file, _ = find_problem(pattern, None, None, settings.data, settings.output)
    problem = identify_problem(file)
    most = usable_bytes(settings.memory)
    place = output or Path(problem.name)
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        task = Task(
            problem=problem.path,
            label=problem.name,
            directory=place.absolute(),
            scratch=Path(aside) / "scratch",
            options=run_options(settings),
            memory_bytes=most,
            most_memory_bytes=most,
            threads=cores(),
            timeout_s=settings.timeout,
        )
        record = attempt.collect_facts(task, Path(aside) / "log").record
    if record.facts is None:
        raise ProblemError(problem.path, record.reason or record.status)
    rendered = render_brief(
        problem,
        record.facts,
        place.absolute(),
        mode=task.options.mode,
        flags=decomposer_process.verify_flags(task.options),
    )
    reason = record.facts.reason
    return rendered, f"{problem.path}: not captured: {reason}" if reason else None
