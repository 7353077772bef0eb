"""Formats plans, runs, results and problems as tables for people and JSON for programs."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runner.batch.child import problem_logs
from runner.batch.child.answer import VerdictAnswer
from runner.batch.local_execution import LocalDecomposition, LocalVerification
from runner.batch.machine import GIB
from runner.batch.progress import COLOURS
from runner.batch.submit import Preview
from runner.quantities import pluralize
from runner.report.tables import new_table
from runner.statuses import STATUSES, Status
from runner.store.manifest import Manifest
from runner.store.pull import PullOutcome
from runner.store.result import Decomposed

MAX_NAMED_PROBLEMS = 20
"""Largest number of passed problems that are listed one by one."""


def print_run(
    manifest: Manifest,
    output: Path,
    console: Console,
    shared: object | None = None,
    command: str | None = None,
) -> None:
    """Print a run: counts by level and status, then each problem that did not pass, and why.

    `command` is the command line that shows this run. If it is given, problems that passed are
    listed too, or the command that lists them if they are many.
    """
    console.print(_counts_table(manifest))
    passed = manifest.counts.get("passed", 0)
    if len(manifest.rows) > passed or (command and passed):
        console.print()
    print_problems(manifest, STATUSES[1:], console)
    if command and passed > MAX_NAMED_PROBLEMS:
        console.print(f"passed     {passed}: `{command} --status passed` lists them")
    elif command:
        print_problems(manifest, ["passed"], console)
    for row in manifest.rows:
        if row.differs:
            warning = f"but mind: {row.label}: another writer was first: {'; '.join(row.differs)}"
            console.print(warning, soft_wrap=True)
    remaining = manifest.selected - len(manifest.rows)
    if remaining and manifest.state_now() == "running":
        console.print(f"\n{remaining} waiting or at work: the run goes on")
    elif remaining:
        console.print(f"\n{remaining} not run; the same command again finishes them")
    console.print()
    for name, path in _find_paths(manifest, output, shared):
        console.print(f"{name + ':':<11} {path}", soft_wrap=True)


def print_problems(manifest: Manifest, statuses: Sequence[Status], console: Console) -> None:
    """Print the problems with some statuses, ordered by status, each with its reason."""
    rows = [row for row in manifest.rows if row.status in statuses]
    for row in sorted(rows, key=lambda row: statuses.index(row.status)):
        reason = f": {row.reason}" if row.reason else ""
        text = Text(f"{row.status:<9}  {row.label}{reason}")
        text.stylize(COLOURS[row.status], 0, len(row.status))
        console.print(text, soft_wrap=True)


def _counts_table(manifest: Manifest) -> Table:
    statuses = [s for s in STATUSES if s == "passed" or manifest.counts.get(s)]
    shown = new_table(["level"])
    for status in statuses:
        shown.add_column(status, justify="right", style=COLOURS[status])
    for name in ("total", "kernels", "seconds"):
        shown.add_column(name, justify="right")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    kernels: Counter[str] = Counter()
    seconds: dict[str, float] = defaultdict(float)
    for row in manifest.rows:  # the rows may be many and on disk: read each once
        counts[row.source_level][row.status] += 1
        kernels[row.source_level] += row.figures.unique_kernels if row.figures else 0
        seconds[row.source_level] += row.seconds
    levels = sorted(counts, key=lambda level: (level == "custom", level))

    def add_totals(name: str, summed_levels: Sequence[str]) -> None:
        total = sum((counts[level] for level in summed_levels), Counter[str]())
        cells = [str(total[status] or "·") for status in statuses]
        kernel_count = sum(kernels[level] for level in summed_levels)
        total_s = sum(seconds[level] for level in summed_levels)
        shown.add_row(name, *cells, str(total.total()), str(kernel_count), f"{total_s:.0f}")

    for level in levels:
        add_totals(level, [level])
    if len(levels) > 1:
        add_totals("all", levels)
    return shown


def _find_paths(
    manifest: Manifest, output: Path, shared: object | None
) -> list[tuple[str, object]]:
    """Return names and paths to look at: the manifest, the logs, and the largest passed problem."""
    if shared is not None:
        return [
            ("stored in", f"{shared}/{manifest.run_id}"),
            ("to have it", f"kdrun pull {manifest.run_id} --store {shared}"),
        ]
    run_folder = output / "runs" / manifest.run_id
    paths: list[tuple[str, object]] = [("manifest", run_folder / "manifest.json")]
    if any((run_folder / "logs").rglob("*.log")):
        paths.append(("logs", run_folder / "logs"))
    largest = 0
    for row in manifest.rows:
        if row.status == "passed" and row.figures and row.figures.components > largest:
            largest, best_label = row.figures.components, row.label
    if largest:
        paths.append(("look at", output / best_label))
    return paths


def runs_table(manifests: Sequence[Manifest], unreadable: Iterable[str] = ()) -> Table:
    """Return a table of runs with their states; `unreadable`: ids of those without any."""
    counts = ("passed", "other", "left")
    shown = new_table(["run", "state", "started", "last update", *counts], counts)
    for manifest in manifests:
        passed = manifest.counts.get("passed", 0)
        shown.add_row(
            manifest.run_id,
            manifest.state_now(),
            f"{manifest.started:%Y-%m-%d %H:%M}",
            f"{manifest.updated:%Y-%m-%d %H:%M}" if manifest.updated else "",
            str(passed),
            str(len(manifest.rows) - passed),
            str(manifest.selected - len(manifest.rows)),
        )
    for run_id in unreadable:
        shown.add_row(run_id, "unreadable")
    return shown


def runs_json(
    manifests: Sequence[Manifest],
    statuses: Sequence[Status] = (),
    unreadable: Mapping[str, str] | None = None,
) -> str:
    """Return manifests as JSON, with their current states; `statuses` selects rows.

    `unreadable`: why other runs' manifests cannot be read, by run id.
    """
    runs: list[dict[str, Any]] = []
    for manifest in manifests:
        if statuses:
            rows = [row for row in manifest.rows if row.status in statuses]
            manifest = manifest.model_copy(update={"rows": rows})
        document = manifest.model_dump(mode="json", exclude_none=True)
        runs.append(document | {"state": manifest.state_now()})
    for run_id, reason in (unreadable or {}).items():
        runs.append({"run_id": run_id, "state": "unreadable", "reason": reason})
    return json.dumps({"runs": runs}, indent=1)


def print_pull_outcome(outcome: PullOutcome, destination: Path, console: Console) -> None:
    """Print the outcome of pulling one problem, unless its files were there already."""
    if outcome.state != "there":
        text = Text(f"{outcome.state:<9}  {destination / outcome.label}")
        text.stylize("green" if outcome.is_present else "red", 0, len(outcome.state))
        if outcome.detail:
            text.append(f": {outcome.detail}")
        console.print(text, soft_wrap=True)


def pull_outcomes_json(outcomes: Sequence[PullOutcome]) -> str:
    """Return all outcomes of a pull as JSON."""
    rows = [
        {"problem": outcome.label, "state": outcome.state, "what": outcome.detail}
        for outcome in outcomes
    ]
    return json.dumps({"problems": rows}, indent=1)


def plan_table(previews: Sequence[Preview]) -> Table:
    """Return a table of a plan: each problem, why it is run or not, and its memory."""
    shown = new_table(["problem", "why", "expected", "asks for", ""], ["expected", "asks for"])
    for preview in previews:
        cells = [_format_gib(preview.peak_bytes), _format_gib(preview.memory_bytes)]
        shown.add_row(preview.item.label, preview.item.reason, *cells, preview.note)
    return shown


def _format_gib(count: int | None) -> str:
    return "" if count is None else f"{count / GIB:.2f} GiB"


def plan_json(previews: Sequence[Preview]) -> str:
    """Return a plan as JSON."""
    rows = [
        {
            "problem": preview.item.problem.name,
            "source_level": preview.item.problem.source_level,
            "path": str(preview.item.problem.path),
            "run": preview.item.earlier_result is None,
            "why": preview.item.reason,
            "peak_bytes": preview.peak_bytes,
            "memory_bytes": preview.memory_bytes,
            "note": preview.note,
        }
        for preview in previews
    ]
    return json.dumps({"problems": rows}, indent=1)


def print_result(decomposition: LocalDecomposition, took_s: float, console: Console) -> None:
    """Print the result of one problem; `took_s` is the wall time of the whole command."""
    result = decomposition.result
    _print_status(result.status, result.label, result.reason, console)
    if result.figures:
        by_level = result.figures.by_level
        levels = ", ".join(pluralize(n, level) for level, n in by_level.items() if n)
        components = f"{pluralize(result.figures.components, 'component')} ({levels})"
        instances = pluralize(result.figures.kernel_instances, "kernel instance")
        console.print(f"{components}, {instances}", soft_wrap=True)
    if result.bitwise_equal is not None:
        equal = "to the last bit" if result.bitwise_equal else f"within {result.max_diff:.2g}"
        if result.status == "passed":
            console.print(f"the kernels put together equal the original {equal}")
    if result.decomposer:
        _print_rounds(result.decomposer, console)
    for sentence in result.warnings:
        console.print(f"but mind: {sentence}", soft_wrap=True)
    memory = f", {result.peak_memory_bytes / GIB:.2f} GiB" if result.peak_memory_bytes else ""
    device_bytes = result.peak_device_bytes
    on_device = f", {device_bytes / GIB:.2f} GiB on the device" if device_bytes else ""
    console.print(f"{took_s:.1f} s{memory}{on_device}")
    if decomposition.earlier_stays:
        console.print(
            f"the earlier one, which passed, stays: {decomposition.directory}", soft_wrap=True
        )
    elif decomposition.replaces_another:
        console.print("but mind: this replaced the pass of a file with other contents")
    if not decomposition.earlier_stays and set(result.files) - {problem_logs.LOG_PATH}:
        console.print(f"look at: {decomposition.directory}", soft_wrap=True)
    if decomposition.log is not None and result.status != "passed":
        console.print(f"log:     {decomposition.log}", soft_wrap=True)


def _print_status(status: str, subject: str | Path, reason: str | None, console: Console) -> None:
    text = Text(f"{status}  {subject}{f': {reason}' if reason else ''}")
    text.stylize(COLOURS[status], 0, len(status))
    console.print(text, soft_wrap=True)


def _print_rounds(decomposer: Decomposed, console: Console) -> None:
    """Print the external decomposer's command, and the verdict of each round."""
    console.print(f"taken apart by {decomposer.command}", soft_wrap=True)
    for number, attempt in enumerate(decomposer.rounds, start=1):
        finding = f": {attempt.findings[0]}" if attempt.findings else ""
        line = f"  round {number}: {attempt.status} after {attempt.command_s:.1f} s{finding}"
        console.print(line, soft_wrap=True)


def print_verdict(verified: LocalVerification, console: Console) -> None:
    """Print the verdict on a directory: its status and reason, gates and warnings."""
    answer = verified.answer
    _print_status(answer.status, verified.directory, answer.reason, console)
    for gate in verified.verification.get("gates", []):
        difference = gate.get("max_diff")
        measured = "" if difference is None else f", largest difference {difference}"
        checks = pluralize(len(gate["checks"]), "check")
        line = f"  {gate['gate']:<12} {gate['verdict']} ({checks}{measured})"
        console.print(line, soft_wrap=True)
    if verified.power:
        caught, uncaught = verified.power.caught, verified.power.uncaught
        location = f" ({verified.power_file})" if verified.power_file else ""
        line = f"  wrong kernels: {caught} caught, {uncaught} not{location}"
        console.print(line, soft_wrap=True)
    for sentence in answer.warnings if isinstance(answer, VerdictAnswer) else ():
        console.print(f"  but mind: {sentence}", soft_wrap=True)
    for sentence in verified.verification.get("not_examined", []):
        console.print(f"  not examined: {sentence}", soft_wrap=True)
    for line in verified.verification.get("advice", []):
        console.print(f"advice: {line}", soft_wrap=True)
