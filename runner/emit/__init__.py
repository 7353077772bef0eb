"""Writes a decomposition: component files, steps, the composition test and the analysis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.graph.ir import Mode
    from runner.problems import Problem
    from runner.tree.document import Tree


def decompose(problem: Problem, directory: Path, *, mode: Mode = "eval") -> Tree:
    """Decompose a problem and write everything but the verdicts into `directory`.

    The folder may exist. Runs the author's code, so call it in a disposable process.

    Raises:
        ProblemError: the author's code fails.
        CaptureError: the model runs, but its program could not be captured.
    """
    from runner.emit.decomposition import capture_graph, write_decomposition

    return write_decomposition(problem, capture_graph(problem, mode=mode), directory)
