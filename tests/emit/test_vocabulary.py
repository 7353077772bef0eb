"""The table of spellings names what operators have, and leaves out what is their default."""

import ast
from typing import Any

import pytest
import torch

from runner.graph.operator_table import OPERATORS

CALLS = {
    f"{name}.{overload}": calls
    for name, operator in OPERATORS.items()
    for overload, calls in operator.calls.items()
}


@pytest.mark.parametrize("target", sorted(CALLS))
def test_a_row_names_arguments_that_its_operator_has_and_defaults_that_are_its_own(target):
    name, _, overload = target.partition(".")
    operator = getattr(getattr(torch.ops.aten, name), overload, None)
    if operator is None:  # made functional from the one in place
        operator = getattr(getattr(torch.ops.aten, f"{name}_"), overload)
    schema = operator._schema
    known = {argument.name: argument for argument in schema.arguments}
    for row in CALLS[target]:
        call, _, implied = row.partition(" | ")
        call_node, implied_node = (ast.parse(t).body[0].value for t in (call, f"f({implied})"))
        assert {n.id for a in call_node.args for n in ast.walk(a) if isinstance(n, ast.Name)} <= {
            *known
        }
        for keyword in (*call_node.keywords, *implied_node.keywords):
            if isinstance(keyword.value, ast.List):
                continue
            if isinstance(keyword.value, ast.Name):
                assert keyword.value.id in known
                continue
            argument = known[keyword.arg]
            if isinstance(keyword.value, ast.Constant) and keyword.value.value is not ...:
                assert same_default(argument, keyword.value.value), (row, argument.name)


def same_default(argument: Any, default: Any) -> bool:
    """Left out by us means left at the operator's own default."""
    if argument.name == "dtype" or not argument.has_default_value():
        return True
    own = argument.default_value
    if argument.name == "reduction":
        return (own, default) == (1, "mean")
    return (own[0] if isinstance(own, list) and own else own) == default
