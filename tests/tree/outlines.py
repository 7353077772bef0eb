"""What the tests of the tree share: a problem file's head, and a way to say what came out."""

from collections.abc import Callable
from itertools import groupby

from runner.tree.interface import Program
from runner.tree.part import Part

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
Apart = Callable[..., tuple[Program, Part]]


def outline(part: Part) -> object:
    """A part as nested text: `conv2d` for a kernel, `("fusion", "conv2d", "relu")` for more."""
    if not part.children:
        return part.stem
    return (part.level, *(outline(child) for child in part.children))


def drawn(root: Part) -> str:
    """A tree as people would write it down: a line a part, equal neighbours counted once."""
    return "\n".join(_lines(root))


def _lines(part: Part) -> list[str]:
    if not part.children:
        return [part.stem]
    if part.level == "fusion":
        return [f"{part.stem}: {', '.join(child.stem for child in part.children)}"]
    blocks = [(text, len(list(same))) for text, same in groupby(map(_lines, part.children))]
    counted = [_counted(text, times) for text, times in blocks]
    inside = [f"  {line}" for lines in counted for line in lines]
    return [f"{part.stem} ({part.level})", *inside]


def _counted(lines: list[str], times: int) -> list[str]:
    return [f"{times} x {lines[0]}", *lines[1:]] if times > 1 else lines
