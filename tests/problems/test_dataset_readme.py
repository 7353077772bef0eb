"""data/DATASET_README.md says what is so."""

import re
from pathlib import Path

import pytest

from runner.problems import load_problem, read_problem, select_problems
from runner.problems.dataset import COMMIT
from runner.problems.problem import summarize_problem
from runner.problems.selection import KERNELBENCH, DataRoot

CHECKOUT = Path(__file__).parents[2]
TEXT = (CHECKOUT / "data/DATASET_README.md").read_text(encoding="utf-8")


def counts(directory: str) -> list[int]:
    row = re.search(rf"^\| `{directory}/` \|(.*)$", TEXT, re.MULTILINE)
    assert row
    return [int(cell) for cell in row[1].split("|")[:4]]


def test_the_example_of_the_format_is_a_problem_that_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    path = tmp_path / "example.py"
    path.write_text(example, encoding="utf-8")
    problem = read_problem(path)
    assert (
        summarize_problem(problem)
        == "Linear layer whose output is squared: its idea, in one sentence"
    )
    loaded = load_problem(problem)
    args, kwargs = loaded.get_inputs()
    assert loaded.build()(*args, **kwargs).shape == (32, 256)
    assert kwargs == {"scale": 0.5}


def test_it_counts_the_samples_right() -> None:
    levels = [p.level for p in select_problems(DataRoot(CHECKOUT / "data/samples", "samples"))]
    assert counts("data/samples") == [*(levels.count(n) for n in (1, 2, 3)), len(levels)]


def test_it_counts_the_dataset_right() -> None:
    root = CHECKOUT / KERNELBENCH
    if not root.is_dir():
        pytest.skip("needs the real dataset: kdrun data fetch")
    levels = [p.level for p in select_problems(DataRoot(root, "kernelbench"))]
    assert counts("data/kernelbench") == [*(levels.count(n) for n in (1, 2, 3)), len(levels)]


def test_it_names_the_pinned_commit_and_files_that_exist() -> None:
    assert COMMIT in TEXT
    level3 = {p.name for p in select_problems(DataRoot(CHECKOUT / "data/samples", "samples"), [3])}
    row = TEXT.split("| 3 | `simple_transformer`")[1].split("\n")[0]
    assert set(re.findall(r"`(\w+)`", row)) <= level3
