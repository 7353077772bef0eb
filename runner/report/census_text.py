"""Prints a census: its packages, operations and families, and how few workloads are how much."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from runner.quantities import flops, pluralize, size
from runner.report.catalogue import Point
from runner.report.census import Census, CensusPart
from runner.report.tables import new_table


def show_census(census: Census, shown: int, console: Console) -> None:
    """Print the tables of a census, with `shown` rows each, then its totals."""
    console.print(_part_table("package", census.packages))
    console.print()
    for title, parts in (("operation", census.operations), ("model family", census.families)):
        console.print(_part_table(title, parts[:shown]))
        if len(parts) > shown:
            console.print(f"... and {len(parts) - shown} more; --first and --json have all")
        console.print()
    columns = ["models", "instances", "FLOPs", "bytes"]
    table = new_table(["workload", *columns], columns)
    for row in sorted(census.rows, key=lambda row: (-row.models, -row.instances))[:shown]:
        table.add_row(
            row.name,
            *(str(row.models), str(row.instances)),
            *(_percent(row.flops_share), _percent(row.bytes_share)),
        )
    console.print(table)
    console.print()
    for reason in census.reasons[:shown]:
        line = f"{reason.count} {reason.status}: {reason.reason} ({reason.example})"
        console.print(line, soft_wrap=True)
    for line in summary_lines(census):
        console.print(line, soft_wrap=True)
    for note in census.notes:
        console.print(f"but mind: {note}", soft_wrap=True)


def summary_lines(census: Census) -> list[str]:
    """Return the totals of a census as sentences."""
    lines = [
        f"{census.title}: {pluralize(census.workloads, 'unique workload')} in "
        f"{pluralize(census.instances, 'instance')} of {pluralize(census.models, 'model')}, "
        f"{flops(census.flops)}, {size(census.bytes)} moved",
        f"{census.in_one_model} are in one model alone; {census.groups} are left if those that "
        "differ only in batch, sequence or image size count once",
        f"of the FLOPs, {describe_curve(census.flops_curve)}",
        f"of the bytes, {describe_curve(census.bytes_curve)}",
        f"of the instances, {describe_curve(census.models_curve)}",
    ]
    if other := census.against:
        lines.append(
            f"against {other.title}: {other.new} new ({_percent(other.new_flops_share)} of the "
            f"FLOPs), {other.common} in both, {other.gone} only there"
        )
    return lines


def describe_curve(points: Sequence[Point]) -> str:
    """Return `the first 3 workloads are 50%, 12 are 80%`."""
    texts = [f"{p.workloads} are {100 * p.share:.0f}%" for p in points if p.share < 1]
    return f"the first {', '.join(texts)}" if texts else "nothing is counted"


def _part_table(title: str, parts: Sequence[CensusPart]) -> Table:
    columns = ["models", "workloads", "instances", "FLOPs", "bytes"]
    table = new_table([title, *columns], columns)
    for part in parts:
        counts = (part.models, part.workloads, part.instances)
        table.add_row(
            part.name,
            *map(str, counts),
            *(_percent(part.flops_share), _percent(part.bytes_share)),
        )
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
