"""Blocks that a program repeats without a module of their own."""

import pytest
from outlines import Apart

from runner.tree.part import Part
from runner.tree.repetition import find_repetitions


@pytest.mark.parametrize(
    ("tokens", "patterns"),
    [
        ("abcabc", ["abc*2"]),
        ("crcrpcrcrpcrcrcrpcrcrcrpcrcrcrp", ["crcrp*2", "crcrcrp*3"]),
        ("xabababy", ["ab*3"]),
        ("aaaa", []),  # one thing over and over is no block
        ("abcd", []),
        ("", []),
    ],
)
def test_the_patterns_that_cover_most_are_found(tokens: str, patterns: list[str]) -> None:
    found = [
        f"{''.join(tokens[p] for p in r.units()[0])}*{r.count}" for r in find_repetitions(tokens)
    ]
    assert found == patterns


def test_of_equal_patterns_the_one_begins_where_least_crosses() -> None:
    (found,) = find_repetitions("+am+m+am+m+am+m", crossing=[1, 1, 2, 2, 1] * 3)
    assert found.start == 0
    (found,) = find_repetitions("+am+am+a", crossing=[2, 1, 2, 2, 1, 2, 2, 1])
    assert found.start == 1


TWO_LISTS = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(16), nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Parameter(torch.randn(5, 16))
        self.layers = nn.ModuleList(
            nn.ModuleList([
                Attention(),
                nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)),
            ])
            for _ in range(3)
        )

    def forward(self, x):
        x = x + self.embed
        for attention, mlp in self.layers:
            x = attention(x) + x
            x = mlp(x) + x
        return x.mean(dim=(1, 2))


def get_inputs():
    return [torch.randn(2, 5, 16)]


def get_init_inputs():
    return []
"""

UNROLLED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.read = nn.Linear(12, 8), nn.Linear(8, 3)

    def forward(self, x):
        hidden = torch.zeros(2, 8)
        outputs = torch.empty(5, 2, 3)
        for t in range(5):
            hidden = torch.tanh(self.cell(torch.cat([x[t], hidden], dim=1)))
            outputs[t] = self.read(hidden)
        return outputs


def get_inputs():
    return [torch.randn(5, 2, 4)]


def get_init_inputs():
    return []
"""

LONG_SEQUENTIAL = """
def stage(inside, outside):
    return [nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU(),
            nn.Conv2d(outside, outside, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(*stage(3, 4), *stage(4, 8), *stage(8, 8), *stage(8, 8))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def get_inputs():
    return [torch.randn(1, 3, 16, 16)]


def get_init_inputs():
    return []
"""


def layers(root: Part) -> list[Part]:
    return [child for child in root.children if child.level == "layer"]


def test_two_modules_called_in_turn_with_their_residuals_are_one_block(
    apart: Apart,
) -> None:
    _, root = apart(TWO_LISTS)
    assert [(p.name, p.stem) for p in layers(root)] == [
        (f"layers_{i}", "layers_block") for i in range(3)
    ]
    first = layers(root)[0]
    assert [k.stem for k in first.kernels()] == [
        *("layer_norm", "linear", "scaled_dot_product_attention", "linear", "add"),
        *("layer_norm", "linear", "gelu", "linear", "add"),
    ]


def test_the_steps_of_an_unrolled_recurrence_are_layers(
    apart: Apart,
) -> None:
    _, root = apart(UNROLLED)
    assert [p.stem for p in layers(root)] == ["step"] * 5
    others = [child.stem for child in root.children if child.level != "layer"]
    assert others == ["stack"]  # the writes `outputs[t] = ...` of all steps


def test_the_stages_of_one_long_sequential_are_layers(
    apart: Apart,
) -> None:
    _, root = apart(LONG_SEQUENTIAL)
    assert [p.stem for p in layers(root)] == ["features_stage"] * 4
    assert all(p.reason.startswith("operations that the program runs") for p in layers(root))


DICTS = """
class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return self.b(F.silu(self.a(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict({"norm": nn.LayerNorm(16), "mixer": Mixer()}) for _ in range(3)
        )

    def forward(self, x):
        for block in self.layers:
            x = x + block["mixer"](block["norm"](x))
        return x


def get_inputs():
    return [torch.randn(2, 5, 16)]


def get_init_inputs():
    return []
"""


def test_the_last_of_equal_blocks_is_a_block_and_no_head(apart: Apart) -> None:
    _, root = apart(DICTS)
    assert [(p.name, p.stem) for p in root.children] == [
        (f"layers_{i}", "layers_block") for i in range(3)
    ]


SLOTS = """
class Slots(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.query, self.cell = nn.LayerNorm(8), nn.Linear(8, 8), nn.GRUCell(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x, slots):
        for _ in range(3):
            weights = (x @ self.query(self.norm(slots)).transpose(1, 2)).softmax(-1)
            update = (weights / weights.sum(1, keepdim=True)).transpose(1, 2) @ x
            slots = self.cell(update.flatten(0, 1), slots.flatten(0, 1)).view(slots.shape)
            slots = slots + self.mlp(slots)
        return slots

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.slots = nn.Linear(8, 8), Slots()

    def forward(self, x, slots):
        return self.slots(torch.relu(self.encoder(x)), slots)

def get_inputs(): return [torch.rand(2, 10, 8), torch.rand(2, 3, 8)]
def get_init_inputs(): return []
"""


def test_a_call_that_is_a_small_part_of_a_step_is_not_the_block(apart: Apart) -> None:
    _, root = apart(SLOTS)
    steps = layers(root)
    assert root.level == "model"
    assert len(steps) == 3
    assert {child.stem for child in steps[0].children} >= {"gru_cell", "mlp"}


ROUTING = """
class Routing(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 5, 4, 3))

    def forward(self, u):
        votes = torch.einsum("ijnm,bin->bijm", self.weight, u)
        scores = u.new_zeros(u.shape[0], 6, 5)
        for _ in range(3):
            shares = scores.softmax(-1)
            out = torch.tanh(torch.einsum("bij,bijm->bjm", shares, votes))
            scores = scores + torch.einsum("bjm,bijm->bij", out, votes)
        return out

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.routing, self.head = nn.Conv2d(1, 24, 4), Routing(), nn.Linear(15, 4)

    def forward(self, x):
        return self.head(self.routing(self.conv(x).view(2, 6, 4)).flatten(1))

def get_inputs(): return [torch.rand(2, 1, 4, 4)]
def get_init_inputs(): return []
"""


def test_a_loop_in_a_small_module_makes_fusions_of_its_turns_and_no_layers(apart: Apart) -> None:
    _, root = apart(ROUTING)
    (layer,) = layers(root)
    assert layer.stem == "routing"
    steps = [part for part in layer.children if part.stem == "routing_step"]
    assert len(steps) == 3  # the first one's shares depend on no input
    first, second, third = ([kernel.stem for kernel in step.kernels()] for step in steps)
    assert first[1:] == second[1:] == third[1:]


SINKHORN = """
def soft_minimum(width, cost, values):
    return -width * torch.logsumexp((values - cost) / width, -1)

class Sinkhorn(nn.Module):
    def forward(self, x, y):
        cost = torch.cdist(x, y)
        f, g = x.mean(-1), y.mean(-1)
        for width in (4.0, 2.0, 1.0, 0.5, 0.25):
            new_f = soft_minimum(width, cost, g[:, None])
            new_g = soft_minimum(width, cost.transpose(1, 2), f[:, None])
            f, g = 0.5 * (f + new_f), 0.5 * (g + new_g)
        return (f.sum(1) + g.sum(1)).exp()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.distance, self.after = nn.Linear(8, 8), Sinkhorn(), nn.Linear(1, 3)

    def forward(self, x, y):
        return self.after(self.distance(self.before(x), self.before(y))[:, None])

def get_inputs(): return [torch.rand(2, 6, 8), torch.rand(2, 7, 8)]
def get_init_inputs(): return []
"""


def test_a_turn_that_calls_one_function_twice_is_one_step(apart: Apart) -> None:
    _, root = apart(SINKHORN)
    (layer,) = layers(root)
    steps = [part for part in layer.children if part.stem == "sinkhorn_step"]
    assert len(steps) == 5
    assert len({tuple(kernel.stem for kernel in step.kernels()) for step in steps}) == 1


def test_the_first_turn_of_a_loop_is_like_the_others_where_it_starts_at_random(
    apart: Apart,
) -> None:
    start = "slots = self.norm.weight * torch.randn(2, 3, 8)\n        for _ in range(3):"
    source = SLOTS.replace("for _ in range(3):", start).replace(
        "def forward(self, x, slots)", "def forward(self, x)"
    )
    source = source.replace("(self.encoder(x)), slots)", "(self.encoder(x)))")
    _, root = apart(source.replace(", torch.rand(2, 3, 8)]", "]"))
    assert len(steps := layers(root)) == 3
    assert len({tuple(child.stem for child in step.children) for step in steps}) == 1
