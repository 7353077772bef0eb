"""`kdrun submit --problem package.module:function`: planned as any problem, and by its source."""

from pathlib import Path

import pytest

from runner.batch.submit import prepare
from runner.config import Settings
from runner.problems import read_problem

SAMPLES = Path(__file__).parents[2] / "data/samples"
ZOO = """\
import torch
from torch import nn


def small():
    return nn.Linear(4, 4), [torch.randn(2, 4)]
"""


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "zoo_of_mine.py").write_text(ZOO)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "zoo_of_mine.py"


def test_a_function_in_a_package_is_a_problem_of_the_run(zoo: Path) -> None:
    chosen = ["zoo_of_mine:small", "vit_block"]
    submission = prepare(Settings(problem=chosen, data=SAMPLES, output=Path("results")), print)
    assert [item.label for item in submission.items] == ["level3/vit_block", "custom/small"]
    problem = submission.items[1].problem
    assert problem.path == zoo.parent / "results/problems/small.py"
    assert read_problem(problem.path) == problem
    assert submission.run.settings.problem == chosen


def test_another_source_of_the_package_is_another_problem(zoo: Path) -> None:
    settings = Settings(problem=["zoo_of_mine:small"])
    before = prepare(settings, print).items[0].problem.sha256
    assert prepare(settings, print).items[0].problem.sha256 == before
    zoo.write_text(ZOO.replace("2, 4", "3, 4"))
    assert prepare(settings, print).items[0].problem.sha256 != before
