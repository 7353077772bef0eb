"""Which weights are said to have no effect on an output, and what is not looked at."""

import pytest
import torch
from decompositions import small_model
from torch import nn

from runner.verify import VerifyOptions, verify
from runner.verify.gradients import hardly_changing
from runner.verify.health import forwards_again
from runner.verify.options import QUICK_FLOPS
from runner.verify.running import Bench


class Attention(nn.Module):
    """A bias on the keys moves all scores of a row alike, which a softmax does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.norm = nn.LayerNorm(16).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(-1, -2)
        return self.norm(x + torch.softmax(scores, dim=-1) @ self.value(x))


def weak_weights(tmp_path, model):
    torch.manual_seed(0)
    bench = Bench(tmp_path, VerifyOptions())
    inputs = ((torch.randn(4, 8, 16),), {})
    return hardly_changing(bench, model.eval(), inputs, dict(model.named_parameters()))


def test_one_backward_pass_finds_the_weight_without_effect(tmp_path):
    model = Attention()

    assert weak_weights(tmp_path, model) == ["key.bias"]
    assert not model.norm.weight.requires_grad
    assert model.query.weight.grad is None


class Choice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).argmax(-1)


class Detached(Choice):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.linear(x).numpy())


@pytest.mark.parametrize("model", [Choice(), Detached()])
def test_every_weight_is_to_be_tried_where_there_are_no_gradients(tmp_path, model):
    assert weak_weights(tmp_path, model) == ["linear.weight", "linear.bias"]


def test_the_number_of_forwards_follows_from_sizes_alone():
    assert [forwards_again(int(QUICK_FLOPS * share)) for share in (0.01, 0.1, 1, 1.1)] == [
        *(33, 3, 1, 0)
    ]


@pytest.mark.parametrize(
    ("forwards", "said"),
    [
        (100, []),
        (5, []),
        (3, ["the effect of 8 of 10 weights"]),
        (1, ["the effect of 10 weights"]),
        (0, ["the effect of each input and weight"]),
    ],
)
def test_what_is_not_examined_is_the_same_each_time(tmp_path, monkeypatch, forwards, said):
    made = small_model(tmp_path / "model")
    monkeypatch.setattr("runner.verify.health.forwards_again", lambda effort: forwards)

    again = [verify(made.directory, VerifyOptions(trials=1)).not_examined for _ in range(2)]

    assert again == [said, said]
