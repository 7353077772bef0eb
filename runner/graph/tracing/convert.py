"""Converts an fx graph to kdrun's graph: operators, values and weights."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode

from runner.errors import ProblemError
from runner.graph.ir import (
    Arg,
    Capture,
    Graph,
    Input,
    Mode,
    Number,
    Operation,
    Ref,
    Scope,
    State,
    Symbol,
    TensorSpec,
    references,
)
from runner.graph.operations import COPY, SIZED_BY_VALUES
from runner.graph.placement import is_copy_on_device, is_on_cpu, made_on_cpu, placed, viewable
from runner.graph.tracing.concrete_trace import counted_when_drawn, deciding
from runner.graph.tracing.constant_tensors import (
    constant,
    count_masks,
    is_written_out,
    name_literals,
    ones_of,
)
from runner.graph.tracing.export_trace import Built, Traced
from runner.graph.tracing.method_calls import with_methods
from runner.graph.tracing.provenance import (
    literal_of,
    plain_kwargs,
    schema_names,
    spec_of,
    tensor_literal,
    with_dtype,
)
from runner.graph.tracing.refusal import DENSE, Refused
from runner.graph.tracing.source_statement import origin
from runner.problems import Problem
from runner.torch_internals import (
    HigherOrderOperator,
    OpOverload,
    overload_of,
    schema,
    storage_of,
    tree_flatten,
    tree_map,
)

_CUDNN = {"cudnn_enabled", "cudnn_enable"}
"""Arguments that say whether a machine has cuDNN."""
# Operators that return their argument or a copy, depending on its layout and dtype.
_SAME_OR_COPY = {"to", "contiguous", "type_as"}
_VIEW_OR_COPY = {"reshape", "flatten", "ravel", "reshape_as"}
# Operators that give a tensor's number to Python, whose use of it is fixed in the traced program.
_READS = {torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default}
# bool(x) first computes `x != 0`, then reads the number.
_ASKS = {torch.ops.aten.ne.Scalar}
_SLICED = re.compile(r"\.slice\([^)]*\)")
"""Matches a slice in a path; torch.export writes one for `self.layers[1:]`."""
_NEW_DATA = "_has_compatible_shallow_copy_type"
"""Name of the check that `x.data = y` makes; a tracer sees only this. Afterwards `x` is `y`."""
# Functions that change a mode and compute nothing.
_SWITCHES = {"_set_grad_enabled", "lazy_load_decompositions"}
_INLINED = {"wrap_with_set_grad_enabled", "wrap_with_autocast"}
_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)


def convert(problem: Problem, built: Built, traced: Traced, rung: Capture, mode: Mode) -> Graph:
    """Return the graph of a traced problem."""
    inputs: list[Input] = []
    states: dict[str, State] = {}
    values: dict[str, TensorSpec] = {}
    known: dict[FxNode, Arg] = {}
    held = {
        **dict(built.model.named_parameters(remove_duplicate=False)),
        **dict(built.model.named_buffers(remove_duplicate=False)),
    }
    given: dict[str, torch.Tensor] = {}
    weights: dict[object, str] = {}
    """Parameters and buffers by their memory, since forward may reach them by another path."""
    own = {path: tensor for path, tensor in held.items() if tensor.layout is torch.strided}
    nodes = [n for n in traced.graph.nodes if n.op == "placeholder"]
    for node, (role, path, value) in zip(nodes, traced.placeholders, strict=True):
        if role == "value":
            known[node] = _plain(value)
            continue
        known[node] = Ref(node.name)
        tensor = value if role in {"input", "constant"} else held[path]
        if tensor.layout is not torch.strided:
            if node.users:
                raise Refused(f"{path} is a sparse tensor", DENSE)
            continue
        values[node.name] = spec_of(tensor)
        if role == "input":
            inputs.append(Input(node.name, path, built.made_inputs.recipe(tensor)))
            given[node.name] = tensor
        elif role == "constant":
            if held_as := weights.get(_place(tensor)):
                known[node] = Ref(held_as)
            else:
                states[node.name] = constant(built, path, tensor, written_out=True)
        else:
            weights[_place(tensor)] = node.name
            recipe = built.made_model.recipe(tensor)
            states[node.name] = State(
                path,
                "parameter" if role == "parameter" else "buffer",
                recipe,
                tensor_literal(tensor) if role == "buffer" and recipe is None else None,
                in_checkpoint=not _is_left_out(built.model, path),
                requires_grad=tensor.requires_grad,
                ones=ones_of(tensor),
            )
    writer = _Writer(str(problem.path), built.model, traced, known, states, values, built, weights)
    output = writer.write(traced.graph)
    name_literals(states, writer.operations, writer.varying)
    count_masks(states, writer.operations, values)
    structure = tree_map(
        lambda leaf: (
            leaf if isinstance(leaf, (Ref, bool, int, float, str)) or leaf is None else str(leaf)
        ),
        traced.output(list(output) if isinstance(output, tuple) else [output]),
        is_leaf=lambda leaf: isinstance(leaf, Ref),
    )
    if not list(_refs(structure)):
        raise ProblemError(
            problem.path,
            "forward() returns no tensor",
            hint="return a tensor, or a tuple of tensors",
        )
    return Graph(
        model_name=type(built.model).__name__,
        capture=rung,
        mode=mode,
        inputs=tuple(inputs),
        states=states,
        operations=tuple(writer.operations),
        values=values,
        output=structure,
        classes={path: type(module).__name__ for path, module in built.model.named_modules()},
        containers=frozenset(
            path
            for path, module in built.model.named_modules()
            if isinstance(module, _CONTAINERS) or type(module) is torch.nn.Module
        ),
        state_names=tuple(own),
        tied=_tied(own),
        plain_call=not built.kwargs and all(isinstance(a, torch.Tensor) for a in built.args),
        specialisations=(*traced.reads, *writer.specialisations),
        seen=(
            deciding(writer.operations, values, writer.seen, given)
            if traced.reads or writer.specialisations
            else {}
        )
        | counted_when_drawn(inputs, given),
        on_cpu=frozenset(writer.on_cpu),
        placement_known=traced.placement != "unknown",
        notes=(*traced.notes, *made_on_cpu(writer.operations, writer.on_cpu)),
    )


def _is_left_out(model: torch.nn.Module, path: str) -> bool:
    """Return whether a buffer was registered with `persistent=False`."""
    owner, _, name = path.rpartition(".")
    return name in model.get_submodule(owner)._non_persistent_buffers_set


def _tied(own: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Return the further names of tensors that have several -> the first name."""
    first: dict[int, str] = {}
    names = {name: first.setdefault(id(tensor), name) for name, tensor in own.items()}
    return {name: other for name, other in names.items() if name != other}


def _refs(structure: Any) -> Iterator[Ref]:
    leaves, _ = tree_flatten(structure, is_leaf=lambda leaf: isinstance(leaf, Ref))
    return (leaf for leaf in leaves if isinstance(leaf, Ref))


def _plain(value: Any) -> Arg:
    try:
        return literal_of(value)
    except TypeError:
        return str(value)


def _place(tensor: torch.Tensor) -> object:
    """Return a key for the memory that a tensor shows; for a sparse tensor, its storage."""
    if tensor.layout is not torch.strided:
        return storage_of(tensor)
    return storage_of(tensor), tensor.storage_offset(), tensor.shape, tensor.stride()


class _Writer:
    """Converts fx nodes to operations, one after the other."""

    def __init__(
        self,
        file: str,
        model: torch.nn.Module,
        traced: Traced,
        known: dict[FxNode, Arg],
        states: dict[str, State],
        values: dict[str, TensorSpec],
        built: Built,
        weights: dict[object, str],
    ) -> None:
        self.file, self.model, self.module, self.known = file, model, traced.module, known
        self.placement, self.follows_all = traced.placement, traced.follows_all
        self.states, self.values, self.built = states, values, built
        self.weights = weights
        self.operations: list[Operation] = []
        self.specialisations: list[str] = []
        self.seen: dict[str, str] = {}
        self.generators: set[int] = set()
        self.on_cpu: set[str] = set()
        """Values that stay on the CPU when the model is on a device."""
        self.varying = {n for n in values if n not in states or states[n].kind != "constant"}
        """Values that depend on an input or a weight."""

    def write(self, graph: FxGraph, module: Any = None, prefix: str = "") -> Any:
        """Convert all nodes of a graph; return the result of its output node as an argument."""
        module = self.module if module is None else module
        for node in graph.nodes:
            if node.op == "call_function":
                try:
                    self._call(node, module, prefix)
                except Refused as error:
                    found = origin(_stack(node), self.file)
                    error.line = error.line or (found.line if found else None)
                    raise
            elif node.op == "get_attr":
                self._attribute(node, module, prefix)
            elif node.op == "output":
                return self._arg(node.args[0])
        raise TypeError("a graph without an output")

    def _attribute(self, node: FxNode, module: Any, prefix: str) -> None:
        value = functools.reduce(getattr, str(node.target).split("."), module)
        if isinstance(value, torch.Tensor):
            if held_as := self.weights.get(_place(value)):
                self.known[node] = Ref(held_as)
                return
            name = prefix + node.name
            self.known[node] = Ref(name)
            self.values[name] = spec_of(value)
            written_out = self.follows_all or is_written_out(node, value)
            path = str(node.target)
            self.states[name] = constant(self.built, path, value, written_out=written_out)

    def _call(self, node: FxNode, module: Any, prefix: str) -> None:
        target = node.target
        if getattr(target, "__name__", "") == "getitem":
            source = self._arg(node.args[0])
            if not isinstance(source, tuple) or not isinstance(node.args[1], int):
                raise Refused(f"an index into {node.args[0]}")
            self.known[node] = source[node.args[1]]
        elif isinstance(target, HigherOrderOperator) and str(target) in _INLINED:
            if str(target) == "wrap_with_autocast" and node.args[2]:
                raise Refused("forward() switches autocast on", "cast where it would, with .to()")
            self._inline(node, module, prefix)
        elif target in _READS:
            self._read(node)
        elif target in _ASKS and node.users and all(user.target in _READS for user in node.users):
            self.known[node] = self._arg(node.args[0])  # the first half of bool(x)
        elif isinstance(target, OpOverload):
            self._operator(node, target, prefix)
        elif getattr(target, "__name__", "") in _SWITCHES:
            self.known[node] = None
        else:
            raise Refused(f"forward() calls {target}")

    def _read(self, node: FxNode) -> None:
        """Convert a read of a number: an argument of operations, or a decision of Python code."""
        source = self._arg(node.args[0])
        if not isinstance(source, Ref):
            raise Refused(f"a number is read from {node.args[0]}")
        self.known[node] = Number(source.name)
        if not node.users and source.name in self.varying:
            self._specialised(node, "a value was read as a number")

    def _specialised(self, node: FxNode, what: str) -> None:
        """Note that the program would be another one for other values."""
        found = origin(_stack(node), self.file)
        where = f"line {found.line}" if found and found.line is not None else str(node.name)
        sentence = f"{where}: {what}"
        if sentence not in self.specialisations:
            self.specialisations.append(sentence)

    def _inline(self, node: FxNode, module: Any, prefix: str) -> None:
        position = next(
            i for i, a in enumerate(node.args) if isinstance(a, FxNode) and a.op == "get_attr"
        )
        inner = getattr(module, str(node.args[position].target))  # type: ignore[union-attr]
        arguments = node.args[position + 1 :]
        names = [n for n in inner.graph.nodes if n.op == "placeholder"]
        for placeholder, argument in zip(names, arguments, strict=True):
            self.known[placeholder] = self._arg(argument)
        self.known[node] = self.write(inner.graph, inner, f"{prefix}{node.name}_")

    def _operator(self, node: FxNode, target: OpOverload, prefix: str) -> None:
        given = [a.name for a in schema(target).arguments if a.is_out]
        if given:
            self._into(node, target, given, prefix)
            return
        value = node.meta.get("val", node.meta.get("tensor_meta"))
        results = value if isinstance(value, (list, tuple)) else [value]
        operation = target.overloadpacket.__name__
        if operation == _NEW_DATA:
            self.known[node.args[0]] = self._arg(node.args[1])  # type: ignore[index]
            return
        if value is None and _answers_in_python(target):
            self._specialised(node, f"what {operation} said decided what runs")
            return
        if value is None and schema(target).returns:
            if "sparse" in operation:  # A tracer records no value for a sparse tensor.
                raise Refused(f"{operation} gives a sparse tensor", DENSE)
            raise Refused(f"what {operation} gives is no plain tensor")
        listed = isinstance(value, (list, tuple))
        outputs: list[str] = []
        refs: list[Arg] = []
        named = {
            u.args[1]: u.name for u in node.users if getattr(u.target, "__name__", "") == "getitem"
        }
        for i, result in enumerate(results):
            if not isinstance(result, torch.Tensor):
                outputs.append("")
                refs.append(_plain(result) if result is not None else None)
                if isinstance(result, (int, float, bool)):
                    self._specialised(node, f"{node.name} was read as {result}")
                continue
            if result.layout != torch.strided:
                raise Refused(f"{operation} gives a sparse tensor ({result.layout})", DENSE)
            name = prefix + (node.name if len(results) == 1 else named.get(i, f"{node.name}_{i}"))
            while name in self.values:
                name += "_"
            if is_on_cpu(node, i):
                self.on_cpu.add(name)
            self.values[name] = spec_of(result)
            outputs.append(name)
            refs.append(Ref(name))
            if found := self._seen(node, i, listed):
                self.seen[name] = found
        random = torch.Tag.nondeterministic_seeded in target.tags
        if random or any(self._varies(a) for a in (*node.args, *node.kwargs.values())):
            self.varying.update(filter(None, outputs))
            if operation in SIZED_BY_VALUES or _picks(target, node):
                self._specialised(node, f"values decide how much {operation} gives")
        self.known[node] = tuple(refs) if listed else refs[0]
        op = Operation(
            target=_name(_seeded(target) if "seed" in node.meta else target),
            args=tuple(self._arg(a) for a in _on_any_machine(target, node)),
            kwargs=(
                *((k, self._arg(v)) for k, v in plain_kwargs(dict(node.kwargs))),
                *self._generator(node),
            ),
            outputs=tuple(outputs),
            scopes=_scopes(node),
            origin=None if _of_export(node) else origin(_stack(node), self.file),
            view=_is_view(target, node, results),
            schema=schema_names(target),
            listed=listed,
        )
        op = with_dtype(op, self.values[outputs[0]]) if outputs[0] else op
        self.operations.append(placed(op, node, self.values, self.placement))

    def _into(self, node: FxNode, target: OpOverload, given: list[str], prefix: str) -> None:
        """Convert `torch.cumsum(x, 0, out=y)` to the sums, and a copy of them into `y`."""
        made: list[str] = []
        places = [self._arg(node.kwargs.get(name)) for name in given]
        for place in places:
            if not isinstance(place, Ref):
                raise Refused(f"{target} writes into {place}")
            name = f"{prefix}{node.name}_{len(made)}"
            self.values[name] = self.values[place.name].dense()
            made.append(name)
        origin_, scopes = origin(_stack(node), self.file), _scopes(node)
        functional = _without_out(target)
        self.operations.append(
            Operation(
                target=_name(functional),
                args=tuple(self._arg(a) for a in node.args),
                kwargs=tuple((k, self._arg(v)) for k, v in node.kwargs.items() if k not in given),
                outputs=tuple(made),
                scopes=scopes,
                origin=origin_,
                schema=schema_names(functional),
            )
        )
        written: list[Arg] = []
        for name, place in zip(made, places, strict=True):
            assert isinstance(place, Ref)
            out = f"{name}_written"
            self.values[out] = self.values[place.name]
            self.operations.append(
                Operation(
                    "copy_.default", (place, Ref(name)), (), (out,), scopes, origin_,
                    schema=("self", "src", "non_blocking"),
                )
            )  # fmt: skip
            written.append(Ref(out))
        self.varying.update(name for name in made if any(map(self._varies, node.args)))
        self.known[node] = tuple(written) if len(written) > 1 else written[0]

    def _seen(self, node: FxNode, position: int, listed: bool) -> str | None:
        """Return the text of one of a node's results, if the tracer recorded it."""
        if not listed:
            return node.meta.get("seen")
        for user in node.users:
            if getattr(user.target, "__name__", "") == "getitem" and user.args[1] == position:
                return user.meta.get("seen")
        return None

    def _generator(self, node: FxNode) -> Iterator[tuple[str, Arg]]:
        """Yield the generator argument if the author set a seed."""
        generator: Any = node.kwargs.get("generator")
        seed = node.meta.get("seed")
        if isinstance(generator, FxNode) and generator.op == "get_attr":
            generator = functools.reduce(getattr, str(generator.target).split("."), self.module)
        if isinstance(generator, torch.Generator):
            if id(generator) in self.generators:
                raise Refused("forward() draws twice from one generator", "seed torch itself")
            self.generators.add(id(generator))
            made = f"torch.Generator().manual_seed({generator.initial_seed()})"
            yield "generator", Symbol(made)
        elif seed is not None:
            yield "generator", Symbol(f"torch.manual_seed({seed})")

    def _varies(self, value: Any) -> bool:
        return any(name in self.varying for name in references(self._arg(value)))

    def _arg(self, value: Any) -> Arg:
        if isinstance(value, FxNode):
            return self.known[value]
        if isinstance(value, (list, tuple)):
            return tuple(self._arg(item) for item in value)
        return literal_of(value)


def _answers_in_python(target: OpOverload) -> bool:
    """Return whether an operator returns a Python number or bool, as torch.equal does."""
    kinds = {str(returned.type) for returned in schema(target).returns}
    return bool(kinds) and kinds <= {"bool", "int", "float", "number"}


def _without_out(target: OpOverload) -> OpOverload:
    """Return the overload that returns what this one writes into `out`."""

    def taken(overload: OpOverload) -> list[tuple[str, str]]:
        return [(a.name, str(a.type)) for a in schema(overload).arguments if not a.is_out]

    for name in target.overloadpacket.overloads():
        found: OpOverload = getattr(target.overloadpacket, name)
        if found is not target and taken(found) == taken(target):
            return found
    raise Refused(f"{target} writes into a tensor", "leave out= away, and assign what is returned")


def _seeded(target: OpOverload) -> OpOverload:
    """Return the overload that takes a generator."""
    overload = "low_generator" if overload_of(target) == "low" else "generator"
    if overload not in target.overloadpacket.overloads():
        raise Refused(f"{target} follows torch.manual_seed()", "seed outside of forward()")
    found: OpOverload = getattr(target.overloadpacket, overload)
    return found


def _on_any_machine(target: OpOverload, node: FxNode) -> tuple[Any, ...]:
    """Return an operator's arguments as a machine without cuDNN would give them.

    torch omits arguments that have their default, and cuDNN is on by default: without this, the
    machine would decide whether `eps` is written out.
    """
    declared = schema(target).arguments
    place = next((i for i, a in enumerate(declared) if a.name in _CUDNN), None)
    if place is None or any(a.name in node.kwargs for a in declared[: place + 1]):
        return tuple(node.args)
    defaults = (a.default_value for a in declared[len(node.args) : place])
    return (*node.args[:place], *defaults, False, *node.args[place + 1 :])


def _name(target: OpOverload) -> str:
    return str(target).partition("aten.")[2] or str(target)


def _stack(node: FxNode) -> str:
    return str(node.meta.get("stack_trace") or "")


def _of_export(node: FxNode) -> bool:
    """Return whether a node is torch.export's final assignment to a buffer."""
    return str(node.name).startswith("copy__default")


def _picks(target: OpOverload, node: FxNode) -> bool:
    """Return whether an operation selects by a mask, whose values decide how many rows."""
    if target is torch.ops.aten.where.default:
        return True
    if target not in {torch.ops.aten.index.Tensor, torch.ops.aten._unsafe_index.Tensor}:
        return False
    places = [p.meta.get("val") for p in node.args[1] if isinstance(p, FxNode)]  # type: ignore[union-attr]
    return any(isinstance(p, torch.Tensor) and p.dtype in {torch.bool, torch.uint8} for p in places)


def _is_view(target: OpOverload, node: FxNode, results: Any) -> bool:
    """Return whether the output is the first argument's storage, read another way."""
    if schema(target).is_mutable:
        return False
    name = target.overloadpacket.__name__
    if target.is_view and name not in _SAME_OR_COPY | _VIEW_OR_COPY:
        return True
    if name == "meshgrid":  # Each output is one of the inputs, expanded.
        return True
    source = node.args[0] if node.args else None
    before = source.meta.get("val") if isinstance(source, FxNode) else None
    after = results[0] if len(results) else None
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return False
    if name in _SAME_OR_COPY:
        copied = dict(zip(schema_names(target), node.args, strict=False)) | node.kwargs
        same = before.dtype == after.dtype and before.stride() == after.stride()
        return same and copied.get("copy") is not True and not is_copy_on_device(name, source)
    if name in _VIEW_OR_COPY:
        return viewable(before, after) and not is_copy_on_device(name, source, after)
    if name in COPY:  # On fake tensors a copy may look like a view.
        return False
    return storage_of(before) == storage_of(after)


def _scopes(node: FxNode) -> tuple[Scope, ...]:
    found = []
    for key, (path, cls) in (node.meta.get("nn_module_stack") or {}).items():
        if not path:
            continue
        name = cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"
        call = int(key.rpartition("@")[2]) if "@" in key else 0
        path = _SLICED.sub("", path)
        found.append(Scope(path, name.rpartition(".")[2], call, name.startswith("torch.nn.")))
    return with_methods(tuple(found), _stack(node))
