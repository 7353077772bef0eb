"""This file knows about the commands that take models apart and verify them."""

import json
from pathlib import Path
from typing import Any

import click

from runner.cli.agents import decomposer_options
from runner.cli.options import (
    DATA,
    LEVEL,
    MODE,
    ON_CLUSTER,
    OUTPUT,
    STORE,
    new_console,
    settings_from,
    working_options,
)
from runner.errors import INTERRUPTED, UsageError


@click.command()
@LEVEL
@click.option("--problem", multiple=True, help="Glob, file or MODULE:FUNCTION; repeatable.")
@click.option("--start", type=int, help="Skip so many of the sorted selection.")
@click.option("--count", type=int, help="Take so many of the sorted selection.")
@DATA
@OUTPUT
@STORE
@click.option("--run-id", help="Name of the run; default the time.")
@click.option("--address", help="A Ray to drive from here; default one of our own.")
@ON_CLUSTER
@click.option(
    "--send-credentials",
    is_flag=True,
    default=None,
    help="Let the cluster have this environment's AWS_* credentials.",
)
@click.option("--num-cpus", type=float, help="CPUs for each problem; default 1.")
@click.option("--num-gpus", type=float, help="GPUs for each problem, 0.5 too; default 0.")
@click.option("--workers", type=int, help="Most problems at once.")
@click.option(
    "--wait-for-nodes",
    is_flag=True,
    default=None,
    help="What no node can hold waits for one that can: for clusters that grow.",
)
@click.option(
    "--retries",
    multiple=True,
    metavar="[CAUSE=]N",
    help="Most retries, for all or one of preempted, node_lost, worker_lost, out_of_memory, "
    "disk_full; repeatable.",
)
@MODE
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="Of what stderr says; default text."
)
@click.option("--only-failed", is_flag=True, default=None, help="Only what has not passed before.")
@click.option("--no-resume", is_flag=True, help="Run what passed before again, too.")
@decomposer_options
@working_options
@click.option("--dry-run", is_flag=True, help="Print the plan with estimated memory.")
def submit(config: Path | None, as_json: bool, dry_run: bool, no_resume: bool, **flags: Any) -> int:
    """Take many problems apart on a Ray, verify them, and write a manifest."""
    from runner.batch import submit as batch

    settings = settings_from(flags | ({"resume": False} if no_resume else {}), config)
    if settings.on_cluster is not None:
        from runner.batch.remote import sending

        sending.check(settings)
    submission = batch.prepare(settings, dry=dry_run)
    if dry_run:
        _show_plan(batch.preview(submission, settings, batch.to_stderr), as_json)
        return 0
    if settings.on_cluster is None:
        manifest = batch.submit(submission, settings, batch.to_stderr)
    else:
        ended = sending.submit(submission, settings, batch.to_stderr)
        if isinstance(ended, sending.Left):
            click.echo(ended, err=True)
            return INTERRUPTED
        manifest = ended
    from runner.batch import tables

    if settings.log_format == "text":
        tables.results(
            manifest, settings.output, new_console(stderr=as_json), submission.run.shared
        )
    if as_json:
        for piece in manifest.pieces():
            click.echo(piece, nl=False)
    if manifest.state == "interrupted":
        return INTERRUPTED
    return 0 if manifest.all_passed else 1


def _show_plan(previews: Any, as_json: bool) -> None:
    from runner.batch import tables

    if as_json:
        click.echo(tables.plan_json(previews))
    else:
        new_console().print(tables.planned(previews))


class _FileOrTarget(click.Path):
    """A problem file, or `package.module:Class`, which stays text."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from runner.problems import is_target

        return value if is_target(value) else super().convert(value, param, ctx)


@click.command()
@click.argument(
    "file",
    metavar="FILE|MODULE:CLASS",
    type=_FileOrTarget(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--init", help="Arguments of CLASS, as JSON: by name {...} or by position [...].")
@click.option("--inputs", help="Of its forward(): 'float32[8,3,224,224]'; or MODULE:FUNCTION.")
@OUTPUT
@MODE
@decomposer_options
@working_options
def decompose(
    file: Path | str,
    init: str | None,
    inputs: str | None,
    config: Path | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Take one problem apart and verify it, without Ray: a FILE, or a model in a package."""
    from runner.batch import alone, tables
    from runner.problems import problem_file

    settings = settings_from(flags, config)
    problem = problem_file(file, init, inputs, settings.output)
    done = alone.decompose(problem, settings, file if isinstance(file, str) else None)
    tables.one(done.result, done.directory, done.log, new_console(stderr=as_json))
    if as_json:
        click.echo(done.result.to_json(), nl=False)
    return 0 if done.result.status == "passed" else 1


@click.command()
@click.argument(
    "directory",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="List --power's wrong kernels here.",
)
@working_options
def verify(
    directory: tuple[Path, ...], to: Path | None, config: Path | None, as_json: bool, **flags: Any
) -> int:
    """Verify decomposition directories, whoever wrote them. They are only read."""
    from runner.batch import alone, tables

    settings = settings_from(flags, config)
    if to is not None and not settings.power:
        raise UsageError("--to lists wrong kernels", hint="give --power too")
    if to is not None and len(directory) > 1:
        raise UsageError("--to is one file", hint="name one DIR, or take --json, which lists all")
    console = new_console(stderr=as_json)
    verdicts = []
    for each in directory:
        verdicts.append(alone.verify(each, settings, to))
        tables.verdict(verdicts[-1], console)
    if as_json:
        click.echo(json.dumps([verdict.to_json() for verdict in verdicts], indent=1))
    return 0 if all(verdict.record.status == "passed" for verdict in verdicts) else 1
