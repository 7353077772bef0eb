"""Writes down the values of a traced run that decide how many elements there are.

An emitted file takes them as they were: with other values, its shapes would be others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch

from runner.graph.ir import Input, Operation, TensorSpec, is_expanded, references
from runner.graph.operations import is_sized_by_values
from runner.graph.tracing.provenance import LONGEST_LITERAL, tensor_literal
from runner.torch_internals import FakeTensor, without_modes

_LONGEST_VALUE_TEXT = 1024
"""Most characters of a recorded value that decides no number of elements."""
_MAX_NUMBERS = 4096


def holds_whole_numbers(value: torch.Tensor) -> bool:
    """Return whether a tensor holds whole numbers, also as floats; a program may count labels."""
    if not value.dtype.is_floating_point:
        return True
    if value.numel() > LONGEST_LITERAL or value.layout != torch.strided:
        return False
    with without_modes():
        return bool((value == value.round()).all())


def observed_value_text(value: torch.Tensor) -> str | None:
    """Return Python text for a tensor that decides as this one did; None if it is too long.

    A long mask becomes a random one with as many true elements.
    """
    if value.dtype.is_complex or value.layout != torch.strided:
        return None
    sizes = list(zip(value.shape, value.stride(), strict=True))
    # Of an expanded tensor, write the elements in memory and expand them.
    if any(is_expanded(n, stride) for n, stride in sizes):
        with without_modes():
            part = value[tuple(slice(1 if is_expanded(n, stride) else n) for n, stride in sizes)]
        text = observed_value_text(part)
        return text and f"{text}.expand({', '.join(map(str, value.shape))})"
    if value.numel() <= LONGEST_LITERAL:
        return tensor_literal(value)
    with without_modes():
        is_mask = value.dtype == torch.bool or bool(((value == 0) | (value == 1)).all())
        ones = int(value.sum()) if is_mask else 0
    if not is_mask:
        return tensor_literal(value, longest=_MAX_NUMBERS)
    cast = "" if value.dtype == torch.bool else f".to({value.dtype})"
    return random_mask_text(tuple(value.shape), ones) + cast


def random_mask_text(shape: tuple[int, ...], ones: int) -> str:
    """Return Python text for a random mask with a given number of true elements.

    Each row, along the last dimension, has as many as the others, or one less: few rows of a real
    mask are all true or all false, and a softmax over such a row is NaN.
    """
    count = math.prod(shape)
    view = f".view({', '.join(map(str, shape)) or '()'})" if len(shape) != 1 else ""
    last = shape[-1] if shape else 1
    rows = count // last
    if rows <= 1 or last == 1:
        return f"(torch.randperm({count}) < {ones}){view}"
    turns = f"torch.rand({rows}, {last}).argsort(-1) * {rows} + torch.arange({rows}).view(-1, 1)"
    return f"({turns} < {ones})" + (view if len(shape) != 2 else "")


def select_deciding_values(
    operations: Iterable[Operation],
    values: Mapping[str, TensorSpec],
    recorded: Mapping[str, str],
    inputs: Mapping[str, torch.Tensor],
) -> dict[str, str]:
    """Return Python text for the values that emitted files must take as they were in this run.

    These are the recorded values with a short text that are not floating-point, and the values,
    inputs included, that decide how many elements there are.
    """
    names: set[str] = set()
    producers = {name: op for op in operations for name in op.outputs}
    queue = [
        name
        for op in operations
        if is_sized_by_values(op, values)
        for name in (references(op.args[1]) if op.name.endswith("index") else op.refs())
    ]
    while queue:
        name = queue.pop()
        if name not in names and (not values[name].floating or name in recorded):
            names.add(name)
            queue += producers[name].refs() if name in producers else ()
    texts = {
        n: text
        for n, text in recorded.items()
        if n in names or (len(text) <= _LONGEST_VALUE_TEXT and not values[n].floating)
    }
    for name in names.intersection(inputs):
        text = None if isinstance(inputs[name], FakeTensor) else observed_value_text(inputs[name])
        if text is not None:
            texts[name] = text
    return texts


def describe_random_sized_inputs(
    inputs: Iterable[Input], tensors: Mapping[str, torch.Tensor]
) -> dict[str, str]:
    """Return Python text for inputs whose number of elements get_inputs() draws at random."""
    texts: dict[str, str] = {}
    for model_input in inputs:
        recipe, tensor = model_input.recipe, tensors[model_input.name]
        has_random_size = recipe and any(
            is_sized_by_values(op, recipe.specs) for op in recipe.operations
        )
        if (
            has_random_size
            and not isinstance(tensor, FakeTensor)
            and (text := observed_value_text(tensor)) is not None
        ):
            texts[model_input.name] = text
    return texts
