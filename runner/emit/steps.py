"""This file knows about steps: a parent rewritten in terms of its children, computing the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from runner.emit.body import write_class
from runner.emit.component import Component, Emitter, functions, is_large, main
from runner.emit.items import Call
from runner.emit.lines import WIDTH
from runner.emit.names import camel, child_names
from runner.emit.owned import Weight
from runner.tree.document import LEVEL_NUMBER
from runner.tree.part import Part, schedule

_TITLE = '''"""{}

Put together from its {} children.
"""'''

_COMPARE = '''
def tensors(value):
    """All tensors in nested tuples, lists, dicts and objects, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (int, float, complex, str, type)) or callable(value):
        return []
    if not isinstance(value, (list, tuple)):
        value = value if hasattr(value, "values") else getattr(value, "__dict__", {})
        value = value.values()
    return [t for item in value for t in tensors(item)]


def held(value, name):
    """(name, tensor) for a tensor, and for each in a list, tuple or dict."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from held(item, f"{name}.{key}")


def assert_equal(actual, expected):
    """Within tolerance, piece by piece so that large tensors need no more memory."""
    assert len(actual) == len(expected), f"{len(actual)} outputs, not {len(expected)}"
    for a, b in zip(actual, expected):
        assert a.shape == b.shape, f"shape {tuple(a.shape)}, not {tuple(b.shape)}"
        assert a.dtype == b.dtype, f"{a.dtype}, not {b.dtype}"
        half = b.dtype in (torch.float16, torch.bfloat16)
        rtol, atol = (1e-3, 1e-3) if half else (1e-5, 1e-6)
        if not b.is_floating_point():
            rtol, atol = 0, 0
        pieces = zip(a.reshape(-1).split(1 << 22), b.reshape(-1).split(1 << 22))
        for one, other in pieces:
            if not torch.equal(one, other):
                assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)


def weights_of(model):
    """Parameters, buffers, tensors in attributes; shared ones by each name."""
    return {
        **{
            name: tensor
            for path, module in model.named_modules()
            for key, value in vars(module).items()
            if key not in ("_parameters", "_buffers", "_modules")
            for name, tensor in held(value, f"{path}.{key}" if path else key)
        },
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
'''

_ASIDE = '''

def aside(tensor):
    """The same in a file that is gone with it: in memory, the other side may not fit beside it."""
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        size, dtype = tensor.numel(), tensor.dtype
        copy = torch.from_file(file.name, shared=True, size=size, dtype=dtype)
    return copy.view(tensor.shape).copy_(tensor)
'''

_TESTS = '''
def run_tests():
    """With the same weights and inputs, this one equals the parent, for two seeds."""
    torch.backends.mha.set_fastpath_enabled(False)
    here = Path(__file__).resolve().parent
    torch.manual_seed(0)
    original = runpy.run_path(str(here / "original.py"))["Model"]().%(mode)s()
    refactored = RefactoredModel().%(mode)s()
    theirs, mine = weights_of(original), weights_of(refactored)
    for source, names in json.loads((here / "weight_map.json").read_text()).items():
        for name in [names] if isinstance(names, str) else names:
            mine[name].data = theirs[source].data
    for seed in (1, 2):
        torch.manual_seed(seed)
        inputs = get_inputs()
        with torch.no_grad():
            torch.manual_seed(seed)
            expected = %(expected)s
            torch.manual_seed(seed)
            assert_equal(tensors(refactored(*inputs)), expected)
        del inputs, expected

'''


@dataclass(frozen=True, slots=True)
class Step:
    """A folder under `steps/`: file name -> text."""

    name: str
    files: dict[str, str]


def comparison(emitter: Emitter, part: Part, call: str) -> tuple[str, str]:
    """Functions for comparing two sides of a part, and the expression of what `call` gives."""
    if is_large(emitter, part):
        return _COMPARE + _ASIDE, f"[aside(tensor) for tensor in tensors({call})]"
    return _COMPARE, f"tensors({call})"


def write_steps(emitter: Emitter, components: Mapping[str, Component]) -> list[Step]:
    """One step for each parent workload, larger levels first."""
    parents = [c for c in components.values() if c.workload.first.children]
    parents.sort(key=lambda c: -LEVEL_NUMBER[c.workload.level])
    return [_step(emitter, n, parent, components) for n, parent in enumerate(parents, 1)]


def _step(
    emitter: Emitter, number: int, parent: Component, components: Mapping[str, Component]
) -> Step:
    part = parent.workload.first
    children = {
        w.name: components[w.name] for child in part.children for w in [emitter.workload(child)]
    }
    classes = {name: camel(name) for name in children}
    names = child_names(part)
    calls = {
        id(child): Call(child, names[id(child)], classes[emitter.workload(child).name],
                        children[emitter.workload(child).name].written.weights)
        for child in part.children
    }  # fmt: skip
    inside = {i for child in part.children for i in child.operations}
    units = schedule(emitter.program, part.children, set(part.operations) - inside)
    items = [calls[id(u)] if isinstance(u, Part) else u for u in units]
    written = write_class(emitter.program, emitter.namer, "RefactoredModel", part, items)
    imports = "\n".join(_import(name, classes[name]) for name in sorted(children, key=_natural))
    made = functions(emitter, part, written.inputs)
    compare, expected = comparison(emitter, part, "original(*inputs)")
    text = "\n\n".join(
        [
            _TITLE.format(parent.workload.name, len(part.children)),
            "import json\n"
            + ("import math\n" if "math." in made else "")
            + "import runpy\nfrom pathlib import Path\n\nimport torch\n"
            + ("import torch.nn.functional as F\n" if "F." in written.text + made else "")
            + f"from torch import nn\nfrom torch.testing import assert_close\n\n{imports}\n",
            written.text,
            "\n" + made + "\n\n" + compare.strip("\n"),
            _TESTS.rstrip("\n") % {"mode": emitter.program.graph.mode, "expected": expected},
        ]
    )
    weights = weight_map(emitter, part, parent.written.weights, written.weights)
    level = max((child.level for child in part.children), key=lambda level: LEVEL_NUMBER[level])
    return Step(
        f"step_{number}_{parent.workload.name}_to_{level}",
        {
            "original.py": parent.text,
            "refactored.py": text + "\n\n" + main(emitter, part),
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
