"""This file knows about weight maps: total, both ways; and moving weights along them uncopied."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import nn

Weights: TypeAlias = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class WeightTable:
    """Names, shapes and dtypes of a model's parameters and buffers; the tensors may be gone."""

    entries: dict[str, tuple[tuple[int, ...], str]]
    tied: list[set[str]] = field(default_factory=list)
    """Groups of names for one and the same tensor."""

    def group(self, name: str) -> set[str]:
        """All names of the tensor that has this name."""
        return next((group for group in self.tied if name in group), {name})


def weights_of(model: nn.Module) -> Weights:
    """Parameters and buffers by every name that they have."""
    named: Weights = dict(model.named_parameters(remove_duplicate=False))
    named.update(model.named_buffers(remove_duplicate=False))
    return named


def table_of(model: nn.Module) -> WeightTable:
    """What `weights_of` holds, without holding it."""
    weights = weights_of(model)
    by_identity: dict[int, set[str]] = defaultdict(set)
    for name, tensor in weights.items():
        by_identity[id(tensor)].add(name)
    return WeightTable(
        {name: (tuple(t.shape), dtype_name(t.dtype)) for name, t in weights.items()},
        [names for names in by_identity.values() if len(names) > 1],
    )


def dtype_name(dtype: torch.dtype) -> str:
    """`float32`."""
    return str(dtype).removeprefix("torch.")


def map_fault(
    mapping: Mapping[str, str],
    refactored: WeightTable,
    original: WeightTable,
    unused: frozenset[str] = frozenset(),
) -> str | None:
    """What is wrong with `refactored name -> original name`, in one line; None where it is total.

    `unused`: the original's names that need no counterpart.
    """
    for name in refactored.entries:
        if name not in mapping:
            return f"{name} is mapped to nothing"
    for name, source in mapping.items():
        if name not in refactored.entries:
            return f"{name} is mapped but does not exist"
        if source not in original.entries:
            return f"{name} is mapped to {source}, which the original does not have"
        shape, dtype = refactored.entries[name]
        source_shape, source_dtype = original.entries[source]
        if shape != source_shape:
            return f"{name} has shape {list(shape)}, the original's {source} {list(source_shape)}"
        if dtype != source_dtype:
            return f"{name} is {dtype}, the original's {source} {source_dtype}"
    reached = {name for source in mapping.values() for name in original.group(source)}
    for name in original.entries:
        if name not in reached and name not in unused:
            return f"the original's {name} is mapped to by nothing"
    return None


def transfer(source: Weights, target: nn.Module, mapping: Mapping[str, str]) -> None:
    """Give `target` the very tensors of `source`, under its own names: nothing is held twice.

    KeyError or AttributeError where the map names what is not there, ValueError where shapes
    differ.
    """
    for name, current in weights_of(target).items():
        if name not in mapping:
            raise ValueError(f"{name} is mapped to nothing")
        value = source[mapping[name]]
        if value.shape != current.shape or value.dtype != current.dtype:
            raise ValueError(f"{name} and {mapping[name]} differ in shape or dtype")
        path, _, leaf = name.rpartition(".")
        owner = target.get_submodule(path)
        if not isinstance(current, nn.Parameter):
            value = value.detach()
        elif not isinstance(value, nn.Parameter):
            value = nn.Parameter(value, requires_grad=False)
        setattr(owner, leaf, value)  # not load_state_dict: it skips buffers that are not persistent


def with_own_buffers(model: nn.Module) -> Weights:
    """The weights as they are before a forward, which may change buffers but not these."""
    return {
        name: tensor if isinstance(tensor, nn.Parameter) else tensor.clone()
        for name, tensor in weights_of(model).items()
    }


def vary(model: nn.Module, generator: torch.Generator) -> None:
    """Move every floating-point weight a little up, by amounts of its own.

    Default values hide a wrong map: a fresh BatchNorm's weight and running variance are both ones.
    Positive values stay positive. NaN and infinity stay what they are.
    """
    seen: set[int] = set()
    for tensor in weights_of(model).values():
        if tensor.is_floating_point() and tensor.numel() and id(tensor) not in seen:
            seen.add(id(tensor))
            noise = torch.rand(
                tensor.shape, generator=generator, dtype=torch.float32, device=generator.device
            ).to(tensor)
            tensor.data.addcmul_(tensor.data.abs().add_(0.1), noise, value=0.1)
