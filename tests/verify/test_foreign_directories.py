"""A directory that something else wrote is judged on what it shows, and told what it lacks."""

import json

import pytest

from runner.verify import VerifyOptions, verify

STEP = "steps/step_1_conv_relu_to_kernel"
COMPOSED = "verification/composition_test.py"
RELU = "level_0_kernel/relu.py"
TREE = "decomposition_tree.json"
CLASS_OF_TORCH = """\
class Model(nn.ReLU):
    def __init__(self):
        super().__init__()


"""


def bare(tree):
    """What a tree has to say: who is whose child, in which file, at which shapes."""
    kept = ("level", "path", "children", "input_shapes", "output_shapes", "input_dtypes")
    kept += ("output_dtypes",)
    tree["metadata"] = {"author": "somebody"}
    tree["nodes"] = {
        name: {key: node[key] for key in kept} | {"note": "by hand"}
        for name, node in tree["nodes"].items()
    }
    del tree["data_flow"]


def test_a_tree_with_the_bare_minimum_passes(fusion, judged):
    fusion.edit_tree(bare)

    assert judged(fusion, trials=1).first_failure is None


def test_a_tree_that_lists_shapes_without_names_passes(fusion, judged):
    def listed(tree):
        bare(tree)
        for node in tree["nodes"].values():
            node.update(
                {k: [*v.values()] for k, v in node.items() if k.endswith(("_shapes", "_dtypes"))}
            )

    fusion.edit_tree(listed)

    assert judged(fusion, trials=1).first_failure is None


def test_a_tree_of_another_version_is_refused_in_one_line(fusion, judged, complaints):
    fusion.edit_tree(lambda tree: tree["metadata"].update(schema_version=1))

    said = complaints(judged(fusion, trials=1), "rules")[TREE]

    assert said.endswith(
        "schema version 1, this kdrun reads version 2; "
        "decompose the problem again with this version of kdrun"
    )


def test_a_node_whose_dtypes_are_not_of_its_inputs_is_told(fusion, judged, complaints):
    def rename(tree):
        tree["nodes"]["root.relu"]["input_dtypes"] = {"other": "float32"}

    fusion.edit_tree(rename)

    said = complaints(judged(fusion, trials=1), "rules")[TREE]

    assert "node 'root.relu': input_dtypes has other names than the shapes" in said


def test_a_tree_whose_nodes_are_a_list_passes(fusion, judged):
    def listed(tree):
        bare(tree)
        tree["nodes"] = [node | {"id": name} for name, node in tree["nodes"].items()]

    fusion.edit_tree(listed)

    assert judged(fusion, trials=1).first_failure is None


def test_metadata_of_another_kind_are_left_aside(fusion, judged):
    fusion.edit_tree(lambda tree: tree["metadata"].update(capture="by hand", by_level="two"))

    assert judged(fusion, trials=1).first_failure is None


def test_a_node_without_shapes_documents_none(fusion, judged, complaints):
    def forget(tree):
        del tree["nodes"]["root.relu"]["input_shapes"]

    fusion.edit_tree(forget)

    said = complaints(judged(fusion, trials=1), "self-test")[RELU]

    assert "get_inputs() gives float32[2, 4, 6, 6], the tree says nothing (root.relu)" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "has no nodes"),
        ('{"nodes": {}}', "no node 'root'"),
        ('{"nodes": {"root": {}}}', "node 'root': level: Field required"),
        ('{"nodes": {"root": 3}}', "node 'root': Input should be"),
        ('{"nodes": {"root": {"level": "block", "path": "a.py"}}}', "node 'root': level: Input"),
        (
            '{"nodes": {"root": {"level": "fusion", "path": "a.py", "children": ["x"]}}}',
            "names a child 'x' that does not exist",
        ),
    ],
)
def test_a_tree_that_is_none_is_told_in_a_line(fusion, judged, complaints, text, said):
    fusion.write(TREE, text)

    verification = judged(fusion, trials=1)

    assert said in complaints(verification, "rules")[TREE]
    assert verification.gate("composition").verdict == "passed"
    assert "\n" not in verification.first_failure


def test_names_of_files_and_folders_are_the_authors_own(fusion, judged):
    for path in list(fusion.directory.rglob("relu.py")):
        path.rename(path.with_name("activation_b.py"))
    (fusion.directory / STEP).rename(fusion.directory / "steps/conv_block")
    fusion.edit("steps/conv_block/refactored.py", "children.relu ", "children.activation_b ")
    fusion.edit(COMPOSED, '"relu"', '"activation_b"')

    def rename(tree):
        tree["nodes"]["root.relu"]["path"] = "level_0_kernel/activation_b.py"

    fusion.edit_tree(rename)

    assert judged(fusion, trials=1).first_failure is None


@pytest.mark.parametrize("arguments", ["[4]", '{"channels": 4}'])
def test_components_with_arguments_get_their_own(fusion, judged, arguments):
    init = "self, channels"
    for path in ("level_1_fusion/conv_relu.py", f"{STEP}/original.py"):
        fusion.edit(path, "def __init__(self", f"def __init__({init}")
        fusion.edit(path, "nn.Conv2d(3, 4", "nn.Conv2d(3, channels")
        fusion.edit(path, "return []", f"return {arguments}")
    fusion.edit_everywhere("conv2d.py", "def __init__(self", f"def __init__({init}")
    fusion.edit_everywhere("conv2d.py", "nn.Conv2d(3, 4", "nn.Conv2d(3, channels")
    fusion.edit_everywhere("conv2d.py", "return []", f"return {arguments}")
    for path in (COMPOSED, f"{STEP}/refactored.py"):
        fusion.edit(path, "Conv2d()", "Conv2d(4)")

    assert judged(fusion, trials=1).first_failure is None


def test_kernels_may_be_imported_by_name_from_their_folder(fusion, judged):
    text = fusion.read(COMPOSED)
    start, end = text.index("def _kernel"), text.index("WEIGHTS")
    imports = (
        "import sys\n\nsys.path.insert(0, str(Path(__file__).resolve().parents[1] "
        "/ 'level_0_kernel'))\n"
        "from conv2d import Model as Conv2d\nfrom relu import Model as Relu\n\n"
    )
    fusion.write(COMPOSED, text[:start] + imports + text[end:])

    assert judged(fusion, trials=1).first_failure is None
    assert judged(fusion, trials=1).first_failure is None  # nothing stays behind


@pytest.mark.parametrize("missing", ["get_expected_output_shape", "run_tests"])
def test_a_part_that_a_component_lacks_is_told_and_the_rest_judged(
    fusion, judged, complaints, missing
):
    fusion.edit_everywhere("relu.py", f"def {missing}", f"def no_{missing}")

    verification = judged(fusion, trials=1)

    assert complaints(verification, "self-test") == {RELU: f"failed: no {missing}()"}
    assert verification.gate("step").verdict == "passed"
    assert verification.gate("composition").verdict == "passed"


@pytest.mark.parametrize(
    ("gone", "gate", "said"),
    [
        ("original.py", "rules", "original.py: failed: is missing: put the problem there"),
        (COMPOSED, "rules", "composition_test.py: failed: No such file"),
        (f"{STEP}/weight_map.json", "step", "weight_map.json: No such file"),
        (f"{STEP}/refactored.py", "rules", "refactored.py: failed: No such file"),
        (RELU, "self-test", "relu.py: No such file"),
    ],
)
def test_a_file_that_is_missing_is_told_in_plain_words(
    fusion, judged, complaints, gone, gate, said
):
    (fusion.directory / gone).unlink()

    verification = judged(fusion, trials=1)

    found = complaints(verification, gate)
    assert any(said in f"{file}: {reason}" for file, reason in found.items())


def test_a_composition_test_that_only_prints_pass_is_none(fusion, judged, complaints):
    fusion.write(COMPOSED, "print('PASS')\n")

    verification = judged(fusion, trials=1)

    assert verification.status == "failed"
    assert complaints(verification, "rules")[COMPOSED] == "failed: no class ComposedModel"


def test_a_composition_test_that_compares_shapes_only_does_not_decide(fusion, judged, complaints):
    fusion.edit(COMPOSED, "return self.relu(x)", "return self.relu(self.relu(x))")
    text = "\n\ndef run_tests():\n    assert ComposedModel()(torch.zeros(2, 3, 8, 8)).shape\n"
    fusion.write(COMPOSED, fusion.read(COMPOSED) + text + "\n\nrun_tests()\nprint('PASS')\n")

    verification = judged(fusion, trials=1)

    assert "relu" in complaints(verification, "coverage")["model"]
    assert "too many" in complaints(verification, "coverage")["model"]


def test_reports_that_say_passed_count_for_nothing(fusion, judged):
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.relu(x) * 1.5")
    passed = json.dumps({"status": "passed", "verdict": "passed", "skipped": True})
    for path in ("verification/test_results.json", f"{STEP}/verification_result.json"):
        fusion.write(path, passed)
    fusion.write("result.json", passed)
    fusion.edit_tree(lambda tree: tree["metadata"].update(verification_status="passed"))

    assert judged(fusion, trials=1).status == "failed"


def test_a_file_that_is_a_link_to_elsewhere_stops_everything(fusion, judged, complaints, tmp_path):
    outside = tmp_path / "relu.py"
    outside.write_text("raise SystemExit('ran')\n")
    (fusion.directory / RELU).unlink()
    (fusion.directory / RELU).symlink_to(outside)

    verification = judged(fusion, trials=1)

    said = complaints(verification, "rules")
    assert said == {RELU: f"failed: is a symbolic link to {outside}, outside of the directory"}
    assert verification.gate("self-test").verdict == "not_run"


def test_a_folder_that_is_a_link_to_elsewhere_stops_everything(fusion, judged, complaints):
    steps = fusion.directory / "steps"
    steps.rename(fusion.directory.parent / "elsewhere")
    steps.symlink_to(fusion.directory.parent / "elsewhere")

    assert "is a symbolic link to" in complaints(judged(fusion, trials=1), "rules")["steps"]


def test_a_link_inside_the_directory_is_a_file(fusion, judged):
    child = fusion.directory / STEP / "children/relu.py"
    child.unlink()
    child.symlink_to(f"../../../{RELU}")

    assert judged(fusion, trials=1).first_failure is None


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "level_0_kernel/../../x.py"])
def test_a_path_in_the_tree_that_leaves_the_directory_is_told(fusion, judged, complaints, path):
    fusion.edit_tree(lambda tree: tree["nodes"]["root.relu"].update(path=path))

    verification = judged(fusion, trials=1)

    assert verification.status == "failed"
    said = complaints(verification, "rules")[TREE]
    assert said == f"failed: root.relu: {path} is outside of the directory"


def test_a_directory_of_one_file_is_told_what_it_lacks(tmp_path):
    (tmp_path / "original.py").write_text("class Model: pass\n")

    verification = verify(tmp_path, VerifyOptions(trials=1))

    assert verification.status == "failed"
    assert verification.first_failure.startswith("rules: decomposition_tree.json: no decomp")


def test_a_component_may_be_a_class_of_torch_without_a_forward(fusion, judged):
    text = fusion.read(RELU)
    body = text[text.index("class Model") : text.index("def get_inputs")]
    fusion.edit_everywhere("relu.py", body, CLASS_OF_TORCH)

    assert judged(fusion, trials=1).first_failure is None


def test_a_parent_does_not_compute_for_a_class_of_torch(fusion, judged, complaints):
    text = fusion.read(RELU)
    body = text[text.index("class Model") : text.index("def get_inputs")]
    fusion.edit_everywhere("relu.py", body, CLASS_OF_TORCH)
    hook = (
        "        super().__init__()\n"
        "        torch.nn.ReLU.register_forward_hook\n"
        "        self._late = lambda m, i, o: o * 1\n"
    )
    fusion.edit(f"{STEP}/refactored.py", "        super().__init__()\n", hook)
    fusion.edit(
        f"{STEP}/refactored.py",
        "    def forward(self, x):\n",
        "    def forward(self, x):\n        self.relu.register_forward_hook(self._late)\n",
    )

    assert judged(fusion, trials=1).status == "failed"


def test_an_empty_init_file_is_no_component(fusion, judged):
    fusion.write("level_0_kernel/__init__.py", "")
    fusion.write(f"{STEP}/children/__init__.py", "")

    assert judged(fusion, trials=1).first_failure is None


def test_a_forward_may_say_that_it_takes_no_gradients(fusion, judged):
    fusion.edit_everywhere(
        "relu.py", "    def forward(self", "    @torch.no_grad()\n    def forward(self"
    )

    assert judged(fusion, trials=1).first_failure is None


def test_a_weight_that_nothing_reads_may_be_left_out_of_a_step(fusion, judged):
    fusion.edit_tree(bare)
    for file in ("original.py", "level_1_fusion/conv_relu.py", f"{STEP}/original.py"):
        usage = "super().__init__()\n        self.register_buffer('usage', torch.zeros(4))"
        fusion.edit(file, "super().__init__()", usage)

    assert judged(fusion, trials=1).first_failure is None


def test_two_files_of_one_workload_are_told(fusion, judged, complaints):
    fusion.write("level_0_kernel/another_relu.py", fusion.read(RELU).replace("A component", "Mine"))

    def list_it(tree):
        another = {"id": "root.another", "path": "level_0_kernel/another_relu.py"}
        tree["nodes"]["root.another"] = tree["nodes"]["root.relu"] | another
        tree["nodes"]["root"]["children"].append("root.another")

    fusion.edit_tree(list_it)

    said = complaints(judged(fusion, trials=1), "rules")[RELU]

    assert "is level_0_kernel/another_relu.py again: one file a workload" in said


def test_a_kernel_that_is_a_view_is_told(fusion, judged, complaints):
    fusion.edit_everywhere("relu.py", "return F.relu(x)", "return x.view_as(x)")

    said = complaints(judged(fusion, trials=1), "rules")[RELU]

    assert said == "failed: computes nothing: a view belongs into the parent"
