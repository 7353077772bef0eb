"""This file knows about gathering a problem's facts: capture it, or else look at a plain run."""

from collections.abc import Iterable

from runner.errors import CaptureError
from runner.graph.ir import Arg, Graph, Mode, Number, Operation, Ref, Symbol, TensorSpec
from runner.graph.normalize import normalize
from runner.graph.operations import constants
from runner.graph.peak_memory import peak
from runner.graph.recognition.recognize import recognize
from runner.graph.tracing import module_calls
from runner.graph.tracing.capture import capture
from runner.problems import Problem
from runner.prompts.facts import Fact, Facts, Tensor, equal_together
from runner.tree.interface import Interface, Program, interface

_LONGEST_SPELLING = 200


def facts_of(problem: Problem, mode: Mode = "eval") -> Facts:
    """Capture a problem and say what it does. Runs the author's code: call it in a child.

    Raises:
        ProblemError: the author's code fails.
    """
    try:
        try:
            graph = normalize(capture(problem, mode))
        except NotImplementedError as error:
            raise CaptureError(problem.path, str(error)) from error
    except CaptureError as error:
        return _seen(problem, mode, error.reason)
    program = Program(graph, recognize(graph))
    used = {name for op in graph.operations for name in op.refs()}
    paths = {graph.states[name].path for name in used if name in graph.states}
    return Facts(
        capture=graph.capture,
        inputs=tuple(_tensor(graph.values[i.name], i.argument) for i in graph.inputs),
        outputs=tuple(_tensor(graph.values[name]) for name in graph.output_names()),
        operations=equal_together(_operations(program)),
        states=len(graph.state_names),
        unused=tuple(name for name in graph.state_names if name not in paths),
        specialisations=graph.specialisations,
        peak_bytes=peak(graph).resident_bytes,
    )


def _operations(program: Program) -> Iterable[Fact]:
    """A fact for each kernel that depends on an input or a weight: what must be found again."""
    graph = program.graph
    fixed = constants(graph, of_weights=False)
    for number, kernel in enumerate(program.kernels):
        operations = [graph.operations[i] for i in kernel.members]
        if all(fixed.issuperset(filter(None, op.outputs)) for op in operations):
            continue
        ends = interface(program, kernel.members)
        scopes = program.scopes[number]
        place = scopes[-1].path if scopes else ""
        lines = {op.origin.line for op in operations if op.origin and op.origin.line}
        yield Fact(
            name=kernel.operation,
            spelling=_spelled([op for op in operations if not op.view]),
            inputs=tuple(_tensor(graph.values[name]) for name in ends.inputs),
            weights=tuple(_weights(graph, ends, place)),
            outputs=tuple(_tensor(graph.values[name]) for name in ends.outputs),
            places=(place,),
            lines=tuple(sorted(lines)),
        )


def _weights(graph: Graph, ends: Interface, place: str) -> Iterable[Tensor]:
    for name in ends.states:
        yield _tensor(graph.values[name], graph.states[name].path.removeprefix(f"{place}."))


def _tensor(spec: TensorSpec, name: str = "") -> Tensor:
    stride = None if spec.contiguous else spec.stride
    return Tensor(name=name, shape=spec.shape, dtype=spec.dtype, stride=stride)


def _spelled(operations: list[Operation]) -> str:
    """`square, mean(dim=-1, keepdim=True), add(1e-06), rsqrt, mul, mul`."""
    text = ", ".join(map(_called, operations))
    return text if len(text) <= _LONGEST_SPELLING else text[: _LONGEST_SPELLING - 1] + "…"


def _called(op: Operation) -> str:
    given = [
        (op.schema[n] if n < len(op.schema) else "", arg)
        for n, arg in enumerate(op.args)
        if not _is_tensor(arg) and arg is not None
    ]
    said = [(name, arg) for name, arg in (*given, *op.kwargs) if not _is_tensor(arg)]
    inside = ", ".join(
        f"{name}={_literal(arg)}" if name and name != "other" else _literal(arg)
        for name, arg in said
        if name not in ("cudnn_enabled", "cudnn_enable") and arg is not None
    )
    return f"{op.name}({inside})" if inside else op.name


def _is_tensor(arg: Arg) -> bool:
    if isinstance(arg, tuple):
        return any(map(_is_tensor, arg))
    return isinstance(arg, Ref | Number)


def _literal(arg: Arg) -> str:
    if isinstance(arg, Symbol):
        return arg.text
    if isinstance(arg, tuple):
        return f"({', '.join(map(_literal, arg))}{',' if len(arg) == 1 else ''})"
    return repr(arg)


def _seen(problem: Problem, mode: Mode, reason: str) -> Facts:
    """What a plain run shows of a program that could not be written down."""
    seen = module_calls.observe(problem, mode)
    return Facts(
        capture=None,
        reason=reason.removeprefix("cannot be captured: "),
        inputs=tuple(map(_tensor, seen.inputs)),
        outputs=tuple(map(_tensor, seen.outputs)),
        calls=equal_together(map(_call, seen.calls)),
        states=seen.states,
    )


def _call(call: module_calls.Call) -> Fact:
    return Fact(
        name=call.cls,
        spelling=call.said,
        inputs=tuple(map(_tensor, call.inputs)),
        weights=tuple(_tensor(spec, name) for name, spec in call.weights),
        outputs=tuple(map(_tensor, call.outputs)),
        places=(call.path,),
    )
