"""The real KernelBench, where it was fetched: all of it is there, reads and loads."""

from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from runner.problems import Problem, load_problem, select_problems
from runner.problems.dataset import check_dataset
from runner.problems.problem import summarize_problem
from runner.problems.selection import KERNELBENCH, DataRoot

ROOT = Path(__file__).parents[2] / KERNELBENCH

pytestmark = pytest.mark.skipif(
    not ROOT.is_dir(), reason="needs the real dataset: kdrun data fetch"
)


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return select_problems(DataRoot(ROOT, "kernelbench"))


def test_it_is_the_pinned_commit_with_our_own_problem_beside_it() -> None:
    report = check_dataset(ROOT)
    assert (report.ok, report.right) == (True, 251)


def test_it_is_selected_in_numeric_order(problems: list[Problem]) -> None:
    levels = [p.level for p in problems]
    assert [levels.count(n) for n in (1, 2, 3)] == [100, 100, 51]
    assert [int(p.name.split("_")[0]) for p in problems[:100]] == list(range(1, 101))
    assert problems[-1].name == "gpt_oss"


def test_every_problem_has_a_one_line_idea(problems: list[Problem]) -> None:
    for problem in problems:
        assert 3 <= len(summarize_problem(problem)) < 300, problem.name
        assert "\n" not in summarize_problem(problem)


FAMILIES = [
    "level1/1_Square*",  # constants at module level
    "level1/5_Matrix_scalar*",  # a plain number among the inputs
    "level2/93_*",  # builds a tensor on its input's device
    "level3/7_*",  # GoogleNet
    "level3/20_*",  # no arguments but defaults
    "level3/35_*",  # LSTM
    "level3/48_*",  # einops
]


@pytest.mark.parametrize("pattern", FAMILIES)
def test_files_of_every_habit_load_at_full_size(pattern: str) -> None:
    (problem,) = select_problems(DataRoot(ROOT, "kernelbench"), patterns=[pattern])
    if "einops" in problem.path.read_text(encoding="utf-8"):
        pytest.importorskip("einops", reason="level3/48 and 49 import einops")
    with FakeTensorMode(allow_non_fake_inputs=True):
        loaded = load_problem(problem)
        assert isinstance(loaded.build(), torch.nn.Module)
        args, kwargs = loaded.get_inputs()
    assert args
    assert kwargs == {}
