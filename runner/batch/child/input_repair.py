"""Finds random inputs on which a component gives telling output, where its usual ones do not.

A kernel that takes the logarithm of `1 - exp(x)` needs negative numbers, one that factorises a
matrix needs positive eigenvalues; numbers that all lie above the bound of a clamp test nothing. In
general the program does not state such needs. So the composed model runs once on the problem's own
inputs, and kinds of numbers derived from the values that reach each kernel are tried in turn.
"""

import runpy
import shutil
import traceback
from collections.abc import Collection, Iterable, Iterator
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
from runner.tree.document import LEVEL_FOLDER
from runner.tree.interface import Program
from runner.tree.part import Part, schedule
from runner.tree.partition import partition
from runner.tree.workload import workloads
from runner.verify.gates.health import constant_output
from runner.verify.runtime.output_leaves import all_finite, tensors

_DIGITS = 4


def rewrite_inputs(
    problem: Problem,
    graph: Graph,
    directory: Path,
    bad_files: Iterable[str],
    constant_kernels: Collection[str] = (),
    *,
    keeps_values: bool = False,
) -> bool:
    """Write a decomposition again; its bad files draw the first kind of number that works.

    Bad are `bad_files`, and those of `constant_kernels` whose output in the model is not constant.
    If there is none, nothing is written, and False is returned. The earlier content of `directory`
    is removed.
    """
    observed, varying_kernels = _observe_kernels(problem, graph, directory)
    dull_files = varying_kernels.intersection(constant_kernels)
    chosen_kinds: dict[str, SafeNumbers] = {}
    remaining_files = {*bad_files} | dull_files
    if not remaining_files:
        return False
    shutil.rmtree(directory)
    directory.mkdir()  # The log is copied there even if the second decomposition fails.
    for kind in get_args(SafeNumbers):
        write_decomposition(
            problem,
            graph,
            directory,
            {**dict.fromkeys(remaining_files, kind), **chosen_kinds},
            observed,
            keeps_values=keeps_values,
        )
        good_files = {
            file
            for file in remaining_files
            if _gives_telling_output(directory / file, may_be_constant=file not in dull_files)
        }
        chosen_kinds |= dict.fromkeys(good_files, kind)
        remaining_files -= good_files
        if not remaining_files:
            return True
    write_decomposition(
        problem,
        graph,
        directory,
        {**dict.fromkeys(remaining_files, get_args(SafeNumbers)[0]), **chosen_kinds},
        observed,
        keeps_values=keeps_values,
    )
    return True


def _gives_telling_output(file: Path, *, may_be_constant: bool) -> bool:
    """Whether a component file runs on the inputs that it draws and gives only finite numbers."""
    seed(0)
    try:
        with torch.no_grad():
            module = runpy.run_path(str(file))
            output = module["Model"]().eval()(*module["get_inputs"]())
    except (RuntimeError, ValueError, IndexError):
        return False
    is_constant = constant_output(output) is not None
    return all(map(all_finite, tensors(output))) and (may_be_constant or not is_constant)


# --- values that reach the kernels in the model ---------------------------------------------------


def _observe_kernels(
    problem: Problem, graph: Graph, directory: Path
) -> tuple[dict[str, ObservedNumbers], set[str]]:
    """Return the numbers of each value that a kernel reads or gives, by name.

    Also return the files of kernels that give more than one number. Both are empty if the model
    fails.
    """
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
        with _record_kernel_values(model, iter(calls), observed):
            checks["outputs"](model, inputs, keywords, 0)
    except Exception:  # The author's code may fail; kinds that need no run of it are tried then.
        traceback.print_exc()  # The traceback goes into the problem's log.
        return {}, set()
    names = workloads(program, root)
    varying_kernels = {
        f"{LEVEL_FOLDER['kernel']}/{names[id(call)].name}.py"
        for call in calls
        for value in call.io.outputs
        if value in observed and observed[value].least != observed[value].largest
    }
    # If a fusion reads a value only through a view, the value gets the view's numbers.
    for op in reversed(graph.operations):
        output_values = next((observed[name] for name in op.outputs if name in observed), None)
        if op.view and output_values is not None:
            for name in op.refs():
                observed.setdefault(name, output_values)
    return observed, varying_kernels


@contextmanager
def _record_kernel_values(
    model: nn.Module, calls: Iterator[Part], observed: dict[str, ObservedNumbers]
) -> Iterator[None]:
    """Record the numbers that each kernel of the composed model reads and gives, in `calls`' order.

    Inputs are recorded before the kernel can change them.
    """
    running: list[Part] = []

    def record_inputs(kernel: nn.Module, arguments: tuple[Any, ...]) -> None:
        running[:] = [next(calls)]
        for name, value in zip(running[0].io.inputs, arguments, strict=True):
            record(name, value)

    def record_outputs(kernel: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        for name, value in zip(running[0].io.outputs, tensors(output), strict=False):
            record(name, value)

    def record(name: str, value: Any) -> None:
        if not isinstance(value, torch.Tensor) or not value.numel():
            return
        if value.is_floating_point():
            observed[name] = _summarize_values(value)
        elif value.is_complex():
            real, imaginary = map(_summarize_values, (value.real, value.imag))
            observed[name] = ObservedNumbers(
                *(complex(a.real, b.real) for a, b in zip(real, imaginary, strict=True))
            )

    hooks = [
        hook
        for module in model.modules()
        if type(module).__name__ == "Model"
        for hook in (
            module.register_forward_pre_hook(record_inputs),
            module.register_forward_hook(record_outputs),
        )
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
