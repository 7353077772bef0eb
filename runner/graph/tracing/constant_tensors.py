"""Describes tensors that no operator makes: held by the model, or written out in forward."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING

import torch
from torch.fx import Node as FxNode

from runner.graph.ir import Operation, Ref, State, TensorSpec, references
from runner.graph.tracing.provenance import tensor_literal
from runner.graph.tracing.refusal import CaptureRefusal
from runner.graph.tracing.value_recipes import ValueRecorder
from runner.torch_internals import FakeTensor, storage_of, without_modes

if TYPE_CHECKING:
    from runner.graph.tracing.export_trace import BuiltProblem

_LONGEST_LITERAL = 16384
"""Most numbers that a forward may write out, or take from NumPy."""
_MAX_DEPTH = 5
"""Greatest nesting depth of lists and objects that are searched for tensors."""
_HOLD_NOTHING = frozenset({bool, int, float, str, type(None), torch.dtype, torch.device})
"""Types whose values hold no tensors: most attributes of a module are of these."""
_LIFTED_PATH = re.compile(r"\blifted_tensor_\d+$")
"""Matches the path that torch gives to a tensor that forward() writes out."""


PlainTensors = dict[Hashable, tuple[str, bool]]
"""The tensors in a model's plain attributes, by memory and shape.

Each has its path, such as `scales.1`, and whether it is a parameter.
"""


def constant_state(
    built: BuiltProblem,
    path: str,
    tensor: torch.Tensor,
    plain_tensors: PlainTensors,
    *,
    written_out: bool,
) -> State:
    """Return the state for a tensor that no operator of the program makes.

    `written_out`: the author wrote the numbers in Python or NumPy, so they are no result of code
    that a tracer could not follow.
    """
    recipe, literal = built.model_recorder.recipe(tensor), tensor_literal(tensor)
    held_path, is_parameter = plain_tensors.get(_memory_and_shape(tensor), (None, False))
    if is_parameter:
        recipe = literal = None  # its values may change, as those of a registered parameter
    if recipe is None and literal is None and held_path is None:
        literal = tensor_literal(tensor, longest=_LONGEST_LITERAL) if written_out else None
        if literal is None:
            raise CaptureRefusal(
                f"forward() makes {tensor.numel():,} numbers, and not by torch's operators",
                "make it in __init__() and keep it with register_buffer()",
            )
    return State(held_path or path, "constant", recipe, literal, ones=_count_ones(tensor))


def buffer_state(built: BuiltProblem, path: str, tensor: torch.Tensor) -> State:
    """Return the state for a buffer.

    Of a mask or of integers that no short recipe makes, the numbers themselves give one, or the
    range to draw from: an index that is always 0 would read one row of a table.
    """
    recorder = built.model_recorder
    recipe, literal = recorder.recipe(tensor), None
    if recipe is None:
        with without_modes():
            replayed = None if tensor.is_floating_point() else recorder.replay(tensor)
            tensor = replayed[-1][1] if replayed else tensor
            literal = tensor_literal(tensor)
            if literal is None and not isinstance(tensor, FakeTensor):
                draws = not tensor.is_floating_point() and tensor.dtype != torch.bool
                recipe = ValueRecorder(inputs=draws).recipe(tensor)
    gradient = tensor.requires_grad
    return State(path, "buffer", recipe, literal, requires_grad=gradient, ones=_count_ones(tensor))


def _count_ones(tensor: torch.Tensor) -> int | None:
    """Return the number of true elements of a mask; None for other tensors and for fake ones."""
    if tensor.dtype != torch.bool or isinstance(tensor, FakeTensor):
        return None
    with without_modes():
        return int(tensor.sum())


def is_written_out(node: FxNode, value: torch.Tensor) -> bool:
    """Return whether a tensor was made by torch.tensor() or NumPy, and is no stored result."""
    lifted = all("lift_fresh" in str(user.target) for user in node.users)
    return lifted or not value.untyped_storage().resizable()


def set_mask_counts(
    states: dict[str, State], operations: Iterable[Operation], values: Mapping[str, TensorSpec]
) -> None:
    """Set how many elements a mask without values selects, from the size of what it receives."""
    for op in operations:
        if op.name not in {"index_put", "index_put_"} or not isinstance(op.args[2], Ref):
            continue
        indices, update = [*references(op.args[1])], values[op.args[2].name]
        if len(indices) != 1 or indices[0] not in states or states[indices[0]].ones is not None:
            continue
        mask, target = values[indices[0]], values[next(op.refs())]
        if mask.dtype == "bool" and update.numel > 1:
            ones = update.numel * mask.numel // target.numel
            states[indices[0]] = replace(states[indices[0]], ones=ones)


def name_literals(
    states: dict[str, State], operations: Iterable[Operation], varying: Collection[str]
) -> None:
    """Name tensors that forward() writes out after the author's variables, if there are any."""
    literals = {name for name, state in states.items() if _LIFTED_PATH.search(state.path)}
    statements = {_statement(op) for op in operations if any(o in varying for o in op.outputs)}
    for name in literals:
        states[name] = replace(states[name], path="constant")
    for op in operations:
        first = next(op.refs(), "")
        targets = op.origin.targets if op.origin is not None else ()
        if first in literals and len(targets) == 1 and _statement(op) not in statements:
            literals.discard(first)
            states[first] = replace(states[first], path=targets[0])


def _statement(op: Operation) -> tuple[str, int] | None:
    return (op.origin.file, op.origin.statement) if op.origin is not None else None


def list_plain_tensors(model: torch.nn.Module) -> PlainTensors:
    """Return a model's plain tensors; of those with one memory, the first."""
    listed: PlainTensors = {}
    for path, tensor in find_plain_tensors(model).items():
        entry = path, isinstance(tensor, torch.nn.Parameter)
        listed.setdefault(_memory_and_shape(tensor), entry)
    return listed


def _memory_and_shape(tensor: torch.Tensor) -> Hashable:
    return storage_of(tensor), str(tensor.shape)  # a size that is not known has no hash


def find_plain_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the tensors that modules hold as plain attributes, also in lists, dicts and objects.

    Examples are a state that forward() replaces, a table, and weights of a module that is not
    registered in another one.
    """
    attributes = _plain_attributes(model).items()
    return {name: value for name, value in attributes if isinstance(value, torch.Tensor)}


def find_plain_modules(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Return the modules in attributes, lists, dicts and objects that no module registered."""
    attributes = _plain_attributes(model).items()
    return {name: value for name, value in attributes if isinstance(value, torch.nn.Module)}


def _plain_attributes(model: torch.nn.Module) -> dict[str, object]:
    registered = frozenset(map(id, model.modules()))
    return {
        name: content
        for path, module in model.named_modules()
        for key, value in vars(module).items()
        if key not in {"_parameters", "_buffers", "_modules"} and type(value) not in _HOLD_NOTHING
        for name, content in _walk_attribute(value, f"{path}.{key}" if path else key, registered)
    }


def _walk_attribute(
    value: object,
    name: str,
    registered: frozenset[int],
    around: tuple[int, ...] = (),
    depth: int = 0,
) -> Iterator[tuple[str, object]]:
    """Yield an attribute and everything in it.

    `registered` and `around`: id() of objects that are not entered, the model's modules and the
    objects that hold this one.
    """
    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth < _MAX_DEPTH and id(value) not in registered and id(value) not in around:
        yield name, value
        around = (*around, id(value))
        next_depth = depth + (not isinstance(value, torch.nn.Module))
        for key, item in _list_members(value):
            if type(item) in _HOLD_NOTHING:
                continue
            yield from _walk_attribute(item, f"{name}.{key}", registered, around, next_depth)


def _list_members(value: object) -> Iterable[tuple[object, object]]:
    """Return (name, value) pairs of a list, a dict, a module or an object's attributes."""
    if isinstance(value, dict):
        return [(key, item) for key, item in value.items() if isinstance(key, str | int)]
    if isinstance(value, list | tuple):
        return enumerate(value)
    if isinstance(value, torch.nn.Module):
        tensors = (value.named_parameters(recurse=False), value.named_buffers(recurse=False))
        return chain(*tensors, value.named_children())
    if isinstance(value, type | ModuleType | FunctionType | MethodType):
        return ()
    return vars(value).items() if hasattr(value, "__dict__") else ()
