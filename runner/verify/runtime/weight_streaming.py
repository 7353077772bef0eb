"""This file knows about models larger than memory: weights are there while an operation reads them.

What a module's `__init__` does to a large tensor is written down instead of done. An operation that
reads the tensor has that done just before; when others need the room, the numbers leave again.
Whoever shares the tensor shares its numbers, so both sides of a comparison have the same weights.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from runner.torch_internals import (
    TorchDispatchMode,
    name_of,
    schema,
    storage_key,
    storage_of,
    tree_map,
    without_modes,
)
from runner.verify.gates.weights import move, one_value, plain_tensors, weights_of
from runner.verify.runtime.deferred_tensors import Deferred, Place, Step, fill, takes_kind_only
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.random_blocks import BLOCK

DEFERRED_BYTES = 1 << 16
"""From this size on a tensor is made when it is needed."""
HELD_SHARE = 4
"""Of the memory that there is, one part in so many holds weights that are not being read."""


def told(seed: int) -> str:
    """What a verdict that was reached like this says of it."""
    return (
        f"weights: streamed, seed {seed}: they do not fit, so each was made by its own __init__"
        f" when an operation read it, its random numbers drawn for its name, {BLOCK} and again"
    )


class Streaming(TorchDispatchMode):
    """On while anything runs that could meet a deferred tensor: elsewhere it is empty memory."""

    def __init__(self, memory_bytes: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._held_bytes = memory_bytes // HELD_SHARE
        self._known: dict[int, Deferred] = {}
        """By storage; each holds its storage, so that no address is given out again."""
        self._filled: OrderedDict[int, Deferred] = OrderedDict()
        """The one that was read last is last."""
        self._making: int | None = None

    def build(self, make: Callable[[], Any], number: int) -> Any:
        """A model whose large parameters are deferred. `number`: seed of what is random in them."""
        self._making = number
        try:
            model = make()
        finally:
            self._making = None
        if isinstance(model, nn.Module):
            self._settle(model)
        return model

    def weights(self, model: nn.Module) -> dict[str, Deferred]:
        """The deferred ones, by name."""
        named = {name: self._of(tensor) for name, tensor in weights_of(model).items()}
        return {name: deferred for name, deferred in named.items() if deferred}

    def vary(self, model: nn.Module) -> frozenset[str]:
        """Let weights that are one value throughout move a little; names of all that are deferred.

        Random ones need not: for another seed they are others.
        """
        deferred = self.weights(model)
        for one in deferred.values():
            self._release(one)
            one.finish = _move_defaults
        return frozenset(deferred)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        given = tensors([*args, *kwargs.values()])
        met = [deferred for tensor in given if (deferred := self._of(tensor))]
        if met and func.is_view:
            with _room(met):
                return func(*args, **kwargs)
        if self._making is not None and (met or not given):
            done, result = self._defer(func, args, kwargs, bool(met))
            if done:
                return result
        if not met:
            return func(*args, **kwargs)
        self._fill(met)
        result = func(*args, **kwargs)
        for tensor in _written(func, args, kwargs):
            self._keep(self._of(tensor))
        return result

    def _defer(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], met: bool
    ) -> tuple[bool, Any]:
        """Write an operation down. Whether that could be done, and what it returns then."""
        written = _written(func, args, kwargs)
        targets = [self._of(tensor) for tensor in written]
        returns = len(schema(func).returns)
        if written:
            if len(written) > 1 or targets[0] is None or returns > 1:
                return False, None
            step = Step(func, *self._noted(func, args, kwargs))
            self._release(targets[0])
            targets[0].then.append(step)
            return True, written[0] if returns else None
        if not met and not any(argument.name == "device" for argument in schema(func).arguments):
            return False, None
        if torch.device(kwargs.get("device") or "cpu").type != "cpu":
            return False, None
        try:
            shapes = func(*_on_meta(args), **_on_meta(kwargs) | _device(func))
        except (RuntimeError, NotImplementedError):  # the shape depends on values
            return False, None
        outputs = list(shapes) if isinstance(shapes, list | tuple) else [shapes]
        if not outputs or not all(isinstance(output, torch.Tensor) for output in outputs):
            return False, None
        if (
            not met
            and sum(output.untyped_storage().nbytes() for output in outputs) < DEFERRED_BYTES
        ):
            return False, None
        noted = self._noted(func, args, kwargs)
        made = [self._new(Step(func, *noted, n), output) for n, output in enumerate(outputs)]
        return True, type(shapes)(made) if isinstance(shapes, list | tuple) else made[0]

    def _noted(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with places for deferred tensors, and no generator: each name has its own."""
        kind_only = takes_kind_only(name_of(func))

        def note(value: Any) -> Any:
            if isinstance(value, torch.Generator):
                return None
            if not isinstance(value, torch.Tensor):
                return value
            if deferred := self._of(value):
                return Place.at(value, None if kind_only else deferred)
            return value.detach().clone() if value.nbytes < DEFERRED_BYTES else value.detach()

        noted: tuple[tuple[Any, ...], dict[str, Any]] = tree_map(note, (args, kwargs))
        return noted

    def _new(self, step: Step, like: torch.Tensor) -> torch.Tensor:
        size, stride = tuple(like.shape), tuple(like.stride())
        tensor = torch.empty_strided(size, stride, dtype=like.dtype)  # no page of it is touched
        storage = tensor.untyped_storage()
        assert self._making is not None
        deferred = Deferred(storage, storage.nbytes(), self._making, step, Place.at(tensor, None))
        storage.resize_(0)
        self._known[storage_key(storage)] = deferred
        return tensor

    def _settle(self, model: nn.Module) -> None:
        """Give each parameter its name. What is no parameter is written to, or copied: it stays."""
        for name, weight in self.weights(model).items():
            weight.name = weight.name or name
        buffers = dict(model.named_buffers(remove_duplicate=False))
        parameters = {self._of(parameter) for parameter in model.parameters()}
        for name, tensor in (buffers | plain_tensors(model)).items():
            deferred = self._of(tensor)
            if deferred and deferred not in parameters:
                deferred.name = deferred.name or name
                self._fill([deferred])
                self._keep(deferred)

    def _of(self, tensor: torch.Tensor) -> Deferred | None:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            return None
        return self._known.get(storage_of(tensor))

    def _fill(self, needed: list[Deferred]) -> None:
        """Numbers for what an operation reads, in the place of those that wait the longest."""
        missing = {id(one): one for one in needed if not one.filled}
        room = self._held_bytes - sum(one.nbytes for one in missing.values())
        held = sum(one.nbytes for one in self._filled.values())
        for one in list(self._filled.values()):
            if held <= room:
                break
            if one not in needed:
                held -= one.nbytes
                self._release(one)
        for one in missing.values():
            if one.name is None:
                one.name = f"tensor {len(self._known)}"
            with without_modes():
                fill(one)
        for one in needed:
            self._filled[id(one)] = one
            self._filled.move_to_end(id(one))

    def _release(self, deferred: Deferred) -> None:
        self._filled.pop(id(deferred), None)
        deferred.storage.resize_(0)

    def _keep(self, deferred: Deferred | None) -> None:
        """From now on it is a tensor like any other."""
        if deferred is not None:
            self._filled.pop(id(deferred), None)
            del self._known[storage_key(deferred.storage)]


@contextmanager
def _room(met: list[Deferred]) -> Iterator[None]:
    """A view moves no number, and torch wants to see that there is memory below it; untouched."""
    empty = [deferred for deferred in met if not deferred.filled]
    for deferred in empty:
        deferred.storage.resize_(deferred.nbytes)
    try:
        yield
    finally:
        for deferred in empty:
            deferred.storage.resize_(0)


def _move_defaults(tensor: torch.Tensor, generator: torch.Generator) -> None:
    if tensor.is_floating_point() and one_value(tensor):
        move(tensor, generator)


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Tensors among the arguments that an operation writes into."""
    if not schema(func).is_mutable:
        return []
    found = []
    for n, argument in enumerate(schema(func).arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[n] if n < len(args) else kwargs.get(argument.name)
            found += tensors([value])
    return found


def _on_meta(value: Any) -> Any:
    """The same arguments without numbers."""

    def bare(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            size, stride = tuple(value.shape), tuple(value.stride())
            return torch.empty_strided(size, stride, dtype=value.dtype, device="meta")
        return None if isinstance(value, torch.Generator) else value

    return tree_map(bare, value)


def _device(func: Any) -> dict[str, Any]:
    """Where an operation that asks for a device is to make its result."""
    asks = any(argument.name == "device" for argument in schema(func).arguments)
    return {"device": torch.device("meta")} if asks else {}
