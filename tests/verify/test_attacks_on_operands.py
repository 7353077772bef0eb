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


CUMSUM = ("cumsum", "", "torch.cumsum(x, 1)")
ONE_NUMBER = (
    "its input 1 is one number at nearly all places on its own inputs, and not in the model"
)
OWN_INPUTS = {
    "one number throughout": (CUMSUM, "torch.ones(4, 16)", ONE_NUMBER),
    "one in each row": (CUMSUM, "F.one_hot(torch.arange(4), 16).float()", ONE_NUMBER),
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


def test_own_ids_that_are_all_one_are_told(tmp_path, judged):
    drawn = "torch.randint(0, 9, (40,))"
    words = {"init": "self.op = nn.Embedding(9, 16)", "weights": ("op.weight",)}
    ids = {"inputs": (drawn,), "shapes": ((40,),), "dtypes": ("int64",), "output": (40, 16)}
    made = lone(tmp_path, "self.op(x)", **words, **ids)
    made.edit("level_0_kernel/kernel.py", drawn, "torch.zeros(40, dtype=torch.int64)")

    (reason,) = [check.reason for check in complaints_of(judged(made, trials=2))]
    assert reason.startswith(ONE_NUMBER)


@pytest.mark.parametrize("drawing", ["zeros_", "eye_"])
def test_own_weights_that_show_less_than_the_models_are_told(drawing, tmp_path, judged):
    made = line(tmp_path, [LINEAR, RELU])
    module = "self.op = nn.Linear(16, 16)"
    drawn = f"{module}\n        nn.init.{drawing}(self.op.weight)"
    made.edit_everywhere("linear.py", module, drawn)

    (reason,) = [check.reason for check in complaints_of(judged(made, trials=2))]
    assert reason.startswith("its weight op.weight is one number at nearly all places by itself")
    assert reason.endswith("and not in the model: draw it, with torch.randn for example")


@pytest.mark.parametrize("trials", [1, 2])
def test_weights_may_be_zeros_where_the_models_are(trials, tmp_path, judged):
    init = "self.low = nn.Parameter(torch.zeros(4, 16))"

    assert_passes(
        judged(lone(tmp_path, "x + self.low", init=init, weights=("low",)), trials=trials)
    )
