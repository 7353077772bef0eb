"""Computes a kernel's operation, attributes, identity and family for the tree document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

from runner.graph.ir import Arg, Operation, Ref, Symbol, references
from runner.graph.operations import kind
from runner.tree.default_arguments import MACHINE_ARGUMENTS, default_arguments
from runner.tree.document import Attribute
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.workload import digest
from runner.tree.workload_words import identifying_words

_USUAL_VALUES: dict[str, tuple[Arg, ...]] = {
    "groups": (1,),
    "dilation": (1,),
    "padding": (0,),
    "output_padding": (0,),
    "stride": (1,),
    "ceil_mode": (False,),
    "dropout": (0.0,),
    "dropout_p": (0.0,),
    "train": (False,),
}
"""Arguments and their usual values; an argument with such a value is left out."""
_SHAPE_ARGUMENTS = {"size", "shape"}
"""Arguments that the shapes already give."""
_FORMULA_ARGUMENTS = {"dtype", "exponent", "keepdim"}
"""Arguments that belong to a formula of several operations: every rms_norm squares."""
_SIZES = {"normalized_shape", "split_size", "split_sizes", "groups"}
"""Arguments that give sizes; a family leaves them out, or gives them in another way."""


def operation_name(kernel: Part) -> str:
    """Return the name of a kernel's operation in its field: `conv2d`."""
    return kernel.kernel.operation if kernel.kernel is not None else kernel.stem


def describe_kernel(program: Program, kernel: Part) -> dict[str, Any]:
    """Return the fields of a tree node that only kernels have."""
    return {
        "operation": operation_name(kernel),
        "attributes": attributes(program, kernel),
        "identity": digest(program, kernel),
        "family": family(program, kernel),
    }


def attributes(program: Program, kernel: Part) -> dict[str, Attribute]:
    """Return the arguments that are not tensors, by the operator's names for them, with defaults.

    In a kernel of several operations each name begins with the operator's, and usual values are
    left out: `pow_exponent`. An attention has the positions that it attends to: `causal`, `window`,
    `sinks`.
    """
    core = _computing_operations(program, kernel)
    arguments = _unusual_arguments(program, kernel)
    if len(core) == 1:
        (op,) = core
        default_values = {
            name: _json_value(value)
            for name, value in default_arguments(op).items()
            if value is not None
        }
        passed_arguments = {
            name: _json_value(value)
            for name, value in (*zip(op.schema, op.args, strict=False), *op.kwargs)
            if name in default_values and value not in (None, ())
        }
        weight = op.arg("weight")
        if isinstance(weight, Ref) and op.name.startswith("conv"):
            default_values = {
                "kernel_size": list(program.spec(weight.name).shape[2:])
            } | default_values
        arguments = default_values | passed_arguments | arguments
    elif kernel.stem.endswith("attention"):
        for word in identifying_words(program, kernel):
            window = word.removeprefix("window")
            arguments |= {"window": int(window)} if window != word else {word: True}
    return arguments


def _unusual_arguments(program: Program, kernel: Part) -> dict[str, Attribute]:
    """Return the arguments that differ from the usual ones."""
    core = _computing_operations(program, kernel)
    arguments: dict[str, Attribute] = {}
    for op in core:
        for name, value in _arguments(op):
            if name in (
                _SHAPE_ARGUMENTS if len(core) == 1 else _SHAPE_ARGUMENTS | _FORMULA_ARGUMENTS
            ):
                continue
            full_name = name if len(core) == 1 else f"{op.name}_{name}"
            if full_name in arguments and arguments[full_name] == value:
                continue
            free_names = (f"{full_name}_{n}" for n in range(2, len(arguments) + 3))
            arguments[
                full_name
                if full_name not in arguments
                else next(p for p in free_names if p not in arguments)
            ] = value
    return arguments


def family(program: Program, kernel: Part) -> str:
    """Return `conv2d(kernel_size=7, stride=2) on 4-d float32 with 1 weight`: all but the sizes."""
    arguments = [
        f"{name}={_short(value)}"
        for name, value in _unusual_arguments(program, kernel).items()
        if name not in _SIZES
    ]
    core = _computing_operations(program, kernel)
    if len(core) == 1 and core[0].name.startswith("conv"):
        arguments = [*_convolution_words(program, core[0]), *arguments]
    specs = [program.spec(name) for name in kernel.io.inputs]
    runs = [
        (word, len(list(same)))
        for word, same in groupby(f"{len(spec.shape)}-d {spec.dtype}" for spec in specs)
    ]
    words = [word if count == 1 else f"{count} × {word}" for word, count in runs]
    inputs_text = " and ".join(words) or "no inputs"
    count = len(kernel.io.states)
    weights = f" with {count} weight{'s' * (count > 1)}" if count else ""
    arguments_text = f"({', '.join(arguments)})" if arguments else ""
    return f"{operation_name(kernel)}{arguments_text} on {inputs_text}{weights}"


def _convolution_words(program: Program, op: Operation) -> Iterator[str]:
    """Yield a convolution's window, and its groups, or `depthwise` for one channel a group."""
    weight, groups = op.arg("weight"), op.arg("groups", 1)
    if not isinstance(weight, Ref) or not isinstance(groups, int):
        return
    shape = program.spec(weight.name).shape
    yield f"kernel_size={_short(list(shape[2:]))}"
    if groups > 1:
        transposed = op.name.startswith("conv_transpose")
        depthwise = groups == shape[0] if transposed else shape[1] == 1
        yield "depthwise" if depthwise else f"groups={groups}"


def _computing_operations(program: Program, kernel: Part) -> list[Operation]:
    """Return the operations that compute; all of them if the kernel only moves or makes data."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    return [op for op in operations if kind(op) not in {"view", "creation"}] or operations


def _arguments(op: Operation) -> Iterator[tuple[str, Attribute]]:
    for name, value in (*zip(op.schema, op.args, strict=False), *op.kwargs):
        values = value if isinstance(value, tuple) else (value,)
        is_default = name in _USUAL_VALUES and all(v in _USUAL_VALUES[name] for v in values)
        if name == "stride" and not op.name.startswith("conv"):
            is_default = False  # a pool's usual stride is its window
        says_nothing = value is None or value == () or is_default or name in MACHINE_ARGUMENTS
        if not says_nothing and next(references(value), None) is None:
            yield name, _json_value(value)


def _json_value(value: Arg) -> Any:
    """Return a value for JSON: infinity, NaN and torch's own names become strings."""
    if isinstance(value, tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, Symbol):
        return value.text.removeprefix("torch.")
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _short(value: Attribute | Sequence[int]) -> str:
    """Return `3` for `[3, 3]`, as modules accept it."""
    if isinstance(value, list) and len(value) > 1 and len({repr(item) for item in value}) == 1:
        return str(value[0])
    return str(value)
