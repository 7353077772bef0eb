"""Writes workloads as definitions, the form that FlashInfer-Bench and SOL-ExecBench read.

A definition is a function of named tensors whose dimensions are named axes. The definition of a
single workload has constant axes, contains the component's class and draws its own inputs;
`shared_definitions.py` writes those of several workloads.
"""

from __future__ import annotations

import ast
import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.report.catalogue import CatalogueWorkload
from runner.report.kernel_function import KernelFunction, has_sizes, rewrite_as_function

DTYPES = {
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32",
    "int16", "int8", "bool",
}  # fmt: skip
"""Dtypes that both formats have."""
FLASHINFER_LACKS = {"float64"}
ENTRYPOINT = "make_inputs"
ANY_VALUES = (
    "conv", "linear", "matmul", "bmm", "einsum", "add", "sub", "mul", "cat", "relu", "gelu", "silu",
    "sigmoid", "tanh", "softmax", "layer_norm", "group_norm", "batch_norm", "max_pool", "avg_pool",
    "adaptive_", "mean", "sum", "scaled_dot_product", "swiglu", "rms_norm", "transpose_copy",
    "permute_copy", "stack", "pad", "hardtanh", "leaky_relu", "hardswish", "mish", "elu",
)  # fmt: skip
"""Prefixes of operations for which normal random inputs are as good as the model's values."""


@dataclass(frozen=True, slots=True)
class DefinitionTensor:
    """A named input, weight or output of a workload."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    weight: str | None = None
    plain: bool = True
    """Whether contiguous normal random values are as good as those that the component draws."""


@dataclass(frozen=True, slots=True)
class DefinitionSubject:
    """A workload with all that its definition is made from."""

    workload: CatalogueWorkload
    source: str
    file: Path
    inputs: tuple[DefinitionTensor, ...]
    outputs: tuple[DefinitionTensor, ...]
    function: KernelFunction | None

    @property
    def general(self) -> bool:
        """Whether the function's code holds no sizes and random inputs are good enough."""
        return (
            self.function is not None
            and all(tensor.plain for tensor in self.inputs)
            and not has_sizes(self.function.text)
        )

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of dimensions of each input and output; a bias may broadcast from several."""
        return tuple(len(tensor.shape) for tensor in (*self.inputs, *self.outputs))


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition as both formats have it, with its workloads."""

    name: str
    document: dict[str, Any]
    workloads: list[dict[str, Any]]
    subjects: tuple[DefinitionSubject, ...]
    custom: bool
    """Whether the definition's own code makes its inputs."""


def read_subject(workload: CatalogueWorkload, file: Path) -> DefinitionSubject:
    """Read a workload's component file, and describe its tensors.

    Raises:
        ValueError: the formats lack one of the dtypes, or the tree lacks the dtypes of weights.
    """
    if workload.weight_dtypes.keys() != workload.weight_shapes.keys():
        raise ValueError("its tree does not say the dtypes of weights: decompose the problem again")
    source = file.read_text(encoding="utf-8")
    weights = list(workload.weight_shapes)
    function = rewrite_as_function(source, weights, workload.mode)
    operations = workload.operations or [workload.operation]
    any_values = all(operation.startswith(ANY_VALUES) for operation in operations)
    plain_inputs = _find_plain_inputs(source, any_values=any_values)
    argument_names = {a.weight: a.name for a in function.arguments if a.weight} if function else {}
    inputs = [
        DefinitionTensor(
            name,
            tuple(shape),
            workload.input_dtypes[name],
            None,
            index < len(plain_inputs) and plain_inputs[index],
        )
        for index, (name, shape) in enumerate(workload.input_shapes.items())
    ]
    inputs += [
        DefinitionTensor(
            argument_names.get(weight, _identifier(weight, {t.name for t in inputs})),
            tuple(shape),
            workload.weight_dtypes[weight],
            weight,
            not weight.endswith(("running_var", "running_mean")),
        )
        for weight, shape in workload.weight_shapes.items()
    ]
    input_names = {tensor.name for tensor in inputs}
    outputs = [
        DefinitionTensor(_identifier(name, input_names), tuple(shape), workload.output_dtypes[name])
        for name, shape in workload.output_shapes.items()
    ]
    unsupported = {t.dtype for t in (*inputs, *outputs)} - DTYPES
    if unsupported:
        raise ValueError(f"dtype {', '.join(sorted(unsupported))}")
    return DefinitionSubject(workload, source, file, tuple(inputs), tuple(outputs), function)


def component_code(subject: DefinitionSubject) -> str:
    """Return code with the component's class, a `run` that takes its weights, and its inputs."""
    body = component_statements(subject.source)
    definitions = [n for n in body if not isinstance(n, ast.Import | ast.ImportFrom)]
    names = [tensor.name for tensor in subject.inputs]
    mapping, inputs_tuple, assignments = tensor_code(subject)
    train = subject.workload.mode == "train"
    device = f"{names[0]}.device" if names else '"cpu"'
    return "\n\n\n".join(
        [
            import_lines(body),
            *(ast.unparse(node) for node in definitions),
            f"@functools.cache\ndef _model(device):\n    return Model().train({train}).to(device)",
            f"@torch.no_grad()\ndef run({', '.join(names)}):\n"
            f"    model = _model(str({device}))\n"
            f"    return torch.func.functional_call(model, {{{mapping}}}, {inputs_tuple})",
            f"def {ENTRYPOINT}(axes_and_scalars, device):\n"
            "    with torch.device(device):  # made there: moving a view would pack it together\n"
            "        state, drawn, made = Model().state_dict(), get_inputs(), {}\n"
            f"{assignments}\n    return made\n",
        ]
    )


def component_statements(source: str) -> list[ast.stmt]:
    """Return the imports, the classes and `get_inputs` of a component's file."""
    return [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)
        or (isinstance(node, ast.FunctionDef) and node.name == "get_inputs")
    ]


def import_lines(code: Sequence[ast.stmt]) -> str:
    """Return the import statements of a definition's code, which uses functools as well."""
    imports = [node for node in code if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(["import functools", *map(ast.unparse, imports)])


def tensor_code(subject: DefinitionSubject) -> tuple[str, str, str]:
    """Return code: the dict items of weights, the tuple of inputs, and lines that fill `made`."""
    weights = [tensor for tensor in subject.inputs if tensor.weight]
    inputs = [tensor.name for tensor in subject.inputs if not tensor.weight]
    assignments = [f"    made[{name!r}] = drawn[{i}]" for i, name in enumerate(inputs)]
    assignments += [f"    made[{t.name!r}] = state[{t.weight!r}]" for t in weights]
    return (
        ", ".join(f"{t.weight!r}: {t.name}" for t in weights),
        f"({', '.join(inputs)}{',' * (len(inputs) == 1)})",
        "\n".join(assignments),
    )


def build_document(
    name: str,
    subject: DefinitionSubject,
    axes: dict[str, dict[str, Any]],
    shapes: dict[str, list[str]],
    reference: str,
) -> dict[str, Any]:
    def specs(tensors: Sequence[DefinitionTensor]) -> dict[str, Any]:
        return {t.name: {"shape": shapes[t.name], "dtype": t.dtype} for t in tensors}

    uses = len(subject.workload.uses)
    return {
        "name": name,
        "op_type": operation_word(subject),
        "description": f"{subject.workload.operation}, as {uses} model{'s' * (uses > 1)} of a "
        f"kdrun decomposition run{'s' * (uses == 1)} it, first {subject.workload.uses[0].problem}",
        "axes": axes,
        "inputs": specs(subject.inputs),
        "outputs": specs(subject.outputs),
        "reference": reference,
    }


def to_lines(records: Sequence[dict[str, Any]]) -> str:
    """Return the records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def operation_word(subject: DefinitionSubject) -> str:
    return re.sub(r"\W+", "_", subject.workload.operation).strip("_")


def stable_uuid(subject: DefinitionSubject) -> str:
    """Return a UUID that is the same for the same workload in every run and on every machine."""
    return str(
        uuid.uuid5(uuid.NAMESPACE_OID, f"kdrun {subject.workload.mode} {subject.workload.id}")
    )


def _identifier(name: str, used_names: set[str]) -> str:
    word = re.sub(r"\W+", "_", name)
    return word if word not in used_names else f"{word}_of_kernel"


def _find_plain_inputs(source: str, any_values: bool) -> list[bool]:
    """Return for each input whether contiguous normal values can replace those of get_inputs()."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == "get_inputs":
            statement = node.body[-1]
            if len(node.body) == 1 and isinstance(statement, ast.Return):
                elements = getattr(statement.value, "elts", [])
                return [_is_plain(element, any_values) for element in elements]
    return []


def _is_plain(node: ast.expr, any_values: bool) -> bool:
    """Return whether an input is `torch.randn(...)`; with `any_values` also `.abs()` of it etc."""
    callees = [call.func for call in ast.walk(node) if isinstance(call, ast.Call)]
    names = {ast.unparse(f) for f in callees if not isinstance(f, ast.Attribute)}
    for function in callees:
        if isinstance(function, ast.Attribute):
            of_torch = ast.unparse(function.value) == "torch"
            names.add(f"torch.{function.attr}" if of_torch else function.attr)
    if names == {"torch.randn"}:  # a scaled torch.randn is as good
        return isinstance(node, (ast.Call, ast.BinOp)) or any_values
    generators = names & {"torch.randn", "torch.rand"}
    functions = {"torch.relu", "torch.sigmoid", "torch.tanh", "torch.exp"}
    plain_names = {"torch.randn", "torch.rand", "abs", "clamp", "float", "relu"} | functions
    return any_values and bool(generators) and names <= plain_names
