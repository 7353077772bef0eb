"""Where models come from: one problem file, selecting them, fetching and checking the dataset."""

from runner.problems.dataset import CheckReport, FetchReport, check, fetch
from runner.problems.loading import (
    LoadedProblem,
    author_code,
    author_error,
    check_outputs,
    load_problem,
    out_of_memory,
    seed,
)
from runner.problems.problem import Problem, idea, identify, read_problem
from runner.problems.selection import KERNELBENCH, DataRoot, data_root, select
from runner.problems.structure import members, plain

__all__ = [
    "KERNELBENCH",
    "CheckReport",
    "DataRoot",
    "FetchReport",
    "LoadedProblem",
    "Problem",
    "author_code",
    "author_error",
    "check",
    "check_outputs",
    "data_root",
    "fetch",
    "idea",
    "identify",
    "load_problem",
    "members",
    "out_of_memory",
    "plain",
    "read_problem",
    "seed",
    "select",
]
