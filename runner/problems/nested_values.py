"""Finds tensors inside containers: tuples, lists, mappings, dataclasses and other objects."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

_BASIC = (type(None), bool, int, float, complex, str)


def members(value: object) -> dict[str, object] | None:
    """Return name -> value of a dataclass's fields, or of another object's attributes.

    Return None for a value that is no such object: a number, a string, a built-in container, a
    class, a callable, a tensor, and any object of torch but a distribution.
    """
    if isinstance(value, (*_BASIC, type, Mapping, tuple, list)) or callable(value):
        return None
    if _is_tensor(value):
        return None
    if dataclasses.is_dataclass(value):
        return dict(_read_fields(value))
    module = type(value).__module__
    of_torch = module.partition(".")[0] in {"torch", "builtins", "enum"}
    if of_torch and not module.startswith("torch.distributions"):
        return None
    return vars(value) if hasattr(value, "__dict__") else None


def _read_fields(value: Any) -> Iterator[tuple[str, object]]:
    """Yield the fields of a dataclass; a library's configuration may refuse to tell some."""
    for field in dataclasses.fields(value):
        with contextlib.suppress(Exception):
            yield field.name, getattr(value, field.name)


def to_plain_containers(value: object, *, ancestors: frozenset[int] = frozenset()) -> object:
    """Return a value with its tensors in tuples, lists and dicts only; objects become dicts.

    Of an object that is no dataclass, members other than tensors, numbers, strings and containers
    are left out.
    """
    if id(value) in ancestors:
        return None  # the object contains itself
    ancestors = ancestors | {id(value)}
    if isinstance(value, Mapping):
        return {key: to_plain_containers(item, ancestors=ancestors) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(to_plain_containers(item, ancestors=ancestors) for item in value)
    if isinstance(value, list):
        return [to_plain_containers(item, ancestors=ancestors) for item in value]
    attributes = members(value)
    if attributes is None:
        return value
    converted = {
        key: to_plain_containers(item, ancestors=ancestors) for key, item in attributes.items()
    }
    if dataclasses.is_dataclass(value):
        return converted
    return {
        key: item
        for key, item in converted.items()
        if isinstance(item, (*_BASIC, dict, list, tuple)) or _is_tensor(item)
    }


def fill_objects(plain: object, drawn: object) -> object:
    """Return plain containers as the objects that `to_plain_containers` would make them of.

    `drawn`: an earlier value of the same structure, whose objects are copied.
    """
    if isinstance(plain, dict):
        attributes = members(drawn)
        if attributes is None:
            old = drawn if isinstance(drawn, Mapping) else {}
            return {key: fill_objects(item, old.get(key)) for key, item in plain.items()}
        filled = copy.copy(drawn)
        for key, item in plain.items():
            object.__setattr__(filled, key, fill_objects(item, attributes.get(key)))
        return filled
    if not isinstance(plain, list | tuple):
        return plain
    old_items = drawn if isinstance(drawn, list | tuple) and len(drawn) == len(plain) else plain
    items = [fill_objects(item, old) for item, old in zip(plain, old_items, strict=True)]
    if isinstance(plain, list):
        return items
    return type(drawn)(*items) if hasattr(drawn, "_fields") else tuple(items)


def _is_tensor(value: object) -> bool:
    """Return whether a value is a tensor, without importing torch."""
    return hasattr(type(value), "untyped_storage")
