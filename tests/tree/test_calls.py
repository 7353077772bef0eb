"""Which calls of modules and functions are one fusion, and what they are called."""

from pathlib import Path

import pytest
from outlines import Apart, drawn

from runner.tree.part import Part

ENDS = """
def get_inputs(): return [torch.rand(2, 6, 8)]
def get_init_inputs(): return []
"""
TRANSFORMER = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2)
        STATEMENTS
        return self.out(scores.softmax(-1).cumsum(-1) @ v)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(8), Attention(), nn.LayerNorm(8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        x = x + SCALE * self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        return self.blocks(x)
""" + ENDS  # fmt: skip


def fusions(root: Part) -> list[str]:
    return [part.stem for part in root.walk() if part.level == "fusion"]


def transformer(turns: int) -> str:
    """Two blocks, each with an attention of a few kernels and two for each turn."""
    names = [
        ("sigmoid", "tanh", "exp", "cos", "abs", "sin", "erf")[n * n % 11 % 7] for n in range(turns)
    ]
    lines = [f"scores = scores.cumsum(-1) * scores.{name}()" for name in names]
    return TRANSFORMER.replace("STATEMENTS", "\n        ".join(lines)).replace("SCALE", "0.5")


@pytest.mark.parametrize("turns", [1, 9, 18])
def test_a_call_that_a_residual_add_adds_is_one_fusion_however_long(
    apart: Apart, turns: int
) -> None:
    _, root = apart(transformer(turns))
    assert fusions(root).count("attention") == 2


def test_a_call_of_more_kernels_than_any_block_has_is_opened(apart: Apart) -> None:
    _, root = apart(transformer(30))
    assert "attention" not in fusions(root)


def test_a_call_beside_a_residual_add_is_opened(apart: Apart) -> None:
    source = transformer(18).replace("x + 0.5 * self.attention(", "0.5 * self.attention(")
    _, root = apart(source)
    assert "attention" not in fusions(root)


GATHERED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x, ids, keep):
        x = self.fc(x).cumsum(-1)
        rows = ids // 2 * 3 % 4
        picked = torch.gather(x, 1, rows.unsqueeze(-1).expand(-1, -1, 8))
        return picked.cumsum(1).masked_fill(~keep & (ids > 2), 0.0).exp()

def get_inputs():
    return [torch.rand(2, 6, 8), torch.randint(6, (2, 5)), torch.rand(2, 5, 1) > 0.5]
def get_init_inputs(): return []
"""


def together(root: Part, operation: str) -> set[str]:
    """The operations that are in one fusion with another one."""
    found = [{c.stem for c in part.children} for part in root.walk() if part.level == "fusion"]
    return next((stems for stems in found if operation in stems), {operation})


def test_arithmetic_on_indices_belongs_to_what_alone_reads_it(apart: Apart) -> None:
    _, root = apart(GATHERED.replace("(ids > 2)", "(ids > 2).unsqueeze(-1)"))
    assert {"mul", "remainder"} <= together(root, "gather")
    assert {"bitwise_not", "gt"} <= together(root, "masked_fill")


def test_arithmetic_on_indices_that_two_read_stands_beside_both(apart: Apart) -> None:
    _, root = apart(GATHERED.replace("(ids > 2)", "(rows > 2).unsqueeze(-1)"))
    assert together(root, "gather") == {"gather"}


FILTERS = """
def transformed(x):
    return torch.fft.fft(x)

def modulus(x, before=None):
    y = x.real ** 2 + x.imag ** 2
    if before is not None:
        y = y + before
    return y.sqrt()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        x = self.fc(x)
        found = []
        for turn in range(4):
            y = modulus(transformed(x * (turn + 1.5)))
            if turn > 2:
                y = modulus(transformed(y), y)
            found.append(y)
        return torch.stack(found)
""" + ENDS  # fmt: skip


def test_calls_of_a_function_that_share_no_data_are_fusions_each(apart: Apart) -> None:
    _, root = apart(FILTERS)
    assert "transformed" not in fusions(root)
    calls = [part for part in root.walk() if part.stem == "modulus"]
    assert len(calls) >= 4
    assert all(len(call.children) <= 5 for call in calls)


SCORES = """
import torch

class Scorer:
    def __init__(self, scale):
        self.scale = scale

    def score(self, x, y):
        distance = (x - y).pow(2).cumsum(-1)
        return (distance * self.scale).exp().cumsum(-1)
"""


def test_functions_of_a_package_that_a_problem_file_calls_are_fusions(
    apart: Apart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "scorers_of_a_test"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(SCORES)
    monkeypatch.syspath_prepend(package.parent)
    _, root = apart(
        """
        from scorers_of_a_test import Scorer

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.scorer = nn.Linear(8, 8), Scorer(0.5)

            def forward(self, x):
                found = self.fc(x)
                close = self.scorer.score(found, x)
                return close + self.scorer.score(x, found * 2)
        """
        + ENDS.replace("\n", "\n        ")
    )
    assert fusions(root).count("score") == 2


NAMES = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        x = x + self.a(x) / 2 + torch.rand_like(x)
        return x + self.b(self.norm(x).relu()).tanh()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""" + ENDS  # fmt: skip


def test_a_part_is_never_called_after_its_level_alone(apart: Apart) -> None:
    _, root = apart(NAMES)
    layers = [part for part in root.walk() if part.level == "layer"]
    assert {part.stem for part in layers} == {"linear_layer"}
    assert not {"fusion", "layer"} & {part.stem for part in root.walk()}


def test_a_block_around_one_contraction_is_no_mlp(apart: Apart) -> None:
    _, root = apart(NAMES)
    assert "mlp_block" not in drawn(root)


CONTENTS = {
    "attention": "F.scaled_dot_product_attention(x, x, self.b(x))",
    "moe": "(torch.einsum('...kij,...j->...ki', self.experts[i], x) * w[..., None]).sum(-2)",
}


@pytest.mark.parametrize("word", CONTENTS)
def test_a_class_called_layer_is_named_by_what_tells_it_from_others(
    apart: Apart, word: str
) -> None:
    layer = NAMES.replace("torch.rand_like(x)", CONTENTS[word]).replace(
        "        x = x + self.a",
        "        w, i = self.a(x)[..., :4].softmax(-1).topk(2)\n        x = x + self.a"
        if word == "moe"
        else "        x = x + self.a",
    )
    parameter = "self.experts = nn.Parameter(torch.rand(4, 8, 8))\n        self.a,"
    _, root = apart(layer.replace("self.a,", parameter, 1))
    assert {part.stem for part in root.walk() if part.level == "layer"} == {f"{word}_layer"}


STREAMS = (
    TRANSFORMER.replace("STATEMENTS", "").replace("SCALE", "1.0").split("class Model")[0]
    + """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x, y):
        for block in self.blocks:
            x, y = block(x), block(y)
        return x, y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x):
        x, y = self.encoder(x, x.flip(0))
        return x * y
"""
    + ENDS
)


def test_the_blocks_of_a_list_through_which_two_streams_pass_are_layers(apart: Apart) -> None:
    _, root = apart(STREAMS)
    assert [part.stem for part in root.walk() if part.level == "layer"] == ["block"] * 4
    assert "linear_gelu_linear" not in fusions(root)
    assert fusions(root).count("mlp") == 4


HEADED = (
    """
class ConvBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(6, 6, 3, padding=1), nn.Conv1d(6, 6, 3, padding=1)

    def forward(self, x):
        return x + self.b(self.a(x).relu()).relu()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = ConvBlock(), ConvBlock(), ConvBlock()
        self.last = nn.Sequential(ConvBlock(), nn.Conv1d(6, 2, 1))

    def forward(self, x):
        y = self.first(x)
        return self.last(self.third(torch.tanh(self.second(y) * y)))
"""
    + ENDS
)


def test_a_block_in_a_container_with_a_head_is_the_layer_that_it_is_elsewhere(apart: Apart) -> None:
    _, root = apart(HEADED)
    assert [p.stem for p in root.walk() if p.level == "layer"] == ["conv_block"] * 4


def test_a_container_called_as_one_of_its_operations_is_named_by_all(apart: Apart) -> None:
    _, root = apart(
        TRANSFORMER.replace("STATEMENTS", "")
        .replace("SCALE", "1.0")
        .replace("self.mlp", "self.linear")
    )
    assert "linear_gelu_linear" in fusions(root)
    assert "linear" not in fusions(root)


TRANSFORMER_BLOCK = """
class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        x = x + self.out(F.scaled_dot_product_attention(*self.qkv(x).chunk(3, -1)))
        return x + self.down(F.gelu(self.up(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.last = EncoderBlock(), nn.Linear(8, 4)
        self.scale = nn.Linear(8, 8)

    def forward(self, x):
        gate = self.scale(x).sigmoid()
        return self.last(self.block(x.cumsum(1)) * gate.cumsum(1))
""" + ENDS  # fmt: skip


def test_a_fusion_of_an_attention_and_an_mlp_is_named_by_its_class(apart: Apart) -> None:
    _, root = apart(TRANSFORMER_BLOCK)
    assert "encoder_block" in drawn(root)
    assert "attention_block" not in drawn(root)
