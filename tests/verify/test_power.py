"""A wrong kernel makes a comparison fail, or it is said why nothing could be seen."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from runner.verify import GATES, VerifyOptions, verify, write_reports
from runner.verify.gates.compare import Tolerance
from runner.verify.gates.mutants import edits
from runner.verify.gates.power_report import KernelPower, MutantResult, Power
from runner.verify.runtime.disk_cache import DiskCache
from runner.verify.runtime.replay import Recording

IN_THIS_PROCESS = True

STEP = "steps/step_1_conv_relu_to_kernel"


def _mutants(verification, kernel):
    kernels = {k.component.rpartition("/")[2]: k for k in verification.power.kernels}
    return {m.kind: m for m in kernels[kernel].mutants}


def test_every_wrong_kernel_of_a_model_is_caught(model, judged):
    verification = judged(model, power=True)

    assert verification.status == "passed"
    assert verification.gate("power").verdict == "passed"
    assert len(verification.gate("power").checks) == 5
    assert verification.power.unseen == []
    assert verification.health == []
    assert verification.seconds["power"] >= 0


def test_power_is_a_gate_only_where_it_was_asked_for(fusion, judged):
    verification = judged(fusion)

    assert [gate.gate for gate in verification.gates] == list(GATES)
    assert verification.power is None


def test_wrong_kernels_are_put_to_the_smallest_step_that_uses_them(model, judged):
    verification = judged(model, power=True)

    assert _mutants(verification, "relu_2x5x8_fp32.py")["scaled"].where.startswith("steps/step_3")
    assert _mutants(verification, "linear_8x3_fp32.py")["scaled"].where.startswith("steps/step_1")


def test_a_problem_that_is_one_kernel_is_put_to_the_composition(softmax, judged):
    found = _mutants(judged(softmax, power=True), "softmax_4x16_fp32.py")

    assert {mutant.where for mutant in found.values()} == {"model"}
    assert [found[kind].caught_by for kind in ("scaled", "skipped")] == ["values", "values"]


def test_swapped_operands_are_caught_where_their_order_matters(model, judged):
    commutes = _mutants(judged(model, power=True), "add_2x5x8_fp32.py")["swapped"]
    model.edit_everywhere("add_2x5x8_fp32.py", "x + y", "x - y")
    model.edit("original.py", "x + self.norm", "x - self.norm")
    for path in ("level_2_layer/block_8_fp32.py", "steps/step_2_block_to_fusion/original.py"):
        model.edit(path, "x + self.norm", "x - self.norm")
    model.edit("steps/step_1_model_to_layer/children/block_8_fp32.py", "x + self.", "x - self.")
    for path in ("level_3_model/model_fp32.py", "steps/step_1_model_to_layer/original.py"):
        model.edit(path, "x = x + ", "x = x - ")
    _rehash(model)

    differs = _mutants(judged(model, power=True), "add_2x5x8_fp32.py")["swapped"]

    assert (commutes.reason, differs.caught_by) == ("same_output", "values")


def _second_kernel_becomes(fusion, expression: str) -> None:
    fusion.edit_everywhere("relu.py", "F.relu(x)", expression)
    for path in ("level_1_fusion/conv_relu.py", f"{STEP}/original.py"):
        fusion.edit(
            path, "return F.relu(self.conv(x))", f"x = self.conv(x)\n        return {expression}"
        )
    fusion.edit(
        "original.py",
        "from torch import nn",
        "import torch.nn.functional as F\nfrom torch import nn",
    )
    fusion.edit(
        "original.py",
        "return self.relu(self.conv(x))",
        f"x = self.conv(x)\n        return {expression}",
    )
    _rehash(fusion)


def test_a_kernel_behind_a_saturated_one_is_listed_with_what_hides_it(fusion, judged):
    _second_kernel_becomes(fusion, "F.hardtanh(x + 100.0)")

    verification = judged(fusion, power=True)

    scaled = _mutants(verification, "conv2d.py")["scaled"]
    assert (scaled.verdict, scaled.reason) == ("uncaught", "absorbed")
    assert scaled.explanation == "level_0_kernel/relu.py gives the same for the wrong values"
    assert verification.power.unseen == ["level_0_kernel/conv2d.py"]
    assert verification.status == "passed"
    assert any("conv2d.py: wrong values go unnoticed" in said for said in verification.health)
    assert _mutants(verification, "relu.py")["scaled"].caught_by == "values"


def test_a_difference_below_the_tolerance_is_caught_by_its_bits(fusion, judged):
    _second_kernel_becomes(fusion, "x * 1e-4 + 1.0")

    verification = judged(fusion, power=True)

    assert _mutants(verification, "conv2d.py")["scaled"].caught_by == "bits"
    assert verification.power.unseen == []


def test_a_difference_below_the_tolerance_of_unequal_bits_is_listed_with_its_size(fusion, judged):
    _second_kernel_becomes(fusion, "x * 1e-4 + 1.0")
    fusion.edit_everywhere("relu.py", "x * 1e-4 + 1.0", "(x + 1e4) * 1e-4")

    scaled = _mutants(judged(fusion, power=True), "conv2d.py")["scaled"]

    assert scaled.reason == "within_tolerance"
    assert "off at most" in scaled.explanation


@pytest.mark.parametrize("expression", ["x * 0.0", "x / 0.0"])
def test_scaling_what_is_zero_or_not_finite_is_not_called_caught(softmax, judged, expression):
    for path in ("original.py", "level_0_kernel/softmax_4x16_fp32.py"):
        softmax.edit(path, "torch.softmax(x, dim=1)", expression)
    _rehash(softmax)

    verification = judged(softmax, power=True)

    scaled = _mutants(verification, "softmax_4x16_fp32.py")["scaled"]
    assert (scaled.reason, scaled.explanation) == ("same_output", "it gives the same bits")


def test_a_kernel_that_runs_for_nothing_fails(fusion, judged, complaints):
    unused = "level_0_kernel/unused.py"
    fusion.write(unused, fusion.read("level_0_kernel/relu.py").replace("F.relu", "F.gelu"))
    fusion.write(f"{STEP}/children/unused.py", fusion.read(unused))
    fusion.edit(
        f"{STEP}/refactored.py",
        "from children.relu",
        "from children.unused import Model as U\nfrom children.relu",
    )
    fusion.edit(
        f"{STEP}/refactored.py",
        "self.relu = Relu()",
        "self.relu = Relu()\n        self.unused = U()",
    )
    fusion.edit(
        f"{STEP}/refactored.py",
        "return self.relu(x)",
        "self.unused(x)\n        return self.relu(x)",
    )
    fusion.edit_tree(lambda tree: _add_kernel(tree, unused))

    said = complaints(judged(fusion, power=True), "power")

    assert said == {unused: f"failed: nothing in {STEP} reads what it computes"}


def test_a_kernel_that_nothing_runs_is_not_called_powerful(fusion, judged, complaints):
    unused = "level_0_kernel/unused.py"
    fusion.write(unused, fusion.read("level_0_kernel/relu.py"))
    fusion.edit(unused, "F.relu", "F.gelu")
    fusion.edit_tree(lambda tree: _add_kernel(tree, unused))

    said = complaints(judged(fusion, power=True), "power")

    assert list(said) == [unused]
    assert said[unused].startswith("broken: no comparison that passed uses it")


def _add_kernel(tree, path):
    """Add a kernel after the tree's last one, with the same inputs and outputs."""
    *_, last = tree["nodes"].values()
    name = f"root.{Path(path).stem}"
    tree["nodes"][name] = {**last, "id": name, "path": path}
    tree["nodes"]["root"]["children"].append(name)


def test_a_comparison_that_lets_anything_pass_fails(fusion, judged, complaints, monkeypatch):
    for name in ("runner.verify.gates.steps.STEP", "runner.verify.gates.composition.COMPOSITION"):
        monkeypatch.setattr(name, {torch.float32: Tolerance(10.0, 10.0)})

    said = complaints(judged(fusion, power=True), "power")

    assert set(said) == {"level_0_kernel/conv2d.py", "level_0_kernel/relu.py"}
    assert all(f"{STEP} compares as equal what is" in fault for fault in said.values())


def test_recordings_on_disk_say_the_same(model, judged, monkeypatch):
    here = judged(model, power=True).power
    monkeypatch.setattr(VerifyOptions, "disk_cache_bytes", 1)

    assert judged(model, power=True).power == here


def test_the_list_is_the_same_on_every_run_and_knows_no_time(model, judged):
    write_reports(model.directory, judged(model, power=True))
    first = model.read("verification/power.json")
    write_reports(model.directory, judged(model, power=True))

    assert model.read("verification/power.json") == first
    assert Power.model_validate_json(first).caught == json.loads(first)["caught"] > 0


def test_dropout_draws_the_same_numbers_again_behind_a_wrong_kernel(fusion, judged):
    _second_kernel_becomes(fusion, "F.dropout(x, 0.5, self.training) * 0.0 + 1.0")

    verification = judged(fusion, mode="train", power=True)

    assert _mutants(verification, "conv2d.py")["scaled"].reason == "absorbed"


@pytest.mark.parametrize(
    ("known", "wrong"),
    [
        ({"verdict": "uncaught"}, "reason=None"),
        ({"verdict": "caught"}, "caught_by=None"),
        ({"verdict": "caught", "caught_by": "values", "reason": "dead"}, "reason=dead"),
    ],
)
def test_what_was_not_caught_cannot_be_left_unexplained(known, wrong):
    with pytest.raises(ValueError, match=wrong):
        MutantResult(kind="scaled", change="output × 1.01", where="model", **known)


def test_counts_that_do_not_add_up_are_no_document():
    with pytest.raises(ValueError, match="do not add up"):
        Power(caught=1, uncaught=0, kernels=[])
    with pytest.raises(ValueError, match="unseen"):
        Power(caught=0, uncaught=0, kernels=[KernelPower(component="k", mutants=[])])


KERNEL = b'''
class Other:
    size = 1

class Model(nn.Module):
    """Version 2."""

    def __init__(self):
        self.conv = nn.Conv2d(3, 8, kernel_size=(3, 5), bias=False, padding_mode="reflect")

    def forward(self, x):
        x = F.gelu(x, approximate="tanh") * 0.5
        return x.softmax(dim=-1)
'''


def test_each_number_word_and_switch_of_a_kernel_is_changed_by_itself(tmp_path):
    changes = [change for change, _ in edits(KERNEL)]

    assert [change.partition(" becomes ")[2] for change in changes if len(change) < 80] == [
        "kernel_size=(4, 5)",
        "kernel_size=(3, 6)",
        "bias=True",
        "padding_mode='replicate'",
        "approximate='none'",
        "F.gelu(x, approximate='tanh') * 1.0",
        "dim=-2",
    ]
    assert len(changes) == 9


class _Counted(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.runs = function, 0

    def forward(self, *inputs):
        self.runs += 1
        return self.function(*inputs)


class _Parent(nn.Module):
    def __init__(self, *functions):
        super().__init__()
        self.parts = nn.ModuleList(map(_Counted, functions))

    def forward(self, x):
        one, two, three, four = self.parts
        y = one(x)
        return four(two(y).view(-1), three(y).view(-1))


def _recorded(parent, x):
    recording = Recording(dict(parent.parts.named_children()), DiskCache(1 << 20), "cpu")
    with recording.record_calls():
        parent(x)
    return recording


def test_only_what_is_downstream_of_a_wrong_component_runs_again():
    parent = _Parent(torch.exp, torch.sin, torch.cos, torch.add)
    x = torch.randn(3, 4)
    recording = _recorded(parent, x)

    replayed = recording.replay(lambda: parent(x), {"1": lambda use: use.compute_right() * 2})

    assert [part.runs for part in parent.parts] == [1, 1, 1, 2]
    assert torch.equal(replayed.output, (x.exp().sin() * 2 + x.exp().cos()).view(-1))
    assert (replayed.reaches_output, replayed.reaches_component, replayed.absorbed_by) == (
        True,
        True,
        [],
    )


def test_wrong_values_that_change_nothing_later_stop_there():
    parent = _Parent(torch.exp, lambda y: y.clamp(max=0), torch.cos, torch.add)
    x = torch.randn(3, 4)
    recording = _recorded(parent, x)

    replayed = recording.replay(lambda: parent(x), {"0": lambda use: use.compute_right() * 1.01})

    assert [part.runs for part in parent.parts] == [1, 2, 2, 2]
    assert replayed.absorbed_by == ["1"]
    assert torch.equal(replayed.output, (x.exp() * 1.01).cos().view(-1))


def test_components_that_write_into_what_they_are_given_all_run_again():
    parent = _Parent(torch.exp, torch.sin, lambda y: y.neg_(), torch.add)
    x = torch.randn(3, 4)
    recording = _recorded(parent, x)

    replayed = recording.replay(lambda: parent(x), {"1": lambda use: use.compute_right() * 2})

    assert [part.runs for part in parent.parts] == [2, 2, 2, 2]
    assert torch.equal(replayed.output, (x.exp().sin() * 2 - x.exp()).view(-1))


def test_components_are_themselves_again_after_a_replay_that_raises():
    parent = _Parent(torch.exp, torch.sin, torch.cos, torch.add)
    x = torch.randn(3, 4)
    recording = _recorded(parent, x)

    with pytest.raises(RuntimeError):
        recording.replay(lambda: parent(x), {"1": lambda use: use.compute_right()[:1]})

    assert all("forward" not in vars(part) for part in parent.parts)


def _rehash(made) -> None:
    import hashlib

    digest = hashlib.sha256((made.directory / "original.py").read_bytes()).hexdigest()
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))


def test_verifying_with_power_changes_nothing_in_the_directory(fusion):
    before = sorted(path for path in fusion.directory.rglob("*"))

    verify(fusion.directory, VerifyOptions(power=True))

    assert sorted(path for path in fusion.directory.rglob("*")) == before
