"""Makes objects that hold tensors, as inputs or results, known to the tracers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from runner.problems import members, to_plain_containers
from runner.torch_internals import SUPPORTED_NODES, GetAttrKey, register_pytree_node


@contextlib.contextmanager
def register_containers(
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    forward_mode: Callable[..., contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
) -> Iterator[None]:
    """Make the inputs' classes known as containers of tensors; let forward return plain results.

    Each call of forward() runs in a new context that `forward_mode(args, kwargs)` returns.
    """
    for value in (*args, *kwargs.values()):
        _register_class(value)
    forward = model.forward

    @functools.wraps(forward)
    def plain_forward(*args: Any, **kwargs: Any) -> Any:
        with forward_mode((args, kwargs)):
            return to_plain_containers(forward(*args, **kwargs))

    model.forward = plain_forward
    try:
        yield
    finally:
        del model.forward


def _register_class(value: Any) -> None:
    """Register an object's class, and those of its members, as containers of tensors."""
    if isinstance(value, Mapping):
        contents: Iterable[Any] = value.values()
    elif isinstance(value, (list, tuple)):
        contents = value
    else:
        attributes = members(value)
        contents = () if attributes is None else attributes.values()
        cls = type(value)
        if attributes is not None and cls not in SUPPORTED_NODES:
            register_pytree_node(
                cls,
                _flatten,
                functools.partial(_unflatten, cls),
                serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
                flatten_with_keys_fn=lambda v: (
                    [(GetAttrKey(name), item) for name, item in vars(v).items()],
                    tuple(vars(v)),
                ),
            )
    for item in contents:
        _register_class(item)


def _flatten(value: Any) -> tuple[list[Any], tuple[str, ...]]:
    return list(vars(value).values()), tuple(vars(value))


def _unflatten(cls: type, values: Iterable[Any], names: Any) -> Any:
    container: Any = object.__new__(cls)
    container.__dict__.update(zip(names, values, strict=True))
    return container
