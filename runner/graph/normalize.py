"""Rewrites a graph into functional form: nothing in place, no operations without effect.

requires: a graph as captured. ensures: each value is written once and never changed; no operation
only returns its argument; no view is unread. Compute that nothing reads stays, since the original
runs it too. A computation that only feeds a number to Python is a check, and is removed.
"""

import re
from ast import literal_eval
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from runner.graph.ir import (
    CPU,
    DEVICE,
    Arg,
    Graph,
    Operation,
    Ref,
    Symbol,
    TensorSpec,
    references,
    substitute_operands,
)
from runner.graph.recognition.scatters import scatter_into_base
from runner.graph.simplify import free_fills, remove_dead_views
from runner.graph.tracing.convolutions import name_convolution

# Operators that read only another tensor's shape or dtype -> the equivalent without that tensor.
TEMPLATE_OPERATORS = {
    "expand_as": ("expand.default", "size"),
    "view_as": ("view.default", "size"),
    "reshape_as": ("reshape.default", "shape"),
    "type_as": ("to.dtype", "dtype"),
}
# Operators that return their argument unchanged.
ALIASES = {
    "alias", "detach", "detach_", "lift_fresh", "lift_fresh_copy", "lift", "positive",
    "resolve_conj", "resolve_neg",
}  # fmt: skip
# Operators that only check something.
CHECKS = {
    "_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_constrain_range_for_size",
}  # fmt: skip
DROPOUTS = {
    "dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_",
    "feature_alpha_dropout", "feature_alpha_dropout_",
}  # fmt: skip
# Operators that return their argument unchanged if it already has the result's form.
MAY_DO_NOTHING = {
    "contiguous", "to", "_to_copy", "type_as", "float", "reshape", "view", "expand", "expand_as",
    "view_as", "flatten", "slice", "squeeze", "broadcast_to",
}  # fmt: skip
# In-place -> functional name, where removing the underscore does not give it.
FUNCTIONAL = {
    "fill_": "full_like",
    "zero_": "zeros_like",
    "squeeze_": "squeeze",
    "uniform_": "rand_like",
}
# In-place operators that change a tensor's shape and strides only.
VIEW_UPDATES = {"t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_"}
_NUMBER = re.compile(r"torch\.tensor\((True|False|-?[\d.e+-]+),")
"""Matches the Python text of a tensor without dimensions."""


def normalize(graph: Graph) -> Graph:
    """Return the same program without in-place operations and operations that do nothing."""
    return free_fills(remove_dead_views(_Functionalizer(graph).run()))


def _scalar_tensor(
    number: Arg, dtype: str, name: str, kwargs: tuple[tuple[str, Arg], ...] = ()
) -> Operation:
    """Return an operation that makes a tensor without dimensions that holds a number."""
    kwargs = (("dtype", Symbol(f"torch.{dtype}")), *kwargs)
    schema = ("size", "fill_value", "dtype")
    return Operation("full.default", ((), number), kwargs, (name,), schema=schema)


class _Functionalizer:
    """Replays the program and tracks each name's current value and which views are out of date.

    A value that is a view remembers its base and the operation that reads it. Writing through the
    view writes the base (`x[:, 1] = y` is `x = select_scatter(x, y)`), and every other view of that
    base is read again at its next use.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values = dict(graph.values)
        self.current: dict[str, str] = {}
        """For each name of the captured program, the value that it stands for now."""
        self.base: dict[str, tuple[str, Operation, int]] = {}
        """For each view: its base, the operation that makes it, and which of its outputs it is."""
        self.version: dict[str, int] = {}
        """For each value that owns memory, the number of writes to it so far."""
        self.read_version: dict[str, int] = {}
        """For each view, the version of its base when it was last read."""
        self.operations: list[Operation] = []
        self.notes = list(graph.notes)
        self.inactive_dropouts: list[Operation] = []
        self.written_names: set[str] = set()
        self.on_cpu = {*graph.on_cpu}

    def run(self) -> Graph:
        for op in self.graph.operations:
            self._rewrite(op)
        output = _map_refs(self.graph.output, self._output_value)
        written_paths = sorted(
            self.graph.states[n].path for n in self.written_names if n in self.graph.states
        )
        if written_paths:
            self.notes.append(
                f"forward updates state that later calls would see: {', '.join(written_paths)}"
            )
        return replace(
            self.graph,
            operations=tuple(self.operations),
            values=self.values,
            output=output,
            notes=tuple(self.notes),
            inactive_dropouts=tuple(self.inactive_dropouts),
            on_cpu=frozenset(self.on_cpu),
        )

    def _output_value(self, name: str) -> str:
        """Return the value of an output; if forward() wrote a number there, append its creation."""
        value = source = self._current_value(name)
        kwargs: tuple[tuple[str, Arg], ...] = ()
        while source in self.base and self.base[source][1].target == "to.device":
            source, kwargs = self.base[source][0], (("device", DEVICE),)
        number = self._literal_number(Ref(source))
        if isinstance(number, Ref):
            return value
        out = self._add_value(value)
        self._append(_scalar_tensor(number, self.values[value].dtype, out, kwargs))
        return out

    def _rewrite(self, op: Operation) -> None:
        source = op.args[0] if op.args else None
        if op.name.startswith("_foreach_") and op.name.endswith("_"):
            single = op.name.removeprefix("_foreach_")
            raise NotImplementedError(
                f"cannot be captured: torch.{op.name} writes into a list of tensors; "
                f"write a loop with x.{single}(...)"
            )
        if op.name in CHECKS or (op.name == "set_" and len(op.args) == 1):
            return  # A tensor that frees its memory is never read again.
        if self._updates_batch_count(op):
            self._alias(op.outputs[0], source.name if isinstance(source, Ref) else "")
            return
        if op.name in {"_to_copy", "to"} and not isinstance(source, Ref):  # a Python number
            out = op.outputs[0]
            op = replace(_scalar_tensor(source, self.values[out].dtype, out), origin=op.origin)
        if op.name in ALIASES or self._does_nothing(op):
            assert isinstance(source, Ref)
            if op.name in DROPOUTS:
                self.inactive_dropouts.append(op)
            self._alias(op.outputs[0], source.name)
        elif op.name == "broadcast_tensors":
            self._broadcast(op)
        elif op.name == "_to_copy" and self._only_copies(op):
            kwargs = tuple(item for item in op.kwargs if item[0] == "memory_format")
            self._rewrite(replace(op, target="clone.default", kwargs=kwargs, schema=("self",)))
        elif op.name == "_unsafe_view":  # vmap makes it, of a tensor without other readers
            self._rewrite(replace(op, target="view.default", view=True))
        elif op.name in VIEW_UPDATES:
            self._rewrite(
                replace(
                    op, target=op.name.rstrip("_") + "." + op.target.partition(".")[2], view=True
                )
            )
            assert isinstance(source, Ref)
            self.current[source.name] = op.outputs[0]
        elif op.name.endswith("_") and not op.name.endswith("__") and isinstance(source, Ref):
            self._write(op, source.name)
        else:
            op = name_convolution(self._replace_second_tensor(_complete_operation(op)))
            op = self._copy_instead_of_cat(op)
            self._append(replace(self._resolve_arguments(op), view=op.view))
            if op.view and isinstance(source, Ref):
                for i, name in enumerate(op.outputs):
                    self.base[name] = (source.name, op, i)
                    self.read_version[name] = self._version(source.name)

    def _broadcast(self, op: Operation) -> None:
        """Record each tensor as an alias of itself, or expand it to the common shape."""
        for name, result in zip(references(op.args), op.outputs, strict=True):
            if self.values[name] == self.values[result]:
                self._alias(result, name)
            else:
                self._rewrite(
                    replace(
                        op,
                        target="expand.default",
                        args=(Ref(name), self.values[result].shape),
                        outputs=(result,),
                        view=True,
                        schema=("self", "size"),
                        returns_list=False,
                    )
                )

    def _replace_second_tensor(self, op: Operation) -> Operation:
        """Replace the second tensor of `x.view_as(y)` or `x.type_as(y)` by y's shape or dtype."""
        if op.name not in TEMPLATE_OPERATORS or not isinstance(op.args[1], Ref):
            return op
        target, name = TEMPLATE_OPERATORS[op.name]
        template = self.values[op.args[1].name]
        form = Symbol(f"torch.{template.dtype}") if name == "dtype" else template.shape
        return replace(op, target=target, args=(op.args[0], form), kwargs=(), schema=("self", name))

    def _copy_instead_of_cat(self, op: Operation) -> Operation:
        """Replace `torch.cat([empty, x])` by a copy of x: it is the first step of a cache."""
        given = list(references(op.args))
        joined = [name for name in given if self.values[name].numel]
        result = self.values[op.outputs[0]]
        if op.name != "cat" or len(given) == 1 or len(joined) != 1 or not result.contiguous:
            return op
        (source,) = joined
        if (self.values[source].shape, self.values[source].dtype) != (result.shape, result.dtype):
            return op
        layout = (("memory_format", Symbol("torch.contiguous_format")),)
        return replace(
            op, target="clone.default", args=(Ref(source),), kwargs=layout, schema=("self",)
        )

    def _updates_batch_count(self, op: Operation) -> bool:
        """Return whether an operation updates nn.BatchNorm's batch count, which nothing reads."""
        state = self.graph.states.get(next(op.refs(), ""))
        return (
            op.name in {"add_", "add"}
            and state is not None
            and (state.path.rpartition(".")[2] == "num_batches_tracked")
        )

    def _does_nothing(self, op: Operation) -> bool:
        if op.name in DROPOUTS:
            return op.arg("train") is False or op.arg("p") == 0
        source = op.args[0] if op.args else None
        if op.name in MAY_DO_NOTHING and isinstance(source, Ref):
            moves = op.arg("device") in {CPU, DEVICE}
            same = self.values[source.name] == self.values[op.outputs[0]]
            return op.view and same and not moves
        return False

    def _only_copies(self, op: Operation) -> bool:
        """Return whether a cast is to its source's own dtype; `x.to(...)` would copy nothing."""
        source = op.args[0]
        assert isinstance(source, Ref)
        same = self.values[source.name].dtype == self.values[op.outputs[0]].dtype
        return same and {name for name, _ in op.kwargs} <= {"dtype", "memory_format"}

    def _alias(self, name: str, source: str) -> None:
        """Make `name` another name of `source` for reading and writing."""
        same = Operation("alias.default", (Ref(source),), (), (name,), view=True)
        self.current[name] = self._current_value(source)
        self.base[name] = (source, same, 0)
        self.read_version[name] = self._version(source)

    # --- reading ----------------------------------------------------------------------------------

    def _version(self, name: str) -> int:
        """Return the number of writes so far to the storage behind a value."""
        while name in self.base:
            name = self.base[name][0]
        return self.version.get(name, 0)

    def _current_value(self, name: str) -> str:
        """Return the value that `name` stands for at this point of the program."""
        if name in self.base and self.read_version[name] != self._version(name):
            parent, op, position = self.base[name]
            if op.name == "alias":
                self.current[name] = self._current_value(parent)
            else:
                fresh = [self._add_value(o) for o in op.outputs]
                args = (Ref(self._current_value(parent)), *op.args[1:])
                self._append(replace(op, args=args, outputs=tuple(fresh)))
                self.current[name] = fresh[position]
            self.read_version[name] = self._version(name)
        return self.current.get(name, name)

    def _resolve_arguments(self, op: Operation) -> Operation:
        return substitute_operands(op, lambda name: Ref(self._current_value(name)))

    def _append(self, op: Operation) -> None:
        self.operations.append(op)

    def _add_value(self, like: str, spec: TensorSpec | None = None) -> str:
        """Add a value with the spec of another one, or with `spec`, and return its name."""
        count = 1
        while f"{like}_new{count}" in self.values:
            count += 1
        name = f"{like}_new{count}"
        self.values[name] = spec or self.values[like]
        if like in self.on_cpu:
            self.on_cpu.add(name)
        return name

    # --- writing ----------------------------------------------------------------------------------

    def _write(self, op: Operation, name: str) -> None:
        """Rewrite an in-place operation on `name`.

        The new value is computed, then written into every base that `name` is a view of.
        """
        spec = self.values[name]
        resolved = self._resolve_arguments(self._keep_row_count_open(op))
        out = op.outputs[0] or self._add_value(name)
        # torch.export adds such a copy at the end, and `x[0] *= 2` has one as its second half.
        if op.name == "copy_" and self._shown_memory(op.args[0]) == self._shown_memory(op.args[1]):
            self._alias(out, name)
            return
        before = self._current_value(name)
        value = self._append_functional(resolved, before, out, spec)
        self._store(name, value, op)
        self._alias(out, name)

    def _keep_row_count_open(self, op: Operation) -> Operation:
        """Let `x[mask] = y` assign any number of rows; torch views a one-row y as the row itself.

        For other inputs a mask, or rows that were found by value, may select more, or none.
        """
        if op.name != "index_put_" or not isinstance(op.args[2], Ref):
            return op
        name = op.args[2].name
        source, view, _ = self.base.get(name, ("", op, 0))
        indices = [self.values[n] for n in references(op.args[1])]
        selects_rows = any(index.dtype == "bool" or index.shape == (1,) for index in indices)
        if not selects_rows or view.name != "view":
            return op
        if self.values[source].shape != (1, *self.values[name].shape):
            return op
        row = self._add_value(name)
        args, schema = (Ref(self._current_value(source)), 0), ("self", "dim")
        self._append(replace(view, target="squeeze.dim", args=args, outputs=(row,), schema=schema))
        return replace(op, args=(*op.args[:2], Ref(row), *op.args[3:]))

    def _shown_memory(self, arg: Arg) -> object:
        """Return the memory that an argument shows: its owner, and the views in between."""
        views: list[object] = []
        name = arg.name if isinstance(arg, Ref) else None
        while name in self.base:
            name, view, position = self.base[name]
            if view.name != "alias":
                views.append((view.target, view.args[1:], view.kwargs, position))
        if not isinstance(arg, Ref) or name is None:
            return arg, views
        spec, owner = self.values[arg.name], self.values[name]
        if spec.contiguous and owner.contiguous and spec.numel == owner.numel:
            return name, []  # The whole memory, in the order of its elements.
        return name, views

    def _append_functional(self, op: Operation, before: str, out: str, spec: TensorSpec) -> str:
        overload = op.target.partition(".")[2]
        self.values[out] = spec.as_dense()
        if op.name in {"copy_", "set_"}:
            return self._cast_source(op, out, spec)
        name = FUNCTIONAL.get(op.name, op.name[:-1])
        target, args, kwargs = f"{name}.{overload}", op.args, op.kwargs
        if op.name == "fill_":
            if isinstance(args[1], Ref):  # A 0-d tensor is broadcast over the target.
                return self._cast_source(replace(op, args=(args[0], args[1])), out, spec)
            target = "full_like.default"
        elif op.name == "zero_":
            target = "zeros_like.default"
        self._append(
            replace(op, target=target, args=(Ref(before), *args[1:]), kwargs=kwargs, outputs=(out,))
        )
        return out

    def _cast_source(self, op: Operation, out: str, spec: TensorSpec) -> str:
        """Return the source of a copy in the target's shape and dtype, ready to be scattered.

        `x[0] = y` also moves y to the device of x.
        """
        source = self._literal_number(op.args[1])
        if not isinstance(source, Ref):
            op = replace(op, args=(op.args[0], source))
            self._append(
                replace(
                    op, target="full_like.default", outputs=(out,), schema=("self", "fill_value")
                )
            )
            return out
        value, source_spec = source.name, self.values[source.name]
        is_into_part = isinstance(op.args[0], Ref) and op.args[0].name in self.base
        if is_into_part and (value in self.on_cpu) != (out in self.on_cpu):
            moved = self._add_value(out, source_spec)
            self._append(
                replace(
                    op,
                    target="to.device",
                    args=(Ref(value), CPU if out in self.on_cpu else DEVICE),
                    outputs=(moved,),
                    view=True,
                    schema=("self", "device"),
                )
            )
            value = moved
        if source_spec.dtype != spec.dtype:
            cast = self._add_value(out, replace(source_spec, dtype=spec.dtype).as_dense())
            self._append(
                replace(
                    op,
                    target="to.dtype",
                    args=(Ref(value), Symbol(f"torch.{spec.dtype}")),
                    outputs=(cast,),
                    schema=("self", "dtype"),
                )
            )
            value = cast
        if source_spec.shape != spec.shape:
            lead = len(spec.shape) - len(source_spec.shape)
            strides = (0,) * lead + tuple(
                0 if a != b else s
                for a, b, s in zip(
                    source_spec.shape, spec.shape[lead:], source_spec.stride, strict=True
                )
            )
            expanded = self._add_value(out, TensorSpec(spec.shape, spec.dtype, strides))
            self._append(
                replace(
                    op,
                    target="expand.default",
                    args=(Ref(value), spec.shape),
                    outputs=(expanded,),
                    view=True,
                    schema=("self", "size"),
                )
            )
            value = expanded
        return value

    def _literal_number(self, source: Arg) -> Arg:
        """Return the number that a constant tensor was written as: the 0 of `x[:1] = 0`."""
        state = (
            self.graph.states.get(self._current_value(source.name))
            if isinstance(source, Ref)
            else None
        )
        match = _NUMBER.match(state.literal or "") if state and state.kind == "constant" else None
        return source if match is None else literal_eval(match[1])

    def _store(self, name: str, value: str, op: Operation) -> None:
        if name in self.base and self.base[name][1].target == "to.device":
            del self.base[name]  # `.to(device)` copies, except when the model is on the CPU
        if name not in self.base:
            if (
                op.name == "copy_"
                and op.origin is not None
                and value not in self._statement_outputs(op)
            ):
                copied = self._add_value(name)
                self._append(
                    replace(
                        op,
                        target="clone.default",
                        args=(Ref(value),),
                        outputs=(copied,),
                        schema=("self",),
                    )
                )
                value = copied
            self.version[name] = self.version.get(name, 0) + 1
            self.current[name] = value
            self.written_names.add(name)
            return
        parent, view, position = self.base[name]
        if view.name == "alias":
            self._store(parent, value, op)
            self.current[name] = self._current_value(parent)
        else:
            self._store(
                parent,
                self._scatter_into(parent, view, position, value, op),
                replace(op, target="write_.default"),
            )
            self.current[name] = value
        if self.values[self.current[name]].effective_strides == self.values[name].effective_strides:
            self.read_version[name] = self._version(name)  # else read again, at its own strides

    def _statement_outputs(self, op: Operation) -> Iterable[str]:
        """Return the outputs of the last operation if it stands in the same statement."""
        previous = self.operations[-1] if self.operations else None
        return (
            previous.outputs
            if previous is not None and previous.origin is op.origin and not previous.view
            else ()
        )

    def _scatter_into(
        self, parent: str, view: Operation, position: int, value: str, op: Operation
    ) -> str:
        """Return the parent with `value` written into the elements that `view` shows."""
        before = self._current_value(parent)
        if view.name in {"real", "imag"}:
            return self._scatter_component(before, view, value, op)
        shape = self.values[before].shape
        assigns = op.name in {"copy_", "fill_", "zero_"}
        moves_nothing = not assigns and not self._is_part(parent)
        scatter = scatter_into_base(
            view, position, before, value, shape, self.graph.values, moves_nothing=moves_nothing
        )
        by_stride = scatter is not None and scatter[0].startswith("as_strided")
        if scatter is None or (by_stride and not self.values[before].contiguous):
            raise NotImplementedError(f"a write through {view.target}")
        target, args, schema, moves = scatter
        spec = self.values[before]
        out = self._add_value(parent, spec if moves else spec.as_dense())
        self._append(
            Operation(target, args, (), (out,), op.scopes, op.origin, view=not moves, schema=schema)
        )
        return out

    def _is_part(self, name: str) -> bool:
        """Return whether a value is a view that shows a part of what it is a view of."""
        whole = name
        while whole in self.base:
            whole = self.base[whole][0]
        return self.values[name].numel < self.values[whole].numel

    def _scatter_component(self, before: str, view: Operation, value: str, op: Operation) -> str:
        """Return complex numbers with `value` as their real or imaginary parts."""
        spec, part = self.values[before], self.values[value]
        conjugated = (o.name == "_conj" for o in self.operations if before in o.outputs)
        if not spec.dtype.startswith("complex") or any(conjugated):
            raise NotImplementedError(f"a write through {view.target}")
        pairs = replace(part, shape=(*spec.shape, 2))
        pairs_name = self._add_value(
            value, replace(pairs, stride=(*(2 * s for s in spec.stride), 1))
        )
        new_pairs = self._add_value(value, self.values[pairs_name].as_dense())
        out = self._add_value(before, spec.as_dense())
        place = Ref(pairs_name), Ref(value), -1, int(view.name == "imag")
        steps: tuple[tuple[str, tuple[Arg, ...], str], ...] = (
            ("view_as_real.default", (Ref(before),), pairs_name),
            ("select_scatter.default", place, new_pairs),
            ("view_as_complex.default", (Ref(new_pairs),), out),
        )
        for target, args, name in steps:
            schema, view_only = ("self", "src", "dim", "index")[: len(args)], len(args) == 1
            new_op = Operation(target, args, (), (name,), op.scopes, op.origin, schema=schema)
            self._append(replace(new_op, view=view_only))
        return out


# Uninitialised memory becomes zeros, so that every run gives the same numbers.
_ZERO_FILLED = {"empty": "zeros", "empty_like": "zeros_like", "new_empty": "new_zeros"}


def _complete_operation(op: Operation) -> Operation:
    """Return the operation with zeros for uninitialised memory and a complete overload."""
    name, _, overload = op.target.partition(".")
    if name in {"empty_strided", "new_empty_strided"}:
        sizes = slice(0, 1 if name == "empty_strided" else 2)
        op = replace(op, args=op.args[sizes], schema=op.schema[sizes])
        return replace(op, target=f"{name.replace('empty_strided', 'zeros')}.default")
    if name in _ZERO_FILLED and overload in {"default", "memory_format"}:
        kwargs = tuple((k, v) for k, v in op.kwargs if k != "memory_format" or name == "empty_like")
        return replace(op, target=f"{_ZERO_FILLED[name]}.default", kwargs=kwargs)
    if overload == "padding" and op.arg("padding") is None:
        return replace(op, kwargs=(*op.kwargs, ("padding", "valid")))
    return op


def _map_refs(structure: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(structure, Ref):
        return Ref(rename(structure.name))
    if isinstance(structure, dict):
        return type(structure)((k, _map_refs(v, rename)) for k, v in structure.items())
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(_map_refs(v, rename) for v in structure))
    if isinstance(structure, (list, tuple)):
        return type(structure)(_map_refs(v, rename) for v in structure)
    return structure
