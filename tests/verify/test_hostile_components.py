"""A component is one operation on its inputs and weights, and touches nothing else."""

import builtins
import json
import shutil
from pathlib import Path

import pytest
import torch
from files_by_hand import component, composed, node

from runner.verify.gates import compare

pytestmark = pytest.mark.long

STEP = "steps/step_1_conv_relu_to_kernel"
COMPOSED = "verification/composition_test.py"
RELU = "level_0_kernel/relu.py"
CONV = "level_0_kernel/conv2d.py"


def at_import(made, text, name="relu.py"):
    made.edit_everywhere(name, "class Model", f"{text}\n\n\nclass Model")


def in_forward(made, text, name="relu.py"):
    forward = "return F.relu(x)" if name == "relu.py" else "return self.conv(x)"
    made.edit_everywhere(name, forward, text)


def lone(made, init, forward):
    """The model of a convolution and a ReLU, as one kernel."""
    for folder in ("steps", "level_1_fusion", "level_0_kernel"):
        shutil.rmtree(made.directory / folder)
    kernel, shape = "level_0_kernel/all.py", "(2, 4, 6, 6)"
    made.write(kernel, component(init, forward, "torch.randn(2, 3, 8, 8)", shape))
    weights = {f"all.conv.{w}": f"conv.{w}" for w in ("weight", "bias")}
    test = composed({"all": "A"}, "self.all = A()", "return self.all(x)", weights)
    made.write(COMPOSED, test)
    x, y = [(2, 3, 8, 8)], [(2, 4, 6, 6)]
    made.tree({"root": node(kernel, "kernel", x, y)})
    return kernel


def test_a_whole_model_as_one_kernel_is_more_than_one_operation(fusion, judged, complaints):
    kernel = lone(
        fusion, "self.conv = nn.Conv2d(3, 4, kernel_size=3)", "return F.relu(self.conv(x))"
    )

    verification = judged(fusion, trials=1)

    assert verification.status == "failed"
    said = complaints(verification, "rules")[kernel]
    assert said == "failed: is more than one operation: conv2d, relu"


def test_a_function_that_claims_to_be_one_operation_is_seen_through(fusion, judged, complaints):
    body = """
    def whole(y):
        return F.relu(self.conv(y))

    return torch.overrides.handle_torch_function(whole, (x,), x) if H(x) else whole(x)
    """
    kernel = lone(fusion, "self.conv = nn.Conv2d(3, 4, kernel_size=3)", body)
    at_import(fusion, "from torch.overrides import has_torch_function_unary as H", "all.py")

    assert "uses H (line " in complaints(judged(fusion, trials=1), "rules")[kernel]


def test_two_contractions_are_two_kernels(softmax, judged, complaints):
    path = "level_0_kernel/softmax_4x16_fp32.py"
    softmax.edit(path, "torch.softmax(x, dim=1)", "x @ x.T @ x")

    assert (
        "is more than one operation: matmul, matmul"
        in complaints(judged(softmax, trials=1), "rules")[path]
    )


ATTENTIONS = {
    "scaled": "torch.softmax(x @ x.T / 4, dim=1) @ x",
    "masked": "torch.softmax((x @ x.T).masked_fill(torch.ones(4, 4).triu(1) > 0, -1e9), 1) @ x",
    "with a sink": "torch.softmax(torch.cat((x @ x.T, x[:, :1]), 1), dim=1)[:, :-1] @ x",
    "capped": "torch.softmax(torch.tanh(x @ x.T / 9) * 9, dim=1) @ x",
    "in another precision": "(torch.softmax(x.double() @ x.double().T, 1) @ x.double()).float()",
    "with a relu": "torch.relu(x @ x.T) @ x",
    "by einsum": "torch.einsum('ij,jk->ik', torch.einsum('ij,kj->ik', x, x).softmax(1), x)",
    "all in one": "F.scaled_dot_product_attention(x[None] * 2, x[None], x[None])[0]",
}


@pytest.mark.parametrize("spelled", ATTENTIONS.values(), ids=ATTENTIONS)
def test_attention_is_one_operation(softmax, judged, spelled):
    softmax.edit("original.py", "import torch\n", "import torch\nimport torch.nn.functional as F\n")
    for path in ("original.py", "level_0_kernel/softmax_4x16_fp32.py"):
        softmax.edit(path, "torch.softmax(x, dim=1)", spelled)
    _rehash(softmax, shape=[4, 16])

    assert judged(softmax, trials=1).gate("rules").verdict == "passed"


NO_ATTENTIONS = {
    "no probabilities": "torch.tanh(x @ x.T) @ x",
    "probabilities of something else": "(x @ x.T * torch.softmax(x[:, :4], 1)) @ x",
    "three products": "torch.softmax(x @ x.T, dim=1) @ x @ x.T @ x",
    "a norm after it": "F.layer_norm(torch.softmax(x @ x.T, dim=1) @ x, (16,))",
    "a sum after it": "(torch.softmax(x @ x.T, dim=1) @ x).cumsum(1)",
}


@pytest.mark.parametrize("spelled", NO_ATTENTIONS.values(), ids=NO_ATTENTIONS)
def test_what_only_resembles_attention_is_more_than_one(softmax, judged, complaints, spelled):
    path = "level_0_kernel/softmax_4x16_fp32.py"
    softmax.edit(path, "torch.softmax(x, dim=1)", spelled)

    assert "is more than one" in complaints(judged(softmax, trials=1), "rules")[path]


@pytest.mark.parametrize("activation", ["softmax(-1)", "relu()"])
def test_an_mlp_is_no_attention(fusion, judged, complaints, activation):
    w = "self.conv.weight.flatten(1)"
    forward = f"return (x.flatten()[None, :27] @ {w}.T).{activation} @ {w}"
    kernel = lone(fusion, "self.conv = nn.Conv2d(3, 4, kernel_size=3)", forward)

    assert "is more than one operation" in complaints(judged(fusion, trials=1), "rules")[kernel]


@pytest.mark.parametrize(
    "spelled",
    [
        "torch.exp(x - x.amax(1, True)) / torch.exp(x - x.amax(1, True)).sum(1, True)",
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
        "F.scaled_dot_product_attention(x[None], x[None], x[None])[0]",
        "torch.einsum('ij,kj->ik', x, x)",
    ],
)
def test_what_spells_one_operation_is_one(softmax, judged, spelled):
    for path in ("original.py", "level_0_kernel/softmax_4x16_fp32.py"):
        text = "import torch\nimport torch.nn.functional as F\n" if path == "original.py" else None
        if text:
            softmax.edit(path, "import torch\n", text)
        softmax.edit(path, "torch.softmax(x, dim=1)", spelled)
        if "einsum" in spelled:
            softmax.edit(path, "torch.rand(4, 16)", "torch.rand(16, 16)")
    if "einsum" in spelled:
        path = "level_0_kernel/softmax_4x16_fp32.py"
        softmax.edit(path, "[(4, 16)]", "[(16, 16)]")
    _rehash(softmax, shape=[16, 16] if "einsum" in spelled else [4, 16])

    assert judged(softmax, trials=1).gate("rules").verdict == "passed"


def test_a_kernel_that_calls_another_is_told(fusion, judged, complaints):
    at_import(
        fusion,
        "import importlib.util\nfrom pathlib import Path\n\n"
        "path = Path(__file__).with_name('conv2d.py')\n"
        "spec = importlib.util.spec_from_file_location('c', path)\n"
        "Other = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(Other)",
    )

    said = complaints(judged(fusion, trials=1), "rules")[RELU]

    assert said.startswith("failed: uses Path (line ")


def test_weights_that_are_baked_into_a_file_are_no_weights(fusion, judged, complaints):
    init = "self.conv = nn.Conv2d(3, 4, kernel_size=3)"
    fusion.edit_everywhere("conv2d.py", init, "self.w = torch.full((4, 3, 3, 3), 0.1)")
    in_forward(fusion, "return F.conv2d(x, self.w)", "conv2d.py")
    fusion.edit(COMPOSED, "'conv.conv.weight': 'conv.weight', 'conv.conv.bias': 'conv.bias'", "")
    fusion.write(f"{STEP}/weight_map.json", "{}")

    said = complaints(judged(fusion, trials=1), "weights")

    assert "the original's conv.weight has no counterpart" in said["model"]
    assert "the original's conv.weight has no counterpart" in said[STEP]


def test_a_weight_that_is_there_and_not_used_is_told(fusion, judged, complaints):
    in_forward(
        fusion,
        "w = torch.full_like(self.conv.weight, 0.1)\n        return F.conv2d(x, w, self.conv.bias)",
        "conv2d.py",
    )

    said = complaints(judged(fusion, trials=1), "weights")

    assert "conv.conv.weight reaches no output, the original's conv.weight does" in said["model"]


def test_an_output_that_is_kept_for_the_next_call_is_told(fusion, judged, complaints):
    at_import(fusion, "CACHE = {}")
    in_forward(fusion, "return CACHE.setdefault('once', F.relu(x))")

    said = complaints(judged(fusion, trials=1), "rules")[RELU]

    assert said == "failed: keeps a tensor that it computed for its next call"


def test_an_output_that_was_computed_beforehand_is_told(fusion, judged, complaints):
    at_import(fusion, "DONE = F.relu(torch.randn(2, 4, 6, 6))")
    in_forward(fusion, "F.relu(x)\n        return DONE")

    verification = judged(fusion, trials=1)

    assert "its input 1 reaches no output" in complaints(verification, "rules")[RELU]
    assert "missing" in complaints(verification, "coverage")["model"]


def test_the_right_operations_on_the_side_do_not_count(fusion, judged, complaints):
    in_forward(fusion, "F.relu(x)\n        return torch.tensor(x.clamp(min=0).tolist())")

    coverage = judged(fusion, trials=1).coverage[-1]

    assert [count.operation.partition("(")[0] for count in coverage.missing] == [
        "convolution",
        "relu",
    ]


def test_answers_keyed_on_the_seed_are_missing_operations(fusion, judged, complaints):
    at_import(fusion, "import random")
    in_forward(
        fusion,
        "state = torch.initial_seed()\n        torch.manual_seed(0)\n"
        "        answer = torch.randn(2, 4, 6, 6)\n        "
        "return F.relu(answer) if state < 9 else x",
    )

    verification = judged(fusion, trials=1)

    assert "missing" in complaints(verification, "coverage")["model"]


def test_other_shapes_at_the_second_call_are_told(model, judged, complaints):
    step = "steps/step_2_block_to_fusion"
    path = "level_2_layer/block_8_fp32.py"
    copies = (path, f"{step}/original.py", "steps/step_1_model_to_layer/children/block_8_fp32.py")
    for file in copies:
        model.edit(file, "def get_inputs():\n", "N = [2]\n\n\ndef get_inputs():\n")
        model.edit(file, "return [torch.randn(2,", "return [torch.randn(N.pop(0) if N else 1,")

    said = complaints(judged(model), "step")[step]

    assert "get_inputs() gave float32[2, 5, 8], now float32[1, 5, 8]" in said


def test_nan_that_only_a_components_own_inputs_make_fails(fusion, judged, complaints):
    for path in ("level_1_fusion/conv_relu.py", f"{STEP}/original.py"):
        fusion.edit(path, "torch.randn(2, 3, 8, 8)", "torch.randn(2, 3, 8, 8) / 0 * 0")

    said = complaints(judged(fusion, trials=1), "self-test")["level_1_fusion/conv_relu.py"]

    assert "gives NaN or infinity" in said
    assert "where the original is finite" in said


def test_broadcasting_does_not_hide_a_wrong_shape(fusion, judged, complaints):
    in_forward(fusion, "return F.relu(x)[:1]")
    fusion.edit_everywhere("relu.py", "[(2, 4, 6, 6)]", "[(1, 4, 6, 6)]")

    verification = judged(fusion, trials=1)

    said = complaints(verification, "composition")["model"]
    assert "shape [1, 4, 6, 6] instead of [2, 4, 6, 6]" in said


def test_a_tolerance_in_the_file_is_not_ours(fusion, judged, complaints):
    in_forward(fusion, "return F.relu(x) + 1e-3")
    text = "\n\ndef run_tests(rtol=1e9, atol=1e9):\n    pass\n\n\nrun_tests()\nprint('PASS')\n"
    for path in (COMPOSED, f"{STEP}/refactored.py"):
        fusion.write(path, fusion.read(path) + text)

    assert "differs by 0.001" in complaints(judged(fusion, trials=1), "composition")["model"]


TOUCHES = {
    "open": "open('/etc/hostname').read()",
    "os": "import os\nos.listdir('/etc')",
    "Path": "from pathlib import Path\nPath('original.py').read_text()",
    "getenv": "from os import getenv\ngetenv('HOME')",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', 9))",
    "subprocess": "import subprocess\nsubprocess.run(['true'])",
    "c": "import ctypes as c\nc.CDLL(None)",
    "gc": "import gc\ngc.get_objects()",
    "sys": "import sys\nsys._getframe(1)",
    "time": "import time\nSTARTED = time.time()",
    "datetime": "import datetime\nTODAY = datetime.date.today()",
    "importlib": "import importlib\nimportlib.import_module('numpy.f2' + 'py')",
    "__import__": "__import__('numpy')",
    "__file__": "HERE = __file__",
    "exec": "exec('import numpy')",
    "torch.save": "torch.save({}, '/tmp/kdrun-hostile')",
    "torch.from_file": "torch.from_file('/tmp/kdrun-hostile', shared=True, size=1)",
}


@pytest.mark.parametrize("caught", ["told", "swallowed"])
@pytest.mark.parametrize("name", TOUCHES)
def test_a_component_asks_for_nothing_but_its_inputs(fusion, judged, complaints, name, caught):
    text = TOUCHES[name]
    if caught == "swallowed":
        indented = text.replace("\n", "\n    ")
        text = f"try:\n    {indented}\nexcept BaseException:\n    pass"
    at_import(fusion, text)

    verification = judged(fusion, trials=1)

    assert verification.status == "failed"
    assert complaints(verification, "rules")[RELU].startswith(f"failed: uses {name} (line ")
    assert not Path("/tmp/kdrun-hostile").exists()


def test_its_tests_may_ask_for_anything(fusion, judged):
    text = "def main():\n    import sys\n\n    print(sys.argv, open(__file__).read())"
    at_import(fusion, f"import os\nimport time\n\n\n{text}")
    for path in fusion.directory.rglob("relu.py"):
        path.write_text(f"{path.read_text()}\n\nif __name__ == '__main__':\n    print(os, time)\n")

    assert judged(fusion, trials=1).first_failure is None


CHANGES = {
    "a function of torch": "torch.allclose = torch.equal = lambda *a, **k: True",
    "a comparison of torch's": "import torch.testing\ntorch.testing.assert_close = print",
    "Python": "import builtins\nbuiltins.max = lambda *a, **k: 0",
    "the judge's comparison": "import sys\nfor name, module in list(sys.modules.items()):\n"
    "    if name.startswith('runner.verify') and hasattr(module, 'compare'):\n"
    "        module.compare = module.compare_with_control = print",
    "every module": "nn.Module.__getattribute__ = "
    "lambda self, name: object.__getattribute__(self, name)",
    "the default dtype": "torch.set_default_dtype(torch.float64)",
    "the hooks of every module": "nn.modules.module.register_module_forward_hook("
    "lambda m, a, y: y)",
    "what torch's operations do": "LIB = torch.library.Library('aten', 'IMPL')\n"
    "LIB.impl('hardshrink', lambda x, y: x, 'CPU', allow_override=True)",
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_component_changes_is_not_the_judges(fusion, judged, change):
    at_import(fusion, CHANGES[change])
    in_forward(fusion, "return F.relu(x) * 1.5")

    before = torch.allclose, torch.get_default_dtype(), builtins.max, compare.compare
    verification = judged(fusion, trials=1)

    assert verification.gate("composition").verdict != "passed"
    assert before == (torch.allclose, torch.get_default_dtype(), builtins.max, compare.compare)


def test_a_replaced_function_of_torch_computes_for_nobody(fusion, judged, complaints):
    at_import(fusion, "F.relu = lambda x: x.clamp(min=0)")

    assert "relu" in complaints(judged(fusion, trials=1), "coverage")["model"]


def test_a_default_device_that_a_component_leaves_is_told(fusion, judged, complaints):
    at_import(fusion, "torch.set_default_device('meta')")

    said = complaints(judged(fusion, trials=1), "self-test")[RELU]

    assert "leaves torch in another mode" in said


def test_bytecode_that_is_not_checked_is_not_run_and_told(fusion, judged, complaints):
    import importlib.util
    import py_compile

    other = fusion.directory.parent / "other.py"
    other.write_text("raise SystemExit('bytecode ran')\n")
    for path in (RELU, CONV):
        cached = importlib.util.cache_from_source(str(fusion.directory / path))
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(other), cfile=cached, invalidation_mode=mode, doraise=True)

    (said,) = set(complaints(judged(fusion, trials=1), "rules").values())

    assert "is bytecode that Python runs instead of the source" in said


def test_what_a_component_prints_is_no_verdict(fusion, judged):
    at_import(fusion, "print('PASS')\nprint('{\"status\": \"passed\"}')")
    in_forward(fusion, "return F.relu(x) * 1.5")

    assert judged(fusion, trials=1).status == "failed"


def _rehash(made, shape):
    import hashlib

    digest = hashlib.sha256((made.directory / "original.py").read_bytes()).hexdigest()

    def change(tree):
        tree["metadata"].update(source_sha256=digest)
        for each in tree["nodes"].values():
            each.update(input_shapes={"x0": shape}, output_shapes={"y0": shape})
            each.update(input_strides={"x0": [shape[1], 1]})

    made.edit_tree(change)
    assert json.loads(made.read("decomposition_tree.json"))
