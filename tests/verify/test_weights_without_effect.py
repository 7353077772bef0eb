"""Which weights are said to have no effect on an output, and what is not looked at."""

import pytest
import torch
from decompositions import small_model
from torch import nn

from runner.verify import VerifyOptions, verify
from runner.verify.gates.gradients import find_weak_weights
from runner.verify.gates.health import count_repeated_forwards, find_blind_spots
from runner.verify.options import QUICK_FLOPS
from runner.verify.runtime.runner import ForwardRunner, SharedInputs
from runner.verify.runtime.work_estimate import CALL_FLOPS, ELEMENT_FLOPS, estimate_effort


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
    bench = ForwardRunner(tmp_path, VerifyOptions())
    inputs = ((torch.randn(4, 8, 16),), {})
    return find_weak_weights(bench, model.eval(), inputs, dict(model.named_parameters()))


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
    assert [count_repeated_forwards(int(QUICK_FLOPS * share)) for share in (0.01, 0.1, 1, 1.1)] == [
        *(33, 3, 1, 0)
    ]


def test_the_work_of_a_linear_is_counted_from_its_sizes():
    x, weight, bias = torch.zeros(4, 8), torch.zeros(8, 16), torch.zeros(16)
    addmm = torch.ops.aten.addmm.default

    counted = estimate_effort(addmm, (bias, x, weight), (bias, x, weight), {}, torch.zeros(4, 16))

    numbers = 4 * 8 + 8 * 16 + 16 + 4 * 16
    assert counted == 2 * 4 * 8 * 16 + ELEMENT_FLOPS * numbers + CALL_FLOPS


def examined(bench, model, x):
    """What is said of a model after one forward."""
    inputs = SharedInputs(lambda: ((x,), {}))
    output, seen = bench.forward(
        "original.py: forward", model, inputs.get(), 0, bench.make_watch(model)
    )
    assert seen
    return find_blind_spots(bench, model, inputs, output, seen, lambda trial: ((x + 1,), {}))


def test_no_backward_pass_is_made_where_it_could_hold_much(tmp_path, monkeypatch):
    monkeypatch.setattr("runner.verify.gates.health.count_repeated_forwards", lambda effort: 6)
    bench, x = ForwardRunner(tmp_path, VerifyOptions()), torch.randn(4, 8, 16)
    assert examined(bench, Attention().eval(), x).not_examined == []

    monkeypatch.setattr("runner.verify.gates.health.KEPT_BYTES", 4096)
    assert examined(bench, Attention().eval(), x).not_examined == ["the effect of 3 of 8 weights"]


def test_weights_that_are_large_are_not_examined(tmp_path, monkeypatch):
    monkeypatch.setattr("runner.verify.gates.health.KEPT_BYTES", 2048)
    bench, x = ForwardRunner(tmp_path, VerifyOptions()), torch.randn(4, 16)

    said = examined(bench, nn.Sequential(nn.Linear(16, 64), nn.Linear(64, 4)).eval(), x)

    assert said.not_examined == ["the effect of 1 of 4 weights"]


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_memory_that_lacks_to_examine_weights_changes_no_verdict(tmp_path, monkeypatch, error):
    def raises(*_, **__):
        raise error

    monkeypatch.setattr("runner.verify.gates.health.move_values", raises)

    verification = verify(small_model(tmp_path / "model").directory, VerifyOptions(trials=1))

    assert verification.status == "passed"
    assert verification.not_examined == ["the effect of each input and weight"]
