"""Checks that a problem runs and gives the same result twice, to tell its faults from kdrun's."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from runner.errors import ProblemError
from runner.problems import LoadedProblem, Problem, author_code, load_problem
from runner.problems.loading import seed_beside_torch
from runner.verify.gates.compare import COMPOSITION, compare
from runner.verify.options import VerifyOptions
from runner.verify.runtime.arithmetic import exact_arithmetic
from runner.verify.runtime.output_leaves import leaves
from runner.verify.runtime.runner import ForwardRunner, Inputs

_MAX_DESCRIBED = 4
"""Number of inputs that a message describes; the others are counted."""
_MAX_VALUE_LENGTH = 40


def raise_if_original_fails(problem: Problem, options: VerifyOptions) -> None:
    """Run a problem twice for each seed, as its author would: on a CPU, with its own weights.

    The file is loaded anew. No code of a directory that somebody else wrote may have run in this
    process before: it could make any problem fail.

    A third run has other random numbers from Python and numpy: a program that draws from these has
    no operator that draws. At last, the model and the inputs are made from a copy of the file.

    Raises:
        ProblemError: it fails, on the inputs that the message describes, or another run gives
            another result, or a copy of the file fails elsewhere.
    """
    runner = ForwardRunner(problem.path.parent, VerifyOptions(mode=options.mode, seed=options.seed))
    loaded_problem = load_problem(problem)
    for trial in range(options.trials):
        with exact_arithmetic("cpu"):
            first, second = (_run_problem(loaded_problem, runner, trial) for _ in range(2))
        difference = compare(first, second, COMPOSITION)
        if difference.reason:
            message = (
                "run twice with the same weights, inputs and random seed, forward() gives two "
                f"results: {difference.reason}"
            )
            hint = "make it repeatable: nothing can be shown to be equal to it"
            raise ProblemError(problem.path, message, hint=hint)
        with exact_arithmetic("cpu"):
            third = _run_problem(loaded_problem, runner, trial, reseeded=True)
        if reason := compare(first, third, COMPOSITION).reason:
            message = f"forward() draws random numbers that torch's seed does not set: {reason}"
            hint = "draw them with torch, not with Python's random or numpy.random"
            raise ProblemError(problem.path, message, hint=hint)
    _raise_if_copy_fails(problem)


def _raise_if_copy_fails(problem: Problem) -> None:
    with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
        copy = Path(shutil.copyfile(problem.path, Path(folder) / "original.py"))
        try:
            loaded_problem = load_problem(replace(problem, path=copy))
            loaded_problem.build()
            loaded_problem.get_inputs()
        except ProblemError as error:
            message = f"a copy of the file in another folder fails: {error.reason}"
            hint = "write into the file what it reads from files beside it"
            raise ProblemError(problem.path, message, hint=hint, line=error.line) from error


def _run_problem(
    loaded_problem: LoadedProblem, runner: ForwardRunner, trial: int, *, reseeded: bool = False
) -> object:
    """Return the output of one run; `reseeded`: forward() meets other seeds beside torch's."""
    runner.seed(trial)
    model = loaded_problem.build().train(runner.options.mode == "train")
    runner.seed(trial)
    args, kwargs = loaded_problem.get_inputs()
    # The inputs are described first, since forward() may write into them.
    description = describe_inputs((args, kwargs))
    runner.seed(trial)
    if reseeded:
        seed_beside_torch(runner.options.seed + trial + 1)
    try:
        with author_code(loaded_problem.problem), torch.no_grad():
            return model(*args, **kwargs)
    except ProblemError as error:
        message = (
            f"forward() fails on its own inputs ({description}; seed {runner.options.seed + trial})"
        )
        raise ProblemError(error.path, f"{message}: {error.reason}", line=error.line) from error


def describe_inputs(inputs: Inputs) -> str:
    """Return a description such as `int64[2, 5] from 3 to 97, mask=bool[2, 5]`."""
    args, kwargs = inputs
    descriptions = [_describe_value(leaf) for _, leaf in leaves(args)]
    descriptions += [
        f"{name}={_describe_value(leaf)}"
        for key in kwargs
        for name, leaf in leaves(kwargs[key], key)
    ]
    if not descriptions:
        return "none"
    suffix = (
        [f"{len(descriptions) - _MAX_DESCRIBED} more"] if len(descriptions) > _MAX_DESCRIBED else []
    )
    return ", ".join(descriptions[:_MAX_DESCRIBED] + suffix)


def _describe_value(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)[:_MAX_VALUE_LENGTH]
    kind = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if value.dtype is torch.bool:
        return kind
    ordered = value.float() if value.dtype.itemsize == 1 else value
    try:
        lowest, highest = (end.item() for end in torch.aminmax(ordered))
    except (RuntimeError, TypeError):  # empty, complex, sparse, on meta or without an order
        return kind
    number_format = ".4g" if value.is_floating_point() else ".0f"
    return f"{kind} from {lowest:{number_format}} to {highest:{number_format}}"
