"""What replaces an original computes nothing itself, however that is spelled."""

import json
import sys

import pytest
from verdicts import complaints_of

STEP = "steps/step_1_conv_relu_to_kernel"
REFACTORED = f"{STEP}/refactored.py"
COMPOSED = "verification/composition_test.py"
INIT = "self.relu = Relu()"
RETURN = "return self.relu(x)"


def spoil(made, path, *changes):
    for old, new in changes:
        made.edit(path, old, new)


def above(path, text):
    """A change that puts text before the parent's class."""
    name = "RefactoredModel" if path == REFACTORED else "ComposedModel"
    return f"class {name}", f"{text}\n\n\nclass {name}"


def init(more):
    return INIT, f"{INIT}\n        {more}"


SPELLINGS = {
    "getattr": [(RETURN, "return getattr(torch, 'ne' + 'g')(self.relu(x))")],
    "lambda": [init("self.last = lambda y: y.neg()"), (RETURN, "return self.last(self.relu(x))")],
    "operator": [
        ("import torch\n", "import operator\nimport torch\n"),
        init("self.last = operator.neg"),
        (RETURN, "return self.last(self.relu(x))"),
    ],
    "partial": [
        ("import torch\n", "import functools\nimport torch\n"),
        init("self.relu.forward = functools.partial(torch.clamp, min=0.0)"),
    ],
    "method": [
        (RETURN, "return self.last(self.relu(x))"),
        ("    def forward", "    def last(self, y):\n        return y.neg()\n\n    def forward"),
    ],
    "property": [
        (RETURN, "x = self.relu(x)\n        return x if self.one is None else self.one"),
        (
            "    def forward",
            "    @property\n    def one(self):\n        return torch.ones(1)\n\n    def forward",
        ),
    ],
    "hook": [init("self.relu.register_forward_hook(lambda m, a, y: y.neg())")],
    "hook inside": [init("self.conv.conv.register_forward_hook(lambda m, a, y: y.neg())")],
    "forward replaced": [init("self.relu.forward = lambda y: y.clamp(min=0.0)")],
    "eval": [init("self.last = eval('torch.neg')"), (RETURN, "return self.last(self.relu(x))")],
    "__getattr__": [
        (RETURN, "return self.last(self.relu(x))"),
        (
            "    def forward",
            "    def __getattr__(self, name):\n        return torch.neg if name == 'last' "
            "else super().__getattr__(name)\n\n    def forward",
        ),
    ],
    "functional": [
        ("import torch\n", "import torch\nimport torch.nn.functional as view\n"),
        (RETURN, "return view.relu(self.relu(x))"),
    ],
}


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_compute_in_a_parent_breaks_the_rules(fusion, judged, complaints, spelling, path):
    spoil(fusion, path, *SPELLINGS[spelling])

    verification = judged(fusion, trials=1)

    assert verification.status == "failed"
    fault = complaints(verification, "rules")[path]
    words = ("is no child call", "computes ", "replaces the forward of relu")
    assert any(word in fault for word in words), fault


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_a_child_that_a_parent_derives_from_is_no_child(fusion, judged, complaints, path):
    text = "class More(Relu):\n    def forward(self, y):\n        return super().forward(y).neg()"
    spoil(fusion, path, above(path, text), (INIT, "self.relu = More()"))

    assert "computes relu itself" in complaints(judged(fusion, trials=1), "rules")[path]


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_a_child_whose_class_a_parent_patches_is_told(fusion, judged, complaints, path):
    spoil(fusion, path, above(path, "Relu.forward = lambda self, y: y.clamp(min=0.0)"))

    assert "uses Relu.forward = ..." in complaints(judged(fusion, trials=1), "rules")[path]


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_a_child_that_is_given_another_part_is_told(fusion, judged, complaints, path):
    spoil(fusion, path, init("self.conv.conv = nn.Sequential(self.conv.conv, nn.ReLU())"))

    said = json.dumps([complaints(judged(fusion, trials=1), gate) for gate in ("rules", "weights")])

    assert "no counterpart" in said or "runs convolution + relu in the model" in said


def test_a_kernel_whose_surroundings_are_patched_does_not_do_what_it_does_alone(
    fusion, judged, complaints
):
    patch = "import types\n\nRelu.forward.__globals__['F'] = types.SimpleNamespace(relu=torch.neg)"
    spoil(fusion, COMPOSED, above(COMPOSED, patch))

    verification = judged(fusion, trials=1)

    said = complaints(verification, "rules")["level_0_kernel/relu.py"]
    assert "runs neg in the model, relu by itself" in said


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
@pytest.mark.parametrize("where", ["import", "__init__"])
def test_a_tensor_that_a_parent_makes_beforehand_breaks_the_rules(
    fusion, judged, complaints, path, where
):
    if where == "import":
        spoil(fusion, path, above(path, "ONE = torch.ones(2, 3, 8, 8).mul(0.5)"))
    else:
        spoil(fusion, path, init("self.one = torch.ones(2, 3, 8, 8).mul(0.5)"))

    assert "computes ones before the forward" in complaints(judged(fusion, trials=1), "rules")[path]


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_a_tensor_that_no_component_made_is_told(fusion, judged, complaints, path):
    spoil(
        fusion,
        path,
        above(path, "HIDDEN = torch.zeros(2, 3, 8, 8)"),
        init("self.made = lambda: HIDDEN.view(2, 3, 8, 8)"),
        ("self.conv(x)", "self.conv(self.made())"),
    )

    said = complaints(judged(fusion, trials=1), "rules")[path]

    assert "computes zeros before the forward" in said


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_values_that_change_without_an_operation_are_seen(fusion, judged, complaints, path):
    text = "def twice(y):\n    y.numpy()[:] *= 2\n    return y"
    spoil(fusion, path, above(path, text), (RETURN, "return twice(self.relu(x))"))

    said = complaints(judged(fusion, trials=1), "rules")[path]

    assert "uses numpy" in said or "it gives something else" in said


def test_a_refactored_file_that_reads_the_original_breaks_the_rules(fusion, judged, complaints):
    text = (
        "import importlib.util\n"
        "spec = importlib.util.spec_from_file_location('o', __file__.replace('refactored.py', "
        "'original.py'))\n"
        "Original = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(Original)"
    )
    spoil(fusion, REFACTORED, above(REFACTORED, text))

    said = complaints(judged(fusion, trials=1), "rules")[REFACTORED]

    assert "does something when it is imported" in said


LOADED = "    spec.loader.exec_module(module)"


@pytest.mark.parametrize("key", ["spec.name", '"math"'])
def test_a_composition_adds_modules_and_replaces_none(fusion, judged, key):
    spoil(
        fusion,
        COMPOSED,
        ("import importlib.util", "import importlib.util\nimport sys"),
        (LOADED, f"    sys.modules[{key}] = module\n{LOADED}"),
    )

    reasons = [check.reason for check in complaints_of(judged(fusion, trials=1))]

    told = [str(reason).endswith("replaces the module math for other files") for reason in reasons]
    assert any(told) if "math" in key else not reasons


def test_an_original_that_is_found_in_memory_computes_for_nobody(fusion, judged, complaints):
    text = (
        "import sys\n"
        "PARENT = next(m.Model for n, m in list(sys.modules.items())\n"
        "              if n.startswith('_kdrun_conv_relu'))"
    )
    spoil(
        fusion,
        REFACTORED,
        above(REFACTORED, text),
        (INIT, f"{INIT}\n        self.all = PARENT()\n        del self.conv"),
        ("x = self.conv(x)\n        return self.relu(x)", "return self.all(x)"),
    )
    weights = {"conv.weight": "all.conv.weight", "conv.bias": "all.conv.bias"}
    fusion.write(f"{STEP}/weight_map.json", json.dumps(weights))

    said = complaints(judged(fusion, trials=1), "rules")[REFACTORED]

    assert "uses sys" in said


def test_an_original_by_import_is_no_module(fusion, judged, complaints, monkeypatch):
    monkeypatch.delitem(sys.modules, "original", raising=False)  # left by whoever ran one here
    spoil(fusion, REFACTORED, above(REFACTORED, "from original import Model"))

    assert "original" in complaints(judged(fusion, trials=1), "rules")[REFACTORED]
