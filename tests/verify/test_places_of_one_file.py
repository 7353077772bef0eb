"""A file does at each of its places in the model what it does by itself, or it is told."""

import json

from changing_files import COMPOSED, REFACTORED, in_forward
from changing_files import STEP as FUSION_STEP
from decompositions_of_expressions import LINEAR, RELU, TANH, line, lone
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from verdicts import assert_passes

from runner.verify.guard.retained_state import describe_settings

LEAKY = "level_0_kernel/leaky.py"
PLAIN_INIT = "def __init__(self):\n        super().__init__()\n        pass"
STEP = "steps/step_1_whole_to_kernel/refactored.py"


def leaky_with_slope(directory, alone):
    """A line of kernels of which one takes its slope from its parent, which gives 0.01."""
    made = line(directory, [LINEAR, ("leaky", "", "F.leaky_relu(x, 0.01)"), TANH])
    init = f"def __init__(self, slope={alone}):\n        super().__init__()\n"
    made.edit_everywhere("leaky.py", PLAIN_INIT, f"{init}        self.slope = slope")
    made.edit_everywhere("leaky.py", "F.leaky_relu(x, 0.01)", "F.leaky_relu(x, self.slope)")
    for file in (STEP, COMPOSED):
        made.edit(file, "Leaky()", "Leaky(0.01)")
    return made


def test_another_attribute_than_by_itself_is_told(tmp_path, judged, complaints):
    said = complaints(judged(leaky_with_slope(tmp_path / "made", 0.9), trials=1), "rules")

    assert said[LEAKY] == (
        "failed: runs leaky_relu(negative_slope=0.01) in the model,"
        " leaky_relu(negative_slope=0.9) by itself"
    )


def test_an_argument_that_is_no_tensor_is_told(fusion, judged, complaints):
    fusion.edit_everywhere("relu.py", "def forward(self, x)", "def forward(self, x, sure=False)")
    in_forward(fusion, "return F.relu(x if sure else x.transpose(2, 3))")
    for file in (REFACTORED, COMPOSED):
        fusion.edit(file, "return self.relu(x)", "return self.relu(x, True)")

    said = complaints(judged(fusion, trials=1), "rules")

    assert said["level_0_kernel/relu.py"] == (
        "failed: is called with True in the model, get_inputs() gives tensors alone"
    )


def test_weights_of_another_shape_than_by_itself_are_told(fusion, judged, complaints):
    fusion.edit_everywhere("conv2d.py", "def __init__(self)", "def __init__(self, size=1)")
    fusion.edit_everywhere(
        "conv2d.py", "kernel_size=3", "kernel_size=size, padding=(size - 3) // 2"
    )
    for file in (REFACTORED, COMPOSED):
        fusion.edit(file, "Conv2d()", "Conv2d(3)")

    said = complaints(judged(fusion, trials=1), "self-test")

    assert "conv2d" in " ".join(said)


def test_a_weight_that_its_own_kernel_ignores_is_told(fusion, judged, complaints):
    extra = "        self.extra = nn.Parameter(torch.zeros(4, 3, 3, 3))\n\n    def forward"
    fusion.edit_everywhere("relu.py", "        pass\n\n    def forward", extra)
    names = {"conv.weight": ["conv.conv.weight", "relu.extra"], "conv.bias": "conv.conv.bias"}
    fusion.write(f"{FUSION_STEP}/weight_map.json", json.dumps(names))
    fusion.edit(COMPOSED, "'conv.conv.bias'", "'relu.extra': 'conv.weight', 'conv.conv.bias'")

    said = complaints(judged(fusion, trials=1), "weights")

    assert said["level_0_kernel/relu.py"] == (
        "failed: its extra reaches no output of its own, the original's conv.weight does"
    )


def test_an_input_that_its_kernel_ignores_is_told(tmp_path, judged, complaints):
    inputs, shapes = ("torch.randn(4, 16)",) * 2, ((4, 16),) * 2
    made = lone(tmp_path / "made", "torch.relu(x)", inputs=inputs, shapes=shapes)

    said = complaints(judged(made, trials=1), "rules")

    assert said["level_0_kernel/kernel.py"] == (
        "failed: its input 2 reaches no output: write its sizes as numbers"
    )


def test_an_input_may_give_its_shape_alone(tmp_path, judged):
    inputs, shapes = ("torch.randn(4, 16)",) * 2, ((4, 16),) * 2
    expression = "torch.maximum(x, torch.zeros_like(y))"
    made = lone(tmp_path / "made", expression, inputs=inputs, shapes=shapes)

    assert_passes(judged(made, trials=1))


def test_a_kernel_that_writes_into_its_input_is_told(tmp_path, judged, complaints):
    made = line(tmp_path / "made", [RELU, LINEAR])
    made.edit_everywhere("relu.py", "torch.relu(x)", "torch.relu_(x)")

    said = complaints(judged(made, trials=1), "rules")

    assert said["level_0_kernel/relu.py"] == (
        "failed: writes into its input (relu) at level_0_kernel/relu.py:14, the original does not"
    )


def test_models_of_one_file_may_have_hooks_of_torchs():
    """Torch numbers the hooks of all modules, so that no two models have the same number."""
    normed, again = (weight_norm(nn.Linear(4, 4)) for _ in range(2))

    assert describe_settings(normed) == describe_settings(again)
    assert describe_settings(normed) != describe_settings(nn.Linear(4, 4))
