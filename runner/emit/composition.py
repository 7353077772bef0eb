"""Writes the composition test, which rebuilds the whole model from its kernel files alone."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from runner.emit.code.class_body import ChildCall, ForwardItem
from runner.emit.code.class_writer import write_class
from runner.emit.code.line_breaks import WIDTH, fit_line, indent_lines
from runner.emit.component import Component, Emitter, main_block, standard_imports
from runner.emit.naming.class_names import class_names
from runner.emit.naming.value_names import identifier, make_unique
from runner.emit.steps import original_name
from runner.graph.ir import Ref
from runner.quantities import pluralize
from runner.tree.interface import Program
from runner.tree.part import Part, schedule

CHECKS = Path(__file__).with_name("checks.py").read_text(encoding="utf-8")
"""Text of checks.py, whose functions the steps and the composition test call."""

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
    """Return the text of `verification/composition_test.py`."""
    program = emitter.program
    kernels = list(root.kernels())
    names = {emitter.workload(kernel).name for kernel in kernels}
    classes = class_names(names)
    taken_names: set[str] = set()
    calls: dict[int, ChildCall] = {}
    for kernel in kernels:
        name = emitter.workload(kernel).name
        attribute = make_unique(_attribute_name(kernel), taken_names)
        taken_names.add(attribute)
        calls[id(kernel)] = ChildCall(
            kernel, attribute, classes[name], components[name].model_class.weights
        )
    inside = {i for kernel in kernels for i in kernel.operations}
    units = schedule(program, kernels, set(root.operations) - inside)
    items: list[ForwardItem] = [calls[id(u)] if isinstance(u, Part) else u for u in units]
    plain_call = program.graph.plain_call
    inputs = emitter.namer.parameter_names(root)
    target = f"({inputs[0]},)" if len(inputs) == 1 else ", ".join(inputs)
    composed_class = write_class(
        program,
        emitter.namer,
        "ComposedModel",
        root,
        items,
        docstring="The original, from kernels alone.",
        returns=lambda value: f"return {output_expression(program.graph.output, value)}",
        signature=None if plain_call else "self, *args, **kwargs",
        prologue=[] if plain_call or not inputs else [f"{target} = tensors((args, kwargs))"],
    )
    weights: dict[str, str] = {
        w.local: original_name(emitter, root, w) for w in composed_class.weights
    }
    kernel_lines = "\n".join(
        indent_lines((f'{classes[name]} = kernel("{name}")' for name in sorted(names)), 0)
    )
    main_text = main_block(emitter, root)
    head = _HEAD % {
        "title": title,
        "instances": pluralize(len(kernels), "kernel instance"),
        "files": pluralize(len(names), "file"),
        "standard": standard_imports(main_text),
    }
    helper = "" if plain_call or not inputs else f"{_tensors_function()}\n\n\n"
    return (
        f"{head}{kernel_lines}\n\n\n{helper}{composed_class.text}\n\n\n"
        + "# Parameter or buffer of ComposedModel -> that of the original.\n"
        + _weights_text(weights)
        + _TESTS % {"call": _comparison_call(program)}
        + main_text
    )


def _attribute_name(kernel: Part) -> str:
    """Return a kernel's attribute name: its module path, and its operation if that adds anything.

    `layers_0_attn_rope`.
    """
    path = identifier(kernel.module_path) if kernel.module_path else ""
    names_operation = kernel.name != kernel.stem or f"_{path}".endswith(f"_{kernel.stem}")
    return path if path and names_operation else identifier(f"{kernel.module_path}_{kernel.stem}")


def _tensors_function() -> str:
    """Return the source of `tensors` of checks.py, without type annotations."""
    tree = ast.parse(CHECKS)
    function = next(f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == "tensors")
    _, _, body = (ast.get_source_segment(CHECKS, function) or "").partition("\n")
    return f"def tensors({', '.join(argument.arg for argument in function.args.args)}):\n{body}"


def _weights_text(weights: Mapping[str, str]) -> str:
    if not weights:
        return "WEIGHTS = {}\n\n"
    rows = indent_lines((f"{json.dumps(k)}: {json.dumps(v)}," for k, v in weights.items()), 4)
    suppression = "  # noqa: E501"
    rows = [row + suppression if len(row) > WIDTH else row for row in rows]
    return "\n".join(["WEIGHTS = {", *rows, "}"]) + "\n\n"


def _comparison_call(program: Program) -> str:
    """Return the call that compares with the original.

    A program specialised on input values equals the original only for the captured values, so it is
    compared with seed 0 alone.
    """
    training = ", training=True" if program.graph.mode == "train" else ""
    options = training + (", seeds=(0,)" if program.graph.specialisations else "")
    call = f'checks["compare_with_original"](original, ComposedModel, WEIGHTS{options})'
    return "\n".join(fit_line(call, 4))


def output_expression(output: object, expression: Callable[[str], str]) -> str:
    """Return the model's nested output as Python: the author's tuples, lists and dicts.

    `expression` gives the Python expression for the name of a value.
    """
    if isinstance(output, Ref):
        return expression(output.name)
    if isinstance(output, dict):
        return (
            "{"
            + ", ".join(f"{k!r}: {output_expression(v, expression)}" for k, v in output.items())
            + "}"
        )
    if isinstance(output, list):
        return "[" + ", ".join(output_expression(v, expression) for v in output) + "]"
    if isinstance(output, tuple):
        inner = ", ".join(output_expression(v, expression) for v in output)
        return f"({inner},)" if len(output) == 1 else f"({inner})"
    return repr(output)
