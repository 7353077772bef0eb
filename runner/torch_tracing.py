"""Changes for a while how torch traces a program: each function here returns a context manager.

With torch_internals.py, this is the only file that uses private names of torch. They exist in the
versions of torch which that file lists, unless a docstring says otherwise.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import torch
import torch.overrides as overrides
from torch._ops import OpOverload
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.proxy import TracerBase
from torch.utils._pytree import tree_flatten, tree_unflatten

from runner.torch_internals import FakeTensor, replace_attribute, stack_depths, without_modes


@contextlib.contextmanager
def replace_stack_traces(describe: Callable[[], list[str]]) -> Iterator[None]:
    """Let `describe` write the stack trace that torch's tracers record for a node, as lines.

    By default torch looks up all frames, which takes a tenth of a trace, and keeps those named
    `forward`. The patched method exists since torch 2.8.
    """
    fx_proxy = sys.modules[TracerBase.__module__]
    with (
        replace_attribute(TracerBase, "_filter_traceback_frames", lambda _, summary: summary),
        replace_attribute(fx_proxy, "CapturedTraceback", _DescribedTraceback(describe)),
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


@contextlib.contextmanager
def copy_weights_without_modes() -> Iterator[None]:
    """Let torch.export make fake copies of weights while no torch function mode is active.

    Each attribute of each weight that it reads would go through the modes, which takes longer than
    the copies.
    """
    tracing = importlib.import_module(torch.export.export.__module__ + "._trace")
    original = tracing._fakify_params_buffers

    def copy(*args: Any) -> Any:
        modes = overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        try:
            _set_function_modes([])
            return original(*args)
        finally:
            _set_function_modes(modes)

    with replace_attribute(tracing, "_fakify_params_buffers", copy):
        yield


def ignore_sdpa_kernel() -> contextlib.AbstractContextManager[None]:
    """Let `with sdpa_kernel(...)` choose nothing: torch takes the attention's kernel that it likes.

    The choice changes how attention is computed, not what: a trace has the same operator with it.
    """
    return replace_attribute(torch.nn.attention, "_sdpa_kernel", lambda *args, **kwargs: None)


def mix_fake_modes() -> contextlib.AbstractContextManager[None]:
    """Let torch.export finish a program that holds fake tensors of two modes.

    A tensor in a plain attribute keeps the mode in which the model was built, also after a
    `to(device)` that does nothing. torch only looks for one mode to write guards for dynamic
    shapes, which no program here has. The patched function takes one argument in all versions.
    """
    exported_program = sys.modules[torch.export.ExportedProgram.__module__]
    return replace_attribute(exported_program, "_get_shape_env", lambda _: None)


def accept_numpy_scalars() -> contextlib.AbstractContextManager[None]:
    """Let torch's tracers accept NumPy scalars as arguments, as they do Python numbers."""
    original = TracerBase.create_arg

    def create(tracer: TracerBase, value: Any) -> Any:
        is_number = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
        return original(tracer, value.item() if is_number else value)

    return replace_attribute(TracerBase, "create_arg", create)


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

    return replace_attribute(FakeTensor, "device", property(read))


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

    return replace_attribute(rules, "_meta_grouped_mm_common", infer)


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

    return replace_attribute(torch.nn.init, "_no_grad_trunc_normal_", draw)


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

    return replace_attribute(torch.utils, "swap_tensors", replace)


def keep_fake_weights() -> contextlib.AbstractContextManager[None]:
    """Let `Module.to(dtype)` in a traced forward keep fake weights that have this dtype already."""
    original: Callable[..., None] = torch.utils.swap_tensors

    def replace(weight: torch.Tensor, converted: torch.Tensor) -> None:
        fakes = isinstance(weight, FakeTensor) and isinstance(converted, FakeTensor)
        if not fakes or (weight.dtype, weight.device) != (converted.dtype, converted.device):
            original(weight, converted)

    return replace_attribute(torch.utils, "swap_tensors", replace)


def load_without_modes() -> contextlib.AbstractContextManager[None]:
    """Let `torch.load` read a file outside of tracing modes: a forward may load a table once."""
    load = torch.load

    def load_plain(*args: Any, **kwargs: Any) -> Any:
        with without_modes(), torch._C.DisableTorchFunction():
            return load(*args, **kwargs)

    return replace_attribute(torch, "load", load_plain)


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
            stack.enter_context(replace_attribute(module, name, transform))
        yield


@contextlib.contextmanager
def write_out_flex_attention() -> Iterator[None]:
    """Let `flex_attention` call plain operators, on any device and under any mode.

    Its own operator takes Python functions, for the scores and for the mask. The plain operators
    are those of torch's unfused implementation, and their results have the same bits.
    """
    from torch._higher_order_ops.flex_attention import FlexAttentionHOP
    from torch.nn.attention import flex_attention

    with (
        replace_attribute(FlexAttentionHOP, "__call__", _compute_flex_attention),
        replace_attribute(flex_attention, "_validate_device", lambda *_: None),
    ):
        yield


def _compute_flex_attention(
    _: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., torch.Tensor],
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: Mapping[str, Any],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the attention, and its statistics as logarithms of base 2 if they are asked for.

    The operators are those of `torch._higher_order_ops.flex_attention.math_attention`, less those
    whose results nobody reads.
    """
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    from torch.nn.attention import flex_attention

    score_dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    if (groups := query.size(1) // key.size(1)) > 1:
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    key, value = (x.expand(query.size(0), *x.shape[1:]) for x in (key, value))
    scores = query.to(score_dtype) @ key.to(score_dtype).transpose(-2, -1) * scale
    positions = [torch.arange(size, device=scores.device) for size in scores.shape]
    mask_mod = block_mask[-1]
    with TransformGetItemToIndex():
        scaled = scores
        if score_mod is not flex_attention._identity:
            scores = flex_attention._vmap_for_bhqkv(score_mod, prefix=(0,))(scaled, *positions)
        if mask_mod is not flex_attention.noop_mask:
            mask = flex_attention._vmap_for_bhqkv(mask_mod, prefix=())(*positions)
            scores = torch.where(mask, scores, -torch.inf)
    probabilities = torch._safe_softmax(scores, dim=-1)
    output = probabilities.to(query.dtype) @ value.to(query.dtype)
    log_total = largest = scores.new_empty(0)
    if kernel_options["OUTPUT_LOGSUMEXP"]:
        masked_rows = torch.all(scores == -torch.inf, dim=-1)
        log_total = torch.where(masked_rows, -torch.inf, scores.logsumexp(dim=-1)) / math.log(2)
    if kernel_options.get("OUTPUT_MAX"):
        largest = scores.max(dim=-1)[0] / math.log(2)
    return _order_strides(output, query), log_total, largest


def _order_strides(output: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Return the output with its dimensions in memory in the query's order, the last one inside."""
    strides: tuple[int, ...] = query.stride()
    outer = sorted(range(query.dim() - 1), key=lambda dim: strides[dim], reverse=True)
    order = [*outer, query.dim() - 1]
    inverse = [order.index(dim) for dim in range(query.dim())]
    return output.permute(order).contiguous().permute(inverse)


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
        with replace_attribute(proxy_tensor, "HANDLED_TYPES", _RecordedClasses()):
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

    return replace_attribute(_Patcher, "patch_method", patch_method)


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

    return replace_attribute(proxy_tensor, "CONSTANT_NUMEL_LIMIT", -1)


def observe_trace_values(
    show: Callable[[torch.fx.Node, Any], None],
) -> contextlib.AbstractContextManager[None]:
    """Call `show` with each node and its value as a concrete trace records it."""
    from torch.fx.experimental import proxy_tensor

    set_meta = proxy_tensor.set_meta

    def show_and_set(proxy: Any, value: Any) -> Any:
        show(proxy.node, value)
        return set_meta(proxy, value)

    return replace_attribute(proxy_tensor, "set_meta", show_and_set)
