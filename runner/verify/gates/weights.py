"""This file knows about weight maps: total, both ways; and moving weights along them uncopied."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import TypeAlias

import torch
from torch import nn

from runner.torch_internals import storage_of

Weights: TypeAlias = dict[str, torch.Tensor]

_PIECE = 1 << 22
_DEEPEST = 5
"""Lists and objects inside each other that are searched for tensors."""


@dataclass(frozen=True, slots=True)
class WeightTable:
    """Names, shapes and dtypes of a model's parameters and buffers; the tensors may be gone."""

    entries: dict[str, tuple[tuple[int, ...], str]]
    plain: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    """Tensors in plain attributes: they may be mapped, and need not."""
    tied: list[set[str]] = field(default_factory=list)
    """Groups of names for one and the same tensor."""

    def group(self, name: str) -> set[str]:
        """All names of the tensor that has this name."""
        return next((group for group in self.tied if name in group), {name})


def weights_of(model: nn.Module) -> Weights:
    """Parameters and buffers by every name that they have.

    An empty buffer that no checkpoint holds is none: it only says which device the model is on. Nor
    is a sparse buffer: a model whose forward reads one is refused.
    """
    named: Weights = dict(model.named_parameters(remove_duplicate=False))
    named.update(model.named_buffers(remove_duplicate=False))
    anchors = {
        f"{path}.{name}" if path else name
        for path, module in model.named_modules(remove_duplicate=False)
        for name in module._non_persistent_buffers_set
    }
    dense = {n: t for n, t in named.items() if t.layout is torch.strided}
    return {n: t for n, t in dense.items() if t.numel() or n not in anchors}


def table_of(model: nn.Module) -> WeightTable:
    """What `weights_of` holds, without holding it."""
    weights = weights_of(model)
    by_place: dict[object, set[str]] = defaultdict(set)
    for name, tensor in weights.items():
        by_place[_place(tensor)].add(name)
    return WeightTable(
        {name: (tuple(t.shape), dtype_name(t.dtype)) for name, t in weights.items()},
        {n: (tuple(t.shape), dtype_name(t.dtype)) for n, t in plain_tensors(model).items()},
        [names for names in by_place.values() if len(names) > 1],
    )


def _place(tensor: torch.Tensor) -> object:
    """The memory that a weight shows: also that of another one of which it is an expansion."""
    if not tensor.numel():
        return id(tensor)
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return storage_of(tensor), tensor.storage_offset(), last, tensor.dtype


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
            return f"{name} has no counterpart in the original"
    for name, source in mapping.items():
        if name not in refactored.entries:
            return f"{name} is mapped but does not exist"
        found = original.entries.get(source) or original.plain.get(source)
        if found is None:
            return f"{name} is mapped with {source}, which the original does not have"
        shape, dtype = refactored.entries[name]
        source_shape, source_dtype = found
        if shape != source_shape:
            return f"{name} has shape {list(shape)}, the original's {source} {list(source_shape)}"
        if dtype != source_dtype:
            return f"{name} is {dtype}, the original's {source} {source_dtype}"
    reached = {name for source in mapping.values() for name in original.group(source)}
    for name in original.entries:
        if name not in reached and name not in unused:
            return f"the original's {name} has no counterpart"
    return None


def plain_tensors(model: nn.Module) -> Weights:
    """Tensors that modules hold as plain attributes, in lists, dicts and objects too.

    A state that forward() replaces, a table; the weights of a module that no module registered.
    """
    registered = frozenset(map(id, model.modules()))
    return {
        name: tensor
        for path, module in model.named_modules()
        for key, value in vars(module).items()
        if key not in {"_parameters", "_buffers", "_modules"}
        for name, tensor in _held(value, f"{path}.{key}" if path else key, registered)
    }


def _held(
    value: object, name: str, known: frozenset[int], depth: int = 0
) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in an attribute; what is in `known`, by its id(), is not entered again."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth < _DEEPEST and id(value) not in known:
        deeper = depth + (not isinstance(value, nn.Module))
        for key, item in _items(value):
            yield from _held(item, f"{name}.{key}", known | {id(value)}, deeper)


def _items(value: object) -> Iterable[tuple[object, object]]:
    """Return (name, value) pairs of a list, a dict, a module or an object's attributes."""
    if isinstance(value, dict):
        return [(key, item) for key, item in value.items() if isinstance(key, str | int)]
    if isinstance(value, list | tuple):
        return enumerate(value)
    if isinstance(value, nn.Module):
        own = (value.named_parameters(recurse=False), value.named_buffers(recurse=False))
        return chain(*own, value.named_children())
    if isinstance(value, type | ModuleType | FunctionType | MethodType):
        return ()
    return vars(value).items() if hasattr(value, "__dict__") else ()


def held_weights(model: nn.Module) -> Weights:
    """All that a map may name, as it is before a forward.

    A forward may write into all but parameters, and may give these other data.
    """
    named = plain_tensors(model) | weights_of(model)
    own = {id(tensor): _own(tensor) for tensor in named.values()}
    return {name: own[id(tensor)] for name, tensor in named.items()}


def transfer(source: Weights, target: nn.Module, mapping: Mapping[str, str]) -> None:
    """Give `target` the parameters of `source`, under its own names: none is held twice.

    Buffers are its own, since a forward may write into them. ValueError where a name is mapped to
    nothing, to what is not there, or to another shape.
    """
    own: Weights = {}
    for name, current in weights_of(target).items():
        if name not in mapping:
            raise ValueError(f"{name} has no counterpart in the original")
        if mapping[name] not in source:
            raise ValueError(f"{name} is mapped with {mapping[name]}, which is not there")
        value = source[mapping[name]]
        if value.shape != current.shape or value.dtype != current.dtype:
            raise ValueError(f"{name} and {mapping[name]} differ in shape or dtype")
        path, _, leaf = name.rpartition(".")
        owner = target.get_submodule(path)
        if isinstance(current, nn.Parameter):
            is_parameter = isinstance(value, nn.Parameter)
            value = value if is_parameter else nn.Parameter(value, requires_grad=False)
        else:
            value = own.setdefault(mapping[name], _own(value).detach())
        setattr(owner, leaf, value)  # not load_state_dict: it skips buffers that are not persistent


def vary(
    model: nn.Module,
    generator: torch.Generator,
    *,
    only_defaults: bool = False,
    names: frozenset[str] | None = None,
) -> None:
    """Move every floating-point weight a little up, by amounts of its own.

    Default values hide a wrong map: a fresh BatchNorm's weight and running variance are both ones.
    Positive values stay positive. NaN and infinity stay what they are. `only_defaults`: move those
    alone that are one value throughout. `names`: move those alone.
    """
    seen: set[int] = set()
    for name, tensor in weights_of(model).items():
        if not tensor.is_floating_point() or not tensor.numel() or id(tensor) in seen:
            continue
        if names is not None and name not in names:
            continue
        seen.add(id(tensor))
        data = tensor.detach()  # not .data: others know by its version that it changed
        if data.layout != torch.strided or data.dtype.itemsize == 1 or overlapping(data):
            continue
        if only_defaults and not one_value(data):
            continue
        move(data, generator)


def move(data: torch.Tensor, generator: torch.Generator, most: float = 0.1) -> None:
    """Move each element x up by an amount of its own, at most `most` times |x| + 0.1."""
    pieces = torch.split(data.view(-1), _PIECE) if data.is_contiguous() else (data,)
    for piece in pieces:  # a weight may be a large part of what fits
        noise = torch.rand(piece.shape, generator=generator, dtype=torch.float32).to(piece)
        step = piece.abs().add_(0.1).nan_to_num_(nan=0.0, posinf=0.0)
        piece.addcmul_(step, noise, value=most)


def one_value(tensor: torch.Tensor) -> bool:
    """Whether all elements are equal; the first few mostly settle it."""
    first = tensor.select(0, 0) if tensor.dim() > 1 else tensor
    value = first.flatten()[0]
    return bool((first == value).all()) and bool((tensor == value).all())


def overlapping(tensor: torch.Tensor) -> bool:
    """Expanded: several elements are one number in memory."""
    return any(n > 1 and not step for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def _own(tensor: torch.Tensor) -> torch.Tensor:
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(tensor.data, requires_grad=tensor.requires_grad)
    return tensor.detach().clone()


def state_after(model: nn.Module) -> Weights:
    """Buffers as a forward left them."""
    named = model.named_buffers(remove_duplicate=False)
    return {name: tensor.detach().clone() for name, tensor in named}
