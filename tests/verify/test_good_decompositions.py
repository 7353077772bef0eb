"""What is right passes every gate, and says so with numbers."""

import json
import os
from pathlib import Path

import decompositions
import pytest
import torch
from files_by_hand import by_original

from runner.tree.verification_section import NOT_VERIFIED, section
from runner.verify import GATES, VerifyOptions, verify, write_reports


def test_a_lone_kernel_passes_and_has_no_steps_to_check(softmax, judged):
    verification = judged(softmax)

    assert verification.status == "passed"
    assert verification.gate("step").verdict == "nothing_to_check"
    assert verification.bitwise_equal is True


def test_a_fusion_passes_every_gate_bit_for_bit(fusion, judged):
    verification = judged(fusion)

    assert [gate.verdict for gate in verification.gates] == ["passed"] * len(GATES)
    assert verification.bitwise_equal is True
    assert verification.max_diff == 0.0
    assert verification.first_failure is None
    assert verification.health == []


def test_a_directory_that_another_torch_made_is_judged_and_says_so(fusion, judged):
    tree = fusion.directory / "decomposition_tree.json"
    document = json.loads(tree.read_text())
    document["metadata"]["torch_version"] = "2.0.1+cu118"
    tree.write_text(json.dumps(document))

    verification = judged(fusion)

    assert verification.status == "passed"
    here = torch.__version__.partition("+")[0]
    assert verification.health == [f"taken apart with torch 2.0.1; here it is {here}"]


def test_a_model_of_layers_fusions_and_kernels_with_a_dict_output_passes(model, judged):
    verification = judged(model)

    assert verification.first_failure is None
    assert len(verification.gate("step").checks) == 3
    assert [coverage.equal for coverage in verification.coverage] == [True] * 4


def test_a_model_passes_in_training_mode_too(model, judged):
    verification = judged(model, mode="train")

    assert verification.status == "passed"
    assert verification.mode == "train"


def test_dropout_in_training_mode_draws_the_same_numbers_on_both_sides(fusion, judged):
    relu = "return F.relu(x)"
    fusion.edit("original.py", "self.relu = nn.ReLU()", "self.relu = nn.Dropout(0.5)")
    fusion.edit_everywhere("relu.py", relu, "return F.dropout(x, 0.5, training=self.training)")
    for path in ("level_1_fusion/conv_relu.py", "steps/step_1_conv_relu_to_kernel/original.py"):
        fusion.edit(path, "F.relu(self.conv(x))", "F.dropout(self.conv(x), 0.5, self.training)")
    _rehash(fusion)

    assert judged(fusion, mode="train").first_failure is None
    assert "runs 0 times" not in str(judged(fusion).first_failure)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_precisions_pass(tmp_path, judged, dtype):
    assert judged(decompositions.conv_relu(tmp_path, dtype)).first_failure is None


def test_one_trial_is_enough_where_one_was_asked_for(fusion, judged):
    verification = judged(fusion, trials=1)

    assert verification.status == "passed"
    assert verification.trials == 1


def test_large_outputs_are_remembered_by_their_digests_and_compare_the_same(fusion, monkeypatch):
    monkeypatch.setattr(VerifyOptions, "disk_cache_bytes", 1)

    verification = verify(fusion.directory, VerifyOptions())

    assert verification.first_failure is None
    assert verification.bitwise_equal is True
    assert len(verification.coverage) == 2


def test_a_large_output_that_differs_is_computed_again_and_measured(fusion, tmp_path, monkeypatch):
    kept = tmp_path / "spill"
    kept.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(kept))
    monkeypatch.setattr(VerifyOptions, "disk_cache_bytes", 1)
    fusion.edit_everywhere("relu.py", "F.relu(x)", "F.relu(x) + 1e-3")

    verification = verify(fusion.directory, VerifyOptions())

    assert verification.max_diff == pytest.approx(1e-3, rel=1e-2)
    assert verification.gate("step").max_diff == pytest.approx(1e-3, rel=1e-2)
    assert len(verification.coverage) == 2
    assert list(kept.iterdir()) == []


def test_each_gate_is_announced_when_its_work_begins(fusion):
    heard: list[str] = []

    verify(fusion.directory, VerifyOptions(), heard.append)

    assert list(dict.fromkeys(heard)) == ["rules", "step", "self-test", "composition", "device"]


def test_verifying_leaves_the_directory_and_the_process_as_they_were(model, judged):
    import sys

    before = _contents(model.directory)
    modules, path = set(sys.modules), list(sys.path)

    judged(model)

    assert _contents(model.directory) == before
    new = {name for name in set(sys.modules) - modules if not name.startswith(("torch", "numpy"))}
    assert not [name for name in new if "kernel" in name or name.startswith("children")]
    assert sys.path == path


def test_a_decomposition_that_moved_passes_from_any_working_directory(model, judged, monkeypatch):
    moved = model.directory.rename(model.directory.parent / "somewhere else")
    monkeypatch.chdir("/")

    assert judged(decompositions.Decomposition(moved)).first_failure is None


def test_a_verification_says_the_same_each_time_on_any_number_of_threads(model, judged):
    threads = torch.get_num_threads()
    said = []
    for number in (1, 2, 4):
        torch.set_num_threads(number)
        said.append(judged(model, seed=7).model_dump(exclude={"seconds"}))
    torch.set_num_threads(threads)

    assert said[0] == said[1] == said[2]


def test_reports_tell_every_gate_and_only_verification_knows_the_time(model, judged):
    verification = judged(model)
    write_reports(model.directory, verification)

    results = json.loads(model.read("verification/test_results.json"))
    summary = json.loads(model.read("verification/step_verification_summary.json"))
    coverage = json.loads(model.read("verification/coverage_summary.json"))
    tree = json.loads(model.read("decomposition_tree.json"))
    assert [gate["gate"] for gate in results["gates"]] == list(GATES)
    assert (summary["steps_passed"], summary["steps_total"]) == (3, 3)
    assert coverage["equal"] is True
    assert tree["metadata"]["verification_status"] == "passed"
    before = _contents(model.directory / "steps")
    write_reports(model.directory, judged(model))
    assert _contents(model.directory / "steps") == before


def test_the_page_holds_the_verdict_and_all_of_health(model, judged):
    verification = judged(model).model_copy(
        update={"health": ["the output is all zeros"], "not_examined": ["the effect of 3 weights"]}
    )
    page = "# A model\n\n{}\n\n## Hierarchy\n"
    model.write("decomposition_analysis.md", page.format(NOT_VERIFIED))

    for _ in range(2):  # the second time over the first
        write_reports(model.directory, verification)

    equal = "the kernels put together equal the original to the last bit"
    how = "(eval mode, 2 draws of weights and inputs, on cpu)"
    lines = [f"Verification **passed**: {equal} {how}.", ""]
    lines += ["- the output is all zeros", "- not examined: the effect of 3 weights"]
    assert model.read("decomposition_analysis.md") == page.format(section(lines))


def test_the_page_of_a_failure_names_the_first_thing_to_fix(model, judged):
    model.edit_everywhere("relu_2x5x8_fp32.py", "torch.relu(x)", "torch.relu(x) + 1e-3")
    model.write("decomposition_analysis.md", NOT_VERIFIED)
    verification = judged(model)

    write_reports(model.directory, verification)

    said = f"Verification **failed**: {verification.first_failure} ("
    assert said in model.read("decomposition_analysis.md")


def test_reports_of_a_failure_name_the_step_that_failed(model, judged):
    model.edit_everywhere("relu_2x5x8_fp32.py", "torch.relu(x)", "torch.relu(x) + 1e-3")

    write_reports(model.directory, judged(model))

    step = "steps/step_3_linear_relu_to_kernel"
    report = json.loads(model.read(f"{step}/verification_result.json"))
    other = json.loads(model.read("steps/step_1_model_to_layer/verification_result.json"))
    assert (report["status"], other["status"]) == ("failed", "passed")
    assert report["max_diff"] == pytest.approx(1e-3, rel=1e-2)
    assert json.loads(model.read(f"{step}/coverage_report.json"))["verdict"] == "failed"
    status = json.loads(model.read("decomposition_tree.json"))["metadata"]["verification_status"]
    assert status == "failed"


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        os.path.relpath(path, directory): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def _rehash(made: decompositions.Decomposition) -> None:
    import hashlib

    digest = hashlib.sha256((made.directory / "original.py").read_bytes()).hexdigest()
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))


def _with_batch_norm(fusion, momentum: str = "0.1") -> None:
    """The fusion's second kernel becomes a batch norm, whose statistics change in training."""
    norm = "nn.BatchNorm2d(4)"
    fusion.edit("original.py", "nn.ReLU()", norm)
    for path in ("level_1_fusion/conv_relu.py", "steps/step_1_conv_relu_to_kernel/original.py"):
        fusion.edit(path, "kernel_size=3)", f"kernel_size=3)\n        self.relu = {norm}")
        fusion.edit(path, "F.relu(self.conv(x))", "self.relu(self.conv(x))")
    kernel = norm.replace("(4)", f"(4, momentum={momentum})")
    fusion.edit_everywhere("relu.py", "        pass", f"        self.norm = {kernel}")
    fusion.edit_everywhere("relu.py", "F.relu(x)", "self.norm(x)")
    kept = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    composition = "verification/composition_test.py"
    names = {f"relu.norm.{name}": f"relu.{name}" for name in kept}
    fusion.edit(composition, "WEIGHTS = {", f"WEIGHTS = {str(names)[:-1]}, ")
    step = "steps/step_1_conv_relu_to_kernel/weight_map.json"
    fusion.write(step, json.dumps(json.loads(fusion.read(step)) | by_original(names)))
    own = {f"relu.{name}": f"relu.{name}" for name in kept}
    fusion.edit_tree(lambda tree: tree["nodes"]["root"]["weight_map"].update(own))
    _rehash(fusion)


def test_statistics_after_a_forward_in_training_are_compared_and_equal(fusion, judged):
    _with_batch_norm(fusion)

    verification = judged(fusion, mode="train")

    assert verification.first_failure is None
    assert verification.bitwise_equal is True


def test_other_statistics_after_a_forward_in_training_fail(fusion, judged, complaints):
    _with_batch_norm(fusion, momentum="0.2")

    assert judged(fusion, mode="eval").gate("composition").verdict == "passed"
    said = complaints(judged(fusion, mode="train"), "composition")["model"]
    assert "after the forward, buffer relu.norm.running_" in said
    said = complaints(judged(fusion, mode="train"), "step")
    assert "after the forward, buffer" in said["steps/step_1_conv_relu_to_kernel"]


def test_statistics_may_not_be_left_out_in_training(fusion, judged, complaints):
    _with_batch_norm(fusion)
    count = "num_batches_tracked"
    norm = "self.norm = nn.BatchNorm2d(4, momentum=0.1)"
    fusion.edit_everywhere("relu.py", norm, f"{norm}\n        self.norm.{count} = None")
    fusion.edit("verification/composition_test.py", f", 'relu.norm.{count}': 'relu.{count}'", "")
    step = "steps/step_1_conv_relu_to_kernel"
    names = json.loads(fusion.read(f"{step}/weight_map.json"))
    del names[f"relu.{count}"]
    fusion.write(f"{step}/weight_map.json", json.dumps(names))

    said = complaints(judged(fusion, mode="train"), "weights")

    lacking = f"failed: the original's relu.{count} has no counterpart"
    assert said == {step: lacking, "model": lacking}
