"""What is spelled is read back: as text, by Python's own parser, and by capturing it once more."""

import ast
import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from runner.emit.code.operation_code import ATOM, Expression, spell, subscript
from runner.graph.ir import CPU, DEVICE, Arg, Operation, Ref, Symbol, substitute
from runner.graph.normalize import normalize
from runner.graph.tracing.capture import capture
from runner.graph.tracing.provenance import ProvenanceRecorder
from runner.problems import read_problem
from runner.torch_internals import DataDependentOutputException, FakeTensorMode

INPUTS = {
    "x": "torch.randn(3, 4)",
    "y": "torch.rand(3, 4) + 0.5",
    "row": "torch.rand(4) + 0.5",
    "square": "torch.randn(4, 4)",
    "batch": "torch.randn(2, 3, 4)",
    "other": "torch.randn(2, 4, 3)",
    "img": "torch.randn(2, 4, 8, 8)",
    "signal": "torch.randn(2, 4, 16)",
    "volume": "torch.randn(2, 4, 4, 4, 4)",
    "mask": "torch.rand(3, 4) > 0.5",
    "ids": "torch.randint(0, 3, (2, 3))",
    "cols": "torch.randint(0, 4, (3, 2))",
    "k": "torch.randint(0, 9, (3, 4))",
    "labels": "torch.randint(0, 4, (3,))",
    "sign": "torch.randint(0, 2, (3,)) * 2.0 - 1",
    "w": "torch.randn(5, 4)",
    "bias": "torch.randn(5)",
    "table": "torch.randn(7, 4)",
    "kernel": "torch.randn(6, 4, 3, 3)",
    "shift": "torch.randn(6)",
    "kernel1": "torch.randn(6, 4, 3)",
    "kernel3": "torch.randn(6, 4, 2, 2, 2)",
    "up": "torch.randn(4, 6, 3, 3)",
    "mean": "torch.randn(4)",
    "q": "torch.randn(2, 2, 5, 4)",
    "causal": "torch.ones(5, 5).tril().bool()",
    "h": "torch.zeros(1, 2, 4)",
    "wi": "torch.randn(16, 4)",
    "wg": "torch.randn(12, 4)",
    "one": "torch.rand(1)",
}

# Written as a person would, and written again exactly so.
ROUND_TRIP = """
x + y ; x + 1 ; x - y ; x - 0.5 ; x * 1.702 ; x * -2 ; x / y ; 1 / x ; 1.0 / x ; x // 2 ; x % 2 ; x % y ; -x ; ~mask
1 - x ; x**2 ; x**y ; 2**x ; x**-0.5 ; k & 3 ; mask & mask ; mask | mask ; k ^ 5 ; k << 1 ; k >> 1 ; x > 0 ; x >= y
x < y ; x <= 0.5 ; x == 0 ; x != y ; torch.add(x, y, alpha=2) ; torch.sub(x, y, alpha=0.5) ; torch.rsub(x, y)
torch.div(x, y, rounding_mode="floor") ; torch.matmul(x, w.t()) ; torch.maximum(x, y) ; torch.minimum(x, y) ; torch.max(x, y)
torch.addcmul(x, x, y, value=0.5) ; torch.addcdiv(x, x, y) ; torch.lerp(x, y, 0.3) ; torch.atan2(x, y) ; torch.logaddexp(x, y)
torch.float_power(y, 2.0) ; torch.fmod(x, 2) ; torch.hypot(x, y) ; torch.copysign(x, y) ; torch.xlogy(x, y)
torch.exp(x) ; torch.log(y) ; torch.sqrt(y) ; torch.rsqrt(y) ; torch.abs(x) ; torch.sin(x) ; torch.tanh(x) ; torch.sigmoid(x)
torch.erf(x) ; torch.reciprocal(y) ; torch.square(x) ; torch.round(x) ; torch.round(x, decimals=2) ; torch.sign(x) ; torch.isnan(x)
torch.nan_to_num(x, nan=0.0) ; torch.logical_not(mask) ; torch.logical_and(mask, mask) ; torch.bitwise_and(k, 3)
torch.where(mask, x, y) ; torch.where(mask, x, 0.0) ; torch.where(mask, 0.0, x) ; x.masked_fill(mask, float("-inf"))
x.masked_fill(mask, torch.finfo(torch.float32).min) ; x.masked_fill(mask, -1e9) ; torch.tril(square) ; torch.triu(square, diagonal=1)
x.clamp(min=0) ; x.clamp(max=0.5) ; x.clamp(min=-1e-5, max=1.0) ; x.clamp(min=y) ; x.clamp_min(1e-12) ; x.to(torch.float64)
x.to(torch.bfloat16) ; x.to(torch.float32, copy=True)
F.relu(x) ; F.gelu(x) ; F.gelu(x, approximate="tanh") ; F.silu(x) ; F.mish(x) ; F.selu(x) ; F.elu(x) ; F.elu(x, alpha=0.5) ; F.celu(x)
F.leaky_relu(x) ; F.leaky_relu(x, negative_slope=0.2) ; F.hardtanh(x) ; F.hardtanh(x, min_val=-2.0, max_val=2.0) ; F.relu6(x)
F.hardswish(x) ; F.hardsigmoid(x) ; F.softplus(x) ; F.softplus(x, beta=2) ; F.logsigmoid(x) ; F.glu(x) ; F.glu(batch, dim=2)
F.hardshrink(x) ; F.softshrink(x, lambd=0.3) ; F.threshold(x, 0.1, 20.0) ; F.prelu(img, row) ; F.dropout(x, p=0.5, training=True)
F.softmax(x, dim=-1) ; F.softmax(x, dim=1, dtype=torch.float64) ; F.log_softmax(x, dim=1)
F.cross_entropy(x, labels) ; F.cross_entropy(x, labels, weight=row, reduction="sum", label_smoothing=0.1) ; F.nll_loss(x, labels)
F.kl_div(x, y, reduction="sum") ; F.binary_cross_entropy_with_logits(x, y) ; F.soft_margin_loss(x, sign[:, None])
F.hinge_embedding_loss(x, sign[:, None], margin=0.5) ; F.cosine_embedding_loss(x, y, sign) ; F.triplet_margin_loss(x, y, -x, margin=0.5)
F.margin_ranking_loss(x[:, 0], y[:, 0], sign) ; F.cosine_similarity(x, y) ; F.pairwise_distance(x, y) ; torch.cdist(x, y) ; torch.cdist(x, y, p=1.0)
F.linear(x, w) ; F.linear(x, w, bias) ; F.conv2d(img, kernel) ; F.conv2d(img, kernel, shift, stride=2, padding=(1, 0)) ; F.conv1d(signal, kernel1, padding=1)
F.conv2d(img, kernel, padding="same", dilation=2) ; F.conv3d(volume, kernel3, stride=2) ; F.conv_transpose2d(img, up, shift, stride=2, output_padding=1)
F.conv_transpose1d(signal, kernel1.transpose(0, 1), dilation=2) ; torch.mm(x, square) ; torch.bmm(batch, other) ; torch.mv(x, row) ; torch.dot(row, row)
torch.outer(row, bias) ; torch.addmm(bias, x, w.t(), beta=0.5) ; torch.baddbmm(x[:, :3], batch, other, alpha=2) ; torch.einsum("bij,bjk->bik", batch, other)
torch.einsum("ii", square) ; torch.kron(x, y) ; torch.tensordot(x, y, dims=((1,), (1,)))
F.scaled_dot_product_attention(q, q, q) ; F.scaled_dot_product_attention(q, q, q, attn_mask=causal, scale=0.5) ; F.scaled_dot_product_attention(q, q, q, is_causal=True)
F.layer_norm(x, (4,)) ; F.layer_norm(x, (4,), row, row, eps=1e-6) ; F.layer_norm(x, (4,), row) ; F.group_norm(img, 2) ; F.group_norm(img, 2, row, row)
F.batch_norm(img, mean, row) ; F.batch_norm(img, mean, row, row, mean, eps=0.001) ; F.instance_norm(img) ; F.rms_norm(x, (4,)) ; F.rms_norm(x, (4,), row, eps=1e-6)
F.max_pool2d(img, 2) ; F.max_pool2d(img, 3, stride=2, padding=1) ; F.max_pool2d(img, (2, 1), stride=2, ceil_mode=True) ; F.max_pool1d(signal, 2)
F.max_pool2d(img, 2, return_indices=True)[0] ; F.max_pool3d(volume, 2) ; F.avg_pool1d(signal, 4) ; F.avg_pool2d(img, 2, count_include_pad=False)
F.avg_pool3d(volume, 2) ; F.adaptive_avg_pool1d(signal, 1) ; F.adaptive_avg_pool2d(img, (1, 1)) ; F.adaptive_max_pool2d(img, (2, 2), return_indices=True)[0]
F.interpolate(img, scale_factor=2.0, mode="nearest") ; F.interpolate(img, size=(12, 10), mode="bilinear") ; F.interpolate(img, scale_factor=2.0, mode="bilinear", align_corners=True)
F.interpolate(signal, size=20, mode="linear") ; F.pixel_shuffle(img, 2) ; F.pixel_unshuffle(img, 2) ; F.unfold(img, 2, stride=2) ; F.fold(F.unfold(img, 2, stride=2), (8, 8), 2, stride=2)
x.sum() ; x.sum(dim=1) ; img.sum(dim=(2, 3), keepdim=True) ; x.sum(dim=0, dtype=torch.float64) ; x.mean() ; img.mean(dim=(2, 3)) ; x.prod(dim=1) ; x.max() ; x.amax(dim=1)
x.amin(dim=0, keepdim=True) ; x.argmax(dim=1) ; x.argmin() ; mask.all() ; mask.any(dim=1) ; torch.logsumexp(x, dim=1) ; x.std(dim=1) ; x.std(dim=1, correction=0)
x.std() ; x.var(dim=1, unbiased=False) ; x.var(dim=(0, 1), correction=1, keepdim=True) ; torch.linalg.vector_norm(x) ; torch.linalg.vector_norm(x, dim=1, keepdim=True)
torch.linalg.norm(square) ; torch.linalg.norm(square, ord="fro") ; torch.cumsum(x, dim=1) ; torch.cumprod(x, dim=0) ; torch.logcumsumexp(x, dim=1)
torch.max(x, dim=1)[0] ; torch.min(x, dim=1, keepdim=True)[1] ; torch.topk(x, 2)[0] ; torch.topk(x, 2, dim=0, largest=False)[1] ; torch.sort(x, dim=1, descending=True)[0]
x.argsort(dim=1) ; torch.median(x, dim=1)[0] ; torch.quantile(x, 0.5, dim=1) ; torch.count_nonzero(x, dim=1) ; torch.diff(x) ; torch.var_mean(x, dim=1, correction=0)[1]
F.embedding(ids, table) ; F.embedding(ids, table, padding_idx=0) ; F.one_hot(ids, num_classes=5) ; torch.gather(x, 1, cols) ; torch.index_select(x, 0, labels[:2] % 3) ; table[ids]
x[:, labels] ; x.scatter(1, cols, 0.5) ; x.scatter(1, cols, y) ; x.scatter_add(1, cols, y) ; x.index_add(0, ids[0], y) ; x.index_put([ids[0]], y)
x.scatter_reduce(1, cols, y, reduce="amax") ; torch.take_along_dim(x, cols, dim=1)
torch.select_scatter(x, row, dim=0, index=1) ; torch.slice_scatter(x, y[:, :1], dim=1, start=0, end=1) ; torch.diagonal(square) ; torch.diag_embed(row)
x[0] ; x[:, -1] ; img[:, :, 1:] ; x[:, ::2] ; img[:, 1:3, :, 0] ; x[:, None] ; batch[:, 0, None] ; signal.narrow(1, 1, 2) ; img.unfold(2, 2, 2)
x.view(2, 6) ; x.reshape(-1) ; x.t() ; x.T ; batch.mT ; batch.transpose(1, 2) ; batch.permute(2, 0, 1) ; batch.movedim(0, 2) ; img.flatten(1) ; img.flatten(1, 2)
x.unflatten(1, (2, 2)) ; one.squeeze(0) ; batch[:, :1].squeeze(1) ; x.unsqueeze(-1) ; row.expand(3, 4) ; x.expand(2, -1, -1) ; one.broadcast_to((3, 4))
img.split(2, dim=1)[1] ; img.split([1, 3], dim=1)[1] ; img.chunk(2, dim=1)[0] ; x.unbind(0)[1] ; x.tensor_split(2, dim=1)[0] ; torch.cat([x, y]) ; torch.cat([x, y], dim=-1) ; torch.stack([x, y], dim=1)
batch.transpose(1, 2).contiguous() ; img.contiguous(memory_format=torch.channels_last) ; x.clone() ; x.repeat(2, 1) ; x.repeat_interleave(2, dim=0) ; torch.roll(x, shifts=1, dims=1)
torch.roll(img, shifts=(-1, -1), dims=(2, 3)) ; x.flip(1) ; x.flip(0, 1) ; F.pad(x, (1, 1)) ; F.pad(x, (1, 1), value=2.0) ; F.pad(img, (1, 1, 1, 1), mode="reflect")
torch.arange(8) ; torch.arange(1, 8) ; torch.arange(0, 8, 2, dtype=torch.float32) ; torch.linspace(0, 1, 5) ; torch.eye(3) ; torch.zeros(2, 3) ; torch.ones(3, dtype=torch.bool)
torch.full((2, 3), float("-inf")) ; torch.zeros_like(x) ; torch.full_like(x, 0.5) ; x.new_zeros(2, 3) ; x.new_full((2,), 1.0) ; torch.rand(2, 3) ; torch.randn_like(x) ; torch.randint(0, 9, (2, 3))
torch.bernoulli(torch.sigmoid(x)) ; torch.view_as_real(torch.complex(x, y)) ; torch.fft.rfft(x).real ; torch.linalg.inv(square)
torch.lstm(batch, [h, h], [wi, wi], has_biases=False, num_layers=1, dropout=0.0, train=False, bidirectional=False, batch_first=True)[0]
torch.gru(batch, h, [wg, wg], has_biases=False, num_layers=1, dropout=0.0, train=False, bidirectional=False, batch_first=True)[0]
torch.lstm_cell(x, [x, y], wi, wi)[1] ; torch.gru_cell(x, y, wg, wg)
"""  # noqa: E501

# Other ways to write it -> how it is spelled.
RESPELLED = {
    "x.float() + x.double()": "x + x.to(torch.float64)",
    "2 * x": "x * 2",
    "x / 1.4142135623730951": "x / math.sqrt(2)",
    "x * 0.10206207261596577": "x * (1 / math.sqrt(96))",
    "x * -0.1767766952966369": "x * -32**-0.5",
    "x @ w.T": "torch.matmul(x, w.T)",
    "abs(x)": "torch.abs(x)",
    "torch.relu(x)": "F.relu(x)",
    "x.softmax(-1)": "F.softmax(x, dim=-1)",
    "torch.flatten(img, 1)": "img.flatten(1)",
    "img[..., 0]": "img[:, :, :, 0]",
    "x.norm(dim=1)": "torch.linalg.vector_norm(x, dim=1)",
    "F.normalize(x)": (
        "x / torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min(1e-12).expand(3, 4)"
    ),
    "x.type_as(k)": "x.to(torch.int64)",
    "row.expand_as(x)": "row.expand(3, 4)",
    "img.view_as(volume)": "img.view(2, 4, 4, 4, 4)",
    "F.softsign(x)": "x / (torch.abs(x) + 1)",
    "x - (y - x)": "x - (y - x)",
    "(x + y) * (x - y)": "(x + y) * (x - y)",
    "-(x**2)": "-x**2",
    "(-x) ** 2": "(-x) ** 2",
    "2.0 ** -x": "2.0**-x",
    "(x > 0) & ~mask": "(x > 0) & ~mask",
    "(x > 0) == mask": "(x > 0) == mask",
    "(x + y).mean(dim=1)": "(x + y).mean(dim=1)",
    "(-x)[:, 0]": "(-x)[:, 0]",
    "x * torch.sigmoid(1.702 * x)": "x * torch.sigmoid(x * 1.702)",
    "0.5 * x * (1.0 + torch.tanh(x + 0.044715 * torch.pow(x, 3.0)))": (
        "x * 0.5 * (torch.tanh(x + x**3.0 * 0.044715) + 1.0)"
    ),
    "torch.special.expit(x)": "torch.special.expit(x)",
    "torch.narrow_copy(x, 0, 0, 1)": "torch.ops.aten.narrow_copy.default(x, 0, 0, 1)",
}


SNIPPETS = {
    cell.strip(): cell.strip() for line in ROUND_TRIP.splitlines() for cell in line.split(" ; ")
} | RESPELLED
SNIPPETS.pop("")
try:
    with FakeTensorMode():
        torch.quantile(torch.rand(3), 0.5)
except DataDependentOutputException:  # torch 2.9 reads a value there, which no symbolic trace can
    SNIPPETS.pop("torch.quantile(x, 0.5, dim=1)")


@dataclass(frozen=True)
class Line:
    """A line of a forward: its operations, and the value that it ends with."""

    operations: tuple[Operation, ...]
    result: str


def captured(folder: Path, lines: list[str]) -> list[Line]:
    """A forward of these lines, captured; each line is an output."""
    text = "import math\n\nimport torch\nimport torch.nn.functional as F\n\n\n"
    text += "class Model(torch.nn.Module):\n"
    text += f"    def forward(self, {', '.join(INPUTS)}):\n"
    first = text.count("\n") + 1
    text += "".join(f"        out_{i} = {line}\n" for i, line in enumerate(lines))
    text += f"        return [{', '.join(f'out_{i}' for i in range(len(lines)))}]\n\n\n"
    text += f"def get_inputs():\n    return [{', '.join(INPUTS.values())}]\n\n\n"
    text += "def get_init_inputs():\n    return []\n"
    (folder / "snippets.py").write_text(text)
    graph = normalize(capture(read_problem(folder / "snippets.py")))
    assert graph.capture == "fake", graph.notes
    found: list[list[Operation]] = [[] for _ in lines]
    for op in graph.operations:
        assert op.origin is not None
        found[op.origin.statement - first].append(op)
    return [Line(tuple(o), name) for o, name in zip(found, graph.output_names(), strict=True)]


def spelled(line: Line) -> str:
    """One expression for a line: each operation stands where it is read."""
    texts: dict[str, Expression] = {}
    runs: dict[str, list[Operation]] = {}

    def value(name: str) -> Expression:
        return texts.get(name, Expression(name))

    for op in line.operations:
        text = spell(op, value)
        if isinstance(op.args[0] if op.args else None, Ref):
            run = [*runs.get(op.args[0].name, ()), op]
            if (merged := subscript(run, value)) is not None:
                text, runs[op.outputs[0]] = merged, run
        for i, name in enumerate(op.outputs):
            texts[name] = Expression(f"{text.at(ATOM)}[{i}]") if op.returns_list else text
    return texts[line.result].text


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Line]:
    """Snippet -> its operations."""
    lines = captured(tmp_path_factory.mktemp("written"), list(SNIPPETS))
    return dict(zip(SNIPPETS, lines, strict=True))


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Line]:
    """Snippet -> the operations of what is spelled, where that is another text."""
    lines = captured(tmp_path_factory.mktemp("spelled"), list(RESPELLED.values()))
    return dict(zip(RESPELLED, lines, strict=True))


@pytest.fixture(scope="module")
def tensors() -> dict[str, Any]:
    torch.manual_seed(0)
    return {name: eval(rule, {"torch": torch}) for name, rule in INPUTS.items()}


def with_defaults(op: Operation, names: dict[str, str]) -> dict[str, str]:
    """Every argument of an operation as text, defaults included, values renamed."""
    name, _, overload = op.target.partition(".")
    schema = getattr(getattr(torch.ops.aten, name), overload)._schema
    given = dict(zip((a.name for a in schema.arguments), op.args, strict=False)) | dict(op.kwargs)
    found = {}
    for argument in schema.arguments:
        arg = given.get(argument.name)
        if arg is None and argument.has_default_value():
            arg = argument.default_value
        if isinstance(arg, (int, float)) and argument.N:
            arg = [arg] * argument.N
        if isinstance(arg, (list, tuple)):
            arg = tuple(arg)
        if isinstance(arg, (int, float)) and not isinstance(arg, bool):
            arg = float(arg)
        found[argument.name] = str(substitute(arg, lambda n: Ref(names.get(n, n))))
    return found


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_an_operation_is_spelled_as_a_person_writes_it(written, snippet):
    assert spelled(written[snippet]) == SNIPPETS[snippet]


@pytest.mark.parametrize("snippet", RESPELLED)
def test_what_is_spelled_runs_the_same_operators_with_the_same_arguments(written, again, snippet):
    before, after = written[snippet], again[snippet]
    names: dict[str, str] = {}
    assert [op.target for op in after.operations] == [op.target for op in before.operations]
    for old, new in zip(before.operations, after.operations, strict=True):
        assert with_defaults(new, names) == with_defaults(old, {})
        names |= dict(zip(new.outputs, old.outputs, strict=True))


@pytest.mark.parametrize("snippet", RESPELLED)
def test_what_is_spelled_computes_the_same_bits_in_the_same_layout(tensors, snippet):
    before, after = (
        eval(text, {"math": math, "torch": torch, "F": F, **tensors})
        for text in (snippet, RESPELLED[snippet])
    )
    assert (before.dtype, before.stride()) == (after.dtype, after.stride())
    assert torch.equal(before, after)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "mode"), [("reflection", "reflect"), ("replication", "replicate")]
)
def test_a_padding_of_equal_numbers_stays_a_tuple(kind, mode, rank):
    widths = (1,) * (2 * rank)
    args = (Ref("x"), widths)
    pad = Operation(f"{kind}_pad{rank}d.default", args, (), ("y",), schema=("self", "padding"))
    text = spell(pad, Expression).text
    assert text == f'F.pad(x, {widths}, mode="{mode}")'
    x = torch.rand(2, 3, *[4] * rank)
    expected = getattr(torch.ops.aten, f"{kind}_pad{rank}d")(x, widths)
    assert torch.equal(eval(text, {"F": F, "x": x}), expected)


# --- precedence -----------------------------------------------------------------------------------

SIGNS = {
    "add.Tensor": "({} + {})",
    "sub.Tensor": "({} - {})",
    "mul.Tensor": "({} * {})",
    "div.Tensor": "({} / {})",
    "floor_divide.default": "({} // {})",
    "remainder.Tensor": "({} % {})",
    "pow.Tensor_Tensor": "({} ** {})",
    "__and__.Tensor": "({} & {})",
    "__or__.Tensor": "({} | {})",
    "__xor__.Tensor": "({} ^ {})",
    "__lshift__.Tensor": "({} << {})",
    "lt.Tensor": "({} < {})",
    "eq.Tensor": "({} == {})",
    "rsub.Scalar": "(2 - {})",
    "pow.Scalar": "(-2 ** {})",
    "mul.Scalar_": "({} * -2)",
    "neg.default": "(-{})",
    "bitwise_not.default": "(~{})",
    "select.int": "({}[0])",
    "transpose.int": "({}.transpose(0, 1))",
    "numpy_T.default": "({}.T)",
    "relu.default": "F.relu({})",
}


def operation(target: str, *refs: str) -> Operation:
    """One of SIGNS on the given values."""
    args: tuple[Arg, ...] = tuple(Ref(name) for name in refs[: SIGNS[target].count("{}")])
    schema: tuple[str, ...] = ("self", "other")
    if target == "rsub.Scalar":
        args = (args[0], 2)
    elif target == "pow.Scalar":
        args = (-2, args[0])
    elif target == "mul.Scalar_":
        target, args = "mul.Tensor", (args[0], -2)
    elif target == "select.int":
        args, schema = (args[0], 0, 0), ("self", "dim", "index")
    elif target == "transpose.int":
        args, schema = (args[0], 0, 1), ("self", "dim0", "dim1")
    return Operation(target, args, (), ("out",), schema=schema)


@pytest.mark.parametrize("outer", SIGNS)
def test_nested_operations_keep_their_order(outer):
    for left, right in itertools.product(SIGNS, repeat=2):
        sides = [
            (spell(operation(side, *names), Expression), SIGNS[side].format(*names))
            for side, names in ((left, "ab"), (right, "cd"))
        ]
        sides = sides[: SIGNS[outer].count("{}")]
        inner = dict(zip("pq", (text for text, _ in sides), strict=False))
        text = spell(operation(outer, *inner), inner.__getitem__)
        meant = SIGNS[outer].format(*(full for _, full in sides)).replace("-2 **", "(-2) **")
        assert ast.dump(ast.parse(text.text)) == ast.dump(ast.parse(meant)), text


# --- what a call cannot say, and recipes ----------------------------------------------------------


def test_an_operator_without_a_row_is_called_by_its_own_name():
    op = Operation("frexp.Tensor", (Ref("x"),), (), ("m", "e"), schema=("self",))
    assert spell(op, Expression).text == "torch.ops.aten.frexp.Tensor(x)"


def test_a_product_with_a_number_that_a_gradient_runs_is_written_with_its_sign():
    op = Operation("mul.Scalar", (Ref("x"), 2.0), (), ("y",), schema=("self", "other"))
    assert spell(op, Expression).text == "x * 2.0"


def test_rows_of_a_bag_and_packed_sequences_are_called_by_their_public_names():
    schema = (
        *("weight", "indices", "offsets", "scale_grad_by_freq", "mode", "sparse"),
        *("per_sample_weights", "include_last_offset", "padding_idx"),
    )
    args = (*map(Ref, "wio"), False, 0, False, None, False, None)
    bag = Operation("embedding_bag.padding_idx", args, (), ("y",), schema=schema)
    assert spell(bag, Expression).text == (
        "torch.embedding_bag(w, i, o, scale_grad_by_freq=False, mode=0, sparse=False, "
        "per_sample_weights=None, include_last_offset=False, padding_idx=None)"
    )
    schema = (
        *("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train"),
        "bidirectional",
    )
    args = (Ref("x"), Ref("n"), (Ref("h"),), (Ref("w"),), True, 1, 0.0, False, True)
    lstm = Operation("lstm.data", args, (), ("y",), schema=schema)
    assert spell(lstm, Expression).text.startswith("torch.lstm(x, n, ")


def test_an_argument_that_the_row_cannot_say_makes_it_the_operators_own_name():
    schema = ("self", "alpha", "scale", "input_scale")
    plain = Operation("elu.default", (Ref("x"), 1.5, 1, 1), (), ("out",), schema=schema)
    scaled = Operation("elu.default", (Ref("x"), 1.5, 2), (), ("out",), schema=schema)
    assert spell(plain, Expression).text == "F.elu(x, alpha=1.5)"
    assert spell(scaled, Expression).text == "torch.ops.aten.elu.default(x, 1.5, 2)"


def test_an_operator_of_another_library_keeps_its_namespace():
    op = Operation("torchvision::nms.default", (Ref("b"), Ref("s"), 0.5), (), ("out",))
    assert spell(op, Expression).text == "torch.ops.torchvision.nms.default(b, s, 0.5)"


def test_what_is_created_goes_to_the_device_that_is_asked_for():
    op = Operation("arange.default", (8,), (("device", DEVICE),), ("out",), schema=("end", "dtype"))
    written = spell(op, Expression, device=lambda: "x.device")
    assert written.text == "torch.arange(8, device=x.device)"


def test_a_move_names_the_device_that_it_goes_to():
    def moved(*to: Symbol) -> str:
        schema = ("self", "device", "dtype")
        op = Operation("to.device", (Ref("mask"), *to), (), ("out",), schema=schema)
        return spell(op, Expression, device=lambda: "x.device").text

    assert moved(DEVICE) == "mask.to(x.device)"
    assert moved(DEVICE, Symbol("torch.bool")) == "mask.to(x.device, torch.bool)"
    assert moved(CPU) == 'mask.to("cpu")'


def test_a_last_dimension_is_said_with_dots_where_the_number_of_dimensions_is_known():
    even = Operation("slice.Tensor", (Ref("x"), 3, 0, 9223372036854775807, 2), (), ("out",))
    even = replace(even, schema=("self", "dim", "start", "end", "step"))
    for dims, text in ((None, "x[:, :, :, ::2]"), (4, "x[..., ::2]"), (5, "x[:, :, :, ::2]")):
        expression = subscript((even,), Expression, dims and (lambda name, dims=dims: dims))
        assert expression is not None
        assert expression.text == text


def test_an_overload_that_is_a_word_of_python_can_be_called():
    op = Operation("random.from", (Ref("x"), 0, 9), (), ("out",), schema=("self", "from", "to"))
    text = spell(op, Expression).text
    assert text == 'getattr(torch.ops.aten.random, "from")(x, 0, 9)'
    assert eval(text, {"torch": torch, "x": torch.zeros(4)}).max() < 9


@pytest.mark.parametrize(
    "change",
    ["uniform_(-1, 1)", "normal_(0.0, 2.0)", "bernoulli_(0.5)", "pow_(2)", "floor_divide_(2.0)"],
)
def test_an_operation_in_place_has_a_spelling_once_it_is_functional(tmp_path, change):
    lines = captured(tmp_path, [f"x.clone().{change}"])
    _, op = lines[0].operations
    tensor = torch.ones(3, 4)
    results = []
    for text in (f"out.{change}", spell(op, lambda name: Expression("out")).text):
        torch.manual_seed(0)
        results.append(eval(text, {"torch": torch, "out": tensor.clone()}))
    assert torch.equal(*results)


def test_a_move_to_a_device_follows_the_tensor():
    args = (Ref("x"), Symbol('torch.device("cpu")'), Symbol("torch.float64"))
    op = Operation("to.device", args, (), ("out",), schema=("self", "device", "dtype"))
    assert spell(op, Expression).text == "x.to(x.device, torch.float64)"


RECIPES = {
    "torch.empty(2, 3).uniform_(-0.1, 0.1)": "torch.empty(2, 3).uniform_(-0.1, 0.1)",
    "torch.nn.init.normal_(torch.empty(2, 3), std=0.02)": "torch.empty(2, 3).normal_(0.0, 0.02)",
    "torch.rand(3, 4) * 2 - 1": "torch.rand(3, 4) * 2 - 1",
    "torch.randint(0, 10, (3, 4))": "torch.randint(0, 10, (3, 4))",
    "torch.randint(5, (3,))": "torch.randint(5, (3,))",
    "torch.randn(3, 4, dtype=torch.bfloat16)": "torch.randn(3, 4, dtype=torch.bfloat16)",
    "torch.randn_like(torch.zeros(3))": "torch.randn_like(torch.zeros(3))",
    "torch.bernoulli(torch.full((3,), 0.5))": "torch.bernoulli(torch.full((3,), 0.5))",
    "torch.rand(3, 4).softmax(dim=-1)": "F.softmax(torch.rand(3, 4), dim=-1)",
    "(torch.rand(3) > 0.5).float()": "(torch.rand(3) > 0.5).to(torch.float32)",
    "torch.ones(4, 4).tril().view(1, 1, 4, 4)": "torch.tril(torch.ones(4, 4)).view(1, 1, 4, 4)",
    "torch.rand(8).sort()[0]": "torch.sort(torch.rand(8))[0]",
    "torch.randperm(6)": "torch.randperm(6)",
    "torch.rand(4, 4).triu_(1).add_(2.0)": "torch.rand(4, 4).triu_(1).add_(2.0)",
    "torch.tensor([1.0, 2.0]) / 2": "torch.tensor([1.0, 2.0], dtype=torch.float32) / 2",
}


@pytest.mark.parametrize("rule", RECIPES)
def test_a_recipe_draws_the_same_numbers(rule):
    recorder = ProvenanceRecorder()
    torch.manual_seed(3)
    with recorder:
        tensor = eval(rule, {"torch": torch})
    recipe = recorder.recipe(tensor)
    assert recipe is not None
    text = spelled(Line(recipe.operations, recipe.result))
    assert text == RECIPES[rule]
    torch.manual_seed(3)
    assert torch.equal(eval(text, {"torch": torch, "F": F}), tensor)
