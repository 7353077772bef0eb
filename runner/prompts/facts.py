"""This file knows about the facts of a problem: what its program does, at which exact shapes.

They are what somebody needs who takes the problem apart by hand. Equal operations are one fact with
a count; where the program could not be written down, its modules' calls, seen in a plain run, stand
for its operations, and the facts say so.
"""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tensor(_Document):
    """A tensor without its numbers."""

    name: str = ""
    """Of an input the argument, of a weight its path in the module that holds the operation."""
    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None
    """In elements; present exactly where it is not contiguous."""


class Fact(_Document):
    """One operation, or one call of a module, with all that are equal to it."""

    name: str
    """What its field calls it: `conv2d`, `rms_norm`; of a module's call the class."""
    spelling: str = ""
    """The primitives that it consists of, with their attributes."""
    inputs: tuple[Tensor, ...]
    weights: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...]
    places: tuple[str, ...]
    """Module path of each instance, in the order in which they run; empty for the model's own."""
    lines: tuple[int, ...] = ()
    """Lines of the problem file that compute it."""


class Facts(_Document):
    """What is known about a problem's program."""

    capture: Literal["fake", "real_parameters", "concrete"] | None
    """The rung of capture that worked; None where none did."""
    reason: str | None = None
    """Why it could not be captured; present exactly where it was not."""
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    operations: tuple[Fact, ...] = ()
    """In the order in which the first of each runs."""
    calls: tuple[Fact, ...] = ()
    """Where there are no operations: the calls of its modules."""
    states: int = 0
    """Parameters and buffers."""
    unused: tuple[str, ...] = ()
    """Parameters and buffers that no operation reads."""
    specialisations: tuple[str, ...] = ()
    """Where values steered the program."""
    peak_bytes: int | None = None
    """Alive at the worst moment of one forward pass; None where that is not known."""


def equal_together(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts with equal ones as one, in the order of the first of each."""
    found: dict[Fact, list[Fact]] = {}
    for fact in facts:
        same = fact.model_copy(update={"places": (), "lines": ()})
        found.setdefault(same, []).append(fact)
    return tuple(
        same.model_copy(
            update={
                "places": tuple(place for fact in facts for place in fact.places),
                "lines": tuple(sorted({line for fact in facts for line in fact.lines})),
            }
        )
        for same, facts in found.items()
    )
