"""Variants of a problem: their names, their text, and what runs."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from runner.errors import UsageError
from runner.problems import Problem, find_labels, identify_problem, load_problem, read_variant
from runner.problems.variants import VariantChoice, choose_variants, write_choice

SOURCE = """\
import torch.nn as nn
import torch as t

batch_size = 8
act = "relu"


class Model(nn.Module):
    def __init__(self, width, table):
        super(Model, self).__init__()
        self.fc = nn.Linear(width, width)
        self.register_buffer("steps", t.tensor(3))
        self.table = table

    def forward(self, x, ids, scale):
        hidden = self.fc(x).float()
        return (hidden * scale["by"] + self.table[ids]).to(x.dtype)


def get_inputs():
    return [t.randn(batch_size, 4), t.arange(batch_size), {"by": t.rand(1)}]


def get_init_inputs():
    return [4, t.randn(16, 4)]
"""
PACKAGE = """\
from torch import nn, randn


class Model(nn.Module):
    def __new__(cls):
        return nn.Linear(4, 4)


def get_inputs():
    return []


def get_input_kwargs():
    return {"input": randn(2, 4)}


def get_init_inputs():
    return []
"""


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return written(tmp_path, "net", SOURCE)


def written(folder: Path, name: str, source: str) -> Problem:
    path = folder / "level3" / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    return identify_problem(path)


def variant(problem: Problem, dtype: str | None = None, **texts: str) -> Problem:
    return write_choice(VariantChoice(problem, texts, dtype), problem.path.parents[1] / "out")


def test_a_variants_name_says_how_it_differs(problem: Problem) -> None:
    found = variant(problem, "bf16", batch_size="1")
    assert (found.name, found.source_level) == ("net+bf16+batch_size=1", "level3")
    assert find_labels(["level3/net", f"level3/{found.name}"], "net+bf16*") == [
        "level3/net+bf16+batch_size=1"
    ]
    assert find_labels([f"level3/{found.name}"], found.name) == [f"level3/{found.name}"]
    assert variant(problem, act="(3, 'a/b')").name == "net+act=3xa_b"
    assert variant(problem) == problem


def test_the_text_and_its_record_say_from_what_the_variant_is(problem: Problem) -> None:
    found = variant(problem, batch_size="1", ACT="gelu")
    text = found.path.read_text()
    assert text.startswith(
        SOURCE.replace("= 8\n", "= 1  # 8 in net.py\n").replace(
            '"relu"\n', "'gelu'  # \"relu\" in net.py\n"
        )
    )
    record = read_variant(found.path)
    assert record is not None
    assert (record.source, record.source_sha256) == ("level3/net", problem.sha256)
    assert str(record) == "level3/net with batch_size = 1 (8), act = 'gelu' (\"relu\")"
    assert read_variant(problem.path) is None
    with pytest.raises(UsageError, match="is a variant; name the original, level3/net"):
        variant(found, "bf16")


@pytest.mark.parametrize(
    ("dtype", "torch_dtype"), [("bf16", torch.bfloat16), ("fp64", torch.double)]
)
def test_model_and_floating_inputs_are_converted_and_nothing_else(
    problem: Problem, dtype: str, torch_dtype: torch.dtype
) -> None:
    loaded = load_problem(variant(problem, dtype))
    model = loaded.build()
    assert {p.dtype for p in model.parameters()} == {torch_dtype}
    assert (model.steps.dtype, model.table.dtype) == (torch.int64, torch_dtype)
    (x, ids, scale), _ = loaded.get_inputs()
    assert (x.dtype, ids.dtype, scale["by"].dtype) == (torch_dtype, torch.int64, torch_dtype)
    assert model(x, ids, scale).dtype == torch_dtype


def test_a_model_of_a_package_is_converted_with_its_keyword_inputs(tmp_path: Path) -> None:
    loaded = load_problem(variant(written(tmp_path, "linear", PACKAGE), "fp16"))
    model, (_, kwargs) = loaded.build(), loaded.get_inputs()
    assert model(**kwargs).dtype == torch.float16


def values(**lists: list[str]) -> Mapping[str, list[str]]:
    return lists


def test_each_problem_comes_with_each_combination_once(problem: Problem, tmp_path: Path) -> None:
    choices = choose_variants([problem], values(batch_size=["1", "8", "1"]), ["fp32", "bf16"])
    names = {p.name for p in (write_choice(c, tmp_path / "out") for c in choices)}
    assert names == {f"net+{d}+batch_size={n}" for d in ("fp32", "bf16") for n in (1, 8)}


def test_a_constant_that_only_some_problems_have_is_told_by_the_others(
    problem: Problem, tmp_path: Path
) -> None:
    other = written(tmp_path, "other", PACKAGE)
    choices = choose_variants([problem, other], values(batch_size=["1"]), [])
    record = read_variant(write_choice(choices[1], tmp_path / "out").path)
    assert record is not None
    assert record.refusal == "no constant batch_size; the file has no named literal"
    with pytest.raises(UsageError, match="--set batch: none of the 2 problems has it"):
        choose_variants([problem, other], values(batch=["1"]), [])
    with pytest.raises(
        UsageError, match="--set batch: net: no constant batch; the file has batch_"
    ):
        choose_variants([problem], values(batch=["1"]), [])


def test_a_file_that_is_no_python_stays_what_it_is(tmp_path: Path) -> None:
    broken = written(tmp_path, "broken", "class Model(:\n")
    assert variant(broken, "bf16").path.read_text().startswith("class Model(:\n")
