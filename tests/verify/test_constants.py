"""A mask that a file makes for itself is the original's; what stands for data may be another."""

import pytest
from decompositions_of_expressions import lone
from verdicts import assert_passes

KERNEL = "level_0_kernel/kernel.py"
MASK = "self.register_buffer('mask', torch.ones(4, 16).tril())"


def masked(directory, init=MASK):
    return lone(directory, "x + self.mask", init=init, weights=("mask",))


@pytest.mark.parametrize(
    ("true", "other"),
    [("tril()", "triu()"), ("tril()", "tril(1)"), ("ones(4, 16)", "zeros(4, 16)")],
)
def test_another_mask_is_told(true, other, tmp_path, judged, complaints):
    made = masked(tmp_path / "made")
    made.edit(KERNEL, true, other)

    said = complaints(judged(made, trials=2), "weights")[KERNEL]

    assert said == "failed: its own mask is not the original's mask"


def test_the_same_mask_in_other_words_is_fine(tmp_path, judged):
    made = masked(tmp_path / "made")
    made.edit(KERNEL, "torch.ones(4, 16).tril()", "1.0 - torch.ones(4, 16).triu(1)")

    assert_passes(judged(made, trials=2))


def test_a_mask_that_is_drawn_stands_for_one_that_cannot_be_written_down(tmp_path, judged):
    made = masked(tmp_path / "made")
    made.edit(KERNEL, "torch.ones(4, 16).tril()", "torch.rand(4, 16)")

    assert_passes(judged(made, trials=2))


def test_numbers_stand_for_those_that_the_original_draws(tmp_path, judged):
    made = masked(tmp_path / "made", "self.register_buffer('mask', torch.rand(4, 16))")
    made.edit(KERNEL, "torch.rand(4, 16))", "torch.ones(4, 16))")

    assert_passes(judged(made, trials=2))
