"""Runs compared: what broke, what changed, what is beyond the noise, and a trend."""

import math
import random
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sample_run import RUN, write_run

from runner.cli import cli
from runner.report.page.comparison import LEAST_SECONDS, beyond_noise
from runner.report.subject import find_subject
from runner.tree.document import TREE_FILE


def test_one_problem_that_is_twice_as_slow_is_beyond_the_noise_of_the_others() -> None:
    draw = random.Random(0)
    pairs = [(10.0, 10 * math.exp(draw.gauss(0, 0.05))) for _ in range(40)]
    assert [i for i, far in enumerate(beyond_noise([*pairs, (10.0, 20.0)], 0.5)) if far] == [40]


def test_a_machine_that_is_slower_as_a_whole_marks_nothing() -> None:
    assert not any(beyond_noise([(float(n), 1.5 * n) for n in range(5, 30)], LEAST_SECONDS))


def test_small_and_missing_figures_are_never_beyond_the_noise() -> None:
    assert beyond_noise([(0.01, 0.3), None, (0.0, 5.0), (1.0, 9.0)], 0.5) == [
        False,
        False,
        False,
        True,
    ]


def test_a_run_that_does_not_exist_is_one_line(made: Path) -> None:
    done = CliRunner().invoke(cli, ["report", RUN, "gone", "--output", str(made)])
    assert str(done.exception).startswith("no run 'gone'")


@pytest.fixture
def later(output: Path) -> Path:
    """A second run, in which one problem fails, one is slower, and one has another tree."""
    rows = [problem.row for problem in find_subject(RUN, output).problems]
    rows[0] = rows[0].model_copy(update={"status": "failed", "reason": "step: a <b> difference"})
    rows[1] = rows[1].model_copy(update={"seconds": 90.0, "result_sha256": "0"})
    rows[3] = rows[3].model_copy(update={"result_sha256": "0"})
    day = datetime(2030, 1, 2, tzinfo=UTC)
    write_run(output, rows=rows, selected=4, run_id="later", started=day, finished=day)
    path = shutil.copytree(output / "level3/mlp", output / "runs/later/level3/mlp") / TREE_FILE
    path.write_text(path.read_text().replace('"operation": "relu"', '"operation": "gelu"'))
    return output


@pytest.mark.browser
def test_two_runs_show_what_broke_what_changed_and_what_is_slower(visit: Any, later: Path) -> None:
    to = later / "comparison.html"
    done = CliRunner().invoke(
        cli, ["report", RUN, "later", "--output", str(later), "--to", str(to)]
    )
    assert done.exit_code == 0, done.output
    page = visit(file=to)
    assert page.title() == "changes · later - kdrun"
    broken = page.locator("section", has=page.locator("#broken"))
    assert "level1/softmax" in broken.inner_text()
    assert "a <b> difference" in broken.inner_text()
    changed = page.locator("section", has=page.locator("#trees"))
    assert "level3/mlp" in changed.inner_text()
    changed.locator("summary").click()
    assert "relu" in changed.inner_text()
    row = page.locator("tr", has_text="level2/linear_gelu").last
    assert row.locator(".beyond").first.inner_text().startswith("▲")
    page.locator("a", has_text="level3/mlp").first.click()
    page.wait_for_selector(".canvas[data-nodes]")


@pytest.mark.browser
def test_more_than_two_runs_are_a_trend_by_date(visit: Any, output: Path) -> None:
    for month in (3, 1, 2):
        day = datetime(2030, month, 1, tzinfo=UTC)
        write_run(output, run_id=f"month-{month}", started=day, finished=day)
    names = ["month-3", "month-1", "month-2"]
    to = output / "trend.html"
    done = CliRunner().invoke(cli, ["report", *names, "--output", str(output), "--to", str(to)])
    assert done.exit_code == 0, done.output
    page = visit(file=to)
    trend = page.locator("section", has=page.locator("#trend"))
    trend.locator("canvas").wait_for()
    assert trend.locator("tbody td:first-child").all_inner_texts() == sorted(names)
    assert page.inner_text("h1") == "month-2 → month-3"
