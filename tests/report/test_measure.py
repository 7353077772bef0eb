"""Measured time of workloads."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from runner.cli import cli, reports
from runner.report import stopwatch
from runner.report.catalogue import choose_workloads, collect_workloads
from runner.report.measure import measure
from runner.report.subject import find_subject

pytestmark = pytest.mark.long


def test_the_median_is_not_moved_by_an_outlier_which_is_counted() -> None:
    told = stopwatch.summarise_times([1.0, 1.01, 0.99, 1.0, 9.0])
    assert told["median_s"] == 1.0
    assert (told["runs"], told["outliers"], told["slowest_s"]) == (5, 1, 9.0)


def test_small_differences_are_no_outliers() -> None:
    assert stopwatch.summarise_times([1.0, 1.0, 1.0, 1.05])["outliers"] == 0


def test_runs_before_the_clock_is_warm_do_not_count() -> None:
    spent = iter([50.0, 40.0, 30.0] + [1e-3] * 10_000)
    seconds = stopwatch.time_runs(lambda: None, lambda run: next(spent))
    assert len(seconds) <= stopwatch.MOST_RUNS
    assert max(seconds) < 1


def test_a_slow_kernel_is_not_repeated_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: now[0])

    def slow(run: object) -> float:
        now[0] += 15.0
        return 15.0

    assert stopwatch.time_runs(lambda: None, slow) == [15.0, 15.0]


def test_real_workloads_are_timed_and_sorted_by_time(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "SAY_EVERY_S", 0)
    done = CliRunner().invoke(
        cli,
        ["workloads", str(made / "level3/mlp"), "--measure", "--json"],
        standalone_mode=False,
    )
    assert done.exception is None, done.exception
    told = json.loads(done.stdout)
    assert told["by"] == "time"
    count = len(told["workloads"])
    lines = [f"measured {number} of {count}" for number in range(1, count + 1)]
    assert done.stderr.splitlines() == lines
    assert told["measured_on"]
    assert all(row["timing"]["runs"] >= 3 for row in told["workloads"])
    total = sum(row["timing"]["median_s"] * row["instances"] for row in told["workloads"])
    assert told["time_s"] == pytest.approx(total)


def test_a_workload_that_fails_or_does_not_fit_has_a_reason_and_no_time(output: Path) -> None:
    subject = find_subject(str(output / "level3/mlp"), output)
    catalogue = collect_workloads(subject)
    rows = choose_workloads(catalogue, [], None)
    broken = rows[0]
    place = subject.problems[0].directory / broken.uses[0].path
    place.write_text(place.read_text().replace("return", "raise ValueError('as told') #", 1))
    huge = rows[1].model_copy(update={"bytes": 2**50})
    done = measure(
        catalogue,
        subject,
        [broken, huge],
        device="cpu",
        memory_bytes=None,
        on_done=lambda row: None,
    )
    said = {row.name: row.untimed for row in done.workloads}
    assert said[broken.name] == "as told"
    assert "GiB, there are" in str(said[huge.name])
    assert done.notes[0] == f"Only 2 of {len(rows)} workloads were measured."
    assert done.time_s == 0


def test_the_component_files_are_not_changed_by_measuring(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made / "level1/softmax", tmp_path / "softmax")
    before = sorted(p.relative_to(copy) for p in copy.rglob("*"))
    CliRunner().invoke(cli, ["workloads", str(copy), "--measure"], standalone_mode=False)
    assert sorted(p.relative_to(copy) for p in copy.rglob("*")) == before
