"""How often things run: nothing twice that once is enough for."""

from collections import Counter

import pytest

from runner.verify.running import Bench

STEP = "steps/step_1_conv_relu_to_kernel"


@pytest.fixture
def forwards(monkeypatch):
    """Counts forwards by what they are of."""
    counted: Counter[str] = Counter()
    forward = Bench.forward

    def counting(self, what, *args, **kwargs):
        counted[what.partition(": ")[0]] += 1
        return forward(self, what, *args, **kwargs)

    monkeypatch.setattr(Bench, "forward", counting)
    monkeypatch.setattr("runner.verify.health.BUDGET_S", 0.0)
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


def test_the_step_of_a_root_is_judged_where_the_original_cannot_run(fusion, judged, complaints):
    fusion.edit("original.py", "return self.relu(", "raise KeyError(")
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.relu(x) + 1e-3")

    verification = judged(fusion)

    assert "differs by" in complaints(verification, "step")[STEP]
    assert complaints(verification, "composition")["model"].startswith("broken")
