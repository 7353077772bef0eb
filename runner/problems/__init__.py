"""Reads, selects and runs problem files, and fetches and checks the KernelBench dataset."""

from runner.problems.author_errors import author_code, author_error, is_out_of_memory
from runner.problems.constants import NamedLiterals
from runner.problems.dataset import check_dataset, fetch_dataset, find_dataset_level
from runner.problems.input_language import InputExpression, parse_inputs
from runner.problems.loading import (
    LoadedProblem,
    check_inputs,
    check_outputs,
    find_tensors,
    load_problem,
    seed,
)
from runner.problems.nested_values import fill_objects, members, to_plain_containers
from runner.problems.package_model import (
    find_problem,
    problem_text,
    resolve_problem_file,
    suggest_init,
    write_target_problems,
)
from runner.problems.package_targets import is_target
from runner.problems.packages import (
    find_operator_module,
    import_installed,
    imported_packages,
    is_checkout,
    is_importable,
    package_identity,
    path_within_package,
)
from runner.problems.problem import (
    Problem,
    find_mistake,
    find_path,
    identify_problem,
    read_problem,
    summarize_problem,
    write_problem_file,
)
from runner.problems.selection import (
    KERNELBENCH,
    DataRoot,
    data_root,
    describe_origin,
    find_labels,
    natural_sort_key,
    select_problem,
    select_problems,
)
from runner.problems.variants import (
    FOLDER,
    ProblemVariant,
    VariantChoice,
    choose_variants,
    problem_constants,
    read_variant,
    write_choice,
    write_one_variant,
)

__all__ = [
    "FOLDER",
    "KERNELBENCH",
    "DataRoot",
    "InputExpression",
    "LoadedProblem",
    "NamedLiterals",
    "Problem",
    "ProblemVariant",
    "VariantChoice",
    "author_code",
    "author_error",
    "check_dataset",
    "check_inputs",
    "check_outputs",
    "choose_variants",
    "data_root",
    "describe_origin",
    "fetch_dataset",
    "fill_objects",
    "find_dataset_level",
    "find_labels",
    "find_mistake",
    "find_operator_module",
    "find_path",
    "find_problem",
    "find_tensors",
    "identify_problem",
    "import_installed",
    "imported_packages",
    "is_checkout",
    "is_importable",
    "is_out_of_memory",
    "is_target",
    "load_problem",
    "members",
    "natural_sort_key",
    "package_identity",
    "parse_inputs",
    "path_within_package",
    "problem_constants",
    "problem_text",
    "read_problem",
    "read_variant",
    "resolve_problem_file",
    "seed",
    "select_problem",
    "select_problems",
    "suggest_init",
    "summarize_problem",
    "to_plain_containers",
    "write_choice",
    "write_one_variant",
    "write_problem_file",
    "write_target_problems",
]
