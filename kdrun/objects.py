"""Makes a problem file of a model in memory, and compares what comes of it with the model."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from runner.emit.object_problem import ObjectProblem, write_object_problem
from runner.errors import DecompositionError, UsageError
from runner.graph.ir import Mode
from runner.graph.tracing.capture import capture_object
from runner.problems import Problem, seed, to_plain_containers
from runner.verify.gates.compare import COMPOSITION, compare
from runner.verify.gates.difference import Difference
from runner.verify.gates.weights import Weights, plain_tensors, transfer_weights, weights_of
from runner.verify.runtime.output_leaves import tensors

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ObjectModel:
    """A model in memory with the caller's inputs, and the problem file that computes the same."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    mode: Mode
    problem: ObjectProblem
    facts: tuple[str, ...]
    """Sentences about the object: its class, its inputs, and what the file does not repeat."""

    def weights(self) -> Weights:
        """Return the object's present weights, by their names in the problem file."""
        by_name = plain_tensors(self.model) | weights_of(self.model)
        return {name: by_name[own] for name, own in self.problem.weights.items()}

    def compare(self, built: nn.Module) -> Difference:
        """Return the difference between a model with the object's weights and the object."""
        inputs = tensors(to_plain_containers([self.args, dict(self.kwargs)]))
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            with _unchanged(self.model, self.mode):
                seed(0)
                args, kwargs = copy.deepcopy((self.args, dict(self.kwargs)))
                expected = tensors(to_plain_containers(self.model(*args, **kwargs)))
            seed(0)
            actual = tensors(to_plain_containers(built(*(value.clone() for value in inputs))))
        return compare([expected[place] for place in self.problem.outputs], actual, COMPOSITION)


def read_object(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], name: str, mode: Mode
) -> ObjectModel:
    """Return the problem of a model in memory, shown to equal the model on these inputs.

    Raises:
        UsageError: the name is none for a file.
        ProblemError: the inputs do not fit forward(), or it raises.
        CaptureError: the model's program cannot be written down.
        DecompositionError: the written program computes something else than the model.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"name={name!r}: not a name for a file", hint="write my_llama")
    kwargs = _order_by_signature(model, kwargs)
    problem = Problem(Path(name), name, "custom", "")
    graph = capture_object(problem, model, args, dict(kwargs), mode)
    facts = _describe_object(model, kwargs, args)
    if graph.specialisations:
        facts += ("It holds for inputs that lead to the same decisions:", *graph.specialisations)
    title = f"{name}, a model from memory."
    written = write_object_problem(problem, graph, name, [title, *facts])
    found = ObjectModel(model, args, kwargs, mode, written, facts)
    module = ModuleType(name)
    exec(compile(written.text, f"{name}.py", "exec", dont_inherit=True), module.__dict__)
    built = module.Model()
    transfer_weights(found.weights(), built, {own: own for own in written.weights})
    device = next(iter(found.weights().values()), torch.empty(0)).device
    difference = found.compare(built.to(device).train(mode == "train"))
    if difference.reason:
        raise DecompositionError(
            f"{name}: its program, written down, differs from the object: {difference.reason}",
            hint="does forward() depend on values, or on objects outside of the model?",
        )
    return found


def _order_by_signature(model: nn.Module, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments in forward()'s order, in which torch.export lists them."""
    parameters = [*inspect.signature(model.forward).parameters]
    known = {name: kwargs[name] for name in parameters if name in kwargs}
    return known | {name: value for name, value in kwargs.items() if name not in known}


def _describe_object(
    model: nn.Module, kwargs: Mapping[str, Any], args: tuple[Any, ...]
) -> tuple[str, ...]:
    cls = type(model)
    try:
        inspect.getsource(cls)
        source = "The file has its program at these inputs, not its class."
    except (OSError, TypeError):
        source = "Its source cannot be had: variables have general names."
    fixed = {
        name: value for name, value in kwargs.items() if isinstance(value, bool | int | float | str)
    }
    positional = [value for value in args if isinstance(value, bool | int | float | str)]
    words = [*map(repr, positional), *(f"{name}={value!r}" for name, value in fixed.items())]
    return (
        f"It was an object of {cls.__module__}.{cls.__qualname__}. {source}",
        *([f"It was called with {', '.join(words)}."] if words else []),
        "Not repeated here: the values of its weights, which Model() draws, and the",
        "caller's inputs, in whose place get_inputs() draws tensors like them.",
    )


@contextmanager
def _unchanged(model: nn.Module, mode: Mode) -> Iterator[None]:
    """Run a model in a mode; afterwards its modes and buffers are as before."""
    training = {module: module.training for module in model.modules()}
    buffers = {name: tensor.detach().clone() for name, tensor in model.named_buffers()}
    model.train(mode == "train")
    try:
        yield
    finally:
        for module, is_training in training.items():
            module.training = is_training
        with torch.no_grad():
            for name, tensor in model.named_buffers():
                if name in buffers and not torch.equal(tensor, buffers[name]):
                    tensor.copy_(buffers[name])
