"""This file knows about the command line for agents and people who take problems apart by hand."""

from pathlib import Path
from typing import Any

import click

from runner.cli.options import CONFIG, DATA, F, settings_from


def decomposer_options(command: F) -> F:
    """Options of what may let somebody else's command take problems apart."""
    for option in reversed(
        (
            click.option("--decomposer", help="A command that takes problems apart."),
            click.option(
                "--decomposer-on-failure",
                is_flag=True,
                default=None,
                help="Use it only where the computed decomposition does not pass.",
            ),
            click.option("--rounds", type=int, help="Most runs of it for a problem; default 3."),
            click.option("--pass-env", multiple=True, help="A variable that it gets; repeatable."),
        )
    ):
        command = option(command)
    return command


@click.command()
@click.argument("problem")
@DATA
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Where the decomposition is to be written; default a folder of the problem's name.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "messages"]), default="text", show_default=True
)
@click.option("--mode", type=click.Choice(["eval", "train"]), help="Default eval.")
@CONFIG
def prompt(problem: str, output: Path | None, form: str, config: Path | None, **flags: Any) -> int:
    """Print the brief for taking PROBLEM (a file, or a name or glob) apart by hand."""
    from runner.batch.child import start_zygote
    from runner.problems import is_problem

    if not Path(problem).is_file() or is_problem(Path(problem)):
        start_zygote()  # It imports torch while this process imports the rest.
    from runner.batch import briefing

    settings = settings_from(flags, config)
    told = briefing.brief(problem, settings, output)
    if told.note:
        click.echo(f"but mind: {told.note}", err=True)
    click.echo(told.brief.text() if form == "text" else told.brief.messages(), nl=False)
    return 0
