"""Measured time of workloads."""

import json
import shutil
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from runner.cli import cli, reports
from runner.errors import StoreError
from runner.report import stopwatch
from runner.report.catalogue import Roofs, Timing, add_times, choose_workloads, collect_workloads
from runner.report.catalogue_text import show_workloads
from runner.report.measure import measure
from runner.report.measurements import (
    MeasuredWorkload,
    Measurements,
    read_measurements,
    with_measurements,
)
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
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "SAY_EVERY_S", 0)
    done = CliRunner().invoke(
        cli,
        ["workloads", str(output / "level3/mlp"), "--measure", "--json"],
        standalone_mode=False,
    )
    assert done.exception is None, done.exception
    told = json.loads(done.stdout)
    assert told["by"] == "time"
    count = len(told["workloads"])
    lines = [f"measured {number} of {count}" for number in range(1, count + 1)]
    kept = output / "level3/mlp/measurements.json"
    assert done.stderr.splitlines() == [*lines, f"{kept}: kdrun report shows them"]
    again = with_measurements(
        collect_workloads(find_subject(str(output / "level3/mlp"), output)),
        read_measurements(kept.parent),
    )
    assert {row.id: row.timing.median_s for row in again.workloads if row.timing} == {
        row["id"]: row["timing"]["median_s"] for row in told["workloads"]
    }
    assert told["roofs"]["bytes_per_s"] > 0
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


def test_a_workload_without_a_time_has_no_share_of_the_time(output: Path) -> None:
    catalogue = collect_workloads(find_subject(str(output / "level3/mlp"), output))
    timing = Timing(median_s=1e-3, fastest_s=1e-3, slowest_s=1e-3, runs=1, outliers=0)
    first, *others = catalogue.workloads
    rows = [first.model_copy(update={"timing": timing}), *others]
    timed = add_times(catalogue, rows, "cpu", Roofs(flops_per_s={}, bytes_per_s=1.0))
    console = Console(file=StringIO(), width=400)
    show_workloads(timed, timed.workloads, 2, console)
    (one, two) = console.file.getvalue().splitlines()[2:4]  # type: ignore[attr-defined]
    assert one.split()[-2:] == ["100.0%", "100.0%"]
    assert two.split()[-2:] == ["-", "-"]


def test_times_that_cannot_be_kept_are_shown_all_the_same(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made / "level1/softmax", tmp_path / "softmax")
    (copy / "measurements.json").mkdir()
    done = CliRunner().invoke(cli, ["workloads", str(copy), "--measure"], standalone_mode=False)
    assert done.exception is None
    assert "but mind: the times are not kept: " in done.stderr
    assert "softmax" in done.stdout


def test_the_component_files_are_not_changed_by_measuring(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made / "level1/softmax", tmp_path / "softmax")
    before = sorted(p.relative_to(copy) for p in copy.rglob("*"))
    CliRunner().invoke(cli, ["workloads", str(copy), "--measure"], standalone_mode=False)
    after = sorted(p.relative_to(copy) for p in copy.rglob("*"))
    assert after == sorted([*before, Path("measurements.json")])


def test_times_of_another_device_replace_and_of_the_same_are_kept(tmp_path: Path) -> None:
    def measured(device: str, name: str) -> Measurements:
        row = MeasuredWorkload(id=name, mode="eval", name=name, untimed="for a test")
        roofs = Roofs(flops_per_s={"float32": 1e9}, bytes_per_s=1e9)
        now = datetime.now(UTC)
        return Measurements(
            device=device, measured=now, kdrun_version="0", roofs=roofs, workloads=[row]
        )

    def ids(document: Measurements) -> set[str]:
        return {row.id for row in document.workloads}

    older = measured("here", "a")
    assert ids(older.updated_by(measured("here", "b"))) == {"a", "b"}
    assert ids(older.updated_by(measured("there", "b"))) == {"b"}


def test_measurements_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "measurements.json").write_text("{")
    with pytest.raises(StoreError, match="not readable measurements"):
        read_measurements(tmp_path)
