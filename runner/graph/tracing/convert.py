"""Converts an fx graph to kdrun's graph: operators, values and weights."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
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
from runner.graph.operations import COPY, SIZED_BY_VALUES, SIZED_OVERLOADS
from runner.graph.placement import (
    can_view,
    describe_cpu_tensors,
    is_copy_on_device,
    is_on_cpu,
    with_device,
)
from runner.graph.tracing.constant_tensors import (
    PlainTensors,
    buffer_state,
    constant_state,
    is_written_out,
    list_plain_tensors,
    name_literals,
    set_mask_counts,
)
from runner.graph.tracing.deciding_values import (
    describe_random_sized_inputs,
    select_deciding_values,
)
from runner.graph.tracing.export_trace import BuiltProblem, TracedProgram
from runner.graph.tracing.method_calls import add_method_scopes
from runner.graph.tracing.provenance import (
    literal_of,
    memory_key,
    plain_kwargs,
    schema_names,
    spec_of,
    with_dtype,
)
from runner.graph.tracing.refusal import DENSE, CaptureRefusal
from runner.graph.tracing.source_statement import find_origin
from runner.problems import Problem, find_operator_module, path_within_package
from runner.torch_internals import (
    HigherOrderOperator,
    OpOverload,
    overload_of,
    plain_tensors_in,
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
_NUMBER_READS = {torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default}
# bool(x) first computes `x != 0`, then reads the number.
_TRUTH_TESTS = {torch.ops.aten.ne.Scalar}
_PATH_SLICE = re.compile(r"\.slice\([^)]*\)")
"""Matches a slice in a path; torch.export writes one for `self.layers[1:]`."""
_DATA_ASSIGNMENT = "_has_compatible_shallow_copy_type"
"""Name of the check that `x.data = y` makes; a tracer sees only this. Afterwards `x` is `y`."""
# Functions that change a mode and compute nothing.
_SWITCHES = {"_set_grad_enabled", "lazy_load_decompositions"}
_INLINED_SUBGRAPHS = {"wrap_with_set_grad_enabled", "wrap_with_autocast"}
_SUBCLASS_READS = {torch.ops.export.access_subclass_inner_tensor.default}
"""Operators by which a program reads the plain tensors in a weight of a tensor subclass."""
_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)


@dataclass(frozen=True, slots=True)
class TensorSubclass:
    """A weight of a tensor subclass, such as a quantised one: the program reads what is in it."""

    path: str


def convert(
    problem: Problem, built: BuiltProblem, traced: TracedProgram, strategy: Capture, mode: Mode
) -> Graph:
    """Return the graph of a traced problem."""
    inputs: list[Input] = []
    states: dict[str, State] = {}
    values: dict[str, TensorSpec] = {}
    node_values: dict[FxNode, Any] = {}
    weight_tensors = {
        **dict(built.model.named_parameters(remove_duplicate=False)),
        **dict(built.model.named_buffers(remove_duplicate=False)),
    }
    state_tensors = {
        name: plain
        for path, tensor in weight_tensors.items()
        for name, plain in plain_tensors_in(path, tensor)
    }
    input_tensors: dict[str, torch.Tensor] = {}
    weights: dict[object, str] = {}
    """Parameters and buffers by their memory, since forward may reach them by another path."""
    plain_tensors = list_plain_tensors(built.model)
    strided_states = {
        path: tensor for path, tensor in state_tensors.items() if tensor.layout is torch.strided
    }
    nodes = [n for n in traced.graph.nodes if n.op == "placeholder"]
    for node, (role, path, value) in zip(nodes, traced.placeholders, strict=True):
        if role == "value":
            node_values[node] = _literal_or_text(value)
            continue
        if role in {"parameter", "buffer"} and path not in state_tensors:
            node_values[node] = TensorSubclass(path)
            continue
        node_values[node] = Ref(node.name)
        tensor = value if role in {"input", "constant"} else state_tensors[path]
        if tensor.layout is not torch.strided:
            if node.users:
                raise CaptureRefusal(f"{path} is a sparse tensor", DENSE)
            continue
        values[node.name] = spec_of(tensor)
        if role == "input":
            inputs.append(Input(node.name, path, built.inputs_recorder.recipe(tensor)))
            input_tensors[node.name] = built.real_inputs.get(id(tensor), tensor)
        elif role == "constant":
            if state_name := weights.get(memory_key(tensor)):
                node_values[node] = Ref(state_name)
            else:
                states[node.name] = constant_state(
                    built, path, tensor, plain_tensors, written_out=True
                )
        else:
            weights[memory_key(tensor)] = node.name
            in_checkpoint = path not in weight_tensors or not _is_left_out(built.model, path)
            states[node.name] = (
                State(
                    path,
                    "parameter",
                    built.model_recorder.recipe(tensor),
                    in_checkpoint=in_checkpoint,
                    requires_grad=tensor.requires_grad,
                )
                if role == "parameter"
                else replace(buffer_state(built, path, tensor), in_checkpoint=in_checkpoint)
            )
    writer = _GraphWriter(
        str(problem.path),
        traced,
        node_values,
        states,
        values,
        built,
        weights,
        plain_tensors,
        state_tensors,
    )
    output = writer.write(traced.graph)
    name_literals(states, writer.operations, writer.varying)
    set_mask_counts(states, writer.operations, values)
    structure = tree_map(
        lambda leaf: (
            leaf if isinstance(leaf, (Ref, bool, int, float, str)) or leaf is None else str(leaf)
        ),
        traced.output(list(output) if isinstance(output, tuple) else [output]),
        is_leaf=lambda leaf: isinstance(leaf, Ref),
    )
    if not list(_find_refs(structure)):
        raise ProblemError(
            problem.path,
            "forward() returns no tensor",
            hint="return a tensor, or a tuple of tensors",
        )
    return Graph(
        model_name=type(built.model).__name__,
        capture=strategy,
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
        state_names=tuple(strided_states),
        tied=_map_tied_names(strided_states),
        plain_call=not built.kwargs and all(isinstance(a, torch.Tensor) for a in built.args),
        specialisations=(*traced.reads, *writer.specialisations),
        observed_values=(
            select_deciding_values(writer.operations, values, writer.observed_values, input_tensors)
            if traced.reads or writer.specialisations
            else {}
        )
        | describe_random_sized_inputs(inputs, input_tensors),
        on_cpu=frozenset(writer.on_cpu),
        placement_known=traced.placement != "unknown",
        notes=(*traced.notes, *describe_cpu_tensors(writer.operations, writer.on_cpu)),
    )


def _is_left_out(model: torch.nn.Module, path: str) -> bool:
    """Return whether a buffer was registered with `persistent=False`."""
    owner, _, name = path.rpartition(".")
    return name in model.get_submodule(owner)._non_persistent_buffers_set


def _map_tied_names(tensors: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Return, for each further name of a shared tensor, its first name."""
    first_names: dict[int, str] = {}
    names = {name: first_names.setdefault(id(tensor), name) for name, tensor in tensors.items()}
    return {name: first_name for name, first_name in names.items() if name != first_name}


def _find_refs(structure: Any) -> Iterator[Ref]:
    leaves, _ = tree_flatten(structure, is_leaf=lambda leaf: isinstance(leaf, Ref))
    return (leaf for leaf in leaves if isinstance(leaf, Ref))


def _literal_or_text(value: Any) -> Arg:
    try:
        return literal_of(value)
    except TypeError:
        return str(value)


class _GraphWriter:
    """Converts fx nodes to operations, one after the other."""

    def __init__(
        self,
        file: str,
        traced: TracedProgram,
        node_values: dict[FxNode, Any],
        states: dict[str, State],
        values: dict[str, TensorSpec],
        built: BuiltProblem,
        weights: dict[object, str],
        plain_tensors: PlainTensors,
        state_tensors: Mapping[str, torch.Tensor],
    ) -> None:
        self.file, self.module, self.node_values = file, traced.module, node_values
        self.placement, self.follows_all = traced.placement, traced.follows_all
        self.states, self.values, self.built, self.model = states, values, built, built.model
        self.weights, self.state_tensors = weights, state_tensors
        self.plain_tensors = plain_tensors
        self.operations: list[Operation] = []
        self.specialisations: list[str] = []
        self.observed_values: dict[str, str] = {}
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
                    self._convert_call(node, module, prefix)
                except CaptureRefusal as error:
                    place = find_origin(_stack_trace(node), self.file)
                    error.line = error.line or (place.line if place else None)
                    raise
            elif node.op == "get_attr":
                self._convert_attribute(node, module, prefix)
            elif node.op == "output":
                return self._convert_argument(node.args[0])
        raise TypeError("a graph without an output")

    def _convert_attribute(self, node: FxNode, module: Any, prefix: str) -> None:
        value = functools.reduce(getattr, str(node.target).split("."), module)
        if isinstance(value, torch.Tensor):
            if state_name := self.weights.get(memory_key(value)):
                self.node_values[node] = Ref(state_name)
                return
            name = prefix + node.name
            self.node_values[node] = Ref(name)
            self.values[name] = spec_of(value)
            written_out = self.follows_all or is_written_out(node, value)
            path = str(node.target)
            self.states[name] = constant_state(
                self.built, path, value, self.plain_tensors, written_out=written_out
            )

    def _convert_call(self, node: FxNode, module: Any, prefix: str) -> None:
        target = node.target
        if getattr(target, "__name__", "") == "getitem":
            source = self._convert_argument(node.args[0])
            if not isinstance(source, tuple) or not isinstance(node.args[1], int):
                raise CaptureRefusal(f"an index into {node.args[0]}")
            self.node_values[node] = source[node.args[1]]
        elif isinstance(target, HigherOrderOperator) and str(target) in _INLINED_SUBGRAPHS:
            if str(target) == "wrap_with_autocast" and node.args[2]:
                raise CaptureRefusal(
                    "forward() switches autocast on", "cast where it would, with .to()"
                )
            self._inline_subgraph(node, module, prefix)
        elif target in _SUBCLASS_READS:
            self._convert_subclass_read(node)
        elif target in _NUMBER_READS:
            self._convert_number_read(node)
        elif (
            target in _TRUTH_TESTS
            and node.users
            and all(user.target in _NUMBER_READS for user in node.users)
        ):
            # This is the first half of bool(x); the second reads the number.
            self.node_values[node] = self._convert_argument(node.args[0])
        elif isinstance(target, OpOverload):
            self._convert_operator(node, target, prefix)
        elif getattr(target, "__name__", "") in _SWITCHES:
            self.node_values[node] = None
        elif getattr(target, "__module__", "") == "_operator":
            raise CaptureRefusal("forward() computes with a number that values of tensors decide")
        else:
            raise CaptureRefusal(f"forward() calls {getattr(target, '__name__', target)}")

    def _convert_subclass_read(self, node: FxNode) -> None:
        """Convert a read of a plain tensor in a weight to a weight of the model."""
        subclass = self.node_values[node.args[0]]  # type: ignore[index]
        path = f"{subclass.path}.{node.args[1]}"
        if path not in self.state_tensors:
            self.node_values[node] = TensorSubclass(path)
            return
        tensor = self.state_tensors[path]
        name = self.weights.setdefault(memory_key(tensor), node.name)
        self.node_values[node] = Ref(name)
        if name in self.states:
            return
        self.values[name] = spec_of(tensor)
        self.states[name] = replace(buffer_state(self.built, path, tensor), requires_grad=False)
        self.varying.add(name)

    def _convert_number_read(self, node: FxNode) -> None:
        """Convert a read of a number: an argument of operations, or a decision of Python code."""
        source = self._convert_argument(node.args[0])
        if not isinstance(source, Ref):
            raise CaptureRefusal(f"a number is read from {node.args[0]}")
        self.node_values[node] = Number(source.name)
        if not node.users and source.name in self.varying:
            self._note_specialisation(node, "a value was read as a number")

    def _note_specialisation(self, node: FxNode, reason: str) -> None:
        """Note that the program would be another one for other values."""
        place = find_origin(_stack_trace(node), self.file)
        location = str(node.name)
        if place:
            is_in_problem = place.line is not None
            file = "" if is_in_problem else f"{path_within_package(place.file)}, "
            location = f"{file}line {place.line if is_in_problem else place.statement}"
        sentence = f"{location}: {reason}"
        if sentence not in self.specialisations:
            self.specialisations.append(sentence)

    def _inline_subgraph(self, node: FxNode, module: Any, prefix: str) -> None:
        position = next(
            i for i, a in enumerate(node.args) if isinstance(a, FxNode) and a.op == "get_attr"
        )
        inner = getattr(module, str(node.args[position].target))  # type: ignore[union-attr]
        arguments = node.args[position + 1 :]
        names = [n for n in inner.graph.nodes if n.op == "placeholder"]
        for placeholder, argument in zip(names, arguments, strict=True):
            self.node_values[placeholder] = self._convert_argument(argument)
        self.node_values[node] = self.write(inner.graph, inner, f"{prefix}{node.name}_")

    def _convert_operator(self, node: FxNode, target: OpOverload, prefix: str) -> None:
        namespace = target.namespace
        if find_operator_module(namespace) is None:
            raise CaptureRefusal(
                f"forward() calls {schema(target).name}, which no package named {namespace} adds",
                f"define it in a package {namespace}, which emitted files can import",
            )
        out_names = [a.name for a in schema(target).arguments if a.is_out]
        if out_names:
            self._convert_out_variant(node, target, out_names, prefix)
            return
        value = node.meta.get("val", node.meta.get("tensor_meta"))
        results = value if isinstance(value, (list, tuple)) else [value]
        operation = target.overloadpacket.__name__
        if operation == _DATA_ASSIGNMENT:
            self.node_values[node.args[0]] = self._convert_argument(node.args[1])  # type: ignore[index]
            return
        if value is None and _returns_python_values(target):
            self._note_specialisation(node, f"what {operation} said decided what runs")
            return
        if value is None and schema(target).returns:
            if "sparse" in operation:  # A tracer records no value for a sparse tensor.
                raise CaptureRefusal(f"{operation} gives a sparse tensor", DENSE)
            raise CaptureRefusal(f"what {operation} gives is no plain tensor")
        is_list = isinstance(value, (list, tuple))
        outputs: list[str] = []
        refs: list[Arg] = []
        result_names = {
            u.args[1]: u.name for u in node.users if getattr(u.target, "__name__", "") == "getitem"
        }
        for i, result in enumerate(results):
            if not isinstance(result, torch.Tensor):
                outputs.append("")
                refs.append(_literal_or_text(result) if result is not None else None)
                if isinstance(result, (int, float, bool)):
                    self._note_specialisation(node, f"{node.name} was read as {result}")
                continue
            if result.layout != torch.strided:
                raise CaptureRefusal(f"{operation} gives a sparse tensor ({result.layout})", DENSE)
            name = prefix + (
                node.name if len(results) == 1 else result_names.get(i, f"{node.name}_{i}")
            )
            while name in self.values:
                name += "_"
            if is_on_cpu(node, i):
                self.on_cpu.add(name)
            self.values[name] = spec_of(result)
            outputs.append(name)
            refs.append(Ref(name))
            known_text = self.built.value_texts.get(memory_key(result))
            if text := known_text or self._recorded_text(node, i, is_list):
                self.observed_values[name] = text
        random = torch.Tag.nondeterministic_seeded in target.tags
        if random or any(self._is_varying(a) for a in (*node.args, *node.kwargs.values())):
            self.varying.update(filter(None, outputs))
            is_sized = operation in SIZED_BY_VALUES or _operator_name(target) in SIZED_OVERLOADS
            if is_sized or _selects_by_mask(target, node):
                self._note_specialisation(node, f"values decide how much {operation} gives")
        self.node_values[node] = tuple(refs) if is_list else refs[0]
        op = Operation(
            target=_operator_name(_generator_overload(target) if "seed" in node.meta else target),
            args=tuple(
                self._convert_argument(a) for a in _machine_independent_arguments(target, node)
            ),
            kwargs=(
                *((k, self._convert_argument(v)) for k, v in plain_kwargs(dict(node.kwargs))),
                *self._generator_argument(node),
            ),
            outputs=tuple(outputs),
            scopes=_module_scopes(node),
            origin=None
            if _is_buffer_writeback(node)
            else find_origin(_stack_trace(node), self.file),
            view=_is_view(target, node, results),
            schema=schema_names(target),
            returns_list=is_list,
        )
        op = with_dtype(op, self.values[outputs[0]]) if outputs[0] else op
        self.operations.append(with_device(op, node, self.values, self.placement))

    def _convert_out_variant(
        self, node: FxNode, target: OpOverload, out_names: list[str], prefix: str
    ) -> None:
        """Convert `torch.cumsum(x, 0, out=y)` to the sums, and a copy of them into `y`."""
        result_names: list[str] = []
        targets = [self._convert_argument(node.kwargs.get(name)) for name in out_names]
        for target_ref in targets:
            if not isinstance(target_ref, Ref):
                raise CaptureRefusal(f"{target} writes into {target_ref}")
            name = f"{prefix}{node.name}_{len(result_names)}"
            self.values[name] = self.values[target_ref.name].as_dense()
            result_names.append(name)
        place, scopes = find_origin(_stack_trace(node), self.file), _module_scopes(node)
        functional = _functional_overload(target)
        self.operations.append(
            Operation(
                target=_operator_name(functional),
                args=tuple(self._convert_argument(a) for a in node.args),
                kwargs=tuple(
                    (k, self._convert_argument(v))
                    for k, v in node.kwargs.items()
                    if k not in out_names
                ),
                outputs=tuple(result_names),
                scopes=scopes,
                origin=place,
                schema=schema_names(functional),
            )
        )
        copies: list[Arg] = []
        for name, target_ref in zip(result_names, targets, strict=True):
            assert isinstance(target_ref, Ref)
            out = f"{name}_written"
            self.values[out] = self.values[target_ref.name]
            self.operations.append(
                Operation(
                    "copy_.default", (target_ref, Ref(name)), (), (out,), scopes, place,
                    schema=("self", "src", "non_blocking"),
                )
            )  # fmt: skip
            copies.append(Ref(out))
        self.varying.update(name for name in result_names if any(map(self._is_varying, node.args)))
        self.node_values[node] = tuple(copies) if len(copies) > 1 else copies[0]

    def _recorded_text(self, node: FxNode, position: int, is_list: bool) -> str | None:
        """Return the text of one of a node's results, if the tracer recorded it."""
        if not is_list:
            return node.meta.get("seen")
        for user in node.users:
            if getattr(user.target, "__name__", "") == "getitem" and user.args[1] == position:
                return user.meta.get("seen")
        return None

    def _generator_argument(self, node: FxNode) -> Iterator[tuple[str, Arg]]:
        """Yield the generator argument if the author set a seed."""
        generator: Any = node.kwargs.get("generator")
        seed = node.meta.get("seed")
        if isinstance(generator, FxNode) and generator.op == "get_attr":
            generator = functools.reduce(getattr, str(generator.target).split("."), self.module)
        if isinstance(generator, torch.Generator):
            if id(generator) in self.generators:
                raise CaptureRefusal(
                    "forward() draws twice from one generator", "seed torch itself"
                )
            self.generators.add(id(generator))
            text = f"torch.Generator().manual_seed({generator.initial_seed()})"
            yield "generator", Symbol(text)
        elif seed is not None:
            yield "generator", Symbol(f"torch.manual_seed({seed})")

    def _is_varying(self, value: Any) -> bool:
        return any(name in self.varying for name in references(self._convert_argument(value)))

    def _convert_argument(self, value: Any) -> Arg:
        if isinstance(value, FxNode):
            if value not in self.node_values:  # an attribute of the model that is no tensor
                raise CaptureRefusal(
                    "forward() computes with an object of C++, such as packed weights",
                    "keep quantised weights in tensors, as torchao does",
                )
            converted: Arg | TensorSubclass = self.node_values[value]
            if isinstance(converted, TensorSubclass):
                raise CaptureRefusal(
                    f"forward() computes with {converted.path}, which is no plain tensor",
                    "compute with the tensors that it consists of",
                )
            return converted
        if isinstance(value, (list, tuple)):
            return tuple(self._convert_argument(item) for item in value)
        return literal_of(value)


def _returns_python_values(target: OpOverload) -> bool:
    """Return whether an operator returns a Python number or bool, as torch.equal does."""
    kinds = {str(returned.type) for returned in schema(target).returns}
    return bool(kinds) and kinds <= {"bool", "int", "float", "number"}


def _functional_overload(target: OpOverload) -> OpOverload:
    """Return the overload that returns what this one writes into `out`."""

    def input_types(overload: OpOverload) -> list[tuple[str, str]]:
        return [(a.name, str(a.type)) for a in schema(overload).arguments if not a.is_out]

    for name in target.overloadpacket.overloads():
        candidate: OpOverload = getattr(target.overloadpacket, name)
        if candidate is not target and input_types(candidate) == input_types(target):
            return candidate
    raise CaptureRefusal(
        f"{target} writes into a tensor", "leave out= away, and assign what is returned"
    )


def _generator_overload(target: OpOverload) -> OpOverload:
    """Return the overload that takes a generator."""
    overload = "low_generator" if overload_of(target) == "low" else "generator"
    if overload not in target.overloadpacket.overloads():
        raise CaptureRefusal(f"{target} follows torch.manual_seed()", "seed outside of forward()")
    result: OpOverload = getattr(target.overloadpacket, overload)
    return result


def _machine_independent_arguments(target: OpOverload, node: FxNode) -> tuple[Any, ...]:
    """Return an operator's arguments as a machine without cuDNN would give them.

    torch omits arguments that have their default, and cuDNN is on by default: without this, the
    machine would decide whether `eps` is written out.
    """
    declared = schema(target).arguments
    position = next((i for i, a in enumerate(declared) if a.name in _CUDNN), None)
    if position is None or any(a.name in node.kwargs for a in declared[: position + 1]):
        return tuple(node.args)
    defaults = (a.default_value for a in declared[len(node.args) : position])
    return (*node.args[:position], *defaults, False, *node.args[position + 1 :])


def _operator_name(target: OpOverload) -> str:
    namespace, _, name = str(target).partition(".")
    return name if namespace == "aten" else f"{namespace}::{name}"


def _stack_trace(node: FxNode) -> str:
    return str(node.meta.get("stack_trace") or "")


def _is_buffer_writeback(node: FxNode) -> bool:
    """Return whether a node is torch.export's final assignment to a buffer."""
    return str(node.name).startswith("copy__default")


def _selects_by_mask(target: OpOverload, node: FxNode) -> bool:
    """Return whether an operation selects by a mask, whose values decide how many rows."""
    if target is torch.ops.aten.where.default:
        return True
    if target not in {torch.ops.aten.index.Tensor, torch.ops.aten._unsafe_index.Tensor}:
        return False
    indices = [index.meta.get("val") for index in node.args[1] if isinstance(index, FxNode)]  # type: ignore[union-attr]
    return any(
        isinstance(index, torch.Tensor) and index.dtype in {torch.bool, torch.uint8}
        for index in indices
    )


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
        arguments = dict(zip(schema_names(target), node.args, strict=False)) | node.kwargs
        same = before.dtype == after.dtype and before.stride() == after.stride()
        return same and arguments.get("copy") is not True and not is_copy_on_device(name, source)
    if name in _VIEW_OR_COPY:
        return can_view(before, after) and not is_copy_on_device(name, source, after)
    if name in COPY:  # On fake tensors a copy may look like a view.
        return False
    return storage_of(before) == storage_of(after)


def _module_scopes(node: FxNode) -> tuple[Scope, ...]:
    scopes = []
    for key, (path, cls) in (node.meta.get("nn_module_stack") or {}).items():
        if not path:
            continue
        name = cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"
        call = int(key.rpartition("@")[2]) if "@" in key else 0
        path = _PATH_SLICE.sub("", path)
        scopes.append(Scope(path, name.rpartition(".")[2], call, name.startswith("torch.nn.")))
    return add_method_scopes(tuple(scopes), _stack_trace(node))
