"""Defines `kdrun pull` and `kdrun status`."""

from pathlib import Path
from typing import Any

import click

from runner.cli.clusters import show_run, show_sent_runs
from runner.cli.completion import run_names
from runner.cli.help import examples
from runner.cli.options import (
    CONFIG,
    JSON,
    LEVEL,
    ON_CLUSTER,
    OUTPUT_TO_READ,
    PROBLEM,
    STORE_TO_READ,
    new_console,
    settings_from,
)
from runner.statuses import STATUSES


@click.command(
    epilog=examples(
        "kdrun pull nightly --store s3://results/kdrun",
        "kdrun pull nightly here --store s3://results/kdrun --problem '*resnet*'",
    )
)
@click.argument("run", shell_complete=run_names)
@click.argument("destination", metavar="[DEST]", required=False, type=click.Path(path_type=Path))
@STORE_TO_READ
@LEVEL
@PROBLEM
@CONFIG
@JSON
def pull(
    run: str, destination: Path | None, config: Path | None, as_json: bool, **flags: Any
) -> int:
    """Copy a run from its store, checked file by file.

    DEST is a directory; the run's name where none is given.
    """
    from runner.batch import stored_results
    from runner.cli import run_tables

    console = new_console(stderr=as_json)
    settings = settings_from(flags, config)
    directory = destination or Path(run)
    outcomes = stored_results.pull_results(
        settings,
        run,
        directory,
        lambda outcome: run_tables.print_pull_outcome(outcome, directory, console),
    )
    if as_json:
        click.echo(run_tables.pull_outcomes_json(outcomes))
    console.print(
        f"{sum(outcome.is_present for outcome in outcomes)} of {len(outcomes)} in {directory}",
        soft_wrap=True,
    )
    return 0 if all(outcome.is_present for outcome in outcomes) else 1


@click.command(
    epilog=examples(
        "kdrun status",
        "kdrun status nightly --status failed --status error",
        "kdrun status nightly --store s3://results/kdrun",
    )
)
@click.argument("run", required=False, shell_complete=run_names)
@OUTPUT_TO_READ
@STORE_TO_READ
@ON_CLUSTER
@click.option(
    "--status",
    "statuses",
    type=click.Choice(STATUSES),
    multiple=True,
    help="Only the problems of RUN that ended so; repeatable; default all.",
)
@CONFIG
@JSON
def status(run: str | None, statuses: Any, config: Path | None, as_json: bool, **flags: Any) -> int:
    """List runs and how each stands, or show one with its problems."""
    from runner.batch import stored_results
    from runner.cli import run_tables

    if statuses and run is None:
        raise click.UsageError(f"--status {statuses[0]}: of which run? Name a RUN, too.")
    settings = settings_from(flags, config)
    if settings.on_cluster is not None:
        return show_sent_runs(settings, run, statuses, as_json)
    location, manifests = stored_results.read_manifests(settings, run)
    if as_json:
        click.echo(run_tables.runs_json(manifests, statuses))
    elif not manifests:
        click.echo(f"no runs in {location}")
    elif run is None:
        new_console().print(run_tables.runs_table(manifests))
    else:
        show_run(manifests[0], location, statuses, settings)
    return 0
