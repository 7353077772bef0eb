"""Collects a problem's facts by capturing its program, or else by observing a plain run."""

from collections.abc import Iterable

from runner.errors import CaptureError
from runner.graph.ir import Arg, Graph, Mode, Number, Operation, Ref, Symbol, TensorSpec
from runner.graph.normalize import normalize
from runner.graph.operations import constants
from runner.graph.peak_memory import estimate_peak
from runner.graph.recognition.recognize import recognize
from runner.graph.tracing import module_calls
from runner.graph.tracing.capture import capture
from runner.problems import Problem
from runner.prompts.facts import Fact, Facts, TensorFacts, merge_equal
from runner.tree.interface import Interface, Program, interface

_LONGEST_SPELLING = 200


def collect_facts(problem: Problem, mode: Mode = "eval") -> Facts:
    """Return the facts of a problem. Runs the author's code, so call it in a child process.

    Raises:
        ProblemError: the author's code fails.
    """
    try:
        try:
            graph = normalize(capture(problem, mode))
        except NotImplementedError as error:
            raise CaptureError(problem.path, str(error)) from error
    except CaptureError as error:
        return _observe_facts(problem, mode, error.reason)
    program = Program(graph, recognize(graph))
    read_names = {name for op in graph.operations for name in op.refs()}
    paths = {graph.states[name].path for name in read_names if name in graph.states}
    return Facts(
        capture=graph.capture,
        inputs=tuple(_tensor(graph.values[i.name], i.argument) for i in graph.inputs),
        outputs=tuple(_tensor(graph.values[name]) for name in graph.output_names()),
        operations=merge_equal(_operation_facts(program)),
        states=len(graph.state_names),
        unused=tuple(name for name in graph.state_names if name not in paths),
        specialisations=graph.specialisations,
        peak_bytes=estimate_peak(graph).resident_bytes,
    )


def _operation_facts(program: Program) -> Iterable[Fact]:
    """Yield a fact for each kernel that depends on an input or a weight.

    A decomposition has to contain each of these kernels.
    """
    graph = program.graph
    constant_names = constants(graph, of_weights=False)
    for number, kernel in enumerate(program.kernels):
        operations = [graph.operations[i] for i in kernel.members]
        if all(constant_names.issuperset(filter(None, op.outputs)) for op in operations):
            continue
        boundary = interface(program, kernel.members)
        scopes = program.scopes[number]
        place = scopes[-1].path if scopes else ""
        lines = {op.origin.line for op in operations if op.origin and op.origin.line}
        yield Fact(
            name=kernel.operation,
            spelling=_spell_operations([op for op in operations if not op.view]),
            inputs=tuple(_tensor(graph.values[name]) for name in boundary.inputs),
            weights=tuple(_weights(graph, boundary, place)),
            outputs=tuple(_tensor(graph.values[name]) for name in boundary.outputs),
            places=(place,),
            lines=tuple(sorted(lines)),
        )


def _weights(graph: Graph, boundary: Interface, place: str) -> Iterable[TensorFacts]:
    for name in boundary.states:
        yield _tensor(graph.values[name], graph.states[name].path.removeprefix(f"{place}."))


def _tensor(spec: TensorSpec, name: str = "") -> TensorFacts:
    stride = None if spec.contiguous else spec.stride
    return TensorFacts(name=name, shape=spec.shape, dtype=spec.dtype, stride=stride)


def _spell_operations(operations: list[Operation]) -> str:
    """Return `square, mean(dim=-1, keepdim=True), add(1e-06), rsqrt, mul, mul`."""
    text = ", ".join(map(_spell_operation, operations))
    return text if len(text) <= _LONGEST_SPELLING else text[: _LONGEST_SPELLING - 1] + "…"


def _spell_operation(op: Operation) -> str:
    positional = [
        (op.schema[position] if position < len(op.schema) else "", arg)
        for position, arg in enumerate(op.args)
        if not _is_tensor(arg) and arg is not None
    ]
    arguments = [(name, arg) for name, arg in (*positional, *op.kwargs) if not _is_tensor(arg)]
    argument_text = ", ".join(
        f"{name}={_literal(arg)}" if name and name != "other" else _literal(arg)
        for name, arg in arguments
        if name not in ("cudnn_enabled", "cudnn_enable") and arg is not None
    )
    return f"{op.name}({argument_text})" if argument_text else op.name


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


def _observe_facts(problem: Problem, mode: Mode, reason: str) -> Facts:
    """Return the facts that a plain run shows of a program that could not be captured."""
    observed = module_calls.observe_module_calls(problem, mode)
    return Facts(
        capture=None,
        reason=reason.removeprefix("cannot be captured: "),
        inputs=tuple(map(_tensor, observed.inputs)),
        outputs=tuple(map(_tensor, observed.outputs)),
        calls=merge_equal(map(_call_fact, observed.calls)),
        states=observed.states,
    )


def _call_fact(call: module_calls.ModuleCall) -> Fact:
    return Fact(
        name=call.cls,
        spelling=call.extra_repr,
        inputs=tuple(map(_tensor, call.inputs)),
        weights=tuple(_tensor(spec, name) for name, spec in call.weights),
        outputs=tuple(map(_tensor, call.outputs)),
        places=(call.path,),
    )
