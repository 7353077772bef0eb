"""Attacks that the model's own values hide: other values would show them."""

import hashlib

import pytest
from attacks import Attacks, assert_caught
from decompositions_of_expressions import TANH, line, lone

pytestmark = pytest.mark.long

HIDDEN = Attacks()
KERNEL = "level_0_kernel/kernel.py"
SQUARE = {
    "inputs": ("torch.randn(128, 128)",),
    "shapes": ((128, 128),),
    "output": (128, 128),
}
IMAGE = {
    "inputs": ("torch.randn(64, 3, 224, 224)",),
    "shapes": ((64, 3, 224, 224),),
    "output": (64, 3, 228, 228),
}
LIMITS = "(torch.arange(128 * 128).view(128, 128) * 1e6 + 1e9)"
PADDED = "out = torch.{}(64, 3, 228, 228)\n        out[:, :, 2:-2, 2:-2] = x\n        return out"
TANH_X = "return torch.tanh(x)"


def changed(made, old, new):
    """Change what an attack's kernel file says; the original stays."""
    made.edit(KERNEL, old, new)
    return made


def changed_original(made, old, new):
    made.edit("original.py", old, new)
    digest = hashlib.sha256(made.read("original.py").encode()).hexdigest()
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))
    return made


def few_limits(directory):
    other = f"torch.where(torch.arange(128) % 2 == 1, 30.0, {LIMITS})"
    return lone(directory, f"torch.minimum(x, {LIMITS})", f"torch.minimum(x, {other})", **SQUARE)


def a_state_of_zeros(directory):
    options = {"inputs": ("torch.zeros(2, 4, 16)",), "shapes": ((2, 4, 16),)}
    return lone(directory, "torch.tanh(x[0])", "torch.tanh(x[1])", **options)


def an_input_of_ones(directory):
    options = {"inputs": ("torch.randn(4, 16)", "torch.ones(4, 16)"), "shapes": ((4, 16),) * 2}
    return lone(directory, "torch.mul(x, y)", "torch.mul(x, y[:, :1])", **options)


def a_mask_that_hides_nothing(directory):
    options = {
        "inputs": ("torch.randn(8, 8)", "torch.zeros(8, 8, dtype=torch.bool)"),
        "shapes": ((8, 8),) * 2,
        "dtypes": ("float32", "bool"),
        "output": (8, 8),
    }
    return lone(directory, "x.masked_fill(y, 0.0)", "x.masked_fill(y.t(), 0.0)", **options)


def lengths_that_are_equal(directory):
    options = {
        "inputs": ("torch.randn(4, 16)", "torch.full((4, 1), 8)"),
        "shapes": ((4, 16), (4, 1)),
        "dtypes": ("float32", "int64"),
    }
    return lone(directory, "torch.mul(x, y)", "torch.mul(x, y[:1].expand(4, 1))", **options)


def a_buffer_that_hides_nothing(directory):
    options = {
        "inputs": ("torch.randn(8, 8)",),
        "shapes": ((8, 8),),
        "output": (8, 8),
        "init": "self.register_buffer('seen', torch.zeros(8, 8, dtype=torch.bool))",
        "weights": ("seen",),
    }
    wrong = "x.masked_fill(self.seen.t(), 0.0)"
    return lone(directory, "x.masked_fill(self.seen, 0.0)", wrong, **options)


def a_choice_after_a_fresh_bias(directory):
    stages = [("linear", "nn.Linear(16, 16)", "self.op(x)"), ("sign", "", "torch.sign(x)")]
    made = line(directory, stages)
    linear = "self.op_0 = nn.Linear(16, 16)"
    fresh = f"{linear}\n        nn.init.zeros_(self.op_0.bias)"
    one = "F.linear(x, self.op.weight, self.op.bias[3:4].expand(16))"
    made.edit_everywhere("linear.py", "self.op(x)", one)
    return changed_original(made, linear, fresh)


def padding(directory):
    made = lone(directory, "x", **IMAGE)
    made = changed_original(made, "return x\n", f"{PADDED.format('zeros')}\n")
    return changed(made, "return x\n", f"{PADDED.format('empty')}\n")


def a_tanh(directory):
    return lone(directory, "torch.tanh(x)")


@HIDDEN.blame("model", make=few_limits)
def differs_at_every_second_place_of_a_large_table(made):
    pass


@HIDDEN.blame(KERNEL, "model", make=a_state_of_zeros)
def takes_another_part_of_an_input_of_zeros(made):
    pass


@HIDDEN.blame(KERNEL, "model", make=an_input_of_ones)
def takes_one_column_of_a_mask_of_ones(made):
    pass


@HIDDEN.blame(KERNEL, "model", make=a_mask_that_hides_nothing)
def turns_a_mask_that_hides_nothing(made):
    pass


@HIDDEN.blame(KERNEL, "model", make=a_buffer_that_hides_nothing)
def turns_a_buffer_that_hides_nothing(made):
    pass


@HIDDEN.blame(KERNEL, "model", make=lengths_that_are_equal)
def takes_one_length_for_all(made):
    pass


@HIDDEN.blame("linear", "model", make=a_choice_after_a_fresh_bias)
def spreads_one_element_of_a_bias_of_zeros(made):
    pass


@HIDDEN.blame(KERNEL, "composition_test.py", "model", "original.py", make=padding)
def pads_with_memory_that_happens_to_be_zero(made):
    pass


@HIDDEN.blame("composition_test.py", make=a_tanh)
def wipes_the_callers_input(made):
    changed(made, TANH_X, "y = torch.tanh(x)\n        x.zero_()\n        return y")


@HIDDEN.blame(KERNEL, make=a_tanh)
def wipes_the_callers_input_through_its_data(made):
    changed(made, TANH_X, "y = torch.tanh(x)\n        x.data.zero_()\n        return y")


@HIDDEN.blame("composition_test.py", make=a_tanh)
def turns_the_callers_input(made):
    changed(made, TANH_X, "y = torch.tanh(x)\n        x.t_()\n        return y")


@HIDDEN.blame(KERNEL, make=a_tanh)
def computes_in_the_callers_input(made):
    changed(made, TANH_X, "return x.tanh_()")


@HIDDEN.blame(KERNEL, make=lambda directory: lone(directory, "torch.tanh(x)", **SQUARE))
def builds_another_model_by_itself(made):
    changed(made, "def __init__(self):", "def __init__(self, turned=False):")
    changed(made, "pass", "self.turned = turned")
    changed(made, TANH_X, "return torch.tanh(x.t() if self.turned else x)")
    changed(made, "return []", "return [True]")


@HIDDEN.blame(KERNEL, make=lambda directory: lone(directory, "torch.clamp(x, min=0.25)"))
def asks_whether_two_tensors_are_one_object(made):
    other = "n = len({x: 0, x.float(): 0})\n        return torch.clamp(x, min=0.25 * n)"
    changed(made, "return torch.clamp(x, min=0.25)", other)


@pytest.mark.parametrize("attack", HIDDEN, ids=str)
def test_it_is_caught(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=2), attack)


BUFFERS = "self.register_buffer('graph', torch.rand(4, 4))"
SEVERAL = {
    "a product of buffers": ("torch.softmax(self.graph @ self.graph, 1) @ x", BUFFERS),
    "a sum that is no bias": (
        "self.graph @ x + y",
        f"{BUFFERS}\nself.graph += torch.eye(4)",
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_work_on_buffers_excuses_no_second_operation(name, tmp_path, judged, complaints):
    expression, init = SEVERAL[name]
    two = {"inputs": ("torch.randn(4, 16)",) * 2, "shapes": ((4, 16),) * 2}
    options = {"init": init, "weights": ("graph",)} | (two if "y" in expression else {})

    said = complaints(judged(lone(tmp_path / "made", expression, **options), trials=1), "rules")

    assert "is more than one operation" in said[KERNEL]


def test_what_only_the_original_writes_into_its_input_is_said(tmp_path, judged):
    made = changed_original(a_tanh(tmp_path / "made"), TANH_X, "return x.tanh_()")

    verification = judged(made, trials=1)

    assert verification.status == "passed"
    assert any("writes into input[0] of its caller" in note for note in verification.health)


def test_what_other_values_would_lead_to_is_said_not_to_be_judged(tmp_path, judged):
    made = line(tmp_path / "made", [TANH, ("shift", "", "x - x[0, 0].item()")])

    verification = judged(made, trials=1)

    assert any("what other values lead to" in note for note in verification.health)


def test_an_input_that_can_hold_no_other_number_stays_as_it_is(tmp_path, judged):
    options = {"inputs": ("torch.zeros(4, dtype=torch.int64)",), "shapes": ((4,),)}
    init = "self.table = nn.Parameter(torch.randn(1, 16))"
    made = lone(
        tmp_path,
        "F.embedding(x, self.table)",
        init=init,
        weights=("table",),
        dtypes=("int64",),
        **options,
    )
    assert judged(made).status == "passed"
