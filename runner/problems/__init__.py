"""Where models come from: one problem file, selecting them, fetching and checking the dataset."""

from runner.problems.loading import (
    LoadedProblem,
    author_code,
    author_error,
    check_outputs,
    load_problem,
    out_of_memory,
)
from runner.problems.problem import Problem, idea, identify, read_problem

__all__ = [
    "LoadedProblem",
    "Problem",
    "author_code",
    "author_error",
    "check_outputs",
    "idea",
    "identify",
    "load_problem",
    "out_of_memory",
    "read_problem",
]
