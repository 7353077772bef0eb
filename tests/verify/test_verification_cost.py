"""How often things run: nothing twice that once is enough for."""

import hashlib
from collections import Counter

import pytest

from runner.verify.runtime.runner import ForwardRunner

IN_THIS_PROCESS = True

SOFTMAX = "level_0_kernel/softmax_4x16_fp32.py"
STEP = "steps/step_1_conv_relu_to_kernel"


@pytest.fixture
def forwards(monkeypatch):
    """Counts forwards by what they are of."""
    counted: Counter[str] = Counter()
    forward = ForwardRunner.forward

    def counting(self, what, *args, **kwargs):
        counted[what.partition(": ")[0]] += 1
        return forward(self, what, *args, **kwargs)

    monkeypatch.setattr(ForwardRunner, "forward", counting)
    monkeypatch.setattr("runner.verify.gates.health.QUICK_FLOPS", 0)
    return counted


def test_the_root_runs_once_a_trial_for_its_self_test_its_step_and_the_composition(
    fusion, judged, forwards
):
    assert judged(fusion, trials=1).status == "passed"

    assert forwards["level_1_fusion/conv_relu.py"] == 1
    assert forwards["original.py"] == 1
    assert forwards[f"{STEP}/refactored.py"] == 1
    assert forwards["verification/composition_test.py"] == 1


def test_a_root_that_draws_other_inputs_than_the_author_runs_on_its_own_as_well(
    fusion, judged, forwards
):
    for path in ("level_1_fusion/conv_relu.py", f"{STEP}/original.py"):
        fusion.edit(path, "[torch.randn(2, 3, 8, 8)]", "[torch.rand(2, 3, 8, 8)]")

    assert judged(fusion, trials=1).status == "passed"
    assert forwards["level_1_fusion/conv_relu.py"] == 2


def test_a_root_that_fails_on_its_own_inputs_fails_its_self_test(fusion, judged, complaints):
    for path in ("level_1_fusion/conv_relu.py", f"{STEP}/original.py"):
        fusion.edit(path, "[torch.randn(2, 3, 8, 8)]", "[torch.full((2, 3, 8, 8), torch.nan)]")

    said = complaints(judged(fusion), "self-test")["level_1_fusion/conv_relu.py"]

    assert "gives NaN or infinity" in said


def test_the_step_of_a_root_is_judged_if_the_original_fails(fusion, judged, complaints):
    fusion.write("original.py", "raise RuntimeError('not here')\n")
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.relu(x) + 1e-3")

    verification = judged(fusion)

    assert "differs by" in complaints(verification, "step")[STEP]
    assert complaints(verification, "composition")["model"].startswith("broken")


def test_a_kernel_that_its_step_runs_is_not_run_again(fusion, judged, forwards):
    verification = judged(fusion, trials=1)

    tested = {check.component for check in verification.gate("self-test").checks}
    assert {"level_0_kernel/conv2d.py", "level_0_kernel/relu.py"} <= tested
    assert not [file for file in forwards if file.startswith("level_0")]


def test_each_level_runs_once_in_the_model_and_no_part_by_itself(model, judged, forwards):
    verification = judged(model, trials=1)

    assert verification.status == "passed"
    assert {coverage.component for coverage in verification.coverage} == {
        "model",
        *(check.component for check in verification.gate("step").checks),
    }
    assert {file: n for file, n in forwards.items() if file != "original.py"} == {
        "level_3_model/model_fp32.py": 1,
        "steps/step_1_model_to_layer/refactored.py": 1,
        "steps/step_2_block_to_fusion/refactored.py": 1,
        "steps/step_3_linear_relu_to_kernel/refactored.py": 1,
        "verification/composition_test.py": 1,
    }


def test_a_kernel_that_may_give_nan_for_other_numbers_runs_by_itself(fusion, judged, forwards):
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.relu(x) / (x * 0 + 1)")

    judged(fusion, trials=1)

    assert forwards["level_0_kernel/relu.py"] == 1
    assert forwards["level_0_kernel/conv2d.py"] == 0


@pytest.mark.parametrize("name", ["relu_2x5x8_fp32.py", "block_8_fp32.py"])
def test_a_part_whose_own_inputs_are_nan_fails_its_self_test(model, judged, complaints, name):
    model.edit_everywhere(name, "[torch.randn(2, 5, 8)]", "[torch.full((2, 5, 8), torch.nan)]")
    block = model.read("level_2_layer/block_8_fp32.py")
    model.write("steps/step_2_block_to_fusion/original.py", block)

    (said,) = complaints(judged(model, trials=1), "self-test").values()

    assert "gives NaN or infinity" in said


def test_a_problem_that_is_one_kernel_runs_it_once(softmax, judged, forwards):
    verification = judged(softmax, trials=1)

    assert verification.status == "passed"
    assert verification.gate("self-test").verdict == "passed"
    assert forwards["original.py"] == forwards["verification/composition_test.py"] == 1
    assert forwards[SOFTMAX] == 0


def test_one_that_draws_something_else_than_the_author_runs_by_itself(softmax, judged, forwards):
    softmax.edit(SOFTMAX, "torch.rand(", "torch.randn(")

    assert judged(softmax, trials=1).status == "passed"
    assert forwards[SOFTMAX] == 1


def test_one_that_is_made_wrong_runs_by_itself(softmax, judged, forwards):
    assert judged(softmax, trials=1, power=True).status == "passed"
    assert forwards[SOFTMAX] == 1


def test_one_that_runs_once_may_keep_nothing_for_its_next_call(softmax, judged, complaints):
    body = "return torch.softmax(x, dim=1)"
    keeping = "Model.kept = torch.softmax(x, dim=1)\n        return Model.kept"
    softmax.edit(SOFTMAX, body, keeping)

    said = complaints(judged(softmax, trials=1), "rules")[SOFTMAX]

    assert said == "failed: keeps a tensor that it computed for its next call"


def test_a_witnessed_kernel_is_held_to_what_it_documents(fusion, judged, complaints):
    fusion.edit_everywhere("conv2d.py", "return [(2, 4, 6, 6)]", "return [(2, 4, 6, 5)]")

    said = complaints(judged(fusion), "self-test")["level_0_kernel/conv2d.py"]

    assert "get_expected_output_shape() says [2, 4, 6, 5]" in said


def test_a_witness_takes_nothing_from_the_numbers_that_the_parent_draws(fusion, judged):
    for name in ("original.py", "conv2d.py", "conv_relu.py"):
        fusion.edit_everywhere(name, "self.conv(x)", "self.conv(F.dropout(x, 0.5, True))")
    fusion.edit("original.py", "import torch\n", "import torch\nimport torch.nn.functional as F\n")
    digest = hashlib.sha256(fusion.read("original.py").encode()).hexdigest()
    fusion.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))

    verification = judged(fusion)

    verdicts = [verification.gate(gate).verdict for gate in ("self-test", "step", "composition")]
    assert verdicts == ["passed"] * 3  # the rules have it that this kernel is two
    assert verification.bitwise_equal is True
