"""Defines the public functions: decompose, open, verify and workloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kdrun.objects import ObjectModel, read_object
from kdrun.parts import ObjectComparison, Parts, PartsVerification, open_parts
from kdrun.results import MEMORY_FILE, add_files
from kdrun.stored_values import require_safetensors, store_values
from runner.batch import local_execution
from runner.config import Settings, load_settings
from runner.errors import DecompositionError, UsageError
from runner.problems.package_model import find_problem
from runner.problems.problem import write_problem_file
from runner.problems.variants import FOLDER
from runner.tree.document import TREE_FILE

if TYPE_CHECKING:
    from torch import nn

    from runner.report.catalogue import Catalogue

_ANALYSIS = "decomposition_analysis.md"


def decompose(
    model: nn.Module | str | Path,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    output: str | Path = "output",
    mode: Literal["eval", "train"] = "eval",
    keep_values: bool = False,
) -> Parts:
    """Take a model apart, verify the parts, and return them.

    Args:
        model: a model in memory; or a problem, as `kdrun decompose` takes it: a file, or a name.
        args: positional inputs of the model's forward(): tensors, also in lists and dicts.
        kwargs: keyword inputs of forward().
        name: name of the decomposition; default the model's class.
        output: directory for decompositions; this one is written to `output/custom/name`.
        mode: whether the model runs in eval() or in train() mode.
        keep_values: store the weights, and the inputs of each place in the model.

    A decomposition that does not pass is returned, too: see `verification`.

    Raises:
        UsageError: an argument is invalid.
        ProblemError: the inputs do not fit forward(), or it raises.
        CaptureError: the model's program cannot be written down.
        DecompositionError: nothing could be written; the message says why.

    >>> import torch, kdrun
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    >>> parts = kdrun.decompose(model, (torch.randn(2, 8),), name="tiny", output=folder)
    >>> parts.verification.passed
    True
    >>> sorted(parts.components)
    ['linear_8x4_on_2_fp32', 'linear_relu_8x4_on_2_fp32', 'relu_2x4_fp32']
    """
    settings = load_settings({"output": Path(output), "mode": mode})
    if isinstance(model, str | Path):
        if args or kwargs or name or keep_values:
            raise UsageError(
                f"{model}: a problem has inputs and a name of its own",
                hint="args, kwargs, name and keep_values are for a model in memory",
            )
        file, target = find_problem(str(model), None, None, settings.data, settings.output)
        return _decompose_file(file, settings, target)
    if keep_values:
        require_safetensors()
    name = name or type(model).__name__
    found = read_object(_require_module(model), _require_tuple(args), kwargs or {}, name, mode)
    file = write_problem_file(settings.output / FOLDER / f"{name}.py", found.problem.text)
    parts = _decompose_file(file, settings, None, found, keeps_values=keep_values)
    _complete_directory(parts, found, keep_values=keep_values)
    return open_object(parts.directory, found)


def open(directory: str | Path) -> Parts:
    """Return the parts in a decomposition directory, by whomever it was written.

    Raises:
        DecompositionError: it is no decomposition directory, or is damaged.

    >>> import kdrun
    >>> parts = kdrun.open(sample)
    >>> parts.verification.passed
    True
    >>> parts.tree.root
    <kernel root: silu_256x8192_62e9_fp32>
    >>> [tuple(tensor.shape) for tensor in parts["silu_256x8192_62e9_fp32"].inputs()]
    [(256, 8192)]
    """
    return open_parts(Path(directory))


def verify(directory: str | Path) -> PartsVerification:
    """Judge a decomposition directory, by whomever it was written, without writing to it.

    Raises:
        UsageError: it is no decomposition directory.
        DecompositionError: its tree has another schema version.

    >>> import kdrun
    >>> kdrun.verify(sample).passed
    True
    """
    outcome = local_execution.verify(Path(directory), load_settings({}))
    gates = outcome.verification
    return PartsVerification(
        outcome.answer.status,
        outcome.answer.reason,
        gates.get("bitwise_equal"),
        gates.get("max_diff"),
    )


def workloads(
    output: str | Path,
    level: Literal["kernel", "fusion", "layer", "model"] = "kernel",
) -> Catalogue:
    """Return the unique workloads of all decompositions below a directory, largest FLOPs first.

    Raises:
        UsageError: there is no decomposition.

    >>> import kdrun
    >>> catalogue = kdrun.workloads(sample)
    >>> [(workload.name, workload.instances) for workload in catalogue.workloads]
    [('silu_256x8192_62e9_fp32', 1)]
    """
    from runner.report.catalogue import collect_workloads, sort_catalogue
    from runner.report.subject import open_subject

    with open_subject(str(output), load_settings({})) as subject:
        return sort_catalogue(collect_workloads(subject, level), "flops")


def open_object(directory: Path, found: ObjectModel) -> Parts:
    """Return the parts of a directory with the weights of the object that it was made from."""
    return Parts(directory, open_parts(directory).verification, found.weights)


def _decompose_file(
    file: Path,
    settings: Settings,
    target: str | None,
    found: ObjectModel | None = None,
    *,
    keeps_values: bool = False,
) -> Parts:
    outcome = local_execution.decompose(file, settings, target, keeps_values=keeps_values)
    result = outcome.result
    if outcome.earlier_stays or not (outcome.directory / TREE_FILE).exists():
        raise DecompositionError(f"{result.label}: {result.status}: {result.reason}")
    verification = PartsVerification(
        result.status, result.reason, result.bitwise_equal, result.max_diff
    )
    return Parts(outcome.directory, verification, found.weights if found else None)


def _complete_directory(parts: Parts, found: ObjectModel, *, keep_values: bool) -> None:
    """Compare the parts with the object, keep its values, and say so in the directory."""
    composed = parts.compose()
    difference = found.compare(composed)
    if difference.reason:
        raise DecompositionError(
            f"{parts.directory}: the parts differ from the object: {difference.reason}"
        )
    comparison = ObjectComparison(difference.max_diff, difference.bitwise_equal)
    if keep_values:
        store_values(
            parts.directory, parts.tree, composed, found.weights(), found.args, dict(found.kwargs)
        )
    cls = type(found.model)
    document = {
        "class": f"{cls.__module__}.{cls.__qualname__}",
        "max_diff": comparison.max_diff,
        "bitwise_equal": comparison.bitwise_equal,
        "values": keep_values,
        "weights": dict(found.problem.weights),
    }
    equality = (
        "equal it to the last bit"
        if comparison.bitwise_equal
        else f"differ from it by at most {comparison.max_diff:.2g}"
    )
    kept = (
        "Its weights and the inputs of each place are in `values/`."
        if keep_values
        else "Its weights and the caller's inputs are not in this directory."
    )
    facts = "\n".join(found.facts)
    section = (
        f"\n## From memory\n\n{facts}\n\nPut together from kernels, with the object's weights and "
        f"on the caller's inputs, the parts {equality}. {kept}\n"
    )
    analysis = (parts.directory / _ANALYSIS).read_text(encoding="utf-8") + section
    texts = {MEMORY_FILE: json.dumps(document, indent=1) + "\n", _ANALYSIS: analysis}
    add_files(parts.directory, texts)


def _require_module(model: object) -> nn.Module:
    from torch import nn

    if not isinstance(model, nn.Module):
        kind = model.__name__ if isinstance(model, type) else type(model).__name__
        raise UsageError(
            f"decompose: {kind} is no model in memory", hint="give an object of nn.Module"
        )
    return model


def _require_tuple(args: object) -> tuple[Any, ...]:
    if not isinstance(args, tuple):
        raise UsageError(
            f"args is a {type(args).__name__}, not a tuple of inputs", hint="write (tokens,)"
        )
    return args
