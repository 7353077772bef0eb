"""A file is the same for every seed: what it draws before its forward fills weights and buffers."""

import pytest
from attacks import Attacks, assert_caught, right_where
from changing_files import RELU, at_import
from decompositions_of_expressions import lone
from verdicts import assert_passes

pytestmark = pytest.mark.long

LUCKY = Attacks()


def decides(made, text: str) -> None:
    """Be wrong where the model is built with a number that is seldom drawn."""
    made.edit_everywhere("relu.py", "        pass", f"        self.wrong = {text}")
    right_where(made, "not self.wrong")


@LUCKY.blame(RELU)
def draws_a_number_in_its_constructor(made):
    decides(made, "float(torch.rand(1)) > 0.999")


@LUCKY.blame(RELU)
def draws_a_list_in_its_constructor(made):
    decides(made, "torch.randperm(1000).tolist()[0] == 7")


@LUCKY.blame(RELU)
def counts_what_it_draws_in_a_shape(made):
    decides(made, "len((torch.rand(1) > 0.999).nonzero())")


@LUCKY.blame(RELU)
def counts_what_it_draws_in_a_shape_that_torch_computes_in_python(made):
    decides(made, "len(torch.unique(torch.rand(2) > 0.999)) > 1")


@LUCKY.blame(RELU)
def reads_a_weight_that_torch_draws(made):
    decides(made, "float(nn.Linear(1, 1).weight.detach()) > 0.999")


@LUCKY.blame(RELU)
def draws_a_number_when_it_is_imported(made):
    at_import(made, "WRONG_SEED = float(torch.rand(1)) > 0.999")
    right_where(made, "not WRONG_SEED")


@LUCKY.blame(RELU)
def draws_a_tensor_when_it_is_imported_and_reads_it_later(made):
    at_import(made, "DRAWN = torch.rand(1)")
    decides(made, "float(DRAWN) > 0.999")


@LUCKY.blame(RELU)
def draws_its_arguments(made):
    takes_an_argument(made, "int(torch.rand(1) > 0.999)")


@LUCKY.blame(RELU)
def draws_its_arguments_with_python(made):
    at_import(made, "import random")
    takes_an_argument(made, "random.random() > 0.999")


def takes_an_argument(made, drawn: str) -> None:
    made.edit_everywhere("relu.py", "def __init__(self)", "def __init__(self, wrong=False)")
    empty = "def get_init_inputs():\n    return []"
    made.edit_everywhere("relu.py", empty, empty.replace("[]", f"[{drawn}]"))
    decides(made, "wrong")


@pytest.mark.parametrize("attack", LUCKY, ids=str)
def test_it_is_caught(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)


def test_the_message_names_the_line(fusion, judged, complaints):
    draws_a_number_in_its_constructor(fusion)

    said = complaints(judged(fusion, trials=1), "self-test")

    assert f"reads a random number at {RELU}:11" in said[RELU]


WEIGHTS = {
    "a truncated normal distribution": "nn.init.trunc_normal_(self.op.weight)",
    "orthogonal": "nn.init.orthogonal_(self.op.weight)",
    "drawn numbers in order": "self.op.weight.data = torch.randn(16, 16).sort()[0]",
    "a rate from a table": "self.rate = [t.item() for t in torch.linspace(0, 1, 3)][1]",
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_may_be_drawn_in_any_way(name, tmp_path, judged):
    made = lone(
        tmp_path / "made",
        "self.op(x)",
        init=f"self.op = nn.Linear(16, 16)\n{WEIGHTS[name]}",
        weights=("op.weight", "op.bias"),
    )

    assert_passes(judged(made, trials=1))
