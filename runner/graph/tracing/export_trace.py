"""Traces a forward symbolically with torch.export."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch.fx import Graph as FxGraph
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from runner.graph.tracing.containers import register_containers
from runner.graph.tracing.hidden_tracing import hide_tracing, refuse_seeding
from runner.graph.tracing.method_calls import keep_authors_frames
from runner.graph.tracing.provenance import ProvenanceRecorder
from runner.graph.tracing.recurrent_shapes import skip_unrolling
from runner.graph.tracing.refusal import CaptureRefusal
from runner.problems import LoadedProblem
from runner.problems.simulated_device import NumbersOnDeviceMode
from runner.torch_internals import (
    DataDependentOutputException,
    mix_fake_modes,
    tree_flatten,
    tree_unflatten,
    watch_fake_devices,
    write_graph_code_late,
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
    """Whether forward reads numbers of tensors that depend on no input and no weight."""
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


def export(built: BuiltProblem) -> TracedProgram:
    """Trace the forward with torch.export.

    A forward that reads numbers is traced again with a recorder, which knows those that depend on
    no input and no weight. Operators such as `torch.cond` have no rule for a recorder.
    """
    try:
        return _export(built, reads_numbers=False)
    except (DataDependentOutputException, GuardOnDataDependentSymNode):
        return _export(built, reads_numbers=True)


@contextlib.contextmanager
def hide_tracing_from(built: BuiltProblem, *, reads_numbers: bool) -> Iterator[NumbersOnDeviceMode]:
    """Let the forward run on fake tensors as it runs on real ones, and return plain containers.

    With `reads_numbers`, it may read numbers that depend on no input and no weight.
    """
    forward_mode = _number_recorder if reads_numbers else contextlib.nullcontext
    with (
        skip_unrolling(),
        hide_tracing(),
        refuse_seeding(),
        register_containers(built.model, built.args, built.kwargs, forward_mode),
        NumbersOnDeviceMode() as mode,
        watch_fake_devices(mode.note_query),
    ):
        yield mode


def _number_recorder() -> ProvenanceRecorder:
    return ProvenanceRecorder(keeps_origins=False)


def _export(built: BuiltProblem, *, reads_numbers: bool) -> TracedProgram:
    with (
        keep_authors_frames(built.model),
        mix_fake_modes(),
        write_graph_code_late(),
        hide_tracing_from(built, reads_numbers=reads_numbers) as mode,
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
