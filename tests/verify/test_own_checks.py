"""A directory's own verification/checks.py: its tests may call it, and no verdict rests on it."""

STEP = "steps/step_1_conv_relu_to_kernel"
REFACTORED = f"{STEP}/refactored.py"
CHECKS = "verification/checks.py"
LOADING = (
    "import runpy\n"
    "from pathlib import Path\n"
    "CHECKS = runpy.run_path(str(Path(__file__).parents[2] / 'verification' / 'checks.py'))\n"
)


def test_a_step_may_load_the_checks(fusion, judged):
    fusion.write(CHECKS, "import torch\n")
    fusion.write(REFACTORED, LOADING + fusion.read(REFACTORED))

    assert judged(fusion, trials=1).first_failure is None


def test_checks_that_agree_with_everything_convince_nobody(fusion, judged, complaints):
    fusion.write(CHECKS, "def compare_with_parent(*_, **__):\n    pass\n")
    text = LOADING + fusion.read(REFACTORED)
    fusion.write(REFACTORED, text.replace("return self.relu(x)", "return x"))

    said = complaints(judged(fusion, trials=1), "step")

    assert "differs by" in said[STEP]


def test_checks_that_reach_for_torch_itself_reach_no_judge(fusion, judged, complaints):
    fusion.write(CHECKS, "import torch\ntorch.equal = lambda *_: True\n")
    text = LOADING + fusion.read(REFACTORED)
    fusion.write(REFACTORED, text.replace("return self.relu(x)", "return x"))

    assert "differs by" in complaints(judged(fusion, trials=1), "step")[STEP]
