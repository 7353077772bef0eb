"""This file knows about what holds tensors: tuples, lists, mappings, dataclasses, plain objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

_BASIC = (type(None), bool, int, float, complex, str)


def members(value: object) -> dict[str, object] | None:
    """What an object holds by name: a dataclass' fields, or the attributes that are of use here.

    None for what is no such object: a number, a string, a class, a function, a tensor of a class of
    its own, anything of torch but a distribution.
    """
    if isinstance(value, (*_BASIC, type, Mapping, tuple, list)) or callable(value):
        return None
    if _is_tensor(value):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    module = type(value).__module__
    of_torch = module.partition(".")[0] in {"torch", "builtins", "enum"}
    if of_torch and not module.startswith("torch.distributions"):
        return None
    return vars(value) if hasattr(value, "__dict__") else None


def plain(value: object, *, inside: frozenset[int] = frozenset()) -> object:
    """The same tensors in tuples, lists and dicts alone; an object is a dict of what it holds.

    Of an object that is no dataclass, what is neither tensor, number nor string is left out.
    """
    if id(value) in inside:
        return None  # an object that holds itself
    inside = inside | {id(value)}
    if isinstance(value, Mapping):
        return {key: plain(item, inside=inside) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(item, inside=inside) for item in value)
    if isinstance(value, list):
        return [plain(item, inside=inside) for item in value]
    held = members(value)
    if held is None:
        return value
    found = {key: plain(item, inside=inside) for key, item in held.items()}
    if dataclasses.is_dataclass(value):
        return found
    return {key: item for key, item in found.items() if _of_use(item)}


def _of_use(value: object) -> bool:
    return isinstance(value, (*_BASIC, dict, list, tuple)) or _is_tensor(value)


def _is_tensor(value: object) -> bool:
    """Whether a value is a tensor, told without an import of torch."""
    return hasattr(type(value), "untyped_storage")
