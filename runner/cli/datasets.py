"""Defines `kdrun data`: lists problems, fetches and checks KernelBench."""

from pathlib import Path
from typing import Any

import click

from runner.cli.completion import problem_names
from runner.cli.help import Group, examples
from runner.cli.options import JSON, SettingsCommand, new_console, settings_from
from runner.errors import DatasetError


@click.group(cls=Group, epilog=examples("kdrun data list", "kdrun data fetch"))
def data() -> None:
    """List problems and their constants; fetch and check KernelBench."""


@data.command(
    "list",
    cls=SettingsCommand,
    settings=("level", "data"),
    epilog=examples("kdrun data list --level 3", "kdrun data list --json"),
)
@JSON
def data_list(config: Path | None, as_json: bool, **flags: Any) -> int:
    """List the problems of each level, with an idea of each in a line."""
    from runner.cli import problem_lists
    from runner.problems import data_root, select_problems
    from runner.problems.problem import summarize_problem

    settings = settings_from(flags, config)
    root = data_root(settings.data)
    problems = [
        (problem, summarize_problem(problem)) for problem in select_problems(root, settings.level)
    ]
    if as_json:
        click.echo(problem_lists.problems_json(problems))
    else:
        click.echo(root, err=True)
        if root.samples is not None:
            click.echo(f"{root.samples}, by name as samples/NAME", err=True)
        problem_lists.print_problem_list(problems, new_console())
    return 0


@data.command(
    "show",
    cls=SettingsCommand,
    settings=("data",),
    epilog=examples("kdrun data show vit_block", "kdrun data show my_model.py"),
)
@click.argument("problem", metavar="NAME|FILE", shell_complete=problem_names)
@JSON
def data_show(problem: str, config: Path | None, as_json: bool, **flags: Any) -> int:
    """List a problem's constants, which --set changes.

    They are literals with a name: at the top of the file, or in get_inputs() and get_init_inputs().
    """
    from runner.cli import problem_lists
    from runner.problems import data_root, read_problem
    from runner.problems.selection import select_problem
    from runner.problems.variants import problem_constants

    settings = settings_from(flags, config)
    found = read_problem(select_problem(problem, data_root(settings.data)).path)
    literals = problem_constants(found)
    if as_json:
        click.echo(problem_lists.constants_json(found, literals))
    else:
        problem_lists.print_constants(found, literals, new_console())
    return 0


@data.command(epilog=examples("kdrun data fetch", "kdrun data fetch --from ../KernelBench"))
@click.option(
    "--from",
    "source",
    help="Checkout, git directory or archive of KernelBench; default a download.",
)
@click.option(
    "--to",
    "destination",
    type=click.Path(path_type=Path),
    help="Directory to write the problems to; default data/kernelbench/.",
)
def fetch(source: str | None, destination: Path | None) -> int:
    """Fetch KernelBench's 250 problems, at a pinned commit.

    They go to data/kernelbench/, with this project's gpt_oss. Exit code 1 where the source lacks
    some.
    """
    from runner.problems.dataset import fetch_dataset
    from runner.problems.selection import KERNELBENCH

    report = fetch_dataset(source, destination or KERNELBENCH)
    click.echo(f"{report.destination}: {report.written} written, {report.kept} there already")
    for difference, names in (("missing", report.missing), ("changed", report.changed)):
        for name in names:
            click.echo(f"{difference} in {report.source}: {name}")
    return 0 if report.complete else 1


@data.command(
    cls=SettingsCommand,
    settings=("data",),
    epilog=examples("kdrun data check", "kdrun data check --data my_copy"),
)
def check(config: Path | None, **flags: Any) -> int:
    """Compare KernelBench with its manifest, file by file.

    It is looked for where `kdrun data list` finds it.
    """
    from runner.problems import data_root
    from runner.problems.dataset import check_dataset

    settings = settings_from(flags, config)
    root = data_root(settings.data)
    if root.kind == "samples":
        raise DatasetError(
            f"KernelBench is not here: the problems are {root}", hint="`kdrun data fetch` gets it"
        )
    report = check_dataset(root.path)
    differences = (
        ("missing", report.missing),
        ("changed", report.changed),
        ("extra", report.extra),
    )
    for difference, names in differences:
        for name in names:
            click.echo(f"{difference}: {name}")
    counts = ", ".join(f"{len(names)} {difference}" for difference, names in differences)
    click.echo(f"{report.root}: {report.right} right, {counts}")
    return 0 if report.ok else 1
