"""What the tests of the tree share: a problem file's head, and a way to say what came out."""

from collections.abc import Callable

from runner.tree.interface import Program
from runner.tree.part import Part

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
Apart = Callable[..., tuple[Program, Part]]


def outline(part: Part) -> object:
    """A part as nested text: `conv2d` for a kernel, `("fusion", "conv2d", "relu")` for more."""
    if not part.children:
        return part.stem
    return (part.level, *(outline(child) for child in part.children))
