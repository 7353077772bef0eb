"""This file knows about programs that mean the same: nothing in place, no-ops gone.

requires: a graph as captured. ensures: each value is written once and never changed; no operation
that only returns its argument; views that nothing reads are gone. Compute that nothing reads
stays: the original runs it too. What Python alone reads, as a number, is a check, and gone.
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
    substitute,
)
from runner.graph.operations import constants, kind
from runner.graph.recognition.scatters import scatter_into_base
from runner.graph.tracing.convolutions import by_dimensions

# Operations that read only another tensor's shape or dtype: what says the same without it.
LIKE_ANOTHER = {
    "expand_as": ("expand.default", "size"),
    "view_as": ("view.default", "size"),
    "reshape_as": ("reshape.default", "shape"),
    "type_as": ("to.dtype", "dtype"),
}
# Operations that return their argument as it is.
ALIASES = {
    "alias", "detach", "detach_", "lift_fresh", "lift_fresh_copy", "lift", "positive",
    "resolve_conj", "resolve_neg",
}  # fmt: skip
# Operations that only check.
CHECKS = {
    "_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_constrain_range_for_size",
}  # fmt: skip
DROPOUTS = {
    "dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_",
    "feature_alpha_dropout", "feature_alpha_dropout_",
}  # fmt: skip
# Operations that return their argument where it is already as they would make it.
MAY_DO_NOTHING = {
    "contiguous", "to", "_to_copy", "type_as", "float", "reshape", "view", "expand", "expand_as",
    "view_as", "flatten", "slice", "squeeze", "broadcast_to",
}  # fmt: skip
# In place -> functional, where the name is not just without the underscore.
FUNCTIONAL = {
    "fill_": "full_like",
    "zero_": "zeros_like",
    "squeeze_": "squeeze",
    "uniform_": "rand_like",
}
# In-place forms that only change how a tensor is read.
VIEW_UPDATES = {"t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_"}
_NUMBER = re.compile(r"torch\.tensor\((True|False|-?[\d.e+-]+),")
"""How a tensor of no dimension is written."""


def normalize(graph: Graph) -> Graph:
    """The same program without in-place operations and without operations that do nothing."""
    return _without_dead_views(_Functional(graph).run())


def _full(
    number: Arg, dtype: str, name: str, kwargs: tuple[tuple[str, Arg], ...] = ()
) -> Operation:
    """A tensor without dimensions that holds a number."""
    kwargs = (("dtype", Symbol(f"torch.{dtype}")), *kwargs)
    schema = ("size", "fill_value", "dtype")
    return Operation("full.default", ((), number), kwargs, (name,), schema=schema)


class _Functional:
    """Replays the program, keeping what each value is now and which views of it are out of date.

    A value that is a view remembers its base and the operation that reads it; writing through the
    view writes the base (`x[:, 1] = y` is `x = select_scatter(x, y)`), and every other view of
    that base is read anew when next used.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values = dict(graph.values)
        self.current: dict[str, str] = {}
        self.base: dict[str, tuple[str, Operation, int]] = {}
        self.version: dict[str, int] = {}
        self.stamp: dict[str, int] = {}
        self.operations: list[Operation] = []
        self.notes = list(graph.notes)
        self.dropped: list[Operation] = []
        self.written: set[str] = set()
        self.on_cpu = {*graph.on_cpu}

    def run(self) -> Graph:
        for op in self.graph.operations:
            self._step(op)
        output = _map_refs(self.graph.output, self._returned)
        written = sorted(self.graph.states[n].path for n in self.written if n in self.graph.states)
        if written:
            self.notes.append(
                f"forward updates state that later calls would see: {', '.join(written)}"
            )
        return replace(
            self.graph,
            operations=tuple(self.operations),
            values=self.values,
            output=output,
            notes=tuple(self.notes),
            dropped=tuple(self.dropped),
            on_cpu=frozenset(self.on_cpu),
        )

    def _returned(self, name: str) -> str:
        """Return the value of an output; a number that forward() writes out is made by a kernel."""
        value = source = self._now(name)
        kwargs: tuple[tuple[str, Arg], ...] = ()
        while source in self.base and self.base[source][1].target == "to.device":
            source, kwargs = self.base[source][0], (("device", DEVICE),)
        number = self._number(Ref(source))
        if isinstance(number, Ref):
            return value
        made = self._fresh(value)
        self._append(_full(number, self.values[value].dtype, made, kwargs))
        return made

    def _step(self, op: Operation) -> None:
        source = op.args[0] if op.args else None
        if op.name in CHECKS or (op.name == "set_" and len(op.args) == 1):
            return  # a tensor that gives its memory back is read no more
        if self._counts_batches(op):
            self._alias(op.outputs[0], source.name if isinstance(source, Ref) else "")
            return
        if op.name in {"_to_copy", "to"} and not isinstance(source, Ref):  # a number of Python's
            made = op.outputs[0]
            op = replace(_full(source, self.values[made].dtype, made), origin=op.origin)
        if op.name in ALIASES or self._does_nothing(op):
            assert isinstance(source, Ref)
            if op.name in DROPOUTS:
                self.dropped.append(op)
            self._alias(op.outputs[0], source.name)
        elif op.name == "broadcast_tensors":
            self._broadcast(op)
        elif op.name == "_unsafe_view":  # of what nobody else has: vmap makes it
            self._step(replace(op, target="view.default", view=True))
        elif op.name in VIEW_UPDATES:
            self._step(
                replace(
                    op, target=op.name.rstrip("_") + "." + op.target.partition(".")[2], view=True
                )
            )
            assert isinstance(source, Ref)
            self.current[source.name] = op.outputs[0]
        elif op.name.endswith("_") and not op.name.endswith("__") and isinstance(source, Ref):
            self._write(op, source.name)
        else:
            op = by_dimensions(self._by_shape(_in_full(op)))
            self._append(replace(self._resolved(op), view=op.view))
            if op.view and isinstance(source, Ref):
                for i, name in enumerate(op.outputs):
                    self.base[name] = (source.name, op, i)
                    self.stamp[name] = self._version(source.name)

    def _broadcast(self, op: Operation) -> None:
        """Each tensor as it is, or expanded to the common shape."""
        for name, result in zip(references(op.args), op.outputs, strict=True):
            if self.values[name] == self.values[result]:
                self._alias(result, name)
            else:
                self._step(
                    replace(
                        op,
                        target="expand.default",
                        args=(Ref(name), self.values[result].shape),
                        outputs=(result,),
                        view=True,
                        schema=("self", "size"),
                        listed=False,
                    )
                )

    def _by_shape(self, op: Operation) -> Operation:
        """`x.view_as(y)` reads only y's shape, `x.type_as(y)` only its dtype: say that instead."""
        if op.name not in LIKE_ANOTHER or not isinstance(op.args[1], Ref):
            return op
        target, name = LIKE_ANOTHER[op.name]
        other = self.values[op.args[1].name]
        said = Symbol(f"torch.{other.dtype}") if name == "dtype" else other.shape
        return replace(op, target=target, args=(op.args[0], said), kwargs=(), schema=("self", name))

    def _counts_batches(self, op: Operation) -> bool:
        """nn.BatchNorm's own count of the batches that it was trained on, which nothing reads."""
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

    def _alias(self, name: str, source: str) -> None:
        """`name` is `source` from now on, for reading and for writing."""
        same = Operation("alias.default", (Ref(source),), (), (name,), view=True)
        self.current[name] = self._now(source)
        self.base[name] = (source, same, 0)
        self.stamp[name] = self._version(source)

    # --- reading ----------------------------------------------------------------------------------

    def _version(self, name: str) -> int:
        """How often the storage behind a value has been written, as far as this value must know."""
        while name in self.base:
            name = self.base[name][0]
        return self.version.get(name, 0)

    def _now(self, name: str) -> str:
        """The value that `name` stands for at this point of the program."""
        if name in self.base and self.stamp[name] != self._version(name):
            parent, op, position = self.base[name]
            if op.name == "alias":
                self.current[name] = self._now(parent)
            else:
                fresh = [self._fresh(o) for o in op.outputs]
                args = (Ref(self._now(parent)), *op.args[1:])
                self._append(replace(op, args=args, outputs=tuple(fresh)))
                self.current[name] = fresh[position]
            self.stamp[name] = self._version(name)
        return self.current.get(name, name)

    def _resolved(self, op: Operation) -> Operation:
        args = tuple(substitute(a, lambda n: Ref(self._now(n))) for a in op.args)
        kwargs = tuple((k, substitute(v, lambda n: Ref(self._now(n)))) for k, v in op.kwargs)
        return replace(op, args=args, kwargs=kwargs)

    def _append(self, op: Operation) -> None:
        self.operations.append(op)

    def _fresh(self, like: str, spec: TensorSpec | None = None) -> str:
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
        """An in-place operation on `name`.

        The new value is computed, then written into every base that `name` is a view of.
        """
        spec = self.values[name]
        resolved = self._resolved(self._as_many_as_chosen(op))
        out = op.outputs[0] or self._fresh(name)
        # torch.export's own, at the end; and the second half of `x[0] *= 2`.
        if op.name == "copy_" and self._place(op.args[0]) == self._place(op.args[1]):
            self._alias(out, name)
            return
        before = self._now(name)
        value = self._functional(resolved, before, out, spec)
        self._store(name, value, op)
        self._alias(out, name)

    def _as_many_as_chosen(self, op: Operation) -> Operation:
        """`x[mask] = y` for any number of rows: torch views a y of one row as no rows but a row.

        Of the values that the next inputs bring the mask chooses more, or none.
        """
        if op.name != "index_put_" or not isinstance(op.args[2], Ref):
            return op
        name = op.args[2].name
        source, view, _ = self.base.get(name, ("", op, 0))
        by_mask = any(self.values[n].dtype == "bool" for n in references(op.args[1]))
        if not by_mask or view.name != "view":
            return op
        if self.values[source].shape != (1, *self.values[name].shape):
            return op
        row = self._fresh(name)
        args, schema = (Ref(self._now(source)), 0), ("self", "dim")
        self._append(
            replace(view, target="squeeze.dim", args=args, outputs=(row,), schema=schema)
        )
        return replace(op, args=(*op.args[:2], Ref(row), *op.args[3:]))

    def _place(self, arg: Arg) -> object:
        """The memory that an argument shows: the tensor that owns it, and the views on the way."""
        views: list[object] = []
        name = arg.name if isinstance(arg, Ref) else None
        while name in self.base:
            name, view, position = self.base[name]
            if view.name != "alias":
                views.append((view.target, view.args[1:], view.kwargs, position))
        if not isinstance(arg, Ref) or name is None:
            return arg, views
        shown, owner = self.values[arg.name], self.values[name]
        if shown.contiguous and owner.contiguous and shown.numel == owner.numel:
            return name, []  # all of it, in the order in which it lies
        return name, views

    def _functional(self, op: Operation, before: str, out: str, spec: TensorSpec) -> str:
        overload = op.target.partition(".")[2]
        self.values[out] = spec.dense()
        if op.name in {"copy_", "set_"}:
            return self._copied(op, out, spec)
        name = FUNCTIONAL.get(op.name, op.name[:-1])
        target, args, kwargs = f"{name}.{overload}", op.args, op.kwargs
        if op.name == "fill_":
            if isinstance(args[1], Ref):  # a 0-d tensor, broadcast over the target
                return self._copied(replace(op, args=(args[0], args[1])), out, spec)
            target = "full_like.default"
        elif op.name == "zero_":
            target = "zeros_like.default"
        self._append(
            replace(op, target=target, args=(Ref(before), *args[1:]), kwargs=kwargs, outputs=(out,))
        )
        return out

    def _copied(self, op: Operation, out: str, spec: TensorSpec) -> str:
        """The source of a copy, in the target's shape and dtype; scattering it does the copying."""
        source = self._number(op.args[1])
        if not isinstance(source, Ref):
            op = replace(op, args=(op.args[0], source))
            self._append(
                replace(
                    op, target="full_like.default", outputs=(out,), schema=("self", "fill_value")
                )
            )
            return out
        value, have = source.name, self.values[source.name]
        if have.dtype != spec.dtype:
            cast = self._fresh(out, replace(have, dtype=spec.dtype).dense())
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
        if have.shape != spec.shape:
            lead = len(spec.shape) - len(have.shape)
            strides = (0,) * lead + tuple(
                0 if a != b else s
                for a, b, s in zip(have.shape, spec.shape[lead:], have.stride, strict=True)
            )
            wide = self._fresh(out, TensorSpec(spec.shape, spec.dtype, strides))
            self._append(
                replace(
                    op,
                    target="expand.default",
                    args=(Ref(value), spec.shape),
                    outputs=(wide,),
                    view=True,
                    schema=("self", "size"),
                )
            )
            value = wide
        return value

    def _number(self, source: Arg) -> Arg:
        """The 0 of `x[:1] = 0`, which was a tensor for a while."""
        state = self.graph.states.get(self._now(source.name)) if isinstance(source, Ref) else None
        found = _NUMBER.match(state.literal or "") if state and state.kind == "constant" else None
        return source if found is None else literal_eval(found[1])

    def _store(self, name: str, value: str, op: Operation) -> None:
        if name in self.base and self.base[name][1].target == "to.device":
            del self.base[name]  # made on the CPU and moved: a copy, but where the model is on one
        if name not in self.base:
            if op.name == "copy_" and op.origin is not None and value not in self._made_here(op):
                copied = self._fresh(name)
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
            self.written.add(name)
            return
        parent, view, position = self.base[name]
        if view.name == "alias":
            self._store(parent, value, op)
            self.current[name] = self._now(parent)
        else:
            self._store(
                parent,
                self._scattered(parent, view, position, value, op),
                replace(op, target="write_.default"),
            )
            self.current[name] = value
        if self.values[self.current[name]].steps == self.values[name].steps:
            self.stamp[name] = self._version(name)  # else it is read anew, at its own strides

    def _made_here(self, op: Operation) -> Iterable[str]:
        last = self.operations[-1] if self.operations else None
        return (
            last.outputs if last is not None and last.origin is op.origin and not last.view else ()
        )

    def _scattered(
        self, parent: str, view: Operation, position: int, value: str, op: Operation
    ) -> str:
        """The parent with `value` written where `view` reads it."""
        before = self._now(parent)
        if view.name in {"real", "imag"}:
            return self._with_component(before, view, value, op)
        shape = self.values[before].shape
        scatter = scatter_into_base(view, position, before, value, shape, self.graph.values)
        by_stride = scatter is not None and scatter[0].startswith("as_strided")
        if scatter is None or (by_stride and not self.values[before].contiguous):
            raise NotImplementedError(f"a write through {view.target}")
        target, args, schema, moves = scatter
        spec = self.values[before]
        out = self._fresh(parent, spec if moves else spec.dense())
        self._append(
            Operation(target, args, (), (out,), op.scopes, op.origin, view=not moves, schema=schema)
        )
        return out

    def _with_component(self, before: str, view: Operation, value: str, op: Operation) -> str:
        """Complex numbers with `value` for their real or imaginary parts."""
        whole, part = self.values[before], self.values[value]
        conjugated = (o.name == "_conj" for o in self.operations if before in o.outputs)
        if not whole.dtype.startswith("complex") or any(conjugated):
            raise NotImplementedError(f"a write through {view.target}")
        pairs = replace(part, shape=(*whole.shape, 2))
        apart = self._fresh(value, replace(pairs, stride=(*(2 * s for s in whole.stride), 1)))
        written = self._fresh(value, self.values[apart].dense())
        out = self._fresh(before, whole.dense())
        place = Ref(apart), Ref(value), -1, int(view.name == "imag")
        steps: tuple[tuple[str, tuple[Arg, ...], str], ...] = (
            ("view_as_real.default", (Ref(before),), apart),
            ("select_scatter.default", place, written),
            ("view_as_complex.default", (Ref(written),), out),
        )
        for target, args, made in steps:
            schema, view_only = ("self", "src", "dim", "index")[: len(args)], len(args) == 1
            made_here = Operation(target, args, (), (made,), op.scopes, op.origin, schema=schema)
            self._append(replace(made_here, view=view_only))
        return out


# What is there before anything is written is nobody's value: zeros, so that every run is the same.
_FILLED = {"empty": "zeros", "empty_like": "zeros_like", "new_empty": "new_zeros"}


def _in_full(op: Operation) -> Operation:
    """Without values that nobody wrote, and with the argument that makes the overload."""
    name, _, overload = op.target.partition(".")
    if name in {"empty_strided", "new_empty_strided"}:
        sizes = slice(0, 1 if name == "empty_strided" else 2)
        op = replace(op, args=op.args[sizes], schema=op.schema[sizes])
        return replace(op, target=f"{name.replace('empty_strided', 'zeros')}.default")
    if name in _FILLED and overload in {"default", "memory_format"}:
        kwargs = tuple((k, v) for k, v in op.kwargs if k != "memory_format" or name == "empty_like")
        return replace(op, target=f"{_FILLED[name]}.default", kwargs=kwargs)
    if overload == "padding" and op.arg("padding") is None:
        return replace(op, kwargs=(*op.kwargs, ("padding", "valid")))
    return op


def _map_refs(structure: Any, now: Callable[[str], str]) -> Any:
    if isinstance(structure, Ref):
        return Ref(now(structure.name))
    if isinstance(structure, dict):
        return type(structure)((k, _map_refs(v, now)) for k, v in structure.items())
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(_map_refs(v, now) for v in structure))
    if isinstance(structure, (list, tuple)):
        return type(structure)(_map_refs(v, now) for v in structure)
    return structure


def _without_dead_views(graph: Graph) -> Graph:
    """Views, unread copies of state, unread constants and what makes no element are gone.

    Compute stays, read or not, but for checks: `assert (x > 0).all()` takes the number in a tensor.
    """
    used = set(graph.output_names())
    checked: set[str] = set()
    kept: list[Operation] = []
    constant = constants(graph)
    for op in reversed(graph.operations):
        scattered = op.name.endswith("_scatter") or (op.name == "reshape" and op.view)
        unread = not any(name in used for name in op.outputs)
        made = [name for name in op.outputs if name]
        nothing = all(graph.values[name].numel == 0 for name in made)
        number = bool(graph.specialisations) and all(graph.values[n].numel == 1 for n in made)
        if unread and (number or checked.issuperset(made)) and kind(op) != "random":
            checked.update(op.refs())
            continue
        if unread and (op.view or scattered or nothing or constant.issuperset(made)):
            continue
        kept.append(op)
        used.update(op.refs())
    return replace(graph, operations=tuple(reversed(kept)))
