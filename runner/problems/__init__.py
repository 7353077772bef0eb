"""Reads, selects and runs problem files, and fetches and checks the KernelBench dataset."""

from runner.problems.author_errors import author_code, author_error, is_out_of_memory
from runner.problems.dataset import find_dataset_level
from runner.problems.input_language import InputExpression
from runner.problems.loading import (
    LoadedProblem,
    check_inputs,
    check_outputs,
    find_tensors,
    load_problem,
    seed,
)
from runner.problems.nested_values import fill_objects, members, to_plain_containers
from runner.problems.packages import (
    find_operator_module,
    import_installed,
    imported_packages,
    is_checkout,
    package_identity,
    path_within_package,
)
from runner.problems.problem import Problem, identify_problem, read_problem
from runner.problems.selection import data_root, find_labels, natural_sort_key, select_problems
from runner.problems.variants import ProblemVariant, read_variant

__all__ = [
    "InputExpression",
    "LoadedProblem",
    "Problem",
    "ProblemVariant",
    "author_code",
    "author_error",
    "check_inputs",
    "check_outputs",
    "data_root",
    "fill_objects",
    "find_dataset_level",
    "find_labels",
    "find_operator_module",
    "find_tensors",
    "identify_problem",
    "import_installed",
    "imported_packages",
    "is_checkout",
    "is_out_of_memory",
    "load_problem",
    "members",
    "natural_sort_key",
    "package_identity",
    "path_within_package",
    "read_problem",
    "read_variant",
    "seed",
    "select_problems",
    "to_plain_containers",
]
