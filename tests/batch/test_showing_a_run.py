"""What people see of a run: a line for each problem, a bar, and the table at the end."""

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from runner.batch.child.answer import VerdictAnswer
from runner.batch.local_execution import LocalVerification
from runner.batch.progress import ProgressBar, ProgressLines, format_line
from runner.cli import run_tables
from runner.store.manifest import Manifest, count
from runner.store.manifest_row import Row
from runner.store.result import Figures

FIGURES = Figures(
    components=5,
    by_level={"kernel": 5},
    unique_kernels=4,
    kernel_instances=9,
    capture="fake",
    estimated_peak_bytes=1,
)
PASSED = Row(
    problem="relu",
    source_level="level1",
    status="passed",
    seconds=2.04,
    peak_memory_bytes=3 << 29,
    figures=FIGURES,
    attempts=1,
)
CRASHED = Row(
    problem="bad[0]",
    source_level="custom",
    status="crashed",
    reason="its process was killed by SIGSEGV in 'capture'",
    attempts=1,
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def manifest(*rows: Row, **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "run_id": "one",
        "state": "finished",
        "arguments": {},
        "versions": {},
        "driver_host": "here",
        "driver_pid": 1,
        "data": "data",
        "started": NOW,
        "finished": NOW,
        "selected": len(rows),
        "counts": count(list(rows)),
        "rows": list(rows),
    }
    return Manifest.model_validate(fields | changes)


def shown(run: Manifest, output: Path = Path("output")) -> str:
    console = Console(file=io.StringIO(), width=200)
    run_tables.print_run(run, output, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_a_line_says_how_long_and_how_much_or_why_not() -> None:
    assert format_line(PASSED, 3, 36) == "[ 3/36] passed     level1/relu  2.0 s  1.5 GiB"
    assert format_line(CRASHED, 4, 36).endswith("crashed    custom/bad[0]: " + str(CRASHED.reason))


def test_lines_tell_what_ended_now_and_not_what_ended_in_an_earlier_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = ProgressLines(2)
    lines.on_problem_end(PASSED.model_copy(update={"attempts": 0}), 1)
    lines.on_stages([("level1/relu", "verify")])
    lines.on_problem_end(CRASHED, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == format_line(CRASHED, 2, 2) + "\n"


def test_a_bar_shows_how_far_what_runs_and_what_did_not_pass() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    bar = ProgressBar(3, console)
    with bar.live:
        bar.on_problem_end(PASSED, 1)
        bar.on_problem_end(CRASHED, 2)
        bar.on_stages([("level3/vit", "verify: step")])
        bar.live.refresh()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("2/3", "1 not passed", "level3/vit", "verify: step", "custom/bad[0]", "SIGSEGV"):
        assert part in text


def test_the_table_counts_by_level_and_status_and_says_why_each_did_not_pass() -> None:
    lines = shown(manifest(PASSED, CRASHED)).splitlines()
    assert lines[0].split() == ["level", "passed", "crashed", "total", "kernels", "seconds"]
    assert lines[2].split() == ["level1", "1", "·", "1", "4", "2"]
    assert lines[3].split() == ["custom", "·", "1", "1", "0", "0"]
    assert lines[4].split() == ["all", "1", "1", "2", "4", "2"]
    assert f"crashed    custom/bad[0]: {CRASHED.reason}" in lines


def test_the_table_ends_with_a_decomposition_to_look_at() -> None:
    text = shown(manifest(PASSED))
    assert "manifest:   output/runs/one/manifest.json\n" in text
    assert text.rstrip().endswith("look at:    output/level1/relu")


def test_what_was_not_run_is_counted() -> None:
    text = shown(manifest(PASSED, selected=3, state="interrupted"))
    assert "2 not run; the same command again finishes them" in text


def test_a_run_of_nothing_that_ended_can_be_shown() -> None:
    assert "level" in shown(manifest(selected=2, state="interrupted"))


def test_a_verdict_minds_only_what_a_user_can_act_on() -> None:
    health = ["changing 1 of 2 weights changes nothing", "the output is all zeros"]
    answer = VerdictAnswer(status="passed", health=health, warnings=health[1:])
    out = io.StringIO()

    run_tables.print_verdict(LocalVerification(Path("relu"), answer), Console(file=out))

    assert out.getvalue().splitlines() == [
        "passed  relu",
        "  but mind: the output is all zeros",
    ]
