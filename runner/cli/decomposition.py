"""Defines `kdrun submit`, `decompose`, `verify` and `prompt`."""

import json
import time
from pathlib import Path
from typing import Any

import click

from runner import STARTED
from runner.cli.completion import problem_names
from runner.cli.help import examples
from runner.cli.options import (
    DECOMPOSITION,
    JSON,
    RUN_SETTINGS,
    SettingsCommand,
    new_console,
    settings_from,
    start_child_server,
)
from runner.errors import INTERRUPTED, UsageError

DECOMPOSER_SETTINGS = ("decomposer", "decomposer_on_failure", "rounds", "pass_env")


@click.command(
    cls=SettingsCommand,
    settings=None,
    completions={"problem": problem_names},
    epilog=examples(
        "kdrun submit --level 2 --dry-run",
        "kdrun submit --problem '*resnet*' --problem my_model.py",
        "kdrun submit --level 3 --set batch_size=1,8 --dtype fp32,bf16",
        "kdrun submit --zoo timm --problem 'vit_*'",
        "kdrun submit --store s3://results/kdrun --run-id nightly",
    ),
)
@click.option(
    "--dry-run", is_flag=True, help="Print the plan with estimated memory, and run nothing."
)
@JSON
@click.argument("unnamed", nargs=-1, metavar="")
def submit(
    unnamed: tuple[str, ...],
    config: Path | None,
    as_json: bool,
    dry_run: bool,
    **flags: Any,
) -> int:
    """Take many models apart on Ray, verify them, write a manifest.

    The same command again does what is left. Each option is also an environment variable
    (KDRUN_TRIALS=4) and a line in the settings file (trials: 4).
    """
    from runner.batch import submit as batch

    if unnamed:
        hint = "write --problem before each; a glob needs quotes, such as --problem 'my/*.py'"
        raise UsageError(f"{unnamed[0]}: submit takes no plain arguments", hint=hint)
    settings = settings_from(flags, config)
    submission = batch.prepare(settings, batch.print_to_stderr, is_dry_run=dry_run)
    if dry_run:
        _show_plan(batch.preview(submission, batch.print_to_stderr), as_json)
        return 0
    manifest = batch.submit(submission, batch.print_to_stderr)
    from runner.cli import run_tables

    if settings.log_format == "text":
        run_tables.print_run(
            manifest, settings.output, new_console(stderr=as_json), submission.run.shared_store
        )
    if as_json:
        for piece in manifest.pieces():
            click.echo(piece, nl=False)
    if manifest.state == "interrupted":
        return INTERRUPTED
    return 0 if manifest.all_passed else 1


def _show_plan(previews: Any, as_json: bool) -> None:
    from runner.cli import run_tables

    if as_json:
        click.echo(run_tables.plan_json(previews))
    else:
        new_console().print(run_tables.plan_table(previews))


@click.command(
    cls=SettingsCommand,
    settings=(
        *("set", "dtype", "data", "output", "mode", "unverified", "verify"),
        *(*DECOMPOSER_SETTINGS, *RUN_SETTINGS),
    ),
    epilog=examples(
        "kdrun decompose vit_block",
        "kdrun decompose my_model.py",
        "kdrun decompose vit_block --dtype bf16 --set batch_size=1",
        "kdrun decompose torch.nn:Linear --init '[64, 32]' --inputs 'float32[8,64]'",
    ),
)
@click.argument("problem", metavar="NAME|FILE|MODULE:CLASS", shell_complete=problem_names)
@click.option(
    "--init", help="Arguments of CLASS, as JSON: by name {...} or by position [...]; default none."
)
@click.option(
    "--inputs",
    help="Inputs of forward(), such as 'float32[8,3,224,224]', or MODULE:FUNCTION; default "
    "those that MODULE:CLASS returns with the model.",
)
@JSON
def decompose(
    problem: str,
    init: str | None,
    inputs: str | None,
    config: Path | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Take one model apart and verify the parts, without Ray.

    NAME is a problem of `kdrun data list`, such as vit_block, level3/vit_block or
    samples/vit_block, in any case. FILE is any file in KernelBench format, MODULE:CLASS a model in
    a package. The parts are written to OUTPUT/LEVEL/NAME.
    """
    start_child_server(problem)
    from runner.batch import local_execution
    from runner.cli import run_tables
    from runner.problems.package_model import find_problem
    from runner.problems.problem import find_path
    from runner.problems.variants import write_one_variant

    settings = settings_from(flags, config)
    file, reference = find_problem(problem, init, inputs, settings.data, settings.output)
    path = find_path(problem)
    if reference is None and not (path and path.is_file()):
        click.echo(f"{problem}: {file}", err=True)
    file = write_one_variant(file, settings.set, settings.dtype, settings.output)
    decomposition = local_execution.decompose(file, settings, reference)
    took_s = time.monotonic() - STARTED
    run_tables.print_result(decomposition, took_s, new_console(stderr=as_json))
    if as_json:
        click.echo(decomposition.result.to_json(), nl=False)
    return 0 if decomposition.result.status == "passed" else 1


@click.command(
    cls=SettingsCommand,
    settings=RUN_SETTINGS,
    epilog=examples(
        "kdrun verify output/level3/vit_block", "kdrun verify here/level1/* --trials 4"
    ),
)
@click.argument(
    "directory",
    nargs=-1,
    required=True,
    type=DECOMPOSITION,
)
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the list of --power's wrong kernels; default none.",
)
@JSON
def verify(
    directory: tuple[Path, ...], to: Path | None, config: Path | None, as_json: bool, **flags: Any
) -> int:
    """Verify decomposition directories, whoever wrote them. They are only read.

    Exit code 0 where all pass, else 1.
    """
    start_child_server()
    from runner.batch import local_execution
    from runner.cli import run_tables

    settings = settings_from(flags, config)
    if to is not None and not settings.power:
        raise UsageError("--to lists wrong kernels", hint="give --power too")
    if to is not None and len(directory) > 1:
        raise UsageError("--to is one file", hint="name one DIR, or take --json, which lists all")
    console = new_console(stderr=as_json)
    verdicts = []
    for path in directory:
        verdicts.append(local_execution.verify(path, settings, to))
        run_tables.print_verdict(verdicts[-1], console)
    if as_json:
        click.echo(json.dumps([verdict.to_json() for verdict in verdicts], indent=1))
    return 0 if all(verdict.answer.status == "passed" for verdict in verdicts) else 1


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
