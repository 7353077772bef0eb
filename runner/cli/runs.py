"""Defines `kdrun pull`, `kdrun status` and `kdrun logs`."""

from pathlib import Path
from typing import Any

import click

from runner.cli.completion import run_names
from runner.cli.help import examples
from runner.cli.options import JSON, SettingsCommand, new_console, settings_from
from runner.statuses import STATUSES


@click.command(
    cls=SettingsCommand,
    settings=("store", "level", "problem"),
    epilog=examples(
        "kdrun pull nightly --store s3://results/kdrun",
        "kdrun pull nightly here --store s3://results/kdrun --problem '*resnet*'",
    ),
)
@click.argument("run", shell_complete=run_names)
@click.argument("destination", metavar="[DEST]", required=False, type=click.Path(path_type=Path))
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
    cls=SettingsCommand,
    settings=("output", "store"),
    epilog=examples(
        "kdrun status",
        "kdrun status nightly --status failed --status error",
        "kdrun status nightly --store s3://results/kdrun",
    ),
)
@click.argument("run", required=False, shell_complete=run_names)
@click.option(
    "--status",
    "statuses",
    type=click.Choice(STATUSES),
    multiple=True,
    help="Only the problems of RUN that ended so; repeatable; default all.",
)
@JSON
def status(run: str | None, statuses: Any, config: Path | None, as_json: bool, **flags: Any) -> int:
    """List runs and how each stands, or show one with its problems."""
    from runner.batch import stored_results
    from runner.cli import run_tables

    if statuses and run is None:
        raise click.UsageError(f"--status {statuses[0]}: of which run? Name a RUN, too.")
    settings = settings_from(flags, config)
    location, manifests, unreadable = stored_results.read_manifests(settings, run)
    if as_json:
        click.echo(run_tables.runs_json(manifests, statuses, unreadable))
    elif not manifests and not unreadable:
        click.echo(f"no runs in {location}")
    elif run is None:
        new_console().print(run_tables.runs_table(manifests, unreadable))
        for reason in unreadable.values():
            click.echo(f"but mind: {reason}", err=True)
    else:
        _show_run(manifests[0], location, statuses, settings)
    return 0


def _show_run(manifest: Any, location: str, statuses: Any, settings: Any) -> None:
    """Print the state of a run and its problems, or only the problems with some statuses."""
    from runner.batch import stored_results
    from runner.cli import run_tables

    console = new_console()
    if not statuses:
        console.print(run_tables.runs_table([manifest]))
        store_location = None if settings.store is None else location
        command = stored_results.status_command(settings, manifest.run_id)
        run_tables.print_run(manifest, settings.output, console, store_location, command)
    elif any(manifest.counts.get(status) for status in statuses):
        run_tables.print_problems(manifest, statuses, console)
    else:
        counts = ", ".join(f"{n} {status}" for status, n in manifest.counts.items())
        message = f"no problem of {manifest.run_id} ended as {' or '.join(statuses)}"
        console.print(f"{message}: {counts or 'none has ended'}", soft_wrap=True)


@click.command(
    cls=SettingsCommand,
    settings=("output", "store"),
    epilog=examples("kdrun logs nightly vit_block"),
)
@click.argument("run", shell_complete=run_names)
@click.argument("problem")
def logs(run: str, problem: str, config: Path | None, **flags: Any) -> None:
    """Print what the process of PROBLEM printed in RUN."""
    from runner.batch.child import problem_logs

    output = problem_logs.read_log(settings_from(flags, config), run, problem)
    if not output:
        click.echo(f"{problem} printed nothing", err=True)
    click.echo(output, nl=False)
