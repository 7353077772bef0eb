"""Attention is one kernel, however its parts are spelled, and nothing that only resembles it is."""

import pytest
from programs import Program, names

from runner.graph import Graph, Mode, recognize

SDPA = "scaled_dot_product_attention"
INIT = """\
self.qkv = nn.Linear(8, 24)
self.out = nn.Linear(8, 8)
self.bias = nn.Parameter(torch.zeros(2, 5, 5))
self.sinks = nn.Parameter(torch.zeros(2))
"""
SPLIT = """\
b, s, d = x.shape
q, k, v = (t.view(b, s, 2, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
"""
MERGE = "y = y.transpose(1, 2).reshape(b, s, d)\n"
KEEPS = "keep = torch.ones(s, s, dtype=torch.bool).tril()\n"
POSITIONS = "i = torch.arange(s)\n"


def attending(
    program: Program,
    lines: str,
    arguments: str = "x",
    inputs: str = "torch.rand(2, 5, 8)",
    *,
    mode: Mode = "eval",
    init: str = "",
    classes: str = "",
) -> Graph:
    """A model that projects x, attends as `lines` say, and projects the result."""
    forward = SPLIT + lines + "\n" + MERGE + "return self.out(y)"
    return program(
        forward, mode, arguments=arguments, inputs=inputs, init=INIT + init, classes=classes
    )


SPELLINGS = {
    "values first": (
        "a = (q @ k.mT).softmax(-1).transpose(-2, -1)\n"
        "y = (v.transpose(-2, -1) @ a).transpose(-2, -1)"
    ),
    "keys first, over their dimension": "y = (k @ q.mT).softmax(-2).mT @ v",
    "scaled after the product": "a = q @ k.transpose(-2, -1) / 4**0.5\ny = a.softmax(-1) @ v",
    "the query scaled before it": "q = q * 4**-0.5\ny = torch.softmax(q @ k.mT, dim=-1) @ v",
    "both scaled": "a = (q * 0.7) @ (k * 0.7).transpose(2, 3)\ny = F.softmax(a, -1) @ v",
    "not scaled": "y = (q @ k.mT).softmax(-1) @ v",
    "by einsum": (
        'a = torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.5\n'
        'y = torch.einsum("bhqk,bhkd->bhqd", a.softmax(-1), v)'
    ),
    "by einsum of other letters, keys first": (
        'a = torch.einsum("nhsc,nhtc->nhts", k, q).softmax(-1)\n'
        'y = torch.einsum("nhts,nhsc->nhtc", a, v)'
    ),
    "heads that come last": (
        "q, k, v = (t.transpose(1, 2) for t in (q, k, v))\n"
        'a = torch.einsum("bqhd,bkhd->bhqk", q, k).softmax(-1)\n'
        'y = torch.einsum("bhqk,bkhd->bqhd", a, v).transpose(1, 2)'
    ),
    "a mask filled in": (
        "m = torch.ones(s, s).triu(1).bool()\n"
        "a = (q @ k.transpose(-2, -1)).masked_fill(m, float('-inf'))\ny = a.softmax(-1) @ v"
    ),
    "a mask chosen by where": KEEPS + "y = torch.where(keep, q @ k.mT, -1e9).softmax(-1) @ v",
    "a mask of the scores' own dtype": (
        "a = q @ k.mT\n"
        "a = a + torch.triu(a.new_full((s, s), float('-inf')), diagonal=1)\n"
        "y = a.softmax(-1) @ v"
    ),
    "a sliding window": (
        POSITIONS + "d_ = i[:, None] - i\n"
        "a = (q @ k.mT).masked_fill((d_ < 0) | (d_ >= 3), -1e9)\ny = a.softmax(-1) @ v"
    ),
    "biased by the distance of each head": (
        POSITIONS + "slopes = 2.0 ** -torch.arange(1, 3)\n"
        "a = q @ k.mT - slopes[:, None, None] * (i[:, None] - i).abs()\ny = a.softmax(-1) @ v"
    ),
    "masked and the rest set to zero": (
        KEEPS + "a = (q @ k.mT).masked_fill(~keep, -1e9).softmax(-1)\n"
        "y = a.masked_fill(~keep, 0.0) @ v"
    ),
    "a bias that the model owns": (
        "a = q @ k.transpose(-2, -1) * 0.5 + self.bias\ny = a.softmax(-1) @ v"
    ),
    "in a higher precision": (
        "a = (q @ k.transpose(-2, -1)).double()\ny = F.softmax(a, -1).float() @ v"
    ),
    "all of it in a higher precision": (
        "a = (q.double() @ k.double().mT).softmax(-1)\ny = (a @ v.double()).to(x.dtype)"
    ),
    "softmax by hand": (
        "a = q @ k.transpose(-2, -1)\ne = torch.exp(a - a.amax(-1, keepdim=True))\n"
        "y = (e / e.sum(-1, keepdim=True)) @ v"
    ),
    "capped": ("a = torch.tanh(q @ k.transpose(-2, -1) / 30.0) * 30.0\ny = a.softmax(-1) @ v"),
    "with sinks": (
        "a = q @ k.transpose(-2, -1)\n"
        "a = torch.cat((a, self.sinks.view(1, 2, 1, 1).expand(b, 2, s, 1)), dim=-1)\n"
        "y = a.softmax(-1)[..., :-1] @ v"
    ),
    "with sinks, capped and masked": (
        KEEPS + "a = torch.tanh(q @ k.mT * 0.5 / 30.0) * 30.0\n"
        "a = a.masked_fill(~keep, -torch.inf)\n"
        "a = torch.cat((a, self.sinks.view(1, 2, 1, 1).expand(b, 2, s, 1)), dim=-1)\n"
        "y = a.softmax(-1)[..., :-1] @ v"
    ),
    "heads in the batch": (
        "q, k, v = (t.reshape(2 * b, s, 4) for t in (q, k, v))\n"
        "y = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v).view(b, 2, s, 4)"
    ),
    "by baddbmm": (
        "q, k, v = (t.reshape(2 * b, s, 4) for t in (q, k, v))\n"
        "m = torch.ones(s, s).triu(1) * -1e9\n"
        "a = torch.baddbmm(m.expand(2 * b, s, s), q, k.transpose(1, 2), alpha=0.5)\n"
        "y = torch.bmm(a.softmax(-1), v).view(b, 2, s, 4)"
    ),
    "keys and values repeated": (
        "k, v = (t[:, :1].repeat_interleave(2, dim=1) for t in (k, v))\n"
        "y = (q @ k.mT).softmax(-1) @ v"
    ),
    "keys and values expanded": (
        "k, v = (t[:, :1, None].expand(b, 1, 2, s, 4).reshape(b, 2, s, 4) for t in (k, v))\n"
        "y = (q @ k.mT).softmax(-1) @ v"
    ),
    "queries in groups": (
        "q, k, v = q.transpose(1, 2)[:, :, None], k[:, :1], v[:, :1]\n"
        'a = torch.einsum("bqhgd,bhkd->bhgqk", q.reshape(b, s, 1, 2, 4), k)\n'
        'y = torch.einsum("bhgqk,bhkd->bqhgd", a.softmax(-1), v).reshape(b, s, 2, 4)\n'
        "y = y.transpose(1, 2)"
    ),
    "the fused operator": "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    "the fused operator, keys repeated": (
        "k, v = (t[:, :1].repeat_interleave(2, dim=1) for t in (k, v))\n"
        "y = F.scaled_dot_product_attention(q * 0.5, k, v)"
    ),
}


@pytest.mark.parametrize("lines", SPELLINGS.values(), ids=SPELLINGS)
def test_a_spelling_of_it_is_one_kernel(program: Program, lines: str) -> None:
    assert names(attending(program, lines)) == ["linear", SDPA, "linear"]


def test_its_result_is_laid_out_as_the_next_layer_reads_it(program: Program) -> None:
    graph = attending(program, "y = (q @ k.mT).softmax(-1) @ v")
    kernel = recognize(graph)[1]
    ends = graph.operations[kernel.members[-1]]
    assert ends.name == "reshape"
    assert graph.values[ends.outputs[0]].shape == (2, 5, 8)


BIASES = {
    "added, for every head": ("a = q @ k.mT + m", "torch.rand(2, 2, 5, 5)"),
    "added, one for all heads": ("a = q @ k.mT + m", "torch.rand(2, 1, 5, 5)"),
    "added by the fused operator": ("a = None", "torch.rand(2, 1, 5, 5)"),
    "filled in": ("a = (q @ k.mT).masked_fill(m, -1e9)", "torch.rand(2, 1, 5, 5) > 2"),
}


@pytest.mark.parametrize(("line", "mask"), BIASES.values(), ids=BIASES)
def test_a_mask_that_comes_in_is_an_operand(program: Program, line: str, mask: str) -> None:
    fused = "F.scaled_dot_product_attention(q, k, v, attn_mask=m)"
    lines = f"{line}\ny = {fused} if a is None else a.softmax(-1) @ v"
    graph = attending(program, lines, "x, m", f"torch.rand(2, 5, 8), {mask}")
    assert names(graph) == ["linear", SDPA, "linear"]


@pytest.mark.parametrize(
    ("probabilities", "operation"),
    [
        ("F.relu(a)", "relu_attention"),
        ("F.relu(a) ** 2", "squared_relu_attention"),
        ("torch.sigmoid(a)", "sigmoid_attention"),
    ],
)
def test_what_stands_in_the_softmaxs_place_gives_it_its_name(
    program: Program, probabilities: str, operation: str
) -> None:
    lines = f"{KEEPS}a = (q @ k.mT * 0.5).masked_fill(~keep, -torch.inf)\ny = {probabilities} @ v"
    assert names(attending(program, lines)) == ["linear", operation, "linear"]


MODULES = """\
class Masked(nn.Module):
    def forward(self, a):
        i = torch.arange(a.shape[-1])
        return a.masked_fill(i > i[:, None], float("-inf"))

class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.masked = Masked()

    def forward(self, q, k):
        return self.masked(q @ k.mT / 2).softmax(-1)

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = Weights()

    def forward(self, q, k, v):
        return self.weights(q, k) @ v
"""


def test_small_modules_of_the_author_are_parts_of_it(program: Program) -> None:
    lines = "y = self.attend(q, k, v)"
    graph = attending(program, lines, init="self.attend = Attention()\n", classes=MODULES)
    assert names(graph) == ["linear", SDPA, "linear"]


def test_what_drops_probabilities_by_chance_is_a_part_of_it(program: Program) -> None:
    lines = "y = F.dropout((q @ k.mT).softmax(-1), 0.1, self.training) @ v"
    for mode in ("eval", "train"):
        assert names(attending(program, lines, mode=mode)) == ["linear", SDPA, "linear"]


def test_a_mask_that_two_attentions_read_is_a_kernel_of_its_own(program: Program) -> None:
    forward = """\
    i = torch.arange(x.shape[1])
    m = i > i[:, None]
    for _ in range(2):
        x = (self.q(x) @ self.k(x).mT).masked_fill(m, -1e9).softmax(-1) @ self.v(x)
    return x
    """
    init = "self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))"
    graph = program(forward, inputs="torch.rand(2, 5, 8)", init=init)
    layer = ["linear", "linear", "linear", SDPA]
    assert sorted(names(graph)) == sorted(["causal_mask", *layer, *layer])


def test_a_bias_of_relative_positions_is_a_kernel_of_its_own(program: Program) -> None:
    init = """\
self.table = nn.Parameter(torch.zeros(9, 2))
i = torch.arange(5)
self.register_buffer("index", i[:, None] - i + 4)
"""
    lines = """\
bias = self.table[self.index.view(-1)].view(5, 5, 2).permute(2, 0, 1).contiguous()
y = (q @ k.mT + bias[None]).softmax(-1) @ v"""
    graph = attending(program, lines, init=init)
    assert sorted(names(graph)) == ["linear", "linear", "relative_position_bias", SDPA]


def test_a_learned_temperature_is_a_part_of_it(program: Program) -> None:
    init = "self.temperature = nn.Parameter(torch.zeros(2, 1, 1))\n"
    lines = """\
scale = self.temperature.clamp(max=4.6).exp()
y = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * scale).softmax(-1) @ v"""
    graph = attending(program, lines, init=init)
    assert names(graph) == ["linear", "l2_norm", "l2_norm", SDPA, "linear"]


def test_the_layer_of_torch_holds_one(program: Program) -> None:
    for call in ("self.mha(x, x, x, need_weights=False)[0]", "self.mha(x, x, x)[0]"):
        graph = program(
            f"return {call}",
            inputs="torch.rand(2, 5, 8)",
            init="self.mha = nn.MultiheadAttention(8, 2, batch_first=True)",
        )
        found = names(graph)
        assert found[:2] == ["linear", SDPA]
        assert set(found) <= {"linear", SDPA, "mean"}, "a mean of weights that nobody reads"


NOT_QUITE = {
    "nothing between the products": "y = q @ k.mT @ v",
    "the weights are read twice": (
        "a = (q @ k.transpose(-2, -1)).softmax(-1)\ny = a @ v + a.mean(-1, keepdim=True)"
    ),
    "the scores are read twice": "a = q @ k.mT\ny = a.softmax(-1) @ v + a.mean(-1, keepdim=True)",
    "one product": "y = v * (q @ k.transpose(-2, -1)).softmax(-1).sum(-1, keepdim=True)",
    "scores of a weight": "y = (q @ self.keys).softmax(-1) @ v",
    "values of a weight": "y = (q @ k.mT).softmax(-1) @ self.values",
    "a norm between": "y = F.layer_norm((q @ k.mT).softmax(-1), (s,)) @ v",
    "weights that add up over the queries": "y = (q @ k.mT).softmax(-2) @ v",
    "weights that add up over the heads": "y = (q @ k.mT).softmax(1) @ v",
    "weights over the slots of a slot attention": (
        'a = torch.einsum("bhkd,bhqd->bhkq", k, q).softmax(-1)\n'
        'y = torch.einsum("bhkq,bhkd->bhqd", a, v)'
    ),
    "weights times themselves": "a = torch.relu(q @ k.mT)\ny = (a @ a.mT)[..., :4]",
    "weights squared": "a = (q @ k.mT).softmax(-1)\ny = (a @ a)[..., :4]",
    "two hops of a graph": "m = k @ k.mT\ny = m @ torch.relu(m @ v)",
}


@pytest.mark.parametrize("lines", NOT_QUITE.values(), ids=NOT_QUITE)
def test_what_is_not_quite_it_is_none(program: Program, lines: str) -> None:
    init = "self.keys, self.values = (nn.Parameter(torch.rand(n, 9 - n)) for n in (4, 5))\n"
    found = names(attending(program, lines, init=init))
    assert not any("attention" in name for name in found)


def test_an_mlp_with_a_softmax_or_a_relu_is_none(program: Program) -> None:
    for activation in ("relu", "softmax"):
        graph = program(
            f"return self.down(torch.{activation}(self.up(x){', -1' * (activation == 'softmax')}))",
            init="self.up, self.down = nn.Linear(8, 9), nn.Linear(9, 8)",
        )
        assert names(graph) == ["linear", activation, "linear"]


def test_returned_weights_are_a_result_that_is_no_part_of_an_attention(program: Program) -> None:
    graph = program(
        "a = (x @ y.mT).softmax(-1)\nreturn a @ y, a",
        arguments="x, y",
        inputs="torch.rand(2, 5, 8), torch.rand(2, 5, 8)",
    )
    assert names(graph) == ["matmul", "softmax", "matmul"]


def test_log_sums_of_the_scores_are_a_second_result_of_an_attention(program: Program) -> None:
    lines = "a = (q @ k.mT).masked_fill(~torch.ones(s, s).tril().bool(), -1e9)\n"
    forward = SPLIT + lines + "return a.softmax(-1) @ v, a.logsumexp({dim})"
    graph = program(forward.format(dim=-1), inputs="torch.rand(2, 5, 8)", init=INIT)
    assert names(graph) == ["linear", SDPA]
    graph = program(forward.format(dim=-2), inputs="torch.rand(2, 5, 8)", init=INIT)
    assert SDPA not in names(graph)
