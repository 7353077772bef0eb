"""What the original does at one place excuses nothing at another one."""

import hashlib

import decompositions
import pytest
from attacks import Attacks, assert_caught
from decompositions_of_expressions import line, lone
from verdicts import assert_passes

pytestmark = pytest.mark.long

SIGMOID_TANH = ("sigmoid_tanh", "", "torch.tanh(torch.sigmoid(x))")
TANH_SIGMOID = ("tanh_sigmoid", "", "torch.sigmoid(torch.tanh(x))")
FUNCTION = "def squash(x):\n    x = torch.sigmoid(x)\n    return torch.tanh(x)\n\n\nclass Model"
READING = ("shift", "", "x - x[0, 0].item()")
RELU = ("relu", "", "torch.relu(x)")
ROWS = {"inputs": ("torch.randn(1024, 16)",), "shapes": ((1024, 16),), "output": (1024, 16)}
GATED = {
    "inputs": ("torch.randn(1024, 16)", "torch.randn(1, 16)"),
    "shapes": ((1024, 16), (1, 16)),
    "output": (1024, 16),
}
LINEAR = {"init": "self.op = nn.Linear(16, 16)", "weights": ("op.weight", "op.bias")}
PREPARED = {
    "the bias of a linear": (
        "F.linear(x, self.op.weight, (self.op.bias + 1) * 2)",
        ROWS | LINEAR,
    ),
    "the weight of a linear": ("F.linear(x, self.op.weight * 2 + 1, self.op.bias)", ROWS | LINEAR),
    "a bias out of an input": (
        "F.linear(x, self.op.weight, (torch.tanh(y[0]) + self.op.bias) * 2)",
        GATED | LINEAR,
    ),
    "a factor out of a small input": ("x * torch.relu(y * 2 + 1)", GATED),
    "a summand out of a small input": ("x + torch.relu(torch.tanh(torch.exp(y)))", GATED),
}


@pytest.mark.parametrize("name", PREPARED)
def test_operations_that_prepare_a_small_operand_are_told(name, tmp_path, judged, complaints):
    expression, options = PREPARED[name]

    said = complaints(judged(lone(tmp_path / "made", expression, **options), trials=1), "rules")

    assert "is more than one operation" in said["level_0_kernel/kernel.py"]


def with_function(made, *calls):
    """Let the original call a function of its author in the place of some expressions."""
    text = made.read("original.py").replace("class Model", FUNCTION)
    for call in calls:
        assert call in text
        text = text.replace(call, "squash(x)")
    made.write("original.py", text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))
    return made


def test_the_operations_of_an_authors_function_may_be_a_kernel(tmp_path, judged):
    made = line(tmp_path / "made", [SIGMOID_TANH, RELU])

    assert_passes(judged(with_function(made, SIGMOID_TANH[2]), trials=1))


def test_the_same_operations_in_another_order_are_told(tmp_path, judged, complaints):
    made = line(tmp_path / "made", [SIGMOID_TANH, TANH_SIGMOID])

    said = complaints(judged(with_function(made, SIGMOID_TANH[2]), trials=1), "rules")

    assert "is more than one operation" in said["level_0_kernel/tanh_sigmoid.py"]


def test_a_kernel_across_two_calls_of_the_function_is_told(tmp_path, judged, complaints):
    stages = [("sigmoid", "", "torch.sigmoid(x)"), TANH_SIGMOID, ("tanh", "", "torch.tanh(x)")]
    made = line(tmp_path / "made", stages)
    text = "\n        ".join(f"x = {expression}" for _, _, expression in stages)
    made.edit("original.py", text, "for _ in range(2):\n            x = squash(x)")

    said = complaints(judged(with_function(made), trials=1), "rules")

    assert "is more than one operation" in said["level_0_kernel/tanh_sigmoid.py"]


SQUASHED = "torch.tanh(torch.sigmoid(x))"
LONG = f"torch.sin({'torch.cos(torch.sin(' * 8}x{'))' * 8})"


@pytest.mark.parametrize(
    ("function", "kernel", "loop"),
    [
        (SQUASHED, f"torch.tanh(torch.sigmoid({SQUASHED}))", "for _ in range(2):\n            "),
        (LONG, LONG, ""),
    ],
    ids=["all turns of a loop", "a function of 17 operations"],
)
def test_a_kernel_may_be_one_call_of_a_small_function(
    function, kernel, loop, tmp_path, judged, complaints
):
    made = line(tmp_path / "made", [("part", "", kernel), RELU])
    made.edit("original.py", f"x = {kernel}", f"{loop}x = squash(x)")
    text = made.read("original.py").replace("class Model", FUNCTION).replace(SQUASHED, function)
    made.write("original.py", text)

    said = complaints(judged(with_function(made), trials=1), "rules")

    assert "is more than one operation" in said["level_0_kernel/part.py"]


OTHER_ADDITIONS = {
    "a second bias": ("self.op(x) + self.extra", "True"),
    "something else": ("(self.op(x), y + self.extra)", "False"),
}


@pytest.mark.parametrize("name", OTHER_ADDITIONS)
def test_an_addition_belongs_to_a_contraction_only_as_its_bias(name, tmp_path, judged, complaints):
    expression, bias = OTHER_ADDITIONS[name]
    init = f"self.op = nn.Linear(16, 16, bias={bias})\nself.extra = nn.Parameter(torch.rand(16))"
    two = (
        {"inputs": ("torch.randn(4, 16)",) * 2, "shapes": ((4, 16),) * 2}
        if "y" in expression
        else {}
    )
    made = lone(tmp_path, expression, init=init, weights=("op.weight", "extra"), **two)

    said = complaints(judged(made, trials=1), "rules")

    assert "is more than one operation" in said["level_0_kernel/kernel.py"]


def test_values_may_be_read_where_the_original_reads_them(tmp_path, judged):
    assert_passes(judged(line(tmp_path / "made", [READING, RELU]), trials=1))


@pytest.mark.parametrize("value", ["x.flatten()[0].item()", "x[0].tolist()[0]"])
def test_values_may_not_be_read_elsewhere(value, tmp_path, judged, complaints):
    made = line(tmp_path / "made", [READING, RELU])
    made.edit_everywhere(
        "relu.py", "return torch.relu(x)", f"return torch.relu(x) if {value} != 0.5 else x"
    )

    said = complaints(judged(made, trials=1), "rules")

    assert said["level_0_kernel/relu.py"] == (
        "failed: reads values at level_0_kernel/relu.py:14 that original.py does not read there:"
        " compute on tensors there"
    )


SIZES = Attacks()


@SIZES.blame("level_1_fusion/linear_relu_8x8_fp32.py", make=decompositions.small_model)
def takes_other_sizes_because_the_original_reads_values(made):
    """A tree for certain values may differ in sizes, but not in the model itself."""
    forward = "    def forward(self, x, scale=None):\n"
    made.edit("original.py", forward, f"{forward}        x[0, 0, 0].item()\n")
    digest = hashlib.sha256((made.directory / "original.py").read_bytes()).hexdigest()
    for path in made.directory.rglob("*.py"):
        text = path.read_text()
        if "return torch.relu(self.linear(x))" in text:
            drawn = text.replace("torch.randn(2, 5, 8)", "torch.randn(7, 5, 8)")
            path.write_text(drawn.replace("(2, 5, 8)", "(7, 5, 8)"))

    def change(tree):
        tree["metadata"].update(specialisations=["x[0, 0, 0]"], source_sha256=digest)
        for node in tree["nodes"].values():
            if "linear_relu" in node["path"]:
                node.update(input_shapes={"x0": [7, 5, 8]}, output_shapes={"y0": [7, 5, 8]})

    made.edit_tree(change)


@pytest.mark.parametrize("attack", SIZES, ids=str)
def test_it_is_caught(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path)), attack)
