"""Defines `kdrun logs` and `kdrun stop`, and prints the runs that were sent to a cluster."""

from pathlib import Path
from typing import Any

import click

from runner.cli.completion import run_names
from runner.cli.help import examples
from runner.cli.options import (
    CONFIG,
    ON_CLUSTER,
    OUTPUT_TO_READ,
    STORE_TO_READ,
    new_console,
    settings_from,
)
from runner.errors import INTERRUPTED


@click.command(
    epilog=examples(
        "kdrun logs nightly vit_block",
        "kdrun logs nightly --on-cluster http://10.0.0.5:8265 --follow",
    )
)
@click.argument("run", shell_complete=run_names)
@click.argument("problem", required=False)
@OUTPUT_TO_READ
@STORE_TO_READ
@ON_CLUSTER
@click.option(
    "--follow", is_flag=True, help="Print until the run has ended; Ctrl-C leaves it running."
)
@CONFIG
def logs(run: str, problem: str | None, follow: bool, config: Path | None, **flags: Any) -> int:
    """Print the output of a problem, or of a run on a cluster.

    With PROBLEM: what its own process printed in RUN. Without: what the driver of a RUN that was
    sent to a cluster says.
    """
    from runner.batch.child import problem_logs as problem_logs
    from runner.batch.remote import remote_runs
    from runner.batch.submit import print_to_stderr

    settings = settings_from(flags, config)
    if problem is not None:
        if settings.on_cluster is not None and settings.store is None:
            settings = remote_runs.settings_of(remote_runs.find_job(settings, run)[1], settings)
        output = problem_logs.read_log(settings, run, problem)
        if not output:
            click.echo(f"{problem} printed nothing", err=True)
        click.echo(output, nl=False)
        return 0
    if not follow:
        click.echo(remote_runs.read_driver_log(settings, run), nl=False)
        return 0
    outcome = remote_runs.follow(settings, run, print_to_stderr)
    if isinstance(outcome, remote_runs.DetachedRun):
        click.echo(outcome, err=True)
        return INTERRUPTED
    return 0 if outcome.all_passed else 1


@click.command(epilog=examples("kdrun stop nightly --on-cluster http://10.0.0.5:8265"))
@click.argument("run", shell_complete=run_names)
@OUTPUT_TO_READ
@STORE_TO_READ
@ON_CLUSTER
@CONFIG
def stop(run: str, config: Path | None, **flags: Any) -> int:
    """Stop a run on a cluster; what is done stays done.

    It ends as Ctrl-C ends one here: the same `kdrun submit` again does what is left.
    """
    from runner.batch.remote import remote_runs

    manifest = remote_runs.stop(settings_from(flags, config), run)
    passed = f"{manifest.counts.get('passed', 0)} of {manifest.selected} passed"
    click.echo(f"run {run} {manifest.state}: {passed}; submitted again, it goes on from there")
    return 0


def show_sent_runs(settings: Any, run: str | None, statuses: Any, as_json: bool) -> int:
    """Print the runs that were sent to a cluster; with `run` also the problems of that run."""
    from runner.batch import stored_results
    from runner.batch.remote import remote_runs
    from runner.cli import run_tables

    runs = [
        sent_run for sent_run in remote_runs.list_runs(settings) if run in (None, sent_run.run_id)
    ]
    manifests: list[Any] = []
    if run is not None and runs:
        settings = remote_runs.settings_of(runs[-1], settings)
        location, manifests = stored_results.read_manifests(settings, run)
    if as_json:
        click.echo(run_tables.sent_runs_json(runs, manifests, statuses))
        return 0
    if not runs:
        click.echo(f"no run{'s' if run is None else f' {run!r}'} at {settings.on_cluster}")
        return 0 if run is None else 1
    if not statuses:
        new_console().print(run_tables.sent_runs_table(runs))
    for manifest in manifests:
        show_run(manifest, location, statuses, settings)
    return 0


def show_run(manifest: Any, location: str, statuses: Any, settings: Any) -> None:
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
