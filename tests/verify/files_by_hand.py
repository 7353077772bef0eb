"""Files of a decomposition that tests write: components, steps, compositions, nodes of the tree."""

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def component(init: str, forward: str, inputs: str, outputs: str, arguments: str = "x") -> str:
    """A component file's text."""
    body = textwrap.indent(textwrap.dedent(forward).strip(), " " * 8)
    modules = textwrap.indent(textwrap.dedent(init).strip() or "pass", " " * 8)
    return f'''"""A component."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{modules}

    def forward(self, {arguments}):
{body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []


def get_expected_output_shape():
    return [{outputs}]


def run_tests():
    assert tuple(Model()(*get_inputs()).shape) == get_expected_output_shape()[0]
'''


def refactored(children: dict[str, str], init: str, forward: str, arguments: str = "x") -> str:
    """A refactored.py; `children`: file name without .py -> class name."""
    imports = "\n".join(
        f"from children.{file} import Model as {cls}" for file, cls in children.items()
    )
    body = textwrap.indent(textwrap.dedent(forward).strip(), " " * 8)
    modules = textwrap.indent(textwrap.dedent(init).strip(), " " * 8)
    return f"""import torch
from torch import nn

{imports}


class RefactoredModel(nn.Module):
    def __init__(self):
        super().__init__()
{modules}

    def forward(self, {arguments}):
{body}


def get_init_inputs():
    return []
"""


def composed(
    kernels: dict[str, str], init: str, forward: str, weights: dict[str, str], arguments: str = "x"
) -> str:
    """A composition_test.py; `kernels`: file name without .py -> class name."""
    loads = "\n".join(f'{cls} = _kernel("{file}")' for file, cls in kernels.items())
    body = textwrap.indent(textwrap.dedent(forward).strip(), " " * 8)
    modules = textwrap.indent(textwrap.dedent(init).strip(), " " * 8)
    return f"""import importlib.util
from pathlib import Path

import torch
from torch import nn


def _kernel(name):
    path = Path(__file__).resolve().parent.parent / "level_0_kernel" / f"{{name}}.py"
    spec = importlib.util.spec_from_file_location(f"kernel_{{name}}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model


{loads}

WEIGHTS = {weights!r}


class ComposedModel(nn.Module):
    def __init__(self):
        super().__init__()
{modules}

    def forward(self, {arguments}):
{body}
"""


def node(
    path: str,
    level: str,
    inputs: list[tuple[int, ...]],
    outputs: list[tuple[int, ...]],
    *,
    children: tuple[str, ...] = (),
    weights: dict[str, str] | None = None,
    dtype: str = "float32",
    input_dtypes: list[str] | None = None,
) -> dict[str, Any]:
    """A node of the tree, without its id."""
    return {
        "name": Path(path).stem,
        "level": level,
        "path": path,
        "children": list(children),
        "input_shapes": named("x", map(list, inputs)),
        "output_shapes": named("y", map(list, outputs)),
        "input_dtypes": named("x", input_dtypes or [dtype] * len(inputs)),
        "output_dtypes": named("y", [dtype] * len(outputs)),
        "input_strides": named("x", map(_row_major, inputs)),
        "weight_map": weights or {},
    }


def named(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """`{"x0": ..., "x1": ...}`: what a tree says of each tensor."""
    return {f"{name}{n}": value for n, value in enumerate(values)}


def by_original(weights: dict[str, str]) -> dict[str, str | list[str]]:
    """The weight map of `refactored name: original name`: a list where one has several names."""
    names: dict[str, list[str]] = {}
    for refactored, original in weights.items():
        names.setdefault(original, []).append(refactored)
    return {name: uses[0] if len(uses) == 1 else uses for name, uses in names.items()}


def _row_major(shape: tuple[int, ...]) -> list[int]:
    strides, size = [], 1
    for length in reversed(shape):
        strides.append(size)
        size *= length
    return strides[::-1]
