"""Defines `kdrun prompt`."""

from pathlib import Path
from typing import Any

import click

from runner.cli.completion import problem_names
from runner.cli.help import examples
from runner.cli.options import SettingsCommand, settings_from, start_child_server


@click.command(
    cls=SettingsCommand,
    settings=("data", "mode"),
    epilog=examples("kdrun prompt vit_block", "kdrun prompt my_model.py > brief.md"),
)
@click.argument("problem", metavar="NAME|FILE|MODULE:FUNCTION", shell_complete=problem_names)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory that the brief says to write to; default the problem's name.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "messages"]),
    default="text",
    help="Text, or JSON messages of a chat; default text.",
)
def prompt(problem: str, output: Path | None, form: str, config: Path | None, **flags: Any) -> int:
    """Print the brief for taking one model apart by hand.

    It holds the rules, the formats, the source and each operation's shapes.
    """
    start_child_server(problem)
    from runner.batch.child.answer import FactsAnswer
    from runner.batch.decomposer.decomposer_process import verify_flags
    from runner.batch.submit import run_locally, run_options
    from runner.errors import ProblemError
    from runner.problems import identify_problem
    from runner.problems.package_model import find_problem
    from runner.prompts import render_brief

    settings = settings_from(flags, config)
    file, _ = find_problem(problem, None, None, settings.data, settings.output)
    selected = identify_problem(file)
    answer = run_locally("facts", selected.path, selected.name, settings)
    if not isinstance(answer, FactsAnswer):
        raise ProblemError(selected.path, answer.reason or answer.status)
    brief = render_brief(
        selected,
        answer.facts,
        (output or Path(selected.name)).absolute(),
        mode=settings.mode,
        flags=verify_flags(run_options(settings)),
    )
    if answer.facts.reason:
        click.echo(f"but mind: {selected.path}: not captured: {answer.facts.reason}", err=True)
    click.echo(brief.text() if form == "text" else brief.messages(), nl=False)
    return 0
