"""The core of attention by hand is one fusion, however its parts are spelled."""

import pytest
from outlines import Apart

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.zeros(2, 5, 5))
        self.sinks = nn.Parameter(torch.zeros(2))

    def forward(self, x{arguments}):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, 2, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        {lines}
        return self.out(y)

def get_inputs(): return [torch.rand(2, 5, 8){inputs}]
def get_init_inputs(): return []
"""
MERGE = "y = y.transpose(1, 2).reshape(b, s, d)"


def core(apart: Apart, lines: str, arguments: str = "", inputs: str = "") -> list[str]:
    """The kernels of the model's attention core; none, where it has none."""
    indented = "\n        ".join([*lines.splitlines(), MERGE])
    _, root = apart(MODEL.format(lines=indented, arguments=arguments, inputs=inputs))
    found = [part for part in root.walk() if part.stem == "attention_core"]
    assert len(found) <= 1
    return [child.stem for part in found for child in part.children]


SPELLINGS = {
    "scaled after the product": (
        "a = q @ k.transpose(-2, -1) / 4**0.5\ny = a.softmax(-1) @ v",
        ["matmul", "div", "softmax", "matmul", "merge_heads"],
    ),
    "the query scaled before it": (
        "q = q * 4**-0.5\ny = torch.softmax(q @ k.mT, dim=-1) @ v",
        ["mul", "matmul", "softmax", "matmul", "merge_heads"],
    ),
    "both scaled": (
        "a = (q * 0.7) @ (k * 0.7).transpose(2, 3)\ny = F.softmax(a, -1) @ v",
        ["mul", "mul", "matmul", "softmax", "matmul", "merge_heads"],
    ),
    "by einsum": (
        'a = torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.5\n'
        'y = torch.einsum("bhqk,bhkd->bhqd", a.softmax(-1), v)',
        ["einsum", "mul", "softmax", "einsum", "merge_heads"],
    ),
    "a mask filled in": (
        "m = torch.ones(s, s).triu(1).bool()\n"
        "a = (q @ k.transpose(-2, -1)).masked_fill(m, float('-inf'))\ny = a.softmax(-1) @ v",
        ["matmul", "masked_fill", "softmax", "matmul", "merge_heads"],
    ),
    "a mask chosen by where": (
        "m = torch.tril(torch.ones(s, s, dtype=torch.bool))\n"
        "a = torch.where(m, q @ k.transpose(-2, -1), -1e9)\ny = a.softmax(-1) @ v",
        ["matmul", "where", "softmax", "matmul", "merge_heads"],
    ),
    "a bias that the model owns": (
        "a = q @ k.transpose(-2, -1) * 0.5 + self.bias\ny = a.softmax(-1) @ v",
        ["matmul", "mul", "add", "softmax", "matmul", "merge_heads"],
    ),
    "in a higher precision": (
        "a = (q @ k.transpose(-2, -1)).double()\ny = F.softmax(a, -1).float() @ v",
        ["matmul", "cast", "softmax", "cast", "matmul", "merge_heads"],
    ),
    "softmax by hand": (
        "a = q @ k.transpose(-2, -1)\ne = torch.exp(a - a.amax(-1, keepdim=True))\n"
        "y = (e / e.sum(-1, keepdim=True)) @ v",
        ["matmul", "softmax", "matmul", "merge_heads"],
    ),
    "capped": (
        "a = torch.tanh(q @ k.transpose(-2, -1) / 30.0) * 30.0\ny = a.softmax(-1) @ v",
        ["matmul", "softcap", "softmax", "matmul", "merge_heads"],
    ),
    "with sinks": (
        "a = q @ k.transpose(-2, -1)\n"
        "a = torch.cat((a, self.sinks.view(1, 2, 1, 1).expand(b, 2, s, 1)), dim=-1)\n"
        "y = a.softmax(-1)[..., :-1] @ v",
        ["matmul", "cat", "softmax", "matmul", "merge_heads"],
    ),
    "heads in the batch": (
        "q, k, v = (t.reshape(2 * b, s, 4) for t in (q, k, v))\n"
        "y = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v).view(b, 2, s, 4)",
        ["bmm", "softmax", "bmm", "merge_heads"],
    ),
}


@pytest.mark.parametrize(("lines", "kernels"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_spelling_of_it_is_one_fusion(apart: Apart, lines: str, kernels: list[str]) -> None:
    assert core(apart, lines) == kernels


BIASES = {
    "added, for every head": ("a = q @ k.mT + m", "torch.rand(2, 2, 5, 5)", "add"),
    "added, one for all heads": ("a = q @ k.mT + m", "torch.rand(2, 1, 5, 5)", "add"),
    "filled in": (
        "a = (q @ k.mT).masked_fill(m, -1e9)",
        "torch.rand(2, 1, 5, 5) > 2",
        "masked_fill",
    ),
}


@pytest.mark.parametrize(("line", "mask", "kernel"), BIASES.values(), ids=BIASES)
def test_a_mask_that_comes_in_belongs_to_it(
    apart: Apart, line: str, mask: str, kernel: str
) -> None:
    found = core(apart, line + "\ny = a.softmax(-1) @ v", ", m", ", " + mask)
    assert found == ["matmul", kernel, "softmax", "matmul", "merge_heads"]


NOT_QUITE = {
    "no softmax": "y = torch.relu(q @ k.transpose(-2, -1)) @ v",
    "the weights are read twice": (
        "a = (q @ k.transpose(-2, -1)).softmax(-1)\ny = a @ v + a.mean(-1, keepdim=True)"
    ),
    "one product": "y = v * (q @ k.transpose(-2, -1)).softmax(-1).sum(-1, keepdim=True)",
}


@pytest.mark.parametrize("lines", NOT_QUITE.values(), ids=NOT_QUITE)
def test_what_is_not_quite_it_is_none(apart: Apart, lines: str) -> None:
    assert core(apart, lines) == []


def test_the_fused_operator_is_one_kernel(apart: Apart) -> None:
    lines = "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)\n" + MERGE
    _, root = apart(MODEL.format(lines=lines.replace("\n", "\n        "), arguments="", inputs=""))
    stems = [part.stem for part in root.kernels()]
    assert stems.count("scaled_dot_product_attention") == 1
    assert "softmax" not in stems
