"""Formulas are recognised however they are spelled, and only where the data flow allows it."""

import pytest
from programs import Program

from runner.graph import Graph, recognize
from runner.graph.patterns import FORMULAS, variants


def names(graph: Graph) -> list[str]:
    return [kernel.operation for kernel in recognize(graph)]


SPELLINGS = [
    ("gelu", "return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))"),
    ("gelu", "return x * (torch.erf(x * 0.7071067811865475) + 1) / 2"),
    ("gelu", "return x * 0.5 * (1 + torch.erf(x / torch.sqrt(torch.tensor(2.0))))"),
    (
        "gelu",
        "return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))",
    ),
    (
        "gelu",
        "return x * (0.5 * (1 + torch.tanh(0.7978845608 * x * (1 + 0.044715 * x * x))))",
    ),
    (
        "gelu",
        "return 0.5 * (1 + torch.tanh((x + torch.pow(x, 3) * 0.044715) * 0.79788456)) * x",
    ),
    ("quick_gelu", "return x * torch.sigmoid(1.702 * x)"),
    ("quick_gelu", "return torch.sigmoid(x * 1.702) * x"),
    ("silu", "return x * torch.sigmoid(x)"),
    ("silu", "return x.sigmoid().mul(x)"),
    ("silu", "return x / (1 + torch.exp(-x))"),
    ("swish", "return x * torch.sigmoid(0.5 * x)"),
    ("swish", "return torch.sigmoid(x * 3) * x"),
    ("mish", "return x * torch.tanh(F.softplus(x))"),
    ("mish", "return torch.multiply(torch.tanh(torch.log(1 + torch.exp(x))), x)"),
    ("mish", "return x * torch.tanh(torch.log1p(x.exp()))"),
    ("hardswish", "return x * F.relu6(x + 3) / 6"),
    ("hardswish", "return x * torch.clamp(x + 3, 0, 6) * (1 / 6)"),
    ("hardswish", "return x * torch.clamp((x + 3) / 6, 0, 1)"),
    ("hardsigmoid", "return F.relu6(x + 3) / 6"),
    ("hardsigmoid", "return (x / 6 + 0.5).clamp(min=0, max=1)"),
    ("softplus", "return torch.log(1 + torch.exp(x))"),
    ("softplus", "return x.exp().log1p()"),
    ("softsign", "return x / (1 + x.abs())"),
    ("sigmoid", "return 1 / (1 + torch.exp(-x))"),
    ("sigmoid", "return torch.reciprocal(torch.exp(-x) + 1)"),
    ("rms_norm", "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)"),
    ("rms_norm", "return x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5)"),
    ("rms_norm", "return x / (x.square().mean(-1).sqrt() + 1e-8).unsqueeze(-1)"),
    ("rms_norm", "return x * (x.pow(2).mean(-1, keepdim=True) + 1e-6) ** -0.5"),
    (
        "rms_norm",
        "return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, True) + 1e-6)).type_as(x)",
    ),
    (
        "layer_norm",
        "return (x - x.mean(-1, True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)",
    ),
    ("layer_norm", "return (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-5)"),
    (
        "layer_norm",
        "return (x - x.mean(1, True)) * torch.rsqrt((x - x.mean(1, True)).pow(2).mean(1, True))",
    ),
    ("layer_norm", "d = x - x.mean(-1, True)\nreturn d / (d.pow(2).mean(-1, True) + 1e-5).sqrt()"),
    ("softmax", "e = torch.exp(x - x.max(-1, keepdim=True)[0])\nreturn e / e.sum(-1, True)"),
    ("softmax", "e = (x - x.amax(1, keepdim=True)).exp()\nreturn e / e.sum(1).unsqueeze(1)"),
    ("softmax", "return torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)"),
    ("log_softmax", "return x - torch.logsumexp(x, -1, keepdim=True)"),
    ("log_softmax", "d = x - x.amax(-1, True)\nreturn d - d.exp().sum(-1, True).log()"),
    ("logsumexp", "return x.exp().sum(-1).log()"),
    ("logsumexp", "m = x.amax(-1, True)\nreturn m + torch.log(torch.exp(x - m).sum(-1, True))"),
    ("l1_norm", "return x / x.abs().sum(1, keepdim=True)"),
    ("l1_norm", "return x / torch.norm(x, p=1, dim=-1, keepdim=True)"),
    ("l2_norm", "return F.normalize(x, dim=-1)"),
    ("l2_norm", "return x / x.norm(dim=1, keepdim=True)"),
    ("l2_norm", "return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-12)"),
    ("frobenius_norm", "return x / torch.norm(x, p='fro')"),
    ("frobenius_norm", "return x / torch.sqrt((x**2).sum())"),
    ("swiglu", "a, b = x.chunk(2, dim=-1)\nreturn F.silu(a) * b"),
    ("swiglu", "a, b = x[:, :4], x[:, 4:]\nreturn b * (a * torch.sigmoid(a))"),
    (
        "swiglu",
        """\
        a, b = x[:, ::2], x[:, 1::2]
        a, b = a.clamp(max=7.0), b.clamp(-7.0, 7.0)
        return a * torch.sigmoid(1.702 * a) * (b + 1)
        """,
    ),
    ("geglu", "a, b = x.chunk(2, dim=-1)\nreturn a * F.gelu(b)"),
    ("geglu", "a, b = x.split(4, dim=-1)\nreturn 0.5 * a * (1 + torch.erf(a / 2**0.5)) * b"),
    ("reglu", "a, b = x.chunk(2, dim=-1)\nreturn F.relu(a) * b"),
    ("glu", "a, b = x.chunk(2, dim=-1)\nreturn a * torch.sigmoid(b)"),
    ("gated_tanh", "a, b = x.chunk(2, dim=-1)\nreturn torch.tanh(a) * torch.sigmoid(b)"),
    ("topk_router", "v, i = x.topk(2)\nreturn torch.zeros_like(x).scatter(1, i, v.softmax(-1))"),
    ("topk_router", "v, i = x.topk(2)\nreturn v.softmax(-1), i"),
    ("topk_router", "v, i = x.softmax(-1).topk(2)\nreturn v / v.sum(-1, keepdim=True), i"),
]


@pytest.mark.parametrize(("operation", "forward"), SPELLINGS)
def test_a_spelling_of_it_is_one_kernel(program: Program, operation: str, forward: str) -> None:
    assert names(program(forward)) == [operation]


def test_nearly_every_operation_of_the_table_has_its_spellings_here() -> None:
    elsewhere = {"rope", "tanhshrink", "quick_gelu"}
    assert {operation for operation, _ in FORMULAS} - elsewhere <= {name for name, _ in SPELLINGS}


ROPES = {
    "by halves": "h = torch.cat((-x[..., 4:], x[..., :4]), -1)\nreturn x * cos + h * sin",
    "by halves, sine first": """\
        a, b = x.chunk(2, -1)
        return (torch.cat((-b, a), dim=-1) * sin) + (x * cos)
        """,
    "interleaved": """\
        h = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
        return x * cos + h * sin
        """,
    "on transposed heads": """\
        x = x.view(2, 2, 8).transpose(0, 1)
        return x * cos + torch.cat((-x[..., 4:], x[..., :4]), -1) * sin
        """,
}


@pytest.mark.parametrize("forward", ROPES.values(), ids=ROPES)
def test_rotating_by_position_is_one_kernel(program: Program, forward: str) -> None:
    graph = program(
        forward,
        arguments="x, cos, sin",
        inputs="torch.randn(4, 8), torch.randn(8), torch.randn(8)",
    )
    assert names(graph) == ["rope"]


PAIRS = {
    "concatenated": "return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)",
    "stacked": "return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)",
}


@pytest.mark.parametrize("forward", PAIRS.values(), ids=PAIRS)
def test_rotating_pairs_is_one_kernel(program: Program, forward: str) -> None:
    graph = program(
        "a, b = x[..., ::2], x[..., 1::2]\n" + forward,
        arguments="x, cos, sin",
        inputs="torch.randn(4, 8), torch.randn(4), torch.randn(4)",
    )
    (kernel,) = recognize(graph)
    assert kernel.operation == "rope"
    assert [graph.operations[i].name for i in kernel.members[:2]] == ["slice", "slice"]


NOT_QUITE = {
    "the sigmoid is returned too": ("s = torch.sigmoid(x)\nreturn x * s, s", "silu"),
    "the sigmoid is read again": ("s = torch.sigmoid(x)\nreturn x * s + s", "silu"),
    "the sigmoid of something else": ("return x * torch.sigmoid(x + 1)", "silu"),
    "another constant": ("return 0.5 * x * (1 + torch.erf(x / 3))", "gelu"),
    "another exponent": ("return x * (x.pow(3).mean(-1, True) + 1e-6).rsqrt()", "rms_norm"),
    "the mean is returned too": (
        "m = x.pow(2).mean(-1, True)\nreturn x * torch.rsqrt(m + 1e-6), m",
        "rms_norm",
    ),
    "the sum of something else": ("return x.exp() / (x + 1).exp().sum(1, True)", "softmax"),
    "the gate and its input are two tensors": ("return F.silu(x + 1) * (x * 2)", "swiglu"),
    "the gate is applied to itself": ("a, b = x.chunk(2, -1)\nreturn F.silu(a) * a", "swiglu"),
    "the rotation is halved": (
        "return x * (x + 1) + torch.cat((-x[..., 4:], x[..., 2:6]), -1)",
        "rope",
    ),
    "random numbers inside": ("r = torch.rand_like(x)\nreturn x * torch.sigmoid(r)", "silu"),
}


@pytest.mark.parametrize(("forward", "operation"), NOT_QUITE.values(), ids=NOT_QUITE)
def test_what_is_not_quite_it_stays_as_it_is(
    program: Program, forward: str, operation: str
) -> None:
    assert operation not in names(program(forward))


def test_its_weight_and_bias_belong_to_it(program: Program) -> None:
    graph = program(
        """\
        m = x.mean(-1, keepdim=True)
        v = (x - m).pow(2).mean(-1, keepdim=True)
        return self.g * (x - m) / torch.sqrt(v + 1e-5) + self.b
        """,
        init="self.g = nn.Parameter(torch.ones(8))\nself.b = nn.Parameter(torch.zeros(8))",
    )
    assert names(graph) == ["layer_norm"]


def test_a_factor_that_is_no_weight_stays_outside(program: Program) -> None:
    graph = program(
        "return x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6) * y",
        arguments="x, y",
        inputs="torch.randn(4, 8), torch.randn(4, 8)",
    )
    assert names(graph) == ["rms_norm", "mul"]


@pytest.mark.parametrize(
    ("dims", "operation"),
    [("(2, 3)", "instance_norm"), ("(0, 2, 3)", "batch_norm"), ("(1, 2, 3)", "layer_norm")],
)
def test_a_normalisation_is_named_by_its_dimensions(
    program: Program, dims: str, operation: str
) -> None:
    graph = program(
        f"d = {dims}\nreturn (x - x.mean(d, True)) / (x.var(d, keepdim=True) + 1e-5).sqrt()",
        inputs="torch.randn(2, 3, 4, 5)",
    )
    assert names(graph) == [operation]


def test_casts_there_and_back_belong_to_it(program: Program) -> None:
    graph = program(
        "y = x.float()\nreturn (y * torch.rsqrt(y.pow(2).mean(-1, True) + 1e-6)).to(x.dtype)",
        inputs="torch.randn(4, 8, dtype=torch.bfloat16)",
    )
    assert names(graph) == ["rms_norm"]


def test_a_cast_that_others_read_is_a_kernel_of_its_own(program: Program) -> None:
    graph = program(
        "y = x.float()\nreturn y * torch.sigmoid(y), y",
        inputs="torch.randn(4, 8, dtype=torch.bfloat16)",
    )
    assert names(graph) == ["cast", "silu"]


def test_it_does_not_reach_across_modules_of_the_author(program: Program) -> None:
    graph = program(
        "return x * self.gate(x)",
        init="self.gate = Gate()",
        classes="""\
        class Gate(nn.Module):
            def forward(self, x):
                return torch.sigmoid(x)
        """,
    )
    assert names(graph) == ["sigmoid", "mul"]


def test_a_module_of_torch_is_no_border(program: Program) -> None:
    graph = program("return x * self.gate(x)", init="self.gate = nn.Sigmoid()")
    assert names(graph) == ["silu"]


def test_optional_parts_may_be_missing_the_longest_first() -> None:
    assert variants("x [* weight] [+ bias]") == ["x * weight + bias", "x * weight", "x + bias", "x"]
