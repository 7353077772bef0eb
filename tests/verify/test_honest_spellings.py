"""One operation is one operation however it is spelled: nobody is refused for their style."""

from itertools import combinations

import pytest
from decompositions_of_expressions import lone
from verdicts import assert_passes

pytestmark = pytest.mark.long

TWO = {"inputs": ("torch.randn(4, 16)",) * 2, "shapes": ((4, 16),) * 2}
LINEAR = {"init": "self.op = nn.Linear(16, 16)", "weights": ("op.weight", "op.bias")}
NORM = {"init": "self.op = nn.LayerNorm(16)", "weights": ("op.weight", "op.bias")}
IMAGE = {"inputs": ("torch.randn(2, 3, 8, 8)",), "shapes": ((2, 3, 8, 8),)}
CONV = IMAGE | {
    "init": "self.op = nn.Conv2d(3, 4, 3, padding=1)",
    "weights": ("op.weight", "op.bias"),
    "output": (2, 4, 8, 8),
}
EMBEDDING = {
    "init": "self.op = nn.Embedding(9, 16)",
    "weights": ("op.weight",),
    "inputs": ("torch.randint(0, 9, (4,))",),
    "shapes": ((4,),),
    "dtypes": ("int64",),
}
GROUPS = IMAGE | {
    "init": "self.op = nn.GroupNorm(3, 3)",
    "weights": ("op.weight", "op.bias"),
    "output": (2, 3, 8, 8),
}
ATTENTION = {
    "inputs": ("torch.randn(2, 2, 5, 8)",) * 3,
    "shapes": ((2, 2, 5, 8),) * 3,
    "output": (2, 2, 5, 8),
}

SPELLINGS = {
    "relu": (
        {},
        "torch.relu(x)",
        "F.relu(x)",
        "x.relu()",
        "nn.ReLU()(x)",
        "F.relu(input=x, inplace=False)",
    ),
    "softmax": (
        {},
        "torch.softmax(x, dim=1)",
        "F.softmax(x, dim=-1)",
        "x.softmax(1)",
        "nn.Softmax(dim=1)(x)",
        "torch.softmax(x, x.ndim - 1)",
    ),
    "gelu": ({}, "F.gelu(x)", "nn.GELU()(x)", "F.gelu(x, approximate='none')"),
    "silu": ({}, "F.silu(x)", "nn.SiLU()(x)", "nn.functional.silu(x, inplace=False)"),
    "tanh": ({}, "torch.tanh(x)", "x.tanh()", "nn.Tanh()(x)", "F.tanh(x)"),
    "cumsum": ({}, "torch.cumsum(x, 1)", "x.cumsum(dim=1)", "x.cumsum(-1)"),
    "mean": (
        {"output": (4,)},
        "x.mean(1)",
        "torch.mean(x, dim=1)",
        "x.mean(dim=-1, keepdim=False)",
        "torch.mean(x, dim=(1,))",
    ),
    "clamp": ({}, "x.clamp(min=0, max=1)", "torch.clamp(x, 0, 1)", "x.clip(0, 1)"),
    "add": (TWO, "x + y", "torch.add(x, y)", "x.add(y)", "torch.add(x, other=y, alpha=1)"),
    "matmul": (
        TWO | {"output": (4, 4)},
        "x @ y.T",
        "torch.matmul(x, y.t())",
        "x.mm(y.transpose(0, 1))",
        "torch.mm(x, y.permute(1, 0))",
        "x.matmul(y.mT)",
    ),
    "cat": (
        TWO | {"output": (8, 16)},
        "torch.cat((x, y), 0)",
        "torch.cat([x, y], dim=0)",
        "torch.concat((x, y))",
    ),
    "linear": (
        LINEAR,
        "self.op(x)",
        "F.linear(x, self.op.weight, self.op.bias)",
        "F.linear(x, bias=self.op.bias, weight=self.op.weight)",
        "torch.addmm(self.op.bias, x, self.op.weight.t())",
    ),
    "layer norm": (
        NORM,
        "self.op(x)",
        "F.layer_norm(x, (16,), self.op.weight, self.op.bias)",
        "F.layer_norm(x, x.shape[-1:], self.op.weight, self.op.bias, self.op.eps)",
        "torch.layer_norm(x, [16], self.op.weight, self.op.bias)",
    ),
    "group norm": (
        GROUPS,
        "self.op(x)",
        "F.group_norm(x, 3, self.op.weight, self.op.bias)",
        "F.group_norm(x, x.shape[1], self.op.weight, self.op.bias, eps=self.op.eps)",
    ),
    "conv2d": (
        CONV,
        "self.op(x)",
        "F.conv2d(x, self.op.weight, self.op.bias, padding=1)",
        "torch.conv2d(x, self.op.weight, self.op.bias, stride=(1, 1), padding=(1, 1))",
        "F.conv2d(x, self.op.weight, self.op.bias, padding=self.op.padding)",
    ),
    "max pooling": (
        IMAGE | {"output": (2, 3, 4, 4)},
        "F.max_pool2d(x, 2)",
        "nn.MaxPool2d(2)(x)",
        "F.max_pool2d(x, kernel_size=2, stride=2)",
    ),
    "embedding": (
        EMBEDDING,
        "self.op(x)",
        "F.embedding(x, self.op.weight)",
    ),
    "rms norm": (
        {},
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
        "x.mul(torch.rsqrt(torch.mean(x**2, dim=-1, keepdim=True).add(1e-6)))",
        "x * (x.pow(2).mean(dim=1, keepdim=True) + 1e-6).rsqrt()",
    ),
    "attention": (
        ATTENTION,
        "torch.softmax(x @ y.transpose(-2, -1) / 8**0.5, dim=-1) @ z",
        "F.softmax(torch.matmul(x, y.mT) / math.sqrt(8), -1).matmul(z)",
        "((x @ y.transpose(2, 3)) / (x.shape[-1] ** 0.5)).softmax(3) @ z",
    ),
    "a product with a row": (
        {
            "inputs": ("torch.rand(2, 4, 8)", "torch.rand(8)"),
            "shapes": ((2, 4, 8), (8,)),
            "output": (2, 4, 8),
        },
        "x * y",
        "y * x",
        "torch.mul(y, x)",
    ),
    "global average pool": (
        {
            "inputs": ("torch.rand(2, 4, 6, 6)",),
            "shapes": ((2, 4, 6, 6),),
            "output": (2, 4, 1, 1),
        },
        "F.adaptive_avg_pool2d(x, 1)",
        "x.mean(dim=(2, 3), keepdim=True)",
        "torch.mean(x, (-2, -1), True)",
    ),
}
PAIRS = [
    pytest.param(first, other, options, id=f"{name}: {first} as {other}")
    for name, (options, *texts) in SPELLINGS.items()
    for first, other in combinations(texts, 2)
    if texts[0] in (first, other)
]


@pytest.mark.parametrize(("original", "kernel", "options"), PAIRS)
def test_a_kernel_may_spell_its_operation_in_another_way(
    original, kernel, options, tmp_path, judged
):
    made = lone(tmp_path / "made", original, kernel, **options)
    if "math." in original + kernel:
        for path in ("original.py", "level_0_kernel/kernel.py"):
            made.edit(path, "import torch\n", "import math\n\nimport torch\n")
        rehash(made)

    assert_passes(judged(made, trials=1))


def rehash(made):
    """The tree's digest of the problem's file is that of the file as it is now."""
    import hashlib

    digest = hashlib.sha256((made.directory / "original.py").read_bytes()).hexdigest()
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))


ROUNDED = {
    "a factor": ("x * (2.0 / 3.141592653589793) ** 0.5", "x * 0.79788456"),
    "a table": (
        "x * torch.exp(torch.arange(16.0) * (-9.2 / 16))",
        "x * (1.0 / 9897.129058743909 ** (torch.arange(16.0) / 16))",
    ),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_constants_may_differ_by_rounding(name, tmp_path, judged):
    assert_passes(judged(lone(tmp_path / "made", *ROUNDED[name]), trials=1))


PRECISIONS = ("float64", "bfloat16", "float16", "float32")


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("expression", ["torch.tanh(x)", "torch.softmax(x, dim=1)", "x + x"])
def test_every_precision_may_be_used(dtype, expression, tmp_path, judged):
    inputs = (f"torch.randn(4, 16).to(torch.{dtype})",)
    made = lone(tmp_path / "made", expression, inputs=inputs, dtype=dtype, dtypes=(dtype,))

    assert_passes(judged(made, trials=1))


WHOLE = {
    "a sum of int64": ("int64", "torch.randint(0, 9, (4, 16))", "x + x"),
    "a sum of int32": ("int32", "torch.randint(0, 9, (4, 16), dtype=torch.int32)", "x + x"),
    "a sort of int16": ("int16", "torch.randint(0, 99, (4, 16)).short()", "x.sort(1)[0]"),
    "a negation of bool": ("bool", "torch.rand(4, 16) < 0.5", "~x"),
    "a clamp of uint8": ("uint8", "torch.randint(0, 99, (4, 16)).byte()", "x.clamp(3, 50)"),
    "a product of complex64": ("complex64", "torch.randn(4, 16).cfloat()", "x * 2j"),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_every_kind_of_number_may_be_used(kind, tmp_path, judged):
    dtype, drawn, expression = WHOLE[kind]
    made = lone(tmp_path / "made", expression, inputs=(drawn,), dtype=dtype, dtypes=(dtype,))

    assert_passes(judged(made, trials=1))
