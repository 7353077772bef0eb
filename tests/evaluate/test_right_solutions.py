"""Right solutions of three levels: verdicts, times, and the model with them."""

import json
import runpy
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from kernelbench_harness import judge
from solution_files import PROBLEM, evaluate_texts, write_solutions

from runner.cli import cli
from runner.errors import UsageError
from runner.evaluate.requests import EvaluationAnswer
from runner.evaluate.solutions import list_strangers
from runner.store.evaluation import Evaluation
from runner.tree.document import Tree

pytestmark = pytest.mark.long

NORM = """
def normalize(x, weight):
    return F.rms_norm(x, (64,), weight, 1e-5)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x):
        return normalize(x, self.weight)
"""
FEED_FORWARD = """
def convert_weights(state_dict):
    gate_up = torch.cat([state_dict["gate.weight"], state_dict["up.weight"]])
    return {"gate_up": gate_up, "down.weight": state_dict["down.weight"]}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_up = nn.Parameter(torch.empty(256, 64))
        self.down = nn.Linear(128, 64, bias=False)

    def forward(self, x):
        gate, up = F.linear(x, self.gate_up).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)
"""
LAZY_HEAD = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 16)
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = self.linear.weight.t().contiguous()
        return x @ self.packed + self.linear.bias
"""


@pytest.fixture(scope="module")
def answer(
    decomposed: Path, names: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> EvaluationAnswer:
    texts = {"rms_norm": NORM, "feed_forward": FEED_FORWARD, "head": LAZY_HEAD}
    folder = tmp_path_factory.mktemp("mine")
    return evaluate_texts(decomposed, folder, names, texts, measured=True)


@pytest.fixture
def evaluation(answer: EvaluationAnswer) -> Evaluation:
    assert answer.evaluation is not None
    return answer.evaluation


def test_right_solutions_are_right_at_each_place(evaluation: Evaluation) -> None:
    assert [row.judgement for row in evaluation.solutions] == ["right"] * 3
    by_name = {row.name.partition("_8x")[0]: row for row in evaluation.solutions}
    places = {item.place for item in by_name["rms_norm"].comparisons}
    assert places == {"own inputs", "blocks_0.norm", "blocks_1.norm"}


def test_each_solution_has_a_speed_a_share_and_what_the_model_gains(
    evaluation: Evaluation,
) -> None:
    for row in evaluation.solutions:
        assert row.speed is not None
        assert row.speed.lowest <= row.speed.speedup <= row.speed.highest
        assert len(row.speed.before_s) == len(row.speed.after_s) >= 6
        assert 0 < (row.share or 0) <= 1
        assert row.predicted is not None
        assert row.measured is not None


def test_the_model_is_compared_with_each_solution_and_with_all(evaluation: Evaluation) -> None:
    assert evaluation.model is not None
    assert [len(item.solutions) for item in evaluation.model.comparisons] == [1, 1, 1, 3]
    assert {item.judgement for item in evaluation.model.comparisons} == {"right"}
    assert evaluation.is_all_right
    assert not any("--mode train" in note for note in evaluation.notes)
    assert evaluation.model.speed is not None
    assert evaluation.model.parts is not None


def test_the_written_file_is_a_model_that_kernelbench_accepts(answer: EvaluationAnswer) -> None:
    assert answer.text is not None
    verdict = judge(PROBLEM.read_text(), answer.text)
    assert verdict.right, verdict.reason


def test_the_written_file_stands_alone(answer: EvaluationAnswer, tmp_path: Path) -> None:
    assert answer.text is not None
    assert "runner" not in answer.text
    path = tmp_path / "fast.py"
    path.write_text(answer.text)
    names = runpy.run_path(str(path))
    torch.manual_seed(3)
    model = names["Model"](64)
    torch.manual_seed(3)
    new = names["ModelNew"](64)
    (x,) = names["get_inputs"]()
    with torch.no_grad():
        assert torch.allclose(new(x), model(x), rtol=1e-5, atol=1e-6)


def test_an_evaluation_is_read_as_it_was_written(evaluation: Evaluation, tmp_path: Path) -> None:
    evaluation.write(tmp_path)
    assert Evaluation.read(tmp_path) == evaluation
    document = json.loads((tmp_path / "evaluation.json").read_text())
    assert document["solutions"][0]["speed"]["calls"] >= 1


def test_a_solution_that_caches_once_it_is_measured_is_wrong(
    decomposed: Path, names: dict[str, str], tmp_path: Path
) -> None:
    text = """
class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        ModelNew.calls += 1
        if ModelNew.calls < 10:
            self.answer = torch.softmax(x, dim=-1)
        return self.answer
"""
    answer = evaluate_texts(decomposed, tmp_path / "mine", names, {"softmax": text}, measured=True)
    assert answer.evaluation is not None
    (row,) = answer.evaluation.solutions
    assert row.judgement == "wrong"
    assert "while it was measured" in (row.reason or "")


def test_files_without_a_component_are_named(
    names: dict[str, str], decomposed: Path, tmp_path: Path
) -> None:
    folder = write_solutions(tmp_path, names | {"typing": "rms_norm_8x32x65_fp32"}, {"typing": ""})
    (sentence,) = list_strangers([Tree.read(decomposed)], folder)
    assert sentence.endswith(f"no component has this name; is it for {names['rms_norm']}?")


def test_a_name_without_a_solution_is_a_mistake_that_names_one(
    names: dict[str, str], decomposed: Path, tmp_path: Path
) -> None:
    folder = write_solutions(tmp_path, names, {"rms_norm": ""})
    arguments = ["evaluate", str(decomposed), "--solutions", str(folder), "--only", "norm"]
    error = CliRunner().invoke(cli, arguments, standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert str(error).startswith("--only norm: no such solution")
    assert names["rms_norm"] in str(error.hint)
