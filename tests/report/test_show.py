"""A decomposition as a tree in the terminal."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner
from rich.console import Console
from small_trees import kernel, node, tree_of

from runner.cli import cli
from runner.report import tree_text
from runner.tree.document import Tree


def printed(tree: Tree, width: int = 400, **options: bool) -> list[str]:
    console = Console(width=400)
    with console.capture() as captured:
        console.print(tree_text.draw_tree(tree, width, **options))
    return captured.get().splitlines()


def block(size: int, name: str) -> dict[str, Any]:
    children = [kernel(f"relu_8x{size}_fp32"), kernel(f"add_8x{size}_fp32", name="skip")]
    return node("layer", f"block_8x{size}_fp32", *children, name=name)


def test_the_tree_is_drawn_with_shapes_at_the_right() -> None:
    head = kernel("linear_16x4_fp32", name="fc", outputs=([8, 4],))
    assert printed(tree_of(node("model", "net_8x16", head, name="net")), width=61) == [
        "model net               8x16 → 8x16 fp32  net_8x16",
        "└── kernel linear (fc)  8x16 → 8x4 fp32   linear_16x4_fp32",
    ]


def test_every_level_is_shown_with_its_shapes(made: Path) -> None:
    lines = printed(Tree.read(made / "level3/attention_block"))
    assert lines[0].startswith("layer attention_block")
    assert any("fusion" in line for line in lines)
    drawn = next(line for line in lines if "kernel linear" in line)
    assert "fp32" in drawn
    assert " → " in drawn
    assert drawn.endswith("iB")
    assert "FLOP" in drawn


def test_files_and_work_are_left_out_where_there_is_no_room(made: Path) -> None:
    lines = printed(Tree.read(made / "level3/attention_block"), width=tree_text.WIDTH)
    assert max(map(len, lines)) <= tree_text.WIDTH
    assert not any("FLOP" in line for line in lines)


def test_an_authors_name_is_left_out_where_there_is_no_room() -> None:
    tree = tree_of(node("model", "net", kernel("add_8x16", name="a_very_long_name_of_a_residual")))
    assert any("residual" in line for line in printed(tree, width=80))
    assert not any("residual" in line for line in printed(tree, width=50))


def test_everything_has_a_line_for_each_instance(made: Path) -> None:
    tree = Tree.read(made / "level3/attention_block")
    lines = printed(tree, width=40, everything=True)
    assert len(lines) == len(tree.nodes)
    assert any("FLOP" in line for line in lines)


def test_neighbours_of_one_workload_share_a_line() -> None:
    tree = tree_of(node("model", "net", *(block(16, f"layers_{i}") for i in range(4))))
    lines = printed(tree)
    assert len(lines) == 4
    assert "layer block × 4 (layers_0 … layers_3)" in lines[1]


def test_blocks_that_alternate_stand_under_their_count() -> None:
    blocks = [block((16, 32)[i % 2], f"layers_{i}") for i in range(24)]
    lines = printed(tree_of(node("model", "net", *blocks)))
    assert lines[1] == "└── × 12, in turn"
    assert "    ├── layer block (layers_0 … layers_22)" in lines[2]
    assert "    └── layer block (layers_1 … layers_23), as above" in lines[5]
    assert len(lines) == 6


def test_a_structure_is_opened_once_and_its_sizes_are_told_each_time() -> None:
    other = block(64, "down") | {"output_shapes": {"y0": [4, 64]}}
    lines = printed(tree_of(node("model", "net", block(16, "stem"), other)))
    assert len(lines) == 5
    assert "layer block (down), as above" in lines[4]
    assert "8x16 → 4x64 fp32" in lines[4]


def test_a_line_that_is_too_long_is_not_cut(tmp_path: Path) -> None:
    many = kernel("cat_8x16", inputs=tuple([8, size] for size in range(40)), outputs=([8, 780],))
    tree_of(node("model", "net", many)).write(tmp_path)
    done = CliRunner().invoke(cli, ["show", str(tmp_path)], standalone_mode=False)
    assert done.output.splitlines()[1].endswith("8x38, 8x39 → 8x780 fp32")


def test_a_directory_that_is_no_decomposition_is_said_in_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["show", str(tmp_path)], standalone_mode=False)
    assert str(done.exception) == (
        f"{tmp_path}: no decomposition_tree.json; name a decomposition directory"
    )


def test_the_command_prints_the_tree_and_a_summary(made: Path) -> None:
    done = CliRunner().invoke(cli, ["show", str(made / "level3/mlp")], standalone_mode=False)
    assert done.exception is None
    assert "verification: passed" in done.output.splitlines()[-1]
