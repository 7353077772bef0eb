"""Emitted files are formatted and linted as a person's would be, at 88 columns."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.emit import decompose
from runner.emit.code.line_breaks import fit_line
from runner.problems import read_problem

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
CONFIG = """
line-length = 88
target-version = "py311"
[lint]
select = ["E", "F", "W", "I", "B"]
ignore = ["B905"]  # zip(strict=...) adds nothing where both come from one tensor
[lint.isort]
known-first-party = ["children"]
"""
ODD = ("level1/gelu_tanh", "level2/embedding_layer_norm", "level3/swin", "level3/gpt_oss",
       "level3/densenet", "level3/mamba", "level3/rnn_unrolled")  # fmt: skip


@pytest.fixture(scope="module")
def emitted(
    tmp_path_factory: pytest.TempPathFactory, decomposed_sample: Callable[[str], Path]
) -> Path:
    folder = tmp_path_factory.mktemp("style")
    not_emitted = shutil.ignore_patterns("original.py")
    for sample in ODD:
        shutil.copytree(decomposed_sample(sample), folder / sample, ignore=not_emitted)
    (folder / "ruff.toml").write_text(CONFIG)
    return folder


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_emitted_files_are_clean(emitted: Path, command: list[str]) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--config", "ruff.toml", "--no-cache", "."],
        cwd=emitted,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout[-3000:]


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("x = self.conv(x)  # [1, 2]", ["x = self.conv(x)  # [1, 2]"]),
        (
            f"out = self.{'a' * 40}({'b' * 20}, {'c' * 20})  # [1, 2]",
            [f"out = self.{'a' * 40}(", f"    {'b' * 20}, {'c' * 20}", ")  # [1, 2]"],
        ),
        (
            f"out = self.{'a' * 40}({'b' * 20})  # [1, 2, 3, 4]",
            ["# [1, 2, 3, 4]", f"out = self.{'a' * 40}({'b' * 20})"],
        ),
        (
            f"self.x = nn.Conv2d(in_channels={'1' * 40}, out_channels={'2' * 40})",
            [
                "self.x = nn.Conv2d(",
                f"    in_channels={'1' * 40},",
                f"    out_channels={'2' * 40},",
                ")",
            ],
        ),
        (
            f"self.{'a' * 50} = {'B' * 40}()",
            [f"self.{'a' * 50} = (", f"    {'B' * 40}()", ")"],
        ),
        (
            f"return [torch.rand({'1' * 30}), torch.rand({'2' * 30})]",
            ["return [", f"    torch.rand({'1' * 30}),", f"    torch.rand({'2' * 30}),", "]"],
        ),
        (
            f"y = x * ({'a' * 40} + f(b - c) - {'d' * 40})",
            ["y = x * (", f"    {'a' * 40}", "    + f(b - c)", f"    - {'d' * 40}", ")"],
        ),
        (f'x = f("{"(" * 90}")', ["x = f(", f'    "{"(" * 90}"', ")"]),
    ],
)
def test_a_wide_statement_opens_at_its_last_bracket(line: str, broken: list[str]) -> None:
    assert fit_line(line) == broken


def test_a_docstring_keeps_to_its_width_whatever_the_problem_is_called(tmp_path: Path) -> None:
    words = "a_convolution_with_" + "_and_".join(["padding", "stride", "dilation", "groups"] * 2)
    (tmp_path / "level1").mkdir()
    problem = tmp_path / "level1" / f"{words}.py"
    problem.write_text((SAMPLES / "level1" / "conv3d.py").read_text())

    decompose(read_problem(problem), tmp_path / "out")

    (file,) = (tmp_path / "out" / "level_0_kernel").glob("*.py")
    text = file.read_text()
    assert f"\nSource:\n    {words}.py,\n    line " in text
    assert not [line for line in text.splitlines() if len(line) > 88 and " " in line.strip()]
