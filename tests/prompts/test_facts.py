"""Facts of a problem: every operation with its shapes, equal ones counted, in few lines."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent

import pytest

from runner.errors import ProblemError
from runner.problems import read_problem
from runner.prompts import Facts
from runner.prompts.brief import _format_fact, _format_paths
from runner.prompts.fact_collection import collect_facts
from runner.prompts.facts import Fact

FILE = """\
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.fc(self.norm(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {arguments}):
{forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

Ask = Callable[..., Facts]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """The facts of a model that is written where the test is."""

    def facts(forward: str, init: str = "pass", inputs: str = "torch.randn(4, 8)") -> Facts:
        names = "x" if inputs.count("torch.") == 1 else "x, y"
        path = tmp_path / "problem.py"
        body, start = indent(dedent(forward), 8 * " "), indent(dedent(init), 8 * " ")
        path.write_text(FILE.format(forward=body, init=start, inputs=inputs, arguments=names))
        return collect_facts(read_problem(path))

    return facts


def lines(facts: tuple[Fact, ...]) -> list[str]:
    return [_format_fact(fact, "float32") for fact in facts]


def test_each_operation_says_its_shapes_weights_module_and_line(ask: Ask) -> None:
    facts = ask("return self.fc(x)", init="self.fc = nn.Linear(8, 3)")

    assert lines(facts.operations) == ["- linear: 4x8 → 4x3; weight 3x8, bias 3  [fc, line 22]"]


def test_equal_operations_of_repeated_blocks_are_counted(ask: Ask) -> None:
    facts = ask(
        "for block in self.blocks:\n    x = block(x)\nreturn x",
        init="self.blocks = nn.ModuleList(Block(8) for _ in range(6))",
    )

    said = lines(facts.operations)

    assert len(said) == 4
    assert said[1] == "- linear ×6: 4x8 → 4x8; weight 8x8, bias 8  [blocks.*.fc, line 13]"
    assert said[3] == "- add ×6: 2 × 4x8 → 4x8  [blocks.*, line 13]"


def test_a_formula_says_what_spells_it(ask: Ask) -> None:
    facts = ask("return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)")

    (said,) = lines(facts.operations)

    assert said.startswith(
        "- rms_norm = pow(exponent=2), mean(dim=(-1,), keepdim=True), add(1e-06)"
    )


def test_strides_and_other_dtypes_are_said(ask: Ask) -> None:
    facts = ask(
        "return F.embedding(y, x.t())", inputs="torch.randn(4, 8), torch.randint(8, (2, 3))"
    )

    (said,) = lines(facts.operations)

    assert "2x3 int64" in said
    assert "8x4 stride (1, 8)" in said


def test_what_depends_on_no_input_is_no_fact_of_its_own(ask: Ask) -> None:
    facts = ask("return x.masked_fill(torch.ones(4, 8).triu(1) > 0, 0.0)")

    assert [one.name for one in facts.operations] == ["masked_fill"]


def test_weights_that_nothing_reads_are_named(ask: Ask) -> None:
    facts = ask("return x + 1", init="self.a = nn.Linear(2, 2)\nself.b = nn.Linear(2, 2)")

    assert _format_paths(facts.unused) == "a.weight, a.bias, b.weight, b.bias"


def test_values_that_steer_are_told(ask: Ask) -> None:
    facts = ask("return x.relu() if x.sum() > 0 else x.tanh()")

    assert facts.specialisations


def test_a_program_that_cannot_be_written_down_says_why_and_what_a_run_shows(ask: Ask) -> None:
    facts = ask(
        "return torch.sparse.mm(x.to_sparse(), self.fc(x).t())",
        init="self.fc = nn.Linear(8, 8)",
        inputs="torch.eye(8)",
    )

    assert facts.capture is None
    assert facts.reason is not None
    assert "sparse" in facts.reason.lower()
    assert lines(facts.calls) == [
        "- Linear = in_features=8, out_features=8, bias=True: 8x8 → 8x8; weight 8x8, bias 8  [fc]"
    ]


def test_a_problem_that_fails_has_no_facts(ask: Ask) -> None:
    with pytest.raises(ProblemError, match="line 22"):
        ask("return x @ x")
