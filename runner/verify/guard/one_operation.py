"""Decides with the recogniser whether the calls that a kernel made are one operation.

The calls that the judge repeated are written as a short program, in text that kdrun generates. It
is captured and recognised like any problem.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from runner.errors import KdrunError
from runner.problems import find_dataset_level, read_problem
from runner.verify.gates.operation_identity import SYMMETRIC
from runner.verify.gates.parent_source import import_fault, parse_file, root_name
from runner.verify.guard.call_recording import READING
from runner.verify.guard.replica import WorkerModel
from runner.verify.guard.replica import resolve_function as function_of
from runner.verify.runtime.operation_watch import Event

if TYPE_CHECKING:
    from runner.graph.ir import Graph
    from runner.graph.recognition.recognize import Kernel

_MAX_LITERAL_ELEMENTS = 4096
_NEVER_PREPARATION = {"contraction", "softmax", "normalization", "pooling", "scan"}
_LEVEL_1_OPERATIONS = {
    frozenset({"matmul", "triu"}),
    frozenset({"matmul", "tril"}),
    frozenset({"mul", "cumsum"}),
    frozenset({"cumsum", "cat"}),
}
"""Sets of operations that make one problem of KernelBench's first level."""
_CONTRACTIONS = {"matmul", "einsum", "bmm", "linear"}
_CALLED_AS_ONE = {
    **{name: name for name in ("einsum", "multi_dot", "chain_matmul", "matrix_power")},
    **dict.fromkeys(("rnn_tanh", "rnn_relu", "rnn_tanh_cell", "rnn_relu_cell"), "rnn"),
    **{"gru": "gru", "gru_cell": "gru", "lstm": "lstm", "lstm_cell": "lstm"},
}
"""Functions of several products that are one operation only where the original calls them, too.

Each maps to the name under which the original may have it as well: with or without `cell`.
"""
_PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "mv", "addmv"}
"""Names of dispatched operations that are one product each."""
_PRODUCT_FUNCTIONS = _PRODUCTS | {
    *("matmul", "rmatmul", "linear", "bilinear", "einsum", "addbmm", "dot", "vdot", "vecdot"),
    *("tensordot", "multi_dot", "chain_matmul", "scaled_dot_product_attention"),
}
"""Names of functions that are products."""
_MOST_OF_ONE_FUNCTION = 16
"""Number of operations up to which a function of the author may be one kernel."""
_MAX_NAMES = 6
_LAYOUT_COPIES = {"reshape", "contiguous", "flatten"}
"""Functions that a run of the original, recorded by operators, shows as `clone`."""


@dataclass(frozen=True, slots=True)
class MultipleOperations:
    """The reason why a kernel is more than one operation."""

    fault: str
    """The reason, in one line."""
    excused: bool = False
    """Whether the kernel is accepted if the original's author has a function that does this."""
    operations: tuple[str, ...] = ()
    """Names of all operations that the kernel computes, sorted."""


@dataclass(frozen=True, slots=True)
class _Recognized:
    """A kernel's program as the recogniser sees it."""

    names: list[str]
    """Names of its kernels, without those that prepare something from constants or buffers."""
    kinds: list[str]
    operations: tuple[str, ...]
    """All of its operations."""
    adds_to_contraction: bool
    """Whether it is a contraction without a bias, and an addition to its result."""


def find_multiple_operations(
    model: WorkerModel, original: Path | None, scratch: Path
) -> MultipleOperations | None:
    """Return why a kernel is more than one operation, or None if it is one.

    `original`: the problem's file if the kernel is the whole problem, else None.
    """
    program = ReplayedProgram(model)
    file = scratch / "seen.py"
    file.write_text(program.text(), encoding="utf-8")
    try:
        seen = _recognize_operations(file)
    except (KdrunError, NotImplementedError) as error:
        return MultipleOperations(f"cannot be recognised as one operation: {error}")
    names, kinds = seen.names, seen.kinds
    if len(names) <= 1:
        return None
    if seen.adds_to_contraction and program.adds_weight:
        return None
    is_level_1 = original is not None and (
        frozenset(names) in _LEVEL_1_OPERATIONS or find_dataset_level(original) == "level1"
    )
    if is_level_1:
        return None
    suffix = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    large_count = sum(kind in _NEVER_PREPARATION for kind in kinds)
    return MultipleOperations(
        f"is more than one operation: {', '.join(names[:_MAX_NAMES])}{suffix}",
        excused=large_count <= ("contraction" not in kinds)
        and len(seen.operations) <= _MOST_OF_ONE_FUNCTION,
        operations=seen.operations,
    )


def find_products(
    model: WorkerModel, events: list[Event], original: Path
) -> MultipleOperations | None:
    """Return why a kernel of several products is more than one operation of the original's author.

    `x @ y @ z` is two operations, and `torch.einsum("ab,bc,cd->ad", x, y, z)` computes both.
    `events`: the operations that the kernel dispatches. An original that imports more than torch
    may call such a function anywhere.
    """
    count = sum(event.operation.name in _PRODUCTS for event in events)
    # `aten::mm.default` or `Tensor.__matmul__`
    calls = [call.partition("::")[2].partition(".")[0] or call for call in model.called_names()]
    calls = [call.rpartition(".")[2].strip("_") for call in calls]
    if count <= max(1, sum(call in _PRODUCT_FUNCTIONS for call in calls)):
        return None
    called = next((call for call in calls if call in _CALLED_AS_ONE), None)
    if called is None:
        return None
    name = _CALLED_AS_ONE[called]
    tree = parse_file(original, original.name)
    if import_fault(tree) or not {called, name, f"{name}cell"}.isdisjoint(_names_of_modules(tree)):
        return None
    fault = f"is more than one operation: one {name} of {count} products"
    return MultipleOperations(f"{fault}; {original.name} calls no {name}")


def _names_of_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a file takes from modules, in lower case: `lstm` of `nn.LSTM`.

    `getattr(nn, "LSTM")` takes one as well.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and root_name(node) != "self":
            yield node.attr.lower()
        elif isinstance(node, ast.alias):
            yield node.name.lower()
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.lower()


def format_last_program(model: WorkerModel) -> str | None:
    """Return a model's last program as a problem's text; None if it cannot be written."""
    try:
        return ReplayedProgram(model).text()
    except LookupError:
        return None


def find_kernel_operations(text: str, scratch: Path) -> set[tuple[str, ...]]:
    """Return the operations of each kernel with several operations that kdrun finds in a program.

    The names of a kernel's operations are sorted.
    """
    file = scratch / "original.py"
    file.write_text(text, encoding="utf-8")
    try:
        graph, kernels = _recognize_kernels(file)
    except (KdrunError, NotImplementedError):
        return set()
    kernel_operations = {_list_operations(graph, kernel.members) for kernel in kernels}
    return {operations for operations in kernel_operations if len(operations) > 1}


def _recognize_kernels(file: Path) -> "tuple[Graph, tuple[Kernel, ...]]":
    # These imports take a second, and only the judging of foreign kernels needs them.
    from runner.graph.normalize import normalize
    from runner.graph.recognition.recognize import recognize
    from runner.graph.tracing.capture import capture

    graph = normalize(capture(read_problem(file), "eval"))
    return graph, recognize(graph)


def _list_operations(graph: "Graph", indices: Iterable[int]) -> tuple[str, ...]:
    """Return the operations at some indices, sorted, each with those that its operands come from.

    Views are left out.
    """
    formulas: dict[str, int] = {}
    """Hash of what each value comes from."""
    operations: list[str] = []
    for operation in (graph.operations[n] for n in sorted(indices)):
        operands = [formulas.get(name, 0) for name in operation.refs()]
        if operation.view:
            formula = operands[0] if operands else 0
        else:
            name = operation.name.strip("_")
            name = "clone" if name in _LAYOUT_COPIES else name
            formula = hash((name, *(sorted(operands) if name in SYMMETRIC else operands)))
            operations.append(f"{name} {formula}")
        formulas.update(dict.fromkeys(operation.outputs, formula))
    return tuple(sorted(operations))


def _recognize_operations(file: Path) -> _Recognized:
    """Return the kernels and operations of a program.

    Kernels that compute from constants alone are left out, and those that prepare a buffer.
    """
    graph, kernels = _recognize_kernels(file)
    variable = {source.name for source in graph.inputs}
    variable |= {name for name, state in graph.states.items() if state.kind == "parameter"}
    from_buffers = {name for name, state in graph.states.items() if not state.literal}
    for operation in graph.operations:
        for sources in (variable, from_buffers):
            if not sources.isdisjoint(operation.refs()):
                sources.update(operation.outputs)
    main_kernels = [
        kernel
        for kernel in kernels
        if _reads_any(graph, kernel, variable)
        or (kernel.kind in _NEVER_PREPARATION and _reads_any(graph, kernel, from_buffers))
    ]
    return _Recognized(
        [kernel.operation for kernel in main_kernels],
        [kernel.kind for kernel in main_kernels],
        _list_operations(graph, range(len(graph.operations))),
        _adds_to_contraction(graph, main_kernels),
    )


def _adds_to_contraction(graph: "Graph", kernels: "list[Kernel]") -> bool:
    if len(kernels) != 2 or kernels[0].operation not in _CONTRACTIONS:
        return False
    contraction, addition = kernels
    if addition.operation != "add":
        return False
    results: set[str] = set()
    operands: set[str] = set()
    for n, operation in enumerate(graph.operations):
        if n in contraction.members:
            operands |= {*operation.refs()} - results
            results.update(operation.outputs)
        elif operation.view and not results.isdisjoint(operation.refs()):
            results.update(operation.outputs)
    return len(operands) <= 2 and _reads_any(graph, addition, results)


def _reads_any(graph: "Graph", kernel: "Kernel", names: set[str]) -> bool:
    return any(not names.isdisjoint(graph.operations[n].refs()) for n in kernel.members)


def _format_input(tensor: torch.Tensor) -> str:
    """Return Python text for an input; whole numbers may count or index something."""
    if tensor.dtype is torch.int64 and 0 < tensor.numel() <= _MAX_LITERAL_ELEMENTS:
        return f"torch.tensor({tensor.tolist()}, dtype=torch.int64)"
    layout = f"{list(tensor.shape)}, {list(tensor.stride())}"
    return f"torch.empty_strided({layout}, dtype={tensor.dtype}).zero_()"


class ReplayedProgram:
    """The last program of a model, as text of a problem's file."""

    def __init__(self, model: WorkerModel) -> None:
        assert model.last_run is not None
        program, inputs, weights = model.last_run
        self._program = program
        self._names = {n: f"x{n}" for n in range(len(inputs))}
        self._weight_lines: list[str] = []
        self._biases: set[str] = set()
        """Names of the parameters with at most one dimension that is not 1."""
        for n, tensor in weights.items():
            if n not in self._names:
                self._names[n] = f"self.w{n}"
                expression = f"torch.zeros({list(tensor.shape)}, dtype={tensor.dtype})"
                if isinstance(tensor, torch.nn.Parameter):
                    expression = f"nn.Parameter({expression}, requires_grad=False)"
                    if tensor.numel() == max(tensor.shape, default=1):
                        self._biases.add(f"self.w{n}")
                    self._weight_lines.append(f"self.w{n} = {expression}")
                else:
                    self._weight_lines.append(f'self.register_buffer("w{n}", {expression})')
        self._inputs = inputs
        self.adds_weight = False
        """Whether a parameter with the form of a bias is added to something."""
        self._lines: list[str] = []
        self._last_source_line: object = None
        """Source line of the last line of the text."""
        for item in program["items"]:
            first = len(self._lines)
            self._add_item(item)
            self._join_lines(first, item[5] if item[0] in {"function", "operation"} else None)

    def text(self) -> str:
        """Return the text of a problem's file."""
        parameters = ", ".join(f"x{n}" for n in range(len(self._inputs)))
        inputs = ", ".join(map(_format_input, self._inputs))
        lines = [
            "import torch",
            "from torch import nn",
            "class Model(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            *(f"        {line}" for line in self._weight_lines),
            f"    def forward(self, {parameters}):",
            *(f"        {line}" for line in self._lines),
            f"        return {self._format_value(self._program['output'])}",
            "def get_inputs():",
            f"    return [{inputs}]",
            "def get_init_inputs():",
            "    return []",
        ]
        return "\n".join(lines) + "\n"

    def _join_lines(self, first: int, source_line: object) -> None:
        """Join the calls of one source line: the recogniser reads formulas line by line."""
        new_lines = self._lines[first:]
        if new_lines and source_line is not None:
            is_continued = first > 0 and source_line == self._last_source_line
            self._lines[first - is_continued :] = ["; ".join(self._lines[first - is_continued :])]
            self._last_source_line = source_line

    def _add_item(self, item: list[Any]) -> None:
        match item[0]:
            case "function" | "operation":
                self._add_call(item)
            case "given":
                tensor = self._program["given"][item[2]]
                name = self._names[item[1]] = f"t{item[1]}"
                if tensor.numel() <= _MAX_LITERAL_ELEMENTS and not tensor.is_complex():
                    expression = f"torch.tensor({tensor.tolist()}, dtype={tensor.dtype})"
                    self._lines.append(f"{name} = {expression}".replace("nan", "float('nan')"))
                else:
                    self._weight_lines.append(
                        f'self.register_buffer("{name}", '
                        f"torch.zeros({list(tensor.shape)}, dtype={tensor.dtype}))"
                    )
                    self._names[item[1]] = f"self.{name}"
            case "alias":
                _, number, base, shape, stride, offset, *_ = item
                name = self._names[number] = f"t{number}"
                view = f"{self._names[base]}.as_strided({shape}, {stride}, {offset})"
                self._lines.append(f"{name} = {view}")

    def _add_call(self, item: list[Any]) -> None:
        _, name, args, kwargs, result, *_ = item
        if name == READING and result is None:
            return
        # It refuses any other name, so that no other name gets into a text that runs here.
        function_of(item)
        function = name
        if item[0] == "operation":
            space, _, operator = name.partition("::")
            plain, _, overload = operator.partition(".")
            function = f"torch.ops.{space}.{plain}.{overload or 'default'}"
            if plain == "lift_fresh":
                self._names[result["t"]] = self._names[args["u"][0]["t"]]
                return
        arguments = [self._format_value(value) for value in args["u"]]
        arguments += [f"{key}={self._format_value(value)}" for key, value in kwargs["d"]]
        call = f"{function}({', '.join(arguments)})"
        if function in {"torch.Tensor.add", "torch.add", "torch.Tensor.add_"}:
            self.adds_weight |= not self._biases.isdisjoint(arguments)
        if result is None:
            self._lines.append(call)
        elif isinstance(result, dict) and "t" in result:
            existing = self._names.get(result["t"])
            name = existing or self._names.setdefault(result["t"], f"t{result['t']}")
            self._lines.append(call if existing else f"{name} = {call}")
        else:
            self._lines.append(f"r = {call}")
            self._unpack_result(result, "r")

    def _unpack_result(self, result: Any, expression: str) -> None:
        items = result if isinstance(result, list) else result.get("u", ())
        for n, item in enumerate(items):
            if isinstance(item, dict) and "t" in item:
                name = self._names.setdefault(item["t"], f"t{item['t']}")
                self._lines.append(f"{name} = {expression}[{n}]")
            elif isinstance(item, dict | list):
                self._unpack_result(item, f"{expression}[{n}]")

    def _format_value(self, value: Any) -> str:
        """Return the Python expression of an encoded value."""
        if isinstance(value, float):
            return f"float('{value}')" if value != value or value in _INFINITIES else repr(value)
        if isinstance(value, list):
            return f"[{', '.join(map(self._format_value, value))}]"
        if not isinstance(value, dict):
            return repr(value)
        ((kind, content),) = value.items()
        match kind:
            case "t":
                return self._names[content]
            case "u":
                return f"({''.join(f'{self._format_value(item)}, ' for item in content)})"
            case "d":
                pairs = (
                    f"{self._format_value(key)}: {self._format_value(item)}"
                    for key, item in content
                )
                return f"{{{', '.join(pairs)}}}"
            case "s":
                return f"slice({', '.join(map(self._format_value, content))})"
            case "e":
                return "..."
            case "v":
                return f"torch.device('{content}')"
            case "k":
                return f"torch.{content}"
            case "c":
                return f"complex({content[0]}, {content[1]})"
        return f"torch.Size({content})"


_INFINITIES = (float("inf"), float("-inf"))
