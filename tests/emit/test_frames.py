"""Frames of emitted files: what compares stands once, and each file proves itself anywhere."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from models import NO_INIT, Decomposed, output_of

from runner.emit import checks
from runner.verify.gates.compare import COMPOSITION, STEP

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        values, places = self.out(torch.relu(self.fc(x))).topk(2)
        return values, places

def get_inputs(): return [torch.randn(4, 8)]
"""


def _functions(file: Path) -> list[str]:
    body = ast.parse(file.read_text()).body
    return [item.name for item in body if isinstance(item, ast.ClassDef | ast.FunctionDef)]


def test_a_step_is_its_model_its_inputs_and_one_call(decomposed: Decomposed) -> None:
    directory = decomposed(MODEL + NO_INIT, "level2")

    (step,) = directory.glob("steps/*/refactored.py")
    names = ["RefactoredModel", "get_inputs", "get_init_inputs", "get_expected_output_shape"]
    assert _functions(step) == [*names, "run_tests"]
    assert _frame(step) <= 9
    composition = directory / "verification/composition_test.py"
    assert _functions(composition) == ["kernel", "ComposedModel", "run_tests"]


def test_a_component_has_a_frame_of_at_most_12_lines(decomposed: Decomposed) -> None:
    directory = decomposed(MODEL + NO_INIT, "level2")

    files = list(directory.glob("level_*/*.py"))
    assert len(files) == 5
    assert {_frame(file) <= 12 for file in files} == {True}


def _frame(file: Path) -> int:
    """Lines of run_tests() and of what calls it."""
    _, _, frame = file.read_text().partition("def run_tests")
    return sum(bool(line) for line in frame.splitlines())


def test_a_directory_that_moved_proves_itself_from_anywhere(
    decomposed: Decomposed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = decomposed(MODEL + NO_INIT, "level2").rename(tmp_path / "elsewhere")
    monkeypatch.chdir("/")

    (step,) = moved.glob("steps/*/refactored.py")
    assert output_of(step) == "PASS"
    assert output_of(moved / "verification/composition_test.py") == "PASS"


def test_a_wrong_child_is_an_assertion_and_exit_code_1(decomposed: Decomposed) -> None:
    directory = decomposed(MODEL + NO_INIT, "level2")
    (step,) = directory.glob("steps/*/refactored.py")
    (child,) = step.parent.glob("children/relu_*.py")
    child.write_text(child.read_text().replace("relu(", "tanh("))

    ran = subprocess.run([sys.executable, str(step)], cwd="/", capture_output=True, text=True)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "AssertionError: Tensor-likes are not close!" in ran.stderr


def test_the_emitted_checks_and_the_judge_allow_the_same() -> None:
    assert {dtype: (t.rtol, t.atol) for dtype, t in STEP.items()} == checks.TOLERANCES
    assert COMPOSITION[torch.float32].max_diff == checks.MAX_DIFF


@pytest.mark.parametrize("size", [20.0, 0.02, 1e-8])
def test_small_outputs_are_checked_as_strictly_as_large_ones(size: float) -> None:
    x = torch.linspace(-1, 1, 9) * size

    assert checks.assert_agree([x], [x.clone()])
    assert not checks.assert_agree([x + min(size, 1.0) * 5e-7], [x])
    with pytest.raises(AssertionError, match="not close"):
        checks.assert_agree([x + min(size, 1.0) * 5e-5], [x])


def test_a_composed_model_is_held_to_an_absolute_bound_too() -> None:
    x = torch.full((4,), 1e3)

    assert not checks.assert_agree([x + 5e-3], [x])
    with pytest.raises(AssertionError, match="not close"):
        checks.assert_agree([x + 5e-3], [x], checks.MAX_DIFF)


def test_large_outputs_wait_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LARGE_BYTES", 16)
    x = torch.randn(3, 5)

    (kept,) = checks.aside([x])

    assert torch.equal(kept, x)
    assert kept.data_ptr() != x.data_ptr()
    right = x * 1.01
    assert torch.equal(checks.wrong(x), right)
    assert torch.equal(x, right)  # overwritten: memory may hold no other
