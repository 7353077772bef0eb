"""Equal children that run one after the other are a list and a loop."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence

from runner.emit.naming.value_names import unique
from runner.tree.part import Part

SHORTEST_LOOP = 3
_OURS = {"block", "stage", "step"}
"""What the partition calls blocks for which the author has no name."""
_NUMBER = re.compile(r"(?:_|(?<![x\d_]))\d+$")


def carried(first: Part, second: Part) -> str:
    """The value that the first call of a loop takes where the second takes the first's result."""
    (place,) = places(first.io.outputs[0], second)
    return first.io.inputs[place]


def places(name: str, part: Part) -> list[int]:
    """Which of a part's inputs a value is."""
    return [k for k, given in enumerate(part.io.inputs) if given == name]


def continues(run: Sequence[Part], part: Part, uses: Mapping[str, int]) -> bool:
    """Whether a part does to the last one's result what that did to the one before."""
    before = run[-1]
    (made,) = before.io.outputs
    where = places(made, part)
    if len(where) != 1 or uses.get(made) != 1 or len(before.io.inputs) != len(part.io.inputs):
        return False
    pairs = enumerate(zip(before.io.inputs, part.io.inputs, strict=True))
    same = all(a == b for k, (a, b) in pairs if k not in where)
    return same and (len(run) == 1 or places(run[-2].io.outputs[0], before) == where)


def without_number(attribute: str) -> str:
    """`step` of `step_0`."""
    return _NUMBER.sub("", attribute) or attribute


def common_stem(attributes: Sequence[str]) -> str:
    """`layers` of `layers_0`, `layers_1`; `blocks` of `block1`, `block2`."""
    stems = {_NUMBER.sub("", a) for a in attributes}
    stem = stems.pop() if len(stems) == 1 else "blocks"
    numbered = all(a != stem and a[len(stem) : len(stem) + 1] == "_" for a in attributes)
    several = stem.endswith("s") or (numbered and stem not in _OURS)
    return stem if several else f"{stem}s"


def one_of(several: str, taken: Container[str]) -> str:
    """A loop's variable: `layer` for `layers`."""
    last = several.rpartition("_")[2]
    return unique(last[:-1] if last.endswith("s") and len(last) > 3 else "block", taken)
