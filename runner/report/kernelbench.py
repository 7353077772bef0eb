"""Finds workloads that KernelBench's harness cannot judge, and adapts components to the harness.

The harness builds `Model` of a problem and `ModelNew` of an answer, casts every input to one
floating-point dtype, moves it to a GPU, and compares the two outputs in five trials.
`docs/kernelbench.md` describes the consequences.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from runner.emit.code.line_breaks import fit_line, indent_lines
from runner.graph.operations import DROPOUTS, RANDOM
from runner.tree.document import Node

LEVELS = {"kernel": 1, "fusion": 2, "layer": 3, "model": 3}
"""KernelBench's level for each abstraction level: operations, fusions, architectures."""
GPU_BYTES = 80 << 30
_FLOATING = {"float64", "float32", "float16", "bfloat16"}
"""Dtypes that can be cast to each other; an 8-bit dtype has a range of its own."""
_COMPLEX = {"complex64", "complex128"}
_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16"}
_MODE_MATTERS = re.compile(r"nn\.(BatchNorm|InstanceNorm|Dropout|AlphaDropout)")
_INDENT = 8

Limit = Literal[
    "no input",
    "input that is not floating-point",
    "several outputs",
    "output that is not floating-point",
    "random numbers",
    "more memory than 80 GiB",
]
"""Why the harness cannot judge a workload."""
EXPLANATIONS: dict[Limit, str] = {
    "no input": "every trial gives the same result, so an answer that stores it is right.",
    "input that is not floating-point": "the harness casts every input to a floating-point dtype: "
    "an index or a mask is refused by the operation that reads it, or means something else.",
    "several outputs": "the harness compares one tensor; every answer fails.",
    "output that is not floating-point": "the harness compares with a relative tolerance, so that "
    "index 20001 is as right as 20000, and fails with an error where outputs differ.",
    "random numbers": "Model and ModelNew draw from one generator, one after the other; "
    "every answer fails.",
    "more memory than 80 GiB": "inputs, and weights and outputs of both models, do not fit into "
    "a GPU of 80 GiB.",
}


def limits(node: Node) -> list[Limit]:
    """Return the reasons why the harness cannot judge a component; empty if it can."""
    reasons: list[Limit] = []
    if not node.input_shapes:
        reasons.append("no input")
    if not _FLOATING.issuperset(node.input_dtypes.values()):
        reasons.append("input that is not floating-point")
    if len(node.output_shapes) != 1:
        reasons.append("several outputs")
    if not (_FLOATING | _COMPLEX).issuperset(node.output_dtypes.values()):
        reasons.append("output that is not floating-point")
    if {*node.operations} & ((RANDOM - {"rrelu"}) | DROPOUTS) or node.attributes.get("dropout_p"):
        reasons.append("random numbers")
    if _needed_bytes(node) > GPU_BYTES:
        reasons.append("more memory than 80 GiB")
    return reasons


def precision(dtypes: Mapping[str, str]) -> str:
    """Return the harness's `precision` argument for inputs and weights of these dtypes."""
    codes = [code for dtype, code in _PRECISIONS.items() if dtype in dtypes.values()]
    return codes[0] if codes else "fp32"


def problem_text(text: str, mode: str) -> str:
    """Return a component's text as a problem that computes the same when the harness calls it.

    The harness never calls `eval()`, and makes views of larger tensors contiguous when it casts or
    moves inputs. So the file sets its mode and makes such views itself.
    """
    return _move_views_into_forward(_set_mode(text, mode))


def _set_mode(text: str, mode: str) -> str:
    build = _find_function(text, "__init__")
    if mode == "train" or build is None or not _MODE_MATTERS.search(text):
        return text
    lines = text.splitlines()
    comment = "  # KernelBench does not; the model ran so"
    lines.insert(build.end_lineno or 0, f"{' ' * _INDENT}self.eval(){comment}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _View:
    """An input that is a view of another tensor, and loses its layout if it is cast or moved."""

    argument: str
    source: str
    """Name of the tensor that forward takes instead of the view."""
    base: ast.expr
    """Expression of that tensor in get_inputs()."""
    call: str
    """Code that makes the view from the tensor, such as `[:, :4].permute(1, 0)`."""


def _move_views_into_forward(text: str) -> str:
    """Move slices of inputs, `as_strided` and `expand` from get_inputs() into forward()."""
    draw, forward = _find_function(text, "get_inputs"), _find_function(text, "forward")
    if draw is None or forward is None or not isinstance(draw.body[-1], ast.Return):
        return text
    returned, parameters = draw.body[-1].value, forward.args.args[1:]
    if not isinstance(returned, ast.List) or len(returned.elts) != len(parameters):
        return text
    views: list[_View] = []
    sources: dict[str, ast.expr] = {}
    arguments: dict[str, str] = {}
    for argument, element in zip(parameters, returned.elts, strict=True):
        value, assignment = _find_value(draw, element)
        view = _find_view(argument.arg, value)
        if view is None:
            sources[argument.arg], arguments[argument.arg] = element, ast.unparse(argument)
            continue
        views.append(view)
        if assignment and view.source != argument.arg:
            draw.body.remove(assignment)
        elif assignment:
            assignment.value = view.base
        base = element if assignment and view.source == argument.arg else view.base
        sources[view.source] = base
        arguments[view.source] = f"{view.source}: torch.Tensor"
    if not views:
        return text
    returned.elts = list(sources.values())
    lines = text.splitlines()
    lines[draw.lineno - 1 : draw.end_lineno] = indent_lines(ast.unparse(draw).splitlines(), 0)
    above = parameters[-1].end_lineno or 0
    below = next(n for n in range(above, len(lines) + 1) if lines[n - 1].rstrip().endswith(":"))
    lines[forward.lineno - 1 : below] = [
        *fit_line(f"def forward({', '.join(['self', *arguments.values()])}):", _INDENT - 4),
        f"{' ' * _INDENT}# As in the model: a harness that moves or casts a view packs it.",
        *indent_lines([f"{v.argument} = {v.source}{v.call}" for v in views], _INDENT),
    ]
    return "\n".join(lines) + "\n"


def _find_function(text: str, name: str) -> ast.FunctionDef | None:
    """Return a function of the file, or a method of its class Model; None if it has neither."""
    tree = ast.parse(text)
    model = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"]
    statements = [*tree.body, *(n for c in model for n in c.body)]
    functions = [n for n in statements if isinstance(n, ast.FunctionDef) and n.name == name]
    return functions[0] if functions else None


def _find_value(draw: ast.FunctionDef, element: ast.expr) -> tuple[ast.expr, ast.Assign | None]:
    """Return an input's expression, and its assignment if get_inputs() returns it by name."""
    name = ast.unparse(element)
    reads = [n for n in ast.walk(draw) if isinstance(n, ast.Name) and n.id == name]
    for statement in draw.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            # Two occurrences of the name: this assignment, and the return statement.
            return (statement.value, statement) if len(reads) == 2 else (element, None)
    return element, None


def _find_view(argument: str, value: ast.expr) -> _View | None:
    """Return the view that an input is, or None if moving the input keeps its layout."""
    base = value
    if isinstance(base, ast.Call) and _is_call(base, {"permute"}):
        base = base.func.value  # type: ignore[attr-defined]
    if isinstance(base, ast.Subscript) and _is_slice(base.slice):
        base = base.value
    elif isinstance(base, ast.Call) and _is_call(base, {"as_strided", "expand"}):
        base = base.func.value  # type: ignore[attr-defined]
    else:
        return None
    call = ast.unparse(value).removeprefix(ast.unparse(base)).removeprefix(f"({ast.unparse(base)})")
    return _View(argument, base.id if isinstance(base, ast.Name) else argument, base, call)


def _is_call(call: ast.Call, methods: set[str]) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in methods


def _is_slice(index: ast.expr) -> bool:
    indices = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(item, ast.Slice) for item in indices)


def _needed_bytes(node: Node) -> int:
    """Return the bytes of a trial: inputs, weights and outputs of two models, and a difference."""

    def size(shapes: Mapping[str, list[int]], dtypes: Mapping[str, str]) -> int:
        return sum(prod(s) * _item_bytes(dtypes.get(name, "")) for name, s in shapes.items())

    inputs = size(node.input_shapes, node.input_dtypes)
    weights = size(node.weight_shapes, node.weight_dtypes)
    return inputs + 2 * weights + 3 * size(node.output_shapes, node.output_dtypes)


def _item_bytes(dtype: str) -> int:
    """Return the bytes per number in the harness: 2 for the 16-bit dtypes, 4 for all others."""
    return 2 if dtype in _PRECISIONS else 4
