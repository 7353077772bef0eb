"""Runs a forward once on real tensors and records every operation, for the concrete strategy."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode
from torch.overrides import TorchFunctionMode

from runner.graph.tracing.containers import register_containers
from runner.graph.tracing.deciding_values import holds_whole_numbers, observed_value_text
from runner.graph.tracing.export_trace import BuiltProblem, TracedProgram
from runner.graph.tracing.method_calls import keep_authors_frames
from runner.graph.tracing.refusal import CaptureRefusal
from runner.torch_internals import (
    plain_tensors_in,
    replace_plain_tensors,
    tree_flatten,
    tree_unflatten,
)
from runner.torch_tracing import (
    concrete_tracer,
    follow_tensor_subclasses,
    is_transforming,
    load_without_modes,
    observe_trace_values,
    running_tracer,
    write_out_flex_attention,
    write_out_function_transforms,
)


def trace(built: BuiltProblem) -> TracedProgram:
    """Run the model once on real tensors and return the operations that ran.

    Where values decide what Python does, the values of this run are fixed.
    """
    containers = register_containers(built.model, built.args, built.kwargs)
    with containers, write_out_function_transforms(), write_out_flex_attention():
        traced = _trace(built, pre_dispatch=True)
    if _reads_what_autograd_saved(traced.graph):
        # Above autograd, a layer_norm does not show the mean that its gradient reads.
        raise CaptureRefusal("a gradient reads numbers of a forward that is not written out")
    return traced


def trace_below_autograd(built: BuiltProblem) -> TracedProgram:
    """Do the same below autograd, autocast and `torch.func`, which have then done their rewriting.

    At that level, operators such as `linear` appear as the operators that they call.
    """
    containers = register_containers(built.model, built.args, built.kwargs)
    with containers, write_out_flex_attention():
        return _trace(built, pre_dispatch=False)


def _reads_what_autograd_saved(graph: FxGraph) -> bool:
    """Return whether the backward of an operator reads a tensor that no operation made."""
    return any(
        operand.op == "get_attr"
        for node in graph.nodes
        if "backward" in str(node.target)
        for operand in node.all_input_nodes
    )


def _trace(built: BuiltProblem, *, pre_dispatch: bool) -> TracedProgram:
    from torch.func import functional_call

    weights = {
        **dict(built.model.named_parameters(remove_duplicate=False)),
        **dict(built.model.named_buffers(remove_duplicate=False)),
    }
    states = {
        name: plain
        for path, weight in weights.items()
        for name, plain in plain_tensors_in(path, weight)
    }
    flat, spec = tree_flatten((built.args, built.kwargs))
    positions = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
    shape_of_result: list[Any] = []
    read_recorder = _ReadRecorder(str(built.loaded.problem.path))

    def run(state_values: list[torch.Tensor], tensors: list[torch.Tensor]) -> list[Any]:
        leaves = list(flat)
        for position, tensor in zip(positions, tensors, strict=True):
            leaves[position] = tensor
        args, kwargs = tree_unflatten(leaves, spec)
        with (
            _track_module_calls(built.model, running_tracer()),
            _record_small_values(),
            read_recorder,
        ):
            plain_tensors = dict(zip(states, state_values, strict=True))
            out = functional_call(
                built.model,
                {n: replace_plain_tensors(n, w, plain_tensors) for n, w in weights.items()},
                args,
                kwargs,
                tie_weights=False,
            )
        result_leaves, out_spec = tree_flatten(out)
        shape_of_result[:] = [out_spec]
        return result_leaves

    tracer = concrete_tracer(run, pre_dispatch=pre_dispatch)
    with keep_authors_frames(built.model), follow_tensor_subclasses(), load_without_modes():
        # torch.matmul takes another path for a weight that requires a gradient.
        copies = [s.detach().requires_grad_(s.requires_grad) for s in states.values()]
        module = tracer(copies, [flat[i] for i in positions])
    names = _argument_names(built)
    placeholders: list[tuple[str, str, Any]] = []
    parameters = dict(built.model.named_parameters(remove_duplicate=False))
    for name in states:
        placeholders.append(("parameter" if name in parameters else "buffer", name, None))
    for position in positions:
        placeholders.append(("input", names[position], flat[position]))
    note = "captured by a concrete trace: values that steer Python are those of the traced inputs"
    return TracedProgram(
        module.graph,
        module,
        placeholders,
        lambda outs: tree_unflatten(outs, shape_of_result[0]),
        [note],
        read_recorder.sentences,
        placement="unknown",
        follows_all=not pre_dispatch,
    )


@contextlib.contextmanager
def restore_attributes(model: torch.nn.Module) -> Iterator[None]:
    """Restore each module's attributes at the end, and which buffers it has.

    A tensor in an attribute is identified by its path in the model, which a forward that assigns to
    the attribute would change; and a grid that a module keeps from its first call would be on
    another device than its next call.
    """
    saved = [(module, dict(vars(module))) for module in model.modules()]
    # A scripted module keeps its buffers in no dict, and registers no others.
    buffers = [(b, dict(b)) for module, _ in saved if type(b := module._buffers) is dict]
    try:
        yield
    finally:
        for module, attributes in saved:
            vars(module).clear()
            vars(module).update(attributes)
        for now, before in buffers:
            now.clear()
            now.update(before)


class _ReadRecorder(TorchFunctionMode):
    """Records where a tensor's numbers go to a list or to numpy, which no tracer follows.

    A list of all numbers of a tensor is replaced by the tensor where it is an index:
    `x[rows.tolist()]` is `x[rows]`.
    """

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file, self.sentences = file, list[str]()

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__name__", "") in {"numpy", "__array__", "tolist"}:
            sentence = f"{_current_line(self.file)}: values were read"
            if sentence not in self.sentences:
                self.sentences.append(sentence)
        if func == torch.Tensor.data.__get__:  # type: ignore[attr-defined]
            return args[0].detach()  # a tracer follows detach(), but not .data
        if getattr(func, "__name__", "") in {"__getitem__", "__setitem__"}:
            args = (args[0], _replace_number_lists(args[1]), *args[2:])
        result = func(*args, **(kwargs or {}))
        if isinstance(result, list) and args[0].dim() == 1 and not args[0].is_floating_point():
            return _NumberList(args[0], result)
        return result


class _NumberList(list[Any]):
    """The list of a tensor's numbers, which also holds the tensor."""

    def __init__(self, tensor: torch.Tensor, numbers: list[Any]) -> None:
        super().__init__(numbers)
        self.tensor, self.original = tensor, numbers


def _replace_number_lists(index: Any) -> Any:
    """Return an index in which lists of all of a tensor's numbers are replaced by the tensor."""
    if isinstance(index, tuple):
        return tuple(map(_replace_number_lists, index))
    return index.tensor if isinstance(index, _NumberList) and index == index.original else index


def _current_line(file: str) -> str:
    """Return the line of a file that is running now, as text."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return f"line {frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


@contextlib.contextmanager
def _track_module_calls(model: torch.nn.Module, tracer: Any) -> Iterator[None]:
    """Record on each traced operation the module calls that it belongs to."""
    paths = {module: path for path, module in reversed(list(model.named_modules()))}
    calls: Counter[str] = Counter()
    call_stack: list[tuple[str, tuple[str, Any]]] = []

    def enter(module: torch.nn.Module, args: Any) -> None:
        path = paths.get(module, "")
        call = calls[path]
        calls[path] += 1
        call_stack.append((f"{path}@{call}" if call else path, (path, type(module))))
        tracer.module_stack = OrderedDict(call_stack)

    def leave(module: torch.nn.Module, args: Any, output: Any) -> None:
        call_stack.pop()
        tracer.module_stack = OrderedDict(call_stack)

    hooks = (
        torch.nn.modules.module.register_module_forward_pre_hook(enter),
        torch.nn.modules.module.register_module_forward_hook(leave, always_call=True),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def _record_small_values() -> Iterator[None]:
    """Record on each node small whole-number results, and the seed that was set before it.

    `torch.cond` runs the branch that it takes, like any other `if`.
    """
    manual_seed, cond = torch.manual_seed, torch.cond
    seeds: list[int] = []

    def note(node: FxNode, value: Any) -> None:
        if is_transforming():
            return
        if isinstance(value, torch.Tensor) and holds_whole_numbers(value):
            node.meta["seen"] = observed_value_text(value)
        tags = getattr(node.target, "tags", ())
        if seeds and torch.Tag.nondeterministic_seeded in tags and "seed" not in node.meta:
            node.meta["seed"] = seeds.pop()

    def seed(number: int) -> Any:
        seeds[:] = [int(number)]
        return manual_seed(number)

    def branch(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
        return (true_fn if bool(pred) else false_fn)(*operands)

    torch.manual_seed, torch.cond = seed, branch  # type: ignore[assignment]
    try:
        with observe_trace_values(note):
            yield
    finally:
        torch.manual_seed, torch.cond = manual_seed, cond


def _argument_names(built: BuiltProblem) -> list[str]:
    """Return a name for each leaf of the inputs: forward's parameter, with a number if needed."""
    parameters = list(inspect.signature(built.model.forward).parameters)
    names: list[str] = []
    for i, value in enumerate(built.args):
        stem = parameters[i] if i < len(parameters) else f"input_{i}"
        leaves = len(tree_flatten(value)[0])
        names += [stem] if leaves == 1 else [f"{stem}_{k}" for k in range(leaves)]
    for key, value in built.kwargs.items():
        leaves = len(tree_flatten(value)[0])
        names += [key] if leaves == 1 else [f"{key}_{k}" for k in range(leaves)]
    return names
