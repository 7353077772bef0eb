"""Traces a forward symbolically with torch.export."""

from __future__ import annotations

import contextlib
import io
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node as FxNode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from runner.graph.tracing.containers import register_containers
from runner.graph.tracing.hidden_tracing import (
    Entries,
    forget_last_trace,
    hide_tracing,
    refuse_seeding,
)
from runner.graph.tracing.known_numbers import KnownNumbers, ValueTexts, draw_real_inputs
from runner.graph.tracing.method_calls import keep_authors_frames
from runner.graph.tracing.provenance import ProvenanceRecorder
from runner.graph.tracing.recurrent_shapes import skip_unrolling
from runner.graph.tracing.refusal import CaptureRefusal
from runner.graph.tracing.repeated_layers import RepeatedLayers
from runner.problems import LoadedProblem
from runner.problems.simulated_device import NumbersOnDeviceMode, UnknownSizeError
from runner.torch_internals import (
    DataDependentOutputException,
    OpOverload,
    is_settled,
    tree_flatten,
    tree_unflatten,
)
from runner.torch_tracing import (
    copy_weights_without_modes,
    keep_fake_weights,
    load_without_modes,
    mix_fake_modes,
    watch_fake_devices,
    write_graph_code_late,
    write_out_flex_attention,
    write_out_function_transforms,
)

Placement = Literal["known", "mixed", "unknown"]


@dataclass
class BuiltProblem:
    """A problem whose model and inputs are built, with the recordings of how they were made."""

    loaded: LoadedProblem
    model: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    model_recorder: ProvenanceRecorder
    inputs_recorder: ProvenanceRecorder
    real_inputs: dict[int, Any] = field(default_factory=dict)
    """By id() of a fake input: what get_inputs() draws for real, if forward() reads numbers."""
    value_texts: ValueTexts = field(default_factory=dict)
    """Numbers on which sizes of a forward on fake tensors depend."""
    reads_numbers: bool = False
    """Whether an earlier trace has shown that forward() reads numbers of tensors."""
    own_entries: Entries = frozenset()
    """Entries of the problem file's dicts once the model and its inputs are built."""
    layers: RepeatedLayers | None = None
    """Equal layers of which only the first call is traced; None if each is to be traced."""


@dataclass
class TracedProgram:
    """An fx graph, the meaning of each of its placeholders, and the structure of its results."""

    graph: FxGraph
    module: Any
    placeholders: list[tuple[str, str, Any]]
    """Role of each placeholder; its path, argument or name; and its tensor or value, if known."""
    output: Callable[[list[Any]], Any]
    notes: list[str]
    reads: list[str] = field(default_factory=list)
    """One sentence for each place where numbers left torch without the tracer seeing it."""
    placement: Placement = "known"
    """Whether each value's device is known; `mixed` if the forward fails on a device."""
    queries_device: bool = False
    """Whether forward, or a library that it calls, asked for the device of a tensor."""
    reads_numbers: bool = False
    """Whether forward reads numbers of tensors that depend on no weight."""
    follows_all: bool = False
    """True if the tracer sees every operator, also those of a gradient. A tensor that no operator
    made is then one that the author read from a file or wrote out."""


@contextlib.contextmanager
def silence_torch_logs() -> Iterator[None]:
    """Silence torch's logs about failed attempts; kdrun reports the reasons itself."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


class SizeFromWeightsError(Exception):
    """Only real weights tell the size of a tensor."""


def export(built: BuiltProblem) -> TracedProgram:
    """Trace the forward with torch.export.

    A forward that reads numbers is traced again with a recorder, which knows those that depend on
    no weight. Operators such as `torch.cond` have no rule for a recorder.

    Raises:
        SizeFromWeightsError: weights decide the size of a tensor.
    """
    if not built.reads_numbers:
        try:
            traced = _export(built, reads_numbers=False)
        except UnknownSizeError:
            pass
        except Exception as error:
            if not is_about_values(error):
                raise
        else:
            if not _depends_on_numbers(traced.graph):
                return traced
        built.reads_numbers = True
        forget_last_trace(built.model_recorder.has_made, built.own_entries)
    traced = _export(built, reads_numbers=True)
    sizes = (size for node in traced.graph.nodes for size in _symbolic_sizes(node))
    if any(not is_settled(size) for size in sizes):
        raise SizeFromWeightsError("the size of a tensor depends on weights")
    return traced


def _depends_on_numbers(graph: FxGraph) -> bool:
    """Return whether values of a tensor decide the size of one, or are compared in Python."""
    return any(_symbolic_sizes(node) or _computes_in_python(node) for node in graph.nodes)


def _symbolic_sizes(node: FxNode) -> list[torch.SymInt]:
    values = tree_flatten(node.meta.get("val"))[0]
    sizes: Iterator[Any] = (
        n for value in values if isinstance(value, torch.Tensor) for n in value.shape
    )
    return [size for size in sizes if isinstance(size, torch.SymInt)]


def _computes_in_python(node: FxNode) -> bool:
    """Return whether a node is one of Python's own operators, such as `<=`, on a tensor's value."""
    if isinstance(node.target, OpOverload) or node.op != "call_function":
        return False
    values = tree_flatten(node.meta.get("val"))[0]
    return any(isinstance(n, torch.SymInt | torch.SymFloat | torch.SymBool) for n in values)


def is_about_values(error: Exception) -> bool:
    """Return whether a trace failed because a number is unknown: a symbol, `u0`, stands for it."""
    if isinstance(
        error, DataDependentOutputException | GuardOnDataDependentSymNode | SizeFromWeightsError
    ):
        return True
    return bool(re.search(r"\bu\d+\b|\bSym(Int|Float|Bool)\b", str(error)))


@contextlib.contextmanager
def hide_tracing_from(
    built: BuiltProblem, *, reads_numbers: bool, refuses_unknown_sizes: bool = False
) -> Iterator[NumbersOnDeviceMode]:
    """Let the forward run on fake tensors as it runs on real ones, and return plain containers.

    `reads_numbers`: whether it may read numbers that depend on no weight. `refuses_unknown_sizes`:
    whether a tensor whose size depends on values is an UnknownSizeError.
    """
    forward_mode = _number_recorder(built) if reads_numbers else contextlib.nullcontext
    layers = built.layers.leave_stand_ins(built.model) if built.layers else contextlib.nullcontext()
    with (
        layers,
        skip_unrolling(),
        write_out_function_transforms(),
        write_out_flex_attention(),
        keep_fake_weights(),
        hide_tracing(),
        load_without_modes(),
        refuse_seeding(),
        register_containers(built.model, built.args, built.kwargs, forward_mode),
        NumbersOnDeviceMode(refuses_unknown_sizes=refuses_unknown_sizes) as mode,
        watch_fake_devices(mode.note_query),
    ):
        yield mode


def _number_recorder(built: BuiltProblem) -> Callable[[Any], KnownNumbers]:
    """Return a function that makes the recorder for a call of forward() with these inputs."""
    inputs = (built.args, built.kwargs)
    real_inputs = draw_real_inputs(built.loaded.problem, inputs)
    built.real_inputs = dict(zip(map(id, tree_flatten(inputs)[0]), real_inputs, strict=False))
    return lambda arguments: KnownNumbers(arguments, real_inputs, built.value_texts)


def _export(built: BuiltProblem, *, reads_numbers: bool) -> TracedProgram:
    with (
        keep_authors_frames(built.model),
        mix_fake_modes(),
        write_graph_code_late(),
        copy_weights_without_modes(),
        # Thousands of operators on unknown sizes would take minutes, for a trace of no use.
        hide_tracing_from(
            built, reads_numbers=reads_numbers, refuses_unknown_sizes=not reads_numbers
        ) as mode,
    ):
        program = torch.export.export(built.model, built.args, built.kwargs, strict=False)
    flat_inputs, _ = tree_flatten((built.args, built.kwargs))
    user_inputs = iter(flat_inputs)
    nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
    placeholders: list[tuple[str, str, Any]] = []
    for node, spec in zip(nodes, program.graph_signature.input_specs, strict=True):
        kind = spec.kind.name
        if kind == "USER_INPUT":
            value = next(user_inputs)
            placeholders.append(
                ("input" if isinstance(value, torch.Tensor) else "value", node.name, value)
            )
        elif kind == "CONSTANT_TENSOR":
            placeholders.append(("constant", str(spec.target), program.constants[str(spec.target)]))
        elif kind in {"PARAMETER", "BUFFER"}:
            placeholders.append((kind.lower(), str(spec.target), None))
        else:
            raise CaptureRefusal(f"torch.export knows an input of kind {kind}")
    specs = program.graph_signature.output_specs
    mutations = sum(spec.kind.name != "USER_OUTPUT" for spec in specs)
    out_spec = program.call_spec.out_spec

    def structure(outputs: list[Any]) -> Any:
        return tree_unflatten(outputs[mutations:], out_spec)

    traced = TracedProgram(program.graph, program.graph_module, placeholders, structure, [])
    traced.queries_device, traced.reads_numbers = mode.has_queries, reads_numbers
    return traced
