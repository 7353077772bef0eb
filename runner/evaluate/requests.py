"""Defines what the command sends to its child processes, and what they answer.

The command imports this module, so it imports no torch.
"""

from pathlib import Path

from pydantic import Field

from runner.store.evaluation import Evaluation
from runner.store.result import Document


class EvaluationRequest(Document):
    """The argument of `evaluate_in_child`."""

    directory: Path
    solutions: Path
    names: list[str] = Field(default_factory=list)
    """The only solutions to evaluate; all if empty."""
    compiled: bool = True
    """Whether torch.compile of the components and of the model is measured, too."""
    measured: bool = True
    """Whether anything is measured."""
    in_model: bool = True
    """Whether the whole model with the solutions is judged and measured, too."""
    threads: int = 1
    timeout_s: float = 1800.0
    """Time after which the child is ended; what cannot be measured before is left out."""
    progress: Path | None = None
    """File that gets a line whenever another part of the work begins."""


class EvaluationAnswer(Document):
    """The answer of `evaluate_in_child`."""

    evaluation: Evaluation | None = None
    """Absent if no solution is for this decomposition."""
    text: str | None = None
    """The problem with all right solutions in it; absent if that is not right."""
    error: str | None = None


class SolverFacts(Document):
    """The values at a component's places, a line for each tensor."""

    lines: list[str]
    error: str | None = None


class SolverRequest(Document):
    """The argument of `collect_facts_in_child`."""

    directory: Path
    component: str
    threads: int
