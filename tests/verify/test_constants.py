"""A mask that a file makes for itself is the original's; what stands for data may be another."""

import pytest
from changing_files import COMPOSED
from decompositions_of_expressions import lone
from verdicts import assert_passes

KERNEL = "level_0_kernel/kernel.py"
MASK = "self.register_buffer('mask', torch.ones(4, 16).tril())"


def masked(directory, init=MASK):
    return lone(directory, "x + self.mask", init=init, weights=("mask",))


@pytest.mark.parametrize(
    ("true", "other"),
    [
        ("tril()", "triu()"),
        ("tril()", "tril(1)"),
        ("ones(4, 16)", "zeros(4, 16)"),
        ("tril()", "triu() + torch.rand(4, 16) * 1e-7"),
    ],
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


TWO = (
    "self.register_buffer('cos', torch.arange(64.0).view(4, 16).cos())\n"
    "self.register_buffer('sin', torch.arange(64.0).view(4, 16).sin())"
)


def test_a_buffer_is_not_excused_by_another_that_it_equals(tmp_path, judged, complaints):
    made = lone(tmp_path / "made", "x * self.cos + self.sin", init=TWO, weights=("cos", "sin"))
    made.edit(KERNEL, "16).cos()", "16).sin()")

    said = complaints(judged(made, trials=2), "weights")[KERNEL]

    assert said == "failed: its own cos is not the original's cos"


def test_the_composition_says_which_buffer_it_is_and_not_the_tree(tmp_path, judged, complaints):
    made = masked(tmp_path / "made")
    made.edit(KERNEL, "'mask'", "'table'")
    made.edit(KERNEL, "x + self.mask", "x + self.table")
    made.edit(KERNEL, "tril()", "triu()")
    made.edit(COMPOSED, "kernel.mask", "kernel.table")

    said = complaints(judged(made, trials=2), "weights")[KERNEL]

    assert said == "failed: its own table is not the original's mask"


def test_a_plain_tensor_of_the_original_counts_as_its_buffer(tmp_path, judged, complaints):
    made = masked(tmp_path / "made")
    made.edit("original.py", MASK, "self.mask = torch.ones(4, 16).tril()")
    made.edit(KERNEL, "tril()", "triu()")
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=""))

    said = complaints(judged(made, trials=2), "weights")[KERNEL]

    assert said == "failed: its own mask is not the original's mask"


def test_a_literal_is_compared_by_its_numbers(tmp_path, judged, complaints):
    text = "torch.maximum(x, torch.full((4, 16), {}))"
    made = lone(tmp_path / "made", text.format(-1e4), text.format(-50.0))

    said = complaints(judged(made, trials=1), "coverage")["model"]

    assert "maximum(float32[4, 16], float32[4, 16]) -> float32[4, 16] works on other" in said


@pytest.mark.parametrize(
    "expression",
    [
        "torch.clamp(x, torch.tensor(-100.0), torch.tensor(100.0))",
        "x * torch.tensor(2.0)",
        f"x[:, {[*range(16)][::-1]}]",
    ],
)
def test_a_kernel_may_hold_the_literals_of_the_original(expression, tmp_path, judged):
    assert_passes(judged(lone(tmp_path / "made", expression), trials=1))
