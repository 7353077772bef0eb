"""This project's own problems: enough of them, each with an idea, each running as it is."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from runner.problems import (
    Problem,
    check_outputs,
    load_problem,
    read_problem,
    seed,
    select_problems,
)
from runner.problems.problem import summarize_problem
from runner.problems.selection import DataRoot

ROOT = Path(__file__).parents[1] / "data/samples"
SAMPLES = select_problems(DataRoot(ROOT, "samples"))
NAMED = [
    "level2/conv_bn_relu",
    "level2/linear_gelu",
    "level3/simple_transformer",
    "level3/vit_block",
    "level3/mlp_block",
    "level3/attention_block",
    "level3/llama",
    "level3/gpt_oss",
]

LARGEST_ELEMENTS = 2**26
"""Of any tensor: together the samples run in CI in minutes."""

sample = pytest.mark.parametrize(
    "problem", SAMPLES, ids=[f"{p.source_level}/{p.name}" for p in SAMPLES]
)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_each_level_has_at_least_twelve(level: int) -> None:
    assert sum(p.level == level for p in SAMPLES) >= 12


@pytest.mark.parametrize("name", NAMED)
def test_the_ones_that_people_look_for_are_there(name: str) -> None:
    assert name in {f"{p.source_level}/{p.name}" for p in SAMPLES}


def test_no_two_say_the_same() -> None:
    assert len({summarize_problem(p) for p in SAMPLES}) == len(SAMPLES)


@sample
def test_a_sample_names_its_idea_and_runs(problem: Problem) -> None:
    assert read_problem(problem.path) == problem
    assert problem.path.read_text(encoding="utf-8").startswith('"""')
    assert len(summarize_problem(problem).split()) >= 5

    seed(0)
    loaded = load_problem(problem)
    model = loaded.build().eval()
    args, kwargs = loaded.get_inputs()
    with torch.no_grad():
        outputs = check_outputs(problem, model(*args, **kwargs))

    for tensor in [*model.parameters(), *outputs]:
        assert tensor.numel() <= LARGEST_ELEMENTS
    for output in outputs:
        assert torch.isfinite(output).all()
        assert output.numel() == 1 or output.float().std() > 1e-3, "says little: nearly constant"


@sample
def test_a_sample_imports_nothing_but_torch_and_the_standard_library(problem: Problem) -> None:
    lines = problem.path.read_text(encoding="utf-8").splitlines()
    imports = [line.split()[1] for line in lines if line.startswith(("import ", "from "))]
    assert {i.split(".")[0] for i in imports} <= {"torch"} | sys.stdlib_module_names


def test_a_sample_is_a_python_file_that_can_be_imported_by_itself() -> None:
    path = ROOT / "level2" / "linear_gelu.py"
    code = f"import runpy; print(runpy.run_path({str(path)!r})['get_init_inputs']())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[768, 3072]"


def test_gpt_oss_holds_the_published_20b_configuration_in_the_same_file() -> None:
    (problem,) = select_problems(DataRoot(ROOT, "samples"), [3], ["gpt_oss"])
    loaded = load_problem(problem)
    small = loaded.init_args
    vars(loaded.module)["CONFIG"] = loaded.module.PUBLISHED_20B
    published = loaded.module.get_init_inputs()
    assert len(published) == len(small)
    with torch.device("meta"):
        model = loaded.Model(*published)
    parameters = sum(p.numel() for p in model.parameters())
    assert 20.8e9 < parameters < 21.0e9  # 20.9 billion, as published
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16, torch.float32}
