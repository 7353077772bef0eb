"""What a run has to do, and with how much memory: functions of listings and numbers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.batch.machine import GIB
from runner.batch.plan import CHILD_BYTES, ESTIMATE_BYTES, Item, Needs, plan, threads
from runner.errors import UsageError
from runner.problems import Problem
from runner.store.result import Figures, ProblemResult, RunOptions

VERSION = "1.0"
PROBLEM = Problem(Path("/data/level1/relu.py"), "relu", "level1", "abc")
FIGURES = Figures(
    components=1,
    by_level={"kernel": 1},
    unique_kernels=1,
    kernel_instances=1,
    capture="fake",
    estimated_peak_bytes=1,
)


def result(**changes: Any) -> ProblemResult:
    fields: dict[str, Any] = {
        "problem": "relu",
        "source_level": "level1",
        "status": "passed",
        "figures": FIGURES,
        "bitwise_equal": True,
        "started": datetime.now(UTC),
        "source_sha256": "abc",
        "kdrun_version": VERSION,
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
) -> Item:
    found = {"level1/relu": earlier} if earlier else {}
    chosen = options or RunOptions()
    return plan([PROBLEM], found, lambda _, __: damage, chosen, VERSION, **flags)[0]


def test_what_has_no_result_is_run() -> None:
    item = planned()
    assert (item.earlier, item.why) == (None, "new")


def test_what_passed_with_the_same_source_options_and_version_is_not_run_again() -> None:
    earlier = result()
    assert planned(earlier).earlier is earlier


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
    assert (item.earlier, item.why) == (None, why)


def test_a_damaged_decomposition_is_made_again() -> None:
    item = planned(result(), damage="original.py")
    assert (item.earlier, item.why) == (None, "original.py is damaged")


def test_no_resume_runs_what_passed() -> None:
    item = planned(result(), resume=False)
    assert (item.earlier, item.why) == (None, "asked for again")


def test_only_failed_takes_what_has_a_result_that_is_not_passed() -> None:
    assert planned(result(status="crashed", reason="x"), only_failed=True).why == "crashed before"


@pytest.mark.parametrize("earlier", [None, result()])
def test_only_failed_with_nothing_failed_says_so(earlier: ProblemResult | None) -> None:
    with pytest.raises(UsageError, match="--only-failed"):
        planned(earlier, only_failed=True)


def test_two_problems_of_one_place_are_refused() -> None:
    twin = Problem(Path("/other/level1/relu.py"), "relu", "level1", "def")
    with pytest.raises(UsageError, match="would both be level1/relu"):
        plan([PROBLEM, twin], {}, lambda _, __: None, RunOptions(), VERSION)


def test_an_estimate_asks_for_little() -> None:
    assert Needs.of_an_estimate(20 * GIB).granted_bytes == ESTIMATE_BYTES


def test_two_models_of_12_gib_never_run_at_once_on_20() -> None:
    needs = Needs.of_an_estimate(20 * GIB).of_a_model(12 * GIB, GIB)
    assert 2 * needs.granted_bytes > 20 * GIB


def test_what_is_certainly_too_large_is_only_captured_and_never_grows() -> None:
    needs = Needs.of_an_estimate(20 * GIB).of_a_model(30 * GIB, GIB)
    assert not needs.fits
    assert needs.granted_bytes == ESTIMATE_BYTES
    assert not needs.can_grow


def test_what_fits_but_for_its_weights_is_given_all_there_is() -> None:
    needs = Needs.of_an_estimate(20 * GIB).of_a_model(30 * GIB, GIB, weight_bytes=29 * GIB)
    assert needs.fits
    assert needs.granted_bytes == 20 * GIB
    assert not needs.can_grow


def test_what_the_estimate_was_too_low_for_may_grow_once_to_all_there_is() -> None:
    needs = Needs.of_an_estimate(20 * GIB).of_a_model(4 * GIB, GIB)
    assert needs.can_grow
    assert needs.all_there_is().granted_bytes == 20 * GIB
    assert not needs.all_there_is().can_grow


@given(
    most=st.integers(GIB // 4, 1 << 42),
    peak=st.integers(0, 1 << 43),
    capture=st.integers(0, 1 << 36),
)
def test_a_grant_is_never_more_than_there_is_and_covers_what_fits(
    most: int, peak: int, capture: int
) -> None:
    needs = Needs.of_an_estimate(most).of_a_model(peak, capture)
    assert 0 < needs.granted_bytes <= most
    if needs.fits:
        assert needs.granted_bytes >= min(most, peak + CHILD_BYTES)


@pytest.mark.parametrize(("request_gib", "expected"), [(2, 1), (8, 1), (12, 2), (20, 2)], ids=str)
def test_a_problem_that_runs_alone_has_all_the_cores(request_gib: int, expected: int) -> None:
    assert threads(2, 20 * GIB, request_gib * GIB) == expected
