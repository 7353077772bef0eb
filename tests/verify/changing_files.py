"""Where the hand-written convolution and ReLU have their files, and ways to change those."""

from decompositions import Decomposition

COMPOSED = "verification/composition_test.py"
STEP = "steps/step_1_conv_relu_to_kernel"
REFACTORED = f"{STEP}/refactored.py"
TREE = "decomposition_tree.json"
CONV = "level_0_kernel/conv2d.py"
RELU = "level_0_kernel/relu.py"
FUSION = "level_1_fusion/conv_relu.py"

RIGHT = "return F.relu(x)"
"""What the ReLU's forward holds."""


def at_import(made: Decomposition, text: str, name: str = "relu.py") -> None:
    """Put statements before the class of every copy of a kernel file."""
    made.edit_everywhere(name, "class Model", f"{text}\n\n\nclass Model")


def in_forward(made: Decomposition, text: str, name: str = "relu.py") -> None:
    """Put statements in the place of what a kernel's forward returns."""
    forward = RIGHT if name == "relu.py" else "return self.conv(x)"
    made.edit_everywhere(name, forward, text.replace("\n", "\n        "))
