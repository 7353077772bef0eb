"""How formulas are found: across views, modules and casts, and only where the data flow allows."""

import pytest
from programs import Program, names

from runner.graph.recognition.formula_search import expand_calls, expand_optional_parts

NOT_QUITE = {
    "the sigmoid is returned too": ("s = torch.sigmoid(x)\nreturn x * s, s", "silu"),
    "the sigmoid is read again": ("s = torch.sigmoid(x)\nreturn x * s + s", "silu"),
    "the mean is returned too": (
        "m = x.pow(2).mean(-1, True)\nreturn x * torch.rsqrt(m + 1e-6), m",
        "rms_norm",
    ),
    "random numbers inside": ("r = torch.rand_like(x)\nreturn x * torch.sigmoid(r)", "silu"),
}


@pytest.mark.parametrize(("forward", "operation"), NOT_QUITE.values(), ids=NOT_QUITE)
def test_what_is_not_quite_it_stays_as_it_is(
    program: Program, forward: str, operation: str
) -> None:
    assert operation not in names(program(forward))


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
    assert expand_optional_parts("x [* weight] [+ bias]") == [
        "x * weight + bias",
        "x * weight",
        "x + bias",
        "x",
    ]


def test_a_call_of_what_has_rows_of_its_own_stands_for_each_of_them() -> None:
    formulas = expand_calls("x * tanh(softplus(x))")
    assert formulas[0] == "x * tanh(softplus(x))"
    assert "x * tanh(log(1 + exp(x)))" in formulas
