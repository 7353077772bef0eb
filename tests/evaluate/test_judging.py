"""Errors of outputs: in tolerances, beside the component's own, and where no tolerance is left."""

import math

import pytest
import torch

from runner.evaluate.judging import judge_output

EXACT = torch.linspace(-2, 2, 64, dtype=torch.float64)
EAGER = EXACT.float()


def test_another_order_of_sums_is_right_and_half_precision_is_not() -> None:
    nearly = EAGER * (1 + 2**-22)
    assert judge_output(EXACT, EAGER, nearly).reason is None
    assert "of 64 elements" in (judge_output(EXACT, EAGER, EAGER.bfloat16().float()).reason or "")


@pytest.mark.parametrize("value", [1e-9, 50.0])
def test_where_the_component_gives_zeros_nothing_else_is_right(value: float) -> None:
    zeros = torch.zeros(8)
    reason = judge_output(zeros.double(), zeros, torch.full((8,), value)).reason
    assert reason is not None
    assert "8 of 8 elements" in reason


def test_infinities_have_to_be_in_the_same_places_and_hide_no_other_error() -> None:
    exact, eager = EXACT.clone(), EAGER.clone()
    exact[0] = eager[0] = math.inf
    actual = eager.clone()
    assert judge_output(exact, eager, actual).reason is None
    actual[5] += 1
    assert "1 of 64 elements" in (judge_output(exact, eager, actual).reason or "")
    actual[0] = -math.inf
    assert "NaN or infinite in other places" in (judge_output(exact, eager, actual).reason or "")


def test_without_float64_the_components_own_output_decides() -> None:
    assert judge_output(None, EAGER, EAGER.clone()).tolerances == 0.0
    assert judge_output(None, EAGER, EAGER + 1).reason is not None
