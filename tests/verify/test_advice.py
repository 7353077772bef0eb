"""Where an engineer would have drawn the tree otherwise is told, and changes no verdict."""

from pathlib import Path

import pytest
from decompositions import Decomposition
from files_by_hand import component, composed, refactored
from files_by_hand import node as written
from small_trees import kernel, node, tree_of

from runner.batch import local_execution
from runner.cli import run_tables
from runner.cli.options import new_console
from runner.config import Settings
from runner.tree.document import Tree
from runner.verify.advice import MOST_CHILDREN, MOST_KERNELS, advice

IN_THIS_PROCESS = True

SCORES = ["matmul_4x8", "softmax_4x4", "matmul_4x4"]
KERNELS = [f"level_0_kernel/{name}.py" for name in SCORES]
ATTENTION = "level_1_fusion/attention.py"
OPENED = "has matmul, softmax and matmul as kernels: attention is one kernel"


def layer(*files: str) -> Tree:
    return tree_of(node("layer", "block", *map(kernel, files)))


def fusion(*files: str) -> Tree:
    return tree_of(node("fusion", "attention", *map(kernel, files)))


def opened_attention(directory: Path) -> Decomposition:
    """Attention as somebody may take it apart: scores, softmax, weighted sum."""
    made = Decomposition(directory)
    forward = "scores = torch.matmul(q, k)\nreturn torch.matmul(torch.softmax(scores, dim=1), v)"
    inputs, shapes = "torch.randn(4, 8), torch.randn(8, 4), torch.randn(4, 8)", "(4, 8)"
    for file in ("original.py", ATTENTION):
        made.write(file, component("", forward, inputs, shapes, "q, k, v"))
    product = "return torch.matmul(x, y)"
    wide, square = "torch.randn(4, 8), torch.randn(8, 4)", "torch.randn(4, 4), torch.randn(4, 8)"
    made.write(KERNELS[0], component("", product, wide, "(4, 4)", "x, y"))
    made.write(
        KERNELS[1], component("", "return torch.softmax(x, dim=1)", "torch.randn(4, 4)", "(4, 4)")
    )
    made.write(KERNELS[2], component("", product, square, "(4, 8)", "x, y"))
    classes = dict(zip(SCORES, ("Scores", "Softmax", "Product"), strict=True))
    init = "self.scores = Scores()\nself.softmax = Softmax()\nself.product = Product()"
    calls = "return self.product(self.softmax(self.scores(q, k)), v)"
    text = refactored(classes, init, calls, "q, k, v")
    made.step("step_1_attention", ATTENTION, KERNELS, text, {})
    made.write("verification/composition_test.py", composed(classes, init, calls, {}, "q, k, v"))
    made.tree(
        {
            "root": written(
                ATTENTION, "fusion", [(4, 8), (8, 4), (4, 8)], [(4, 8)], children=("a", "b", "c")
            ),
            "a": written(KERNELS[0], "kernel", [(4, 8), (8, 4)], [(4, 4)]),
            "b": written(KERNELS[1], "kernel", [(4, 4)], [(4, 4)]),
            "c": written(KERNELS[2], "kernel", [(4, 4), (4, 8)], [(4, 8)]),
        }
    )
    return made


def test_an_opened_attention_passes_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = opened_attention(tmp_path / "attention")

    verified = local_execution.verify(made.directory, Settings(trials=1))
    run_tables.print_verdict(verified, new_console())

    said = f"{ATTENTION}: {OPENED}, unless something else reads the softmax"
    assert verified.answer.reason is None
    assert verified.to_json()["status"] == "passed"
    assert verified.to_json()["advice"] == [said]
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"advice: {said}"
    assert printed[0].startswith("passed")


def test_a_good_tree_has_no_advice(model: Decomposition, judged) -> None:
    verification = judged(model, trials=1)

    assert verification.status == "passed"
    assert verification.advice == []


@pytest.mark.parametrize(
    "files",
    [
        SCORES,
        ["einsum", "mul", "add", "softmax", "dropout", "einsum"],
        ["bmm_2x3", "masked_fill", "softmax_8", "bmm_4"],
    ],
)
def test_scores_softmax_and_product_are_one_kernel(files: list[str]) -> None:
    (line,) = advice(fusion(*files))
    assert line.startswith(f"{ATTENTION}: {OPENED}")


@pytest.mark.parametrize(
    "files",
    [
        ["linear", "softmax", "linear"],
        ["matmul", "softmax"],
        ["softmax", "matmul", "matmul"],
        ["matmul", "log_softmax", "matmul"],
        ["scaled_dot_product_attention_4x8", "linear_8x8"],
    ],
)
def test_what_is_no_attention_has_no_advice(files: list[str]) -> None:
    assert advice(fusion(*files)) == []


def test_a_layer_of_lone_kernels_with_two_residuals_is_told_its_blocks() -> None:
    (line,) = advice(layer("norm", "linear", "add", "norm", "linear", "gelu", "linear", "add"))
    assert line == (
        "level_2_layer/block.py: holds kernels alone, and two residual adds: what leads to each"
        " add is a fusion, such as attention_block and mlp_block"
    )
    assert advice(layer("norm", "linear", "add")) == []


def test_a_layer_of_many_different_kernels_is_told_to_name_its_blocks() -> None:
    (line,) = advice(layer(*(f"kernel{place}" for place in range(MOST_CHILDREN + 1))))
    assert "and no fusion: name its blocks" in line
    assert advice(layer(*(f"kernel{place}" for place in range(MOST_CHILDREN)))) == []
    assert advice(layer(*["expert_linear"] * 3 * MOST_CHILDREN)) == []


def test_a_fusion_of_very_many_kernels_is_told_to_hold_fewer() -> None:
    (line,) = advice(fusion(*["relu"] * (MOST_KERNELS + 1)))
    assert f"a fusion of more than {MOST_KERNELS} kernels" in line
    assert advice(fusion(*["relu"] * MOST_KERNELS)) == []


def test_a_large_fusion_whose_blocks_are_groups_is_told_nothing() -> None:
    tree = fusion(*["relu"] * (MOST_KERNELS + 1))
    root = tree.nodes["root"]
    grouped = root.model_copy(update={"groups": [root.children[:2]]})
    assert advice(tree.model_copy(update={"nodes": tree.nodes | {"root": grouped}})) == []


def test_a_layout_copy_is_told_to_belong_to_its_operation() -> None:
    copies = layer("linear_8x8", "contiguous_copy_2x8", "contiguous_copy_2x8")
    assert advice(copies) == [
        "level_0_kernel/contiguous_copy_2x8.py: is a layout copy: it belongs to the operation"
        " that it serves"
    ]
