"""Defines `kdrun show`, `diff`, `report` and `workloads`."""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from runner.cli.completion import run_names_or_directories
from runner.cli.help import examples
from runner.cli.options import (
    DECOMPOSITION,
    JSON,
    SettingsCommand,
    new_console,
    settings_from,
)
from runner.errors import StoreError, UsageError
from runner.quantities import pluralize

UNCUT_WIDTH = 10_000
"""Width in columns at which rich cuts nothing off; the terminal may wrap long lines."""
DEFAULT_WORKLOADS = 20
"""Default number of workloads that are printed."""
SAY_EVERY_S = 10.0
"""Seconds between two progress lines of --measure if stderr is not a terminal."""


@click.command(epilog=examples("kdrun show output/level3/vit_block"))
@click.argument("directory", type=DECOMPOSITION)
@click.option("--all", "everything", is_flag=True, help="Print a line for every instance, in full.")
def show(directory: Path, everything: bool) -> int:
    """Print the tree of a decomposition, with its shapes."""
    from runner.report import tree_text as showing
    from runner.tree.version_1 import read_any_version

    tree = read_any_version(directory)
    console = new_console()
    width = console.width if console.is_terminal else showing.WIDTH
    drawing = showing.draw_tree(tree, width, everything=everything)
    console.width = UNCUT_WIDTH
    console.print(drawing, no_wrap=True)
    console.print(f"\n{showing.summary_line(tree)}", soft_wrap=True)
    return 0


@click.command(epilog=examples("kdrun diff computed/level3/llama agent/level3/llama"))
@click.argument("a", type=DECOMPOSITION)
@click.argument("b", type=DECOMPOSITION)
@JSON
def diff(a: Path, b: Path, as_json: bool) -> int:
    """Tell how two decompositions differ: levels, kernels, coverage.

    Exit code 0 where they do not differ, else 1.
    """
    from runner.report import diff as differing

    difference = differing.compare_decompositions(a, b)
    if as_json:
        click.echo(json.dumps(difference.to_json(), indent=1))
    else:
        differing.show_difference(difference, new_console())
    return 0 if difference.same else 1


@click.command(
    cls=SettingsCommand,
    settings=("output", "store"),
    epilog=examples(
        "kdrun report output",
        "kdrun report nightly --open",
        "kdrun report monday tuesday --open",
    ),
)
@click.argument(
    "names", metavar="RUN|DIR...", nargs=-1, required=True, shell_complete=run_names_or_directories
)
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; default report.html in the run or directory, comparison.html for several.",
)
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser.")
def report(
    names: tuple[str, ...], to: Path | None, opened: bool, config: Path | None, **flags: Any
) -> int:
    """Write a run or a directory as one web page.

    It shows what passed, and each problem's tree, data flow and files; it needs no network. For two
    runs it also shows what changed from the first to the second, and for more a trend by date.
    """
    from runner.report import page
    from runner.report.page.comparison import sort_by_date
    from runner.report.subject import open_subject

    settings = settings_from(flags, config)
    with ExitStack() as stack:
        subjects = [stack.enter_context(open_subject(name, settings)) for name in names]
        if len(subjects) > 2:
            subjects = sort_by_date(subjects)
        *earlier, subject = subjects
        path = to or subject.place / ("comparison.html" if earlier else "report.html")
        page.write_page(subject, path, earlier)
    for note in subject.notes:
        click.echo(f"but mind: {note}", err=True)
    click.echo(path)
    if opened:
        click.launch(str(path))
    return 0


@click.command(
    cls=SettingsCommand,
    settings=("output", "store", "device", "memory"),
    epilog=examples(
        "kdrun workloads output",
        "kdrun workloads nightly --operation conv2d --measure",
        "kdrun workloads output --level-of fusion --export mine",
        "kdrun workloads output --census --against last_month.json",
    ),
)
@click.argument("name", metavar="RUN|DIR", shell_complete=run_names_or_directories)
@click.option(
    "--by",
    type=click.Choice(["flops", "bytes"]),
    help="Figure to sort by and to show shares of; default flops.",
)
@click.option(
    "--level-of",
    "level",
    type=click.Choice(["kernel", "fusion", "layer", "model"]),
    default="kernel",
    help="Level of the workloads; default kernel.",
)
@click.option(
    "--operation",
    multiple=True,
    help="Operation that they run, such as conv2d; repeatable; default all.",
)
@click.option(
    "--first",
    type=click.IntRange(min=1),
    help=f"Number of workloads; default {DEFAULT_WORKLOADS} for a table, all for a file or JSON.",
)
@click.option(
    "--families",
    is_flag=True,
    help="Show families: one operation at any size; with --operation, their shapes too.",
)
@click.option(
    "--census",
    is_flag=True,
    help="Count the kernels by package and family of their models; tell how few do most work.",
)
@click.option(
    "--against",
    metavar="RUN|DIR|FILE",
    help="Another census to compare with, or the file of its --json; default none.",
)
@click.option("--measure", is_flag=True, help="Time the kernels here, and sort by time.")
@click.option(
    "--parquet",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Parquet file to write the workloads to; default none.",
)
@click.option(
    "--export",
    "exported",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to write the workloads to, for KernelBench, SOL-ExecBench and "
    "FlashInfer-Bench; default none.",
)
@click.option(
    "--with-inputs",
    is_flag=True,
    help="With --export: also store inputs that FlashInfer-Bench cannot draw itself (large).",
)
@JSON
def workloads(
    name: str,
    by: Any,
    level: Any,
    operation: tuple[str, ...],
    first: int | None,
    families: bool,
    census: bool,
    against: str | None,
    measure: bool,
    parquet: Path | None,
    exported: Path | None,
    with_inputs: bool,
    config: Path | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """List the unique kernels over all models of a run.

    RUN|DIR is a run's name, or any directory with decompositions. Each kernel has its uses, and
    its share of all FLOPs, bytes or time. --level-of lists fusions, layers or models instead.
    """
    from runner.report import catalogue as catalogues
    from runner.report import catalogue_text
    from runner.report.measurements import keep_measurements
    from runner.report.subject import open_subject

    settings = settings_from(flags, config)
    if against is not None and not census:
        raise UsageError("--against compares a census", hint="give --census too")
    if census:
        others = {
            "--level-of": level != "kernel",
            "--by": by,
            "--operation": operation,
            "--families": families,
            "--measure": measure,
            "--export": exported,
        }
        for flag, is_given in others.items():
            if is_given:
                raise UsageError(
                    f"{flag}: a census counts all kernels", hint="leave out one of the two"
                )
        return _show_census(name, settings, against, first, parquet, as_json)
    with open_subject(name, settings) as subject:
        catalogue = catalogues.sort_catalogue(
            catalogues.collect_workloads(subject, level), by or "flops"
        )
        if measure:
            catalogue = _measure_workloads(catalogue, subject, settings, operation, first)
            if subject.place != Path():
                try:
                    kept = keep_measurements(catalogue, subject.place)
                    click.echo(f"{kept}: kdrun report shows them", err=True)
                except StoreError as error:
                    click.echo(f"but mind: the times are not kept: {error}", err=True)
        chosen = catalogues.choose_workloads(catalogue, operation, first)
        if exported is not None:
            from runner.report.export import export

            for note in export(
                chosen, subject, exported, with_inputs=with_inputs, memory_bytes=settings.memory
            ):
                click.echo(f"but mind: {note}", err=True)
            not_judged = sum(bool(row.harness_limits) for row in chosen)
            suffix = f", {not_judged} of them in kernelbench/not_judged" if not_judged else ""
            click.echo(f"{exported}: {pluralize(len(chosen), 'workload')}{suffix}", err=True)
    if parquet is not None:
        from runner.report import parquet as parquets

        parquets.write_parquet(catalogues.to_rows(chosen), parquet)
        click.echo(f"{parquet}: {pluralize(len(chosen), 'workload')}", err=True)
    if as_json:
        click.echo(catalogue.model_copy(update={"workloads": chosen}).to_json(), nl=False)
    elif families:
        shown = first or DEFAULT_WORKLOADS
        catalogue_text.show_families(catalogue, operation, shown, new_console())
    else:
        catalogue_text.show_workloads(catalogue, chosen, first or DEFAULT_WORKLOADS, new_console())
    return 0


def _show_census(
    name: str,
    settings: Any,
    against: str | None,
    first: int | None,
    parquet: Path | None,
    as_json: bool,
) -> int:
    from runner.report.census_text import show_census

    earlier = None if against is None else _open_census(against, settings)
    census = _open_census(name, settings, earlier)
    if parquet is not None:
        from runner.report import parquet as parquets

        parquets.write_parquet([row.model_dump() for row in census.rows], parquet)
        click.echo(f"{parquet}: {pluralize(census.workloads, 'workload')}", err=True)
    if as_json:
        click.echo(census.to_json(), nl=False)
    else:
        show_census(census, first or DEFAULT_WORKLOADS, new_console())
    return 0


def _open_census(name: str, settings: Any, earlier: Any = None) -> Any:
    """Return the census in a JSON file, or that of a run or directory."""
    from runner.report import catalogue as catalogues
    from runner.report.census import read_census, take_census
    from runner.report.subject import open_subject

    if Path(name).is_file():
        return read_census(Path(name))
    with open_subject(name, settings) as subject:
        return take_census(catalogues.collect_workloads(subject), subject, earlier)


def _measure_workloads(
    catalogue: Any, subject: Any, settings: Any, operation: tuple[str, ...], first: int | None
) -> Any:
    from rich.progress import Progress

    from runner.report import catalogue as catalogues
    from runner.report.measure import measure

    chosen = catalogues.choose_workloads(catalogue, operation, first)
    console = new_console(stderr=True)
    count, reported_at = 0, time.monotonic()

    def report_progress(row: Any) -> None:
        nonlocal count, reported_at
        count += 1
        progress.advance(task)
        if progress.disable and time.monotonic() - reported_at >= SAY_EVERY_S:
            reported_at = time.monotonic()
            click.echo(f"measured {count} of {len(chosen)}", err=True)

    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("measuring", total=len(chosen))
        return measure(
            catalogue,
            subject,
            chosen,
            device=settings.device,
            memory_bytes=settings.memory,
            on_done=report_progress,
        )
