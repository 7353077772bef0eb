"""This file knows about torch.export: it runs a forward symbolically and writes down our graph.

Three rungs, and the graph says which one held: fake tensors throughout (no memory, no compute);
real parameters and inputs, traced by torch.export; a concrete trace with real inputs.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import linecache
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from runner.errors import CaptureError, ProblemError
from runner.graph.ir import (
    Arg,
    Capture,
    Graph,
    Input,
    Mode,
    Operation,
    Origin,
    Recipe,
    Ref,
    Scope,
    State,
    TensorSpec,
)
from runner.graph.provenance import (
    Recorder,
    literal_of,
    plain_kwargs,
    schema_names,
    spec_of,
    tensor_literal,
)
from runner.graph.recurrent import unrolled_never
from runner.problems import LoadedProblem, Problem, load_problem, seed

_TORCH = str(Path(torch.__file__).parent)
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in ')
# What they return is the argument itself, or a copy, as its layout and dtype have it.
_SAME_OR_COPY = {"to", "contiguous", "type_as"}
_VIEW_OR_COPY = {"reshape", "flatten", "ravel", "reshape_as"}
# A tensor's number goes to Python; what Python did with it is part of the program that was traced.
_READS = {torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default}
_INLINED = ("wrap_with_set_grad_enabled", "wrap_with_autocast")


def capture(problem: Problem, mode: Mode = "eval") -> Graph:
    """The problem's program at its exact shapes.

    Raises:
        ProblemError: the author's code fails.
        CaptureError: the model runs, but no rung could write its program down.
    """
    torch.backends.mha.set_fastpath_enabled(
        False
    )  # one opaque operator instead of the attention that was written
    reasons: list[str] = []
    rungs: tuple[tuple[Capture, Callable[[], Any], Callable[[_Built], _Traced]], ...] = (
        ("fake", lambda: FakeTensorMode(allow_non_fake_inputs=True), _export),
        ("real_parameters", contextlib.nullcontext, _export),
        ("concrete", contextlib.nullcontext, _trace),
    )
    for rung, tensors, trace in rungs:
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                built = _build(problem, mode, tensors())
                with _quietly():
                    traced = trace(built)
                return _convert(problem, built, traced, rung, mode)
        except MemoryError:
            raise
        except ProblemError as error:
            if rung != "fake":
                raise
            reasons.append(f"{rung}: {error}")
        except Exception as error:  # the boundary between torch's tracing and the next rung
            said = str(error).splitlines()[0] if str(error) else ""
            reasons.append(f"{rung}: {type(error).__name__}: {said}")
            if rung != "fake":
                _raise_authors_own_error(problem, built)
    raise CaptureError(problem.path, "cannot be captured: " + " | ".join(reasons))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """torch tells at length about each attempt that fails; of that, the reasons are kept."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


@dataclass
class _Built:
    loaded: LoadedProblem
    model: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    made_model: Recorder
    made_inputs: Recorder


@dataclass
class _Traced:
    """An fx graph, what each of its placeholders is, and the structure of what it returns."""

    graph: FxGraph
    module: Any
    placeholders: list[tuple[str, str, Any]]
    """(parameter, buffer, constant, input or value; path or argument; tensor or value)."""
    output: Callable[[list[Any]], Any]
    notes: list[str]


def _build(problem: Problem, mode: Mode, tensors: Any) -> _Built:
    made_model, made_inputs = Recorder(), Recorder()
    with tensors:
        seed(0)
        loaded = load_problem(problem)
        with made_model:
            model = loaded.build()
        with made_inputs:
            args, kwargs = loaded.get_inputs()
    model.train(mode == "train")
    return _Built(loaded, model, args, kwargs, made_model, made_inputs)


def _raise_authors_own_error(problem: Problem, built: _Built) -> None:
    """Run the model plainly: an error that it raises by itself is the author's, not ours."""
    from runner.problems import author_error

    try:
        built.model(*built.args, **built.kwargs)
    except MemoryError:
        raise
    except Exception as error:
        raise ProblemError(problem.path, author_error(problem, error)) from error


def _export(built: _Built) -> _Traced:
    with unrolled_never():
        program = torch.export.export(built.model, built.args, built.kwargs, strict=False)
    flat_inputs, _ = tree_flatten((built.args, built.kwargs))
    user = iter(flat_inputs)
    nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
    placeholders: list[tuple[str, str, Any]] = []
    for node, spec in zip(nodes, program.graph_signature.input_specs, strict=True):
        kind = spec.kind.name
        if kind == "USER_INPUT":
            value = next(user)
            placeholders.append(
                ("input" if isinstance(value, torch.Tensor) else "value", node.name, value)
            )
        elif kind == "CONSTANT_TENSOR":
            placeholders.append(("constant", str(spec.target), program.constants[str(spec.target)]))
        elif kind in {"PARAMETER", "BUFFER"}:
            placeholders.append((kind.lower(), str(spec.target), None))
        else:
            raise TypeError(f"an input of kind {kind}")
    specs = program.graph_signature.output_specs
    mutations = sum(spec.kind.name != "USER_OUTPUT" for spec in specs)
    out_spec = program.call_spec.out_spec

    def structure(outputs: list[Any]) -> Any:
        return tree_unflatten(outputs[mutations:], out_spec)

    return _Traced(program.graph, program.graph_module, placeholders, structure, [])


def _trace(built: _Built) -> _Traced:
    """Run the model once on real tensors and write down what ran.

    Values that steered Python are fixed as they were.
    """
    from torch.func import functional_call
    from torch.fx.experimental.proxy_tensor import make_fx

    states = {
        **dict(built.model.named_parameters(remove_duplicate=False)),
        **dict(built.model.named_buffers(remove_duplicate=False)),
    }
    flat, spec = tree_flatten((built.args, built.kwargs))
    positions = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
    shape_of_result: list[Any] = []

    def run(state_values: list[torch.Tensor], tensors: list[torch.Tensor]) -> list[Any]:
        leaves = list(flat)
        for position, tensor in zip(positions, tensors, strict=True):
            leaves[position] = tensor
        args, kwargs = tree_unflatten(leaves, spec)
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

    module = make_fx(
        run, tracing_mode="real", pre_dispatch=True, _error_on_data_dependent_ops=False
    )([s.detach() for s in states.values()], [flat[i] for i in positions])
    names = _argument_names(built)
    placeholders: list[tuple[str, str, Any]] = []
    parameters = dict(built.model.named_parameters(remove_duplicate=False))
    for name in states:
        placeholders.append(("parameter" if name in parameters else "buffer", name, None))
    for position in positions:
        placeholders.append(("input", names[position], flat[position]))
    note = "captured by a concrete trace: values that steer Python are those of the traced inputs"
    return _Traced(
        module.graph,
        module,
        placeholders,
        lambda outs: tree_unflatten(outs, shape_of_result[0]),
        [note],
    )


def _argument_names(built: _Built) -> list[str]:
    """A name for each leaf of the inputs: forward's parameter, numbered where one holds several."""
    import inspect

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


# --- from fx to our graph -------------------------------------------------------------------------


def _convert(problem: Problem, built: _Built, traced: _Traced, rung: Capture, mode: Mode) -> Graph:
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


def _recipe(built: _Built, tensor: torch.Tensor) -> Recipe | None:
    return built.made_model.recipe(tensor)


def _constant(built: _Built, path: str, tensor: torch.Tensor) -> State:
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
        built: _Built,
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
                origin=_origin(node.meta.get("stack_trace") or "", self.file),
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


def _origin(trace: str, problem_file: str) -> Origin | None:
    frames = [(m["file"], int(m["line"])) for m in _FRAME.finditer(trace)]
    frames = [f for f in frames if not f[0].startswith(_TORCH)]
    if not frames:
        return None
    own = [line for file, line in frames if file == problem_file]
    file, line = frames[-1]
    statement, targets = _statement(file, line)
    return Origin(file, statement, targets, own[-1] if own else None)


def _statement(file: str, line: int) -> tuple[int, tuple[str, ...]]:
    """First line of the innermost simple statement at a line, and the names that it assigns to."""
    best: tuple[int, tuple[str, ...]] = (line, ())
    size = 1 << 30
    for first, last, targets in _statements(file):
        if first <= line <= last and last - first < size:
            best, size = (first, targets), last - first
    return best


@functools.cache
def _statements(file: str) -> list[tuple[int, int, tuple[str, ...]]]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
            targets = (
                node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            )
            names = tuple(_names(targets[-1])) if len(targets) == 1 else ()
            found.append((node.lineno, node.end_lineno or node.lineno, names))
    return found


def _names(target: ast.AST | None) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _names(item)
