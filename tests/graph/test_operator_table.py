"""A new operator is a new row: what it says is known wherever operators are asked about."""

import pytest

from runner.emit.code.literals import Expression
from runner.emit.code.operation_code import spell
from runner.graph.cost import flops
from runner.graph.ir import Operation, Ref, TensorSpec
from runner.graph.operations import field_name, is_named_activation, kind
from runner.graph.operator_table import OPERATORS, parse_operators
from runner.graph.workspace_memory import estimate_workspace

ROWS = """
# pointwise
my_gelu : activation name=gelu flops=7 workspace=2 = default F.my_gelu(self, slope=0.5)
    out_of torch.my_gelu(self, slope=...)
my_abs my_sign : unary=torch
"""


def operation(target: str, **kwargs: float) -> Operation:
    return Operation(target, (Ref("x"),), tuple(kwargs.items()), ("y",), schema=("self",))


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, operator in parse_operators(ROWS).items():
        monkeypatch.setitem(OPERATORS, name, operator)


def test_a_row_says_kind_name_cost_memory_and_calls() -> None:
    values = {name: TensorSpec((2, 3), "float32", (3, 1)) for name in "xy"}
    mine = operation("my_gelu.default")
    assert (kind(mine), field_name(mine), is_named_activation(mine)) == ("pointwise", "gelu", True)
    assert flops(mine, values) == 7 * 6
    assert estimate_workspace(mine, values).resident_bytes == 2 * 24
    assert spell(mine, Expression).text == "F.my_gelu(x)"
    sloped = operation("my_gelu.out_of", slope=0.25)
    assert spell(sloped, Expression).text == "torch.my_gelu(x, slope=0.25)"


def test_names_in_one_row_are_equal_in_all_that_it_says() -> None:
    for name in ("my_abs", "my_sign"):
        assert kind(operation(f"{name}.default")) == "pointwise"
        text = spell(operation(f"{name}.default"), Expression).text
        assert text == f"torch.{name}(x)"


def test_an_operator_without_a_row_costs_one_for_an_element_and_is_called_by_its_own_name() -> None:
    values = {name: TensorSpec((2, 3), "float32", (3, 1)) for name in "xy"}
    unknown = operation("frobnicate.default")
    assert (kind(unknown), field_name(unknown), flops(unknown, values)) == (
        "other",
        "frobnicate",
        6,
    )
    assert spell(unknown, Expression).text == "torch.ops.aten.frobnicate.default(x)"
