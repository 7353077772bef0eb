"""A command that writes solutions, in rounds."""

import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from runner.cli import cli
from runner.errors import UsageError
from runner.evaluate.solver import choose_workloads
from runner.tree.document import Tree

AGENT = """
import pathlib, sys

brief, output = sys.stdin.read(), pathlib.Path(sys.argv[1])
assert "blocks_0.feed_forward.swiglu, input 0: float32[8, 32, 128]" in brief
wrong = "class ModelNew(nn.Module):\\n    def forward(self, a, b):\\n        return a * b\\n"
right = wrong.replace("a * b", "F.silu(a).mul_(b)")
text = right if "round 1: wrong: output differs" in brief else wrong
output.write_text("import torch.nn.functional as F\\nfrom torch import nn\\n\\n\\n" + text)
print("written")
"""


@pytest.mark.long
def test_a_solver_gets_its_findings_and_improves(
    decomposed: Path, names: dict[str, str], tmp_path: Path
) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    command = f"{shlex.quote(sys.executable)} {agent} {{output}}"
    folder = tmp_path / "mine"
    arguments = ["evaluate", str(decomposed), "--solutions", str(folder), "--solver", command]
    arguments += ["--operation", "swiglu", "--rounds", "2", "--no-compile", "--no-speed", "--json"]
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert done.exception is None, done.output
    lines = [line for line in done.stderr.splitlines() if names["swiglu"] in line]
    assert "round 1: wrong" in lines[0]
    assert "round 2: right" in lines[1]
    assert "mul_" in (folder / f"{names['swiglu']}.py").read_text()


@pytest.mark.long
def test_the_finding_on_a_solver_that_writes_nothing_has_its_last_line(
    decomposed: Path, tmp_path: Path
) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text("import sys\nprint('begun')\nsys.exit('no key: set KEY')\n")
    command = f"{shlex.quote(sys.executable)} {agent}"
    arguments = ["evaluate", str(decomposed), "--solutions", str(tmp_path / "mine")]
    arguments += ["--solver", command, "--top", "1", "--rounds", "1"]
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    wanted = "no solution was written; the command ended with exit code 1; its last line: no key"
    assert wanted in done.stderr


def test_a_solver_that_is_not_there_is_named_with_its_own_flag(decomposed: Path) -> None:
    arguments = ["evaluate", str(decomposed), "--solutions", "mine", "--solver", "no-such-agent"]
    error = CliRunner().invoke(cli, arguments, standalone_mode=False).exception
    assert str(error) == "--solver: no-such-agent: not found; is it in PATH?"


def test_workloads_are_chosen_by_their_share(decomposed: Path, names: dict[str, str]) -> None:
    tree = Tree.read(decomposed)
    (first, *_) = choose_workloads(tree, 3)
    assert Path(first).stem == names["feed_forward"]
    assert [Path(p).stem for p in choose_workloads(tree, 3, ["swiglu"])] == [names["swiglu"]]


def test_an_unknown_operation_is_a_mistake(decomposed: Path) -> None:
    with pytest.raises(UsageError, match="no kernel of this name; it has add, linear"):
        choose_workloads(Tree.read(decomposed), 3, ["conv2d"])
