"""Tell a problem that fails on its own inputs from a verification that fails."""

from dataclasses import replace
from typing import Any

import torch

from runner.errors import ProblemError
from runner.problems import LoadedProblem, author_code
from runner.verify.confinement import settle
from runner.verify.layout import ORIGINAL
from runner.verify.leaves import leaves
from runner.verify.running import Bench, Inputs

_SHOWN = 4
"""Inputs that are described; the rest is counted."""
_LONGEST = 40


def refuse_if_it_fails_alone(problem: LoadedProblem, bench: Bench, trial: int) -> None:
    """Run the original as its author would: on a CPU, unwatched, with the weights that it makes.

    Raises:
        ProblemError: it fails there too, on the inputs that the message describes.
    """
    bench = replace(bench, options=replace(bench.options, device="cpu"))
    model = bench.build(f"{ORIGINAL}: Model", problem.build, trial)
    inputs = bench.draw(f"{ORIGINAL}: get_inputs()", problem.get_inputs, trial)
    described = describe_inputs(inputs)  # before forward() writes into them
    bench.seed(trial)
    try:
        with author_code(problem.problem), torch.no_grad():
            model(*inputs[0], **inputs[1])
    except ProblemError as error:
        what = f"forward() fails on its own inputs ({described}; seed {bench.options.seed + trial})"
        raise ProblemError(error.path, f"{what}: {error.what}") from error
    finally:
        settle(f"{ORIGINAL}: forward")


def describe_inputs(inputs: Inputs) -> str:
    """Return `int64[2, 5] from 3 to 97, mask=bool[2, 5]`."""
    args, kwargs = inputs
    described = [_described(leaf) for _, leaf in leaves(args)]
    described += [
        f"{name}={_described(leaf)}" for key in kwargs for name, leaf in leaves(kwargs[key], key)
    ]
    if not described:
        return "none"
    more = [f"{len(described) - _SHOWN} more"] if len(described) > _SHOWN else []
    return ", ".join(described[:_SHOWN] + more)


def _described(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)[:_LONGEST]
    kind = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if not value.numel() or value.is_complex() or value.dtype is torch.bool:
        return kind
    ordered = value.float() if value.dtype.itemsize == 1 else value
    lowest, highest = (end.item() for end in torch.aminmax(ordered))
    shown = ".4g" if value.is_floating_point() else ".0f"
    return f"{kind} from {lowest:{shown}} to {highest:{shown}}"
