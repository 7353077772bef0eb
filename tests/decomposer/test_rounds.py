"""A decomposer is a command: what it delivers is judged as everybody's, and it may try again."""

import json
import os
import sys
from pathlib import Path

import agent
import pytest
from scripted import PROBLEM, Take

from runner.batch.attempt import Attempt
from runner.batch.decomposer import delivery, rounds
from runner.prompts import Facts
from runner.store.result import ProblemResult
from runner.tree.document import Tree

pytestmark = pytest.mark.long


def done(attempt: Attempt) -> ProblemResult:
    assert attempt.result is not None
    return attempt.result


def test_it_reads_the_verdict_and_does_better(take: Take, place: Path) -> None:
    result = done(take("improves", rounds=3))

    assert result.status == "passed"
    assert result.decomposer is not None
    first, second = result.decomposer.rounds
    assert (first.status, second.status) == ("failed", "passed")
    assert any("level_0_kernel/relu_2x4x6x6_fp32.py" in line for line in first.findings)
    assert result.decomposer.seconds >= first.command_s + second.command_s
    assert result.figures is not None
    assert (result.figures.components, result.figures.unique_kernels) == (3, 2)


def test_what_passed_is_in_place_and_can_be_read_as_any_other(take: Take, place: Path) -> None:
    take("improves", rounds=3)

    directory = place / "output/level2/conv_relu"
    tree = Tree.read(directory)
    assert tree.metadata.verification_status == "passed"
    assert tree.metadata.source_level == "level2"
    assert tree.metadata.by_level["kernel"] == 2
    assert (directory / "original.py").read_text() == PROBLEM
    stands = ProblemResult.from_directory(directory)
    assert stands.options.decomposer is not None
    assert (
        "steps/step_01_conv2d_relu_3x4_k3_on_2x8x8_fp32_to_kernel/weight_map.json" in stands.files
    )
    assert not (place / "output/level2/.conv_relu.test").exists()


def test_what_a_tree_leaves_out_is_filled_in_from_its_kernels(
    take: Take, place: Path, made: Path
) -> None:
    result = done(take("says_little"))

    assert result.status == "passed"
    nodes = Tree.read(place / "output/level2/conv_relu").nodes.values()
    ours = {node.path: node.identity for node in Tree.read(made / "good").nodes.values()}
    assert {node.path: node.identity for node in nodes} == ours
    conv, relu = (node for node in nodes if node.level == "kernel")
    assert (conv.operations, relu.operations) == (["conv2d"], ["relu"])
    assert conv.weight_shapes == {"conv2d.weight": [4, 3, 3, 3], "conv2d.bias": [4]}
    assert conv.flops > relu.flops > 0
    assert conv.weight_dtypes == {"conv2d.weight": "float32", "conv2d.bias": "float32"}
    assert conv.input_strides == {"x": [192, 64, 8, 1]}
    assert (conv.operation, relu.family) == ("conv2d", "relu on 4-d float32")


def test_nothing_that_a_gate_compares_is_filled_in_before(made: Path, tmp_path: Path) -> None:
    problem = made / "level2/conv_relu.py"
    source = delivery.ProblemSource("conv_relu", "level2", problem.read_bytes(), "", "eval")
    output, built = tmp_path / "output", tmp_path / "built"
    agent.says_little(made / "good", output, "")

    assert delivery.copy_delivery(output, built, source) == []
    delivery.complete_tree(built, source, Facts(capture=None, reason="odd"))

    assert all(node.input_strides == {} for node in Tree.read(built).nodes.values())


def test_the_last_rounds_verdict_stands_where_none_passed(take: Take) -> None:
    result = done(take("never_learns", rounds=2))

    assert result.status == "failed"
    assert result.decomposer is not None
    assert [one.status for one in result.decomposer.rounds] == ["failed", "failed"]
    assert result.reason == result.decomposer.rounds[-1].findings[0]


def test_nothing_delivered_is_a_line(take: Take) -> None:
    result = done(take("does_nothing"))

    assert result.status == "failed"
    assert result.reason is not None
    assert result.reason.startswith("the decomposer ended; nothing was delivered: ")
    assert result.stage == "decomposer"
    assert "/" not in result.reason  # The command's directory is gone by now.


def test_nothing_delivered_replaces_no_pass(take: Take, place: Path) -> None:
    passed = done(take("improves", rounds=3))
    attempt = take("does_nothing", keeps_passed=True)
    assert (done(attempt).status, attempt.artifact_prefix) == ("failed", None)
    assert ProblemResult.from_directory(place / "output/level2/conv_relu") == passed


def test_how_a_command_failed_is_said(take: Take, place: Path) -> None:
    result = done(take("fails"))

    assert result.reason is not None
    assert result.reason.startswith("the decomposer ended with exit code 3; nothing was delivered")
    assert "I could not do it" in (place / "log").read_text()


def test_a_crash_is_told_by_its_signal(take: Take) -> None:
    result = done(take("crashes"))

    assert result.reason is not None
    assert "the decomposer was killed by SIGSEGV" in result.reason


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands get three seconds, kdrun's own part of the work enough for a busy machine."""
    monkeypatch.setattr(rounds, "COMMAND_SHARE", 0.01)


@pytest.mark.usefixtures("hurried")
def test_a_command_that_hangs_is_ended_with_all_that_it_started(take: Take, place: Path) -> None:
    result = done(take("hangs", timeout_s=300))

    assert result.status == "timeout"
    assert result.reason is not None
    assert result.reason.startswith("the decomposer was ended after its ")
    grandchild = int((place / "grandchild").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(grandchild, 0)


@pytest.mark.usefixtures("hurried")
def test_what_a_command_delivered_before_it_hung_is_judged(take: Take) -> None:
    result = done(take("hangs_when_done", timeout_s=300))

    assert result.status == "passed"
    assert result.decomposer is not None
    assert str(result.decomposer.rounds[0].ended).startswith("was ended after its")


def test_a_command_that_is_not_there_is_not_tried_again(take: Take) -> None:
    result = done(take(line="no-such-agent {output}", rounds=3))

    assert result.status == "failed"
    assert result.reason == (
        "the decomposer could not be started: no-such-agent: no such file or directory"
    )
    assert result.decomposer is not None
    assert len(result.decomposer.rounds) == 1


def test_half_a_directory_does_not_pass(take: Take) -> None:
    result = done(take("stops_half_way"))

    assert result.status == "failed"
    assert result.decomposer is not None
    said = "\n".join(result.decomposer.rounds[0].findings)
    assert "no step takes it apart" in said
    assert "composition_test.py" in said


def test_a_whole_model_is_no_kernel(take: Take) -> None:
    result = done(take("passes_the_model_off_as_a_kernel"))

    assert result.status == "failed"
    assert result.reason is not None
    assert "is more than one operation: conv2d, relu" in result.reason


def test_the_original_is_the_problems_file_whatever_is_delivered(take: Take, place: Path) -> None:
    result = done(take("swaps_the_original"))

    assert result.status == "failed"
    assert result.reason == "rules: original.py: is not the problem's file; copy it, byte for byte"
    assert result.decomposer is not None
    assert len(result.decomposer.rounds[0].findings) > 1, "and it was judged against the problem"
    assert (place / "output/level2/conv_relu/original.py").read_text() == PROBLEM


def test_a_link_is_refused_and_not_followed(take: Take, place: Path) -> None:
    result = done(take("links"))

    assert result.status == "failed"
    assert result.reason is not None
    assert "level_0_kernel/relu_2x4x6x6_fp32.py: is a symbolic link to" in result.reason
    assert "level_0_kernel/relu_2x4x6x6_fp32.py" not in result.files


def test_what_is_written_outside_is_told_and_undone(take: Take, place: Path) -> None:
    result = done(take("writes_outside"))

    assert result.status == "failed"
    assert result.decomposer is not None
    said = "\n".join(result.decomposer.rounds[0].findings)
    assert "conv_relu.py, which is the problem; it was put back" in said
    assert "mine.txt, which is outside of its directory" in said
    assert (place / "level2/conv_relu.py").read_text() == PROBLEM


def test_a_flood_of_files_is_stopped(take: Take) -> None:
    result = done(take("floods"))

    assert result.status == "failed"
    assert result.reason is not None
    assert "it wrote more than 20000 files" in result.reason


def test_the_computed_decomposition_comes_first_where_that_is_asked(take: Take) -> None:
    result = done(take("fails", on_failure=True))

    assert result.status == "passed"
    assert result.decomposer is None
    assert result.options.decomposer is None, "as if no decomposer had been named"


def test_a_problem_that_cannot_be_captured_goes_to_the_decomposer(take: Take, place: Path) -> None:
    odd = PROBLEM.replace("torch.relu(self.conv(x))", "torch.sparse.mm(x.to_sparse(), x)")
    odd = odd.replace("torch.randn(2, 3, 8, 8)", "torch.eye(8)")
    (place / "level2/conv_relu.py").write_text(odd)

    result = done(take("does_nothing", on_failure=True))

    assert result.decomposer is not None
    assert [one.status for one in result.decomposer.rounds] == ["failed"]


def test_a_broken_problem_is_nobodys_to_take_apart(take: Take, place: Path) -> None:
    (place / "level2/conv_relu.py").write_text("x = 1\n")

    result = done(take("improves"))

    assert (result.status, result.decomposer) == ("error", None)


def test_it_sees_few_variables_and_no_credentials(
    take: Take, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-store-is-open")
    monkeypatch.setenv("KDRUN_S3_ENDPOINT_URL", "http://there")
    monkeypatch.setenv("MODEL_API_KEY", "key-of-the-model")
    monkeypatch.setenv("SOMETHING_ELSE", "1")

    result = done(take("tells_its_environment", pass_env=("MODEL_API_KEY",)))

    assert result.status == "passed"
    seen = json.loads((place / "output/level2/conv_relu/seen.json").read_text())
    assert seen["MODEL_API_KEY"] == "key-of-the-model"
    assert not {name for name in seen if name.startswith(("AWS", "KDRUN", "SOMETHING"))}
    assert seen["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
    assert seen["cwd"] == str(Path(seen["argv"][-1]).parent)
    assert "my key is [hidden]" in (place / "log").read_text()
