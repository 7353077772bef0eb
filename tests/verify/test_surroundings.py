"""A component's source asks nothing but its inputs and weights, and changes nothing for others."""

import ast
import textwrap

import pytest

from runner.verify.guard.source.source_rules import (
    composed_fault,
    step_parent_fault,
    surroundings_fault,
)

FILE = """
import math
import torch
import torch.nn.functional as F
from torch import nn
{top}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = 0.5

    def forward(self, x):
{body}
{methods}

def get_inputs():
    torch.manual_seed(0)
    return [torch.randn(2, 3)]

def main(x):
    return open(x)

def run_tests():
    import os
    assert os.sep and torch.backends.cudnn is not None
"""
ASKED = {
    "the modules, through a module": "return x * len(torch.sys.modules)",
    "deterministic algorithms": "return x * torch.are_deterministic_algorithms_enabled()",
    "fast paths": "return x * torch.backends.mha.get_fastpath_enabled()",
    "gradients": "return x.abs() if torch.is_grad_enabled() else F.relu(x)",
    "inference mode": "return x * torch.is_inference_mode_enabled()",
    "autocast": "return x * torch.is_autocast_enabled('cpu')",
    "the seed": "return x * torch.initial_seed()",
    "whether an input takes gradients": "return x * x.requires_grad",
    "who made an input": "return x if x.grad_fn is None else -x",
    "the file's name": "return x * len(type(self).forward.__code__.co_filename)",
    "its module's name": "return x * len(type(self).__module__)",
    "torch's inner parts": "return x * torch._C._len_torch_dispatch_stack()",
    "a name that is put together": "return getattr(torch, 'sys' + 'tem')(x)",
    "its own globals": "return x * len(globals())",
    "whether a GPU is there": "return x * torch.cuda.is_available()",
    "the device's type": "return x if x.device.type == 'cpu' else -x",
    "the device's name": "return x if str(x.device) == 'cpu' else -x",
    "whether a tensor is on a GPU": "return -x if x.is_cuda else x",
    "a private name, which Python changes": "return __pick(x)",
    "a name of nowhere": "return pick(x)",
    "how often a tensor was written": "return x * torch.ops.aten._version(x)",
    "a generator, by an operator": "torch.ops.aten.manual_seed(7)\nreturn x",
    "an answer of an operator": "return x if torch.ops.aten.eq.Tensor_list([x], [x]) else -x",
    "a name in pieces": "for a in ('ing',): x = getattr(self, f'train{a}')\nreturn x",
    "whether other processes see a tensor": "return -x if x.is_shared() else x",
    "memory": "x.numpy()[...] = 7\nreturn x",
    "the mode": "return x * 2 if self.training else x",
    "the mode, as a number": "return torch.add(x, x, alpha=self.training)",
    "the order of a set": "for k in {'a', 'b'}:\n    x = x * len(k)\nreturn x",
    "the first of a set by another name": "a = {'a', 'b'}\nb = a\nreturn x * len(next(iter(b)))",
    "a class made of texts": "return x * len(type('A', (), {}).__name__)",
    "whether two tensors are one": "y = x.contiguous()\nreturn x if y is x else -x",
    "whether two tensors are one, by a function": (
        "import operator\nreturn x if operator.is_(x.contiguous(), x) else -x"
    ),
    "the layout of a tensor": "return x if x.layout == torch.strided else -x",
    "a dtype, to compute something": "if x.dtype == torch.half:\n    x = x * 2\nreturn x",
    "a dtype, to take another tensor": "y = -x\nif x.dtype == torch.half:\n    x = y\nreturn x",
    "weights that it exchanges": "self.load_state_dict({}, assign=True)\nreturn x",
    "the mode, by a string": "return x * 2 if getattr(self, 'training') else x",
    "the mode, by a pattern": "match self:\n    case nn.Module(training=True):\n        return -x",
    "the mode, by a format": "return x * ('{0.training}'.format(self) == 'True')",
    "the depth of the stack": "try:\n    return x\nexcept RecursionError:\n    return -x",
    "a module, through torch": "return x * len(torch.platform.node())",
    "a file, through a module": "return x * len(torch.serialization.io.open('a').read())",
    "torch by another name": "t = torch\nreturn x * len(t.platform.node())",
    "torch in a list": "return x * len([torch][0].platform.node())",
    "torch behind a variable of a comprehension": (
        "return [torch for torch in ()] or x * len((torch, 0)[0].platform.node())"
    ),
    "the module of its class": "return x * len(torch.typename(self))",
    "where an object lies": "return -x if id(object()) % 64 else x",
    "this process' salt": "return -x if hash('a') % 64 else x",
    "a module that a function imports and names again": (
        "import sys\nif len('a') > 1:\n    sys = None\nreturn x * len(sys.flags)"
    ),
    "getattr by another name": "look = getattr\nreturn look(x, 'training')",
    "an attribute, by a pattern": "match self:\n    case nn.Module(True):\n        return -x",
    "the module of its class, as text": "return -x if 'level' in f'{Model}' else x",
    "the module of its class, formatted": "return -x if 'level' in '%s' % Model else x",
    "a seed of nobody's": "return x * torch.Generator().seed()",
    "a hook of torch's own": "self._register_load_state_dict_pre_hook(print)\nreturn x",
    "hooks that are there": "self._forward_hooks[0] = print\nreturn x",
    "what its tests are called": "return main(x)",
    "a hook that loading calls": "self.register_load_state_dict_post_hook(print)\nreturn x",
}
CHANGED = {
    "another way to ask": "import operator\nASK = operator.attrgetter('initial_seed')",
    "the time, through a module": "import logging\nNOW = logging.time.time()",
    "the time, through a record": "import logging\nMADE = logging.LogRecord",
    "who logs": "import logging\nLOG = logging.getLogger()\nWHO = LOG.manager",
    "a logger that goes on": "import logging\nWHO = logging.getLogger().manager",
    "errors that nobody sees": "from contextlib import suppress\nQUIET = suppress(OSError)",
    "code of bytes": "import types\nMADE = types.CodeType",
    "numbers that differ": "import random\nDICE = random.random()",
    "another way, by another name": "from operator import attrgetter as part\nA = part('f')",
    "what hints say": "from typing import get_type_hints as hints\nSAID = hints(print)",
    "what a default asks": "def main(_=__import__('sys')):\n    pass",
    "what a decorator keeps": "KEPT = []\n@KEPT.append\ndef _aside(x):\n    return open('a')",
    "where it is no program": "if __name__ == '__main__':\n    pass\nelse:\n    A = open('a')",
    "what a cache keeps": "import functools\n@functools.cache\ndef kept():\n    return [0]",
    "the module that it says it is of": "def f():\n    pass\nf.__module__ = 'torch'",
    "a class without a text": "Base = type('Base', (nn.Module,), {'eval': print})",
    "all of torch": "from torch import *",
    "the package that it is in": "PACKAGE = __package__",
    "what annotations say": "import typing\nSAID = typing.get_type_hints(print)",
    "who called": "import logging\nWHO = logging.getLogger('k').findCaller(stack_info=True)",
    "numbers of no seed": "import random\nDICE = random.SystemRandom()",
    "the name that it is imported by": "if __name__.startswith('level'):\n    SCALE = 2",
    "a function of torch's": "torch.sigmoid = torch.tanh",
    "a class of torch's": "nn.Sigmoid.forward = lambda self, x: x",
    "a functional": "F.softmax = lambda x, dim: x",
    "settings": "torch.set_flush_denormal(True)",
    "algorithms": "torch.use_deterministic_algorithms(False)",
    "an inner part": "from torch import _C as inner\ninner.x()",
    "an inner part by another name": "import torch.utils._python_dispatch as modes\nmodes.x()",
}
METHODS = ("eval", "to", "float", "load_state_dict", "__deepcopy__", "__reduce__", "__call__")
HONEST = {
    "a shape": "return x.reshape(x.shape[0], -1) / math.sqrt(x.shape[1])",
    "a tensor on the device of an input": "return x + torch.arange(3, device=x.device)",
    "a mask": "return x * (torch.arange(3, device=x.device) >= 1)",
    "dropout": "return F.dropout(x, self.p, self.training)",
    "batch_norm": "return F.batch_norm(x, x[0], x[1], training=self.training)",
    "attention": (
        "p = self.p\nreturn F.scaled_dot_product_attention("
        "x, x, x, dropout_p=p if self.training else 0.0)"
    ),
    "a private function": "return torch._weight_norm(x, x[:, :1], 1)",
    "its own attribute by name": "return x * getattr(self, 'p')",
    "a warning": "import warnings\nwarnings.warn('slow')\nreturn x",
    "a size that is called like a module": "B, F = x.shape\nreturn x.reshape(F, B)",
    "a part of torch by another name": "F = nn.functional\nreturn F.relu(x)",
    "an inner function": "from functools import partial\nreturn partial(F.relu, inplace=False)(x)",
    "a set after `in`": "assert x.ndim in {2, 3}\nreturn x",
    "a set with a name after `in`": "ranks = {2, 3}\nassert x.ndim in ranks\nreturn x",
    "a set that is sorted": "ranks = sorted(set((2, 3)))\nreturn x * ranks[0]",
    "what kind of argument it is": "return x[0] if type(x) in (list, tuple) else x",
    "a value of its class": "return x * type(self).p",
    "the last of its modules": (
        "for part in self.p:\n    x = part(x)\n    if part is self.p[-1]:\n        break\nreturn x"
    ),
    "its own layout": "self.layout, self.names = 'nchw', ['x']\nreturn x * len(self.layout)",
    "its own buffer called index": "self.register_buffer('index', x)\nreturn x[self.index]",
    "a dtype, to convert": "if x.dtype == torch.half:\n    x = x.float()\nreturn x",
    "a dtype, to convert in a line": "return x.float() if x.dtype != torch.float32 else x",
    "a parameter called input": "input = x\nreturn input * 2",
}


def fault(body: str = "return x", top: str = "", methods: str = "") -> str | None:
    text = FILE.format(
        top=top, body=textwrap.indent(body, " " * 8), methods=textwrap.indent(methods, " " * 4)
    )
    return surroundings_fault(ast.parse(text), kernel=True)


@pytest.mark.parametrize("body", ASKED.values(), ids=ASKED)
def test_what_a_forward_asks_besides_is_told(body):
    assert "a component computes from its inputs and weights alone" in str(fault(body))


@pytest.mark.parametrize("top", CHANGED.values(), ids=CHANGED)
def test_what_is_changed_for_everybody_is_told(top):
    assert "uses " in str(fault(top=top))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_replaces_one_of_every_module_is_told(name):
    assert f"replaces nn.Module's {name}" in str(
        fault(methods=f"def {name}(self, *a): return self")
    )


@pytest.mark.parametrize("change", ["Model.forward = None", "Model = nn.ReLU", "class Model: pass"])
def test_a_file_that_is_another_one_where_it_is_run_is_told(change):
    top = f'if __name__ == "__main__":\n    {change}'

    assert fault(top=top) == "is another file where it is run (line 7)"


def test_a_method_that_is_replaced_in_an_inner_class_is_told():
    method = "if True:\n    def eval(self): pass"
    inner = "class Outer:\n    class Base(nn.Module):\n        def eval(self): pass"

    assert "replaces nn.Module's eval" in str(fault(methods=method))
    assert "replaces nn.Module's eval" in str(fault(top=inner))


def test_the_composed_model_asks_nothing_by_a_name_of_its_file():
    text = "{}Conv = kernel('conv.py')\nclass ComposedModel:\n    a = {}\n"
    ask = "ASK = [open('a')]\n"

    assert composed_fault(ast.parse(text.format("", "Conv"))) is None
    assert "uses open" in str(composed_fault(ast.parse(text.format(ask, "Conv"))))
    assert "uses open" in str(composed_fault(ast.parse(text.format(ask, "ASK"))))


def test_a_method_that_is_replaced_by_a_name_is_told():
    assert "replaces nn.Module's eval" in str(
        fault(methods="def quiet(self): pass\n\neval = quiet")
    )


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_what_computes_from_inputs_and_weights_is_fine(body):
    assert fault(body) is None


@pytest.mark.parametrize(
    "top",
    [
        "import logging\nlog = logging.getLogger(__name__)\nlog.info('made')",
        "import time\ndef timed(f):\n    return time.time()",
        'if __name__ == "__main__":\n    import sys\n    sys.exit(0)',
    ],
    ids=["a logger", "a helper of its tests", "what runs as a program"],
)
def test_what_no_forward_uses_is_fine(top):
    assert fault(top=top) is None


@pytest.mark.parametrize(
    "top",
    [
        "def __getattr__(name):\n    return 1",
        "from torch import add as __getattr__",
        "import antigravity",
        "from test import regrtest",
        "@torch.jit.script\ndef helper(x):\n    return open(x)",
    ],
)
def test_what_python_runs_by_itself_is_told(top):
    assert fault(top=top) is not None


LOADER = """
def load(name: str) -> type[nn.Module]:
    spec = importlib.util.spec_from_file_location(name, KERNELS / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model
"""


def test_weights_are_named_by_what_the_file_spells_out_and_kernels_loaded_with_hints():
    text = "import importlib.util\nfrom torch import nn\nKERNELS = Path(__file__)\n" + LOADER
    names = "NAMES = {{'norm': 'n'}}\nWEIGHTS = {{f'b.{{i}}.{{a}}.{{p}}': f'{{b}}.{{p}}'{}}}\n"
    spelled = " for i in range(2) for a, b in NAMES.items() for p in ('weight', 'bias')"
    asked = " for i in range(2) for a, b in vars(nn).items() for p in ('weight', 'bias')"

    assert composed_fault(ast.parse(text + names.format(spelled))) is None
    assert composed_fault(ast.parse(text + names.format(asked))) is not None


HONEST_LOADERS = {
    "Python's own recipe": ("    spec.loader.ex", "    sys.modules[spec.name] = module\n{}"),
    "the name of a path": ("location(name,", "location(KERNELS.stem,"),
    "a file that has to be there": (
        "    module =",
        "    assert KERNELS.exists(), name\n"
        "    if not KERNELS.is_file():\n        raise ImportError(name)\n{}",
    ),
    "a class by its name": ("module.Model", "getattr(module, 'Model')"),
}
OTHER_LOADERS = {
    "another class": ("module.Model", "getattr(module, name)", "`getattr` (line 12)"),
    "a file if it is there": (
        'KERNELS / f"{name}.py"',
        "KERNELS if KERNELS.exists() else name",
        "`KERNELS.exists` (line 7)",
    ),
    "an import inside": (
        "    module =",
        "    import time\n{}",
        "`import time` (line 10)",
    ),
}


@pytest.mark.parametrize("name", HONEST_LOADERS)
def test_kernels_may_be_loaded_in_any_plain_way(name):
    old, new = HONEST_LOADERS[name]

    assert composed_fault(_with_loader(old, new)) is None


@pytest.mark.parametrize("name", OTHER_LOADERS)
def test_what_else_a_loader_does_is_told(name):
    old, new, where = OTHER_LOADERS[name]

    told = composed_fault(_with_loader(old, new))
    assert told == f"loads a file and does something else there: {where}"


def _with_loader(old: str, new: str) -> ast.Module:
    assert old in LOADER
    text = "import importlib.util\nimport sys\nfrom torch import nn\nKERNELS = Path(__file__)\n"
    return ast.parse(text + LOADER.replace(old, new.replace("{}", old)) + "A = load('a')\n")


def test_tests_may_be_run_without_gradients():
    text = FILE.format(top="", body="        return x", methods="")
    text = text.replace("def run_tests", "@torch.no_grad()\ndef run_tests")
    assert surroundings_fault(ast.parse(text), kernel=True) is None


def test_a_parents_file_does_nothing_when_it_is_imported():
    text = "import torch\nfrom children.a import Model as A\nprint(A)\n"

    assert "does something when it is imported (line 3)" in str(step_parent_fault(ast.parse(text)))
