"""What a parent's forward may say, and what a component may import."""

import ast
import textwrap
from collections.abc import Callable

import pytest
from growth import times_longer

from runner.verify.gates.parent_source import import_fault, parent_fault
from runner.verify.guard.source.source_rules import composed_fault, surroundings_fault


def _fault(body: str, arguments: str = "x", more: str = "") -> str | None:
    lines = ["class RefactoredModel(nn.Module):", f"    def forward(self, {arguments}):"]
    lines.append(textwrap.indent(textwrap.dedent(body).strip(), " " * 8))
    lines.append(textwrap.indent(textwrap.dedent(more), " " * 4))
    source = "DIM, HEADS = 64, 8\n" + "\n".join(lines)
    return parent_fault(ast.parse(source), "RefactoredModel")


@pytest.mark.parametrize(
    "body",
    [
        "return self.relu(self.conv(x))",
        "q, k, v = self.qkv(x).chunk(3, dim=-1)\nreturn self.attention(q, k, v)",
        "return self.head(x[:, -1]), x.transpose(1, 2).reshape(2, -1)",
        "for layer in self.layers:\n    x = layer(x)\nreturn x",
        "return {'a': [self.a(x)], 'b': (x, None)}",
        "n = x.size(0)\nreturn x.view(n * 2, -1)",
        "batch = x.shape[0]\nreturn x.view(batch // 2, 2)",
        "return torch.flatten(x, 1)",
        "b, s, c = x.shape\nreturn x.view(b, s, c // 4, 4)",
        "b, *rest = x.size()\nreturn x.view(b // 2, -1)",
        "return x.view(-1, self.dim // self.heads)",
        "return x.view(-1, DIM // HEADS)",
        "assert x.ndim == 3 and x.shape[-1] == self.dim, f'{x.shape}'\nreturn self.a(x)",
        "assert x.shape == (2, 3)\nreturn self.a(x)",
        "b, c = x.shape\nassert y.shape == (b, c)\nreturn self.a(x)",
        "if x.dtype != torch.float32:\n    raise TypeError\nreturn self.a(x)",
        "if not self.training:\n    return self.a(x)\nreturn self.b(x)",
        "return self.a(x.view(x.shape[0], max(x.shape[1] // 2, 1), -1))",
        "y = self.a(x)\ndel x\nreturn y",
        '"""Words."""\nreturn self.layers[0](x, scale=None)',
        "return [layer(x) for layer in self.layers]",
        "return x.mT, x[..., None], x[None]",
        "return self.a(self.table().to(x.device), x.to('cpu'))",
        "for n, layer in enumerate(self.layers):\n"
        "    x = layer(x, n == len(self.layers) - 1, x[:, n * 4 : (n + 1) * 4])\nreturn x",
        "for t in range(3):\n    x = self.a(x[t - 1]) if t % 2 else self.b(x)\nreturn x",
        "b, n = x.size(0), x.size(1)\nreturn x.reshape(b * n, -1)",
        "b, h = x.shape[0], self.heads\nreturn x.view(b, 8 // h, -1)",
        "s: int = x.shape[1]\nreturn x.view(-1, s // 2)",
        "return x.view(x.size()[:-1] + (self.heads, self.dim))",
        "return x.reshape(math.prod(x.shape[1:]), sum(x.shape) // 2)",
        "start = 0\nfor w, layer in zip(self.widths, self.layers):\n"
        "    x = layer(x[start:start + w])\n    start += w\nreturn x",
        "assert tuple(x.shape) == (2, 3) and isinstance(x, torch.Tensor)\nreturn self.a(x)",
        "for name, layer in self.layers.items():\n"
        "    if name == 'skip':\n        continue\n    x = layer(x)\nreturn x",
        "for block in self.blocks:\n    x = block.add(x, block['mlp'](block.norm(x)))\nreturn x",
        "parts = self.parts\nreturn parts['relu'](parts['fc'](x))",
        "return getattr(self, f'block_{0}')(x)",
        "q, k = map(self.split_heads, (x, y))\nreturn self.a(q, k)",
        "ys = [None] * 2\nys += [self.a(x)]\nreturn ys + [self.b(x)]",
        "out = {}\nout.update(a=self.a(x))\nreturn out | {'b': x}",
        "with torch.no_grad():\n    return self.a(x)",
        "def pick(n):\n    return self.layers[n](x)\nreturn pick(0)",
        "match x.ndim:\n    case 3:\n        return self.a(x)\nreturn self.b(x)",
        "return functools.reduce(lambda y, layer: layer(y), self.layers, x)",
        "for layer in itertools.chain(self.layers, self.heads):\n    x = layer(x)\nreturn x",
        "logger.debug('done')\nprint(x.shape)\nreturn self.a(x)",
        "while (n := len(self.layers)) > 2:\n    return self.layers[n - 1](x)",
    ],
)
def test_child_calls_views_and_packing_are_allowed(body):
    assert _fault(body) is None


@pytest.mark.parametrize(
    "body",
    [
        "return x + self.a(x)",
        "return x * 2",
        "return -x",
        "return x @ x",
        "return x > 0",
        "x += 1\nreturn x",
        "n = 1\nfor y in x:\n    n += y\nreturn n",
        "for part in x:\n    part = part * 2\nreturn part",
        "for n, part in enumerate(x):\n    part = part * n\nreturn part",
        "y = self.a(x)\nreturn y * 2",
        "for n in self.a(x):\n    y = n * 2\nreturn y",
        "return sum([x, x]) * 2",
        "return x(x)['a'](x)",
        "return torch.relu(x)",
        "return F.softmax(x, dim=-1)",
        "return nn.ReLU()(x)",
        "return x.softmax(-1)",
        "return x.contiguous()",
        "return x.clone()",
        "return x.to(torch.float16)",
        "return torch.zeros(3)",
        "return torch.cat([x, x])",
        "while True:\n    x = self.a(x)",
        "with torch.autocast('cpu'):\n    return self.a(x)",
        "return (lambda y: y + 1)(x)",
        "return functools.reduce(lambda y, z: y + z, [x, x])",
        "return functools.reduce(torch.add, [x, x])",
        "return functools.reduce(operator.add, [x, x])",
        "return self.a(x if x.sum() > 0 else x)",
    ],
)
def test_anything_else_is_named_with_its_line(body):
    fault = _fault(body)

    assert fault is not None
    assert fault.startswith("line ")


def test_a_method_that_forward_calls_is_read_too():
    fault = _fault("return self._finish(x)", more="def _finish(self, x):\n    return x * 2\n")

    assert fault is not None
    assert "`x * 2` is no child call" in fault


def test_a_method_may_take_a_child_as_an_argument():
    more = "def _twice(self, layer, x):\n    return layer(layer(x))\n"
    assert _fault("return self._twice(self.a, x)", more=more) is None


def test_a_missing_class_is_a_fault():
    assert parent_fault(ast.parse("x = 1"), "RefactoredModel") == "no class RefactoredModel"


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("import torch.nn.functional as F\nimport math\nfrom collections import abc", True),
        ("from torch import nn", True),
        ("import numpy as np", False),
        ("from . import conv2d", False),
        ("def f():\n    import einops", False),
    ],
)
def test_a_component_imports_torch_and_the_standard_library(text, good):
    assert (import_fault(ast.parse(text)) is None) == good


IN_FORWARD = "class Model:\n    def forward(self, x):\n{}        return x\n"
REPEATED: dict[str, Callable[[int], str]] = {
    "an import and its uses": lambda n: "import math\n" * n + "A = math.pi\n" * n,
    "loops that count": lambda n: IN_FORWARD.format("        for i in range(3): y = f'{i}'\n" * n),
    "sets": lambda n: IN_FORWARD.format("        a = {1, 2}; b = 1 in a\n" * n),
    "assertions": lambda n: IN_FORWARD.format("        assert x.shape == (1, 2)\n" * n),
    "imports where it is run": lambda n: "if __name__ == '__main__':\n" + "    import sys\n" * n,
    "functions that call the one before twice": lambda n: (
        "def f0(x):\n    return x\n"
        + "".join(f"def f{i}(x):\n    return f{i - 1}(f{i - 1}(x))\n" for i in range(1, n // 10))
    ),
    "loaders that call the one before twice": lambda n: (
        "import importlib.util\ndef f0(x):\n"
        "    return importlib.util.spec_from_file_location(x)\n"
        + "".join(f"def f{i}(x):\n    return f{i - 1}(f{i - 1}(x))\n" for i in range(1, n // 10))
    ),
}


@pytest.mark.parametrize("name", REPEATED)
def test_reading_takes_time_in_proportion_to_the_source(name):
    def of_length(n: int) -> Callable[[], None]:
        tree = ast.parse(REPEATED[name](n))

        def read() -> None:
            surroundings_fault(tree, kernel=True)
            composed_fault(tree)

        return read

    assert times_longer(of_length, 100, 8) < 8 * 3
