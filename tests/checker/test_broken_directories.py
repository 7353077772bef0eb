"""The checker itself can fail: a directory broken in one way, and the rule that it names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from checker.rules import check
from runner.emit import decompose
from runner.problems import read_problem

pytestmark = pytest.mark.long

PROBLEM = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 8)
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        scores = x.transpose(0, 1) @ x.permute(1, 2, 0)
        mask = torch.tril(torch.ones(6, 6)).bool()
        return torch.softmax(scores.masked_fill(~mask[0:1, :2], -9.0), dim=-1)


def get_inputs():
    return [torch.randint(0, 32, (2, 6))]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("problem") / "level3"
    folder.mkdir()
    (folder / "two_blocks.py").write_text(PROBLEM, encoding="utf-8")
    decompose(read_problem(folder / "two_blocks.py"), folder / "good")
    return folder / "good"


@pytest.fixture
def directory(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_good_directory_breaks_no_rule(directory: Path) -> None:
    assert check(directory) == []


def changed(pattern: str, old: str, new: str) -> Callable[[Path], None]:
    """Replace text in a file and in every copy of it."""

    def change(directory: Path) -> None:
        (first,) = directory.glob(pattern)
        name, text = first.name, first.read_text()
        assert old in text, f"{old!r} is not in {name}"
        copies = [f for f in directory.rglob("*.py") if f.read_text() == text]
        for file in copies:
            file.write_text(text.replace(old, new))

    return change


def in_tree(edit: Callable[[dict], None]) -> Callable[[Path], None]:  # type: ignore[type-arg]
    """Edit the tree document."""

    def change(directory: Path) -> None:
        file = directory / "decomposition_tree.json"
        tree = json.loads(file.read_text())
        edit(tree)
        file.write_text(json.dumps(tree))

    return change


def _nodes_of(tree: dict, path: str) -> list[dict]:  # type: ignore[type-arg]
    return [node for node in tree["nodes"].values() if node["path"].startswith(path)]


def _swap_weights(tree: dict) -> None:  # type: ignore[type-arg]
    (node,) = _nodes_of(tree, "level_0_kernel/embedding")
    node["weight_map"] = dict.fromkeys(node["weight_map"], "blocks.0.up.weight")


def _lose_a_weight(tree: dict) -> None:  # type: ignore[type-arg]
    (node,) = _nodes_of(tree, "level_0_kernel/embedding")
    node["weight_map"] = {}


def _one_child_less(tree: dict) -> None:  # type: ignore[type-arg]
    (node,) = _nodes_of(tree, "level_1_fusion/matmul")
    for child in node["children"][1:]:
        del tree["nodes"][child]
    del node["children"][1:]


def _raise_a_kernel(tree: dict) -> None:  # type: ignore[type-arg]
    for node in _nodes_of(tree, "level_0_kernel/softmax"):
        node["level"] = "fusion"


def _shapes_of_another(tree: dict) -> None:  # type: ignore[type-arg]
    for node in _nodes_of(tree, "level_0_kernel/softmax"):
        node["input_shapes"] = {name: [6, 2, 4] for name in node["input_shapes"]}


def _two_operations(tree: dict) -> None:  # type: ignore[type-arg]
    for node in _nodes_of(tree, "level_0_kernel/softmax"):
        node["operations"] = ["softmax", "mul"]


def _all_in_one(tree: dict) -> None:  # type: ignore[type-arg]
    root = tree["nodes"]["root"]
    tree["nodes"] = {"root": {**root, "level": "kernel", "children": []}}


def _miscounted(tree: dict) -> None:  # type: ignore[type-arg]
    for node in _nodes_of(tree, "level_0_kernel/relu"):
        node["instance_count"] = 1


def _forgotten(tree: dict) -> None:  # type: ignore[type-arg]
    (node,) = _nodes_of(tree, "level_1_fusion/matmul")
    del tree["nodes"][node["children"].pop()]


def _as_level(level: str) -> Callable[[Path], None]:
    return in_tree(lambda tree: tree["metadata"].update(source_level=level))


def _a_twin(directory: Path) -> None:
    (file,) = directory.glob("level_0_kernel/relu_*.py")
    twin = file.with_name("relu_other_fp32.py")
    twin.write_text(file.read_text().replace("x: torch", "y: torch").replace("(x)", "(y)"))

    def edit(tree: dict) -> None:  # type: ignore[type-arg]
        first = _nodes_of(tree, "level_0_kernel/relu")[0]
        first["path"] = f"level_0_kernel/{twin.name}"

    in_tree(edit)(directory)


def _a_copy_that_differs(directory: Path) -> None:
    (file,) = directory.glob("steps/*/children/softmax_*.py")
    file.write_text(file.read_text() + "\n# differs\n")


def _a_file_nobody_uses(directory: Path) -> None:
    (directory / "level_0_kernel" / "tanh_2x6_fp32.py").write_text("import torch\n")


def _a_step_lost(directory: Path) -> None:
    (folder,) = directory.glob("steps/*_matmul_*")
    shutil.rmtree(folder)


KERNEL, STEP = "level_0_kernel", "steps/*_matmul_*/refactored.py"
COMPOSITION = "verification/composition_test.py"

BROKEN = {
    "a kernel at a smaller size": (
        *(1, changed(f"{KERNEL}/relu_*.py", "randn(2, 6, 16)", "randn(2, 6, 4)")),
        "calls it with",
    ),
    "a kernel of another dtype": (
        *(1, changed(f"{KERNEL}/relu_*.py", "randn(2, 6, 16)",
                     "randn(2, 6, 16, dtype=torch.float64)")),
        "the tree says",
    ),
    "strides that are lost": (
        *(1, changed(f"{KERNEL}/matmul_*.py", "torch.randn(2, 6, 8).permute(1, 0, 2)",
                     "torch.randn(6, 2, 8)")),
        "strides",
    ),
    "an output that is promised otherwise": (
        *(1, changed(f"{KERNEL}/softmax_*.py", "return [(6, 2, 2)]", "return [(6, 2, 4)]")),
        "promises",
    ),
    "shapes that the tree tells otherwise": (1, in_tree(_shapes_of_another), "the tree says"),
    "a weight of another shape": (1, in_tree(_swap_weights), "weight is float32[32, 8]"),
    "a weight in no kernel": (1, in_tree(_lose_a_weight), "embed.weight"),
    "arithmetic in a parent": (
        *(2, changed(STEP, "return self.softmax(", "return 1.0 * self.softmax(")),
        "computes mul",
    ),
    "a copy in the composition": (
        *(2, changed(COMPOSITION, "x.permute(1, 2, 0)", "x.permute(1, 2, 0).contiguous()")),
        "computes move",
    ),
    "an operation too many": (
        *(2, changed(f"{KERNEL}/softmax_*.py", "return F.", "return 1.0 * F.")),
        "mul(float32[6, 2, 2], other=1) too many",
    ),
    "an operation that is missing": (
        *(2, changed(f"{KERNEL}/relu_*.py", "F.relu(x)", "x")), "relu(float32[2, 6, 16]) missing",
    ),
    "another attribute": (
        *(2, changed(f"{KERNEL}/layer_norm_*.py", "normalized_shape=8",
                     "normalized_shape=8, eps=1e-3")),
        "native_layer_norm",
    ),
    "a fusion that does less than its kernels": (
        *(2, changed("level_1_fusion/layer_norm_*.py", "F.relu(", "(")), "too many in its children",
    ),
    "two contractions in a kernel": (
        *(3, changed(f"{KERNEL}/matmul_*.py", "torch.matmul(left, right)",
                     "torch.matmul(torch.matmul(left, right), torch.matmul(left, right))")),
        "3 contractions",
    ),
    "an epilogue in a contraction's kernel": (
        *(3, changed(f"{KERNEL}/matmul_*.py", "matmul(left, right)", "matmul(left, right).exp()")),
        "does exp",
    ),
    "work for nobody in a kernel": (
        *(3, changed(f"{KERNEL}/relu_*.py", "return F.", "x.exp()\n        return F.")),
        "for nobody",
    ),
    "a kernel of two operations": (3, in_tree(_two_operations), "['softmax', 'mul']"),
    "a child as high as its parent": (4, in_tree(_raise_a_kernel), "a fusion has the fusion"),
    "a single child": (4, in_tree(_one_child_less), "a single child"),
    "a whole model as a kernel": (4, in_tree(_all_in_one), "passed off as a kernel"),
    "a model from a fusion problem": (5, _as_level("level2"), "of a level2 problem"),
    "many files from one operation": (5, _as_level("level1"), "files for a level1 problem"),
    "two files that are one workload": (6, _a_twin, "once more"),
    "a child that is no copy": (6, _a_copy_that_differs, "no copy of a component"),
    "a file that the tree does not know": (6, _a_file_nobody_uses, "in no node"),
    "instances that are miscounted": (6, in_tree(_miscounted), "says 1 instances, there are 2"),
    "an instance that the tree forgets": (6, in_tree(_forgotten), "runs 1 times"),
    "a parent without a step": (6, _a_step_lost, "has no step"),
    "an import of another package": (
        *(7, changed(f"{KERNEL}/relu_*.py", "import torch\n", "import torch, numpy\n")),
        "imports numpy",
    ),
    "an import of the package": (
        *(7, changed(f"{KERNEL}/relu_*.py", "import torch\n", "import torch, runner.errors\n")),
        "imports runner",
    ),
    "a table that is pasted": (
        *(7, changed(f"{KERNEL}/masked_fill_*.py", "torch.tril(torch.ones(6, 6))",
                     f"torch.tensor({[[1] * k + [0] * (6 - k) for k in range(1, 7)]})")),
        "36 numbers",
    ),
    "a file that does not run": (
        *(7, changed(f"{KERNEL}/relu_*.py", "F.relu(x)", "F.rely(x)")), "does not run",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_directory_is_told_with_its_rule(directory: Path, what: str) -> None:
    rule, damage, words = BROKEN[what]
    damage(directory)

    found = [str(finding) for finding in check(directory) if finding.rule == rule]

    assert any(words in finding for finding in found), found or check(directory)


ATTENTION = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.out(torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v)


def get_inputs():
    return [torch.rand(2, 6, 8)]


def get_init_inputs():
    return []
"""


def test_an_attention_without_probabilities_is_told(tmp_path: Path) -> None:
    (tmp_path / "level3").mkdir()
    problem = tmp_path / "level3" / "attention.py"
    problem.write_text(ATTENTION, encoding="utf-8")
    decompose(read_problem(problem), tmp_path / "parts")
    assert check(tmp_path / "parts") == []

    changed(f"{KERNEL}/scaled_*.py", "F.softmax(", "torch.cumsum(")(tmp_path / "parts")

    found = [str(finding) for finding in check(tmp_path / "parts") if finding.rule == 3]
    assert any("no probabilities between them" in finding for finding in found)
    assert any("does cumsum" in finding for finding in found)
