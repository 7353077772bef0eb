"""Memory that a problem is expected to take, and what it is given."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.batch.machine import GIB, resident_bytes
from runner.batch.memory_request import (
    ESTIMATE_BYTES,
    LAZY_CODE_BYTES,
    MARGIN_BYTES,
    OPERATION_BYTES,
    STEP_BYTES,
    WORKLOAD_BYTES,
    Forecast,
    MemoryRequest,
    count_threads,
)
from runner.verify.options import QUICK_FLOPS

MIB = 1 << 20
FORECAST = Forecast(
    forward_bytes=400 * MIB,
    inputs_bytes=30 * MIB,
    outputs_bytes=8 * GIB,
    weights_bytes=0,
    flops=10**12,
    operations=10,
    workloads=4,
    steps=100,
    process_bytes=300 * MIB,
)


def expected(**changes: int) -> int:
    return FORECAST.model_copy(update=changes).expected_bytes


def test_a_process_takes_python_its_operations_and_the_forward() -> None:
    files, program = 4 * WORKLOAD_BYTES, 10 * OPERATION_BYTES + 100 * STEP_BYTES
    assert expected() == (300 + 400) * MIB + LAZY_CODE_BYTES + files + program


def test_a_small_output_is_held_while_the_other_side_runs() -> None:
    assert expected(outputs_bytes=20 * MIB) == expected() + 20 * MIB


def test_a_quick_forward_runs_on_other_inputs_too_that_are_small() -> None:
    quick = {"outputs_bytes": 20 * MIB, "flops": int(QUICK_FLOPS)}
    assert expected(**quick) == expected(outputs_bytes=20 * MIB) + 30 * MIB
    assert expected(**quick, inputs_bytes=GIB) == expected(outputs_bytes=20 * MIB)


def test_a_process_knows_what_it_has() -> None:
    blocks: list[bytearray] = []

    def share_of_a_block() -> float:
        before = resident_bytes()
        blocks.append(bytearray(b"x") * (64 * MIB))
        return (resident_bytes() - before) / len(blocks[-1])

    # The first blocks may take memory that other tests have freed.
    assert any(0.9 < share_of_a_block() < 1.2 for _ in range(5))


def test_an_estimate_asks_for_little() -> None:
    assert MemoryRequest.for_capture(20 * GIB).granted_bytes == ESTIMATE_BYTES


@pytest.mark.parametrize(
    ("node_gib", "cores", "granted_gib"), [(20, 2, 4), (7, 2, 3.5), (20, 16, 2), (1, 2, 1)]
)
def test_an_estimate_gets_what_its_core_has_up_to_4_gib(
    node_gib: int, cores: int, granted_gib: float
) -> None:
    needs = MemoryRequest.for_capture(node_gib * GIB, node_gib * GIB // cores)
    assert needs.granted_bytes == granted_gib * GIB


def test_two_models_of_12_gib_never_run_at_once_on_20() -> None:
    needs = MemoryRequest.for_capture(20 * GIB).for_model(12 * GIB, GIB)
    assert 2 * needs.granted_bytes > 20 * GIB


def test_what_is_certainly_too_large_is_only_captured_and_never_grows() -> None:
    needs = MemoryRequest.for_capture(20 * GIB).for_model(30 * GIB, GIB)
    assert not needs.fits
    assert needs.granted_bytes == ESTIMATE_BYTES
    assert not needs.can_grow


def test_what_the_estimate_was_too_low_for_may_grow_once_to_all_there_is() -> None:
    needs = MemoryRequest.for_capture(20 * GIB).for_model(4 * GIB, GIB)
    assert needs.can_grow
    assert not replace(needs, granted_bytes=20 * GIB).can_grow


def test_what_fits_but_for_its_weights_is_given_all_there_is() -> None:
    needs = MemoryRequest.for_capture(20 * GIB).for_model(30 * GIB, GIB, weights_bytes=29 * GIB)
    assert needs.fits
    assert needs.granted_bytes == 20 * GIB
    assert not needs.can_grow


@given(
    most=st.integers(GIB // 4, 1 << 42),
    peak=st.integers(0, 1 << 43),
    capture=st.integers(0, 1 << 36),
)
def test_a_grant_is_never_more_than_there_is_and_covers_what_fits(
    most: int, peak: int, capture: int
) -> None:
    needs = MemoryRequest.for_capture(most).for_model(peak, capture)
    assert 0 < needs.granted_bytes <= most
    if needs.fits:
        assert needs.granted_bytes >= min(most, peak + MARGIN_BYTES)


@pytest.mark.parametrize(("request_gib", "expected"), [(2, 1), (8, 1), (12, 2), (20, 2)], ids=str)
def test_a_problem_that_runs_alone_has_all_the_cores(request_gib: int, expected: int) -> None:
    assert count_threads(2, 20 * GIB, request_gib * GIB) == expected
