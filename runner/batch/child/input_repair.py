"""Finds random inputs on which a component gives finite output, where its usual ones give NaN.

A kernel that takes the logarithm of `1 - exp(x)` needs negative numbers, one that factorises a
matrix needs positive eigenvalues. In general the program does not state such needs. So the composed
model runs once on the problem's own inputs, and kinds of numbers derived from the values that reach
each kernel are tried in turn.
"""

import runpy
import shutil
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from runner.emit.decomposition import write_decomposition
from runner.emit.inputs.input_drawing import ObservedNumbers, SafeNumbers
from runner.graph.ir import Graph
from runner.graph.recognition.recognize import recognize
from runner.problems import Problem, seed
from runner.tree.interface import Program
from runner.tree.part import Part, schedule
from runner.tree.partition import partition
from runner.verify.runtime.output_leaves import all_finite, tensors

_DIGITS = 4


def rewrite_inputs(
    problem: Problem,
    graph: Graph,
    directory: Path,
    bad_files: Iterable[str],
    *,
    keeps_values: bool = False,
) -> None:
    """Write a decomposition again; each of `bad_files` draws the first kind of number that works.

    The earlier content of `directory` is removed.
    """
    observed = _observe_kernel_inputs(problem, graph, directory)
    shutil.rmtree(directory)
    directory.mkdir()  # The log is copied there even if the second decomposition fails.
    chosen_kinds: dict[str, SafeNumbers] = {}
    remaining_files = set(bad_files)
    for kind in get_args(SafeNumbers):
        write_decomposition(
            problem,
            graph,
            directory,
            {**dict.fromkeys(remaining_files, kind), **chosen_kinds},
            observed,
            keeps_values=keeps_values,
        )
        finite_files = {file for file in remaining_files if _gives_finite_output(directory / file)}
        chosen_kinds |= dict.fromkeys(finite_files, kind)
        remaining_files -= finite_files
        if not remaining_files:
            return
    write_decomposition(
        problem,
        graph,
        directory,
        {**dict.fromkeys(remaining_files, get_args(SafeNumbers)[0]), **chosen_kinds},
        observed,
        keeps_values=keeps_values,
    )


def _gives_finite_output(file: Path) -> bool:
    """Whether a component file runs on the inputs that it draws and gives only finite numbers."""
    seed(0)
    try:
        with torch.no_grad():
            module = runpy.run_path(str(file))
            output = module["Model"]().eval()(*module["get_inputs"]())
    except (RuntimeError, ValueError, IndexError):
        return False
    return all(map(all_finite, tensors(output)))


# --- values that reach the kernels in the model ---------------------------------------------------


def _observe_kernel_inputs(
    problem: Problem, graph: Graph, directory: Path
) -> dict[str, ObservedNumbers]:
    """Return the numbers of each value that a kernel reads, by name; empty if the model fails."""
    program = Program(graph, recognize(graph))
    root = partition(program, problem.source_level, problem.name)
    kernels = list(root.kernels())
    views = set(root.operations) - {i for kernel in kernels for i in kernel.operations}
    calls = [unit for unit in schedule(program, kernels, views) if isinstance(unit, Part)]
    observed: dict[str, ObservedNumbers] = {}
    verification = directory / "verification"
    try:
        test = runpy.run_path(str(verification / "composition_test.py"))
        checks = runpy.run_path(str(verification / "checks.py"))
        original = checks["load"](directory / "original.py")
        weights, training = test["WEIGHTS"], graph.mode == "train"
        _, model = checks["models"](original, test["ComposedModel"], weights, training, 0)
        torch.manual_seed(0)
        inputs = original.get_inputs()
        keywords: dict[str, Any] = getattr(original, "get_input_kwargs", dict)()
        with _record_kernel_inputs(model, iter(calls), observed):
            checks["outputs"](model, inputs, keywords, 0)
    except Exception:  # The author's code may fail; kinds that need no run of it are tried then.
        traceback.print_exc()  # The traceback goes into the problem's log.
        return {}
    # If a fusion reads a value only through a view, the value gets the view's numbers.
    for op in reversed(graph.operations):
        output_values = next((observed[name] for name in op.outputs if name in observed), None)
        if op.view and output_values is not None:
            for name in op.refs():
                observed.setdefault(name, output_values)
    return observed


@contextmanager
def _record_kernel_inputs(
    model: nn.Module, calls: Iterator[Part], observed: dict[str, ObservedNumbers]
) -> Iterator[None]:
    """Record the numbers of each kernel's arguments in the composed model, in `calls`' order."""

    def record_inputs(kernel: nn.Module, arguments: tuple[Any, ...]) -> None:
        for name, value in zip(next(calls).io.inputs, arguments, strict=True):
            if not isinstance(value, torch.Tensor) or not value.numel():
                continue
            if value.is_floating_point():
                observed[name] = _summarize_values(value)
            elif value.is_complex():
                real, imaginary = map(_summarize_values, (value.real, value.imag))
                observed[name] = ObservedNumbers(
                    *(complex(a.real, b.real) for a, b in zip(real, imaginary, strict=True))
                )

    hooks = [
        module.register_forward_pre_hook(record_inputs)
        for module in model.modules()
        if type(module).__name__ == "Model"
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _summarize_values(value: torch.Tensor) -> ObservedNumbers:
    finite = value[value.isfinite()] if not all_finite(value) else value
    if not finite.numel():
        return ObservedNumbers(0.0, 1.0, 0.5)
    numbers = (finite.min(), finite.max(), finite.flatten()[0])
    return ObservedNumbers(*(float(f"{float(number):.{_DIGITS}g}") for number in numbers))
