"""Checks that weight maps are complete both ways, and moves weights along them without copies."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import TypeAlias

import torch
from torch import nn

from runner.torch_internals import plain_tensors_in, storage_of

Weights: TypeAlias = dict[str, torch.Tensor]

_PIECE_ELEMENTS = 1 << 22
_MAX_DEPTH = 5
"""Depth of nested lists and objects that are searched for tensors."""


@dataclass(frozen=True, slots=True)
class WeightTable:
    """Names, shapes and dtypes of a model's parameters and buffers; the tensors may be freed."""

    entries: dict[str, tuple[tuple[int, ...], str]]
    plain_entries: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    """Tensors in plain attributes: a map may name them, and need not."""
    tied_names: list[set[str]] = field(default_factory=list)
    """Groups of names for the same tensor."""

    def group(self, name: str) -> set[str]:
        """Return all names of the tensor that has this name."""
        return next((group for group in self.tied_names if name in group), {name})


def weights_of(model: nn.Module) -> Weights:
    """Return parameters and buffers by all of their names.

    A weight of a tensor subclass is replaced by the plain tensors in it. Two kinds of buffers are
    left out: empty ones that no checkpoint holds, which only tell the model's device, and sparse
    ones, since a model whose forward reads one is refused.
    """
    by_name: Weights = {
        name: plain
        for weight_name, weight in chain(
            model.named_parameters(remove_duplicate=False),
            model.named_buffers(remove_duplicate=False),
        )
        for name, plain in plain_tensors_in(weight_name, weight)
    }
    anchors = {
        f"{path}.{name}" if path else name
        for path, module in model.named_modules(remove_duplicate=False)
        for name in module._non_persistent_buffers_set
    }
    dense = {n: t for n, t in by_name.items() if t.layout is torch.strided}
    return {n: t for n, t in dense.items() if t.numel() or n not in anchors}


def describe_weights(model: nn.Module) -> WeightTable:
    """Return names, shapes and dtypes of `weights_of`, without holding the tensors."""
    weights = weights_of(model)
    by_place: dict[object, set[str]] = defaultdict(set)
    for name, tensor in weights.items():
        by_place[_memory_key(tensor)].add(name)
    return WeightTable(
        {name: (tuple(t.shape), dtype_name(t.dtype)) for name, t in weights.items()},
        {n: (tuple(t.shape), dtype_name(t.dtype)) for n, t in plain_tensors(model).items()},
        [names for names in by_place.values() if len(names) > 1],
    )


def _memory_key(tensor: torch.Tensor) -> object:
    """Return a key of a weight's memory, which an expansion of the same memory shares."""
    if not tensor.numel():
        return id(tensor)
    last_offset = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return storage_of(tensor), tensor.storage_offset(), last_offset, tensor.dtype


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype's name, such as `float32`."""
    return str(dtype).removeprefix("torch.")


def weight_map_fault(
    mapping: Mapping[str, str],
    refactored: WeightTable,
    original: WeightTable,
    unused: frozenset[str] = frozenset(),
) -> str | None:
    """Return the first fault of a map `refactored name -> original name`; None if it is complete.

    `unused`: the original's names that need no counterpart.
    """
    for name in refactored.entries:
        if name not in mapping:
            return f"{name} has no counterpart in the original"
    for name, source in mapping.items():
        if name not in refactored.entries:
            return f"{name} is mapped but does not exist"
        entry = original.entries.get(source) or original.plain_entries.get(source)
        if entry is None:
            return f"{name} is mapped with {source}, which the original does not have"
        shape, dtype = refactored.entries[name]
        source_shape, source_dtype = entry
        if shape != source_shape:
            return f"{name} has shape {list(shape)}, the original's {source} {list(source_shape)}"
        if dtype != source_dtype:
            return f"{name} is {dtype}, the original's {source} {source_dtype}"
    mapped_names = {name for source in mapping.values() for name in original.group(source)}
    for name in original.entries:
        if name not in mapped_names and name not in unused:
            return f"the original's {name} has no counterpart"
    return None


def plain_tensors(model: nn.Module) -> Weights:
    """Return tensors that modules hold as plain attributes, also in lists, dicts and objects.

    These are states that forward() replaces, tables, and weights of modules that are not
    registered.
    """
    module_ids = frozenset(map(id, model.modules()))
    return {
        name: tensor
        for path, module in model.named_modules()
        for key, value in vars(module).items()
        if key not in {"_parameters", "_buffers", "_modules"}
        for name, tensor in _iterate_tensors(value, f"{path}.{key}" if path else key, module_ids)
    }


def _iterate_tensors(
    value: object, name: str, visited: frozenset[int], depth: int = 0
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors in an attribute; do not enter objects whose id() is in `visited`."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth < _MAX_DEPTH and id(value) not in visited:
        deeper = depth + (not isinstance(value, nn.Module))
        for key, item in _named_items(value):
            yield from _iterate_tensors(item, f"{name}.{key}", visited | {id(value)}, deeper)


def _named_items(value: object) -> Iterable[tuple[object, object]]:
    """Return (name, value) pairs of a list, a dict, a module or an object's attributes."""
    if isinstance(value, dict):
        return [(key, item) for key, item in value.items() if isinstance(key, str | int)]
    if isinstance(value, list | tuple):
        return enumerate(value)
    if isinstance(value, nn.Module):
        direct = (value.named_parameters(recurse=False), value.named_buffers(recurse=False))
        return chain(*direct, value.named_children())
    if isinstance(value, type | ModuleType | FunctionType | MethodType):
        return ()
    return vars(value).items() if hasattr(value, "__dict__") else ()


def snapshot_weights(model: nn.Module) -> Weights:
    """Return all tensors that a map may name, with their values before a forward.

    Other tensors than parameters are copied, since a forward may write into them. Parameters are
    wrapped, since it may give them other data.
    """
    by_name = plain_tensors(model) | weights_of(model)
    copies = {id(tensor): _copy_weight(tensor) for tensor in by_name.values()}
    return {name: copies[id(tensor)] for name, tensor in by_name.items()}


def parameter_storages(weights: Weights, names: Iterable[str]) -> frozenset[int]:
    """Return the storages of the parameters of these names, which `transfer_weights` keeps.

    It may copy a parameter that no module registered, such as one in a list, into a buffer.
    """
    named = (weights[name] for name in names)
    return frozenset(storage_of(tensor) for tensor in named if isinstance(tensor, nn.Parameter))


def transfer_weights(source: Weights, target: nn.Module, mapping: Mapping[str, str]) -> None:
    """Give `target` the parameters of `source` under its own names, without copying them.

    Buffers are copied, since a forward may write into them. ValueError if a name is mapped to
    nothing, to a missing name, or to another shape.
    """
    buffers: Weights = {}
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
            value = buffers.setdefault(mapping[name], _copy_weight(value).detach())
        setattr(owner, leaf, value)  # load_state_dict skips non-persistent buffers


def vary_weights(
    model: nn.Module,
    generator: torch.Generator,
    *,
    only_defaults: bool = False,
    names: frozenset[str] | None = None,
    zeros_limit: float = 0.1,
) -> None:
    """Move every floating-point weight up a little, each element by its own random amount.

    Default values hide a wrong map: a fresh BatchNorm's weight and running variance are both ones.
    Positive values stay positive; NaN and infinity stay; no element of a table becomes larger than
    its largest one. `only_defaults`: move only weights with one value throughout. `names`: move
    only these. `zeros_limit`: the limit of `move_values` for vectors of zeros, such as a fresh
    bias.
    """
    visited: set[int] = set()
    for name, tensor in weights_of(model).items():
        if not tensor.is_floating_point() or not tensor.numel() or id(tensor) in visited:
            continue
        if names is not None and name not in names:
            continue
        visited.add(id(tensor))
        data = tensor.detach()  # not .data: others detect a change by the tensor's version
        if data.layout != torch.strided or data.dtype.itemsize == 1 or has_overlap(data):
            continue
        if only_defaults and not has_one_value(data):
            continue
        is_zero_vector = data.dim() == 1 and not data.any()
        is_table = not isinstance(tensor, nn.Parameter) and not has_one_value(data)
        largest = data.max() if is_table else None  # `1 - x` and its root need no x above 1.
        move_values(data, generator, zeros_limit if is_zero_vector else 0.1)
        if largest is not None:
            data.copy_(torch.where(data > largest, 2 * largest - data, data))


def move_values(data: torch.Tensor, generator: torch.Generator, limit: float = 0.1) -> None:
    """Move each element x up by its own random amount, at most `limit` times |x| + 0.1."""
    pieces = torch.split(data.view(-1), _PIECE_ELEMENTS) if data.is_contiguous() else (data,)
    for piece in pieces:  # in pieces, since a weight may take much of the memory
        noise = torch.rand(piece.shape, generator=generator, dtype=torch.float32).to(piece)
        step = piece.abs().add_(0.1).nan_to_num_(nan=0.0, posinf=0.0)
        piece.addcmul_(step, noise, value=limit)


def has_one_value(tensor: torch.Tensor) -> bool:
    """Return whether all elements are equal; the first few usually decide it."""
    first = tensor.select(0, 0) if tensor.dim() > 1 else tensor
    value = first.flatten()[0]
    return bool((first == value).all()) and bool((tensor == value).all())


def has_overlap(tensor: torch.Tensor) -> bool:
    """Return whether several elements are one number in memory, as in an expanded tensor."""
    return any(n > 1 and not step for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def _copy_weight(tensor: torch.Tensor) -> torch.Tensor:
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(tensor.data, requires_grad=tensor.requires_grad)
    return tensor.detach().clone()


def copy_buffers(model: nn.Module) -> Weights:
    """Return copies of the buffers, as a forward left them."""
    by_name = model.named_buffers(remove_duplicate=False)
    return {name: tensor.detach().clone() for name, tensor in by_name}


def buffer_states(model: nn.Module) -> dict[str, tuple[torch.Tensor, int]]:
    """Return each buffer with the number of times that it was written into."""
    return {name: (tensor, tensor._version) for name, tensor in model.named_buffers()}


def written_buffers(states: Mapping[str, tuple[torch.Tensor, int]], model: nn.Module) -> list[str]:
    """Return the buffers that were written into or replaced since `states` were taken."""
    now = buffer_states(model)
    return [
        name
        for name, (tensor, version) in states.items()
        if name not in now or now[name][0] is not tensor or now[name][1] != version
    ]
