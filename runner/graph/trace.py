"""This file knows about torch's tracers: they run a model's forward and leave an fx graph."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.utils._pytree import tree_flatten, tree_unflatten

from runner.graph.provenance import Recorder
from runner.graph.recurrent import unrolled_never
from runner.problems import LoadedProblem


@dataclass
class Built:
    loaded: LoadedProblem
    model: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    made_model: Recorder
    made_inputs: Recorder


@dataclass
class Traced:
    """An fx graph, what each of its placeholders is, and the structure of what it returns."""

    graph: FxGraph
    module: Any
    placeholders: list[tuple[str, str, Any]]
    """(parameter, buffer, constant, input or value; path or argument; tensor or value)."""
    output: Callable[[list[Any]], Any]
    notes: list[str]


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """torch tells at length about each attempt that fails; of that, the reasons are kept."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def export(built: Built) -> Traced:
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

    return Traced(program.graph, program.graph_module, placeholders, structure, [])


def trace(built: Built) -> Traced:
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
    return Traced(
        module.graph,
        module,
        placeholders,
        lambda outs: tree_unflatten(outs, shape_of_result[0]),
        [note],
    )


def _argument_names(built: Built) -> list[str]:
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
