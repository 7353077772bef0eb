"""Writes component files: standalone, in KernelBench format, one for each workload."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from textwrap import wrap

from runner.emit.code.class_writer import EmittedClass
from runner.emit.code.component_classes import ClassWriter
from runner.emit.code.line_breaks import WIDTH, fit_line, indent_lines
from runner.emit.inputs.input_drawing import ObservedNumbers, SafeNumbers, inputs_text
from runner.emit.naming.value_names import Namer, make_unique
from runner.graph.ir import TensorSpec
from runner.problems import find_operator_module, path_within_package
from runner.quantities import join_first
from runner.tree.document import LEVEL_FOLDER
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.workload import Workload

_LABEL = 13
_MOST_OPERATIONS = 24
_MOST_TENSORS = 24
_MOST_PARENTS = 3

LARGE_BYTES = 8 << 30
"""Size of inputs, outputs and weights above which a file checks the machine's memory first.

Without the check, running it might exhaust the memory of the machine.
"""

# The emitted text has no `try`: people start their answer from a copy of a component, and
# KernelBench's static checker refuses answers with one. A failure is a traceback and exit code 1.
_MAIN = """
if __name__ == "__main__":%s
    run_tests()
    print("PASS")
"""

_MEMORY_CHECK = """
    gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    assert gib > %(gib)s, f"needs %(gib)s GiB of memory, this machine has {gib:.1f}\""""

_TESTS = '''
def run_tests():
    """The output has the shape and dtype that this file documents."""
    torch.manual_seed(0)
    with torch.no_grad():
        output = Model().%(mode)s()(*get_inputs())
    assert [tuple(output.shape)] == get_expected_output_shape(), output.shape
    assert output.dtype == %(dtypes)s, output.dtype

'''

_TESTS_OF_OUTPUTS = '''
def run_tests():
    """The outputs have the shapes and dtypes that this file documents."""
    torch.manual_seed(0)
    with torch.no_grad():
        outputs = Model().%(mode)s()(*get_inputs())
    shapes = [tuple(output.shape) for output in outputs]
    assert shapes == get_expected_output_shape(), shapes
    assert [output.dtype for output in outputs] == %(dtypes)s

'''


_STORED_CALLS_NAME = "stored_calls"
_STORED_CALLS = '''
def stored_calls():
    """The model and the inputs of each place, with the values that are stored in values/."""
    folders = (folder / "values" for folder in Path(__file__).resolve().parents)
    values = next(folder for folder in folders if folder.is_dir())
    reader = runpy.run_path(str(values / "stored_values.py"))
    return reader["stored_calls"](values, Path(__file__).stem, Model)

'''

_LOOP_OVER_CALLS = """    torch.manual_seed(0)
    if os.environ.get("KDRUN_VALUES"):
        calls = stored_calls()
    else:
        calls = [(Model().%(mode)s(), get_inputs())]
    for model, inputs in calls:
"""


@dataclass(frozen=True)
class Emitter:
    """Context that all writers share: the program, its names and its workloads."""

    program: Program
    namer: Namer
    source: str
    """Name of the problem file, for the docstrings of components."""
    workloads: Mapping[int, Workload]
    replacement_draws: Mapping[str, SafeNumbers] = field(default_factory=dict)
    """Path of a component file -> how it draws its inputs, for files that draw unusual numbers."""
    observed_ranges: Mapping[str, ObservedNumbers] = field(default_factory=dict)
    """Range of each value in one run of the model, from which those files draw."""
    lines: Mapping[int, int | None] = field(default_factory=dict)
    """id() of a part -> line of the problem file with the part's call."""
    keeps_values: bool = False
    """Whether files can test themselves on values that are stored beside them."""

    def workload(self, part: Part) -> Workload:
        return self.workloads[id(part)]


@dataclass(frozen=True, slots=True)
class Component:
    """A component file: its workload, its text and its Model class."""

    workload: Workload
    text: str
    model_class: EmittedClass

    @property
    def path(self) -> str:
        return f"{LEVEL_FOLDER[self.workload.level]}/{self.workload.name}.py"


def write_component(emitter: Emitter, workload: Workload, parents: Sequence[str]) -> Component:
    """Return a workload's file, from its first instance; `parents` names the files that use it."""
    part = workload.first
    classes = ClassWriter(emitter.program, emitter.namer, emitter.workload, part)
    model_class = classes.model
    functions_text = problem_functions(emitter, part, model_class.inputs)
    classes_text = "\n\n\n".join(classes.texts)
    tests_text = _tests_text(emitter, part)
    main_text = main_block(emitter, part)
    pieces = [
        _docstring(emitter, workload, parents, model_class),
        _imports(classes_text + functions_text + tests_text + main_text),
        classes_text,
        "\n" + functions_text,
        tests_text,
    ]
    return Component(workload, "\n\n".join(pieces) + "\n\n" + main_text, model_class)


def _run_on_stored_values(text: str) -> str:
    """Return the text of run_tests() with a loop over the calls that it tests."""
    head, _, body = text.partition("    torch.manual_seed(0)\n")
    body = body.replace("Model().%(mode)s()(*get_inputs())", "model(*inputs)")
    return (
        head
        + _LOOP_OVER_CALLS
        + "".join(
            f"    {line}" if line.strip() else line for line in body.splitlines(keepends=True)
        )
    )


def _tests_text(emitter: Emitter, part: Part) -> str:
    program = emitter.program
    text = _TESTS if len(part.io.outputs) == 1 else _TESTS_OF_OUTPUTS
    if emitter.keeps_values:
        text = _STORED_CALLS + _run_on_stored_values(text)
    filled = text % {"mode": program.graph.mode, "dtypes": _dtypes_text(program, part)}
    return "\n".join(indent_lines(filled.strip("\n").splitlines(), 0))


def main_block(emitter: Emitter, part: Part) -> str:
    """Return the `__main__` block: a memory check if the part is large, then the tests."""
    gib = f"{_boundary_bytes(emitter, part) / 2**30:.1f}"
    return _MAIN % (_MEMORY_CHECK % {"gib": gib} if is_large(emitter, part) else "")


def is_large(emitter: Emitter, part: Part) -> bool:
    """Return whether inputs, outputs and weights are so large that the file checks memory."""
    return _boundary_bytes(emitter, part) > LARGE_BYTES


def _boundary_bytes(emitter: Emitter, part: Part) -> int:
    names = (*part.io.inputs, *part.io.outputs, *part.io.states)
    return sum(emitter.program.spec(name).nbytes for name in names)


def _imports(code: str) -> str:
    lines = ["import torch"]
    if "F." in code:
        lines.append("import torch.nn.functional as F")
    lines.append("from torch import nn")
    lines += _operator_imports(code)
    standard_text = standard_imports(code)
    return standard_text + "\n" * bool(standard_text) + "\n".join(lines) + "\n"


def _operator_imports(code: str) -> list[str]:
    """Return the imports of the packages that add the operators which a text calls."""
    namespaces = sorted(set(re.findall(r"\btorch\.ops\.(\w+)\.", code)))
    modules = {namespace: find_operator_module(namespace) for namespace in namespaces}
    return [
        f"import {module}  # adds torch.ops.{namespace}"
        for namespace, module in modules.items()
        if module != "torch"
    ]


def standard_imports(code: str) -> str:
    """Return the import statements for the uses of math and os in a text."""
    prefixes = {"math": "math.", "os": "os.sysconf"}
    if _STORED_CALLS_NAME in code:
        return "import os\nimport runpy\nfrom pathlib import Path\n"
    return "".join(f"import {name}\n" for name, prefix in prefixes.items() if prefix in code)


def component_path(emitter: Emitter, part: Part) -> str:
    """Return the path of a part's file in the decomposition."""
    return f"{LEVEL_FOLDER[part.level]}/{emitter.workload(part).name}.py"


def problem_functions(emitter: Emitter, part: Part, names: Sequence[str]) -> str:
    """Return the text of get_inputs, get_init_inputs and get_expected_output_shape."""
    replacement_draw = emitter.replacement_draws.get(component_path(emitter, part))
    parts = emitter.workload(part).parts
    statements = inputs_text(
        emitter.program, parts, names, replacement_draw, emitter.observed_ranges
    )
    lines = "\n".join(indent_lines(statements, 4))
    shapes = ", ".join(str(tuple(emitter.program.spec(n).shape)) for n in part.io.outputs)
    expected = "\n".join(fit_line(f"return [{shapes}]", 4))
    return (
        f"def get_inputs():\n{lines}\n\n\ndef get_init_inputs():\n    return []\n\n\n"
        f"def get_expected_output_shape():\n{expected}\n"
    )


def _dtypes_text(program: Program, part: Part) -> str:
    dtypes = [f"torch.{program.spec(n).dtype}" for n in part.io.outputs]
    if len(dtypes) == 1:
        return dtypes[0]
    if len(dtypes) > 2 and len(set(dtypes)) == 1:
        return f"[{dtypes[0]}] * {len(dtypes)}"
    return f"[{', '.join(dtypes)}]"


def output_names(namer: Namer, part: Part) -> list[str]:
    """Return distinct names of a part's outputs: the author's or torch's, else `output`."""
    names: list[str] = []
    for value in part.io.outputs:
        names.append(make_unique(namer.result_name(value) or "output", names))
    return names


def _docstring(
    emitter: Emitter, workload: Workload, parents: Sequence[str], model_class: EmittedClass
) -> str:
    program, part = emitter.program, workload.first
    instance_count = len(workload.parts)
    source = _find_source(emitter, part)
    source += f" ({part.module_path})" if part.module_path else ""
    source += f", the first of {instance_count} places" if instance_count > 1 else ""
    has_layers = any(child.level == "layer" for child in part.children)
    operations = part.children if has_layers else part.kernels()
    lines = [
        f'"""{workload.name}',
        "",
        *_docstring_row("Source", source),
        *_docstring_row("Level", workload.level),
        *_docstring_row("Parent", join_first(parents, _MOST_PARENTS) or "none, this is the root"),
        *_docstring_row(
            "Operations", _count_repetitions([operation.stem for operation in operations])
        ),
        *_tensor_rows(
            "Input", zip(model_class.inputs, (program.spec(n) for n in part.io.inputs), strict=True)
        ),
        *_tensor_rows(
            "Output",
            zip(
                output_names(emitter.namer, part) if len(part.io.outputs) > 1 else [""],
                (program.spec(n) for n in part.io.outputs),
                strict=True,
            ),
        ),
        *_tensor_rows(
            "Weight",
            _merge_weight_rows(
                (w.local, program.spec(part.io.states[w.position]))
                for w in model_class.weights
                if not w.sibling
            ),
        ),
        '"""',
    ]
    return "\n".join(lines)


def _merge_weight_rows(weights: Iterable[tuple[str, TensorSpec]]) -> list[tuple[str, TensorSpec]]:
    """Return rows of weights; if there are many, layers share a row: `layers.{0..3}.wq.weight`."""
    rows = [(name.split("."), spec) for name, spec in weights]
    if len(rows) > _MOST_TENSORS:
        for position in reversed(range(max(len(words) for words, _ in rows))):
            rows = _merge_rows(rows, position)
    return [(".".join(words), spec) for words, spec in rows]


def _merge_rows(
    rows: Sequence[tuple[list[str], TensorSpec]], position: int
) -> list[tuple[list[str], TensorSpec]]:
    """Return rows, merged if they only differ in the number at one position of their names."""
    numbers: dict[Hashable, list[str]] = {}
    names: dict[Hashable, tuple[list[str], TensorSpec]] = {}
    for words, spec in rows:
        has_number = position < len(words) and words[position].isdigit()
        key = (
            *words[:position],
            "" if has_number else tuple(words[position:][:1]),
            *words[position + 1 :],
            spec,
        )
        names.setdefault(key, (words, spec))
        numbers.setdefault(key, []).extend(words[position : position + has_number])
    return [
        (
            [*words[:position], _number_span(group_numbers), *words[position + 1 :]]
            if group_numbers
            else words,
            spec,
        )
        for (words, spec), group_numbers in zip(names.values(), numbers.values(), strict=True)
    ]


def _number_span(numbers: Sequence[str]) -> str:
    """Return `{0..3}` for 0, 1, 2, 3; `{0,2}` for numbers with gaps; a single number as it is."""
    if len(numbers) == 1:
        return numbers[0]
    values = [int(number) for number in numbers]
    if values == list(range(values[0], values[-1] + 1)):
        return f"{{{values[0]}..{values[-1]}}}"
    return f"{{{','.join(numbers)}}}"


def _count_repetitions(operations: Sequence[str]) -> str:
    """Return `linear, relu x 3, linear`: repetitions are counted, a long middle is left out."""
    runs = [(name, len(list(group))) for name, group in groupby(operations)]
    words = [name if count == 1 else f"{name} x {count}" for name, count in runs]
    if len(words) > _MOST_OPERATIONS:
        half = _MOST_OPERATIONS // 2
        words = [*words[:half], "...", *words[-half:], f"{len(operations)} in all"]
    return ", ".join(words)


def _docstring_row(label: str, text: str) -> list[str]:
    """Return a docstring's row as lines; a word too long to stand beside its label goes below."""
    indent = " " * _LABEL
    lines = wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )
    if len(lines[0]) > WIDTH:
        return [f"{label}:", *(line[_LABEL - 4 :] for line in lines)]
    return [f"{label + ':':<{_LABEL}}{lines[0].lstrip()}", *lines[1:]]


def _tensor_rows(label: str, named_specs: Iterable[tuple[str, TensorSpec]]) -> list[str]:
    """Return the lines of a row for each tensor; the name is empty if there is only one tensor."""
    lines = []
    rows = list(named_specs)
    for name, spec in rows[:_MOST_TENSORS]:
        layout = spec.canonical
        stride = "" if layout.contiguous else f", strides {list(layout.stride)}"
        title = f"{name}: " if name else ""
        lines += _docstring_row(label, f"{title}{list(spec.shape)} {spec.dtype}{stride}")
    if len(rows) > _MOST_TENSORS:
        lines += _docstring_row(label, f"... and {len(rows) - _MOST_TENSORS} more rows")
    return lines


def _find_source(emitter: Emitter, part: Part) -> str:
    """Return file and line of a part's call: in the problem file, else in a package."""
    if line := emitter.lines.get(id(part)):
        return f"{emitter.source}, line {line}"
    for i in reversed(part.operations):
        if origin := emitter.program.graph.operations[i].origin:
            return f"{path_within_package(origin.file)}, line {origin.statement}"
    return emitter.source
