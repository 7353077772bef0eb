"""This file knows about the concrete trace: one run on real tensors, written down as it goes."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.fx import Node as FxNode
from torch.overrides import TorchFunctionMode

from runner.graph.ir import Input, Operation, TensorSpec, is_expanded, references
from runner.graph.operations import is_sized_by_values
from runner.graph.tracing.containers import plainly
from runner.graph.tracing.export_trace import Built, Traced
from runner.graph.tracing.method_calls import authors_frames
from runner.graph.tracing.provenance import LONGEST_LITERAL, tensor_literal
from runner.torch_internals import (
    FakeTensor,
    concrete_tracer,
    follow_tensor_subclasses,
    observe_trace_values,
    running_tracer,
    tree_flatten,
    tree_unflatten,
    without_modes,
)


def trace(built: Built) -> Traced:
    """Run the model once on real tensors and write down what ran.

    Values that steered Python are fixed as they were.
    """
    with plainly(built.model, built.args, built.kwargs):
        return _trace(built, whole=True)


def trace_below(built: Built) -> Traced:
    """The same below autograd, autocast and `torch.func`: what those made of the program.

    There `linear` and its like are the operators that they call.
    """
    with plainly(built.model, built.args, built.kwargs):
        return _trace(built, whole=False)


def _trace(built: Built, *, whole: bool) -> Traced:
    from torch.func import functional_call

    states = {
        **dict(built.model.named_parameters(remove_duplicate=False)),
        **dict(built.model.named_buffers(remove_duplicate=False)),
    }
    flat, spec = tree_flatten((built.args, built.kwargs))
    positions = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
    shape_of_result: list[Any] = []
    reads = _Reads(str(built.loaded.problem.path))

    def run(state_values: list[torch.Tensor], tensors: list[torch.Tensor]) -> list[Any]:
        leaves = list(flat)
        for position, tensor in zip(positions, tensors, strict=True):
            leaves[position] = tensor
        args, kwargs = tree_unflatten(leaves, spec)
        with _scoped(built.model, running_tracer()), _noted(), reads:
            out = functional_call(
                built.model,
                dict(zip(states, state_values, strict=True)),
                args,
                kwargs,
                tie_weights=False,
            )
        leaves_out, out_spec = tree_flatten(out)
        shape_of_result[:] = [out_spec]
        return leaves_out

    tracer = concrete_tracer(run, pre_dispatch=whole)
    with authors_frames(built.model), follow_tensor_subclasses():
        # torch.matmul multiplies a weight that takes gradients in another way.
        weights = [s.detach().requires_grad_(s.requires_grad) for s in states.values()]
        module = tracer(weights, [flat[i] for i in positions])
    names = _argument_names(built)
    placeholders: list[tuple[str, str, Any]] = []
    parameters = dict(built.model.named_parameters(remove_duplicate=False))
    for name in states:
        placeholders.append(("parameter" if name in parameters else "buffer", name, None))
    for position in positions:
        placeholders.append(("input", names[position], flat[position]))
    note = "captured by a concrete trace: values that steer Python are those of the traced inputs"
    return Traced(
        module.graph,
        module,
        placeholders,
        lambda outs: tree_unflatten(outs, shape_of_result[0]),
        [note],
        reads.found,
        placement="unknown",
        follows_all=not whole,
    )


@contextlib.contextmanager
def attributes_restored(model: torch.nn.Module) -> Iterator[None]:
    """Give each module its attributes back at the end.

    A tensor in an attribute is looked up by where the model holds it (`hidden`), which a forward
    that assigns to the attribute would change; and a grid that it keeps from its first call would
    be on another device than the next call.
    """
    before = [(module, dict(vars(module))) for module in model.modules()]
    try:
        yield
    finally:
        for module, attributes in before:
            vars(module).clear()
            vars(module).update(attributes)


class _Reads(TorchFunctionMode):
    """Notes where a tensor's numbers go to a list or to numpy, which no tracer follows.

    What a list of them picks is picked by the tensor itself: `x[rows.tolist()]` is `x[rows]`.
    """

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file, self.found = file, list[str]()

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__name__", "") in {"numpy", "__array__", "tolist"}:
            sentence = f"{_line_of(self.file)}: values were read"
            if sentence not in self.found:
                self.found.append(sentence)
        if func == torch.Tensor.data.__get__:  # type: ignore[attr-defined]
            return args[0].detach()  # the same elements, by an operator that a tracer follows
        if getattr(func, "__name__", "") in {"__getitem__", "__setitem__"}:
            args = (args[0], _with_tensors(args[1]), *args[2:])
        result = func(*args, **(kwargs or {}))
        if isinstance(result, list) and args[0].dim() == 1 and not args[0].is_floating_point():
            return _Numbers(args[0], result)
        return result


class _Numbers(list[Any]):
    """The numbers of a tensor, and the tensor."""

    def __init__(self, tensor: torch.Tensor, numbers: list[Any]) -> None:
        super().__init__(numbers)
        self.tensor, self.read = tensor, numbers


def _with_tensors(index: Any) -> Any:
    """An index with tensors in the place of lists of all their numbers."""
    if isinstance(index, tuple):
        return tuple(map(_with_tensors, index))
    return index.tensor if isinstance(index, _Numbers) and index == index.read else index


def _line_of(file: str) -> str:
    """Where in a file the program is now."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return f"line {frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


@contextlib.contextmanager
def _scoped(model: torch.nn.Module, tracer: Any) -> Iterator[None]:
    """While this lasts, each traced operation knows the calls of modules that it belongs to."""
    paths = {module: path for path, module in reversed(list(model.named_modules()))}
    calls: Counter[str] = Counter()
    running: list[tuple[str, tuple[str, Any]]] = []

    def enter(module: torch.nn.Module, args: Any) -> None:
        path = paths.get(module, "")
        call = calls[path]
        calls[path] += 1
        running.append((f"{path}@{call}" if call else path, (path, type(module))))
        tracer.module_stack = OrderedDict(running)

    def leave(module: torch.nn.Module, args: Any, output: Any) -> None:
        running.pop()
        tracer.module_stack = OrderedDict(running)

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
def _noted() -> Iterator[None]:
    """While this lasts, nodes know small values of whole numbers, and the seed before them.

    `torch.cond` is the branch that it takes, like any other `if`.
    """
    manual_seed, cond = torch.manual_seed, torch.cond
    seeds: list[int] = []

    def note(node: FxNode, value: Any) -> None:
        if isinstance(value, torch.Tensor) and _counts(value):
            node.meta["seen"] = seen(value)
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


_LONGEST_SEEN = 1024
"""Characters of a value that is written down although it decides no number of elements."""
_MOST_NUMBERS = 4096


def _counts(value: torch.Tensor) -> bool:
    """Whether it holds whole numbers, be it as floats: labels, of which a program may count."""
    if not value.dtype.is_floating_point:
        return True
    if value.numel() > LONGEST_LITERAL or value.layout != torch.strided:
        return False
    with without_modes():
        return bool((value == value.round()).all())


def seen(value: torch.Tensor) -> str | None:
    """Python for a tensor that steers as this one did; None where that takes too many numbers."""
    if value.dtype.is_complex or value.layout != torch.strided:
        return None
    sizes = list(zip(value.shape, value.stride(), strict=True))
    if any(is_expanded(n, stride) for n, stride in sizes):  # what is in memory, and then expanded
        with without_modes():
            part = value[tuple(slice(1 if is_expanded(n, stride) else n) for n, stride in sizes)]
        text = seen(part)
        return text and f"{text}.expand({', '.join(map(str, value.shape))})"
    if value.numel() <= LONGEST_LITERAL:
        return tensor_literal(value)
    with without_modes():
        is_mask = value.dtype == torch.bool or bool(((value == 0) | (value == 1)).all())
        ones = int(value.sum()) if is_mask else 0
    if not is_mask:
        return tensor_literal(value, longest=_MOST_NUMBERS)
    cast = "" if value.dtype == torch.bool else f".to({value.dtype})"
    shape = ", ".join(map(str, value.shape))
    return f"(torch.randperm({value.numel()}) < {ones}).view({shape}){cast}"


def deciding(
    operations: Iterable[Operation],
    values: Mapping[str, TensorSpec],
    noted: Mapping[str, str],
    inputs: Mapping[str, torch.Tensor],
) -> dict[str, str]:
    """Python for values that files take as they were seen.

    Those are small ones and masks among what was noted, and whole numbers, of inputs too, that
    decide how many elements there are.
    """
    names: set[str] = set()
    made_by = {name: op for op in operations for name in op.outputs}
    waiting = [
        name
        for op in operations
        if is_sized_by_values(op, values)
        for name in (references(op.args[1]) if op.name.endswith("index") else op.refs())
    ]
    while waiting:
        name = waiting.pop()
        if name not in names and (not values[name].floating or name in noted):
            names.add(name)
            waiting += made_by[name].refs() if name in made_by else ()
    found = {
        n: text
        for n, text in noted.items()
        if n in names or (len(text) <= _LONGEST_SEEN and not values[n].floating)
    }
    for name in names.intersection(inputs):
        text = None if isinstance(inputs[name], FakeTensor) else seen(inputs[name])
        if text is not None:
            found[name] = text
    return found


def counted_when_drawn(
    inputs: Iterable[Input], tensors: Mapping[str, torch.Tensor]
) -> dict[str, str]:
    """Python for inputs of which get_inputs() draws how many there are, such as near neighbours."""
    found: dict[str, str] = {}
    for each in inputs:
        recipe, tensor = each.recipe, tensors[each.name]
        drawn = recipe and any(is_sized_by_values(op, recipe.specs) for op in recipe.operations)
        if drawn and not isinstance(tensor, FakeTensor) and (text := seen(tensor)) is not None:
            found[each.name] = text
    return found


def _argument_names(built: Built) -> list[str]:
    """A name for each leaf of the inputs: forward's parameter, numbered where one holds several."""
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
