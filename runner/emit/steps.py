"""Writes the steps: each parent, rewritten in terms of its children, computing the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from runner.emit.code.class_body import ChildCall
from runner.emit.code.class_writer import write_class
from runner.emit.code.line_breaks import WIDTH
from runner.emit.code.module_attributes import Weight
from runner.emit.component import Component, Emitter, functions, main, standard_imports
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
    """A folder under `steps/`: file name -> text."""

    name: str
    files: dict[str, str]


def write_steps(emitter: Emitter, components: Mapping[str, Component]) -> list[Step]:
    """One step for each parent workload, larger levels first."""
    parents = [c for c in components.values() if c.workload.first.children]
    parents.sort(key=lambda c: -LEVEL_NUMBER[c.workload.level])
    digits = max(2, len(str(len(parents))))  # so that a listing sorts them
    numbers = (f"{n:0{digits}}" for n in range(1, len(parents) + 1))
    return [_step(emitter, n, p, components) for n, p in zip(numbers, parents, strict=True)]


def _step(
    emitter: Emitter, number: str, parent: Component, components: Mapping[str, Component]
) -> Step:
    part = parent.workload.first
    children = {
        w.name: components[w.name] for child in part.children for w in [emitter.workload(child)]
    }
    classes = class_names(children)
    names = child_names(part)
    calls = {
        id(child): ChildCall(child, names[id(child)], classes[emitter.workload(child).name],
                        children[emitter.workload(child).name].written.weights)
        for child in part.children
    }  # fmt: skip
    inside = {i for child in part.children for i in child.operations}
    units = schedule(emitter.program, part.children, set(part.operations) - inside)
    items = [calls[id(u)] if isinstance(u, Part) else u for u in units]
    written = write_class(emitter.program, emitter.namer, "RefactoredModel", part, items)
    imports = "\n".join(_import(name, classes[name]) for name in sorted(children, key=_natural))
    made = functions(emitter, part, written.inputs)
    run = main(emitter, part)
    training = ", training=True" if emitter.program.graph.mode == "train" else ""
    text = "\n\n".join(
        [
            _TITLE.format(parent.workload.name, len(part.children)),
            standard_imports(made + run)
            + "import runpy\nfrom pathlib import Path\n\nimport torch\n"
            + ("import torch.nn.functional as F\n" if "F." in written.text + made else "")
            + f"from torch import nn\n\n{imports}\n",
            written.text,
            "\n" + made,
            _TESTS.strip("\n") % training,
        ]
    )
    weights = weight_map(emitter, part, parent.written.weights, written.weights)
    level = max((child.level for child in part.children), key=lambda level: LEVEL_NUMBER[level])
    return Step(
        f"step_{number}_{parent.workload.name}_to_{level}",
        {
            "original.py": parent.text,
            "refactored.py": text + "\n\n" + run,
            "weight_map.json": json.dumps(weights, indent=1) + "\n",
            **{f"children/{name}.py": child.text for name, child in children.items()},
        },
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """`linear_64` before `linear_128`."""
    return [
        (0, p) if not p.isdigit() else (-1, p) if p[0] == "0" else (int(p), "")
        for p in re.split(r"(\d+)", name)
    ]


def _import(name: str, cls: str) -> str:
    line = f"from children.{name} import Model as {cls}"
    if len(line) <= WIDTH:
        return line
    opened = f"from children.{name} import ("
    allowed = "  # noqa: E501" if len(opened) > WIDTH else ""
    return f"{opened}{allowed}\n    Model as {cls},\n)"


def weight_map(
    emitter: Emitter, part: Part, parent: tuple[Weight, ...], refactored: tuple[Weight, ...]
) -> dict[str, str | list[str]]:
    """Name in the parent's class -> name in the refactored one, or names where several use it.

    Where the parent has several names for one weight as well, each use takes the next of them.
    """
    uses: dict[str, list[str]] = {}
    for weight in refactored:
        uses.setdefault(original_name(emitter, part, weight), []).append(weight.local)
    names: dict[str, list[str]] = {}
    for weight in parent:
        names.setdefault(original_name(emitter, part, weight), []).append(weight.local)
    found: dict[str, str | list[str]] = {}
    for weight in parent:
        original = original_name(emitter, part, weight)
        place, last = names[original].index(weight.local), len(names[original]) - 1
        own = uses[original][place : None if place == last else place + 1] or uses[original][-1:]
        found[weight.local] = own[0] if len(own) == 1 else own
    return found


def original_name(emitter: Emitter, part: Part, weight: Weight) -> str:
    """What an instance's weight is called in the author's model."""
    path = emitter.program.graph.states[part.io.states[weight.position]].path
    return f"{path.rpartition('.')[0]}.{weight.sibling}".lstrip(".") if weight.sibling else path
