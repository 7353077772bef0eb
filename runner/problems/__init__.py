"""Reads, selects and runs problem files, and fetches and checks the KernelBench dataset."""

from runner.problems.author_errors import author_code, describe_author_error, is_out_of_memory
from runner.problems.dataset import CheckReport, FetchReport, check, fetch, find_dataset_level
from runner.problems.loading import (
    LoadedProblem,
    check_inputs,
    check_outputs,
    load_problem,
    seed,
)
from runner.problems.nested_values import members, plain
from runner.problems.package_model import (
    example_of_init,
    find_problem,
    problem_file,
    problem_files,
)
from runner.problems.package_targets import is_target
from runner.problems.packages import imported_packages, is_checkout, known_as, within_package
from runner.problems.problem import (
    Problem,
    find_mistake,
    find_path,
    idea,
    identify,
    read_problem,
)
from runner.problems.selection import (
    KERNELBENCH,
    DataRoot,
    data_root,
    find_labels,
    origin,
    select,
)

__all__ = [
    "KERNELBENCH",
    "CheckReport",
    "DataRoot",
    "FetchReport",
    "LoadedProblem",
    "Problem",
    "author_code",
    "check",
    "check_inputs",
    "check_outputs",
    "data_root",
    "describe_author_error",
    "example_of_init",
    "fetch",
    "find_dataset_level",
    "find_labels",
    "find_mistake",
    "find_path",
    "find_problem",
    "idea",
    "identify",
    "imported_packages",
    "is_checkout",
    "is_out_of_memory",
    "is_target",
    "known_as",
    "load_problem",
    "members",
    "origin",
    "plain",
    "problem_file",
    "problem_files",
    "read_problem",
    "seed",
    "select",
    "within_package",
]
