"""How soon a command answers, and what it says about that."""

import ast
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import KDRUN
from whole_problem import WHOLE

from runner import cli


def test_nothing_that_a_command_imports_brings_torch_into_its_own_process() -> None:
    files = {*Path(cli.__path__[0]).glob("*.py")} - {Path(cli.__path__[0], "doctor.py")}
    trees = [ast.parse(file.read_text()) for file in files]  # doctor imports torch to look at it
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    lines = {f"from {node.module} import {name.name}" for node in nodes for name in node.names}
    assert "from runner.batch import local_execution" in lines
    heavy = "print({'torch', 'numpy', 'ray', 'boto3'} & set(sys.modules))"
    program = "\n".join(["import sys", *sorted(lines), heavy])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"x = 1\n", "no class Model; a problem has `class Model(nn.Module)`"),
        (WHOLE.replace("get_inputs", "inputs").encode(), "no get_inputs(); add `def get_inputs()`"),
        (b"class Model(\n", "SyntaxError: '(' was never closed (line 1)"),
        (b"# caf\xe9\n", "not UTF-8: byte 0xe9 (line 1); save the file as UTF-8"),
    ],
)
def test_a_mistake_in_the_text_is_told_without_importing_torch(
    tmp_path: Path, text: bytes, reason: str
) -> None:
    (tmp_path / "torch.py").write_text("open(__file__ + '.imported', 'w')\n")
    (tmp_path / "broken.py").write_bytes(text)
    done = subprocess.run(
        [KDRUN, "decompose", "broken.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(f"error  custom/broken: {reason}")
    assert (done.returncode, done.stderr) == (1, "")
    assert not (tmp_path / "torch.py.imported").exists()
    result = json.loads((tmp_path / "output/custom/broken/result.json").read_text())
    assert (result["status"], result["stage"]) == ("error", "load")
    assert result["reason"].startswith(reason)


def test_the_time_that_decompose_prints_is_all_that_it_took(tmp_path: Path) -> None:
    (tmp_path / "whole.py").write_text(WHOLE)
    began = time.monotonic()
    done = subprocess.run([KDRUN, "decompose", "whole.py"], cwd=tmp_path, stdout=subprocess.PIPE)
    took_s = time.monotonic() - began
    printed = re.search(r"^([\d.]+) s, [\d.]+ GiB$", done.stdout.decode(), re.MULTILINE)
    assert printed, done.stdout
    result = json.loads((tmp_path / "output/custom/whole/result.json").read_text())
    to_import_torch_s = 0.2  # and more; it is no part of the problem's own stages
    assert sum(result["seconds"].values()) + to_import_torch_s < float(printed[1]) < took_s + 0.05
