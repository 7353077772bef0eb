"""Writes docs/census.md and its two plots anew, from a run of models of zoos.

    kdrun submit --zoo timm --zoo torchvision --zoo transformers --zoo diffusers --no-verify
    python docs/make_census.py output "All models of timm."

The first argument is a run, a directory, or a file that `kdrun workloads --census --json` wrote.
The second one says on the page which models were chosen. The page says which versions and how many
models it is of.

    python docs/make_census.py --verified output

writes the verdicts of a run with verification into docs/verified-models.csv, and the page's section
on them anew. Verdicts on models that the run does not have stay.
"""

import csv
import math
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import torch

import runner
from runner.config import load_settings
from runner.quantities import flops, pluralize, size
from runner.report.catalogue import collect_workloads
from runner.report.census import Census, CensusPart, read_census, take_census
from runner.report.census_text import describe_curve
from runner.report.subject import open_subject
from runner.statuses import STATUSES
from runner.zoo import read_zoo_origin

HERE = Path(__file__).parent
SHOWN = 12
"""Rows of each table, and bars of the plot."""
VERDICTS = HERE / "verified-models.csv"
COLUMNS = ("package", "version", "family", "model", "status", "equal_to_the_last_bit", "reason")
PROVEN = "## How many are proven"
LONGEST_REASON = 120
"""Characters of a reason that are shown."""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 340, 56, 16, 44
INK, GRID = "#6e7781", "#d0d7de"
COLOURS = {"FLOPs": "#0969da", "bytes": "#bc4c00", "instances": "#1a7f37"}


def main() -> None:
    if sys.argv[1:2] == ["--verified"]:
        for run in sys.argv[2:]:
            add_verdicts(run)
        page = (HERE / "census.md").read_text(encoding="utf-8")
        write_file("census.md", page.partition(f"\n{PROVEN}")[0] + describe_verdicts())
        return
    census = open_census(sys.argv[1] if len(sys.argv) > 1 else "output")
    write_file("census-curve.svg", draw_curves(census))
    write_file("census-operations.svg", draw_operations(census))
    page = write_page(census, " ".join(sys.argv[2:]))
    write_file("census.md", page + describe_verdicts())


def open_census(name: str) -> Census:
    if Path(name).is_file():
        return read_census(Path(name))
    with open_subject(name, load_settings({})) as subject:
        return take_census(collect_workloads(subject), subject)


def write_file(name: str, text: str) -> None:
    (HERE / name).write_text(text, encoding="utf-8")
    print(HERE / name)


def add_verdicts(run: str) -> None:
    """Write the verdicts of a run into VERDICTS; models that the run lacks keep theirs."""
    verdicts = {(row["package"], row["model"]): row for row in read_verdicts()}
    with open_subject(run, load_settings({})) as subject:
        for problem in subject.problems:
            row = problem.row
            files = problem.directory.parents[1].glob(f"problems/*/{row.problem}.py")
            origin = next(filter(None, map(read_zoo_origin, files)), None)
            if origin is None or row.status in ("written", "cancelled"):
                continue
            verdicts[origin.package, origin.model] = {
                "package": origin.package,
                "version": origin.version,
                "family": origin.family,
                "model": origin.model,
                "status": row.status,
                "equal_to_the_last_bit": "yes" if row.bitwise_equal else "",
                "reason": (row.reason or "").replace("|", "/")[:LONGEST_REASON],
            }
    with VERDICTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(verdicts[key] for key in sorted(verdicts))
    print(VERDICTS)


def read_verdicts() -> list[dict[str, str]]:
    if not VERDICTS.exists():
        return []
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def describe_verdicts() -> str:
    """Return the page's section on the models in VERDICTS."""
    verdicts = read_verdicts()
    if not verdicts:
        return ""
    statuses = [s for s in STATUSES if any(row["status"] == s for row in verdicts)]
    lines = []
    for package in dict.fromkeys(row["package"] for row in verdicts):
        rows = [row for row in verdicts if row["package"] == package]
        families = len({row["family"] for row in rows})
        counts = [sum(row["status"] == s for row in rows) for s in statuses]
        equal = sum(bool(row["equal_to_the_last_bit"]) for row in rows)
        lines.append([package, len(rows), families, *counts, equal])
    head = ["package", "models", "families", *(f"`{s}`" for s in statuses), "equal to the last bit"]
    total = ["all", *(sum(column) for column in list(zip(*lines, strict=True))[1:])]
    table = "\n".join(f"| {' | '.join(map(str, line))} |" for line in [*lines, total])
    others = [
        f"| `{row['package']}/{row['model']}` | `{row['status']}` | {row['reason']} |"
        for row in verdicts
        if row["status"] not in ("passed", "too_large")
    ]
    if others:
        others = ["", "| not passed | status | reason |", "| --- | --- | --- |", *others]
    return f"""
{PROVEN}

These models were also verified: the kernels of each, put together again, were compared with the original. [Each verdict](verified-models.csv) is in
a table of its own.

| {" | ".join(head)} |
|{" --- |" * len(head)}
{chr(10).join([table, *others])}
"""  # noqa: E501


def write_page(census: Census, chosen: str) -> str:
    versions = ", ".join(f"{p.name} {p.version}".strip() for p in census.packages)
    statuses = ", ".join(f"{n} {status}" for status, n in sorted(census.statuses.items()))
    reasons = "\n".join(
        f"| {reason.count} | `{reason.status}` | {reason.reason.replace('|', '/')} |"
        for reason in census.reasons[:SHOWN]
    )
    common = "\n".join(
        f"| `{row.name}` | {row.models} | {row.model_families} | {row.instances} |"
        for row in sorted(census.rows, key=lambda r: (-r.model_families, -r.models))[:SHOWN]
    )
    return f"""# A census of kernels

Which kernels, at which sizes, do the models of the field run? This page counts them, over {pluralize(census.models, "model")} of
{versions}, each in its default configuration at the batch size 1 ([how they are built](zoo.md)). It was written by `python docs/make_census.py`,
with kdrun {runner.__version__} and torch {torch.__version__}.

The run had {pluralize(sum(census.statuses.values()), "model")}: {statuses}. The figures are of those that were passed or written. {chosen}

| package | version | models | families | workloads | instances | share of FLOPs | share of bytes |
| --- | --- | --- | --- | --- | --- | --- | --- |
{rows_of_packages(census)}

- {pluralize(census.workloads, "unique workload")} in {pluralize(census.instances, "kernel instance")}; one forward pass of each model is {flops(census.flops)} and moves {size(census.bytes)}.
- {census.in_one_model} workloads ({percent(census.in_one_model / max(1, census.workloads))}) are in one model alone.
- {census.groups} are left if those that differ only in batch, sequence or image size count once: same operation, attributes, dtypes and weights; without weights, the same last dimensions.

## How few are how much

![Share of FLOPs, bytes and instances that the first workloads make up](census-curve.svg)

- Of the FLOPs, {describe_curve(census.flops_curve)}.
- Of the bytes, {describe_curve(census.bytes_curve)}.
- Of the instances, {describe_curve(census.models_curve)}.

Each model counts once, however large it is, so a few large models have most of the FLOPs.

## By operation

![Share of FLOPs and bytes by operation](census-operations.svg)

| operation | models | workloads | instances | share of FLOPs | share of bytes |
| --- | --- | --- | --- | --- | --- |
{rows_of_parts(census.operations)}

## By family of models

| family | models | workloads | instances | share of FLOPs | share of bytes |
| --- | --- | --- | --- | --- | --- |
{rows_of_parts(census.families)}

## In the most families

| workload | models | families | instances |
| --- | --- | --- | --- |
{common}

## What was not written

| models | status | reason, with sizes as N |
| --- | --- | --- |
{reasons}
"""  # noqa: E501


def rows_of_packages(census: Census) -> str:
    return "\n".join(
        f"| {p.name} | {p.version} | {p.models} | {p.families} | {p.workloads} | {p.instances} "
        f"| {percent(p.flops_share)} | {percent(p.bytes_share)} |"
        for p in census.packages
    )


def rows_of_parts(parts: Sequence[CensusPart]) -> str:
    return "\n".join(
        f"| `{p.name}` | {p.models} | {p.workloads} | {p.instances} "
        f"| {percent(p.flops_share)} | {percent(p.bytes_share)} |"
        for p in parts[:SHOWN]
    )


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def draw_curves(census: Census) -> str:
    """Cumulated shares over the number of workloads, on a logarithmic axis."""
    shares = {
        "FLOPs": [row.flops_share for row in census.rows],
        "bytes": [row.bytes_share for row in census.rows],
        "instances": [row.instances / max(1, census.instances) for row in census.rows],
    }
    decades = max(1, math.ceil(math.log10(max(2, census.workloads))))
    right, bottom = WIDTH - 90, HEIGHT - BOTTOM

    def x(count: float) -> float:
        return LEFT + (right - LEFT) * math.log10(count) / decades

    def y(share: float) -> float:
        return bottom - (bottom - TOP) * min(share, 1.0)

    parts = [line(LEFT, y(s / 4), right, y(s / 4), GRID) for s in range(5)]
    parts += [text(LEFT - 8, y(s / 4) + 4, f"{25 * s}%", "end") for s in range(5)]
    parts += [text(x(10**d), bottom + 18, f"{10**d:,}", "middle") for d in range(decades + 1)]
    parts.append(text((LEFT + right) / 2, HEIGHT - 6, "workloads, the largest first", "middle"))
    for number, (name, values) in enumerate(shares.items()):
        totals = list(accumulate(sorted(values, reverse=True)))
        places = sorted({round(10 ** (p / 40)) for p in range(40 * decades + 1)})
        points = [(x(n), y(totals[n - 1])) for n in places if n <= len(totals)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        colour = COLOURS[name]
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(text(right + 10, TOP + 20 + 20 * number, name, "start", colour))
    return svg(HEIGHT, parts)


def draw_operations(census: Census) -> str:
    """Two bars for each operation: its share of the FLOPs, and of the bytes."""
    shown = sorted(census.operations, key=lambda p: -max(p.flops_share, p.bytes_share))[:SHOWN]
    step, left, right = 30, 220, WIDTH - 110
    largest = max([0.01, *(max(p.flops_share, p.bytes_share) for p in shown)])
    parts = []
    for number, part in enumerate(shown):
        top = TOP + step * number
        parts.append(text(left - 8, top + 15, part.name, "end"))
        for offset, (name, share) in enumerate(
            (("FLOPs", part.flops_share), ("bytes", part.bytes_share))
        ):
            width = max(1.0, (right - left) * share / largest)
            parts.append(
                f'<rect x="{left}" y="{top + 11 * offset}" width="{width:.1f}" height="9" '
                f'fill="{COLOURS[name]}"/>'
            )
            label = f"{percent(share)} of {name}" if number == 0 else percent(share)
            place = left + width + 6
            parts.append(text(place, top + 9 + 11 * offset, label, "start", COLOURS[name], 10))
    return svg(TOP + step * len(shown) + 8, parts)


def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def text(x: float, y: float, content: str, anchor: str, colour: str = INK, points: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{points}">{content}</text>'
    )


def svg(height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" font-family="sans-serif">'
    )
    return "\n".join([head, *parts, "</svg>", ""])


if __name__ == "__main__":
    main()
