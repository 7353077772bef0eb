"""Decompositions of a given expression, or of a line of kernels, over one matrix of 4 × 16."""

import textwrap
from pathlib import Path
from typing import Any

from decompositions import Decomposition
from files_by_hand import component, composed, node, refactored

SHAPE = (4, 16)
Stage = tuple[str, str, str]
"""Name of the kernel's file, its module (`nn.Linear(16, 16)`, or none), its expression."""

LINEAR: Stage = ("linear", "nn.Linear(16, 16)", "self.op(x)")
RELU: Stage = ("relu", "", "torch.relu(x)")
TANH: Stage = ("tanh", "", "torch.tanh(x)")
NORM: Stage = ("layer_norm", "nn.LayerNorm(16)", "self.op(x)")
SOFTMAX: Stage = ("softmax", "", "torch.softmax(x, dim=-1)")


def lone(
    directory: Path,
    original: str,
    kernel: str | None = None,
    *,
    init: str = "",
    weights: tuple[str, ...] = (),
    inputs: tuple[str, ...] = ("torch.randn(4, 16)",),
    shapes: tuple[tuple[int, ...], ...] = (SHAPE,),
    dtypes: tuple[str, ...] | None = None,
    output: tuple[int, ...] = SHAPE,
    dtype: str = "float32",
    level: str = "custom",
) -> Decomposition:
    """A problem that returns an expression of `x` (and `y`, `z`), and one kernel file for it.

    `kernel`: the expression in the file, where it is another. `weights`: names in `init`.
    """
    made = Decomposition(directory)
    arguments = ", ".join("xyz"[: len(inputs)])
    drawn = ", ".join(inputs)
    made.write("original.py", _problem(init, f"return {original}", drawn, arguments))
    path = "level_0_kernel/kernel.py"
    forward = f"return {kernel or original}"
    made.write(path, component(init, forward, drawn, str(output), arguments))
    names = {f"kernel.{name}": name for name in weights}
    call = f"return self.kernel({arguments})"
    made.write(
        "verification/composition_test.py",
        composed({"kernel": "Kernel"}, "self.kernel = Kernel()", call, names, arguments),
    )
    root = node(path, "kernel", list(shapes), [output], dtype=dtype, input_dtypes=_list(dtypes))
    made.tree({"root": root})
    made.edit_tree(lambda tree: tree["metadata"].update(source_level=level))
    return made


def line(
    directory: Path, stages: list[Stage], level: str = "fusion", listed: list[int] | None = None
) -> Decomposition:
    """A component whose children are kernels, each on what the one before it gives.

    `listed`: the order of the children in the tree, where it is another.
    """
    made = Decomposition(directory)
    modules = "\n".join(f"self.op_{n} = {m}" for n, (_, m, _) in enumerate(stages) if m)
    calls = [f"x = {text.replace('self.op', f'self.op_{n}')}" for n, (_, _, text) in _nth(stages)]
    body = "\n".join([*calls, "return x"])
    drawn, shape = "torch.randn(4, 16)", "(4, 16)"
    made.write("original.py", _problem(modules, body, drawn, "x"))
    number = ("kernel", "fusion", "layer", "model").index(level)
    root = f"level_{number}_{level}/whole.py"
    made.write(root, component(modules, body, drawn, shape))
    classes = {name: name.title().replace("_", "") for name, _, _ in stages}
    for name, module, text in stages:
        init = f"self.op = {module}" if module else ""
        made.write(f"level_0_kernel/{name}.py", component(init, f"return {text}", drawn, shape))
    weights = {
        f"stages.{n}.op.{kind}": f"op_{n}.{kind}"
        for n, (_, module, _) in _nth(stages)
        for kind in ("weight", "bias")
        if module
    }
    each = ", ".join(f"{classes[name]}()" for name, _, _ in stages)
    init = f"self.stages = nn.ModuleList([{each}])"
    forward = "for stage in self.stages:\n    x = stage(x)\nreturn x"
    files = [f"level_0_kernel/{name}.py" for name in classes]
    made.step("step_1_whole_to_kernel", root, files, refactored(classes, init, forward), weights)
    made.write("verification/composition_test.py", composed(classes, init, forward, weights))
    ids = [f"root.{n}" for n in listed or range(len(stages))]
    own = {name: name for name in weights.values()}
    nodes: dict[str, Any] = {
        "root": node(root, level, [SHAPE], [SHAPE], children=tuple(ids), weights=own)
    }
    for n, (name, _, _) in _nth(stages):
        nodes[f"root.{n}"] = node(f"level_0_kernel/{name}.py", "kernel", [SHAPE], [SHAPE])
    made.tree(nodes)
    return made


def _problem(init: str, body: str, drawn: str, arguments: str) -> str:
    modules = textwrap.indent(textwrap.dedent(init).strip() or "pass", " " * 8)
    return f'''"""A problem."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{modules}

    def forward(self, {arguments}):
{textwrap.indent(body, " " * 8)}


def get_inputs():
    return [{drawn}]


def get_init_inputs():
    return []
'''


def _nth(stages: list[Stage]) -> list[tuple[int, Stage]]:
    return list(enumerate(stages))


def _list(dtypes: tuple[str, ...] | None) -> list[str] | None:
    return list(dtypes) if dtypes else None
