"""Records how tensors are made before `forward`, in `__init__` or `get_inputs()`.

While the author's code builds the model and the inputs, every operator call is recorded. The few
operations that make one tensor are then selected from the record, backwards and by storage, so that
`pe[:, 0::2] = sin(...)` counts. They become a `Recipe`: an emitted file computes a mask or a table
by the author's own operations, and draws inputs by the author's own rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from runner.graph.ir import Arg, Operation, Origin, Recipe, Ref, Symbol, TensorSpec
from runner.graph.operations import kind
from runner.graph.tracing.refusal import CaptureRefusal
from runner.graph.tracing.source_statement import current_origin
from runner.torch_internals import (
    DynamicOutputShapeException,
    FakeTensor,
    TorchDispatchMode,
    name_of,
    overload_of,
    schema,
    storage_of,
    tree_flatten,
    tree_map_only,
    tree_unflatten,
    without_modes,
)

LONGEST_RECIPE = 40
LONGEST_LITERAL = 64
LARGEST_REPLAY = 1 << 20
"""Most numbers in a tensor that is computed for real, because the author's code reads one of it."""
_MOST_CALLS = 1 << 16
"""Most calls that are looked through for those that make a tensor whose numbers are read."""
_DIGITS = range(3, 10)
_IGNORED_KEYWORDS = {"device", "layout", "pin_memory", "generator", "non_blocking"}


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Return shape, dtype and strides of a tensor, real or fake."""
    strides = tuple(int(s) for s in tensor.stride()) if tensor.layout == torch.strided else ()
    return TensorSpec(
        tuple(int(s) for s in tensor.shape), str(tensor.dtype).removeprefix("torch."), strides
    )


def memory_key(tensor: torch.Tensor) -> object:
    """Return a key for the memory that a tensor shows; for a sparse tensor, its storage."""
    if tensor.layout is not torch.strided:
        return storage_of(tensor)
    return storage_of(tensor), tensor.storage_offset(), tensor.shape, tensor.stride()


def literal_of(value: Any) -> Arg:
    """Return a non-tensor argument in the graph's notation; raise TypeError if it has none."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return Symbol(str(value))
    if isinstance(value, torch.device):
        return Symbol(f'torch.device("{value.type}")')
    if isinstance(value, (list, tuple)):
        return tuple(literal_of(item) for item in value)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise CaptureRefusal(f"a size depends on values: {value}")
    raise CaptureRefusal(f"an argument is a {type(value).__name__}")


def tensor_literal(tensor: torch.Tensor, longest: int = LONGEST_LITERAL) -> str | None:
    """Return a tensor as Python text; None if it has no values or more than `longest` numbers."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta or tensor.numel() > longest:
        return None
    with without_modes():  # A fake tensor mode would make the read fake.
        numbers = repr(_shortest_decimals(tensor).tolist())
    numbers = numbers.replace("nan", 'float("nan")').replace("inf", 'float("inf")')
    return f"torch.tensor({numbers}, dtype={tensor.dtype})"


def _shortest_decimals(tensor: torch.Tensor) -> torch.Tensor:
    """Return the numbers as doubles with the fewest digits that round to the same value: 0.37."""
    if not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return tensor
    exact = tensor.detach().double()
    result = exact
    for digits in reversed(_DIGITS):
        rounded = [float(f"{number:.{digits}g}") for number in exact.flatten().tolist()]
        shorter = torch.tensor(rounded, dtype=torch.float64).view(exact.shape)
        result = torch.where(shorter.to(tensor.dtype) == tensor, shorter, result)
    return result


def schema_names(target: Any) -> tuple[str, ...]:
    """Return the names of an operator's arguments."""
    return tuple(argument.name for argument in schema(target).arguments)


def plain_kwargs(kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keyword arguments that are not None and do not say where a tensor lives."""
    for name, value in kwargs.items():
        if name in _IGNORED_KEYWORDS or value is None:
            continue
        yield name, value


_FILLS = {
    torch.ops.aten.fill_.Scalar,
    torch.ops.aten.normal_.default,
    torch.ops.aten.uniform_.default,
    torch.ops.aten.zero_.default,
}
"""Operators that draw or write a tensor's numbers anew, as each layer does when it is built."""


class ProvenanceRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records each operator call; used around the author's `__init__` and `get_inputs()`.

    On fake tensors, it lets that code read numbers of tensors that it made itself.
    """

    def __init__(self, longest: int = LONGEST_LITERAL, *, keeps_origins: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._keeps_origins = keeps_origins
        self.known: dict[int, torch.Tensor] = {}
        """By id(): the numbers of fake tensors that come from elsewhere."""
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any, Origin | None]] = []
        self._longest = longest
        self._literals: dict[int, str | None] = {}
        """By storage: the original text of a tensor that was written out; it may change later."""
        self._writers: dict[int, list[int]] = {}
        self._indexed = 0
        self._last_replay: tuple[int, dict[int, torch.Tensor]] = 0, {}
        """The number of calls at the last replay, and by id() the numbers that it made."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is torch.ops.aten.lift_fresh.default:
            literal = tensor_literal(args[0], self._longest)
            self._literals.setdefault(storage_of(args[0]), literal)
        if func is torch.ops.aten._local_scalar_dense.default and isinstance(args[0], FakeTensor):
            number = self._read_number(args[0])
            if number is not None:
                return number
        if func in _FILLS and _is_only_filled(args[0]):
            out = args[0]
        else:
            try:
                out = func(*args, **(kwargs or {}))
            except DynamicOutputShapeException:
                out = self._size_by_values(func, args, kwargs or {})
                if out is None:
                    raise
        origin = current_origin() if self._keeps_origins else None
        self.calls.append((func, args, kwargs or {}, out, origin))
        return out

    def _index(self) -> None:
        """Find out which calls wrote to each storage."""
        for position in range(self._indexed, len(self.calls)):
            func, args, _, out, _ = self.calls[position]
            outputs = _tensors(out) or (_tensors(args[:1]) if schema(func).is_mutable else [])
            for storage in {storage_of(t) for t in outputs}:
                self._writers.setdefault(storage, []).append(position)
        self._indexed = len(self.calls)

    def has_made(self, tensor: torch.Tensor) -> bool:
        """Return whether a recorded call made a tensor, or wrote to it."""
        self._index()
        return storage_of(tensor) in self._writers

    def recipe(self, tensor: torch.Tensor) -> Recipe | None:
        """Return the operations that make `tensor`.

        Return None if a part of it comes from elsewhere, or if there are more than LONGEST_RECIPE
        calls.
        """
        calls = self._select_calls(tensor)
        if calls is None:
            return None
        try:
            return _write_recipe(calls, tensor, self._literals)
        except (TypeError, KeyError):
            return None

    def _read_number(self, tensor: FakeTensor) -> Any:
        """Return the number in a fake tensor as `item()` returns it; None if it is unknown.

        Authors read the rates of stochastic depth like this:
        `[x.item() for x in torch.linspace(0, rate, depth)]`.
        """
        if tensor.constant is not None:
            return None
        if self._last_replay[0] != len(self.calls) or id(tensor) not in self._last_replay[1]:
            replayed = self.replay(tensor)
            if not replayed:
                return None
            # `tolist()` asks for each element, and the first replay makes all of them.
            self._last_replay = len(self.calls), {id(fake): real for fake, real in replayed}
        with without_modes():
            return self._last_replay[1][id(tensor)].item()

    def _size_by_values(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a call gives whose sizes depend on values; None if the values are unknown.

        Authors count the stages of a network like this: `len(torch.unique(widths))`.
        """
        leaves, structure = tree_flatten((args, kwargs))
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, FakeTensor):
                replayed = self.replay(leaf)
                if not replayed:
                    return None
                leaves[position] = replayed[-1][1]
        real_args, real_kwargs = tree_unflatten(leaves, structure)
        with without_modes():
            real = func(*real_args, **real_kwargs)
        return tree_map_only(
            torch.Tensor, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype), real
        )

    def replay(self, tensor: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]] | None:
        """Make a fake tensor for real by the calls that made it.

        Return the fake tensors that lead to it, each with its numbers, itself as the last one. None
        if it is random, comes from elsewhere, or needs a large tensor.
        """
        calls = self._select_calls(tensor, _MOST_CALLS) if isinstance(tensor, FakeTensor) else None
        if calls is None:
            return None
        real: dict[int, torch.Tensor] = {}
        replayed: list[tuple[torch.Tensor, torch.Tensor]] = []

        def replace(value: Any) -> Any:
            if isinstance(value, FakeTensor):
                if id(value) not in real:
                    with without_modes():
                        real[id(value)] = self.known[id(value)].clone()
                    replayed.append((value, real[id(value)]))
                return real[id(value)]
            if isinstance(value, torch.device):
                return torch.device("cpu")  # It may be a simulated one.
            if isinstance(value, list | tuple):
                return type(value)(map(replace, value))
            return value

        for func, args, kwargs, out, _ in _without_other_views(calls, tensor):
            outputs = _tensors(out)
            is_random = torch.Tag.nondeterministic_seeded in func.tags
            if is_random or any(t.numel() > LARGEST_REPLAY or t.is_meta for t in outputs):
                return None
            try:
                arguments = replace(args), {key: replace(item) for key, item in kwargs.items()}
            except (KeyError, TypeError):
                return None
            with without_modes():
                results = _tensors(func(*arguments[0], **arguments[1]))
            real.update(zip(map(id, outputs), results, strict=True))
            replayed += zip(outputs, results, strict=True)
        try:
            return [*replayed, (tensor, replace(tensor))]
        except KeyError:
            return None

    def _select_calls(self, tensor: torch.Tensor, most: int = LONGEST_RECIPE) -> list[Any] | None:
        """Return the calls that make a tensor, in order; None if they are more than `most`."""
        self._index()
        queue = [storage_of(tensor)]
        visited = set(queue)
        selected: set[int] = set()
        while queue:
            for position in self._writers.get(queue.pop(), ()):
                if position in selected:
                    continue
                selected.add(position)
                if len(selected) > most:
                    return None
                _, args, kwargs, _, _ = self.calls[position]
                for storage in {storage_of(t) for t in _tensors((args, kwargs))} - visited:
                    visited.add(storage)
                    queue.append(storage)
        return [self.calls[i] for i in sorted(selected)]


def _is_only_filled(tensor: torch.Tensor) -> bool:
    """Return whether to fill a tensor with numbers changes nothing: it is fake and has none."""
    return type(tensor) is FakeTensor and tensor.constant is None and tensor.is_floating_point()


def _without_other_views(calls: list[Any], tensor: torch.Tensor) -> list[Any]:
    """Return the calls without those that only show a part of memory that no other call reads."""
    needed = {id(tensor)}
    remaining = []
    for call in reversed(calls):
        func, args, kwargs, out, _ = call
        if schema(func).is_mutable or not needed.isdisjoint(map(id, _tensors(out))):
            needed.update(map(id, _tensors((args, kwargs))))
            remaining.append(call)
    return remaining[::-1]


def _write_recipe(
    calls: list[Any], tensor: torch.Tensor, literals: dict[int, str | None]
) -> Recipe | None:
    names: dict[int, str] = {}
    places: dict[tuple[object, TensorSpec], str] = {}
    values: dict[str, TensorSpec] = {}
    operations: list[Operation] = []
    result = None

    def add_name(t: torch.Tensor, stem: str) -> str:
        names[id(t)] = fresh = f"{stem}_{len(values)}"
        values[fresh] = spec_of(t)
        places[memory_key(t), values[fresh]] = fresh
        return fresh

    def convert(value: Any) -> Arg:
        if isinstance(value, torch.Tensor):
            if id(value) in names:
                return Ref(names[id(value)])
            place = (memory_key(value), spec_of(value))
            if place in places:
                return Ref(places[place])
            literal = literals.get(storage_of(value)) or tensor_literal(value)
            if literal is None:
                raise KeyError("a tensor from elsewhere")
            return Symbol(literal)
        if isinstance(value, (list, tuple)):
            return tuple(convert(item) for item in value)
        return literal_of(value)

    for func, args, kwargs, out, origin in calls:
        if func.namespace != "aten":
            raise KeyError("a recipe calls torch's operators only")
        stem = name_of(func).strip("_")
        args_ir = tuple(convert(a) for a in args)
        if schema(func).is_mutable and not isinstance(args_ir[0], Ref):
            raise KeyError("a write into a tensor from elsewhere")
        kwargs_ir = tuple((k, convert(v)) for k, v in plain_kwargs(kwargs))
        outputs = []
        for t in _tensors(out):
            outputs.append(names[id(t)] if id(t) in names else add_name(t, stem))
            if t is tensor or (
                memory_key(t) == memory_key(tensor) and spec_of(t) == spec_of(tensor)
            ):
                result = outputs[-1]
        op = Operation(
            target=f"{name_of(func)}.{overload_of(func)}",
            args=args_ir,
            kwargs=kwargs_ir,
            outputs=tuple(outputs),
            view=func.is_view,
            schema=schema_names(func),
            returns_list=isinstance(out, (list, tuple)),
            origin=origin,
        )
        operations.append(with_dtype(op, values[outputs[0]]) if outputs else op)
    if result is None:
        return None
    remaining, result = _remove_unread(operations, result)
    return Recipe(remaining, result, tuple(values.items()))


def _remove_unread(operations: list[Operation], result: str) -> tuple[tuple[Operation, ...], str]:
    """Remove the operations whose results nothing reads.

    `detach`, `alias` and `lift_fresh` are replaced by their argument.
    """
    replacements: dict[str, str] = {}
    renamed_operations: list[Operation] = []
    for op in operations:
        args = tuple(_rename_refs(a, replacements) for a in op.args)
        kwargs = tuple((k, _rename_refs(v, replacements)) for k, v in op.kwargs)
        if op.name in {"detach", "alias", "lift_fresh", "detach_"} and isinstance(args[0], Ref):
            replacements[op.outputs[0]] = args[0].name
            continue
        outputs = tuple(replacements.get(o, o) for o in op.outputs)
        renamed_operations.append(
            Operation(
                op.target,
                args,
                kwargs,
                outputs,
                origin=op.origin,
                view=op.view,
                schema=op.schema,
                returns_list=op.returns_list,
            )
        )
    result = replacements.get(result, result)
    read_values = {result}
    remaining: list[Operation] = []
    for op in reversed(renamed_operations):
        if op.name.endswith("_") or not op.outputs or any(o in read_values for o in op.outputs):
            remaining.append(op)
            read_values.update(op.refs())
    return tuple(reversed(remaining)), result


def _rename_refs(value: Arg, replacements: dict[str, str]) -> Arg:
    if isinstance(value, Ref):
        return Ref(replacements.get(value.name, value.name))
    if isinstance(value, tuple):
        return tuple(_rename_refs(item, replacements) for item in value)
    return value


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def with_dtype(op: Operation, spec: TensorSpec) -> Operation:
    """Add the dtype to a creation operation where the problem's file set another default dtype."""
    is_creation = kind(op) in {"creation", "random"} and not any(op.refs())
    if not (is_creation and spec.floating and spec.dtype != "float32" and "dtype" in op.schema):
        return op
    if op.arg("dtype") is not None:
        return op
    return replace(op, kwargs=(*op.kwargs, ("dtype", Symbol(f"torch.{spec.dtype}"))))
