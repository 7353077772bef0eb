"""Prints the catalogue as text: its workloads or families, and its totals."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from runner.quantities import flops, pluralize, size
from runner.report.catalogue import MEASURE_NAMES, Catalogue, CatalogueWorkload
from runner.report.families import Family
from runner.report.tables import new_table
from runner.report.units import seconds, tensors

RIGHT_ALIGNED = {
    "instances",
    "models",
    "FLOPs",
    "bytes",
    "FLOP/B",
    "time",
    "share",
    "sum",
    "workloads",
}


def show_workloads(
    catalogue: Catalogue, chosen: Sequence[CatalogueWorkload], shown: int, console: Console
) -> None:
    """Print the workloads with the largest share, then the totals of the catalogue."""
    timed = catalogue.by == "time"
    columns = ["workload", "tensors", "instances", "models", "FLOPs", "bytes", "FLOP/B"]
    table = new_table([*columns, *(["time"] if timed else []), "share", "sum"], RIGHT_ALIGNED)
    for row in chosen[:shown]:
        cells = [
            row.name,
            f"{tensors(row.input_shapes, row.input_dtypes)} → "
            f"{tensors(row.output_shapes, row.output_dtypes)}",
            str(row.instances),
            str(len(row.uses)),
            flops(row.flops),
            size(row.bytes),
            f"{row.intensity:.1f}",
        ]
        table.add_row(*cells, *([_time(row)] if timed else []), *_shares(row, timed=timed))
    if chosen:
        console.print(table)
    if len(chosen) > shown:
        console.print(f"... and {len(chosen) - shown} more; --first, --json and --parquet have all")
    _show_totals(catalogue, console)


def show_families(
    catalogue: Catalogue, operations: Sequence[str], shown: int, console: Console
) -> None:
    """Print the families with the largest share, then the totals of the catalogue.

    With operations, only their families are printed, each with a table of its shapes.
    """
    families = [f for f in catalogue.families if not operations or f.operation in operations]
    table = new_table(["family", "workloads", "instances", "models", "share"], RIGHT_ALIGNED)
    for family in families[:shown]:
        counts = (family.workloads, family.instances, family.problems)
        table.add_row(family.name, *map(str, counts), f"{100 * family.share:.1f}%")
    if families:
        console.print(table)
    if len(families) > shown:
        console.print(f"... and {len(families) - shown} more; --first and --json have all")
    for family in families[:shown] if operations else ():
        console.print(f"\n{family.name}")
        console.print(_shape_table(family))
    _show_totals(catalogue, console)


def _shape_table(family: Family) -> Table:
    words = list(dict.fromkeys(word for shape in family.shapes for word in shape.sizes))
    table = new_table([*words, "inputs", "weights", "outputs", "instances"], RIGHT_ALIGNED)
    for shape in family.shapes:
        tensors = (shape.inputs, shape.weights, shape.outputs)
        table.add_row(
            *(str(shape.sizes.get(word, "")) for word in words),
            *(", ".join("x".join(map(str, s)) or "scalar" for s in shapes) for shapes in tensors),
            str(shape.instances),
        )
    return table


def _show_totals(catalogue: Catalogue, console: Console) -> None:
    if not catalogue.problems:
        console.print(
            f"{catalogue.title}: no problem there has a decomposition; the result.json of each, "
            "or kdrun status RUN, says why",
            soft_wrap=True,
        )
        return
    console.print(
        f"\n{catalogue.title}: {pluralize(len(catalogue.workloads), 'unique workload')} in "
        f"{pluralize(len(catalogue.families), 'family')}, "
        f"{pluralize(catalogue.instances, 'instance')} in "
        f"{pluralize(catalogue.problems, 'model')}, "
        f"{flops(catalogue.flops)}, {size(catalogue.bytes)} moved",
        soft_wrap=True,
    )
    if catalogue.measured_on and catalogue.time_s is not None:
        timed = pluralize(sum(row.timing is not None for row in catalogue.workloads), "workload")
        console.print(
            f"measured on {catalogue.measured_on}: {timed}, "
            f"{seconds(catalogue.time_s)} for all their instances",
            soft_wrap=True,
        )
    if limited := Counter(limit for row in catalogue.workloads for limit in row.harness_limits):
        count = sum(bool(row.harness_limits) for row in catalogue.workloads)
        reasons = ", ".join(f"{limit} ({number})" for limit, number in limited.most_common())
        console.print(
            f"KernelBench's harness cannot judge {count} of them: {reasons}; --json says which",
            soft_wrap=True,
        )
    points = [f"{p.workloads} are {100 * p.share:.0f}%" for p in catalogue.curve if p.share < 1]
    if points:
        console.print(
            f"of the {MEASURE_NAMES[catalogue.by]}, the first {', '.join(points)}", soft_wrap=True
        )
    for note in catalogue.notes:
        console.print(f"but mind: {note}", soft_wrap=True)


def _time(row: CatalogueWorkload) -> str:
    if row.timing is None:
        return row.untimed or ""
    far = f" ({row.timing.outliers} of {row.timing.runs} far slower)" if row.timing.outliers else ""
    return seconds(row.timing.median_s) + far


def _shares(row: CatalogueWorkload, *, timed: bool) -> tuple[str, str]:
    if timed and row.timing is None:
        return "-", "-"
    return f"{100 * row.share:.1f}%", f"{100 * row.cumulative:.1f}%"
