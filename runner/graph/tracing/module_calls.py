"""Runs a model without a tracer and records the calls of its innermost modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from runner.graph.ir import Mode, TensorSpec
from runner.problems import (
    Problem,
    author_code,
    check_outputs,
    find_tensors,
    load_problem,
    seed,
)


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module that contains no other module."""

    path: str
    cls: str
    extra_repr: str
    """The module's own description: `in_features=3, out_features=4, bias=True`."""
    inputs: tuple[TensorSpec, ...]
    weights: tuple[tuple[str, TensorSpec], ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True)
class PlainRun:
    """The record of one plain run. Functions that the author calls directly are not in it."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    calls: tuple[ModuleCall, ...]
    states: int
    """Number of parameters and buffers."""


def observe_module_calls(problem: Problem, mode: Mode = "eval") -> PlainRun:
    """Run a problem once, on real tensors, and record each call of its innermost modules.

    Raises:
        ProblemError: the author's code fails.
    """
    seed(0)
    loaded = load_problem(problem)
    seed(0)
    model = loaded.build()
    model.train(mode == "train")
    seed(0)
    args, kwargs = loaded.get_inputs()
    calls: list[ModuleCall] = []
    for path, module in model.named_modules():
        if path and not any(module.children()):
            module.register_forward_hook(_recording_hook(path, calls), with_kwargs=True)
    seed(0)
    with torch.no_grad(), author_code(problem):
        output = model(*args, **kwargs)
    states = sum(1 for _ in model.parameters()) + sum(1 for _ in model.buffers())
    return PlainRun(
        inputs=_specs((args, kwargs)),
        outputs=tuple(map(_spec, check_outputs(problem, output))),
        calls=tuple(calls),
        states=states,
    )


def _recording_hook(path: str, calls: list[ModuleCall]) -> Callable[..., None]:
    def note(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        states = (*module.named_parameters(), *module.named_buffers())
        calls.append(
            ModuleCall(
                path=path,
                cls=type(module).__name__,
                extra_repr=module.extra_repr().replace("\n", " "),
                inputs=_specs((args, kwargs)),
                weights=tuple((name, _spec(tensor)) for name, tensor in states),
                outputs=_specs(output),
            )
        )

    return note


def _specs(value: Any) -> tuple[TensorSpec, ...]:
    return tuple(map(_spec, find_tensors(value)))


def _spec(tensor: torch.Tensor) -> TensorSpec:
    strided = tensor.layout is torch.strided
    stride = tuple(tensor.stride()) if strided else ()
    return TensorSpec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), stride)
