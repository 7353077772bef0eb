"""Weights that do not fit: each is there while an operation reads it, and always the same."""

import copy
import math
import shutil

import pytest
import torch
from torch import nn

from runner.problems import read_problem
from runner.verify import VerifyOptions, verify
from runner.verify.runtime import weight_streaming as module
from runner.verify.runtime.weight_streaming import DEFERRED_BYTES, WeightStreaming

KIB = 1 << 10
WIDE = 256
WEIGHT_BYTES = 4 * WIDE * WIDE

EXPERTS = '''
"""Two experts that are read by index, a head that is tied to the embedding, a clone of a block."""
import copy, math
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)
        self.up = nn.Linear(256, 512)
        self.experts = nn.Parameter(torch.randn(2, 256, 512) / math.sqrt(512))

    def forward(self, x):
        h = torch.relu(self.up(self.norm(x)))
        return x + h @ self.experts[0].t() + h @ self.experts[1].t()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(400, 256)
        block = Block()
        self.blocks = nn.ModuleList([block, copy.deepcopy(block), Block()])
        self.head = nn.Linear(256, 400, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def get_inputs():
    return [torch.randint(0, 400, (2, 8))]


def get_init_inputs():
    return []
'''


@pytest.fixture(scope="module")
def experts(tmp_path_factory):
    from runner import emit

    file = tmp_path_factory.mktemp("problem") / "experts.py"
    file.write_text(EXPERTS)
    directory = tmp_path_factory.mktemp("experts")
    emit.decompose(read_problem(file), directory)
    return directory


def _linears(count=4):
    return nn.Sequential(*(nn.Linear(WIDE, WIDE) for _ in range(count)))


def _resident(model):
    storages = {p.untyped_storage()._cdata: p.untyped_storage() for p in model.parameters()}
    return sum(storage.nbytes() for storage in storages.values())


def test_a_model_has_no_weights_until_they_are_read():
    with WeightStreaming(1 << 30) as streaming, torch.no_grad():
        model = streaming.build(_linears, 0)
        assert _resident(model) == 4 * 4 * WIDE  # biases are small
        model(torch.ones(1, WIDE))
        assert _resident(model) == 4 * (WEIGHT_BYTES + 4 * WIDE)


def test_weights_leave_when_others_need_the_room_and_come_back_the_same():
    memory = 4 * (WEIGHT_BYTES + 1)  # of which a quarter may hold weights: one of them
    with WeightStreaming(memory) as streaming, torch.no_grad():
        model = streaming.build(_linears, 0)
        first = model[0].weight.clone()
        model(torch.ones(1, WIDE))
        assert _resident(model) == WEIGHT_BYTES + 4 * 4 * WIDE
        assert model[0].weight.untyped_storage().nbytes() == 0
        assert torch.equal(model[0].weight, first)


def test_values_belong_to_the_seed_and_the_name():
    def weights(number, make=_linears):
        with WeightStreaming(1 << 30) as streaming:
            model = streaming.build(make, number)
            return {name: p.detach().clone() for name, p in model.named_parameters()}

    one, again, other = weights(0), weights(0), weights(1)
    assert torch.equal(one["2.weight"], again["2.weight"])
    assert not torch.equal(one["2.weight"], other["2.weight"])
    assert not torch.equal(one["2.weight"], one["1.weight"])
    fewer = weights(0, lambda: _linears(3))
    assert torch.equal(one["2.weight"], fewer["2.weight"])


def test_values_are_distributed_as_the_author_draws_them():
    def make():
        made = nn.Linear(WIDE, 2 * WIDE)
        made.table = nn.Parameter(torch.randn(WIDE, WIDE, dtype=torch.bfloat16) / 16 + 1)
        made.ones = nn.Parameter(torch.ones(WIDE * WIDE))
        return made

    with WeightStreaming(1 << 30) as streaming, torch.no_grad():
        model = streaming.build(make, 0)
        assert model.weight.abs().max() <= 1 / math.sqrt(WIDE)
        assert model.weight.std() == pytest.approx(1 / math.sqrt(3 * WIDE), rel=0.02)
        assert model.table.dtype == torch.bfloat16
        assert model.table.float().mean() == pytest.approx(1, abs=0.01)
        assert model.table.float().std() == pytest.approx(1 / 16, rel=0.02)
        assert torch.equal(model.ones, torch.ones(WIDE * WIDE))


def test_what_init_does_to_weights_is_done_again_in_its_order():
    def make():
        first = nn.Linear(WIDE, WIDE)
        second = copy.deepcopy(first)
        with torch.no_grad():
            first.weight[: WIDE // 2].zero_()
            second.weight.copy_(first.weight.t())
            first.weight[0, 0] = 7.0
            second.weight.mul_(2.0)
        nn.init.trunc_normal_(third := nn.Parameter(torch.empty(WIDE, WIDE)), std=0.5, a=-1, b=1)
        return nn.ParameterDict({"a": first.weight, "b": second.weight, "c": third})

    with WeightStreaming(1) as streaming, torch.no_grad():
        model = streaming.build(make, 0)
        a, b, c = (model[name].clone() for name in "abc")
    assert a[0, 0] == 7
    assert a[0, 1:].count_nonzero() == 0
    a[0, 0] = 0.0
    assert torch.equal(b, 2 * a.t())
    assert b.count_nonzero() > WIDE
    assert 0.9 < c.abs().max() <= 1


def test_buffers_and_what_forward_writes_into_stay():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(WIDE * WIDE).float().view(WIDE, WIDE) * 2)
            self.weight = nn.Parameter(torch.zeros(WIDE, WIDE))

        def forward(self, x):
            self.weight.add_(1)
            return x @ self.table + self.weight

    with WeightStreaming(1) as streaming, torch.no_grad():
        model = streaming.build(Counting, 0)
        assert model.table[-1, -1] == 2 * (WIDE * WIDE - 1)
        assert streaming.deferred_weights(model).keys() == {"weight"}
        model(torch.zeros(1, WIDE))
        assert streaming.deferred_weights(model) == {}
        streaming.build(_linears, 0)(torch.ones(1, WIDE))
        assert torch.equal(model.weight, torch.ones(WIDE, WIDE))


def test_default_values_move_where_they_would_hide_a_wrong_map():
    with WeightStreaming(1 << 30) as streaming, torch.no_grad():
        model = streaming.build(lambda: nn.LayerNorm(DEFERRED_BYTES), 0)
        assert torch.equal(model.weight, torch.ones(DEFERRED_BYTES))
        assert streaming.vary(model) == {"weight", "bias"}
        assert 1 < model.weight.min() < model.weight.max() < 1.2
        assert not torch.equal(model.bias, torch.zeros(DEFERRED_BYTES))


def test_the_generator_of_random_numbers_goes_on_as_if_nothing_had_been_drawn():
    with WeightStreaming(1 << 30) as streaming, torch.no_grad():
        model = streaming.build(_linears, 0)
        torch.manual_seed(3)
        expected = torch.rand(2)
        torch.manual_seed(3)
        model(torch.ones(1, WIDE))
        assert torch.equal(torch.rand(2), expected)


def test_a_streamed_verdict_is_the_ordinary_one_and_says_so(experts):
    plain = verify(experts, VerifyOptions(), trusted=True)
    streamed = [
        verify(experts, VerifyOptions(streamed=True, memory_bytes=4 << 20), trusted=True)
        for _ in range(2)
    ]
    assert plain.status == streamed[0].status == "passed", streamed[0].first_failure
    assert streamed[0].bitwise_equal
    assert [g.verdict for g in plain.gates] == [g.verdict for g in streamed[0].gates]
    assert plain.coverage == streamed[0].coverage
    assert (plain.streamed, streamed[0].streamed) == (False, True)
    assert streamed[0].health[0].startswith("weights: streamed, seed 0: ")
    assert streamed[0].health[1:] == plain.health
    one, two = (v.model_copy(update={"seconds": {}}) for v in streamed)
    assert one == two


def test_no_more_weights_are_in_memory_than_there_is_room_for(experts, monkeypatch):
    most = []

    class Watched(WeightStreaming):
        def _compute(self, needed):
            super()._compute(needed)
            most.append(sum(one.storage.nbytes() for one in self._deferred.values()))

    monkeypatch.setattr("runner.verify.judge.WeightStreaming", Watched)
    budget = 4 << 20
    assert verify(
        experts, VerifyOptions(streamed=True, memory_bytes=budget, trials=1), trusted=True
    ).status == ("passed")
    assert 2 * 256 * 512 * 4 <= max(most) <= budget // 4 + 2 * 256 * 512 * 4


@pytest.mark.parametrize("change", [("x + y", "x + 1.02 * y"), ("relu(", "sigmoid(")])
def test_a_wrong_kernel_is_caught_with_streamed_weights_too(model, monkeypatch, change):
    monkeypatch.setattr(module, "DEFERRED_BYTES", 16)
    kernel = "add_2x5x8_fp32.py" if "y" in change[0] else "relu_2x5x8_fp32.py"
    options = VerifyOptions(streamed=True, memory_bytes=KIB)
    assert verify(model.directory, options).status == "passed"
    model.edit(f"level_0_kernel/{kernel}", *change)
    found = verify(model.directory, options)
    assert found.status == "failed"
    assert found.gate("composition").verdict == "failed"


def test_weights_in_each_others_place_are_noticed_with_streamed_weights_too(experts, tmp_path):
    there = tmp_path / "swapped"
    shutil.copytree(experts, there)
    test = there / "verification" / "composition_test.py"
    text = test.read_text()
    assert '"blocks.0.experts"' in text
    test.write_text(
        text.replace('"blocks.0.experts"', '"-"')
        .replace('"blocks.2.experts"', '"blocks.0.experts"')
        .replace('"-"', '"blocks.2.experts"')
    )
    found = verify(there, VerifyOptions(streamed=True, memory_bytes=4 << 20), trusted=True)
    assert found.gate("composition").verdict == "failed"
    assert found.first_failure
