"""Wraps the private names of torch that kdrun uses, which torch may change in any release.

Unless a docstring says otherwise, a name exists in torch 2.9.1, 2.11.0, 2.13.0 and 2.15.0. Where
versions differ, this module checks whether a name exists; it never compares versions. No other file
of kdrun but torch_tracing.py uses a private name of torch (a test checks it), except for these
stable ones:

- `_parameters`, `_buffers`, `_modules`, `_non_persistent_buffers_set` and `_forward_pre_hooks` of
  `nn.Module`, which every saved module holds by these names;
- `Tensor._version`, which PyTorch's notes on autograd document;
- operators below `torch.ops.aten`: an underscore in their names is part of the operator.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch._subclasses as subclasses
import torch.utils.backend_registration as backends
from torch._C import DisableTorchFunction
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeCopyMode,
    FakeTensor,
    UnsupportedOperatorException,
)
from torch._subclasses.fake_tensor import FakeTensorMode as _FakeTensorMode
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    is_traceable_wrapper_subclass,
)
from torch.utils._pytree import (
    SUPPORTED_NODES,
    GetAttrKey,
    register_pytree_node,
    tree_flatten,
    tree_map,
    tree_map_only,
    tree_unflatten,
)
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

NEWEST_TESTED = "2.15.0"
"""Newest torch that the samples and the tests of docs/versions.md were run with."""

__all__ = [  # noqa: RUF022  (grouped by purpose)
    # Run a program on tensors with shapes but no values; the exceptions for an operation that
    # needs values.
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeCopyMode",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedOperatorException",
    # Module in which libraries look up FakeTensor to find out whether they are being traced.
    "subclasses",
    # Classes of the targets of traced nodes.
    "HigherOrderOperator",
    "OpOverload",
    # Intercepts each operator that a program calls.
    "TorchDispatchMode",
    # Refer to a tensor, or map tensors by identity, and keep none alive.
    "TensorWeakRef",
    "WeakTensorKeyDictionary",
    # Calls torch without a program's `__torch_function__`.
    "DisableTorchFunction",
    # Flatten inputs and results into tensors, as torch.export does, and rebuild them.
    "SUPPORTED_NODES",
    "GetAttrKey",
    "register_pytree_node",
    "tree_flatten",
    "tree_map",
    "tree_map_only",
    "tree_unflatten",
]


class FakeTensorMode(_FakeTensorMode):  # type: ignore[no-untyped-call]
    """Torch's FakeTensorMode, except that a deep copy of it is the mode itself.

    A model that deep-copies its modules (heads of a decoder) also copies their fake tensors, which
    refer to their mode. A copied mode would hold the same references to storages and free them a
    second time, which crashes the process.
    """

    def __deepcopy__(self, memo: Any) -> FakeTensorMode:
        return self


without_modes = _disable_current_modes
"""Context manager in which operations run without any torch function or dispatch modes."""

# Operators and storages


def schema(operator: Any) -> Any:
    """Return an operator's schema: its name, arguments, returns, and whether it writes."""
    return operator._schema


def define_fake_operator(name: str, signature: str, compute: Callable[..., Any]) -> OpOverload:
    """Return a new operator that only fake tensors can be given.

    `compute` makes its results from its arguments; `signature` is in torch's schema language.
    """
    torch.library.define(name, signature)
    torch.library.register_fake(name, compute)
    namespace, _, operator = name.partition("::")
    overload: OpOverload = getattr(getattr(torch.ops, namespace), operator).default
    return overload


FUNCTIONS = frozenset(dir(torch._C._VariableFunctions))
"""Names of torch's functions on tensors, private ones included."""


def find_operator(name: str) -> OpOverload | None:
    """Return the operator with a name such as `aten::add.Tensor`, or None.

    Only operators that the dispatcher knows are found: not those of TorchScript (`aten::save`
    writes a file), nor the methods of torch.ops itself (`load_library`).
    """
    try:
        is_registered = torch._C._dispatch_has_kernel(name)
    except RuntimeError:
        return None
    if not is_registered:
        return None
    namespace, _, qualified_name = name.partition("::")
    plain, _, overload = qualified_name.partition(".")
    target: Any = torch.ops
    for part in (namespace, plain, overload or "default"):
        target = getattr(target, part, None)
    return target if isinstance(target, OpOverload) else None


def name_of(operator: Any) -> str:
    """Return an operator's name without its namespace (`aten::`) and its overload."""
    return str(operator._schema.name).partition("::")[2]


def overload_of(operator: Any) -> str:
    """Return the name of an operator's overload, or `default` if it has none."""
    return operator._schema.overload_name or "default"


def set_nonzero_count(mask: Any, count: int) -> None:
    """Set how many elements of a fake tensor are not 0: as many are selected by it as a mask."""
    mask.nonzero_memo = count


def set_unique_count(tensor: Any, count: int, *, consecutive: bool) -> None:
    """Set how many numbers of a fake tensor differ; `consecutive` counts runs of equal ones."""
    if consecutive:
        tensor.unique_consecutive_memo = count
    else:
        tensor.unique_memo = count


def storage_key(storage: torch.UntypedStorage) -> int:
    """Return a number that identifies a storage, fake or not, as long as it exists."""
    return int(storage._cdata)


def storage_of(tensor: torch.Tensor) -> int:
    """Return the number that identifies a tensor's storage, which views of it share.

    A sparse tensor has no storage: the number identifies the tensor itself.
    """
    if tensor.layout is not torch.strided:
        return int(tensor._cdata)
    return int(tensor.untyped_storage()._cdata)


def plain_tensors_in(name: str, tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the plain tensors that a weight consists of, by their names in the model.

    A quantised weight is a tensor subclass around the integers and their scales. They are called
    as torch.export reads them: `fc.weight.qdata` and `fc.weight.scale`. Most weights are one plain
    tensor with the name that they have.
    """
    if not is_traceable_wrapper_subclass(tensor):
        yield name, tensor
        return
    attributes, _ = tensor.__tensor_flatten__()
    for attribute in attributes:
        yield from plain_tensors_in(f"{name}.{attribute}", getattr(tensor, attribute))


def consist_of_plain_tensors(types: Iterable[type]) -> bool:
    """Return whether one of an operator's tensors consists of plain ones, which it computes with.

    A dispatch mode that returns NotImplemented for such an operator sees the operators on the plain
    tensors instead.
    """
    return any(hasattr(cls, "__tensor_flatten__") for cls in types)


def replace_plain_tensors(
    name: str, tensor: torch.Tensor, replacements: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    """Return a weight made of other plain tensors, which `plain_tensors_in` would name so."""
    if not is_traceable_wrapper_subclass(tensor):
        return replacements[name]
    attributes, context = tensor.__tensor_flatten__()
    inner = {
        attribute: replace_plain_tensors(
            f"{name}.{attribute}", getattr(tensor, attribute), replacements
        )
        for attribute in attributes
    }
    rebuilt: torch.Tensor = type(tensor).__tensor_unflatten__(
        inner, context, tensor.size(), tensor.stride()
    )
    return rebuilt


@functools.lru_cache(maxsize=4096)
def is_composite(operator: Any) -> bool:
    """Return whether an operator is implemented only by calls of other operators."""
    if not torch._C._dispatch_has_kernel(operator.name()):
        return False  # queries of torch itself, such as prim::device
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), key))


_DECOMPOSED = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)


@contextlib.contextmanager
def replace_decompositions(
    operators: Iterable[OpOverload], replace: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """Replace the Python decompositions of operators by what `replace` returns for each."""
    original_kernels = {operator: dict(operator.py_kernels) for operator in operators}
    try:
        for operator, kernels in original_kernels.items():
            for key in _DECOMPOSED:
                if key in kernels:
                    operator.py_kernels[key] = replace(kernels[key])
            operator._dispatch_cache.clear()
        yield
    finally:
        for operator, kernels in original_kernels.items():
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()


@contextlib.contextmanager
def replace_attribute(holder: Any, name: str, value: Any) -> Iterator[None]:
    """Give an attribute another value for a while."""
    original = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, original)


# Modes and hooks


def stack_depths() -> tuple[int, int]:
    """Return the numbers of active torch function modes and of active torch dispatch modes."""
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def pop_modes(functions: int, operators: int) -> None:
    """Remove the modes that were entered since `stack_depths()` returned these numbers."""
    while torch._C._len_torch_function_stack() > functions:
        torch._C._pop_torch_function_stack()
    while torch._C._len_torch_dispatch_stack() > operators:
        torch._C._pop_torch_dispatch_stack(None)


# A device without hardware


class _Backend:
    """Functions that torch requires of a device's module; it reports no available device."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return False

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        pass

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]


_set_up_backend: Any = getattr(backends, "_setup_privateuseone_for_python_backend", None)
"""Registers a device with the guard that indexing needs. Experimental; absent in 2.9.1."""


def device_without_hardware(name: str) -> torch.device:
    """Return a device that torch knows but no machine has, for fake tensors to be on.

    It has the given name, or that of the backend that is installed as torch's `privateuse1`.
    """
    backend_name: str = torch._C._get_privateuse1_backend_name()
    if backend_name == "privateuseone":
        if _set_up_backend:
            _set_up_backend(rename=name, backend_module=_Backend())
        else:
            backends.rename_privateuse1_backend(name)
            backends.generate_methods_for_privateuse1_backend()
            torch._register_device_module(name, _Backend())  # type: ignore[no-untyped-call]
        backend_name = name
    return torch.device(backend_name, 0)


@contextlib.contextmanager
def without_guards() -> Iterator[None]:
    """Replace the Python methods of tensors that need a device guard, if the device has none.

    They are `tensor[index]`, `tensor[index] = value`, `copy_`, `contiguous` and `~tensor`; the
    operators that implement them need no guard.
    """
    methods = {} if _set_up_backend else _WITHOUT_GUARD
    for name, method in methods.items():
        setattr(torch.Tensor, name, method)
    try:
        yield
    finally:
        for name in methods:
            delattr(torch.Tensor, name)  # torch's own method is in a base class


_ATEN = torch.ops.aten


def _get_item(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    parts = _split_index(tensor, index)
    if parts is None:
        return super(torch.Tensor, tensor).__getitem__(index)
    view, indices = parts
    if indices:
        view = _ATEN.index.Tensor(view, indices)
    return _ATEN.alias.default(view) if view is tensor else view


def _set_item(tensor: torch.Tensor, index: Any, value: Any) -> None:
    parts = _split_index(tensor, index)
    if parts is None:
        return super(torch.Tensor, tensor).__setitem__(index, value)
    view, indices = parts
    if not indices:
        view.copy_(value) if isinstance(value, torch.Tensor) else view.fill_(value)
    else:
        is_tensor = isinstance(value, torch.Tensor)
        view.index_put_(indices, value if is_tensor else view.new_full((), value))
    return None


def _split_index(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, list[Any]] | None:
    """Return a view of a tensor, and the index tensors to apply to it, for an index expression.

    None on the CPU, and for an index that needs the value of a tensor.
    """
    items = index if isinstance(index, tuple) else (index,)
    items = tuple(torch.tensor(item) if isinstance(item, list) else item for item in items)
    if tensor.device.type == "cpu" or not all(map(_is_plain, items)):
        return None
    indexed_dims = sum(
        item.dim() if _is_mask(item) else item is not None and item is not ... for item in items
    )
    result, dim, indices = tensor, 0, list[Any]()
    for item in items:
        if item is ...:
            dim += tensor.dim() - indexed_dims
        elif item is None:
            result, dim = result.unsqueeze(dim), dim + 1
        elif type(item) is int:
            result = result.select(dim, item)
        elif type(item) is slice:
            is_full = item.indices(result.shape[dim]) == (0, result.shape[dim], 1)
            if not is_full or len(items) == 1:
                stop = sys.maxsize if item.stop is None else item.stop
                result = _ATEN.slice.Tensor(result, dim, item.start or 0, stop, item.step or 1)
            dim += 1
        else:
            indices += [None] * (dim - len(indices)) + [item]
            dim += item.dim() if _is_mask(item) else 1
    return result, indices


def _is_plain(index: Any) -> bool:
    """Return whether an index needs no value of a tensor."""
    return index is None or index is ... or type(index) in {int, slice} or _has_dims(index)


def _has_dims(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dim() > 0


def _is_mask(index: Any) -> bool:
    return _has_dims(index) and index.dtype in {torch.bool, torch.uint8}


def _contiguous(
    tensor: torch.Tensor, *, memory_format: torch.memory_format = torch.contiguous_format
) -> torch.Tensor:
    if tensor.is_contiguous(memory_format=memory_format):
        return tensor
    return _ATEN.contiguous.default(tensor, memory_format=memory_format)  # type: ignore[no-any-return]


_WITHOUT_GUARD = {
    "__getitem__": _get_item,
    "__setitem__": _set_item,
    "contiguous": _contiguous,
    "copy_": lambda tensor, *args, **kwargs: _ATEN.copy_.default(tensor, *args, **kwargs),
    "__invert__": lambda tensor: torch.bitwise_not(tensor),
}


def is_settled(size: torch.SymInt) -> bool:
    """Return whether a size that was a symbol has turned out to be a number."""
    return size.node.maybe_as_int() is not None


def mixes_devices(error: BaseException) -> bool:
    """Return whether an error says that an operation got fake tensors of different devices.

    torch raises `FakeTensorDeviceMismatchError` (seen in 2.13.0 and 2.15.0) or RuntimeError, both
    in a function named `merge_devices`.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].name == "merge_devices"
