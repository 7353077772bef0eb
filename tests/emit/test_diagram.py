"""The analysis page: a diagram that fits a screen, and the flow of data told once."""

import re
from collections import Counter
from pathlib import Path

import pytest
from small_trees import kernel, node, tree_of

from runner.emit import decompose
from runner.emit.diagram import mermaid
from runner.emit.flows import Flows
from runner.emit.outline import Outline
from runner.problems import read_problem

SAMPLES = Path(__file__).parents[2] / "data/samples"
REAL_RESNET = SAMPLES.parent / "kernelbench/level3/9_ResNet18.py"
BOX = re.compile(
    r'(?:n\d+ --> )?(n\d+)(?:\["[^"\[\]]+"\]:::(model|layer|fusion|kernel)|\(\["[^"]+"\]\))'
)


def conv(size: int) -> dict:
    kernels = [
        kernel(f"conv2d_3x{size}_k3_fp32", name="conv", weights={"weight": [size, 3, 3, 3]}),
        kernel(f"relu_{size}_fp32"),
    ]
    return node("fusion", f"conv2d_relu_3x{size}_k3_fp32", *kernels)


def block(size: int, name: str = "") -> dict:
    return node("layer", f"block_{size}_fp32", conv(size), kernel(f"add_{size}_fp32"), name=name)


def drawn(*children: dict) -> list[str]:
    return list(mermaid(Outline(tree_of(node("model", "net", *children)))))


def boxes(lines: list[str]) -> Counter[str]:
    """Boxes by level; every line of the diagram's body is one."""
    body = [line for line in lines if line.startswith("  ") and "classDef" not in line]
    found = [BOX.fullmatch(line.strip()) for line in body]
    assert None not in found, body
    matches = [match for match in found if match]
    assert [match[1] for match in matches] == [f"n{place}" for place in range(len(matches))]
    return Counter(match[2] or "row" for match in matches)


def test_equal_layers_are_one_box_with_their_count() -> None:
    lines = drawn(*(block(8, f"layers_{i}") for i in range(24)))
    assert boxes(lines) == {"model": 1, "layer": 1, "fusion": 1, "kernel": 1}
    assert "<b>block × 24 (layers_0 … layers_23)</b>" in "\n".join(lines)


def test_the_kernels_of_a_fusion_are_lines_in_its_box() -> None:
    (line,) = [line for line in drawn(conv(8), kernel("add")) if ":::fusion" in line]
    assert "<b>conv2d_relu</b><br/>8x16 → 8x16 fp32<br/>conv2d 3x8 k3 (conv)<br/>relu" in line


def test_blocks_that_alternate_stand_behind_a_box_with_their_count() -> None:
    lines = drawn(*(child for _ in range(12) for child in (block(8), conv(4))))
    assert '  n0 --> n1(["× 12, in turn"])' in lines
    assert boxes(lines) == {"model": 1, "row": 1, "layer": 1, "fusion": 2, "kernel": 1}


def test_layers_of_other_sizes_are_opened_once() -> None:
    lines = drawn(block(8), kernel("pool"), block(16), kernel("pool"), block(32))
    assert boxes(lines) == {"model": 1, "layer": 3, "fusion": 1, "kernel": 3}


def test_a_long_network_of_many_sizes_stays_a_small_diagram() -> None:
    assert boxes(drawn(*(conv(size) for size in range(1, 101))))["fusion"] == 1
    grown = [child for i in range(1, 25) for child in (block(i), kernel(f"cat_{i}"))]
    assert sum(boxes(drawn(*grown)).values()) < 10


def test_many_boxes_stand_one_below_the_other() -> None:
    assert "graph TD" in drawn(conv(1))
    assert "graph LR" in drawn(kernel("a"), kernel("b"), kernel("c"), kernel("d"))
    assert "graph LR" in drawn(conv(1), kernel("add"), conv(1), kernel("add"))


# --- the flow of data -----------------------------------------------------------------------------


def rows(outline: Outline, identity: str = "root") -> list[tuple[str, str, str]]:
    return [row[:3] for row in Flows(outline).rows(outline.tree.nodes[identity])]


def test_the_flow_between_equal_layers_is_told_once() -> None:
    layers = [block(8, f"layers_{i}") for i in range(3)]
    tree = tree_of(
        node("model", "net", *layers),
        ("input", "0.0.0", "x"),
        *((f"{i}.0.0", f"{i}.0.1", "y") for i in range(3)),
        *((f"{i}.0.1", f"{i}.1", "y") for i in range(3)),
        ("input", "0.1", "x"),
        *((f"{i}.1", f"{i + 1}.0.0", "x") for i in range(2)),
        *((f"{i}.1", f"{i + 1}.1", "x") for i in range(2)),
        ("2.1", "output", "x"),
    )
    outline = Outline(tree)
    assert rows(outline) == [
        ("input", "layers_0 … layers_2", "x"),
        ("layers_0 … layers_2", "the next", "x"),
        ("layers_0 … layers_2", "output", "x"),
    ]
    assert rows(outline, "0") == [
        ("input", "conv2d_relu", "x"),
        ("conv2d_relu", "add", "y"),
        ("input", "add", "x"),
        ("add", "output", "x"),
    ]
    assert rows(outline, "0.0") == []


def test_a_fusion_with_a_residual_has_its_flow_told() -> None:
    fusion = node("fusion", "mlp", kernel("linear"), kernel("add"))
    tree = tree_of(
        node("model", "net", fusion, kernel("head")),
        *(("input", "0.0", "x"), ("0.0", "0.1", "y"), ("input", "0.1", "x")),
        *(("0.1", "1", "z"), ("1", "output", "logits")),
    )
    assert rows(Outline(tree), "0") == [
        ("input", "linear", "x"),
        ("linear", "add", "y"),
        ("input", "add", "x"),
        ("add", "output", "z"),
    ]


def test_a_root_that_is_a_line_or_a_kernel_has_its_flow_told() -> None:
    line = node("fusion", "relu_exp", kernel("relu"), kernel("exp"))
    flow = (("input", "0", "x"), ("0", "1", "y"), ("1", "output", "z"))
    assert len(rows(Outline(tree_of(line, *flow)))) == 3
    alone = tree_of(kernel("relu"), ("input", "root", "x"), ("root", "output", "y"))
    assert rows(Outline(alone)) == [("input", "root", "x"), ("root", "output", "y")]


# --- of real models -------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", ["resnet", "gpt_oss", "swin", "unet"])
def test_the_page_of_a_real_model_is_small_and_whole(sample: str, tmp_path: Path) -> None:
    tree = decompose(read_problem(SAMPLES / f"level3/{sample}.py"), tmp_path)
    page = (tmp_path / "decomposition_analysis.md").read_text(encoding="utf-8")
    diagram = page.split("```mermaid\n")[1].split("```")[0].splitlines()
    assert sum(boxes(diagram).values()) < 25
    flow = page.split("## Data flow")[1].split("## Kernels")[0]
    root = next(rest for rest in flow.split("\n\n") if rest.startswith("| from"))
    assert root.count("\n| input |") >= 1
    assert root.count("| output |") >= 1
    files = re.findall(r"^\w+ \[\w+\]\((\S+)\):$", flow, re.MULTILINE)
    assert len(files) == len(set(files))
    assert {n.path for n in tree.nodes.values() if n.level == "model"} <= set(files)


@pytest.mark.skipif(not REAL_RESNET.exists(), reason="the real dataset is not here")
def test_the_diagram_of_the_real_resnet_18_is_small(tmp_path: Path) -> None:
    tree = decompose(read_problem(REAL_RESNET), tmp_path)
    assert sum(boxes(list(mermaid(Outline(tree)))).values()) < 25
