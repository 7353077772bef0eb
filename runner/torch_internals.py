"""The names that torch does not promise to keep: what kdrun uses each for, and where it was seen.

Unless a name says otherwise it was seen in torch 2.9.1, 2.11.0, 2.13.0 and 2.15.0. Where versions
differ, this file asks whether a name is there; it never compares versions. No other file of kdrun
names anything private in torch (a test sees to it), but for these, which are safe where they are:

- `_parameters`, `_buffers`, `_modules`, `_non_persistent_buffers_set` and `_forward_pre_hooks` of
  `nn.Module`, which every saved module holds by these names;
- `Tensor._version`, which PyTorch's notes on autograd describe;
- operators below `torch.ops.aten`: an underscore in their names is part of the operator.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
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
from torch.fx.proxy import TracerBase
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import (
    SUPPORTED_NODES,
    GetAttrKey,
    register_pytree_node,
    tree_flatten,
    tree_map,
    tree_map_only,
    tree_unflatten,
)

NEWEST_TESTED = "2.15.0"
"""The newest torch with which the samples and the tests of docs/versions.md were run."""

__all__ = [  # noqa: RUF022  (by what they are for)
    # Runs a program on tensors that have shapes and no numbers; what it raises where it needs them.
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeCopyMode",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedOperatorException",
    # The module that libraries ask for FakeTensor to find out whether they are being traced.
    "subclasses",
    # Classes of what a traced node calls.
    "HigherOrderOperator",
    "OpOverload",
    # Sees each operator that a program calls.
    "TorchDispatchMode",
    # Calls torch behind the back of a program's `__torch_function__`.
    "DisableTorchFunction",
    # Takes inputs and results apart into tensors, as torch.export does, and puts them together.
    "SUPPORTED_NODES",
    "GetAttrKey",
    "register_pytree_node",
    "tree_flatten",
    "tree_map",
    "tree_map_only",
    "tree_unflatten",
]


class FakeTensorMode(_FakeTensorMode):  # type: ignore[no-untyped-call]
    """Torch's own, which is not copied where a model copies its modules, heads of a decoder say.

    A fake tensor holds its mode, and torch copies what it holds. The copy of a mode holds the same
    references to storages, and frees them a second time: the process crashes.
    """

    def __deepcopy__(self, memo: Any) -> FakeTensorMode:
        return self


without_modes = _disable_current_modes
"""Context in which operations run as if no mode watched them."""

# Operators and storages


def schema(operator: Any) -> Any:
    """Return an operator's schema: its name, arguments, returns, and whether it writes."""
    return operator._schema


FUNCTIONS = frozenset(dir(torch._C._VariableFunctions))
"""Torch's functions of tensors, those with private names too."""


def operator_named(name: str) -> OpOverload | None:
    """The operator that the dispatcher knows by a name such as `aten::add.Tensor`; no other name.

    TorchScript has others (`aten::save` writes a file), and torch.ops has methods of its own
    (`load_library`).
    """
    try:
        known = torch._C._dispatch_has_kernel(name)
    except RuntimeError:
        return None
    if not known:
        return None
    namespace, _, rest = name.partition("::")
    plain, _, overload = rest.partition(".")
    found: Any = torch.ops
    for part in (namespace, plain, overload or "default"):
        found = getattr(found, part, None)
    return found if isinstance(found, OpOverload) else None


def name_of(operator: Any) -> str:
    """Return an operator's name without `aten::` and without its overload."""
    return str(operator._schema.name).partition("::")[2]


def overload_of(operator: Any) -> str:
    """Return the name of an operator's overload, `default` where it has none."""
    return operator._schema.overload_name or "default"


def storage_key(storage: torch.UntypedStorage) -> int:
    """Return the number of a storage, which no other has while it lives, fake or not."""
    return int(storage._cdata)


def storage_of(tensor: torch.Tensor) -> int:
    """Return the number of a tensor's storage: views of one tensor have the same.

    A sparse tensor has none, and its own number is returned.
    """
    if tensor.layout is not torch.strided:
        return int(tensor._cdata)
    return int(tensor.untyped_storage()._cdata)


@functools.lru_cache(maxsize=4096)
def is_composite(operator: Any) -> bool:
    """Return whether an operator is only a name for calls of others."""
    if not torch._C._dispatch_has_kernel(operator.name()):
        return False  # torch's own questions, such as prim::device
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), key))


_DECOMPOSED = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)


@contextlib.contextmanager
def decompositions_replaced(
    operators: Iterable[OpOverload], replace: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """While this lasts, an operator's decomposition in Python is what `replace` makes of it."""
    before = {operator: dict(operator.py_kernels) for operator in operators}
    try:
        for operator, kernels in before.items():
            for key in _DECOMPOSED:
                if key in kernels:
                    operator.py_kernels[key] = replace(kernels[key])
            operator._dispatch_cache.clear()
        yield
    finally:
        for operator, kernels in before.items():
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()


# Modes and hooks


def stack_depths() -> tuple[int, int]:
    """Return how many modes for functions and for operators stand between a program and torch."""
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def pop_modes(functions: int, operators: int) -> None:
    """Take off the modes that were put on since `stack_depths()` returned these numbers."""
    while torch._C._len_torch_function_stack() > functions:
        torch._C._pop_torch_function_stack()
    while torch._C._len_torch_dispatch_stack() > operators:
        torch._C._pop_torch_dispatch_stack(None)


# Tracing


@contextlib.contextmanager
def frames_kept(
    keep: Callable[[traceback.StackSummary], traceback.StackSummary],
) -> Iterator[None]:
    """While a tracer of torch runs, `keep` says which frames a node's stack trace holds.

    By itself torch keeps the frames called `forward`. It has this method since 2.8.
    """
    before = TracerBase._filter_traceback_frames

    def filtered(_: TracerBase, summary: traceback.StackSummary) -> traceback.StackSummary:
        return keep(summary)

    TracerBase._filter_traceback_frames = filtered  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        TracerBase._filter_traceback_frames = before  # type: ignore[method-assign]


@contextlib.contextmanager
def numbers_of_numpy() -> Iterator[None]:
    """While a tracer of torch runs, a number of NumPy's is an argument as one of Python's is."""
    before = TracerBase.create_arg

    def create(tracer: TracerBase, value: Any) -> Any:
        is_number = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
        return before(tracer, value.item() if is_number else value)

    TracerBase.create_arg = create  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        TracerBase.create_arg = before  # type: ignore[method-assign]


def concrete_tracer(run: Callable[..., Any], *, pre_dispatch: bool) -> Callable[..., Any]:
    """Return what runs a function on real tensors and writes its operators down, as `make_fx`.

    Values may be read: the trace goes on with those that they are.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(
        run,
        tracing_mode="real",
        pre_dispatch=pre_dispatch,
        record_stack_traces=True,
        _error_on_data_dependent_ops=False,
    )


class _PlainInside:
    """The classes of tensors that a tracer follows: all that only wrap what torch computes."""

    def __contains__(self, cls: type) -> bool:
        dispatch = getattr(cls, "__torch_dispatch__", None)
        return cls is FakeTensor or dispatch is torch.Tensor.__torch_dispatch__


@contextlib.contextmanager
def classes_followed() -> Iterator[None]:
    """While `concrete_tracer` runs, a tensor that is given a package's own class is what it was."""
    from torch.fx.experimental import proxy_tensor

    as_subclass, make = torch.Tensor.as_subclass, torch.Tensor._make_subclass
    handled = proxy_tensor.HANDLED_TYPES

    def followed(tensor: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        mode: Any = proxy_tensor.get_proxy_mode()
        proxy = proxy_tensor.get_proxy_slot(tensor, mode.tracer, None) if mode else None
        if proxy is not None:
            proxy_tensor.set_proxy_slot(result, mode.tracer, proxy)
        return result

    def as_another(tensor: torch.Tensor, cls: Any) -> torch.Tensor:
        return followed(tensor, as_subclass(tensor, cls))

    def made(cls: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return followed(tensor, make(cls, tensor, *args, **kwargs))

    torch.Tensor.as_subclass = as_another  # type: ignore[assignment, method-assign]
    torch.Tensor._make_subclass = staticmethod(made)  # type: ignore[assignment, method-assign]
    proxy_tensor.HANDLED_TYPES = _PlainInside()  # type: ignore[assignment]
    try:
        yield
    finally:
        del torch.Tensor.as_subclass, torch.Tensor._make_subclass  # those of their base are back
        proxy_tensor.HANDLED_TYPES = handled


def running_tracer() -> Any:
    """Return the tracer that `concrete_tracer` made; its stack traces hold the innermost frames.

    By itself it leaves out what `forward` calls.
    """
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    mode: Any = get_proxy_mode()
    mode.tracer._record_forward_stack_traces_only = False
    return mode.tracer


@contextlib.contextmanager
def arguments_named_mod() -> Iterator[None]:
    """While this lasts, a traced module may be called with an argument that is named `mod`.

    torch.fx puts a function of its own around Module.__call__, whose first parameter has that name.
    """
    from torch.fx._symbolic_trace import _Patcher

    before = _Patcher.patch_method

    def patch_method(self: Any, cls: type, name: str, new: Any, **options: Any) -> None:
        named = cls is torch.nn.Module and name == "__call__"
        before(self, cls, name, _with_mod(new) if named else new, **options)

    _Patcher.patch_method = patch_method  # type: ignore[assignment]
    try:
        yield
    finally:
        _Patcher.patch_method = before  # type: ignore[method-assign]


def _with_mod(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def called(module: torch.nn.Module, /, *args: Any, **kwargs: Any) -> Any:
        if "mod" not in kwargs:
            return call(module, *args, **kwargs)
        own = vars(module).get("forward")
        vars(module)["forward"] = functools.partial(module.forward, mod=kwargs.pop("mod"))
        try:
            return call(module, *args, **kwargs)
        finally:
            del vars(module)["forward"]
            if own is not None:
                vars(module)["forward"] = own

    return called


@contextlib.contextmanager
def without_known_numbers() -> Iterator[None]:
    """While this lasts, a tracer does not compute on tensors of one number as it goes.

    It would compute on the simulated device, which cannot.
    """
    from torch.fx.experimental import proxy_tensor  # half a second, and seldom needed

    before = proxy_tensor.CONSTANT_NUMEL_LIMIT
    proxy_tensor.CONSTANT_NUMEL_LIMIT = -1
    try:
        yield
    finally:
        proxy_tensor.CONSTANT_NUMEL_LIMIT = before


@contextlib.contextmanager
def values_shown(show: Callable[[torch.fx.Node, Any], None]) -> Iterator[None]:
    """While a concrete trace runs, show each node with its value as it is written down."""
    from torch.fx.experimental import proxy_tensor

    set_meta = proxy_tensor.set_meta

    def shown(proxy: Any, value: Any) -> Any:
        show(proxy.node, value)
        return set_meta(proxy, value)

    proxy_tensor.set_meta = shown  # type: ignore[assignment]
    try:
        yield
    finally:
        proxy_tensor.set_meta = set_meta


# A device without hardware


class _Backend:
    """What torch asks of a device's module; a program that looks for such a device finds none."""

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
"""Registers a device with the guard that indexing asks for. Experimental; 2.9.1 has it not."""


def device_without_hardware(name: str) -> torch.device:
    """Return a device that torch knows and no machine has, for fake tensors to lie on.

    It has the name, or that of another backend where one is installed under torch's key for it.
    """
    known: str = torch._C._get_privateuse1_backend_name()
    if known == "privateuseone":
        if _set_up_backend:
            _set_up_backend(rename=name, backend_module=_Backend())
        else:
            backends.rename_privateuse1_backend(name)
            backends.generate_methods_for_privateuse1_backend()
            torch._register_device_module(name, _Backend())  # type: ignore[no-untyped-call]
        known = name
    return torch.device(known, 0)


@contextlib.contextmanager
def without_guards() -> Iterator[None]:
    """While this lasts, a device without a guard can do what torch's Python methods ask one for.

    They are `tensor[place]`, `tensor[place] = value`, `copy_`, `contiguous` and `~tensor`; the
    operators below them ask for none.
    """
    methods = {} if _set_up_backend else _WITHOUT_GUARD
    for name, method in methods.items():
        setattr(torch.Tensor, name, method)
    try:
        yield
    finally:
        for name in methods:
            delattr(torch.Tensor, name)  # torch's own is a base's


_ATEN = torch.ops.aten


def _item(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    found = _places(tensor, index)
    if found is None:
        return super(torch.Tensor, tensor).__getitem__(index)
    view, places = found
    if places:
        view = _ATEN.index.Tensor(view, places)
    return _ATEN.alias.default(view) if view is tensor else view


def _set_item(tensor: torch.Tensor, index: Any, value: Any) -> None:
    found = _places(tensor, index)
    if found is None:
        return super(torch.Tensor, tensor).__setitem__(index, value)
    view, places = found
    if not places:
        view.copy_(value) if isinstance(value, torch.Tensor) else view.fill_(value)
    else:
        known = isinstance(value, torch.Tensor)
        view.index_put_(places, value if known else view.new_full((), value))
    return None


def _places(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, list[Any]] | None:
    """Return a view of a tensor on a device, and which of its places an index means.

    None on the CPU, and for an index that needs a number out of a tensor.
    """
    place = index if isinstance(index, tuple) else (index,)
    place = tuple(torch.tensor(i) if isinstance(i, list) else i for i in place)
    if tensor.device.type == "cpu" or not all(map(_is_plain, place)):
        return None
    named = sum(i.dim() if _is_mask(i) else i is not None and i is not ... for i in place)
    result, dim, places = tensor, 0, list[Any]()
    for i in place:
        if i is ...:
            dim += tensor.dim() - named
        elif i is None:
            result, dim = result.unsqueeze(dim), dim + 1
        elif type(i) is int:
            result = result.select(dim, i)
        elif type(i) is slice:
            whole = i.indices(result.shape[dim]) == (0, result.shape[dim], 1)
            if not whole or len(place) == 1:
                stop = sys.maxsize if i.stop is None else i.stop
                result = _ATEN.slice.Tensor(result, dim, i.start or 0, stop, i.step or 1)
            dim += 1
        else:
            places += [None] * (dim - len(places)) + [i]
            dim += i.dim() if _is_mask(i) else 1
    return result, places


def _is_plain(index: Any) -> bool:
    """Return whether an index needs no number out of a tensor."""
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
    "__getitem__": _item,
    "__setitem__": _set_item,
    "contiguous": _contiguous,
    "copy_": lambda tensor, *args, **kwargs: _ATEN.copy_.default(tensor, *args, **kwargs),
    "__invert__": lambda tensor: torch.bitwise_not(tensor),
}


def mixes_devices(error: BaseException) -> bool:
    """Return whether fake tensors of two devices met in an operation that takes them of one.

    torch says so by `FakeTensorDeviceMismatchError` (seen in 2.13.0 and 2.15.0) or by a plain
    RuntimeError, and raises either in a function of this name.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].name == "merge_devices"
