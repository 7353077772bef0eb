"""How two decompositions differ."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from runner.cli import cli
from runner.errors import DecompositionError
from runner.report.diff import compare
from runner.tree.document import TREE_FILE


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["diff", *map(str, arguments)], standalone_mode=False)


def test_a_decomposition_is_the_same_as_its_copy(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made / "level3/mlp", tmp_path / "copy")
    difference = compare(made / "level3/mlp", copy)
    assert difference.same
    assert difference.shared_flops == difference.a.flops > 0
    assert ran(made / "level3/mlp", copy).return_value == 0


def test_different_models_differ_in_levels_kernels_and_flops(made: Path) -> None:
    difference = compare(made / "level3/mlp", made / "level3/attention_block")
    assert not difference.same
    assert difference.a.operations != difference.b.operations
    assert {change.a > change.b for change in difference.changes} == {True, False}
    done = ran(made / "level3/mlp", made / "level3/attention_block")
    assert done.return_value == 1
    assert "the problem files differ" in done.output
    assert "kernel instances" in done.output


def test_other_names_are_no_difference_but_other_code_is(made: Path, output: Path) -> None:
    ours, theirs = made / "level2/linear_gelu", output / "level2/linear_gelu"
    kernel = next((theirs / "level_0_kernel").glob("gelu*.py"))
    text = kernel.read_text()
    kernel.write_text(text.replace("x: torch.Tensor", "y: torch.Tensor").replace("(x", "(y"))
    assert compare(ours, theirs).same
    kernel.write_text(text.replace("F.gelu(", "F.relu("))
    difference = compare(ours, theirs)
    assert not difference.same
    assert difference.respelled == (kernel.name,)
    assert difference.changes == ()


def test_a_lost_kernel_file_is_a_difference_not_a_crash(made: Path, output: Path) -> None:
    theirs = output / "level2/linear_gelu"
    next((theirs / "level_0_kernel").glob("gelu*.py")).unlink()
    assert compare(made / "level2/linear_gelu", theirs).rewritten == 1


def test_json_holds_the_same(made: Path) -> None:
    said = json.loads(ran(made / "level3/mlp", made / "level2/linear_gelu", "--json").output)
    assert said["same"] is False
    assert said["a"]["instances"]["kernel"] > 0
    assert said["changes"]


def test_what_is_no_decomposition_is_refused(made: Path, output: Path, tmp_path: Path) -> None:
    with pytest.raises(DecompositionError, match="no decomposition_tree"):
        compare(made / "level3/mlp", tmp_path)
    (output / "level3/mlp" / TREE_FILE).write_text('{"nodes": {}}')
    with pytest.raises(DecompositionError, match="decompose the problem again"):
        compare(output / "level3/mlp", made / "level3/mlp")
