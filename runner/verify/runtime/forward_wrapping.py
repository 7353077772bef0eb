"""Wraps the forwards of some modules for a while: whoever watches a parent's parts does it so."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

Forward = Callable[..., Any]


@contextmanager
def wrap_forwards(
    modules: Mapping[str, nn.Module], wrap: Callable[[str, Forward], Forward]
) -> Iterator[None]:
    """Replace each module's forward in the body; `wrap` takes the module's path and its forward."""
    own_forwards = [(module, vars(module).get("forward")) for module in modules.values()]
    for path, module in modules.items():
        module.forward = wrap(path, module.forward)
    try:
        yield
    finally:
        for module, forward in own_forwards:
            vars(module).pop("forward", None)
            if forward is not None:
                module.forward = forward
