"""Finds numbers that a component can take, where it gives NaN on such as arrive in the model.

A kernel that takes the logarithm of `1 - exp(x)` needs negative numbers, one that factorises a
matrix needs positive eigenvalues. What the program computes does not say so in general, so each
kind of number is tried.
"""

import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import torch

from runner.emit.decomposition import write
from runner.emit.draw import Tame
from runner.graph.ir import Graph
from runner.problems import Problem, seed
from runner.verify.leaves import all_finite, tensors


def write_again(problem: Problem, graph: Graph, directory: Path, bad: Iterable[str]) -> None:
    """Write a decomposition whose files `bad` draw the first kind of numbers that they can take."""
    found: dict[str, Tame] = {}
    left = set(bad)
    for tame in get_args(Tame):
        write(problem, graph, directory, {**dict.fromkeys(left, tame), **found})
        can = {file for file in left if _is_finite(directory / file)}
        found |= dict.fromkeys(can, tame)
        left -= can
        if not left:
            return
    write(problem, graph, directory, {**dict.fromkeys(left, get_args(Tame)[0]), **found})


def _is_finite(file: Path) -> bool:
    """Whether a component file of our own runs on what it draws, and gives numbers."""
    seed(0)
    try:
        with torch.no_grad():
            module = runpy.run_path(str(file))
            output = module["Model"]().eval()(*module["get_inputs"]())
    except (RuntimeError, ValueError, IndexError):
        return False
    return all(map(all_finite, tensors(output)))
