"""The brief: complete, versioned, and its own example passes the gates that it describes."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.cli import main
from runner.problems import read_problem
from runner.prompts import VERSION, Facts, render_brief, render_later_round
from runner.prompts.brief import MOST_FINDINGS
from runner.prompts.fact_collection import collect_facts
from runner.verify import VerifyOptions, verify

ROOT = Path(__file__).parents[2]
VIT_BLOCK = ROOT / "data/samples/level3/vit_block.py"
FACTS = Facts(capture=None, reason="too odd")
DIRECTORY = Path("/somewhere/decomposed")

EXAMPLE = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 256)

    def forward(self, x):
        return torch.relu(self.fc(x))


def get_inputs():
    return [torch.randn(8, 64)]


def get_init_inputs():
    return []
"""


def test_the_example_in_the_brief_passes_every_gate(tmp_path: Path) -> None:
    said = render_brief(read_problem(VIT_BLOCK), FACTS, DIRECTORY).method
    files = dict(re.findall(r"^`(\w+[\w/.]+)`[^\n]*\n\n```\w+\n(.*?)```", said, re.M | re.S))
    linear = files["level_0_kernel/linear_64x256_on_8_fp32.py"]
    files["level_0_kernel/relu_8x256_fp32.py"] = (
        linear.replace("        self.fc = nn.Linear(64, 256)\n", "        pass\n")
        .replace("self.fc(x)", "torch.relu(x)")
        .replace("torch.randn(8, 64)", "torch.randn(8, 256)")
    )
    files["level_1_fusion/linear_relu_64x256_on_8_fp32.py"] = linear.replace(
        "self.fc(x)", "torch.relu(self.fc(x))"
    )
    step = "steps/step_01_linear_relu"
    files[f"{step}/original.py"] = files["level_1_fusion/linear_relu_64x256_on_8_fp32.py"]
    for kernel in ("linear_64x256_on_8_fp32", "relu_8x256_fp32"):
        files[f"{step}/children/{kernel}.py"] = files[f"level_0_kernel/{kernel}.py"]
    files["original.py"] = EXAMPLE
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert verify(tmp_path, VerifyOptions()).first_failure is None
    assert len(files) == 11


def test_the_brief_holds_all_that_the_job_needs() -> None:
    problem = read_problem(VIT_BLOCK)
    text = render_brief(problem, collect_facts(problem), DIRECTORY).text()

    assert f"kdrun brief {VERSION}" in text
    assert VIT_BLOCK.read_text().strip() in text
    assert f"kdrun verify {DIRECTORY}" in text
    assert "- linear: 4x197x384 → 4x197x1152; weight 1152x384, bias 1152  [attn.qkv, line" in text
    for told in ("**Exact.**", "Done means", "weight_map.json", "scaled_dot_product_attention"):
        assert told in text
    assert "$" not in text


def test_the_brief_for_a_small_model_is_short() -> None:
    problem = read_problem(VIT_BLOCK)
    text = render_brief(problem, collect_facts(problem), DIRECTORY).text()

    assert len(text.replace(str(ROOT), "/kdrun")) < 18_000  # as long, wherever kdrun lies


def test_each_source_level_is_told_what_its_root_is() -> None:
    def asked(level: int) -> str:
        path = next((ROOT / f"data/samples/level{level}").glob("*.py"))
        return render_brief(read_problem(path), FACTS, DIRECTORY).task

    assert "the whole problem is **one kernel**" in asked(1)
    assert "the root is **a fusion**" in asked(2)
    assert "the root is **a model**" in asked(3)


def test_options_that_change_the_verdict_are_in_the_brief() -> None:
    brief = render_brief(
        read_problem(VIT_BLOCK), FACTS, DIRECTORY, mode="train", flags=["--trials", "4"]
    )

    assert f"kdrun verify --trials 4 {DIRECTORY}" in brief.task
    assert '{"mode": "train"}' in brief.task


def test_what_could_not_be_written_down_is_said() -> None:
    task = render_brief(read_problem(VIT_BLOCK), FACTS, DIRECTORY).task

    assert "could not write this program down: too odd." in task
    assert "A plain run calls no module." in task


def test_values_that_steer_have_to_be_in_the_tree() -> None:
    facts = Facts(capture="concrete", specialisations=("line 3: x.sum() > 0 was True",))

    task = render_brief(read_problem(VIT_BLOCK), facts, DIRECTORY).task

    assert '`"specialisations"`' in task
    assert "line 3: x.sum() > 0 was True" in task


def test_a_later_round_is_told_the_first_findings() -> None:
    brief = render_brief(read_problem(VIT_BLOCK), FACTS, DIRECTORY)
    findings = [f"rules: x{n}.py: is wrong" for n in range(MOST_FINDINGS + 3)]

    text = render_later_round(brief, DIRECTORY, 2, 3, findings)

    assert text.startswith(brief.text())
    assert "Round 2 of 3" in text
    assert f"- rules: x{MOST_FINDINGS - 1}.py: is wrong\n- and 3 more" in text


# --- the command ----------------------------------------------------------------------------------

Prompt = Callable[..., tuple[int, str, str]]


@pytest.fixture
def prompt(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Prompt:
    """`kdrun prompt`, in an empty directory: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kdrun", "prompt", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return end.value.code, printed.out, printed.err

    return run


def test_a_problem_is_named_as_submit_names_it(prompt: Prompt, tmp_path: Path) -> None:
    code, out, err = prompt("linear_g*lu", "--data", str(ROOT / "data/samples"))

    assert (code, err) == (0, "")
    assert f"Write the decomposition to the directory `{tmp_path / 'linear_gelu'}`" in out
    assert "- gelu" in out


def test_messages_are_json_of_a_chat(prompt: Prompt) -> None:
    code, out, _ = prompt(str(VIT_BLOCK), "--format", "messages", "--output", "here")

    said = json.loads(out)

    assert code == 0
    assert [message["role"] for message in said] == ["system", "user"]
    assert said[0]["content"].startswith("# Taking a PyTorch model apart")
    assert "scaled_dot_product_attention" in said[1]["content"]


def test_what_means_no_single_problem_is_a_line(prompt: Prompt, tmp_path: Path) -> None:
    samples = str(ROOT / "data/samples")

    code, out, err = prompt("linear_*", "--data", samples)
    assert (code, out) == (2, "")
    assert "linear_*: means 8 problems" in err
    assert prompt("no_such", "--data", samples)[0] == 2

    broken = tmp_path / "broken.py"
    broken.write_text("x = 1\n")
    code, out, err = prompt(str(broken))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "broken.py: no class Model" in err


def test_a_program_that_cannot_be_captured_has_a_brief_all_the_same(
    prompt: Prompt, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.py"
    body = "        return torch.sparse.mm(x.to_sparse(), self.fc(x))"
    odd.write_text(EXAMPLE.replace("        return torch.relu(self.fc(x))", body))
    odd.write_text(odd.read_text().replace("randn(8, 64)", "eye(64)"))

    code, out, err = prompt(str(odd))

    assert code == 0
    assert "but mind: " in err
    assert "could not write this program down" in out
    assert "- Linear = in_features=64, out_features=256, bias=True: 64x64 → 64x256" in out
