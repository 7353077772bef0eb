"""Steps below the root's run on what the model gives their parents, too, with its weights."""

import hashlib

import pytest

IN_THIS_PROCESS = True

FUSED = "linear_relu_8x8_fp32.py"
BLOCK_STEP = "steps/step_2_block_to_fusion"
FUSED_STEP = "steps/step_3_linear_relu_to_kernel"
LARGER_INPUTS = "return [torch.randn(2, 5, 8), None]", "return [torch.randn(2, 5, 8) * 100, None]"
LARGER_WEIGHTS = (
    "self.linear = nn.Linear(width, width)",
    "self.linear = nn.Linear(width, width)\n        nn.init.constant_(self.linear.bias, 30.0)",
)
LARGE = {
    LARGER_INPUTS: "x.flatten().tolist()",
    LARGER_WEIGHTS: "self.linear.bias.tolist()",
}


def change_original(made, old, new):
    made.edit("original.py", old, new)
    digest = hashlib.sha256(made.read("original.py").encode()).hexdigest()
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))


def change_fusion(made, condition):
    """Another result where the condition holds; not an operation more where it does not."""
    right = "return torch.relu(self.linear(x))"
    wrong = f"y = torch.relu(self.linear(x))\n        return y.sqrt() if {condition} else y"
    made.edit_everywhere(FUSED, right, wrong)
    made.write(f"{FUSED_STEP}/original.py", made.read(f"level_1_fusion/{FUSED}"))


@pytest.mark.parametrize("larger", LARGE, ids=["inputs", "weights"])
def test_a_part_that_is_wrong_for_what_it_gets_in_the_model_fails_there(
    larger, model, judged, complaints
):
    change_fusion(model, f"max({LARGE[larger]}) > 20")
    assert complaints(judged(model, trials=1), "step") == {}
    change_original(model, *larger)
    said = complaints(judged(model, trials=1), "step")
    assert said.keys() == {BLOCK_STEP, FUSED_STEP}
    assert all("failed: on what it gets in the model: " in reason for reason in said.values())


@pytest.mark.parametrize("larger", LARGE, ids=["inputs", "weights"])
def test_a_part_that_is_right_for_it_passes(larger, model, judged):
    change_original(model, *larger)
    assert judged(model, trials=1).status == "passed"


def test_a_step_that_gets_zeros_alone_there_is_judged_on_its_own_inputs(model, judged, complaints):
    change_original(model, LARGER_WEIGHTS[0], LARGER_WEIGHTS[1].replace("30.0", "-30.0"))
    assert judged(model, trials=1).status == "passed"
    model.edit_everywhere("relu_2x5x8_fp32.py", "torch.relu(x)", "torch.relu(x) * 1.01")

    said = complaints(judged(model, trials=1), "step")

    assert said.keys() == {FUSED_STEP}
    assert "failed: output differs" in said[FUSED_STEP]


def test_an_error_there_is_the_steps_verdict(model, judged, complaints):
    fusion = "max(x.flatten().tolist()) > 20 and [][0]"
    change_fusion(model, fusion)
    change_original(model, *LARGER_INPUTS)
    said = complaints(judged(model, trials=1), "step")
    assert "IndexError" in said[BLOCK_STEP]
    assert f"children/{FUSED}" in said[BLOCK_STEP]


@pytest.mark.parametrize("larger", LARGE, ids=["inputs", "weights"])
def test_where_memory_is_short_it_fails_there_too(larger, model, judged, complaints, monkeypatch):
    monkeypatch.setattr("runner.verify.runtime.disk_cache.DiskCache.may_stay", lambda *_: False)
    change_original(model, *larger)
    verdict = judged(model, trials=1)
    assert verdict.status == "passed"
    assert not [line for line in verdict.health if "alone" in line]
    change_fusion(model, f"max({LARGE[larger]}) > 20")
    said = complaints(judged(model, trials=1), "step")
    assert said.keys() == {BLOCK_STEP, FUSED_STEP}


def test_where_there_is_no_room_on_disk_either_the_verdict_says_so(model, judged, monkeypatch):
    monkeypatch.setattr("runner.verify.runtime.disk_cache.DiskCache.may_stay", lambda *_: False)
    monkeypatch.setattr(
        "runner.verify.runtime.disk_cache.DiskCache._has_disk_space", lambda *_: False
    )
    verdict = judged(model, trials=1)
    assert verdict.status == "passed"
    said = f"{BLOCK_STEP} ran on inputs of its own alone: no room beside the model"
    assert said in verdict.health
