"""Values and parameters of emitted code have names that say what they are."""

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from models import NO_INIT
from torch import nn

from runner.emit.code.module_attributes import ModuleAttributes
from runner.graph.ir import Graph
from runner.tree.interface import Program
from runner.verify.guard.source.source_rules import step_parent_fault

Emitted = Callable[..., Path]

HEAD = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(16, 16) for _ in range(3))
        self.norm = nn.LayerNorm(16)
        self.layers = nn.ModuleList([nn.Linear(16 * (i + 1), 16) for i in range(3)])

"""
INPUTS = "\ndef get_inputs(): return [torch.rand(4, 8, 16)]\n" + NO_INIT


@pytest.fixture
def whole(decomposed: Emitted) -> Callable[..., str]:
    """The forward of the largest component file of a model with this forward."""

    def of(forward: str, head: str = HEAD, inputs: str = INPUTS) -> str:
        directory = decomposed(head + forward + inputs, "level2")
        (file,) = directory.glob("level_1_fusion/*.py")
        return re.split(r"\n\n\ndef get_inputs", file.read_text().partition("    def forward")[2])[
            0
        ]

    return of


def kernels(directory: Path) -> dict[str, list[str]]:
    """The parameters of each kernel's forward, by the start of its file's name."""
    found = {}
    for file in sorted(directory.glob("level_0_kernel/*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                found[re.split(r"_\d", file.stem)[0]] = [a.arg for a in node.args.args[1:]]
    return found


def test_a_value_without_a_variable_is_called_what_it_is(whole: Callable[..., str]) -> None:
    text = whole("""
    def forward(self, x):
        return x + self.twice(self.norm(x)) * self.a(x).softmax(-1)

    def twice(self, y):
        return self.b(y) * y + torch.softmax(torch.cat([self.c(y), y, y.sin(), y.cos()], -1), -1)[
            ..., :16
        ]
""")
    assert "normed = self.norm(x)" in text
    assert "probs = F.softmax(" in text
    assert not re.search(r"\b(linear|mul|softmax|layer_norm|cat|h|x_2) = ", text)


def test_what_a_function_returns_has_the_name_that_its_caller_gives_it(
    whole: Callable[..., str],
) -> None:
    text = whole("""
    def scaled(self, tokens):
        weighed = self.a(tokens)
        return weighed * weighed.sigmoid()

    def forward(self, x):
        routing = self.scaled(x)
        return routing.sum(-1, keepdim=True) * self.b(routing)
""")
    assert "routing = weighed * " in text


def test_values_that_a_function_returns_in_another_order_keep_their_names(
    whole: Callable[..., str],
) -> None:
    text = whole(
        """
    def quantise(self, z):
        q = self.b(z).round()
        share = q.abs().mean()
        return z + (q - z), (q - z).square().mean(), share

    def forward(self, x):
        q, loss, share = self.quantise(self.a(x))
        return self.c(q), loss, share
"""
    )
    assert re.search(r"share = torch.abs\(q\).mean\(\)|share = q.abs\(\).mean\(\)", text), text
    assert re.search(r"loss = .*square.*mean", text), text


def test_steps_of_one_expression_share_the_name_of_its_result(whole: Callable[..., str]) -> None:
    text = whole("""
    def forward(self, x):
        a_very_telling_name = self.a(x).view(4, 8, 2, 8).transpose(1, 2).contiguous().clamp(-1, 1)
        return a_very_telling_name * a_very_telling_name.sigmoid()
""")
    targets = {line.partition(" = ")[0].strip() for line in text.splitlines() if " = " in line}
    assert targets == {"a_very_telling_name"}


def test_a_variable_that_is_free_goes_on_through_a_straight_line(
    whole: Callable[..., str],
) -> None:
    text = whole("""
    def forward(self, x):
        return nn.functional.relu(self.b(nn.functional.gelu(self.a(x)).clamp(-3.0, 3.0))).tanh()
""")
    assert set(re.findall(r"(\w+) = ", text)) <= {"x"}


def test_the_name_of_a_function_is_no_name_for_a_value(decomposed: Emitted) -> None:
    source = HEAD.replace(
        "        self.norm =", "        self.mlpf = lambda x: self.b(torch.tanh(self.a(x)))\n"
        "        self.norm ="
    )  # fmt: skip
    forward = "    def forward(self, x):\n        return x + self.mlpf(self.norm(x))\n"
    directory = decomposed(source + forward + INPUTS)
    for file in directory.rglob("*.py"):
        assert file.name == "original.py" or "mlpf" not in file.read_text()


def test_a_list_that_grows_is_a_list(decomposed: Emitted) -> None:
    directory = decomposed(
        HEAD
        + """
    def forward(self, x):
        features = [x]
        for layer in self.layers:
            new_feature = layer(x).relu()
            features.append(new_feature)
            x = torch.cat(features, -1)
        return x
"""
        + INPUTS
    )
    for file in [*directory.glob("level_3*/*.py"), *directory.glob("verification/*test.py")]:
        text = file.read_text()
        assert text.count("features.append(new_feature)") == 3, file
        assert "new_feature_2" not in text
    joins = [*directory.glob("level_0_kernel/cat_*.py")]
    assert len(joins) == 3
    assert all("def forward(self, *features: torch.Tensor):" in f.read_text() for f in joins)


def test_a_list_that_is_joined_in_another_order_is_written_out(decomposed: Emitted) -> None:
    directory = decomposed(
        HEAD
        + """
    def forward(self, x):
        parts = [self.a(x), self.b(x), self.c(x)]
        y = torch.cat(parts, -1)
        parts = parts[::-1]
        return y + torch.cat(parts, -1)
"""
        + INPUTS
    )
    text = (directory / "verification" / "composition_test.py").read_text()
    assert "parts.append(" not in text


def test_parameters_are_named_by_what_they_are_to_a_kernel(decomposed: Emitted) -> None:
    directory = decomposed(
        HEAD
        + """
    def forward(self, x):
        heads = [f(self.norm(x)).view(4, 8, 2, 8).transpose(1, 2) for f in (self.a, self.b, self.c)]
        scores = heads[0] @ heads[1].mT / 8 ** 0.5
        x = x + (scores.softmax(-1) @ heads[2]).transpose(1, 2).reshape(4, 8, 16)
        return nn.functional.mse_loss(self.c(x), x)
"""
        + INPUTS
    )
    found = kernels(directory)
    assert found["scaled_dot_product_attention"] == ["query", "key", "value"]
    assert sorted(found["add"]) == ["residual", "x"]
    assert found["linear"] == ["x"]


def test_a_name_of_another_module_does_not_reach_a_component(decomposed: Emitted) -> None:
    source = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 16)

    def forward(self, x):
        result_of_a_block = torch.relu(self.fc(x)) + x
        return result_of_a_block

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block(), Block())

    def forward(self, x):
        return self.blocks(x)
"""
    directory = decomposed(source + INPUTS)
    assert all(names != ["result_of_a_block"] for names in kernels(directory).values())
    tree = json.loads((directory / "decomposition_tree.json").read_text())
    assert {"result_of_a_block"} <= {edge["tensor_name"] for edge in tree["data_flow"]}


PARENT = """
from torch import nn

from children.relu import Model as Relu


class RefactoredModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.{0} = Relu()

    def forward(self, x):
        return self.{0}(x)
"""


TAKEN = {*dir(torch.Tensor), *dir(nn.Module()), *dir(str), *dir(torch)}
"""Read before a test adds the name of another kind of device."""


def test_a_part_is_called_like_nothing_that_a_tensor_or_a_module_has() -> None:
    program = Program(Graph("Model", "fake", "eval", (), {}, (), {}, ()), ())
    for name in sorted(name for name in TAKEN if not name.startswith("_")):
        attribute = ModuleAttributes(program, (), "").reserve_name(name)
        assert step_parent_fault(ast.parse(PARENT.format(attribute))) is None
