"""Comparing outputs: structure first, then shapes and dtypes, then every value."""

import math
import resource

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.verify.gates.compare import (
    COMPOSITION,
    STEP,
    are_identical,
    compare,
    enlarge,
    notices_enlarged_output,
    outputs_differ,
)
from runner.verify.gates.difference import Difference
from runner.verify.runtime.disk_cache import DiskCache, free_unused_storage, size_of
from runner.verify.runtime.output_leaves import MissingValuesError, all_finite

IN_THIS_PROCESS = True


def test_equal_tensors_are_equal_to_the_bit():
    x = torch.randn(3, 4)

    assert compare(x, x.clone(), STEP) == Difference(0.0, True, None, False)


def test_a_difference_within_tolerance_is_measured_and_no_longer_bitwise():
    x = torch.ones(4)

    difference = compare(x, x + 5e-7, STEP)

    assert difference.reason is None
    assert not difference.bitwise_equal
    assert 0 < difference.max_diff < 1e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_has_a_thousandth(dtype):
    x = torch.full((8,), 4.0, dtype=dtype)
    one_step = torch.nextafter(torch.tensor(4.0), torch.tensor(5.0)).to(dtype)

    assert compare(x, x * 1.0 + 0 * one_step, STEP).reason is None
    assert compare(x, x + 0.1, STEP).reason is not None


def test_integers_and_booleans_are_exact():
    x = torch.tensor([1 << 40, 2])

    assert (
        compare(x, x + torch.tensor([0, 1]), STEP).reason == "output differs by 1, 1 of 2 elements"
    )
    flags = torch.tensor([True, False])
    assert compare(flags, ~flags, STEP).reason is not None


def test_the_composition_is_held_to_an_absolute_bound_too():
    x = torch.full((4,), 1e3)

    assert compare(x, x + 5e-3, STEP).reason is None
    assert "allowed is 0.0001" in str(compare(x, x + 5e-3, COMPOSITION).reason)


def test_nan_in_the_same_places_is_equal_and_flagged():
    x = torch.tensor([1.0, math.nan, math.inf])

    difference = compare(x, x.clone(), STEP)

    assert difference.reason is None
    assert difference.not_finite


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_nan_or_infinity_on_one_side_is_never_equal(odd):
    x = torch.tensor([1.0, 2.0])
    y = torch.tensor([1.0, odd])

    for one, other in ((x, y), (y, x)):
        difference = compare(one, other, STEP)
        assert difference.max_diff == math.inf
        assert "1 of 2" in str(difference.reason)


def test_infinities_of_different_sign_are_not_equal():
    assert compare(torch.tensor([math.inf]), torch.tensor([-math.inf]), STEP).reason is not None


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (torch.ones(2), (torch.ones(2),), "tuple(tensor) instead of tensor"),
        ([torch.ones(2)], (torch.ones(2),), "tuple(tensor) instead of list(tensor)"),
        ({"a": torch.ones(2)}, {"b": torch.ones(2)}, "dict(b: tensor) instead of dict(a: tensor)"),
        ((torch.ones(2), None), (torch.ones(2), torch.ones(2)), "tuple(tensor, tensor) instead"),
        (torch.ones(2), torch.ones(2, 1), "output has shape [2, 1] instead of [2]"),
        (torch.ones(2), torch.ones(2).half(), "output is float16 instead of float32"),
        ((torch.ones(2), 3), (torch.ones(2), 4), "output[1] is 4 instead of 3"),
    ],
)
def test_what_numbers_cannot_say_is_said_in_words(expected, actual, said):
    difference = compare(expected, actual, STEP)

    assert said in str(difference.reason)
    assert difference.max_diff == math.inf


def test_a_wrong_output_would_have_been_noticed():
    x = torch.randn(8)

    assert notices_enlarged_output(x, x.clone(), STEP, bitwise=True)


def test_an_output_of_nan_hides_everything():
    x = torch.full((8,), math.nan)

    assert not notices_enlarged_output(x, x.clone(), STEP, bitwise=True)


@pytest.mark.parametrize("size", [20.0, 0.02, 1e-8])
def test_small_outputs_are_compared_as_strictly_as_large_ones(size):
    x = torch.linspace(-1, 1, 9) * size

    assert compare(x, x * (1 + 5e-6), STEP).reason is None
    assert compare(x, x + min(size, 1.0) * 5e-7, STEP).reason is None
    assert compare(x, x + min(size, 1.0) * 5e-5, STEP).reason is not None
    assert notices_enlarged_output(x, x * (1 + 5e-6), STEP, bitwise=False)


def test_infinities_do_not_loosen_the_tolerance():
    x = torch.tensor([0.01, math.inf, math.nan])

    assert compare(x, x + 5e-7, STEP).reason is not None


def test_the_largest_value_of_all_pieces_says_the_scale(monkeypatch):
    monkeypatch.setattr("runner.verify.runtime.output_leaves.PIECE", 2)
    x = torch.tensor([0.0, 0.0, 0.0, 1.0])
    y = x + torch.tensor([5e-7, 0.0, 0.0, 0.0])

    assert compare(x, y, STEP).reason is None
    assert not outputs_differ(x, y, STEP)
    assert outputs_differ(x * 1e-3, x * 1e-3 + 5e-7, STEP)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    piece=st.integers(1, 7),
    transposed=st.booleans(),
    spilled=st.booleans(),
    wrong=st.booleans(),
)
def test_pieces_see_what_the_whole_would_show(shape, piece, transposed, spilled, wrong):
    x = torch.randn(shape)
    y = x.clone()
    if wrong and y.numel():
        y.view(-1)[-1] += 1
    if transposed and x.dim() > 1:
        x, y = x.transpose(0, 1), y.transpose(0, 1)
    with pytest.MonkeyPatch.context() as patch, DiskCache(1) as spill, spill.storing_values():
        patch.setattr("runner.verify.runtime.output_leaves.PIECE", piece)
        expected = spill.store(x) if spilled else x
        difference = compare(expected, y, STEP)

    assert (difference.reason is None) == torch.equal(x, y)
    assert difference.bitwise_equal == torch.equal(x, y)


def test_a_spill_leaves_nothing_behind_and_keeps_what_is_small(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    small, large = torch.ones(2), torch.ones(1000)

    with DiskCache(1000) as spill, spill.storing_values():
        assert spill.store(small) is small
        assert compare(spill.store({"y": [large]}), {"y": [large]}, STEP).bitwise_equal
        assert list(tmp_path.iterdir())

    assert not list(tmp_path.iterdir())


def test_an_output_keeps_no_room_for_what_it_was_made_of():
    whole = torch.ones(100, 10)
    small = free_unused_storage([whole[0], {"a": whole[:, :1]}])
    assert size_of(small) == 4 * (10 + 100)
    assert small[0].tolist() == [1.0] * 10
    halves = list(whole.split(50))
    assert all(a is b for a, b in zip(free_unused_storage(halves), halves, strict=True))


def test_nothing_is_spilled_onto_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 100})())
    large = torch.ones(1000)

    with DiskCache(1000) as spill, spill.storing_values():
        assert spill.store(large) is large


def test_a_large_output_stays_where_it_is_if_there_is_room_for_both_sides():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    large = torch.ones(peak // 8, dtype=torch.uint8)

    with DiskCache(1, memory_bytes=2 * peak) as spill:
        assert spill.store(large) is large
    with DiskCache(1, memory_bytes=peak) as spill:
        assert spill.store(large) is not large


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_digests_tell_equal_outputs_and_ask_for_values_otherwise(dtype):
    x = torch.arange(24).reshape(4, 6).to(dtype).t()
    with DiskCache(1) as spill:
        kept = spill.store((x, None))

    assert compare(kept, (x.clone(), None), STEP) == Difference()
    with pytest.raises(MissingValuesError):
        compare(kept, (x.logical_not().to(dtype), None), STEP)
    assert "shape" in str(compare(kept, (x.t(), None), STEP).reason)


def test_digests_remember_that_something_was_not_finite():
    x = torch.tensor([1.0, math.nan])
    with DiskCache(1) as spill:
        assert compare(spill.store(x), x, STEP).not_finite


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.complex64])
def test_a_sum_that_overflows_is_no_infinity(dtype):
    largest = torch.finfo(dtype).max

    assert all_finite(torch.full((100,), largest, dtype=dtype))
    assert not all_finite(torch.tensor([1.0, math.nan], dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16, torch.uint8])
@pytest.mark.parametrize("begin", [0, 1, 8])
def test_one_bit_is_a_difference_wherever_a_tensor_begins(dtype, begin):
    x = torch.arange(4096).to(dtype)[begin:]
    y = x.clone()
    assert are_identical(x, y)

    y.view(torch.uint8)[-1] ^= 1

    assert not are_identical(x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_control_of_equal_outputs_is_judged_by_bits(dtype):
    for size in [0.0, math.nan, math.inf, *torch.logspace(-9, 0, 60).tolist()]:
        x = torch.full((5,), size).to(dtype)

        assert notices_enlarged_output(x, x, STEP, bitwise=True) == (
            not are_identical(x, enlarge(x))
        )
