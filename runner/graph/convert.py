"""This file knows about writing an fx graph down as ours: operators, values, weights."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode
from torch.utils._pytree import tree_flatten, tree_map

from runner.errors import ProblemError
from runner.graph.ir import (
    Arg,
    Capture,
    Graph,
    Input,
    Mode,
    Operation,
    Recipe,
    Ref,
    Scope,
    State,
    TensorSpec,
)
from runner.graph.origin import origin
from runner.graph.provenance import (
    literal_of,
    plain_kwargs,
    schema_names,
    spec_of,
    tensor_literal,
)
from runner.graph.trace import Built, Traced
from runner.problems import Problem

# What they return is the argument itself, or a copy, as its layout and dtype have it.
_SAME_OR_COPY = {"to", "contiguous", "type_as"}
_VIEW_OR_COPY = {"reshape", "flatten", "ravel", "reshape_as"}
# A tensor's number goes to Python; what Python did with it is part of the program that was traced.
_READS = {torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default}
_INLINED = ("wrap_with_set_grad_enabled", "wrap_with_autocast")


def convert(problem: Problem, built: Built, traced: Traced, rung: Capture, mode: Mode) -> Graph:
    inputs: list[Input] = []
    states: dict[str, State] = {}
    values: dict[str, TensorSpec] = {}
    known: dict[FxNode, Arg] = {}
    own = {
        **dict(built.model.named_parameters(remove_duplicate=False)),
        **dict(built.model.named_buffers(remove_duplicate=False)),
    }
    nodes = [n for n in traced.graph.nodes if n.op == "placeholder"]
    for node, (kind, path, value) in zip(nodes, traced.placeholders, strict=True):
        if kind == "value":
            known[node] = _plain(value)
            continue
        known[node] = Ref(node.name)
        tensor = value if kind in {"input", "constant"} else own[path]
        values[node.name] = spec_of(tensor)
        if kind == "input":
            inputs.append(Input(node.name, path, built.made_inputs.recipe(tensor)))
        elif kind == "constant":
            states[node.name] = _constant(built, path, tensor)
        else:
            states[node.name] = State(
                path, "parameter" if kind == "parameter" else "buffer", _recipe(built, tensor)
            )
    writer = _Writer(str(problem.path), built.model, traced.module, known, states, values, built)
    output = writer.write(traced.graph)
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
        state_names=tuple(own),
        plain_call=not built.kwargs and all(isinstance(a, torch.Tensor) for a in built.args),
        specialisations=tuple(writer.specialisations),
        notes=tuple(traced.notes),
    )


def _refs(structure: Any) -> Iterator[Ref]:
    leaves, _ = tree_flatten(structure, is_leaf=lambda leaf: isinstance(leaf, Ref))
    return (leaf for leaf in leaves if isinstance(leaf, Ref))


def _plain(value: Any) -> Arg:
    try:
        return literal_of(value)
    except TypeError:
        return str(value)


def _recipe(built: Built, tensor: torch.Tensor) -> Recipe | None:
    return built.made_model.recipe(tensor)


def _constant(built: Built, path: str, tensor: torch.Tensor) -> State:
    recipe, literal = _recipe(built, tensor), tensor_literal(tensor)
    if recipe is None and literal is None and not _has(built.model, path):
        raise TypeError(f"a tensor of {tensor.numel()} numbers that torch did not compute")
    return State(path, "constant", recipe, literal)


def _has(model: torch.nn.Module, path: str) -> bool:
    """Whether a tensor is an attribute of the model."""
    owner, _, name = path.rpartition(".")
    try:
        return isinstance(getattr(model.get_submodule(owner), name, None), torch.Tensor)
    except AttributeError:
        return False


class _Writer:
    """Turns fx nodes into operations, one after the other."""

    def __init__(
        self,
        file: str,
        model: torch.nn.Module,
        module: Any,
        known: dict[FxNode, Arg],
        states: dict[str, State],
        values: dict[str, TensorSpec],
        built: Built,
    ) -> None:
        self.file, self.model, self.module, self.known = file, model, module, known
        self.states, self.values, self.built = states, values, built
        self.operations: list[Operation] = []
        self.specialisations: list[str] = []

    def write(self, graph: FxGraph, module: Any = None, prefix: str = "") -> Any:
        """All nodes of a graph; returns what its output node returns, in our notation."""
        module = self.module if module is None else module
        for node in graph.nodes:
            if node.op == "call_function":
                self._call(node, module, prefix)
            elif node.op == "get_attr":
                self._attribute(node, module, prefix)
            elif node.op == "output":
                return self._arg(node.args[0])
        raise TypeError("a graph without an output")

    def _attribute(self, node: FxNode, module: Any, prefix: str) -> None:
        value = functools.reduce(getattr, str(node.target).split("."), module)
        if isinstance(value, torch.Tensor):
            name = prefix + node.name
            self.known[node] = Ref(name)
            self.values[name] = spec_of(value)
            self.states[name] = _constant(self.built, str(node.target), value)

    def _call(self, node: FxNode, module: Any, prefix: str) -> None:
        target = node.target
        if getattr(target, "__name__", "") == "getitem":
            source = self._arg(node.args[0])
            if not isinstance(source, tuple) or not isinstance(node.args[1], int):
                raise TypeError(f"an index into {node.args[0]}")
            self.known[node] = source[node.args[1]]
        elif isinstance(target, torch._ops.HigherOrderOperator) and str(target) in _INLINED:
            self._inline(node, module, prefix)
        elif target in _READS:
            source = self._arg(node.args[0])
            self.specialisations.append(f"{getattr(source, 'name', source)} was read as a number")
            self.known[node] = None
        elif isinstance(target, torch._ops.OpOverload):
            self._operator(node, target, prefix)
        elif getattr(target, "__name__", "") == "_set_grad_enabled":
            self.known[node] = None
        else:
            raise TypeError(f"a call of {target}")

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

    def _operator(self, node: FxNode, target: torch._ops.OpOverload, prefix: str) -> None:
        value = node.meta.get("val", node.meta.get("tensor_meta"))
        results = value if isinstance(value, (list, tuple)) else [value]
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
                    self.specialisations.append(f"{node.name} was read as {result}")
                continue
            name = prefix + (node.name if len(results) == 1 else named.get(i, f"{node.name}_{i}"))
            while name in self.values:
                name += "_"
            self.values[name] = spec_of(result)
            outputs.append(name)
            refs.append(Ref(name))
        listed = isinstance(value, (list, tuple))
        self.known[node] = tuple(refs) if listed else refs[0]
        self.operations.append(
            Operation(
                target=str(target).partition("aten.")[2] or str(target),
                args=tuple(self._arg(a) for a in node.args),
                kwargs=tuple((k, self._arg(v)) for k, v in plain_kwargs(dict(node.kwargs))),
                outputs=tuple(outputs),
                scopes=_scopes(node),
                origin=origin(node.meta.get("stack_trace") or "", self.file),
                view=_is_view(target, node, results),
                schema=schema_names(target),
                listed=listed,
            )
        )

    def _arg(self, value: Any) -> Arg:
        if isinstance(value, FxNode):
            return self.known[value]
        if isinstance(value, (list, tuple)):
            return tuple(self._arg(item) for item in value)
        return literal_of(value)


def _is_view(target: torch._ops.OpOverload, node: FxNode, results: Any) -> bool:
    """True where no data moves: the output is the first argument's storage, read another way."""
    if target._schema.is_mutable:
        return False
    name = target.overloadpacket.__name__
    if target.is_view and name not in _SAME_OR_COPY | _VIEW_OR_COPY:
        return True
    source = node.args[0] if node.args else None
    before = source.meta.get("val") if isinstance(source, FxNode) else None
    after = results[0] if len(results) else None
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return False
    if name in _SAME_OR_COPY:
        copied = dict(zip(schema_names(target), node.args, strict=False)) | node.kwargs
        same = before.dtype == after.dtype and before.stride() == after.stride()
        return same and copied.get("copy") is not True
    if name in _VIEW_OR_COPY:
        return _viewable(before, after)
    return bool(before.untyped_storage()._cdata == after.untyped_storage()._cdata)


def _viewable(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether a tensor's strides allow to read it in another shape."""
    try:
        torch.empty_strided(before.shape, before.stride(), device="meta").view(after.shape)
    except RuntimeError:
        return False
    return True


def _scopes(node: FxNode) -> tuple[Scope, ...]:
    found = []
    for key, (path, cls) in (node.meta.get("nn_module_stack") or {}).items():
        if not path:
            continue
        name = cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"
        call = int(key.rpartition("@")[2]) if "@" in key else 0
        found.append(Scope(path, name.rpartition(".")[2], call, name.startswith("torch.nn.")))
    return tuple(found)
