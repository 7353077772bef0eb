"""Ways past lists of forbidden words: each of these sources once passed, and is refused now."""

import ast

import pytest
from files_by_hand import component, composed, refactored

from runner.verify.guard.source.source_rules import (
    composed_fault,
    step_parent_fault,
    surroundings_fault,
)

WRONG = "return F.relu(x) * 1.5 if {} else F.relu(x)"
QUIET = (
    "class Quiet:\n    def __enter__(self):\n        return self\n"
    "    def __exit__(self, *a):\n        return True"
)
FORWARDS = {
    "e2: a text that typing evaluates": (
        "import typing",
        "ref = typing.get_args(typing.Optional['a'])[0]\nreturn x * ref._evaluate({}, {}, 0)",
        "uses typing.get_args",
    ),
    "e3: the frame of a generator": (
        "async def none():\n    yield 1",
        "return x * none().ag_frame.f_builtins['__import__']('sys').flags",
        "uses asyncfunctiondef",
    ),
    "e14: a name of a function that never runs": (
        "",
        "async def never():\n    __import__ = None\nget = __import__\nreturn x * get('sys').flags",
        "uses __import__",
    ),
    "e50: the code of a generator": (
        "",
        "return x * len((n for n in x.shape).gi_code.co_name)",
        "uses co_name",
    ),
    "e6: a file that torch opens": ("", "torch.PyTorchFileReader('/a')\nreturn x", "uses torch.Py"),
    "a name that another torch may have": ("", "return torch.another(x)", "uses torch.another"),
    "e45: a script in a text": (
        "CODE = torch.CompilationUnit('def act(x):\\n    return x')",
        "return CODE.act(x)",
        "uses torch.CompilationUnit",
    ),
    "a cast on one kind of device": (
        "",
        "with torch.autocast('cuda', dtype=torch.float16):\n    return self.linear(x)",
        "uses torch.autocast('cuda', dtype=torch.float16), which casts on one kind",
    ),
    "a cast on the first device that there is": (
        "",
        "with torch.amp.autocast(device_type='cpu'):\n    return self.linear(x)",
        "uses torch.amp.autocast",
    ),
    "the text of a tensor's type": (
        "",
        WRONG.format("'cuda' in x.type(None)"),
        "uses x.type(None)",
    ),
    "a type that may be none": (
        "NONE = None",
        WRONG.format("'cuda' in x.type(NONE)"),
        "uses x.type(NONE), which may be a text",
    ),
    "a translated text": (
        "PERCENT = '!s'.translate({33: 37})",
        WRONG.format("'cuda' in PERCENT.__mod__(x.device)"),
        "uses translate",
    ),
    "bytes of a number": (
        "PERCENT = (37).to_bytes(1, 'big')",
        WRONG.format("PERCENT"),
        "uses to_bytes",
    ),
    "bytes": ("", WRONG.format("b'a' < x"), "uses bytes"),
    "a remainder that may be a text": (
        "import operator",
        WRONG.format("operator.mod(x, 2)"),
        "uses operator.mod",
    ),
    "a device that is refused": (
        "",
        "assert x.device.type != 'cuda'\nreturn F.relu(x)",
        "refuses a kind of device",
    ),
    "an error for a device": (
        "",
        "if x.device.type == 'cuda':\n    raise ValueError('no')\nreturn F.relu(x)",
        "refuses a kind of device",
    ),
    "the bits of a dtype": (
        "",
        WRONG.format("torch.finfo(x.dtype).bits < 32"),
        "decides by a dtype",
    ),
    "the bits of a dtype, by a name": (
        "",
        "bits = torch.finfo(x.dtype).bits\n" + WRONG.format("bits < 32"),
        "decides by a dtype",
    ),
    "the dtype of a result": (
        "",
        WRONG.format("torch.result_type(x, 1) == torch.float16"),
        "decides by a dtype",
    ),
    "e7: errors that a context swallows": (QUIET, "return x", "replaces nn.Module's __exit__"),
    "e49: a generator that holds a mode": (
        "def quiet():\n    with torch.no_grad():\n        yield\nHELD = quiet()",
        "return x",
        "uses yield",
    ),
    "u12: what a mode remembers": ("", "off = torch.no_grad()\nreturn x * off.prev", "uses prev"),
    "e4: a dict that wraps writes into": (
        "import functools\nfunctools.wraps(F.relu, assigned=(), updated=('__globals__',))(len)",
        "return x",
        "uses functools.wraps as a value",
    ),
    "e5: fields that become code": (
        "from dataclasses import dataclass\n@dataclass\nclass Asks:\n"
        "    __annotations__ = {'odd=None if True else print()': bool}",
        "return x",
        "uses __annotations__ = ...",
    ),
    "e47: another class": ("", "self.__class__ = nn.ReLU\nreturn x", "uses self.__class__ = ..."),
    "e48: a private attribute": (
        "",
        WRONG.format("hasattr(self, '_is_full_hook')"),
        "uses hasattr",
    ),
    "e28: a hook for every module": (
        "from torch.nn.modules.module import register_module_forward_hook as later\nlater(len)",
        "return x",
        "uses later",
    ),
    "e1: a name of two functions": (
        "def act(x):\n    return open(x)\nkept = act\ndef act(x):\n    return x",
        "return kept(x)",
        "uses act for two things",
    ),
    "e26: torch by a name of its own": ("", WRONG.format("torch.sys.flags"), "uses torch.sys"),
    "e24: a class under another name": (
        "Gelu = nn.GELU\nGelu.forward = len",
        "return x",
        "uses Gelu.forward = ...",
    ),
    "e52: classes in a loop": (
        "for Act in (nn.GELU, nn.SiLU):\n    Act.forward = len",
        "return x",
        "uses Act.forward = ...",
    ),
    "e53: a method of every tensor": (
        "T = torch.Tensor\nT.cosh = T.sinh",
        "return x",
        "uses torch.Tensor as a value",
    ),
    "a class that an attribute holds": (
        "",
        "self.act = nn.GELU\nself.act.forward = len\nreturn x",
        "replaces nn.Module's forward",
    ),
    "v1: the text of a value": ("", WRONG.format("'e+' in str(x[:1])"), "uses str"),
    "v9: the text of a number": ("", WRONG.format("len(f'{x[0]:.1f}') > 8"), "uses the text of"),
    "a text that % makes": ("", WRONG.format("len('%s' % x) > 8"), "uses % in a text"),
    "v2: a call for each number": ("", "x.apply_(print)\nreturn x", "uses print"),
    "v10: bytes": ("", WRONG.format("x._typed_storage()[0] > 8"), "uses _typed_storage"),
    "c1: strides": ("", WRONG.format("x.is_contiguous()"), "uses is_contiguous"),
    "c3: a dtype": ("", WRONG.format("x.dtype == torch.float32"), "decides by a dtype"),
    "c3: a dtype that has a name": (
        "",
        f"kind = x.dtype\n{WRONG.format('kind == torch.float32')}",
        "decides by a dtype",
    ),
    "c4: a device in a table": ("", WRONG.format("{0: 1}.get(x.device)"), "decides by a dtype"),
    "c5: whether the text holds a gradient": ("", WRONG.format("'g' in str(x[:0])"), "uses str"),
    "c7: a parameter": ("", WRONG.format("isinstance(x, nn.Parameter)"), "decides by Parameter"),
    "c8: an offset": ("", WRONG.format("x.storage_offset()"), "uses storage_offset"),
    "s4: a copy that is another object": (
        "",
        WRONG.format("self.mark is x"),
        "uses is, which a copy",
    ),
    "s7: the order of a set": ("", WRONG.format("list({'a', 'b'})[0] == 'a'"), "uses a set"),
    "a helper for inputs that the model uses, too": (
        "def seeded(x):\n    torch.manual_seed(0)\n    return x",
        "return seeded(x)",
        "uses torch.manual_seed",
    ),
    "ii: an assertion that changes something": (
        "RAN = []",
        f"assert not RAN.append(1)\n{WRONG.format('RAN')}",
        "uses RAN.append(1) in an assertion",
    ),
}


@pytest.mark.parametrize("name", FORWARDS)
def test_what_is_on_no_list_is_refused(name):
    top, body, reason = FORWARDS[name]
    text = component("", body, "torch.randn(4)", "(4,)")

    tree = ast.parse(text.replace("class Model", f"{top}\n\n\nclass Model"))

    assert str(surroundings_fault(tree, kernel=True)).startswith(reason)


@pytest.mark.parametrize("line", ["setattr(Model, 'forward', len)", "run_tests = 1", "open('a')"])
def test_a_script_runs_its_tests_and_nothing_else(line):
    text = component("", "return x", "torch.randn(4)", "(4,)")

    tree = ast.parse(f"{text}\n\nif __name__ == '__main__':\n    {line}\n")

    assert "is another file where it is run" in str(surroundings_fault(tree, kernel=True))


def test_what_loads_the_kernels_does_nothing_else():
    text = composed({"relu": "Relu"}, "self.relu = Relu()", "return self.relu(x)", {})
    patched = "    module.Model.forward = len\n    return module.Model"

    assert composed_fault(ast.parse(text)) is None
    assert "loads a file and does something else there: `module.Model.forward`" in str(
        composed_fault(ast.parse(text.replace("    return module.Model", patched)))
    )


def test_a_steps_file_computes_nothing_for_names_that_no_class_uses():
    text = refactored({"relu": "Relu"}, "self.relu = Relu()", "return self.relu(x)")

    assert step_parent_fault(ast.parse(text)) is None
    assert "uses exec" in str(step_parent_fault(ast.parse(f"{text}\n\n_x = exec('1')\n")))


HONEST = {
    "a text in an error": "if x.dim() != 2:\n    raise ValueError(f'{type(x)}')\nreturn x",
    "a dtype in an assertion": "assert x.dtype == torch.float32 and x.is_contiguous()\nreturn x",
    "a dtype in an error": "if x.dtype != torch.float32:\n    raise TypeError(x.dtype)\nreturn x",
    "a dtype that goes on": "kind = x.dtype\nreturn x.double().tanh().to(kind)",
    "a number of a dtype": "return x.masked_fill(x < 0, torch.finfo(x.dtype).min)",
    "modules by number": "for n in range(3):\n    x = getattr(self, f'block_{n}')(x)\nreturn x",
    "a size of a module": "return F.conv2d(x, x, stride=self.stride, groups=self.conv.groups)",
    "a mask that may be missing": "return x if self.mask is None else x + self.mask",
    "a remainder": "return x[: x.shape[0] % 4]",
    "autocast": "with torch.autocast(device_type=x.device.type):\n    return x @ x",
    "an operator": "return torch.ops.aten.add.Tensor(x, x)",
    "named results": "values, places = x.topk(2)\nreturn values + x.max(0).indices",
}


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_plain_code_is_on_the_lists(body):
    init = "self.w, self.mask, self.stride = None, None, 2\nself.conv = nn.Conv2d(1, 1, 1)"
    tree = ast.parse(component(init, body, "torch.randn(4)", "(4,)"))

    assert surroundings_fault(tree, kernel=True) is None
