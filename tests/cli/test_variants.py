"""`--set` and `--dtype` as users type them, and `kdrun data show`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from runner.cli import cli
from runner.config import load_settings
from runner.errors import UsageError

PROBLEM = """\
import torch

batch_size = 8
heads = 2


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.fc(x)).view(x.shape[0], heads, -1)


def get_inputs():
    return [torch.randn(batch_size, 16)]


def get_init_inputs():
    return [16]
"""
WITHOUT_BF16 = PROBLEM.replace(
    "torch.relu(self.fc(x))", "torch.linalg.inv(self.fc(x)[:, :1, None])"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(PROBLEM)
    return tmp_path


def kdrun(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_a_variant_is_a_problem_of_its_own_wherever_its_name_stands(here: Path) -> None:
    made = kdrun("decompose", "net.py", "--dtype", "bfloat16", "--set", "batch_size=1")
    assert "passed  custom/net+bf16+batch_size=1\n" in made.output
    directory = here / "output/custom/net+bf16+batch_size=1"
    assert "batch_size = 1  # 8 in net.py\n" in (directory / "original.py").read_text()
    assert {path.stem.rsplit("_", 1)[1] for path in directory.glob("level_0_kernel/*.py")} == {
        "bf16"
    }
    written = {"source": "custom/net", "dtype": "bf16"}
    written["constants"] = {"batch_size": {"before": "8", "after": "1"}}
    for document in ("decomposition_tree.json", "result.json"):
        variant = json.loads((directory / document).read_text())
        variant = variant.get("metadata", variant)["variant"]
        assert variant.pop("source_sha256")
        assert variant == written
    assert kdrun("verify", str(directory)).output.startswith("passed")
    other = kdrun("decompose", "net.py", "--set", "batch_size=1")
    assert "passed  custom/net+batch_size=1\n" in other.output
    told = kdrun("diff", str(directory), "output/custom/net+batch_size=1").output
    assert "A is custom/net in bf16 with batch_size = 1 (8)" in told
    assert "B is custom/net with batch_size = 1 (8)" in told


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--set", "batch=1"],
            "--set batch: net: no constant batch; the file has batch_size = 8, ",
        ),
        (["--set", "batch_size=big"], "batch_size=big: no literal; the file has 8"),
        (["--set", "batch_size"], "write NAME=VALUE"),
        (["--dtype", "int8"], "'int8' is none of fp32, bf16, fp16 and fp64"),
        (["--dtype", "fp16,bf16"], "2 variants are asked for; `kdrun submit --problem net`"),
    ],
)
def test_a_mistake_is_one_line(flags: list[str], message: str) -> None:
    told = kdrun("decompose", "net.py", *flags)
    assert isinstance(told.exception, UsageError)
    assert message in str(told.exception)


def test_a_value_that_breaks_the_model_is_the_models_own_error() -> None:
    told = kdrun("decompose", "net.py", "--set", "heads=3")
    assert "error  custom/net+heads=3: RuntimeError: shape '[8, 3, -1]' is invalid" in told.output


def test_an_operator_without_the_dtype_says_so(here: Path) -> None:
    (here / "inverse.py").write_text(WITHOUT_BF16)
    told = kdrun("decompose", "inverse.py", "--dtype", "bf16")
    assert "error  custom/inverse+bf16: " in told.output
    assert "BFloat16" in told.output


def test_data_show_lists_the_constants_with_their_values() -> None:
    lines = [line.split() for line in kdrun("data", "show", "net.py").output.splitlines()]
    assert ["batch_size", "8", "3"] in lines
    assert ["width", "16", "21", "get_init_inputs()"] in lines
    document = json.loads(kdrun("data", "show", "net.py", "--json").output)
    assert [c["value"] for c in document["constants"]] == [8, 2, 16]


def test_values_come_from_flags_a_variable_or_a_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"set": ("a=1,(2, 3),'x,y'", "b=2", "a=4")}
    expected = {"a": ["1", "(2, 3)", "'x,y'", "4"], "b": ["2"]}
    assert load_settings(flags).set == expected
    monkeypatch.setenv("KDRUN_SET", "a=1,2; b=(3, 4)")
    assert load_settings({}).set == {"a": ["1", "2"], "b": ["(3, 4)"]}
    (here / "s.yaml").write_text("set: {a: [1, 2], b: relu}\ndtype: [fp32, bf16]\nfit: 8GiB\n")
    monkeypatch.delenv("KDRUN_SET")
    settings = load_settings({}, here / "s.yaml")
    assert (settings.set, settings.dtype) == ({"a": ["1", "2"], "b": ["relu"]}, ["fp32", "bf16"])
    assert settings.fit == 8 << 30
    with pytest.raises(UsageError, match="less than any problem takes"):
        load_settings({"fit": "8"})
