"""What people write otherwise, and rightly: every variation of style, files and names passes."""

import json
from functools import partial

import pytest
from changing_files import COMPOSED, CONV, RIGHT, STEP, at_import, in_forward
from verdicts import assert_passes

pytestmark = pytest.mark.long

KERNELS = {}


def vary(table, name):
    """Add the function below to a table under a name."""
    return lambda change: table.setdefault(name, change)


def replaced(name, *changes):
    """A variation that replaces texts in every copy of a kernel file."""

    def change(made):
        for old, new in changes:
            made.edit_everywhere(name, old, new)

    return change


def forward(text, name="relu.py"):
    return lambda made: in_forward(made, text, name)


# --- kernels --------------------------------------------------------------------------------------

INIT = "    def __init__(self):\n        super().__init__()\n        pass\n\n"
OLD = ("super().__init__()", "super(Model, self).__init__()")
CONVOLUTION = "self.conv = nn.Conv2d(3, 4, kernel_size=3)"
DRAWN = "return [torch.randn(2, 4, 6, 6)]"
RUN = "assert tuple(Model()(*get_inputs()).shape) == get_expected_output_shape()[0]"
relu = partial(replaced, "relu.py")
conv = partial(replaced, "conv2d.py")

KERNELS |= {
    "no docstring": relu(('"""A component."""\n\n', "")),
    "a docstring of many lines": relu(('"""A component."""', '"""A ReLU.\n\nOf 288 numbers.\n"""')),
    "no __init__": relu((INIT, "")),
    "the older super()": relu(OLD),
    "the base class's __init__": relu(("super().__init__()", "nn.Module.__init__(self)")),
    "type hints": relu(("forward(self, x)", "forward(self, x: torch.Tensor) -> torch.Tensor")),
    "hints that are not evaluated": relu(
        ("import torch\nimport", "from __future__ import annotations\n\nimport torch\nimport"),
        ("forward(self, x)", "forward(self, x: Tensor | None) -> Tensor"),
    ),
    "hints of typing": relu(
        ("import torch\nimport", "from typing import List, Optional\n\nimport torch\nimport"),
        ("def get_inputs():", "def get_inputs() -> List[Optional[torch.Tensor]]:"),
    ),
    "another name for functional": relu(
        ("import torch.nn.functional as F", "from torch.nn import functional"),
        (RIGHT, "return functional.relu(x)"),
    ),
    "functional by its whole name": relu((RIGHT, "return torch.nn.functional.relu(x)")),
    "a function by its own name": relu(
        ("import torch.nn.functional as F", "from torch.nn.functional import relu"),
        (RIGHT, "return relu(x)"),
    ),
    "a base class by its own name": relu(
        ("from torch import nn", "from torch.nn import Module"), ("nn.Module", "Module")
    ),
    "a module": relu(
        ("        pass", "        self.act = nn.ReLU()"), (RIGHT, "return self.act(x)")
    ),
    "an argument with a default": relu(
        ("def __init__(self):", "def __init__(self, inplace=False):"),
        ("        pass", "        self.act = nn.ReLU(inplace)"),
        (RIGHT, "return self.act(x)"),
    ),
    "a sequence of one": relu(
        ("        pass", "        self.act = nn.Sequential(nn.ReLU())"),
        (RIGHT, "return self.act(x)"),
    ),
    "an assertion of a rank": forward(f"assert x.ndim == 4\n{RIGHT}"),
    "an assertion of a shape": forward(f"assert x.shape[1:] == (4, 6, 6), x.shape\n{RIGHT}"),
    "an error for a wrong rank": forward(
        f"if x.dim() != 4:\n    raise ValueError(x.shape)\n{RIGHT}"
    ),
    "shape arithmetic": forward("b, c, h, w = x.shape\nassert c // 4 == 1\nreturn F.relu(x)"),
    "a view and back": forward("b, c, h, w = x.shape\nreturn F.relu(x.view(b, c, h, w))"),
    "a flat view and back": forward("return F.relu(x.flatten(1).unflatten(1, x.shape[1:]))"),
    "a helper method": relu(
        (RIGHT, "return self._activate(x)\n\n    def _activate(self, x):\n        return F.relu(x)")
    ),
    "a static helper": relu(
        (
            RIGHT,
            "return self.act(x)\n\n    @staticmethod\n    def act(x):\n        return F.relu(x)",
        )
    ),
    "a property": relu(
        (
            "    def forward",
            "    @property\n    def act(self):\n        return F.relu\n\n    def forward",
        ),
        (RIGHT, "return self.act(x)"),
    ),
    "a function of the file": lambda made: (
        at_import(made, "def activate(x):\n    return torch.relu(x)"),
        in_forward(made, "return activate(x)"),
    ),
    "a lambda": lambda made: (
        at_import(made, "ACTIVATE = lambda x: F.relu(x)"),
        in_forward(made, "return ACTIVATE(x)"),
    ),
    "a partial function": lambda made: (
        at_import(made, "import functools\n\nact = functools.partial(F.relu, inplace=False)"),
        in_forward(made, "return act(x)"),
    ),
    "a table of activations": lambda made: (
        at_import(made, 'ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}'),
        in_forward(made, 'return ACTIVATIONS["relu"](x)'),
    ),
    "no gradients": relu(("    def forward", "    @torch.no_grad()\n    def forward")),
    "inference mode": relu(("    def forward", "    @torch.inference_mode()\n    def forward")),
    "no gradients inside": forward("with torch.no_grad():\n    return F.relu(x)"),
    "arguments that nobody gives": relu(("forward(self, x)", "forward(self, x, **kwargs)")),
    "arguments in a tuple": relu(
        ("forward(self, x)", "forward(self, *args)"), ("relu(x)", "relu(*args)")
    ),
    "another name of the input": relu(
        ("forward(self, x)", "forward(self, hidden)"), ("(x)", "(hidden)")
    ),
    "constants at the top": lambda made: (
        at_import(made, "BATCH, CHANNELS = 2, 4\nSIDE = 8 - 3 + 1"),
        made.edit_everywhere(
            "relu.py", "torch.randn(2, 4, 6, 6)", "torch.randn(BATCH, CHANNELS, SIDE, SIDE)"
        ),
    ),
    "sizes by math": lambda made: (
        at_import(made, "import math\n\nSIDE = math.isqrt(36)"),
        made.edit_everywhere("relu.py", "torch.randn(2, 4, 6, 6)", "torch.randn(2, 4, SIDE, SIDE)"),
    ),
    "a dataclass of sizes": lambda made: (
        at_import(
            made,
            "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Config:\n"
            "    batch: int = 2\n    channels: int = 4\n\n\nCONFIG = Config()",
        ),
        made.edit_everywhere("relu.py", "randn(2, 4,", "randn(CONFIG.batch, CONFIG.channels,"),
    ),
    "a dataclass with postponed annotations": lambda made: (
        made.edit_everywhere(
            "relu.py", "import torch\n", "from __future__ import annotations\n\nimport torch\n"
        ),
        at_import(
            made,
            "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n    batch: int = 2",
        ),
        made.edit_everywhere("relu.py", "randn(2, 4,", "randn(Config().batch, 4,"),
        made.edit(COMPOSED, "import importlib.util", "import importlib.util\nimport sys"),
        made.edit(
            COMPOSED, "    spec.loader", "    sys.modules[spec.name] = module\n    spec.loader"
        ),
    ),
    "a named tuple of sizes": lambda made: (
        at_import(
            made,
            "from typing import NamedTuple\n\n\nclass Size(NamedTuple):\n    batch: int = 2\n"
            "    channels: int = 4",
        ),
        made.edit_everywhere("relu.py", "torch.randn(2, 4,", "torch.randn(*Size(),"),
    ),
    "an enumeration": lambda made: (
        at_import(made, "import enum\n\n\nclass Kind(enum.Enum):\n    RELU = 'relu'"),
        in_forward(made, "assert Kind('relu') is Kind.RELU\nreturn F.relu(x)"),
    ),
    "a seed for its inputs": relu((DRAWN, f"torch.manual_seed(0)\n    {DRAWN}")),
    "a generator for its inputs": relu(
        (
            DRAWN,
            "g = torch.Generator().manual_seed(7)\n"
            "    return [torch.randn(2, 4, 6, 6, generator=g)]",
        )
    ),
    "a generator in a helper for its inputs": relu(
        (
            "def get_inputs():",
            "def _drawn():\n    g = torch.Generator()\n    g.manual_seed(7)\n"
            "    return torch.randn(2, 4, 6, 6, generator=g)\n\n\ndef get_inputs():",
        ),
        (DRAWN, "return [_drawn()]"),
    ),
    "inputs as a tuple": relu((DRAWN, "return (torch.randn(2, 4, 6, 6),)")),
    "inputs by name": relu(
        (DRAWN, "x = torch.randn((2, 4, 6, 6), dtype=torch.float32)\n    return [x]")
    ),
    "uniform inputs": relu((DRAWN, "return [torch.rand(2, 4, 6, 6) * 2 - 1]")),
    "inputs made in place": relu((DRAWN, "return [torch.empty(2, 4, 6, 6).normal_()]")),
    "arguments as an empty dict": relu(("return []", "return {}")),
    "arguments as an empty tuple": relu(("return []", "return ()")),
    "shapes as lists": relu(("return [(2, 4, 6, 6)]", "return [[2, 4, 6, 6]]")),
    "shapes as sizes of torch": relu(
        ("return [(2, 4, 6, 6)]", "return [torch.Size([2, 4, 6, 6])]")
    ),
    "a script's end": lambda made: made.edit_everywhere(
        "relu.py", RUN, f'{RUN}\n\n\nif __name__ == "__main__":\n    run_tests()\n    print("PASS")'
    ),
    "a script that ends with a code": lambda made: made.edit_everywhere(
        "relu.py",
        RUN,
        f'{RUN}\n\n\nif __name__ == "__main__":\n    import sys\n\n    sys.exit(run_tests())',
    ),
    "tests that return": relu((RUN, f"{RUN}\n    return True")),
    "tests of values": relu((RUN, f"{RUN}\n    assert (Model()(*get_inputs()) >= 0).all()")),
    "tests in evaluation": relu(
        (RUN, f"model = Model().eval()\n    {RUN.replace('Model()', 'model')}")
    ),
    "tests with a helper of torch": relu(
        (RUN, "x = get_inputs()[0]\n    torch.testing.assert_close(Model()(x), x.clamp(min=0))")
    ),
    "what it exports": lambda made: at_import(made, '__all__ = ["Model", "get_inputs"]'),
    "a class of one's own": relu(
        ("class Model(nn.Module)", "class Relu(nn.Module)"),
        ("\ndef get_inputs", "\nModel = Relu\n\n\ndef get_inputs"),
    ),
    "a class without a body of its own": relu(
        ("    def forward(self, x):\n        return F.relu(x)\n", '    """ReLU."""\n'),
        ("class Model(nn.Module)", "class Model(nn.ReLU)"),
    ),
    "tests without gradients": relu(
        ("def run_tests", "@torch.no_grad()\ndef run_tests"),
    ),
    "a class that derives": relu(
        ("\ndef get_inputs", "\nclass Model(Relu):\n    pass\n\n\ndef get_inputs"),
        ("class Model(nn.Module)", "class Relu(nn.Module)"),
    ),
    "slots and representation": relu(
        ("    def forward", "    def extra_repr(self):\n        return 'relu'\n\n    def forward")
    ),
    "keyword arguments of a module": conv(
        (CONVOLUTION, CONVOLUTION.replace("(3, 4, ", "(in_channels=3, out_channels=4, "))
    ),
    "a kernel's size as a tuple": conv(
        ("kernel_size=3", "kernel_size=(3, 3), stride=1, padding=0")
    ),
    "a default argument": conv(
        ("def __init__(self)", "def __init__(self, channels=4)"), ("(3, 4,", "(3, channels,")
    ),
    "keyword defaults": conv(
        ("def __init__(self)", "def __init__(self, *, bias: bool = True)"),
        ("kernel_size=3", "kernel_size=3, bias=bias"),
    ),
    "arguments by a dict": conv(
        ("def __init__(self)", "def __init__(self, channels=4)"),
        ("(3, 4,", "(3, channels,"),
        ("return []", 'return {"channels": 4}'),
    ),
    "weights of its own drawing": conv(
        (CONVOLUTION, f"{CONVOLUTION}\n        nn.init.kaiming_normal_(self.conv.weight)")
    ),
    "weights without gradients": conv((CONVOLUTION, f"{CONVOLUTION}.requires_grad_(False)")),
    "a convolution as a function": conv(
        ("return self.conv(x)", "return F.conv2d(x, self.conv.weight, self.conv.bias)")
    ),
    "a weight in a local variable": conv(
        (
            "return self.conv(x)",
            "w, b = self.conv.weight, self.conv.bias\n        return F.conv2d(x, w, b)",
        )
    ),
    "a count in a module": conv(
        (CONVOLUTION, f"{CONVOLUTION}\n        self.channels = 4\n        self.name = 'conv'")
    ),
}


@vary(KERNELS, "parameters of its own")
def _(made):
    text = "self.weight = nn.Parameter(torch.randn(4, 3, 3, 3))\n"
    text += "        self.bias = nn.Parameter(torch.randn(4))"
    made.edit_everywhere("conv2d.py", CONVOLUTION, text)
    in_forward(made, "return F.conv2d(x, self.weight, self.bias)", "conv2d.py")
    made.edit(COMPOSED, "'conv.conv.", "'conv.")
    names = {"conv.weight": "conv.weight", "conv.bias": "conv.bias"}
    made.write(f"{STEP}/weight_map.json", json.dumps(names))


@vary(KERNELS, "a base class of torch")
def _(made):
    text = made.read(CONV)
    body = text[text.index("class Model") : text.index("def get_inputs")]
    cls = (
        "class Model(nn.Conv2d):\n    def __init__(self):\n        super().__init__(3, 4, 3)\n\n\n"
    )
    made.edit_everywhere("conv2d.py", body, cls)
    made.edit(COMPOSED, "'conv.conv.", "'conv.")
    names = {"conv.weight": "conv.weight", "conv.bias": "conv.bias"}
    made.write(f"{STEP}/weight_map.json", json.dumps(names))


@vary(KERNELS, "another attribute")
def _(made):
    made.edit_everywhere("conv2d.py", "self.conv", "self.convolution")
    made.edit(COMPOSED, "'conv.conv.", "'conv.convolution.")
    made.edit(f"{STEP}/weight_map.json", "conv.conv.", "conv.convolution.")


@pytest.mark.parametrize("variation", KERNELS)
def test_a_kernel_may_be_written_in_any_style(variation, fusion, judged):
    KERNELS[variation](fusion)

    assert_passes(judged(fusion, trials=1))
