"""Takes outputs apart: their nesting, their tensors, and pieces of these.

Pieces are cut by shape alone, so that an output of many GiB is read with a few MB of scratch space,
also when it waits on disk.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, cast

import torch

from runner.problems import members
from runner.verify.gates.difference import Difference

PIECE = 1 << 20
"""Elements that are compared at once, few enough to stay in a cache after the first pass."""
_PLAIN_TYPES = {type(None), bool, int, float, str, torch.dtype, torch.device}


class OffloadedTensor(ABC):
    """A tensor whose values are not in memory, but on disk, or of which only digests are stored."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @abstractmethod
    def pieces(self) -> Iterator[torch.Tensor]:
        """Yield the pieces that `pieces_of` cut; MissingValuesError if the values are gone."""

    def compare_without_values(self, actual: torch.Tensor) -> Difference | None:
        """Return the difference from a tensor if it is known without the values; None if not."""
        return None


class MissingValuesError(Exception):
    """Outputs differ, and the values of one are gone: that side has to run again and be stored."""


def structure(value: object) -> str:
    """Return the nesting of an output in words, such as `tuple(tensor, dict(mask: tensor))`."""
    if is_tensor(value):
        return "tensor"
    if isinstance(value, Mapping):
        return f"dict({', '.join(f'{key}: {structure(item)}' for key, item in value.items())})"
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return f"{kind}({', '.join(structure(item) for item in value)})"
    if value is None:
        return "None"
    if isinstance(value, Real) and not isinstance(value, bool):  # NumPy's numbers count, too
        return "int" if isinstance(value, Integral) else "float"
    return type(value).__name__


def leaves(value: object, name: str = "output") -> Iterator[tuple[str, object]]:
    """Yield (name, leaf) for all parts of an output that contain no other parts."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{name}[{key!r}]")
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{name}[{index}]")
    elif not is_tensor(value) and (parts := members(value)) is not None:
        for key, item in parts.items():
            yield from leaves(item, f"{name}.{key}")
    else:
        yield name, value


def tensors(value: object) -> list[torch.Tensor]:
    """Return all tensors of an output or of a list of inputs, in order."""
    collected: list[torch.Tensor] = []
    _collect(value, collected)
    return collected


def _collect(
    value: object, collected: list[torch.Tensor], ancestors: tuple[object, ...] = ()
) -> None:
    """Collect tensors as `leaves` does, without names, since every operation's arguments need it.

    `ancestors`: the objects that contain the value, which are not entered again.
    """
    if type(value) in _PLAIN_TYPES:
        return
    if isinstance(value, torch.Tensor):
        collected.append(value)
        return
    items: Iterable[object]
    if isinstance(value, tuple | list):
        items = value
    elif isinstance(value, dict | Mapping):
        items = value.values()
    elif not isinstance(value, OffloadedTensor) and (parts := members(value)) is not None:
        items = parts.values()
    else:
        return
    if ancestors and any(value is ancestor for ancestor in ancestors):
        return
    for item in items:
        _collect(item, collected, (*ancestors, value))


def is_tensor(value: object) -> bool:
    """Return whether a leaf is a tensor, in memory or not."""
    return isinstance(value, torch.Tensor | OffloadedTensor)


def as_tensor(leaf: object) -> torch.Tensor | OffloadedTensor:
    """Return a leaf for which `is_tensor` holds."""
    return cast("torch.Tensor | OffloadedTensor", leaf)


def pieces_of(value: object) -> Iterator[torch.Tensor]:
    """Yield a tensor's row-major pieces of at most PIECE elements, cut by its shape alone."""
    if isinstance(value, torch.Tensor):
        yield from _cut_pieces(value)
    else:
        yield from cast(OffloadedTensor, value).pieces()


def _cut_pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if tensor.numel() <= PIECE:
        yield tensor
        return
    rows = max(1, PIECE // (tensor.numel() // tensor.shape[0]))
    for part in torch.split(tensor, rows):
        if part.numel() <= PIECE:
            yield part
        else:
            yield from _cut_pieces(part[0])


def all_finite(piece: torch.Tensor) -> bool:
    """Return whether all elements are finite; a sum usually decides it, without scratch space."""
    if not (piece.is_floating_point() or piece.is_complex()):
        return True
    wide = torch.complex128 if piece.is_complex() else torch.float32
    total = piece.sum(dtype=None if piece.dtype.itemsize >= 4 else wide)
    return bool(torch.isfinite(total)) or bool(torch.isfinite(piece).all())


def plain_arguments(arguments: list[Any]) -> tuple[str, ...]:
    """Return the parts of some arguments that are no tensors, as text, in order of the text."""
    parts = [leaf for _, leaf in leaves(arguments) if type(leaf) in _PLAIN_TYPES]
    return tuple(sorted(map(repr, parts)))
