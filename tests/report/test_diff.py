"""How two decompositions differ."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from runner.cli import cli
from runner.errors import DecompositionError
from runner.report.diff import compare_decompositions
from runner.tree.document import TREE_FILE


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["diff", *map(str, arguments)], standalone_mode=False)


def test_a_decomposition_is_the_same_as_its_copy(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made / "level3/mlp", tmp_path / "copy")
    difference = compare_decompositions(made / "level3/mlp", copy)
    assert difference.same
    assert difference.shared_flops == difference.a.flops > 0
    assert ran(made / "level3/mlp", copy).return_value == 0


def test_different_models_differ_in_levels_kernels_and_flops(made: Path) -> None:
    difference = compare_decompositions(made / "level3/mlp", made / "level3/attention_block")
    assert not difference.same
    assert difference.a.operations != difference.b.operations
    assert {change.a > change.b for change in difference.changes} == {True, False}
    done = ran(made / "level3/mlp", made / "level3/attention_block")
    assert done.return_value == 1
    assert "the problem files differ" in done.output
    assert "kernel instances" in done.output


def edit_nodes(directory: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every node of a tree in place."""
    file = directory / TREE_FILE
    tree = json.loads(file.read_text())
    for node in tree["nodes"].values():
        change(node)
    file.write_text(json.dumps(tree))


def test_other_names_are_no_difference_but_another_workload_is(made: Path, output: Path) -> None:
    ours, theirs = made / "level2/linear_gelu", output / "level2/linear_gelu"

    def rename(node: dict[str, Any]) -> None:
        node["name"] = f"their_{node['name']}"
        for field in ("input_shapes", "input_dtypes", "input_strides"):
            node[field] = {f"their_{name}": value for name, value in node[field].items()}

    edit_nodes(theirs, rename)
    assert compare_decompositions(ours, theirs).same

    def respell(node: dict[str, Any]) -> None:
        if node["operation"] == "gelu":
            node["identity"] = "of another spelling"

    edit_nodes(theirs, respell)
    difference = compare_decompositions(ours, theirs)
    assert not difference.same
    assert [name.partition("_")[0] for name in difference.respelled] == ["gelu"]
    assert difference.changes == ()


def test_a_tree_that_identifies_no_workloads_is_compared_by_tensors(
    made: Path, output: Path
) -> None:
    theirs = output / "level2/linear_gelu"
    edit_nodes(theirs, lambda node: node.update(identity=None))
    difference = compare_decompositions(made / "level2/linear_gelu", theirs)
    assert (difference.same, difference.unidentified, difference.shared) == (True, 2, 2)
    done = ran(made / "level2/linear_gelu", theirs)
    assert "2 kernels are compared by their tensors alone" in " ".join(done.output.split())


def test_json_holds_the_same(made: Path) -> None:
    said = json.loads(ran(made / "level3/mlp", made / "level2/linear_gelu", "--json").output)
    assert said["same"] is False
    assert said["a"]["instances"]["kernel"] > 0
    assert said["changes"]


def test_what_is_no_decomposition_is_refused(made: Path, output: Path, tmp_path: Path) -> None:
    with pytest.raises(DecompositionError, match="no decomposition_tree"):
        compare_decompositions(made / "level3/mlp", tmp_path)
    (output / "level3/mlp" / TREE_FILE).write_text('{"nodes": {}}')
    with pytest.raises(DecompositionError, match="decompose the problem again"):
        compare_decompositions(output / "level3/mlp", made / "level3/mlp")
