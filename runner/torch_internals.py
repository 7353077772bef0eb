"""Wraps the private names of torch that kdrun uses, which torch may change in any release.

Unless a docstring says otherwise, a name exists in torch 2.9.1, 2.11.0, 2.13.0 and 2.15.0. Where
versions differ, this module checks whether a name exists; it never compares versions. No other file
of kdrun uses a private name of torch (a test checks it), except for these stable ones:

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
from types import FrameType
from typing import Any

import torch
import torch._subclasses as subclasses
import torch.overrides as overrides
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
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.proxy import TracerBase
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
def _replace(holder: Any, name: str, value: Any) -> Iterator[None]:
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


# Tracing


@contextlib.contextmanager
def replace_stack_traces(describe: Callable[[], list[str]]) -> Iterator[None]:
    """Let `describe` write the stack trace that torch's tracers record for a node, as lines.

    By default torch looks up all frames, which takes a tenth of a trace, and keeps those named
    `forward`. The patched method exists since torch 2.8.
    """
    fx_proxy = sys.modules[TracerBase.__module__]
    with (
        _replace(TracerBase, "_filter_traceback_frames", lambda _, summary: summary),
        _replace(fx_proxy, "CapturedTraceback", _DescribedTraceback(describe)),
    ):
        yield


class _DescribedTraceback:
    """Stands for torch's CapturedTraceback, and for its summary, where a tracer records a node."""

    def __init__(self, describe: Callable[[], list[str]]) -> None:
        self.format = describe

    def extract(self) -> _DescribedTraceback:
        return self

    summary = extract


def write_graph_code_late() -> contextlib.AbstractContextManager[None]:
    """Let torch write a graph's Python code when the graph first runs, not after each change.

    torch.export changes graphs often, and none of them runs. With hundreds of graphs inside of one,
    as `torch.no_grad()` in a forward gives, the code takes four fifths of an export.
    """
    return _use_lazy_graph_module(True)


def ignore_sdpa_kernel() -> contextlib.AbstractContextManager[None]:
    """Let `with sdpa_kernel(...)` choose nothing: torch takes the attention's kernel that it likes.

    The choice changes how attention is computed, not what: a trace has the same operator with it.
    """
    return _replace(torch.nn.attention, "_sdpa_kernel", lambda *args, **kwargs: None)


def mix_fake_modes() -> contextlib.AbstractContextManager[None]:
    """Let torch.export finish a program that holds fake tensors of two modes.

    A tensor in a plain attribute keeps the mode in which the model was built, also after a
    `to(device)` that does nothing. torch only looks for one mode to write guards for dynamic
    shapes, which no program here has. The patched function takes one argument in all versions.
    """
    exported_program = sys.modules[torch.export.ExportedProgram.__module__]
    return _replace(exported_program, "_get_shape_env", lambda _: None)


def accept_numpy_scalars() -> contextlib.AbstractContextManager[None]:
    """Let torch's tracers accept NumPy scalars as arguments, as they do Python numbers."""
    original = TracerBase.create_arg

    def create(tracer: TracerBase, value: Any) -> Any:
        is_number = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
        return original(tracer, value.item() if is_number else value)

    return _replace(TracerBase, "create_arg", create)


def watch_fake_devices(
    on_query: Callable[[FrameType], None],
) -> contextlib.AbstractContextManager[None]:
    """Call `on_query` with the frame that reads the attribute `device` of a fake tensor.

    It is a property in Python, which no mode for functions sees.
    """
    original = FakeTensor.device

    def read(tensor: FakeTensor) -> Any:
        on_query(sys._getframe(1))
        return original.__get__(tensor)

    return _replace(FakeTensor, "device", property(read))


def accept_grouped_dtypes() -> contextlib.AbstractContextManager[None]:
    """Let `grouped_mm` take fake tensors of any dtype, as it does real ones on a CPU.

    PyTorch's rule for its result on fake tensors accepts bfloat16 alone, as the kernel for CUDA.
    """
    import torch._meta_registrations as rules

    original = rules._meta_grouped_mm_common

    def infer(mat_a: Any, mat_b: Any, scale_a: Any, scale_b: Any, *args: Any, **kwargs: Any) -> Any:
        if scale_a is not None or mat_a.dtype == torch.bfloat16 or mat_a.dtype != mat_b.dtype:
            return original(mat_a, mat_b, scale_a, scale_b, *args, **kwargs)
        out_dtype = kwargs.get("out_dtype") or mat_a.dtype
        return rules._create_grouped_mm_output_tensor(  # type: ignore[no-untyped-call]
            mat_a, mat_b, kwargs.get("offs"), out_dtype
        )

    return _replace(rules, "_meta_grouped_mm_common", infer)


def draw_fake_weights() -> contextlib.AbstractContextManager[None]:
    """Let `nn.init.trunc_normal_` fill fake weights.

    Since PyTorch 2.13 it draws again until no value is outside of the bounds, which reads values.
    """
    original = torch.nn.init._no_grad_trunc_normal_

    def draw(
        tensor: torch.Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
    ) -> torch.Tensor:
        if not isinstance(tensor, FakeTensor):
            return original(tensor, mean, std, a, b, generator)
        with torch.no_grad():
            return tensor.normal_(mean, std, generator=generator).clamp_(a, b)

    return _replace(torch.nn.init, "_no_grad_trunc_normal_", draw)


def convert_fake_weights() -> contextlib.AbstractContextManager[None]:
    """Let `Module.to(dtype)` convert fake weights that something else still refers to.

    PyTorch swaps a fake weight with the converted one, which it refuses for a tensor with a second
    reference. Here, the weight's data is replaced, as PyTorch does with real weights.
    """
    original: Callable[..., None] = torch.utils.swap_tensors

    def replace(weight: torch.Tensor, converted: torch.Tensor) -> None:
        if isinstance(weight, FakeTensor) and isinstance(converted, FakeTensor):
            weight.data = converted
        else:
            original(weight, converted)

    return _replace(torch.utils, "swap_tensors", replace)


def keep_fake_weights() -> contextlib.AbstractContextManager[None]:
    """Let `Module.to(dtype)` in a traced forward keep fake weights that have this dtype already."""
    original: Callable[..., None] = torch.utils.swap_tensors

    def replace(weight: torch.Tensor, converted: torch.Tensor) -> None:
        fakes = isinstance(weight, FakeTensor) and isinstance(converted, FakeTensor)
        if not fakes or (weight.dtype, weight.device) != (converted.dtype, converted.device):
            original(weight, converted)

    return _replace(torch.utils, "swap_tensors", replace)


def concrete_tracer(run: Callable[..., Any], *, pre_dispatch: bool) -> Callable[..., Any]:
    """Return `make_fx` of a function: it runs on real tensors and records the operators.

    The function may read values of tensors: the trace continues with the actual values.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(
        run,
        tracing_mode="real",
        pre_dispatch=pre_dispatch,
        record_stack_traces=True,
        _error_on_data_dependent_ops=False,
    )


@contextlib.contextmanager
def write_out_function_transforms() -> Iterator[None]:
    """Let `torch.vmap`, `torch.func.grad` and `torch.func.jvp` call plain operators.

    A tracer before autograd records that a transform begins and ends, and between them operators on
    single samples. Here the outermost transform is traced by itself, below all transforms, and the
    operators that it calls there run in its place.
    """
    from torch._functorch import apis, eager_transforms

    replaced = (
        (apis, "vmap_impl"),
        (eager_transforms, "grad_and_value_impl"),
        (eager_transforms, "_jvp_with_argnums"),
    )
    with contextlib.ExitStack() as stack:
        for module, name in replaced:
            transform = functools.partial(_run_written_out, getattr(module, name))
            stack.enter_context(_replace(module, name, transform))
        yield


def _run_written_out(transform: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx

    if is_transforming():
        return transform(*args, **kwargs)
    leaves, structure = tree_flatten((args, kwargs))
    positions = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    result_structure: Any = None

    def run(*tensors: torch.Tensor) -> list[Any]:
        nonlocal result_structure
        given = list(leaves)
        for position, tensor in zip(positions, tensors, strict=True):
            given[position] = tensor
        run_args, run_kwargs = tree_unflatten(given, structure)
        results, result_structure = tree_flatten(transform(*run_args, **run_kwargs))
        return results

    tensors = [leaves[position] for position in positions]
    with _without_export_modes(), disable_proxy_modes_tracing():
        written_out = make_fx(run)(*tensors)
    written_out.graph.eliminate_dead_code()  # Transforms compare shapes by operators.
    _name_number_tensors(written_out)
    # forward() by itself calls no hooks, which would take it for a module of the model.
    return tree_unflatten(written_out.forward(*tensors), result_structure)


def _name_number_tensors(module: torch.fx.GraphModule) -> None:
    """Let `scalar_tensor` make each tensor that `vmap` makes of a number, by copying the number."""
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten._to_copy.default):
        if not isinstance(node.args[0], torch.fx.Node):
            node.target = torch.ops.aten.scalar_tensor.default
    module.recompile()


def is_transforming() -> bool:
    """Return whether code runs inside of a function that `torch.func` transforms."""
    return torch._C._functorch.peek_interpreter_stack() is not None


@contextlib.contextmanager
def _without_export_modes() -> Iterator[None]:
    """Take torch.export's own torch function modes off for a while."""
    from torch._export.non_strict_utils import _NonStrictTorchFunctionHandler
    from torch.fx.experimental.proxy_tensor import PreDispatchTorchFunctionMode

    own = (_NonStrictTorchFunctionHandler, PreDispatchTorchFunctionMode)
    modes = overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    kept = [mode for mode in modes if not isinstance(mode, own)]
    try:
        _set_function_modes(kept)
        yield
    finally:
        _set_function_modes(modes)


def _set_function_modes(modes: list[Any]) -> None:
    for _ in range(stack_depths()[0]):
        overrides._pop_mode()  # type: ignore[no-untyped-call]
    for mode in modes:
        overrides._push_mode(mode)  # type: ignore[no-untyped-call]


class _RecordedClasses:
    """Set of the tensor classes that a tracer records: those without a dispatch of their own.

    FakeTensor is the exception: it has one and is recorded.
    """

    def __contains__(self, cls: type) -> bool:
        dispatch = getattr(cls, "__torch_dispatch__", None)
        return cls is FakeTensor or dispatch is torch.Tensor.__torch_dispatch__


@contextlib.contextmanager
def follow_tensor_subclasses() -> Iterator[None]:
    """Let a concrete trace follow tensors that are converted to a package's own subclass."""
    from torch.fx.experimental import proxy_tensor

    as_subclass, make = torch.Tensor.as_subclass, torch.Tensor._make_subclass

    def copy_proxy(tensor: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        mode: Any = proxy_tensor.get_proxy_mode()
        proxy = proxy_tensor.get_proxy_slot(tensor, mode.tracer, None) if mode else None
        if proxy is not None:
            proxy_tensor.set_proxy_slot(result, mode.tracer, proxy)
        return result

    def convert(tensor: torch.Tensor, cls: Any) -> torch.Tensor:
        return copy_proxy(tensor, as_subclass(tensor, cls))

    def subclass(cls: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return copy_proxy(tensor, make(cls, tensor, *args, **kwargs))

    torch.Tensor.as_subclass = convert  # type: ignore[assignment, method-assign]
    torch.Tensor._make_subclass = staticmethod(subclass)  # type: ignore[assignment, method-assign]
    try:
        with _replace(proxy_tensor, "HANDLED_TYPES", _RecordedClasses()):
            yield
    finally:
        # Those of the base class apply again.
        del torch.Tensor.as_subclass, torch.Tensor._make_subclass


@contextlib.contextmanager
def watch_operators(
    record: Callable[[OpOverload, tuple[Any, ...], Mapping[str, Any], Any], None],
) -> Iterator[None]:
    """Call `record` with each operator that runs, its arguments and its result.

    The operators are those that torch.export records, before autograd: `linear` is one of them, and
    the truth of a tensor is a comparison. Only torch's own modes may run there, of which
    SchemaCheckMode runs alone.
    """
    from torch._dispatch.python import enable_python_dispatcher
    from torch._subclasses.schema_check_mode import SchemaCheckMode

    class Watch(SchemaCheckMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            if func is torch.ops.aten.is_nonzero.default:
                with self:
                    return (args[0] != 0).item()
            kwargs = kwargs or {}
            result = func(*args, **kwargs)
            record(func, args, kwargs, result)
            return result

    watch = Watch()
    watch._dispatch_key = torch._C.DispatchKey.PreDispatch  # type: ignore[attr-defined]
    with enable_python_dispatcher(), watch:
        yield


def running_tracer() -> Any:
    """Return the running tracer of `concrete_tracer`, set to record the innermost frames.

    By default it leaves out the frames of functions that `forward` calls.
    """
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    mode: Any = get_proxy_mode()
    mode.tracer._record_forward_stack_traces_only = False
    return mode.tracer


def allow_argument_mod() -> contextlib.AbstractContextManager[None]:
    """Let traced modules be called with a keyword argument named `mod`.

    torch.fx wraps Module.__call__ in a function whose first parameter has that name.
    """
    from torch.fx._symbolic_trace import _Patcher

    original = _Patcher.patch_method

    def patch_method(self: Any, cls: type, name: str, new: Any, **options: Any) -> None:
        is_module_call = cls is torch.nn.Module and name == "__call__"
        original(self, cls, name, _accept_mod(new) if is_module_call else new, **options)

    return _replace(_Patcher, "patch_method", patch_method)


def _accept_mod(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapper(module: torch.nn.Module, /, *args: Any, **kwargs: Any) -> Any:
        if "mod" not in kwargs:
            return call(module, *args, **kwargs)
        original = vars(module).get("forward")
        vars(module)["forward"] = functools.partial(module.forward, mod=kwargs.pop("mod"))
        try:
            return call(module, *args, **kwargs)
        finally:
            del vars(module)["forward"]
            if original is not None:
                vars(module)["forward"] = original

    return wrapper


def disable_constant_folding() -> contextlib.AbstractContextManager[None]:
    """Keep tracers from computing the values of one-element tensors while they trace.

    They would compute on the simulated device, which cannot.
    """
    from torch.fx.experimental import proxy_tensor  # its import takes half a second

    return _replace(proxy_tensor, "CONSTANT_NUMEL_LIMIT", -1)


def observe_trace_values(
    show: Callable[[torch.fx.Node, Any], None],
) -> contextlib.AbstractContextManager[None]:
    """Call `show` with each node and its value as a concrete trace records it."""
    from torch.fx.experimental import proxy_tensor

    set_meta = proxy_tensor.set_meta

    def show_and_set(proxy: Any, value: Any) -> Any:
        show(proxy.node, value)
        return set_meta(proxy, value)

    return _replace(proxy_tensor, "set_meta", show_and_set)


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


def mixes_devices(error: BaseException) -> bool:
    """Return whether an error says that an operation got fake tensors of different devices.

    torch raises `FakeTensorDeviceMismatchError` (seen in 2.13.0 and 2.15.0) or RuntimeError, both
    in a function named `merge_devices`.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].name == "merge_devices"
