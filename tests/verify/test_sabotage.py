"""What is wrong is a verdict: gate, component, how far. Never a pass, never an exception."""

import json
import math
import shutil

import pytest

from runner.verify import VerifyOptions, verify

pytestmark = pytest.mark.long

IN_THIS_PROCESS = True

STEP = "steps/step_1_conv_relu_to_kernel"
REFACTORED = f"{STEP}/refactored.py"
COMPOSED = "verification/composition_test.py"


def test_a_wrong_kernel_fails_its_step_and_the_composition(fusion, judged, complaints):
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.relu(x) * 1.01")

    verification = judged(fusion)

    assert verification.status == "failed"
    assert "differs by" in complaints(verification, "step")[STEP]
    assert "differs by" in complaints(verification, "composition")["model"]
    assert verification.bitwise_equal is False
    assert verification.max_diff > 1e-4


def test_a_kernel_that_computes_something_else_is_told_by_its_operations(fusion, judged):
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.gelu(x)")

    coverage = judged(fusion).coverage[-1]

    assert [count.operation.partition("(")[0] for count in coverage.missing] == ["relu"]
    assert [count.operation.partition("(")[0] for count in coverage.extra] == ["gelu"]
    assert coverage.extra[0].where[0].startswith("level_0_kernel/relu.py:")


def test_a_missing_operation_fails_even_where_the_values_are_equal(softmax, judged, complaints):
    softmax.edit("original.py", "torch.softmax(x, dim=1)", "torch.softmax(x, dim=1).abs()")

    verification = judged(softmax)

    assert verification.gate("composition").verdict == "passed"
    assert "1 × abs" in complaints(verification, "coverage")["model"]
    assert "missing (original.py:" in complaints(verification, "coverage")["model"]


def test_a_redundant_operation_in_a_kernel_fails_coverage(softmax, judged, complaints):
    softmax.edit_everywhere("softmax_4x16_fp32.py", "x, dim=1)", "x, dim=1).abs()")

    assert "1 × abs" in complaints(judged(softmax), "coverage")["model"]
    assert "too many" in complaints(judged(softmax), "coverage")["model"]


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_arithmetic_in_a_parents_forward_breaks_the_rules(fusion, judged, complaints, path):
    fusion.edit(path, "return self.relu(x)", "return self.relu(x) * 1.0")

    fault = complaints(judged(fusion), "rules")[path]

    assert "`self.relu(x) * 1.0` is no child call" in fault
    assert "line " in fault


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_compute_that_the_source_hides_is_seen_when_it_runs(fusion, judged, complaints, path):
    fusion.edit(path, "self.relu(x)", "self._finish(self.relu(x))")
    fusion.edit(path, "self.relu = Relu()", "self.relu = Relu()\n        self._finish = torch.neg")

    fault = complaints(judged(fusion), "rules")[path]

    assert f"computes neg itself at {path}:" in fault


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_a_copy_in_a_parents_forward_breaks_the_rules(fusion, judged, complaints, path):
    fusion.edit(path, "self.relu(x)", "self.relu(x.transpose(2, 3).reshape(2, 4, 36).view_as(x))")

    assert "computes clone itself" in complaints(judged(fusion), "rules")[path]


@pytest.mark.parametrize("path", [REFACTORED, COMPOSED])
def test_a_parameter_outside_of_the_children_breaks_the_rules(fusion, judged, complaints, path):
    extra = "self.relu = Relu()\n        self.scale = nn.Parameter(torch.ones(1))"
    fusion.edit(path, "self.relu = Relu()", extra)

    verification = judged(fusion)

    where = "model" if path == COMPOSED else STEP
    assert "scale has no counterpart in the original" in complaints(verification, "weights")[where]
    assert verification.status == "failed"


def test_a_mapped_parameter_outside_of_the_children_breaks_the_rules(fusion, judged, complaints):
    extra = "self.relu = Relu()\n        self.bias = nn.Parameter(self.conv.conv.bias)"
    fusion.edit(REFACTORED, "self.relu = Relu()", extra)
    weights = json.loads(fusion.read(f"{STEP}/weight_map.json"))
    fusion.write(
        f"{STEP}/weight_map.json", json.dumps(weights | {"conv.bias": ["conv.conv.bias", "bias"]})
    )

    fault = complaints(judged(fusion), "rules")[REFACTORED]

    assert "holds the parameter bias outside of its children" in fault


def test_a_module_that_is_no_component_breaks_the_rules(fusion, judged, complaints):
    fusion.edit(COMPOSED, "self.relu = Relu()", "self.relu = nn.ReLU()")

    verification = judged(fusion)

    assert "computes relu itself" in complaints(verification, "rules")[COMPOSED]
    assert "runs 0 times" in complaints(verification, "coverage")["level_0_kernel/relu.py"]


def test_weights_that_are_swapped_between_instances_fail(model, judged, complaints):
    path = "verification/composition_test.py"
    model.edit(path, "'linear.0.linear.weight': 'blocks.0", "'linear.0.linear.weight': 'blocks.1")
    model.edit(path, "'linear.1.linear.weight': 'blocks.1", "'linear.1.linear.weight': 'blocks.0")

    verification = judged(model)

    assert verification.gate("weights").verdict == "passed"
    assert "differs by" in complaints(verification, "composition")["model"]


@pytest.mark.parametrize("trials", [1, 2])
def test_equal_defaults_do_not_hide_a_wrong_map(model, judged, trials):
    path = "steps/step_2_block_to_fusion/weight_map.json"
    weights = json.loads(model.read(path))
    ends = "norm.weight", "norm.bias"
    swapped = {ends[0]: weights[ends[1]], ends[1]: weights[ends[0]]}
    model.write(path, json.dumps(weights | swapped))

    assert judged(model, trials=trials).gate("step").verdict == "failed"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"conv.bias": None}, "conv.conv.bias has no counterpart in the original"),
        ({"conv.bias": ["conv.conv.bias", "nowhere"]}, "nowhere is mapped but does not exist"),
        ({"conv.bias": None, "conv.gone": "conv.conv.bias"}, "which the original does not have"),
        (
            {"conv.bias": None, "conv.weight": ["conv.conv.weight", "conv.conv.bias"]},
            "has shape [4], the original's conv.weight",
        ),
    ],
)
def test_a_weight_map_that_is_not_total_fails(fusion, judged, complaints, change, said):
    weights = json.loads(fusion.read(f"{STEP}/weight_map.json")) | change
    weights = {source: name for source, name in weights.items() if name}
    fusion.write(f"{STEP}/weight_map.json", json.dumps(weights))

    assert said in complaints(judged(fusion), "weights")[STEP]


def test_a_weight_of_the_original_that_nothing_maps_to_fails(fusion, judged, complaints):
    fusion.edit_everywhere("conv2d.py", "kernel_size=3", "kernel_size=3, bias=False")
    fusion.edit(COMPOSED, ", 'conv.conv.bias': 'conv.bias'", "")

    said = complaints(judged(fusion), "weights")["model"]

    assert "the original's conv.bias has no counterpart" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[1]", "not a map"),
        ('{"a": 1}', "neither a name nor names"),
        ('{"a": []}', "neither a name nor names"),
    ],
)
def test_a_weight_map_that_is_no_map_is_broken(fusion, judged, complaints, text, said):
    fusion.write(f"{STEP}/weight_map.json", text)

    assert said in complaints(judged(fusion), "step")[STEP]


def test_another_dtype_fails_with_both_named(fusion, judged, complaints):
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.relu(x).double()")

    verification = judged(fusion)

    assert (
        "output is float64 instead of float32" in complaints(verification, "composition")["model"]
    )
    assert "float64[2, 4, 6, 6]" in complaints(verification, "self-test")["level_0_kernel/relu.py"]
    assert verification.max_diff == math.inf


def test_a_component_that_gives_nan_where_the_original_does_not_fails(fusion, judged, complaints):
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.relu(x).sub(1).log()")

    verification = judged(fusion)

    assert "NaN or infin" in complaints(verification, "composition")["model"]


def test_a_component_whose_own_inputs_make_it_nan_fails_its_self_test(fusion, judged, complaints):
    fusion.edit_everywhere("relu.py", "torch.randn(2, 4, 6, 6)", "torch.randn(2, 4, 6, 6) / 0")

    said = complaints(judged(fusion), "self-test")["level_0_kernel/relu.py"]

    assert "where the original is finite" in said


def test_nan_that_the_original_gives_too_passes_and_is_flagged(softmax, judged):
    for path in ("original.py", "level_0_kernel/softmax_4x16_fp32.py"):
        softmax.edit(path, "torch.rand(4, 16)", "torch.rand(4, 16) * 0 + float('nan')")
    _rehash(softmax)

    verification = judged(softmax)

    assert verification.first_failure is None
    assert "the output holds NaN or infinity" in verification.health


def test_a_shrunk_component_fails_although_it_documents_itself_well(fusion, judged, complaints):
    kernel = "level_0_kernel/relu.py"
    fusion.edit_everywhere("relu.py", "2, 4, 6, 6", "1, 4, 6, 6")
    fusion.edit_tree(
        lambda tree: tree["nodes"]["root.relu"].update(
            input_shapes={"x0": [1, 4, 6, 6]}, output_shapes={"y0": [1, 4, 6, 6]}
        )
    )

    said = complaints(judged(fusion), "self-test")[kernel]

    assert "float32[1, 4, 6, 6]" in said
    assert "calls it with float32[2, 4, 6, 6]" in said


def test_a_root_that_is_not_at_the_originals_size_fails(softmax, judged, complaints):
    softmax.edit("original.py", "torch.rand(4, 16)", "torch.rand(8, 16)")

    said = complaints(judged(softmax), "self-test")["level_0_kernel/softmax_4x16_fp32.py"]

    assert "gives float32[4, 16], the original's float32[8, 16]" in said


def test_a_root_component_that_is_not_the_original_fails(fusion, judged, complaints):
    wrong = "F.relu(self.conv(x)) + 1"
    fusion.edit("level_1_fusion/conv_relu.py", "F.relu(self.conv(x))", wrong)
    fusion.edit(f"{STEP}/original.py", "F.relu(self.conv(x))", wrong)

    verification = judged(fusion)

    assert "differs by" in complaints(verification, "composition")["level_1_fusion/conv_relu.py"]


def test_a_wrong_documented_output_shape_fails(fusion, judged, complaints):
    fusion.edit_everywhere("relu.py", "return [(2, 4, 6, 6)]", "return [(2, 4, 6, 5)]")

    said = complaints(judged(fusion), "self-test")["level_0_kernel/relu.py"]

    assert "get_expected_output_shape() says [2, 4, 6, 5]" in said


def test_another_structure_of_the_output_fails(model, judged, complaints):
    model.edit("verification/composition_test.py", '"logits": [', '"scores": [')

    assert "dict(hidden: tensor, scores" in complaints(judged(model), "composition")["model"]


def test_a_child_that_is_not_the_component_proves_nothing(fusion, judged, complaints):
    fusion.edit(f"{STEP}/children/relu.py", "F.relu(x)", "torch.relu(x)")

    said = complaints(judged(fusion), "rules")[REFACTORED]

    assert "children/relu.py is none of the component files" in said


def test_a_tree_with_other_children_than_the_step_fails(model, judged, complaints):
    def shared_layer(tree):
        tree["nodes"]["root.head"]["path"] = "level_0_kernel/linear_8x8_fp32.py"

    model.edit_tree(shared_layer)

    said = complaints(judged(model), "rules")["steps/step_1_model_to_layer/refactored.py"]
    assert "not the children that the tree gives root" in said


def test_a_component_that_no_step_takes_apart_fails(model, judged, complaints):
    shutil.rmtree(model.directory / "steps/step_2_block_to_fusion")

    said = complaints(judged(model), "step")

    assert said == {"level_2_layer/block_8_fp32.py": "broken: no step takes it apart"}


def test_a_wrapper_with_a_single_child_breaks_the_rules(fusion, judged, complaints):
    def wrap(tree):
        tree["nodes"]["root"]["children"] = ["root.conv"]
        del tree["nodes"]["root.relu"]

    fusion.edit_tree(wrap)

    assert "a single child" in complaints(judged(fusion), "rules")["decomposition_tree.json"]


def test_a_component_that_imports_more_than_torch_breaks_the_rules(fusion, judged, complaints):
    fusion.edit_everywhere("relu.py", "import torch\n", "import torch\nimport pydantic\n")

    assert "imports pydantic" in complaints(judged(fusion), "rules")["level_0_kernel/relu.py"]


def test_a_component_that_is_in_no_node_breaks_the_rules(fusion, judged, complaints):
    fusion.write("level_0_kernel/spare.py", fusion.read("level_0_kernel/relu.py") + "\n")

    assert "in no node" in complaints(judged(fusion), "rules")["level_0_kernel/spare.py"]


def test_another_original_than_the_tree_was_made_of_breaks_the_rules(fusion, judged, complaints):
    fusion.edit("original.py", "and a ReLU", "and ReLU")

    assert "its sha256 is another" in complaints(judged(fusion), "rules")["decomposition_tree.json"]


@pytest.mark.parametrize(
    "path",
    [
        "original.py",
        "decomposition_tree.json",
        "level_0_kernel/relu.py",
        "level_1_fusion/conv_relu.py",
        REFACTORED,
        f"{STEP}/original.py",
        f"{STEP}/weight_map.json",
        f"{STEP}/children/relu.py",
        COMPOSED,
    ],
)
@pytest.mark.parametrize("spoilt", ["missing", "syntax", "raises", "exits", "binary"])
def test_any_file_that_is_missing_or_broken_is_a_verdict(fusion, judged, path, spoilt):
    file = fusion.directory / path
    if spoilt == "missing":
        file.unlink()
    elif spoilt == "binary":
        file.write_bytes(b"\xff\xfe\x00\x01")
    else:
        texts = {"syntax": "def (:", "raises": "1 / 0", "exits": "raise SystemExit(0)"}
        file.write_text(texts[spoilt], encoding="utf-8")

    verification = verify(fusion.directory, VerifyOptions(trials=1))

    assert verification.status == "failed"
    assert verification.first_failure
    assert "\n" not in verification.first_failure
    assert str(fusion.directory) not in verification.first_failure
    if spoilt in {"missing", "syntax"} and path.startswith(("level_", REFACTORED, COMPOSED)):
        reason = "No such file or directory" if spoilt == "missing" else "line 1: SyntaxError"
        assert verification.first_failure.startswith(f"rules: {path}: {reason}")


@pytest.mark.parametrize(
    ("path", "where"),
    [("level_0_kernel/relu.py", "self-test"), (REFACTORED, "step"), (COMPOSED, "composition")],
)
def test_a_forward_that_raises_is_told_with_its_line(fusion, judged, complaints, path, where):
    body = "return F.relu(x)" if "level" in path else "return self.relu(x)"
    fusion.edit(path, body, "raise ValueError('no luck')")

    (said,) = complaints(judged(fusion), where).values()

    assert "ValueError: no luck" in said
    assert f"({path}:" in said


def test_an_empty_directory_fails(tmp_path):
    verification = verify(tmp_path, VerifyOptions())

    assert verification.status == "failed"
    assert (
        verification.first_failure == "rules: decomposition_tree.json: no decomposition_tree.json"
    )


def test_a_directory_without_a_tree_is_judged_as_far_as_it_goes(fusion, judged, complaints):
    (fusion.directory / "decomposition_tree.json").unlink()

    verification = judged(fusion)

    assert list(complaints(verification, "rules")) == ["decomposition_tree.json"]
    assert {gate.gate: str(gate.verdict) for gate in verification.gates} == {
        "rules": "broken",
        "weights": "passed",
        "self-test": "passed",
        "step": "passed",
        "composition": "passed",
        "coverage": "passed",
        "device": "passed",
    }


def test_a_tree_without_maps_and_strides_passes_where_the_names_are_the_originals(fusion, judged):
    def forget(tree):
        for node in tree["nodes"].values():
            del node["weight_map"]
            node["input_strides"] = {}

    fusion.edit_tree(forget)

    assert judged(fusion).first_failure is None


@pytest.mark.parametrize("error", ["MemoryError()", "RuntimeError('not enough: out of memory')"])
@pytest.mark.parametrize("path", ["level_0_kernel/relu.py", REFACTORED, COMPOSED, "original.py"])
def test_running_out_of_memory_is_no_verdict_and_leaves(fusion, path, error):
    text = fusion.read(path)
    start = (
        text.index("return self.relu(")
        if path != "level_0_kernel/relu.py"
        else text.index("return F")
    )
    fusion.write(path, f"{text[:start]}raise {error}\n        {text[start:]}")

    with pytest.raises(MemoryError):
        verify(fusion.directory, VerifyOptions(trials=1))


def test_memory_that_torch_does_not_get_leaves_as_a_memory_error(softmax):
    softmax.edit("original.py", "torch.softmax(x, dim=1)", "torch.empty(1 << 50)")

    with pytest.raises(MemoryError):
        verify(softmax.directory, VerifyOptions())


def _rehash(made):
    import hashlib

    digest = hashlib.sha256((made.directory / "original.py").read_bytes()).hexdigest()
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))
