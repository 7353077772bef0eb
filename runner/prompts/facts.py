"""Holds the facts of a problem: the operations of its program, at their exact shapes.

A person or agent who decomposes the problem by hand needs them. Equal operations are merged into
one fact with all their places. If the program could not be captured, the facts hold the module
calls of a plain run instead of operations.
"""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict


class _FactsDocument(BaseModel):
    """Base of the facts: frozen, without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TensorFacts(_FactsDocument):
    """Name, shape, dtype and strides of a tensor."""

    name: str = ""
    """Argument of a model's input, path of a weight below the operation's module; else ""."""
    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None
    """Strides in elements; present exactly if the tensor is not contiguous."""


class Fact(_FactsDocument):
    """One operation or module call, together with all equal ones."""

    name: str
    """Usual name of the operation, `conv2d` or `rms_norm`; class of a called module."""
    spelling: str = ""
    """Primitives that the operation consists of, or the arguments of the module, as text."""
    inputs: tuple[TensorFacts, ...]
    weights: tuple[TensorFacts, ...] = ()
    outputs: tuple[TensorFacts, ...]
    places: tuple[str, ...]
    """Module path of each instance, in execution order; "" for the model itself."""
    lines: tuple[int, ...] = ()
    """Lines of the problem file that compute the operation."""


class Facts(_FactsDocument):
    """Facts of a problem's program as a whole."""

    capture: Literal["fake", "real_parameters", "concrete"] | None
    """Capture strategy that worked; None if none did."""
    reason: str | None = None
    """Reason why the program could not be captured; present exactly if it was not."""
    inputs: tuple[TensorFacts, ...] = ()
    outputs: tuple[TensorFacts, ...] = ()
    operations: tuple[Fact, ...] = ()
    """Operations, in the order in which the first instance of each runs."""
    calls: tuple[Fact, ...] = ()
    """Calls of modules in a plain run; empty if the program was captured."""
    states: int = 0
    """Number of parameters and buffers."""
    unused: tuple[str, ...] = ()
    """Names of the parameters and buffers that no operation reads."""
    specialisations: tuple[str, ...] = ()
    """Sentences on where input values decided the course of the program."""
    peak_bytes: int | None = None
    """Bytes resident at the worst moment of one forward pass; None if not captured."""


def merge_equal(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts with equal ones merged, in the order of the first of each."""
    facts_by_content: dict[Fact, list[Fact]] = {}
    for fact in facts:
        content = fact.model_copy(update={"places": (), "lines": ()})
        facts_by_content.setdefault(content, []).append(fact)
    return tuple(
        content.model_copy(
            update={
                "places": tuple(place for fact in facts for place in fact.places),
                "lines": tuple(sorted({line for fact in facts for line in fact.lines})),
            }
        )
        for content, facts in facts_by_content.items()
    )
