"""Writes the brief of one problem for `kdrun prompt`; a child process collects the facts."""

from pathlib import Path

from runner.batch.child.answer import FactsAnswer
from runner.batch.decomposer import decomposer_process
from runner.batch.submit import run_locally, run_options
from runner.config import Settings
from runner.errors import ProblemError
from runner.problems import find_problem, identify_problem
from runner.prompts import Brief, render_brief


def write_brief(pattern: str, settings: Settings, output: Path | None) -> tuple[Brief, str | None]:
    """Return the brief for the problem that a path, name, glob or `module:function` selects.

    The second value is a note if the program could not be captured, else None.

    Raises:
        UsageError: the pattern selects no problem, or several.
        ProblemError: the problem file is broken.
    """
    file, _ = find_problem(pattern, None, None, settings.data, settings.output)
    problem = identify_problem(file)
    directory = output or Path(problem.name)
    answer = run_locally("facts", problem.path, problem.name, settings)
    if not isinstance(answer, FactsAnswer):
        raise ProblemError(problem.path, answer.reason or answer.status)
    rendered = render_brief(
        problem,
        answer.facts,
        directory.absolute(),
        mode=settings.mode,
        flags=decomposer_process.verify_flags(run_options(settings)),
    )
    reason = answer.facts.reason
    return rendered, f"{problem.path}: not captured: {reason}" if reason else None
