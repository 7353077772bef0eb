"""Writes component files: one workload each, standing alone, in KernelBench format."""

from __future__ import annotations

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
from runner.problems import within_package
from runner.tree.document import LEVEL_FOLDER
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.workload import Workload

_LABEL = 13
_MOST_OPERATIONS = 24
_MOST_TENSORS = 24
_MOST_PARENTS = 3

LARGE_BYTES = 8 << 30
"""A file that holds more looks first whether the machine has it: without, it may take all down."""

# No `try`: people copy a component to begin an answer, and KernelBench's static checker refuses an
# answer that has one. Without it, a failure is a traceback, and the exit code is 1 all the same.
_MAIN = """
if __name__ == "__main__":%s
    run_tests()
    print("PASS")
"""

_LARGE = """
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

_TESTS_OF_SEVERAL = '''
def run_tests():
    """The outputs have the shapes and dtypes that this file documents."""
    torch.manual_seed(0)
    with torch.no_grad():
        outputs = Model().%(mode)s()(*get_inputs())
    shapes = [tuple(output.shape) for output in outputs]
    assert shapes == get_expected_output_shape(), shapes
    assert [output.dtype for output in outputs] == %(dtypes)s

'''


@dataclass(frozen=True)
class Emitter:
    """What every written file needs to know."""

    program: Program
    namer: Namer
    source: str
    """Name of the problem file, for docstrings."""
    workloads: Mapping[int, Workload]
    tame: Mapping[str, SafeNumbers] = field(default_factory=dict)
    """Component files that draw other numbers than usual ones."""
    arrived: Mapping[str, ObservedNumbers] = field(default_factory=dict)
    """The range of each value in one run of the model; those files draw from it."""
    lines: Mapping[int, int | None] = field(default_factory=dict)
    """Line of the problem file on which the call of each part stands, by the part's id()."""

    def workload(self, part: Part) -> Workload:
        return self.workloads[id(part)]


@dataclass(frozen=True, slots=True)
class Component:
    """A component file and what others must know to use it."""

    workload: Workload
    text: str
    written: EmittedClass

    @property
    def path(self) -> str:
        return f"{LEVEL_FOLDER[self.workload.level]}/{self.workload.name}.py"


def write_component(emitter: Emitter, workload: Workload, parents: Sequence[str]) -> Component:
    """Write the file of a workload from its first instance; `parents` are the files that use it."""
    part = workload.first
    classes = ClassWriter(emitter.program, emitter.namer, emitter.workload, part)
    written = classes.model
    made = functions(emitter, part, written.inputs)
    classes_text = "\n\n\n".join(classes.texts)
    run = main(emitter, part)
    pieces = [
        _docstring(emitter, workload, parents, written),
        _imports(classes_text + made + run),
        classes_text,
        "\n" + made,
        _tests(emitter.program, part),
    ]
    return Component(workload, "\n\n".join(pieces) + "\n\n" + run, written)


def _tests(program: Program, part: Part) -> str:
    text = _TESTS if len(part.io.outputs) == 1 else _TESTS_OF_SEVERAL
    filled = text % {"mode": program.graph.mode, "dtypes": _dtypes(program, part)}
    return "\n".join(indent_lines(filled.strip("\n").splitlines(), 0))


def main(emitter: Emitter, part: Part) -> str:
    """What a file does where it is run: its tests, if the machine can hold the part."""
    gib = f"{_held_bytes(emitter, part) / 2**30:.1f}"
    return _MAIN % (_LARGE % {"gib": gib} if is_large(emitter, part) else "")


def is_large(emitter: Emitter, part: Part) -> bool:
    """Whether what goes in and comes out takes so much that its tests have to mind it."""
    return _held_bytes(emitter, part) > LARGE_BYTES


def _held_bytes(emitter: Emitter, part: Part) -> int:
    held = (*part.io.inputs, *part.io.outputs, *part.io.states)
    return sum(emitter.program.spec(name).nbytes for name in held)


def _imports(used: str) -> str:
    lines = ["import torch"]
    if "F." in used:
        lines.append("import torch.nn.functional as F")
    lines.append("from torch import nn")
    standard = standard_imports(used)
    return standard + "\n" * bool(standard) + "\n".join(lines) + "\n"


def standard_imports(used: str) -> str:
    """Import statements for what a text uses of math and os."""
    uses = {"math": "math.", "os": "os.sysconf"}
    return "".join(f"import {name}\n" for name, use in uses.items() if use in used)


def component_path(emitter: Emitter, part: Part) -> str:
    """A part's file in the decomposition."""
    return f"{LEVEL_FOLDER[part.level]}/{emitter.workload(part).name}.py"


def functions(emitter: Emitter, part: Part, names: Sequence[str]) -> str:
    """get_inputs, get_init_inputs and get_expected_output_shape."""
    tame = emitter.tame.get(component_path(emitter, part))
    parts = emitter.workload(part).parts
    statements = inputs_text(emitter.program, parts, names, tame, emitter.arrived)
    lines = "\n".join(indent_lines(statements, 4))
    shapes = ", ".join(str(tuple(emitter.program.spec(n).shape)) for n in part.io.outputs)
    expected = "\n".join(fit_line(f"return [{shapes}]", 4))
    return (
        f"def get_inputs():\n{lines}\n\n\ndef get_init_inputs():\n    return []\n\n\n"
        f"def get_expected_output_shape():\n{expected}\n"
    )


def _dtypes(program: Program, part: Part) -> str:
    dtypes = [f"torch.{program.spec(n).dtype}" for n in part.io.outputs]
    if len(dtypes) == 1:
        return dtypes[0]
    if len(dtypes) > 2 and len(set(dtypes)) == 1:
        return f"[{dtypes[0]}] * {len(dtypes)}"
    return f"[{', '.join(dtypes)}]"


def output_names(namer: Namer, part: Part) -> list[str]:
    """Names of what a part gives back: the author's or torch's, else `output`; each once."""
    names: list[str] = []
    for value in part.io.outputs:
        names.append(make_unique(namer.result_name(value) or "output", names))
    return names


def _docstring(
    emitter: Emitter, workload: Workload, parents: Sequence[str], written: EmittedClass
) -> str:
    program, part = emitter.program, workload.first
    places = len(workload.parts)
    where = _find_source(emitter, part)
    where += f" ({part.module_path})" if part.module_path else ""
    where += f", the first of {places} places" if places > 1 else ""
    has_layers = any(child.level == "layer" for child in part.children)
    operations = part.children if has_layers else part.kernels()
    lines = [
        f'"""{workload.name}',
        "",
        *_row("Source", where),
        *_row("Level", workload.level),
        *_row("Parent", _some(parents, _MOST_PARENTS) or "none, this is the root"),
        *_row("Operations", _listed([operation.stem for operation in operations])),
        *_shapes(
            "Input", zip(written.inputs, (program.spec(n) for n in part.io.inputs), strict=True)
        ),
        *_shapes(
            "Output",
            zip(
                output_names(emitter.namer, part) if len(part.io.outputs) > 1 else [""],
                (program.spec(n) for n in part.io.outputs),
                strict=True,
            ),
        ),
        *_shapes(
            "Weight",
            _alike(
                (w.local, program.spec(part.io.states[w.position]))
                for w in written.weights
                if not w.sibling
            ),
        ),
        '"""',
    ]
    return "\n".join(lines)


def _some(names: Sequence[str], most: int) -> str:
    """`a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _alike(weights: Iterable[tuple[str, TensorSpec]]) -> list[tuple[str, TensorSpec]]:
    """Weights; where there are many, equal layers' share a row: `layers.{0..3}.wq.weight`."""
    rows = [(name.split("."), spec) for name, spec in weights]
    if len(rows) > _MOST_TENSORS:
        for place in reversed(range(max(len(words) for words, _ in rows))):
            rows = _merged(rows, place)
    return [(".".join(words), spec) for words, spec in rows]


def _merged(
    rows: Sequence[tuple[list[str], TensorSpec]], place: int
) -> list[tuple[list[str], TensorSpec]]:
    """Rows; those that only differ in the number at one place of their names are one."""
    numbers: dict[Hashable, list[str]] = {}
    names: dict[Hashable, tuple[list[str], TensorSpec]] = {}
    for words, spec in rows:
        numbered = place < len(words) and words[place].isdigit()
        key = (
            *words[:place],
            "" if numbered else tuple(words[place:][:1]),
            *words[place + 1 :],
            spec,
        )
        names.setdefault(key, (words, spec))
        numbers.setdefault(key, []).extend(words[place : place + numbered])
    return [
        ([*words[:place], _span(found), *words[place + 1 :]] if found else words, spec)
        for (words, spec), found in zip(names.values(), numbers.values(), strict=True)
    ]


def _span(numbers: Sequence[str]) -> str:
    """`{0..3}` for 0, 1, 2, 3; `{0,2}` for others; a single one as it is."""
    if len(numbers) == 1:
        return numbers[0]
    values = [int(number) for number in numbers]
    if values == list(range(values[0], values[-1] + 1)):
        return f"{{{values[0]}..{values[-1]}}}"
    return f"{{{','.join(numbers)}}}"


def _listed(operations: Sequence[str]) -> str:
    """`linear, relu x 3, linear`: runs of one are counted, the middle of many is left out."""
    runs = [(name, len(list(same))) for name, same in groupby(operations)]
    words = [name if count == 1 else f"{name} x {count}" for name, count in runs]
    if len(words) > _MOST_OPERATIONS:
        half = _MOST_OPERATIONS // 2
        words = [*words[:half], "...", *words[-half:], f"{len(operations)} in all"]
    return ", ".join(words)


def _row(label: str, text: str) -> list[str]:
    """A line of a docstring, or several: a word that does not fit beside the label goes below."""
    indent = " " * _LABEL
    lines = wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )
    if len(lines[0]) > WIDTH:
        return [f"{label}:", *(line[_LABEL - 4 :] for line in lines)]
    return [f"{label + ':':<{_LABEL}}{lines[0].lstrip()}", *lines[1:]]


def _shapes(label: str, named: Iterable[tuple[str, TensorSpec]]) -> list[str]:
    """A row for each tensor; one without a name is the only one."""
    lines = []
    rows = list(named)
    for name, spec in rows[:_MOST_TENSORS]:
        stride = "" if spec.contiguous else f", strides {list(spec.stride)}"
        title = f"{name}: " if name else ""
        lines += _row(label, f"{title}{list(spec.shape)} {spec.dtype}{stride}")
    if len(rows) > _MOST_TENSORS:
        lines += _row(label, f"... and {len(rows) - _MOST_TENSORS} more rows")
    return lines


def _find_source(emitter: Emitter, part: Part) -> str:
    """Return file and line of the call of a part: in the problem file, else in a package."""
    if line := emitter.lines.get(id(part)):
        return f"{emitter.source}, line {line}"
    for i in reversed(part.operations):
        if origin := emitter.program.graph.operations[i].origin:
            return f"{within_package(origin.file)}, line {origin.statement}"
    return emitter.source
