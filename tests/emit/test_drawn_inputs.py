"""get_inputs() of a component draws what arrives at its place in the model."""

import runpy
from collections.abc import Callable

import pytest
import torch
from models import NO_INIT, Decomposed

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 12)
        self.register_buffer("causal", torch.ones(4, 4).tril() == 0)

    def forward(self, x):
        y = self.fc(x)
        z = {value}
        return torch.special.erfcx(z)

def get_inputs(): return [torch.randn(4, 8)]
"""
Check = Callable[[torch.Tensor], bool]
ARRIVING: dict[str, tuple[str, Check]] = {
    "a linear layer's scale": ("y", lambda z: 0.4 < z.std() < 0.8),
    "zeros of a relu": ("y.relu()", lambda z: z.min() == 0 and 0.3 < zeros(z) < 0.7),
    "zeros of a relu, through a view and a copy": (
        "y.relu().view(3, 16).t().contiguous()",
        lambda z: z.min() == 0 and 0.3 < zeros(z) < 0.7,
    ),
    "the bounds of a relu6": ("F.relu6(y * 8)", lambda z: z.min() == 0 and z.max() == 6),
    "fewer zeros of a pooled relu": (
        "F.max_pool1d(y.relu(), 3)",
        lambda z: z.min() == 0 and zeros(z) < 0.4,
    ),
    "a gate between 0 and 1": ("y.sigmoid()", lambda z: z.min() > 0 and z.max() < 1),
    "shares of a softmax": ("y.softmax(-1)", lambda z: sums_to_one(z, -1)),
    "shares of a softmax, transposed": ("y.softmax(-1).t()", lambda z: sums_to_one(z, 0)),
    "masked scores": (
        "y[:, :4].masked_fill(self.causal, float('-inf'))",
        lambda z: torch.equal(z == float("-inf"), torch.ones(4, 4).triu(1).bool()),
    ),
    "shares of masked scores": (
        "y[:, :4].masked_fill(self.causal, float('-inf')).softmax(-1)",
        lambda z: sums_to_one(z, -1) and not z.triu(1).any(),
    ),
    "a router's weights": (
        "torch.zeros_like(y).scatter(-1, y.topk(2)[1], y.topk(2)[0].softmax(-1))",
        lambda z: sums_to_one(z, -1) and zeros(z) == 10 / 12,
    ),
    "padding": ("F.pad(y, (0, 6))", lambda z: not z[:, 12:].any() and zeros(z) == 6 / 18),
    "both signs of what is concatenated": (
        "torch.cat([y, y.relu()], 1)",
        lambda z: z[:, 12:].min() == 0 and z[:, :12].min() < 0,
    ),
    "what a norm leaves": ("F.layer_norm(y, (12,))", lambda z: 0.7 < z.std() < 1.4),
    "what an RMS norm leaves": ("F.rms_norm(y * 50, (12,))", lambda z: 0.7 < z.std() < 1.4),
    "what rounding takes away": (
        "(lambda s: s - (torch.floor(s).long() + 0.5))(y * 40)",
        lambda z: z.abs().max() <= 0.5 and z.std() > 0.2,
    ),
    "a remainder": ("(y * 40) % 2", lambda z: z.min() >= 0 and 1 < z.max() <= 2),
    "logarithms of shares": ("y.log_softmax(-1)", lambda z: z.max() <= 0 and z.std() < 2),
    "a product that is estimated far too high": (
        "(lambda s: s * s.t().t() * s.relu())(y * 1e6)",
        lambda z: z.std() < 1e5,
    ),
    "a power by a tensor": (
        "y.abs().pow(torch.full((1,), 3.0))",
        lambda z: z.min() >= 0 and z.std() > 0.2,
    ),
    "growing sums": ("y.cumsum(1)", lambda z: z[:, 6:].std() > 1.4 * z[:, :6].std()),
    "decays between positions": (
        "(lambda total: (total[:, :, None] - total[:, None]).exp())(y.cumsum(1))",
        lambda z: z.min() > 0 and bool((z.diagonal(dim1=1, dim2=2) == 1).all()),
    ),
    "shares of a sum": (
        "(lambda s: s / s.sum(-1, keepdim=True))(y.exp())",
        lambda z: sums_to_one(z, -1),
    ),
    "a mask's bias": (
        "torch.zeros(4, 12).masked_fill(y > 0, float('-inf'))",
        lambda z: z.max() == 0 and z.min() == float("-inf"),
    ),
    "a quotient whose divisor is kept from zero": (
        "y / (torch.zeros(4, 12).index_add(0, torch.arange(4), y.exp()) + 1e-16)",
        lambda z: 0.05 < z.std() < 20,
    ),
    "bytes": (
        "(y * 90).round().to(torch.int8)",
        lambda z: z.min() < -50 and z.max() > 50,
    ),
    "grey levels": (
        "(y * 90).round().clamp(0, 255).long()",
        lambda z: z.min() >= 0 and 20 < z.max() <= 255,
    ),
    "the mean of many": ("y.expand(64, 4, 12).mean(2)", lambda z: z.std() < 0.4),
}


def zeros(z: torch.Tensor) -> float:
    return (z == 0).double().mean().item()


def sums_to_one(z: torch.Tensor, dim: int) -> bool:
    return torch.allclose(z.sum(dim), torch.ones(())) and bool(z.min() >= 0)


@pytest.mark.parametrize("what", ARRIVING)
def test_a_file_draws_what_arrives_in_the_model(decomposed: Decomposed, what: str) -> None:
    value, check = ARRIVING[what]
    directory = decomposed(MODEL.format(value=value) + NO_INIT)
    (file,) = (directory / "level_0_kernel").glob("erfcx*.py")
    torch.manual_seed(0)
    (z,) = runpy.run_path(str(file))["get_inputs"]()
    assert check(z), file.read_text().partition("def get_inputs")[2].partition("\n\n\n")[0]


def test_one_file_draws_what_arrives_at_most_of_its_instances(decomposed: Decomposed) -> None:
    value = "torch.special.erfcx(torch.special.erfcx(y.relu()).neg().relu()).neg().relu()"
    directory = decomposed(MODEL.format(value=value) + NO_INIT)
    (file,) = (directory / "level_0_kernel").glob("erfcx*.py")
    assert runpy.run_path(str(file))["get_inputs"]()[0].min() >= 0


def test_a_model_s_own_input_is_not_drawn_where_most_instances_get_another(
    decomposed: Decomposed,
) -> None:
    chain = "torch.special.erfcx(torch.special.erfcx(torch.special.erfcx(x).relu()).relu())"
    directory = decomposed(MODEL.format(value=f"self.fc({chain})") + NO_INIT)
    (file,) = (directory / "level_0_kernel").glob("erfcx_4x8*.py")
    assert runpy.run_path(str(file))["get_inputs"]()[0].min() >= 0


LOOKUPS = """
class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 8)
        self.fc = nn.Linear(8, 8)

    def forward(self, column):
        return self.fc(self.table(column.long()).squeeze(1))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Lookup(), Lookup()

    def forward(self, rows):
        return (self.first(rows[:, :1]) + self.second(rows[:, 1:2])).relu()

def get_inputs(): return [torch.cat([torch.randint(0, 5, (16, 2)).float(), torch.randn(16, 1)], 1)]
"""


def test_floats_that_are_cast_to_indices_are_rows_of_their_table(decomposed: Decomposed) -> None:
    directory = decomposed(LOOKUPS + NO_INIT)
    (file,) = (directory / "level_1_fusion").glob("lookup*.py")
    (column,) = runpy.run_path(str(file))["get_inputs"]()
    assert column.unique().tolist() == [0, 1, 2, 3, 4], file.read_text()


CUT: dict[str, str] = {
    "both bounds": "(y * 0.1 + 60).clamp(0.8, 1.2)",
    "a lower bound": "(y * 0.1 - 60).clamp(min=1)",
    "an upper bound": "(y * 0.1 + 60).clamp_max(1.0)",
    "a relu": "F.relu(y * 0.1 - 60)",
    "numbers that are estimated to be zeros": "(y * 0.1 - 60).relu().erfinv() * 2",
}


@pytest.mark.parametrize("what", CUT)
def test_a_kernel_sees_both_sides_of_its_bounds(decomposed: Decomposed, what: str) -> None:
    source = MODEL.replace("torch.special.erfcx(z)", "z").format(value=CUT[what])
    directory = decomposed(source + NO_INIT)
    for file in (directory / "level_0_kernel").glob("*.py"):
        torch.manual_seed(0)
        module = runpy.run_path(str(file))
        assert len(module["Model"]()(*module["get_inputs"]()).unique()) > 3, file.read_text()
