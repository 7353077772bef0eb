"""Writes a problem file for a model in memory: its program at one set of inputs, self-contained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.emit.component import Emitter, write_component
from runner.emit.decomposition import refuse_constant_program
from runner.emit.naming.value_names import Namer
from runner.emit.steps import original_name
from runner.graph.ir import Graph
from runner.graph.normalize import normalize
from runner.graph.recognition.recognize import recognize
from runner.problems import Problem
from runner.tree.interface import Program
from runner.tree.partition import partition
from runner.tree.source_location import call_lines
from runner.tree.workload import workloads

_DOCSTRING_END = '"""\n'


@dataclass(frozen=True, slots=True)
class ObjectProblem:
    """A problem file whose Model computes what an object computes, and how the two correspond."""

    text: str
    weights: Mapping[str, str]
    """Name of each parameter and buffer of the file's Model -> its name in the object."""
    outputs: tuple[int, ...]
    """For each tensor that the file's Model returns: its position among the object's tensors."""


def write_object_problem(
    problem: Problem, captured: Graph, name: str, sentences: Sequence[str]
) -> ObjectProblem:
    """Return the problem file for a captured object; `sentences` are its docstring.

    Raises CaptureError if the program does not depend on its inputs.
    """
    graph = normalize(captured)
    refuse_constant_program(problem, graph)
    program = Program(graph, recognize(graph))
    root = partition(program, "custom", name)
    emitter = Emitter(
        program,
        Namer(program),
        f"{name}.py",
        workloads(program, root),
        lines=call_lines(program, root),
    )
    component = write_component(emitter, emitter.workload(root), [])
    _, _, rest = component.text.removeprefix('"""').partition(_DOCSTRING_END)
    docstring = "\n".join(['"""' + sentences[0], "", *sentences[1:], '"""', ""])
    returned = graph.output_names()
    return ObjectProblem(
        docstring + rest,
        {w.local: original_name(emitter, root, w) for w in component.model_class.weights},
        tuple(returned.index(value) for value in root.io.outputs),
    )
