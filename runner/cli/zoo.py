"""Defines `kdrun zoo`: lists the models of installed packages."""

import json
from dataclasses import asdict
from typing import Any

import click

from runner.cli.help import examples
from runner.cli.options import JSON, new_console
from runner.quantities import pluralize


@click.command(
    epilog=examples("kdrun zoo", "kdrun zoo timm --problem 'vit_*'", "kdrun zoo --json"),
)
@click.argument("package", required=False)
@click.option("--problem", multiple=True, help="Names or globs of models; repeatable; default all.")
@JSON
def zoo(package: str | None, problem: tuple[str, ...], as_json: bool) -> int:
    """List packages whose models have names here, or one's models.

    With PACKAGE, list its models. `kdrun submit --zoo PACKAGE` takes them apart. Nothing is
    downloaded: weights are random.
    """
    from runner import zoo as zoos
    from runner.errors import UsageError

    if package is None:
        if problem:
            raise UsageError(
                "--problem: of which package?", hint="kdrun zoo timm --problem 'vit_*'"
            )
        listings = zoos.list_zoos()
        if as_json:
            click.echo(json.dumps([_to_json(listing) for listing in listings], indent=1))
        else:
            _print_packages(listings)
        return 0
    listing = zoos.list_zoo(package)
    models = zoos.select_models({package: listing.models}, problem)
    chosen = [model for _, model in models]
    if as_json:
        click.echo(json.dumps([asdict(model) for model in chosen], indent=1))
    else:
        _print_models(chosen)
        families = len({model.family for model in chosen})
        counts = f"{pluralize(len(chosen), 'model')}, {pluralize(families, 'family')}"
        click.echo(f"{package} {listing.version}: {counts}", err=True)
    return 0


def _print_packages(listings: Any) -> None:
    from runner.report.tables import new_table

    table = new_table(["package", "version", "models", "families"], ["models", "families"])
    for listing in listings:
        counts = (len(listing.models), listing.families) if listing.problem is None else ("", "")
        table.add_row(listing.name, listing.version, *map(str, counts))
    new_console().print(table)
    for listing in listings:
        if listing.problem is not None:
            click.echo(f"{listing.name}: {listing.problem}", err=True)


def _print_models(models: Any) -> None:
    from runner.report.tables import new_table

    table = new_table(["model", "family"])
    for model in models:
        table.add_row(model.name, model.family)
    new_console().print(table)


def _to_json(listing: Any) -> dict[str, Any]:
    return {
        "package": listing.name,
        "version": listing.version,
        "models": len(listing.models),
        "families": listing.families,
        "problem": listing.problem,
    }
