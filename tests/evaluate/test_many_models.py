"""Solutions for all decompositions of a directory, and the page that shows them."""

import base64
import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from solution_files import write_solutions

from runner.cli import cli
from runner.errors import KdrunError
from runner.evaluate.evaluation import evaluate
from runner.evaluate.requests import EvaluationRequest
from runner.evaluate.runs import evaluate_all
from runner.report.page import render_page
from runner.report.subject import find_subject
from runner.store.evaluation import Evaluation
from tests.report.evaluated_run import solution, speed, write_evaluation

SOFTMAX = """
class ModelNew(nn.Module):
    def forward(self, x):
        return F.softmax(x, -1)
"""


@pytest.mark.long
def test_a_model_that_cannot_be_evaluated_does_not_end_the_others(
    decomposed: Path, names: dict[str, str], tmp_path: Path
) -> None:
    broken, good = tmp_path / "custom" / "a_broken_model", tmp_path / "custom" / "heavy_tails"
    for copy in (broken, good):  # other tests may have evaluated the directory
        shutil.copytree(decomposed, copy, ignore=shutil.ignore_patterns("evaluation.json"))
    shutil.rmtree(broken / "steps")
    folder = write_solutions(tmp_path / "mine", names, {"softmax": SOFTMAX})
    evaluations: list[Evaluation] = []
    failures: list[KdrunError] = []
    parts: list[tuple[str, str]] = []
    evaluate_all(
        [
            EvaluationRequest(directory=path, solutions=folder, measured=False, timeout_s=300)
            for path in (broken, good)
        ],
        memory_bytes=None,
        on_done=lambda evaluation, text: evaluations.append(evaluation),
        on_failure=failures.append,
        on_progress=lambda request, part: parts.append((request.directory.name, part)),
    )
    assert "no step refactors" in str(failures[0])
    assert parts[-1] == ("heavy_tails", "the model with all right solutions")
    assert [item.is_all_right for item in evaluations] == [True]
    page = render_page(find_subject(str(tmp_path / "custom"), tmp_path))
    packed = re.search(r'id="solutions">([^<]+)<', page)
    assert packed is not None
    evaluated = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    assert [row["name"] for row in evaluated[0]["solutions"]] == [names["softmax"]]


@pytest.mark.long
def test_nothing_is_written_without_a_right_solution_nor_lost_without_a_word(
    decomposed: Path, names: dict[str, str], tmp_path: Path
) -> None:
    copy, target = tmp_path / "custom" / "heavy_tails", tmp_path / "fast.py"
    shutil.copytree(decomposed, copy, ignore=shutil.ignore_patterns("evaluation.json"))
    write_evaluation(copy, [solution(names["softmax"], "softmax", speed(1.2))], None)
    folder = write_solutions(tmp_path / "mine", names, {"softmax": SOFTMAX.replace("-1", "0")})
    arguments = ["evaluate", str(copy), "--solutions", str(folder), "--no-speed", "--write"]
    done = CliRunner().invoke(cli, [*arguments, str(target)], standalone_mode=False)
    assert done.return_value == 1
    assert "evaluation.json has speeds, and this one will have none" in done.stderr
    assert f"did not write {target}: none is right" in done.stderr
    assert not target.exists()


@pytest.mark.long
def test_what_there_is_no_time_to_measure_is_left_out_and_said(
    decomposed: Path, names: dict[str, str], tmp_path: Path
) -> None:
    folder = write_solutions(tmp_path / "mine", names, {"softmax": SOFTMAX})
    answer = evaluate(
        EvaluationRequest(directory=decomposed, solutions=folder, compiled=False, timeout_s=1.0)
    )
    assert answer.evaluation is not None
    assert answer.evaluation.is_all_right
    assert answer.evaluation.model is not None
    assert answer.evaluation.model.speed is None
    assert any("did not fit into --timeout 1: " in note for note in answer.evaluation.notes)
