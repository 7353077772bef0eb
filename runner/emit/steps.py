"""Writes the steps: each rewrites one parent in terms of its children, which computes the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from runner.emit.code.class_body import Call
from runner.emit.code.class_writer import write_class
from runner.emit.code.line_breaks import WIDTH
from runner.emit.code.module_attributes import Weight
from runner.emit.component import (
    Component,
    Emitter,
    main_block,
    problem_functions,
    standard_imports,
)
from runner.emit.naming.class_names import class_names
from runner.emit.naming.value_names import child_names
from runner.tree.document import LEVEL_NUMBER
from runner.tree.part import Part, schedule

_TITLE = '''"""{}

Put together from its {} children.
"""'''

_TESTS = '''
def run_tests():
    """With the same weights and inputs, this model gives what its parent gives."""
    folder = Path(__file__).resolve().parent
    checks = runpy.run_path(str(folder.parents[1] / "verification" / "checks.py"))
    checks["compare_with_parent"](folder, RefactoredModel, get_inputs%s)

'''


@dataclass(frozen=True, slots=True)
class Step:
    """A folder under `steps/`: its name, and file name -> text."""

    name: str
    files: dict[str, str]


def write_steps(emitter: Emitter, components: Mapping[str, Component]) -> list[Step]:
    """Return one step for each workload with children, highest level first."""
    parents = [c for c in components.values() if c.workload.first.children]
    parents.sort(key=lambda c: -LEVEL_NUMBER[c.workload.level])
    digits = max(2, len(str(len(parents))))  # zeros in front let a directory listing sort them
    numbers = (f"{n:0{digits}}" for n in range(1, len(parents) + 1))
    return [_write_step(emitter, n, p, components) for n, p in zip(numbers, parents, strict=True)]


def _write_step(
    emitter: Emitter, number: str, parent: Component, components: Mapping[str, Component]
) -> Step:
    part = parent.workload.first
    children = {
        w.name: components[w.name] for child in part.children for w in [emitter.workload(child)]
    }
    classes = class_names(children)
    names = child_names(part)
    calls = {
        id(child): Call(child, names[id(child)], classes[emitter.workload(child).name],
                        children[emitter.workload(child).name].model_class.weights)
        for child in part.children
    }  # fmt: skip
    child_operations = {i for child in part.children for i in child.operations}
    units = schedule(emitter.program, part.children, set(part.operations) - child_operations)
    items = [calls[id(u)] if isinstance(u, Part) else u for u in units]
    refactored = write_class(emitter.program, emitter.namer, "RefactoredModel", part, items)
    imports = "\n".join(
        _import_statement(name, classes[name]) for name in sorted(children, key=_natural_sort_key)
    )
    functions_text = problem_functions(emitter, part, refactored.inputs)
    main_text = main_block(emitter, part)
    training = ", training=True" if emitter.program.graph.mode == "train" else ""
    text = "\n\n".join(
        [
            _TITLE.format(parent.workload.name, len(part.children)),
            standard_imports(functions_text + main_text)
            + "import runpy\nfrom pathlib import Path\n\nimport torch\n"
            + (
                "import torch.nn.functional as F\n"
                if "F." in refactored.text + functions_text
                else ""
            )
            + f"from torch import nn\n\n{imports}\n",
            refactored.text,
            "\n" + functions_text,
            _TESTS.strip("\n") % training,
        ]
    )
    weights = weight_map(emitter, part, parent.model_class.weights, refactored.weights)
    level = max((child.level for child in part.children), key=lambda level: LEVEL_NUMBER[level])
    return Step(
        f"step_{number}_{parent.workload.name}_to_{level}",
        {
            "original.py": parent.text,
            "refactored.py": text + "\n\n" + main_text,
            "weight_map.json": json.dumps(weights, indent=1) + "\n",
            **{f"children/{name}.py": child.text for name, child in children.items()},
        },
    )


def _natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts `linear_64` before `linear_128`."""
    return [
        (0, piece) if not piece.isdigit() else (-1, piece) if piece[0] == "0" else (int(piece), "")
        for piece in re.split(r"(\d+)", name)
    ]


def _import_statement(name: str, cls: str) -> str:
    line = f"from children.{name} import Model as {cls}"
    if len(line) <= WIDTH:
        return line
    opening = f"from children.{name} import ("
    suppression = "  # noqa: E501" if len(opening) > WIDTH else ""
    return f"{opening}{suppression}\n    Model as {cls},\n)"


def weight_map(
    emitter: Emitter, part: Part, parent: tuple[Weight, ...], refactored: tuple[Weight, ...]
) -> dict[str, str | list[str]]:
    """Return weight name in the parent's class -> name or names in the refactored class.

    A weight with several uses has several names in the refactored class. If the parent has several
    names for it too, each of them maps to the next use, and the last to all remaining uses.
    """
    uses: dict[str, list[str]] = {}
    for weight in refactored:
        uses.setdefault(original_name(emitter, part, weight), []).append(weight.local)
    names: dict[str, list[str]] = {}
    for weight in parent:
        names.setdefault(original_name(emitter, part, weight), []).append(weight.local)
    mapping: dict[str, str | list[str]] = {}
    for weight in parent:
        original = original_name(emitter, part, weight)
        position, last_position = names[original].index(weight.local), len(names[original]) - 1
        refactored_names = (
            uses[original][position : None if position == last_position else position + 1]
            or uses[original][-1:]
        )
        mapping[weight.local] = (
            refactored_names[0] if len(refactored_names) == 1 else refactored_names
        )
    return mapping


def original_name(emitter: Emitter, part: Part, weight: Weight) -> str:
    """Return the name of an instance's weight in the author's model."""
    path = emitter.program.graph.states[part.io.states[weight.position]].path
    return f"{path.rpartition('.')[0]}.{weight.sibling}".lstrip(".") if weight.sibling else path
