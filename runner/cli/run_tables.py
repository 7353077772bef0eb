"""This file knows about showing a run as text: the plan before it, the table after it."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from runner.batch.child import problem_logs
from runner.batch.local_execution import Decomposed, Verified
from runner.batch.machine import GIB
from runner.batch.progress import COLOURS
from runner.batch.remote.jobs import Found
from runner.batch.submit import Preview
from runner.problems import Problem
from runner.quantities import pluralize
from runner.statuses import STATUSES, Status
from runner.store.manifest import Manifest
from runner.store.manifest_row import Row
from runner.store.pull import PullOutcome
from runner.store.result import Decomposed as Decomposer


def table() -> Table:
    """How all our tables look."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")


FEW = 20
"""Problems that passed and are named one by one."""


def results(
    manifest: Manifest,
    output: Path,
    console: Console,
    shared: object | None = None,
    command: str | None = None,
) -> None:
    """Print what came of a run: counts by level and status, then why each other did not pass.

    With `command`, which shows this run, those that passed are named too, where they are few.
    """
    console.print(_counts(manifest))
    passed = manifest.counts.get("passed", 0)
    if len(manifest.rows) > passed or (command and passed):
        console.print()
    listed(manifest, STATUSES[1:], console)
    if command and passed > FEW:
        console.print(f"passed     {passed}: `{command} --status passed` lists them")
    elif command:
        listed(manifest, ["passed"], console)
    for row in manifest.rows:
        if row.differs:
            mind = f"but mind: {row.label}: another writer was first: {'; '.join(row.differs)}"
            console.print(mind, soft_wrap=True)
    left = manifest.selected - len(manifest.rows)
    if left:
        console.print(f"\n{left} not run; the same command again finishes them")
    console.print()
    for what, path in _places(manifest, output, shared):
        console.print(f"{what + ':':<11} {path}", soft_wrap=True)


def listed(manifest: Manifest, statuses: Sequence[Status], console: Console) -> None:
    """Print the problems that ended so, status by status, each with its reason."""
    rows = [row for row in manifest.rows if row.status in statuses]
    for row in sorted(rows, key=lambda row: statuses.index(row.status)):
        said = f": {row.reason}" if row.reason else ""
        text = Text(f"{row.status:<9}  {row.label}{said}")
        text.stylize(COLOURS[row.status], 0, len(row.status))
        console.print(text, soft_wrap=True)


def _counts(manifest: Manifest) -> Table:
    statuses = [s for s in STATUSES if s == "passed" or manifest.counts.get(s)]
    shown = table()
    shown.add_column("level")
    for status in statuses:
        shown.add_column(status, justify="right", style=COLOURS[status])
    for name in ("total", "kernels", "seconds"):
        shown.add_column(name, justify="right")
    levels: dict[str, _Level] = defaultdict(_Level)
    for row in manifest.rows:  # they may be many, and on disk: each is looked at once
        levels[row.source_level].add(row)
    for name in sorted(levels, key=lambda n: (n == "custom", n)):
        shown.add_row(name, *levels[name].cells(statuses))
    if len(levels) > 1:
        shown.add_row("all", *sum(levels.values(), _Level()).cells(statuses))
    return shown


@dataclass
class _Level:
    """What came of the problems of one level."""

    counts: Counter[str] = field(default_factory=Counter)
    kernels: int = 0
    seconds: float = 0.0

    def add(self, row: Row) -> None:
        self.counts[row.status] += 1
        self.kernels += row.figures.unique_kernels if row.figures else 0
        self.seconds += row.seconds

    def __add__(self, other: "_Level") -> "_Level":
        counts = self.counts + other.counts
        return _Level(counts, self.kernels + other.kernels, self.seconds + other.seconds)

    def cells(self, statuses: Sequence[str]) -> list[str]:
        counts = [str(self.counts[status] or "·") for status in statuses]
        return [*counts, str(self.counts.total()), str(self.kernels), f"{self.seconds:.0f}"]


def _places(manifest: Manifest, output: Path, shared: object | None) -> list[tuple[str, object]]:
    """Where to look: the run, what its children printed, and the largest thing that passed."""
    if shared is not None:
        return [
            ("stored in", f"{shared}/{manifest.run_id}"),
            ("to have it", f"kdrun pull {manifest.run_id} --store {shared}"),
        ]
    run = output / "runs" / manifest.run_id
    places: list[tuple[str, object]] = [("manifest", run / "manifest.json")]
    if any((run / "logs").rglob("*.log")):
        places.append(("logs", run / "logs"))
    most = 0
    for row in manifest.rows:
        if row.status == "passed" and row.figures and row.figures.components > most:
            most, best = row.figures.components, row.label
    if most:
        places.append(("look at", output / best))
    return places


def states(manifests: Sequence[Manifest]) -> Table:
    """Runs, and how each stands."""
    shown = table()
    for name in ("run", "state", "started", "last word", "passed", "other", "left"):
        shown.add_column(name, justify="right" if name in ("passed", "other", "left") else "left")
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
    return shown


def states_json(manifests: Sequence[Manifest], statuses: Sequence[Status] = ()) -> str:
    """Return the same for programs: manifests, each with its state now, and rows of `statuses`."""
    runs = []
    for manifest in manifests:
        if statuses:
            rows = [row for row in manifest.rows if row.status in statuses]
            manifest = manifest.model_copy(update={"rows": rows})
        document = manifest.model_dump(mode="json", exclude_none=True)
        runs.append(document | {"state": manifest.state_now()})
    return json.dumps({"runs": runs}, indent=1)


def sent(found: Sequence[Found]) -> Table:
    """Runs that were sent to a cluster, and what it says of each."""
    shown = table()
    for name in ("run", "job", "sent", "ended", "id of the job"):
        shown.add_column(name)
    for one in found:
        times = [f"{at:%Y-%m-%d %H:%M}" if at else "" for at in (one.started, one.ended)]
        shown.add_row(one.run_id, one.state, *times, one.job.job_id)
    return shown


def sent_json(
    found: Sequence[Found], manifests: Sequence[Manifest], statuses: Sequence[Status] = ()
) -> str:
    """Return the same for programs; of one run its manifest, too."""
    jobs = [
        one.job.model_dump()
        | {
            "run_id": one.run_id,
            "state": one.state,
            "started": one.started and one.started.isoformat(),
            "ended": one.ended and one.ended.isoformat(),
        }
        for one in found
    ]
    return json.dumps({"jobs": jobs, **json.loads(states_json(manifests, statuses))}, indent=1)


def pulled(one: PullOutcome, destination: Path, console: Console) -> None:
    """One problem of a run that is being pulled; what was there already goes without saying."""
    if one.state != "there":
        text = Text(f"{one.state:<9}  {destination / one.label}")
        text.stylize("green" if one.is_present else "red", 0, len(one.state))
        if one.detail:
            text.append(f": {one.detail}")
        console.print(text, soft_wrap=True)


def pulled_json(done: Sequence[PullOutcome]) -> str:
    """The same for programs, all of it."""
    rows = [{"problem": one.label, "state": one.state, "what": one.detail} for one in done]
    return json.dumps({"problems": rows}, indent=1)


def planned(previews: Sequence[Preview]) -> Table:
    """A plan: each problem, why it is run or not, and the memory that it will be given."""
    shown = table()
    for name in ("problem", "why", "expected", "asks for", ""):
        shown.add_column(name, justify="right" if name in ("expected", "asks for") else "left")
    for preview in previews:
        cells = [_gib(preview.peak_bytes), _gib(preview.memory_bytes)]
        shown.add_row(preview.item.label, preview.item.why, *cells, preview.note)
    return shown


def _gib(count: int | None) -> str:
    return "" if count is None else f"{count / GIB:.2f} GiB"


def plan_json(previews: Sequence[Preview]) -> str:
    """The same for programs."""
    rows = [
        {
            "problem": preview.item.problem.name,
            "source_level": preview.item.problem.source_level,
            "path": str(preview.item.problem.path),
            "run": preview.item.earlier is None,
            "why": preview.item.why,
            "peak_bytes": preview.peak_bytes,
            "memory_bytes": preview.memory_bytes,
            "note": preview.note,
        }
        for preview in previews
    ]
    return json.dumps({"problems": rows}, indent=1)


def one(done: Decomposed, took_s: float, console: Console) -> None:
    """Print what came of one problem; `took_s` is the wall time of the whole command."""
    result = done.result
    text = Text(f"{result.status}  {result.label}")
    text.stylize(COLOURS[result.status], 0, len(result.status))
    if result.reason:
        text.append(f": {result.reason}")
    console.print(text, soft_wrap=True)
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
        _rounds(result.decomposer, console)
    for sentence in result.warnings:
        console.print(f"but mind: {sentence}", soft_wrap=True)
    memory = f", {result.peak_memory_bytes / GIB:.2f} GiB" if result.peak_memory_bytes else ""
    there = result.peak_device_bytes
    on_device = f", {there / GIB:.2f} GiB on the device" if there else ""
    console.print(f"{took_s:.1f} s{memory}{on_device}")
    if done.earlier_stays:
        console.print(f"the earlier one, which passed, stays: {done.directory}", soft_wrap=True)
    elif set(result.files) - {problem_logs.KEPT}:
        console.print(f"look at: {done.directory}", soft_wrap=True)
    if done.log is not None and result.status != "passed":
        console.print(f"log:     {done.log}", soft_wrap=True)


def _rounds(done: Decomposer, console: Console) -> None:
    """Who took it apart, and what came of each round."""
    console.print(f"taken apart by {done.command}", soft_wrap=True)
    for number, one in enumerate(done.rounds, start=1):
        said = f": {one.findings[0]}" if one.findings else ""
        line = f"  round {number}: {one.status} after {one.command_s:.1f} s{said}"
        console.print(line, soft_wrap=True)


def verdict(verified: Verified, console: Console) -> None:
    """One directory that was judged: its gates, and the first thing to fix."""
    record = verified.record
    text = Text(f"{record.status}  {verified.directory}")
    text.stylize(COLOURS[record.status], 0, len(record.status))
    if record.reason:
        text.append(f": {record.reason}")
    console.print(text, soft_wrap=True)
    for gate in (record.verification or {}).get("gates", []):
        difference = gate.get("max_diff")
        measured = "" if difference is None else f", largest difference {difference}"
        checks = pluralize(len(gate["checks"]), "check")
        line = f"  {gate['gate']:<12} {gate['verdict']} ({checks}{measured})"
        console.print(line, soft_wrap=True)
    if verified.power:
        caught, uncaught = verified.power.caught, verified.power.uncaught
        where = f" ({verified.power_file})" if verified.power_file else ""
        line = f"  wrong kernels: {caught} caught, {uncaught} not{where}"
        console.print(line, soft_wrap=True)
    for sentence in record.warnings:
        console.print(f"  but mind: {sentence}", soft_wrap=True)
    for sentence in (record.verification or {}).get("not_examined", []):
        console.print(f"  not examined: {sentence}", soft_wrap=True)
    for line in (record.verification or {}).get("advice", []):
        console.print(f"advice: {line}", soft_wrap=True)


def problems(listed: Sequence[tuple[Problem, str]], console: Console) -> None:
    """Problems by level, each with its idea."""
    for level, group in groupby(listed, key=lambda pair: pair[0].source_level):
        members = list(group)
        console.print(f"{level} ({len(members)})", style="bold")
        width = max(len(problem.name) for problem, _ in members)
        for problem, idea in members:
            console.print(f"  {problem.name:<{width}}  {idea}", soft_wrap=True, markup=False)


def problems_json(listed: Sequence[tuple[Problem, str]]) -> str:
    """The same for programs."""
    rows = [
        {
            "problem": problem.name,
            "source_level": problem.source_level,
            "path": str(problem.path),
            "sha256": problem.sha256,
            "idea": idea,
        }
        for problem, idea in listed
    ]
    return json.dumps({"problems": rows}, indent=1)
