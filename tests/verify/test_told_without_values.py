"""A worker tells large forwards from shapes alone; what needs the numbers runs with them."""

import pytest
from changing_files import RELU, in_forward
from decompositions_of_expressions import lone
from verdicts import assert_passes, complaints_of

from runner.verify.guard import worker


@pytest.fixture(autouse=True)
def every_forward_is_large(monkeypatch):
    monkeypatch.setattr(worker, "_SHAPES_ONLY_BYTES", 0)


def test_a_model_passes(model, judged):
    assert_passes(judged(model))


def test_a_model_passes_in_training_mode(model, judged):
    assert_passes(judged(model, mode="train"))


def test_no_numbers_are_there(fusion, judged, capfd):
    in_forward(fusion, "print('holds', type(x).__name__, flush=True)\nreturn F.relu(x)")

    assert_passes(judged(fusion))

    assert "holds FakeTensor" in capfd.readouterr().out


def test_a_program_that_chooses_by_numbers_is_told_with_them(tmp_path, judged):
    chooses = "torch.relu(x) if x.sum() > 1e9 else torch.tanh(x)"

    assert_passes(judged(lone(tmp_path / "chooses", chooses)))


def test_a_wrong_kernel_fails(fusion, judged):
    in_forward(fusion, "return F.relu(x) * 1.01")

    assert judged(fusion).status == "failed"


def test_a_kernel_that_is_right_without_numbers_alone_fails(fusion, judged):
    in_forward(fusion, "return F.relu(x) if type(x) is not torch.Tensor else F.elu(x)")

    faults = {check.component: check.reason for check in complaints_of(judged(fusion))}

    assert RELU in faults
