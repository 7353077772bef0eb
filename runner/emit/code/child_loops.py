"""Finds and names loops over equal children that run one after the other."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence

from runner.emit.naming.value_names import make_unique
from runner.tree.part import Part

SHORTEST_LOOP = 3
"""Fewest turns that are written as a loop."""
_PARTITION_NAMES = {"block", "stage", "step"}
"""Names that the partition gives to blocks for which the author has none."""
_NUMBER = re.compile(r"(?:_|(?<![x\d_]))\d+$")


def carried_input(first: Part, second: Part) -> str:
    """Return the first call's input at the position where the second takes the first's result."""
    (position,) = input_positions(first.io.outputs[0], second)
    return first.io.inputs[position]


def input_positions(name: str, part: Part) -> list[int]:
    """Return the positions that a value has among a part's inputs."""
    return [position for position, input_name in enumerate(part.io.inputs) if input_name == name]


def continues_loop(run: Sequence[Part], part: Part, uses: Mapping[str, int]) -> bool:
    """Return whether a part can be one more turn of a loop over the parts of `run`.

    It must read the result of the last one at the same position and be its only reader; all its
    other inputs must be the same. `uses`: how many times each value is read.
    """
    previous = run[-1]
    (result,) = previous.io.outputs
    positions = input_positions(result, part)
    if (
        len(positions) != 1
        or uses.get(result) != 1
        or len(previous.io.inputs) != len(part.io.inputs)
    ):
        return False
    pairs = enumerate(zip(previous.io.inputs, part.io.inputs, strict=True))
    same = all(a == b for position, (a, b) in pairs if position not in positions)
    return same and (len(run) == 1 or input_positions(run[-2].io.outputs[0], previous) == positions)


def strip_number(attribute: str) -> str:
    """Return the name without the number at its end: `step` for `step_0`."""
    return _NUMBER.sub("", attribute) or attribute


def common_stem(attributes: Sequence[str]) -> str:
    """Return a list's name: `layers` for `layers_0` and so on, `blocks` for `block1` and so on."""
    stems = {_NUMBER.sub("", a) for a in attributes}
    stem = stems.pop() if len(stems) == 1 else "blocks"
    numbered = all(a != stem and a[len(stem) : len(stem) + 1] == "_" for a in attributes)
    is_plural = stem.endswith("s") or (numbered and stem not in _PARTITION_NAMES)
    return stem if is_plural else f"{stem}s"


def loop_variable(list_name: str, taken_names: Container[str]) -> str:
    """Return a free name for the variable of a loop over a list: `layer` for `layers`."""
    noun = list_name.rpartition("_")[2]
    return make_unique(noun[:-1] if noun.endswith("s") and len(noun) > 3 else "block", taken_names)
