"""Attacks that no output shows: an operand has other values where nothing depends on them."""

import pytest
from decompositions_of_expressions import LINEAR, RELU, line, lone
from verdicts import assert_passes, complaints_of

pytestmark = pytest.mark.long

TWO = {"inputs": ("torch.rand(4, 16)", "torch.rand(4, 16)"), "shapes": ((4, 16),) * 2}
SQUARE = {"inputs": ("torch.rand(8, 8)",) * 2, "shapes": ((8, 8),) * 2, "output": (8, 8)}
BOUND = {"init": "self.low = nn.Parameter(torch.rand(16) - 90.0)", "weights": ("low",)}
SMOOTH = "torch.where((x - y).abs() < 1.0, 0.5 * (x - y) ** 2, (x - y).abs() - 0.5).mean()"
SOFTMAX = "(e := torch.exp(x - x.amax(1, keepdim=True))) / e.sum(1, keepdim=True)"
UPPER = "torch.minimum(x, torch.linspace(50.0, 60.0, 16))"
LOSS = {"output": ()}

SAME_OUTPUT = {
    "one element for the branch that is not taken": (
        SMOOTH,
        ("(x - y).abs() - 0.5", "((x - y).abs() - 0.5)[:1, :1].expand(4, 16)"),
        TWO | LOSS,
    ),
    "a branch that is not taken, transposed": (
        SMOOTH,
        ("(x - y).abs() - 0.5", "((x - y).abs() - 0.5).t()"),
        SQUARE | LOSS,
    ),
    "one element for a condition that always holds": (
        SMOOTH,
        ("(x - y).abs() < 1.0", "((x - y).abs() < 1.0)[:1, :1].expand(4, 16)"),
        TWO | LOSS,
    ),
    "the first row's maximum for all rows": (
        SOFTMAX,
        ("x.amax(1, keepdim=True)", "x.amax(1, keepdim=True)[:1].expand(4, 1)"),
        {},
    ),
    "one element of a bound that nothing reaches": (
        "torch.maximum(x, self.low)",
        ("self.low", "self.low[:1].expand(16)"),
        BOUND,
    ),
    "another bound that nothing reaches": (UPPER, ("60.0", "60.5"), {}),
}


@pytest.mark.parametrize("name", SAME_OUTPUT)
def test_an_operand_with_other_values_is_told_although_no_output_shows_it(name, tmp_path, judged):
    expression, (right, wrong), options = SAME_OUTPUT[name]
    honest = lone(tmp_path / "honest", expression, **options)
    attack = lone(tmp_path / "attack", expression, expression.replace(right, wrong), **options)

    assert_passes(judged(honest, trials=2))
    (reason, *_) = [check.reason for check in complaints_of(judged(attack, trials=2))]
    assert "works on other values than in the original" in reason


OWN_INPUTS = {
    "one number throughout": (
        ("cumsum", "", "torch.cumsum(x, 1)"),
        "torch.ones(4, 16)",
        "its input 1 is one number throughout on its own inputs, and not in the model",
    ),
    "positive where the model has both signs": (
        RELU,
        "torch.rand(4, 16)",
        "gives its input 1 unchanged on its own inputs, and not in the model",
    ),
}


@pytest.mark.parametrize("name", OWN_INPUTS)
def test_own_inputs_that_show_less_than_what_arrives_are_told(name, tmp_path, judged):
    stage, drawn, reason = OWN_INPUTS[name]
    made = line(tmp_path, [LINEAR, stage])
    made.edit_everywhere(f"{stage[0]}.py", "torch.randn(4, 16)", drawn)

    assert reason in str([check.reason for check in complaints_of(judged(made, trials=2))])
