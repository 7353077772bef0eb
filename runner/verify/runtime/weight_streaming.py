"""Streams weights of models larger than memory: a weight has values only while it is read.

Operations on a large tensor in a module's `__init__` are recorded instead of run. They run just
before an operation reads the tensor; when other tensors need the memory, its values are freed. Both
sides of a comparison share the tensors, so they have the same weights.
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
from runner.verify.gates.weights import has_one_value, move_values, plain_tensors, weights_of
from runner.verify.runtime.deferred_tensors import (
    DeferredArgument,
    DeferredOperation,
    DeferredTensor,
    compute_values,
    takes_kind_only,
)
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.random_blocks import BLOCK

DEFERRED_BYTES = 1 << 16
"""Size from which on a tensor is deferred."""
CACHE_SHARE = 4
"""One part in this many of the memory caches weights that are not being read."""


def describe_streaming(seed: int) -> str:
    """Return the remark about streamed weights for the verdict."""
    return (
        f"weights: streamed, seed {seed}: they do not fit, so each was made by its own __init__"
        f" when an operation read it, its random numbers drawn for its name, {BLOCK} and again"
    )


class WeightStreaming(TorchDispatchMode):
    """Computes deferred tensors when they are read; it has to be on while any code may meet one."""

    def __init__(self, memory_bytes: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._cache_bytes = memory_bytes // CACHE_SHARE
        self._deferred: dict[int, DeferredTensor] = {}
        """Deferred tensors by storage key; each holds its storage, so that no address is reused."""
        self._cache: OrderedDict[int, DeferredTensor] = OrderedDict()
        """Deferred tensors that have values, the one that was read last at the end."""
        self._build_seed: int | None = None

    def build(self, make: Callable[[], Any], seed: int) -> Any:
        """Return a model with large parameters deferred, whose random numbers have this seed."""
        self._build_seed = seed
        try:
            model = make()
        finally:
            self._build_seed = None
        if isinstance(model, nn.Module):
            self._finish_build(model)
        return model

    def deferred_weights(self, model: nn.Module) -> dict[str, DeferredTensor]:
        """Return a model's deferred weights by name."""
        by_name = {name: self._deferred_of(tensor) for name, tensor in weights_of(model).items()}
        return {name: deferred for name, deferred in by_name.items() if deferred}

    def vary(self, model: nn.Module) -> frozenset[str]:
        """Let weights that are one value throughout move a little; return all deferred names.

        Random weights need not move: another seed gives other values.
        """
        deferred_weights = self.deferred_weights(model)
        for weight in deferred_weights.values():
            self._release(weight)
            weight.final_change = _move_defaults
        return frozenset(deferred_weights)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        inputs = tensors([*args, *kwargs.values()])
        deferred_inputs = [deferred for tensor in inputs if (deferred := self._deferred_of(tensor))]
        if deferred_inputs and func.is_view:
            with _temporary_memory(deferred_inputs):
                return func(*args, **kwargs)
        if self._build_seed is not None and (deferred_inputs or not inputs):
            is_deferred, result = self._defer(func, args, kwargs, bool(deferred_inputs))
            if is_deferred:
                return result
        if not deferred_inputs:
            return func(*args, **kwargs)
        self._compute(deferred_inputs)
        result = func(*args, **kwargs)
        for tensor in _written_tensors(func, args, kwargs):
            self._make_permanent(self._deferred_of(tensor))
        return result

    def _defer(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], reads_deferred: bool
    ) -> tuple[bool, Any]:
        """Record an operation if possible; return whether it was, and its result."""
        written_tensors = _written_tensors(func, args, kwargs)
        targets = [self._deferred_of(tensor) for tensor in written_tensors]
        returns = len(schema(func).returns)
        if written_tensors:
            if len(written_tensors) > 1 or targets[0] is None or returns > 1:
                return False, None
            operation = DeferredOperation(func, *self._replace_deferred(func, args, kwargs))
            self._release(targets[0])
            targets[0].writes.append(operation)
            return True, written_tensors[0] if returns else None
        if not reads_deferred and not any(
            argument.name == "device" for argument in schema(func).arguments
        ):
            return False, None
        if torch.device(kwargs.get("device") or "cpu").type != "cpu":
            return False, None
        try:
            shapes = func(*_to_meta(args), **_to_meta(kwargs) | _meta_device_keyword(func))
        except (RuntimeError, NotImplementedError):  # the shape depends on values
            return False, None
        outputs = list(shapes) if isinstance(shapes, list | tuple) else [shapes]
        if not outputs or not all(isinstance(output, torch.Tensor) for output in outputs):
            return False, None
        if (
            not reads_deferred
            and sum(output.untyped_storage().nbytes() for output in outputs) < DEFERRED_BYTES
        ):
            return False, None
        arguments = self._replace_deferred(func, args, kwargs)
        results = [
            self._make_deferred(DeferredOperation(func, *arguments, n), output)
            for n, output in enumerate(outputs)
        ]
        return True, type(shapes)(results) if isinstance(shapes, list | tuple) else results[0]

    def _replace_deferred(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments with deferred tensors replaced by references, and without generators.

        A generator is dropped because each name has its own seed.
        """
        kind_only = takes_kind_only(name_of(func))

        def replace(value: Any) -> Any:
            if isinstance(value, torch.Generator):
                return None
            if not isinstance(value, torch.Tensor):
                return value
            if deferred := self._deferred_of(value):
                return DeferredArgument.capture(value, None if kind_only else deferred)
            return value.detach().clone() if value.nbytes < DEFERRED_BYTES else value.detach()

        replaced: tuple[tuple[Any, ...], dict[str, Any]] = tree_map(replace, (args, kwargs))
        return replaced

    def _make_deferred(self, operation: DeferredOperation, like: torch.Tensor) -> torch.Tensor:
        size, stride = tuple(like.shape), tuple(like.stride())
        tensor = torch.empty_strided(size, stride, dtype=like.dtype)  # none of its pages is touched
        storage = tensor.untyped_storage()
        assert self._build_seed is not None
        deferred = DeferredTensor(
            storage,
            storage.nbytes(),
            self._build_seed,
            operation,
            DeferredArgument.capture(tensor, None),
        )
        storage.resize_(0)
        self._deferred[storage_key(storage)] = deferred
        return tensor

    def _finish_build(self, model: nn.Module) -> None:
        """Name each parameter; make other tensors permanent, as they are written to or copied."""
        for name, weight in self.deferred_weights(model).items():
            weight.name = weight.name or name
        buffers = dict(model.named_buffers(remove_duplicate=False))
        parameters = {self._deferred_of(parameter) for parameter in model.parameters()}
        for name, tensor in (buffers | plain_tensors(model)).items():
            deferred = self._deferred_of(tensor)
            if deferred and deferred not in parameters:
                deferred.name = deferred.name or name
                self._compute([deferred])
                self._make_permanent(deferred)

    def _deferred_of(self, tensor: torch.Tensor) -> DeferredTensor | None:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            return None
        return self._deferred.get(storage_of(tensor))

    def _compute(self, read_tensors: list[DeferredTensor]) -> None:
        """Compute tensors that an operation reads; free those that were not read for longest."""
        missing_tensors = {id(tensor): tensor for tensor in read_tensors if not tensor.is_filled}
        room = self._cache_bytes - sum(tensor.nbytes for tensor in missing_tensors.values())
        cached_bytes = sum(tensor.nbytes for tensor in self._cache.values())
        for tensor in list(self._cache.values()):
            if cached_bytes <= room:
                break
            if tensor not in read_tensors:
                cached_bytes -= tensor.nbytes
                self._release(tensor)
        for tensor in missing_tensors.values():
            if tensor.name is None:
                tensor.name = f"tensor {len(self._deferred)}"
            with without_modes():
                compute_values(tensor)
        for tensor in read_tensors:
            self._cache[id(tensor)] = tensor
            self._cache.move_to_end(id(tensor))

    def _release(self, deferred: DeferredTensor) -> None:
        self._cache.pop(id(deferred), None)
        deferred.storage.resize_(0)

    def _make_permanent(self, deferred: DeferredTensor | None) -> None:
        """Treat it as an ordinary tensor from now on."""
        if deferred is not None:
            self._cache.pop(id(deferred), None)
            del self._deferred[storage_key(deferred.storage)]


@contextmanager
def _temporary_memory(deferred_inputs: list[DeferredTensor]) -> Iterator[None]:
    """Give storages memory during a view operation: torch checks it, and nothing touches it."""
    empty = [deferred for deferred in deferred_inputs if not deferred.is_filled]
    for deferred in empty:
        deferred.storage.resize_(deferred.nbytes)
    try:
        yield
    finally:
        for deferred in empty:
            deferred.storage.resize_(0)


def _move_defaults(tensor: torch.Tensor, generator: torch.Generator) -> None:
    if tensor.is_floating_point() and has_one_value(tensor):
        move_values(tensor, generator)


def _written_tensors(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[torch.Tensor]:
    """Return the arguments that an operation writes into."""
    if not schema(func).is_mutable:
        return []
    results = []
    for n, argument in enumerate(schema(func).arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[n] if n < len(args) else kwargs.get(argument.name)
            results += tensors([value])
    return results


def _to_meta(value: Any) -> Any:
    """Return the same arguments without values."""

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            size, stride = tuple(value.shape), tuple(value.stride())
            return torch.empty_strided(size, stride, dtype=value.dtype, device="meta")
        return None if isinstance(value, torch.Generator) else value

    return tree_map(convert, value)


def _meta_device_keyword(func: Any) -> dict[str, Any]:
    """Return the keyword that lets an operation make its result on the meta device."""
    asks = any(argument.name == "device" for argument in schema(func).arguments)
    return {"device": torch.device("meta")} if asks else {}
