"""Turns a problem into the files of its decomposition."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import runner
from runner.emit.component import (
    Component,
    Emitter,
    component_path,
    output_names,
    write_component,
)
from runner.emit.composition import CHECKS, write_composition
from runner.emit.inputs.input_drawing import ObservedNumbers, SafeNumbers
from runner.emit.naming.value_names import Namer, child_names
from runner.emit.pages.analysis import write_analysis
from runner.emit.pages.decision_log import write_log
from runner.emit.steps import original_name, write_steps
from runner.errors import CaptureError
from runner.graph.cost import flops, moved_bytes
from runner.graph.ir import Graph, Mode, TensorSpec
from runner.graph.operations import constants
from runner.graph.peak_memory import estimate_peak
from runner.graph.recognition.recognize import recognize
from runner.problems import Problem, imported_packages, read_variant
from runner.tree.document import ROOT, Edge, Metadata, Node, Tree
from runner.tree.interface import Program
from runner.tree.kernel_description import describe_kernel, operation_name
from runner.tree.part import Part
from runner.tree.partition import partition
from runner.tree.source_location import call_lines
from runner.tree.workload import Workload, workloads

_CAPTURE_HINT = "NumPy, SciPy and C code compute without torch: write it with torch's operations"


def capture_graph(problem: Problem, *, mode: Mode = "eval") -> Graph:
    """Return the normalised graph of a problem; raises as `runner.emit.decompose` does."""
    from runner.graph.normalize import normalize
    from runner.graph.tracing.capture import capture

    try:
        graph = normalize(capture(problem, mode))
    except NotImplementedError as error:
        raise CaptureError(problem.path, str(error)) from error
    refuse_constant_program(problem, graph)
    return graph


def refuse_constant_program(problem: Problem, graph: Graph) -> None:
    """Raise CaptureError if values decided the program and no input reaches an output."""
    if graph.inputs and graph.specialisations:
        constant_names = constants(graph, of_weights=True)
        if constant_names.issuperset(graph.output_names()):
            specialisation = graph.specialisations[0]
            reason = (
                f"cannot be captured: no input reaches an output through torch ({specialisation})"
            )
            raise CaptureError(problem.path, reason, hint=_CAPTURE_HINT)


def write_decomposition(
    problem: Problem,
    graph: Graph,
    directory: Path,
    replacement_draws: Mapping[str, SafeNumbers] | None = None,
    observed_ranges: Mapping[str, ObservedNumbers] | None = None,
    *,
    keeps_values: bool = False,
) -> Tree:
    """Decompose a captured program and write it as `runner.emit.decompose` does.

    `keeps_values`: values will be stored beside the files, which then can test themselves on these.
    `replacement_draws`: path of a component file that failed or gave NaN on the inputs that it drew
    -> how it draws them instead; `observed_ranges`: range of each value in one run of the model.
    """
    program = Program(graph, recognize(graph))
    variant = read_variant(problem.path)
    name = variant.original_name if variant is not None else problem.name
    root = partition(program, problem.source_level, name)
    part_workloads = workloads(program, root)
    emitter = Emitter(
        program,
        Namer(program),
        problem.path.name,
        part_workloads,
        replacement_draws or {},
        observed_ranges or {},
        call_lines(program, root),
        keeps_values,
    )
    components = _write_components(emitter, root)
    texts = {c.path: c.text for c in components.values()}
    for step in write_steps(emitter, components):
        texts.update({f"steps/{step.name}/{file}": text for file, text in step.files.items()})
    texts["verification/composition_test.py"] = write_composition(
        emitter, root, components, graph.model_name
    )
    texts["verification/checks.py"] = CHECKS
    tree = build_tree(emitter, root, problem, components)
    texts["decomposition_analysis.md"] = write_analysis(tree, program, root)
    texts["decomposition_log.json"] = write_log(emitter, root, tree)
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, encoding="utf-8")
    shutil.copyfile(problem.path, directory / "original.py")
    tree.write(directory)
    return tree


def _write_components(emitter: Emitter, root: Part) -> dict[str, Component]:
    """Return workload name -> component file."""
    parents: dict[str, list[str]] = {}
    for part in root.walk():
        for child in part.children:
            child_parents = parents.setdefault(emitter.workload(child).name, [])
            if (name := emitter.workload(part).name) not in child_parents:
                child_parents.append(name)
    components: dict[str, Component] = {}
    for part in root.walk():
        workload = emitter.workload(part)
        if workload.name not in components:
            components[workload.name] = write_component(
                emitter, workload, parents.get(workload.name, [])
            )
    return components


# --- the tree document ----------------------------------------------------------------------------


def build_tree(
    emitter: Emitter, root: Part, problem: Problem, components: Mapping[str, Component]
) -> Tree:
    """Return the tree document of a partitioned program."""
    import torch

    workloads_used = {w.name: w for w in emitter.workloads.values()}
    kernel_descriptions = {
        name: describe_kernel(emitter.program, workload.first)
        for name, workload in workloads_used.items()
        if workload.level == "kernel"
    }
    nodes: dict[str, Node] = {}
    ids: dict[int, str] = {}
    queue = [(ROOT, root, root.name)]
    while queue:
        identity, part, name = queue.pop(0)
        names = child_names(part)
        children = [
            (names[id(c)] if identity == ROOT else f"{identity}.{names[id(c)]}", c, names[id(c)])
            for c in part.children
        ]
        children = [(f"{i}_" if i == ROOT else i, c, n) for i, c, n in children]
        ids[id(part)] = identity
        nodes[identity] = _tree_node(
            emitter,
            part,
            identity,
            name,
            [i for i, _, _ in children],
            components,
            kernel_descriptions,
        )
        queue += children
    graph = emitter.program.graph
    peak_memory = estimate_peak(graph)
    by_level = {"model": 0, "layer": 0, "fusion": 0, "kernel": 0}
    for workload in workloads_used.values():
        by_level[workload.level] += 1
    used_weights = {name for node in nodes.values() for name in node.weight_map.values()}
    used_weights |= {graph.tied.get(name, name) for name in used_weights}
    return Tree(
        metadata=Metadata(
            source_file=problem.path.name,
            source_sha256=problem.sha256,
            source_level=problem.source_level,
            model_name=graph.model_name,
            kdrun_version=runner.__version__,
            torch_version=str(torch.__version__),
            variant=read_variant(problem.path),
            packages=imported_packages(problem.path),
            mode=graph.mode,
            capture=graph.capture,
            specialisations=list(graph.specialisations),
            estimated_peak_bytes=peak_memory.resident_bytes,
            estimated_allocation_bytes=peak_memory.allocated_bytes,
            total_components=len(workloads_used),
            by_level=by_level,  # type: ignore[arg-type]
            unique_kernels=by_level["kernel"],
            kernel_instances=sum(1 for _ in root.kernels()),
            unused_weights=[
                name for name in graph.state_names if graph.tied.get(name, name) not in used_weights
            ],
        ),
        nodes=nodes,
        data_flow=_data_flow(emitter, root, ids, graph),
    )


def _tree_node(
    emitter: Emitter,
    part: Part,
    identity: str,
    name: str,
    children: list[str],
    components: Mapping[str, Component],
    kernel_descriptions: Mapping[str, Mapping[str, Any]],
) -> Node:
    program = emitter.program
    workload: Workload = emitter.workload(part)
    model_class = components[workload.name].model_class
    inputs = _specs_by_name(model_class.inputs, program, part.io.inputs)
    outputs = _specs_by_name(output_names(emitter.namer, workload.first), program, part.io.outputs)
    states = [program.spec(n) for n in part.io.states]
    operations = [program.graph.operations[i] for i in part.operations]
    values = program.graph.values
    return Node(
        id=identity,
        name=name,
        level=part.level,
        path=component_path(emitter, part),
        children=children,
        module_path=part.module_path,
        source_line=emitter.lines[id(part)],
        instance_count=len(workload.parts),
        input_shapes={name: list(spec.shape) for name, spec in inputs.items()},
        output_shapes={name: list(spec.shape) for name, spec in outputs.items()},
        input_dtypes={name: spec.dtype for name, spec in inputs.items()},
        output_dtypes={name: spec.dtype for name, spec in outputs.items()},
        input_strides={name: list(spec.stride) for name, spec in inputs.items()},
        output_strides={name: list(spec.stride) for name, spec in outputs.items()},
        weight_shapes={
            w.local: [] if w.sibling else list(states[w.position].shape)
            for w in model_class.weights
        },
        weight_dtypes={
            w.local: "int64" if w.sibling else states[w.position].dtype for w in model_class.weights
        },
        weight_map={w.local: original_name(emitter, part, w) for w in model_class.weights},
        operations=[operation_name(kernel) for kernel in part.kernels()],
        groups=[[children[place] for place in group] for group in part.groups],
        flops=sum(flops(op, values) for op in operations),
        bytes=moved_bytes(operations, (*part.io.inputs, *part.io.states), part.io.outputs, values),
        **kernel_descriptions.get(workload.name, {}),
    )


def _specs_by_name(
    names: Sequence[str], program: Program, values: Sequence[str]
) -> dict[str, TensorSpec]:
    return {name: program.spec(value) for name, value in zip(names, values, strict=True)}


def _data_flow(emitter: Emitter, root: Part, ids: Mapping[int, str], graph: Graph) -> list[Edge]:
    """Return the tensors between kernels; a reader of a view is linked to the tensor's producer."""
    program = emitter.program
    kernels = list(root.kernels())
    kernel_ids = {i: ids[id(k)] for k in kernels for i in k.operations}
    arguments = {i.name for i in graph.inputs}
    targets = [(name, ids[id(k)]) for k in kernels for name in k.io.inputs]
    targets += [(name, "output") for name in root.io.outputs]

    def source(name: str) -> str | None:
        """Return the kernel that computed a value, or `input`; None for a weight or a constant."""
        while name not in arguments:
            i = program.producers.get(name)
            if i is None or i in kernel_ids:
                return None if i is None else kernel_ids[i]
            name = next(graph.operations[i].refs(), "")
        return "input"

    edges = []
    for name, target in targets:
        spec, producer = program.spec(name), source(name)
        fields = {
            "tensor_name": emitter.namer.name_of(name),
            "shape": spec.shape,
            "dtype": spec.dtype,
        }
        if producer is not None:
            edges.append(Edge.model_validate({"from": producer, "to": target} | fields))
    return edges
