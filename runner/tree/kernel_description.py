"""Computes a kernel's operation, attributes, identity and family for the tree document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

from runner.graph.ir import Arg, Operation, Ref, Symbol, references
from runner.graph.operations import kind
from runner.tree.default_arguments import OF_MACHINES, defaults
from runner.tree.document import Attribute
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.workload import digest
from runner.tree.workload_words import known_by

_USUAL: dict[str, tuple[Arg, ...]] = {
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
_OF_SHAPES = {"size", "shape"}
"""Arguments that the shapes already give."""
_OF_FORMULAS = {"dtype", "exponent", "keepdim"}
"""Arguments that belong to a formula of several operations: every rms_norm squares."""
_SIZES = {"normalized_shape", "split_size", "split_sizes", "groups"}
"""Arguments that give sizes; a family leaves them out, or gives them in another way."""


def operation(kernel: Part) -> str:
    """Return the name of a kernel's operation in its field: `conv2d`."""
    return kernel.kernel.operation if kernel.kernel is not None else kernel.stem


def describe_kernel(program: Program, kernel: Part) -> dict[str, Any]:
    """Return the fields of a tree node that only kernels have."""
    return {
        "operation": operation(kernel),
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
    core = _core(program, kernel)
    found = _told(program, kernel)
    if len(core) == 1:
        (op,) = core
        usual = {name: _plain(value) for name, value in defaults(op).items() if value is not None}
        given = {
            name: _plain(value)
            for name, value in (*zip(op.schema, op.args, strict=False), *op.kwargs)
            if name in usual and value not in (None, ())
        }
        weight = op.arg("weight")
        if isinstance(weight, Ref) and op.name.startswith("conv"):
            usual = {"kernel_size": list(program.spec(weight.name).shape[2:])} | usual
        found = usual | given | found
    elif kernel.stem.endswith("attention"):
        for word in known_by(program, kernel):
            window = word.removeprefix("window")
            found |= {"window": int(window)} if window != word else {word: True}
    return found


def _told(program: Program, kernel: Part) -> dict[str, Attribute]:
    """Return the arguments that differ from the usual ones."""
    core = _core(program, kernel)
    found: dict[str, Attribute] = {}
    for op in core:
        for name, value in _arguments(op):
            if name in (_OF_SHAPES if len(core) == 1 else _OF_SHAPES | _OF_FORMULAS):
                continue
            long = name if len(core) == 1 else f"{op.name}_{name}"
            if long in found and found[long] == value:
                continue
            places = (f"{long}_{n}" for n in range(2, len(found) + 3))
            found[long if long not in found else next(p for p in places if p not in found)] = value
    return found


def family(program: Program, kernel: Part) -> str:
    """Return `conv2d(kernel_size=7, stride=2) on 4-d float32 with 1 weight`: all but the sizes."""
    told = [
        f"{name}={_short(value)}"
        for name, value in _told(program, kernel).items()
        if name not in _SIZES
    ]
    core = _core(program, kernel)
    if len(core) == 1 and core[0].name.startswith("conv"):
        told = [*_of_convolution(program, core[0]), *told]
    specs = [program.spec(name) for name in kernel.io.inputs]
    runs = [
        (word, len(list(same)))
        for word, same in groupby(f"{len(spec.shape)}-d {spec.dtype}" for spec in specs)
    ]
    words = [word if count == 1 else f"{count} × {word}" for word, count in runs]
    on = " and ".join(words) or "no inputs"
    count = len(kernel.io.states)
    weights = f" with {count} weight{'s' * (count > 1)}" if count else ""
    how = f"({', '.join(told)})" if told else ""
    return f"{operation(kernel)}{how} on {on}{weights}"


def _of_convolution(program: Program, op: Operation) -> Iterator[str]:
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


def _core(program: Program, kernel: Part) -> list[Operation]:
    """Return the operations that compute; all of them if the kernel only moves or makes data."""
    operations = [program.graph.operations[i] for i in kernel.operations]
    return [op for op in operations if kind(op) not in {"view", "creation"}] or operations


def _arguments(op: Operation) -> Iterator[tuple[str, Attribute]]:
    for name, value in (*zip(op.schema, op.args, strict=False), *op.kwargs):
        values = value if isinstance(value, tuple) else (value,)
        usual = name in _USUAL and all(v in _USUAL[name] for v in values)
        if name == "stride" and not op.name.startswith("conv"):
            usual = False  # a pool's usual stride is its window
        nothing = value is None or value == () or usual or name in OF_MACHINES
        if not nothing and next(references(value), None) is None:
            yield name, _plain(value)


def _plain(value: Arg) -> Any:
    """Return a value for JSON: infinity, NaN and torch's own names become strings."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
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
