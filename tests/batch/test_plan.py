"""What a run has to do, and with how much memory: functions of listings and numbers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner import __version__
from runner.batch.plan import PlanItem, plan
from runner.errors import UsageError
from runner.problems import Problem
from runner.store.result import ProblemResult, RunOptions
from tests.store.documents import FIGURES

PROBLEM = Problem(Path("/data/level1/relu.py"), "relu", "level1", "abc")


def result(**changes: Any) -> ProblemResult:
    fields: dict[str, Any] = {
        "problem": "relu",
        "source_level": "level1",
        "status": "passed",
        "figures": FIGURES,
        "bitwise_equal": True,
        "started": datetime.now(UTC),
        "source_sha256": "abc",
        "kdrun_version": __version__,
        "torch_version": "2",
        "options": RunOptions(),
        "files": {"original.py": "abc"},
    }
    return ProblemResult.model_validate(fields | changes)


def planned(
    earlier: ProblemResult | None = None,
    *,
    damage: str | None = None,
    options: RunOptions | None = None,
    **flags: bool,
) -> PlanItem:
    found = {"level1/relu": earlier} if earlier else {}
    chosen = options or RunOptions()
    return plan([PROBLEM], found, lambda _, __: damage, chosen, **flags)[0]


def test_what_has_no_result_is_run() -> None:
    item = planned()
    assert (item.earlier_result, item.reason) == (None, "new")


def test_what_passed_with_the_same_source_options_and_version_is_not_run_again() -> None:
    earlier = result()
    assert planned(earlier).earlier_result is earlier


@pytest.mark.parametrize(
    ("earlier", "why"),
    [
        (result(source_sha256="other"), "its source changed"),
        (result(kdrun_version="0.9"), "made by kdrun 0.9"),
        (result(options=RunOptions(trials=5)), "other options"),
        (result(status="failed", reason="no"), "failed before"),
        (result(status="timeout", reason="slow"), "timeout before"),
    ],
)
def test_a_result_that_does_not_stand_is_made_again(earlier: ProblemResult, why: str) -> None:
    item = planned(earlier)
    assert (item.earlier_result, item.reason) == (None, why)


def test_what_was_written_without_verification_stands_where_the_same_is_asked_for() -> None:
    options = RunOptions(verify=False)
    written = result(status="written", reason="not verified", bitwise_equal=None, options=options)
    assert planned(written, options=options).reason == "written before"
    assert planned(written, options=options).earlier_result is written
    assert planned(written).earlier_result is None
    assert planned(result(), options=options).earlier_result is not None


def test_a_damaged_decomposition_is_made_again() -> None:
    item = planned(result(), damage="original.py")
    assert (item.earlier_result, item.reason) == (None, "original.py is damaged")


def test_no_resume_runs_what_passed() -> None:
    item = planned(result(), resume=False)
    assert (item.earlier_result, item.reason) == (None, "asked for again")


def test_only_failed_takes_what_has_a_result_that_is_not_passed() -> None:
    assert (
        planned(result(status="crashed", reason="x"), only_failed=True).reason == "crashed before"
    )


@pytest.mark.parametrize("earlier", [None, result()])
def test_only_failed_with_nothing_failed_says_so(earlier: ProblemResult | None) -> None:
    with pytest.raises(UsageError, match="--only-failed"):
        planned(earlier, only_failed=True)


def test_two_problems_of_one_place_are_refused() -> None:
    twin = Problem(Path("/other/level1/relu.py"), "relu", "level1", "def")
    with pytest.raises(UsageError, match="would both be level1/relu"):
        plan([PROBLEM, twin], {}, lambda _, __: None, RunOptions())
