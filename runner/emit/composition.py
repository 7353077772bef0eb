"""Write verification/: the test of the whole model, made of kernel files alone, and checks.py."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runner.emit.code.class_body import Call, Item
from runner.emit.code.class_writer import write_class
from runner.emit.code.line_breaks import WIDTH, fitted, indented
from runner.emit.component import Component, Emitter, main, standard_imports
from runner.emit.naming.class_names import class_names
from runner.emit.naming.value_names import identifier, unique
from runner.emit.steps import original_name
from runner.graph.ir import Ref
from runner.quantities import pluralize
from runner.tree.interface import Program
from runner.tree.part import Part, schedule

CHECKS = Path(__file__).with_name("checks.py").read_text(encoding="utf-8")
"""Text of the checks that steps and the composition test call."""

_HEAD = '''"""%(title)s, put together from its kernel files alone, computes what the original does.

%(instances)s from %(files)s.
"""

%(standard)simport runpy
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).resolve().parent


def kernel(name):
    """The Model of a kernel file."""
    return runpy.run_path(str(HERE.parent / "level_0_kernel" / f"{name}.py"))["Model"]


'''

_TESTS = '''
def run_tests():
    """The composed model gives what the original gives."""
    checks = runpy.run_path(str(HERE / "checks.py"))
    original = HERE.parent / "original.py"
%(call)s

'''


def write_composition(
    emitter: Emitter, root: Part, components: Mapping[str, Component], title: str
) -> str:
    """The text of `verification/composition_test.py`."""
    program = emitter.program
    kernels = list(root.kernels())
    names = {emitter.workload(k).name for k in kernels}
    classes = class_names(names)
    taken: set[str] = set()
    calls: dict[int, Call] = {}
    for k in kernels:
        name = emitter.workload(k).name
        attribute = unique(_attribute(k), taken)
        taken.add(attribute)
        calls[id(k)] = Call(k, attribute, classes[name], components[name].written.weights)
    inside = {i for k in kernels for i in k.operations}
    units = schedule(program, kernels, set(root.operations) - inside)
    items: list[Item] = [calls[id(u)] if isinstance(u, Part) else u for u in units]
    plain = program.graph.plain_call
    inputs = emitter.namer.parameters(root)
    written = write_class(
        program,
        emitter.namer,
        "ComposedModel",
        root,
        items,
        docstring="The original, from kernels alone.",
        returns=lambda value: f"return {structured(program.graph.output, value)}",
        signature=None if plain else "self, *args, **kwargs",
        prologue=[] if plain or not inputs else [f"{_unpacked(inputs)} = tensors((args, kwargs))"],
    )
    weights: dict[str, str] = {w.local: original_name(emitter, root, w) for w in written.weights}
    made = "\n".join(indented((f'{classes[name]} = kernel("{name}")' for name in sorted(names)), 0))
    run = main(emitter, root)
    head = _HEAD % {
        "title": title,
        "instances": pluralize(len(kernels), "kernel instance"),
        "files": pluralize(len(names), "file"),
        "standard": standard_imports(run),
    }
    helper = "" if plain or not inputs else f"{_function_of_checks('tensors')}\n\n\n"
    return (
        f"{head}{made}\n\n\n{helper}{written.text}\n\n\n"
        + "# Parameter or buffer of ComposedModel -> that of the original.\n"
        + _mapping(weights)
        + _TESTS % {"call": _call(program)}
        + run
    )


def _attribute(kernel: Part) -> str:
    """`layers_0_attn_rope`: where a kernel runs, and what it is if its module does not say so."""
    path = identifier(kernel.module_path) if kernel.module_path else ""
    told = kernel.name != kernel.stem or f"_{path}".endswith(f"_{kernel.stem}")
    return path if path and told else identifier(f"{kernel.module_path}_{kernel.stem}")


def _function_of_checks(name: str) -> str:
    """Source of one function of checks.py, without the types of what it takes and returns."""
    tree = ast.parse(CHECKS)
    function = next(f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == name)
    _, _, body = (ast.get_source_segment(CHECKS, function) or "").partition("\n")
    return f"def {name}({', '.join(each.arg for each in function.args.args)}):\n{body}"


def _unpacked(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) > 1 else f"({names[0]},)"


def _mapping(weights: Mapping[str, str]) -> str:
    if not weights:
        return "WEIGHTS = {}\n\n"
    rows = indented((f"{json.dumps(k)}: {json.dumps(v)}," for k, v in weights.items()), 4)
    wide = "  # noqa: E501"
    rows = [row + wide if len(row) > WIDTH else row for row in rows]
    return "\n".join(["WEIGHTS = {", *rows, "}"]) + "\n\n"


def _call(program: Program) -> str:
    """A program that values steered is the original for the values that it was captured with."""
    training = ", training=True" if program.graph.mode == "train" else ""
    options = training + (", seeds=(0,)" if program.graph.specialisations else "")
    call = f'checks["compare_with_original"](original, ComposedModel, WEIGHTS{options})'
    return "\n".join(fitted(call, 4))


def structured(output: object, value: Callable[[str], str]) -> str:
    """The returned structure as Python: tuples, lists and dicts as the author returns them."""
    if isinstance(output, Ref):
        return value(output.name)
    if isinstance(output, dict):
        return "{" + ", ".join(f"{k!r}: {structured(v, value)}" for k, v in output.items()) + "}"
    if isinstance(output, list):
        return "[" + ", ".join(structured(v, value) for v in output) + "]"
    if isinstance(output, tuple):
        inner = ", ".join(structured(v, value) for v in output)
        return f"({inner},)" if len(output) == 1 else f"({inner})"
    return repr(output)
