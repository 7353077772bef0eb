"""This file knows about formulas: how authors spell the operations of the field in primitives."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runner.graph.flow import Flow

if TYPE_CHECKING:
    from runner.graph.recognize import Candidate


def formulas(flow: Flow) -> Iterator["Candidate"]:
    """Places where the program spells a formula."""
    yield from ()
