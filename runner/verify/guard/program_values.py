"""Imports files, seeds generators, and copies nested inputs, also in processes without kdrun."""

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import torch


def import_file(path: Path, name: str) -> Any:
    """Run a file as a module of this name, and return the module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def seed_generators(number: int) -> None:
    """Seed what a model may draw from."""
    torch.manual_seed(number)
    random.seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number % 2**32)


def copy_nested(value: Any) -> Any:
    """Return a copy of nested inputs whose tensors have the same strides.

    An expanded tensor is not copied: nothing can write to it in place.
    """
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            return value.detach().clone()
        if has_overlap(value):
            return value
        empty = torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device=value.device
        )
        return empty.copy_(value.detach())
    if isinstance(value, dict):
        return {key: copy_nested(item) for key, item in value.items()}
    return type(value)(map(copy_nested, value)) if type(value) in (list, tuple) else value


def has_overlap(tensor: torch.Tensor) -> bool:
    """Return whether several elements are one number in memory, as in an expanded tensor."""
    return any(n > 1 and not step for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def are_alike(first: Any, second: Any) -> bool:
    """Return whether the tensors of nested inputs can take the values of others'."""

    def describe(value: Any) -> list[Any]:
        return [(t.shape, t.stride(), t.dtype) for t in list_tensors(value)]

    return describe(first) == describe(second) and not any(map(has_overlap, list_tensors(first)))


def list_tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in list_tensors(item)] if _is_sequence(value) else []


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple)
