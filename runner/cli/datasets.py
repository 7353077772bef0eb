"""This file knows about the commands for problems: list them, fetch and check KernelBench."""

from pathlib import Path
from typing import Any

import click

from runner.cli.options import CONFIG, DATA, JSON, LEVEL, new_console, settings_from
from runner.errors import DatasetError


@click.group()
def data() -> None:
    """List problems; fetch and check the KernelBench dataset."""


@data.command("list")
@LEVEL
@DATA
@CONFIG
@JSON
def data_list(config: Path | None, as_json: bool, **flags: Any) -> int:
    """What there is, per level, with a one-line idea of each."""
    from runner.batch import tables
    from runner.problems import data_root, idea, select

    settings = settings_from(flags, config)
    root = data_root(settings.data)
    listed = [(problem, idea(problem)) for problem in select(root, settings.level)]
    if as_json:
        click.echo(tables.problems_json(listed))
    else:
        click.echo(root, err=True)
        tables.problems(listed, new_console())
    return 0


@data.command()
@click.option("--from", "source", help="A checkout, a git directory or an archive of KernelBench.")
@click.option("--to", "destination", type=click.Path(path_type=Path), help="Default here.")
def fetch(source: str | None, destination: Path | None) -> int:
    """Put KernelBench's 250 problems at the pinned commit, and our gpt_oss, in place."""
    from runner.problems import KERNELBENCH
    from runner.problems import fetch as fetch_dataset

    report = fetch_dataset(source, destination or KERNELBENCH)
    click.echo(f"{report.destination}: {report.written} written, {report.kept} there already")
    for what, names in (("missing", report.missing), ("changed", report.changed)):
        for name in names:
            click.echo(f"{what} in {report.source}: {name}")
    return 0 if report.complete else 1


@data.command()
@DATA
@CONFIG
def check(config: Path | None, **flags: Any) -> int:
    """Compare KernelBench, where `data list` finds it, with the manifest, file by file."""
    from runner.problems import check as check_dataset
    from runner.problems import data_root

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
    for what, names in differences:
        for name in names:
            click.echo(f"{what}: {name}")
    counts = ", ".join(f"{len(names)} {what}" for what, names in differences)
    click.echo(f"{report.root}: {report.right} right, {counts}")
    return 0 if report.ok else 1
