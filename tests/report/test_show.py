"""A decomposition as a tree in the terminal."""

from pathlib import Path

from click.testing import CliRunner
from rich.console import Console

from runner.cli import cli
from runner.report import show
from runner.tree.document import Node, Tree


def printed(tree: Tree, **options: bool) -> list[str]:
    console = Console(width=400)
    with console.capture() as captured:
        console.print(show.draw(tree, **options))
    return captured.get().splitlines()


def node(
    identity: str, path: str, level: str = "kernel", children: list[str] | None = None
) -> Node:
    return Node.model_validate(
        {
            "id": identity,
            "name": identity,
            "level": level,
            "path": path,
            "children": children or [],
            "input_shapes": {"x": [8, 16]},
            "output_shapes": {"output": [8, 4]},
            "input_dtypes": {"x": "float32"},
            "output_dtypes": {"output": "float32"},
        }
    )


def test_every_level_is_shown_with_its_shapes(made: Path) -> None:
    lines = printed(Tree.read(made / "level3/attention_block"))
    assert lines[0].startswith("layer attention_block")
    assert any("fusion" in line for line in lines)
    kernel = next(line for line in lines if "kernel" in line and "linear" in line)
    assert "fp32 → " in kernel
    assert "FLOP" in kernel
    assert kernel.rstrip().endswith(".py")


def test_everything_has_a_line_for_each_instance(made: Path) -> None:
    tree = Tree.read(made / "level3/attention_block")
    assert len(printed(tree, everything=True)) == len(tree.nodes)


def test_neighbours_of_one_workload_share_a_line() -> None:
    children = [node(f"layers_{i}", "level_0_kernel/linear.py") for i in range(6)]
    (line,) = show.lines(children, set(), everything=False)
    assert [n.id for n in line.nodes] == [f"layers_{i}" for i in range(6)]


def test_a_short_sequence_keeps_its_order() -> None:
    children = [node(f"n{i}", f"level_0_kernel/{'ab'[i % 2]}.py") for i in range(4)]
    lines = list(show.lines(children, set(), everything=False))
    assert [line.nodes[0].id for line in lines] == ["n0", "n1", "n2", "n3"]


def test_an_unrolled_loop_is_counted_not_listed() -> None:
    children = [node(f"n{i}", f"level_0_kernel/{'ab'[i % 2]}.py") for i in range(512)]
    lines = list(show.lines(children, set(), everything=False))
    assert [len(line.nodes) for line in lines] == [256, 256]


def test_a_directory_that_is_no_decomposition_is_said_in_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["show", str(tmp_path)], standalone_mode=False)
    assert str(done.exception) == (
        f"{tmp_path}: no decomposition_tree.json; name a decomposition directory"
    )


def test_the_command_prints_the_tree_and_a_summary(made: Path) -> None:
    done = CliRunner().invoke(cli, ["show", str(made / "level3/mlp")], standalone_mode=False)
    assert done.exception is None
    assert "verification: passed" in done.output.splitlines()[-1]
