"""Activations and gates are recognised however they are spelled."""

import pytest
from programs import Program, names

SPELLINGS = [
    ("gelu", "return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))"),
    ("gelu", "return x * (torch.erf(x * 0.7071067811865475) + 1) / 2"),
    ("gelu", "return x * 0.5 * (1 + torch.erf(x / torch.sqrt(torch.tensor(2.0))))"),
    ("gelu", "return x * (0.5 + torch.special.erf(x / 2**0.5).div(2))"),
    ("gelu", "return 0.5 * x * torch.erfc(-x / math.sqrt(2))"),
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
    ("gelu", "return x * torch.sigmoid(1.5957691216 * x * (1 + 0.044715 * x**2))"),
    ("quick_gelu", "return x * torch.sigmoid(1.702 * x)"),
    ("quick_gelu", "return torch.sigmoid(x * 1.702) * x"),
    ("silu", "return x * torch.sigmoid(x)"),
    ("silu", "return x.sigmoid().mul(x)"),
    ("silu", "return x / (1 + torch.exp(-x))"),
    ("silu", "return x * (1 / (1 + torch.exp(-x)))"),
    ("silu", "return torch.special.expit(x) * x"),
    ("swish", "return x * torch.sigmoid(0.5 * x)"),
    ("swish", "return torch.sigmoid(x * 3) * x"),
    ("swish", "return x / (1 + torch.exp(-2.5 * x))"),
    ("mish", "return x * torch.tanh(F.softplus(x))"),
    ("mish", "return torch.multiply(torch.tanh(torch.log(1 + torch.exp(x))), x)"),
    ("mish", "return x * torch.tanh(torch.log1p(x.exp()))"),
    ("hardswish", "return x * F.relu6(x + 3) / 6"),
    ("hardswish", "return x * torch.clamp(x + 3, 0, 6) * (1 / 6)"),
    ("hardswish", "return x * torch.clamp((x + 3) / 6, 0, 1)"),
    ("hardswish", "return x * F.hardtanh(x + 3, 0.0, 6.0).div(6)"),
    ("hardsigmoid", "return F.relu6(x + 3) / 6"),
    ("hardsigmoid", "return (x / 6 + 0.5).clamp(min=0, max=1)"),
    ("hardsigmoid", "return torch.clip(0.2 * x + 0.5, 0, 1)"),
    ("softplus", "return torch.log(1 + torch.exp(x))"),
    ("softplus", "return x.exp().log1p()"),
    ("softplus", "return torch.log(1 + torch.exp(2 * x)) / 2"),
    ("softplus", "return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))"),
    ("softplus", "return torch.logaddexp(x, torch.zeros_like(x))"),
    ("log_sigmoid", "return torch.log(torch.sigmoid(x))"),
    ("log_sigmoid", "return -F.softplus(-x)"),
    ("log_sigmoid", "return -torch.log(1 + torch.exp(-x))"),
    ("softsign", "return x / (1 + x.abs())"),
    ("softsign", "return x * torch.reciprocal(torch.abs(x) + 1.0)"),
    ("sigmoid", "return 1 / (1 + torch.exp(-x))"),
    ("sigmoid", "return torch.reciprocal(torch.exp(-x) + 1)"),
    ("sigmoid", "return 0.5 * (torch.tanh(x / 2) + 1)"),
    ("tanh", "return (x.exp() - (-x).exp()) / (x.exp() + (-x).exp())"),
    ("tanh", "return 2 * torch.sigmoid(2 * x) - 1"),
    ("div", "return 1 / x"),
    ("div", "return 2.5 / x"),
    ("div", "return torch.reciprocal(x) * 0.5"),
    ("tanhshrink", "return x - torch.tanh(x)"),
    ("tanhshrink", "return -x.tanh() + x"),
    ("relu", "return torch.where(x > 0, x, 0.0)"),
    ("relu", "return x * (x > 0).float()"),
    ("relu", "return torch.max(x, torch.zeros_like(x))"),
    ("squared_relu", "return F.relu(x) ** 2"),
    ("squared_relu", "r = torch.clamp(x, min=0)\nreturn r * r"),
    ("squared_relu", "return torch.square(torch.relu(x))"),
    ("leaky_relu", "return torch.where(x > 0, x, 0.1 * x)"),
    ("leaky_relu", "return torch.where(x < 0, x * 0.1, x)"),
    ("leaky_relu", "return torch.maximum(x, 0.2 * x)"),
    ("leaky_relu", "return F.relu(x) - 0.01 * F.relu(-x)"),
    ("elu", "return torch.where(x > 0, x, 1.5 * (torch.exp(x) - 1))"),
    ("elu", "return torch.where(x >= 0, x, torch.expm1(x))"),
    ("selu", "return 1.0507009873 * torch.where(x > 0, x, 1.6732632423 * (torch.exp(x) - 1))"),
    ("selu", "return torch.where(x <= 0, 1.6732632423 * torch.expm1(x), x) * 1.0507009873"),
    ("softshrink", "return x.sign() * F.relu(x.abs() - 0.5)"),
    ("softshrink", "return torch.sign(x) * torch.clamp(torch.abs(x) - 0.5, min=0)"),
    ("hardshrink", "return torch.where(x.abs() > 0.5, x, torch.zeros_like(x))"),
    ("hardshrink", "return x.masked_fill(x.abs() <= 0.5, 0.0)"),
    ("softcap", "return 30.0 * torch.tanh(x / 30.0)"),
    ("softcap", "x = x / 50.0\nx = torch.tanh(x)\nx = x * 50.0\nreturn x"),
    ("swiglu", "a, b = x.chunk(2, dim=-1)\nreturn F.silu(a) * b"),
    ("swiglu", "a, b = x[:, :4], x[:, 4:]\nreturn b * (a * torch.sigmoid(a))"),
    ("swiglu", "a, b = x.view(4, 2, 4).unbind(1)\nreturn a / (1 + torch.exp(-a)) * b"),
    (
        "swiglu",
        """\
        a, b = x[:, ::2], x[:, 1::2]
        a, b = a.clamp(max=7.0), b.clamp(-7.0, 7.0)
        return a * torch.sigmoid(1.702 * a) * (b + 1)
        """,
    ),
    (
        "swiglu",
        "a, b = x.chunk(2, -1)\nreturn F.silu(a.clamp(max=10)) * b.clamp(min=-10, max=10)",
    ),
    ("geglu", "a, b = x.chunk(2, dim=-1)\nreturn a * F.gelu(b)"),
    ("geglu", "a, b = x.split(4, dim=-1)\nreturn 0.5 * a * (1 + torch.erf(a / 2**0.5)) * b"),
    ("geglu", "a, b = x.chunk(2, dim=-1)\nreturn F.gelu(a, approximate='tanh').mul(b)"),
    ("reglu", "a, b = x.chunk(2, dim=-1)\nreturn F.relu(a) * b"),
    ("reglu", "a, b = x.tensor_split(2, dim=1)\nreturn b * a.clamp(min=0)"),
    ("glu", "a, b = x.chunk(2, dim=-1)\nreturn a * torch.sigmoid(b)"),
    ("glu", "a, b = x[:, :4], x[:, 4:]\nreturn b * (1 / (1 + torch.exp(-a)))"),
    ("gated_tanh", "a, b = x.chunk(2, dim=-1)\nreturn torch.tanh(a) * torch.sigmoid(b)"),
    ("gated_tanh", "a, b = x[:, 4:], x[:, :4]\nreturn b.sigmoid() * a.tanh()"),
]


@pytest.mark.parametrize(("operation", "forward"), SPELLINGS)
def test_a_spelling_of_it_is_one_kernel(program: Program, operation: str, forward: str) -> None:
    assert names(program(forward)) == [operation]


NOT_QUITE = {
    "gelu, another constant": ("gelu", "return 0.5 * x * (1 + torch.erf(x / 3))"),
    "gelu of something else": ("gelu", "return 0.5 * x * (1 + torch.erf((x + 1) / 2**0.5))"),
    "silu of something else": ("silu", "return x * torch.sigmoid(x + 1)"),
    "silu with a power": ("silu", "return x * torch.sigmoid(x) ** 2"),
    "swish of the square": ("swish", "return x * torch.sigmoid(x * x)"),
    "mish of another tensor": ("mish", "return x * torch.tanh(F.softplus(x + 1))"),
    "hardswish, another limit": ("hardswish", "return x * torch.clamp(x + 3, 0, 5) / 6"),
    "hardsigmoid, another offset": ("hardsigmoid", "return torch.clamp(x / 6 + 0.4, 0, 1)"),
    "softplus, another offset": ("softplus", "return torch.log(2 + torch.exp(x))"),
    "softplus, subtracted": ("softplus", "return torch.log(1 - torch.exp(x))"),
    "log_sigmoid, no sign": ("log_sigmoid", "return F.softplus(-x)"),
    "softsign of the square": ("softsign", "return x / (1 + x * x)"),
    "sigmoid, another offset": ("sigmoid", "return 1 / (2 + torch.exp(-x))"),
    "tanh, two arguments": ("tanh", "return 2 * torch.sigmoid(3 * x) - 1"),
    "tanhshrink, added": ("tanhshrink", "return x + torch.tanh(x)"),
    "relu, another threshold": ("relu", "return torch.where(x > 1, x, 0.0)"),
    "relu, the other side": ("relu", "return torch.where(x < 0, x, 0.0)"),
    "relu cubed": ("squared_relu", "return F.relu(x) ** 3"),
    "leaky_relu of two tensors": ("leaky_relu", "return torch.where(x > 0, x, 0.1 * (x + 1))"),
    "elu without the one": ("elu", "return torch.where(x > 0, x, 1.5 * torch.exp(x))"),
    "selu, another scale": ("selu", "return 2 * torch.where(x > 0, x, 1.67326 * x.expm1())"),
    "softshrink without a sign": ("softshrink", "return x * F.relu(x.abs() - 0.5)"),
    "hardshrink on one side": ("hardshrink", "return torch.where(x > 0.5, x, 0.0)"),
    "softcap, two limits": ("softcap", "return 30.0 * torch.tanh(x / 20.0)"),
    "swiglu of unrelated tensors": ("swiglu", "return F.silu(x + 1) * (x * 2)"),
    "swiglu of one half": ("swiglu", "a, b = x.chunk(2, -1)\nreturn F.silu(a) * a"),
    "geglu of one half": ("geglu", "a, b = x.chunk(2, -1)\nreturn F.gelu(a) * a"),
    "reglu of a sum": ("reglu", "a, b = x.chunk(2, -1)\nreturn F.relu(a) + b"),
    "glu of the whole": ("glu", "a, b = x.chunk(2, -1)\nreturn torch.sigmoid(a) * x[:, :1]"),
    "gated_tanh of one half": (
        "gated_tanh",
        "a, b = x.chunk(2, -1)\nreturn a.tanh() * a.sigmoid()",
    ),
}


@pytest.mark.parametrize(("operation", "forward"), NOT_QUITE.values(), ids=NOT_QUITE)
def test_what_is_not_quite_it_stays_as_it_is(
    program: Program, operation: str, forward: str
) -> None:
    assert operation not in names(program(forward))


PROJECTED = {
    "linears": ("return self.down(F.silu(self.gate(x)) * self.up(x))", "swiglu"),
    "activation as a module": ("return self.down(self.act(self.gate(x)) * self.up(x))", "geglu"),
    "matmuls": (
        "return self.down((x @ self.up.weight.t()) * F.relu(x @ self.gate.weight.t()))",
        "reglu",
    ),
}


@pytest.mark.parametrize(("forward", "operation"), PROJECTED.values(), ids=PROJECTED)
def test_two_projections_of_one_tensor_are_a_gate_too(
    program: Program, forward: str, operation: str
) -> None:
    graph = program(
        forward,
        init="""\
        self.gate, self.up, self.down = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)
        self.act = NewGELU()
        """,
        classes="""\
        class NewGELU(nn.Module):
            def forward(self, x):
                inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
                return 0.5 * x * (1.0 + torch.tanh(inner))
        """,
    )
    found = names(graph)
    assert len(found) == 4
    assert found[2:] == [operation, "linear"]


def test_projections_of_two_tensors_are_no_gate(program: Program) -> None:
    graph = program(
        "return F.silu(self.gate(x)) * self.up(x + 1)",
        init="self.gate, self.up = nn.Linear(8, 16), nn.Linear(8, 16)",
    )
    assert "swiglu" not in names(graph)


def test_a_slope_that_the_model_owns_makes_it_a_prelu(program: Program) -> None:
    init = "self.a = nn.Parameter(torch.ones(8))"
    assert names(program("return torch.where(x > 0, x, self.a * x)", init=init)) == ["prelu"]
    assert names(program("return F.relu(x) - self.a * F.relu(-x)", init=init)) == ["prelu"]
    assert "prelu" not in names(program("return torch.where(x > 0, x, self.a + x)", init=init))


def test_a_beta_that_the_model_owns_makes_it_a_swish(program: Program) -> None:
    init = "self.beta = nn.Parameter(torch.ones(1))"
    assert names(program("return x * torch.sigmoid(self.beta * x)", init=init)) == ["swish"]
    assert names(program("return x / (1 + torch.exp(-self.beta * x))", init=init)) == ["swish"]
