"""Components, exports and steps in KernelBench's harness, whose test double judges them."""

import ast
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from kernelbench_harness import Verdict, judge, problems, refusals

from runner.cli import cli
from runner.emit import decompose
from runner.problems import Problem, select_problems
from runner.problems.selection import DataRoot
from runner.report.catalogue import collect_workloads
from runner.report.export import export
from runner.report.kernelbench import limits, precision, problem_text
from runner.report.subject import Subject, find_subject
from runner.tree.document import Node, Tree

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "data/samples"
SOME = select_problems(DataRoot(SAMPLES, "samples"))[::4]  # all 71 take half a minute
EXPORTED = ("level1/argmax_over_dim", "level2/conv_bn_relu", "level3/attention_block")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
CHEAP = 10_000_000
"""FLOPs, and bytes."""

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, 4)

    def forward(self, x):
        return self.fc(x)


def get_inputs():
    return [torch.randn(2, 8)]


def get_init_inputs():
    return [8]
"""


def answer_of(problem: str) -> str:
    """The problem's own class as an answer to it."""
    return problem.replace("class Model(", "class ModelNew(")


def judged(problem: str, node: Node) -> Verdict:
    """The problem against itself, once, in the precision that the component needs."""
    dtype = DTYPES[precision({**node.input_dtypes, **node.weight_dtypes})]
    return judge(problem, answer_of(problem), dtype=dtype, trials=1)


@pytest.fixture(scope="module")
def emitted(
    tmp_path_factory: pytest.TempPathFactory, decomposed_sample: Callable[[str], Path]
) -> Path:
    """Decompositions of a few samples, as they are emitted."""
    output = tmp_path_factory.mktemp("emitted")
    for label in EXPORTED:
        shutil.copytree(decomposed_sample(label), output / label)
    return output


@pytest.fixture(scope="module")
def subject(emitted: Path) -> Subject:
    return find_subject(str(emitted), emitted)


def test_the_double_takes_a_problem_for_its_own_answer() -> None:
    assert judge(PROBLEM, answer_of(PROBLEM)).right


@pytest.mark.parametrize(
    ("instead", "reason"),
    [
        ("self.fc(x) * 1.001", "off by"),
        ("self.fc(x)[:1]", r"shape \(1, 4\), not \(2, 4\)"),
        ("self.fc(x).bfloat16()", "RuntimeError: Float did not match BFloat16"),
        ("(self.fc(x),)", "AttributeError"),
        ("self.fc(y)", "NameError"),
    ],
)
def test_the_double_tells_a_wrong_answer(instead: str, reason: str) -> None:
    wrong = answer_of(PROBLEM).replace("self.fc(x)", instead)
    verdict = judge(PROBLEM, wrong)
    assert not verdict.right
    assert re.match(reason, verdict.reason), verdict.reason


@pytest.mark.parametrize(
    ("output", "right"),
    [
        ("x", True),
        ("torch.rand_like(x)", False),
        ("(x, x)", False),
        ("x * torch.nan", False),
        ("(x * 1000).long()", True),
    ],
)
def test_a_problem_is_judged_right_against_itself_where_the_harness_can(
    output: str, right: bool
) -> None:
    problem = PROBLEM.replace("self.fc(x)", output)
    assert judge(problem, answer_of(problem)).right == right


def test_large_indices_that_are_off_by_one_are_right_to_the_harness() -> None:
    problem = PROBLEM.replace("self.fc(x)", "x.long() * 0 + 20_000")
    assert judge(problem, answer_of(problem).replace("20_000", "20_001")).right


def test_the_static_check_tells_what_answers_must_not_hold() -> None:
    assert refusals(answer_of(PROBLEM)) == []
    assert refusals("try:\n    x()\nexcept ValueError as e:\n    pass") == ["try", "pass"]
    assert refusals("class Lazy(torch.Tensor): ...  # try: pass") == ["a subclass of Tensor"]


@pytest.mark.parametrize("problem", SOME, ids=[f"{p.source_level}/{p.name}" for p in SOME])
def test_components_are_problems_that_the_harness_judges_as_the_catalogue_says(
    problem: Problem, tmp_path: Path
) -> None:
    decompose(problem, tmp_path)
    for node in {n.path: n for n in Tree.read(tmp_path).nodes.values()}.values():
        text = (tmp_path / node.path).read_text()
        assert refusals(answer_of(text)) == [], node.path
        if max(node.flops, node.bytes) > CHEAP or limits(node):
            continue
        verdict = judged(problem_text(text, "eval"), node)
        assert verdict.right, (node.path, verdict.reason)
        if re.search(r"as_strided|\.expand\(|^\w+ = \w+\[", text, re.MULTILINE):
            assert judged(text, node).right
            assert_unchanged_by_a_move(text)


def assert_unchanged_by_a_move(component: str) -> None:
    """A component computes from packed inputs what it computes from views of larger tensors."""
    names: dict[str, Any] = {}
    exec(component, names)
    torch.manual_seed(0)
    model, inputs = names["Model"]().eval(), names["get_inputs"]()
    with torch.no_grad():
        expected = model(*inputs)
        actual = model(*[x.to(x.device, copy=True) for x in inputs])
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("level", ["kernel", "fusion", "layer"])
def test_an_export_is_what_its_loader_takes(subject: Subject, level: Any, tmp_path: Path) -> None:
    chosen = collect_workloads(subject, level).workloads
    export(chosen, subject, tmp_path / "to")
    rows = json.loads((tmp_path / "to/index.json").read_text())
    assert [row["name"] for row in rows] == [row.name for row in chosen]
    number = {"kernel": 1, "fusion": 2, "layer": 3}[level]
    taken = problems(tmp_path / "to/kernelbench", number)
    assert sorted(taken) == list(range(1, len(taken) + 1))
    for row in rows:
        folder = "not_judged" if row["harness_limits"] else f"level{number}"
        assert re.fullmatch(rf"{folder}/\d+_{row['name']}\.py", row["kernelbench"])
        assert (tmp_path / "to/kernelbench" / row["kernelbench"]).is_file()
    for text in taken.values():
        assert judge(text, answer_of(text), trials=1).right


def test_what_the_harness_cannot_judge_is_put_aside_with_the_reason(
    subject: Subject, tmp_path: Path
) -> None:
    export(collect_workloads(subject).workloads, subject, tmp_path / "to")
    aside = [path.name for path in (tmp_path / "to/kernelbench/not_judged").iterdir()]
    assert aside == ["1_argmax_32x256x384_d1_fp32.py"]
    readme = (tmp_path / "to/README.md").read_text()
    assert "- output that is not floating-point (1): the harness compares" in readme


def test_an_exported_file_hands_its_model_the_layout_that_a_move_takes_away(emitted: Path) -> None:
    (file,) = emitted.glob("level3/attention_block/level_0_kernel/scaled_dot_product*.py")
    component = file.read_text()
    exported = problem_text(component, "eval")
    assert layouts_after_a_move(component) != layouts(component)
    assert layouts_after_a_move(exported) == layouts(exported) == layouts(component)
    assert "def forward(self, qkv: torch.Tensor):" in exported
    assert "    return [qkv]\n" in exported


def layouts(text: str, *, moved: bool = False) -> list[tuple[int, ...]]:
    """Strides of q, k and v where the attention reads them."""
    seen: list[tuple[int, ...]] = []
    line = next(n for n in text.splitlines() if "torch.matmul(q" in n)
    space = line[: len(line) - len(line.lstrip())]
    probe = f"{space}SEEN.extend(t.stride() for t in (query, key, value))\n{line}"
    names: dict[str, Any] = {"SEEN": seen}
    exec(text.replace(line, probe), names)
    inputs = names["get_inputs"]()
    names["Model"]()(*[x.to(x.device, copy=True) if moved else x for x in inputs])
    return seen


def layouts_after_a_move(text: str) -> list[tuple[int, ...]]:
    return layouts(text, moved=True)


def test_an_expanded_input_is_expanded_by_the_exported_file() -> None:
    problem = PROBLEM.replace("torch.randn(2, 8)", "torch.randn(1, 8).expand(2, 8)")
    exported = problem_text(problem, "eval")
    assert "return [torch.randn(1, 8)]" in exported
    assert "        x = x.expand(2, 8)\n" in exported
    torch.manual_seed(0)
    assert judge(exported, answer_of(problem_text(problem, "eval"))).right


def test_a_file_that_draws_otherwise_stays_as_it_is() -> None:
    for instead in ("*INPUTS", "make(torch.randn(2, 8))", "x, x"):
        text = PROBLEM.replace("torch.randn(2, 8)", instead)
        assert problem_text(text, "eval") == text


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        ({"input_shapes": {}, "input_dtypes": {}}, ["no input"]),
        ({"input_dtypes": {"x": "int64"}}, ["input that is not floating-point"]),
        ({"output_dtypes": {"y": "bool"}}, ["output that is not floating-point"]),
        (
            {
                "output_shapes": {"y": [8], "z": [8]},
                "output_dtypes": {"y": "float32", "z": "int64"},
            },
            ["several outputs", "output that is not floating-point"],
        ),
        ({"operations": ["linear", "dropout"]}, ["random numbers"]),
        ({"attributes": {"dropout_p": 0.1}}, ["random numbers"]),
        ({"output_shapes": {"y": [8 << 30]}}, ["more memory than 80 GiB"]),
    ],
)
def test_limits_follow_from_the_tree(changed: dict[str, Any], expected: list[str]) -> None:
    node = {
        "id": "root",
        "name": "linear",
        "level": "kernel",
        "path": "level_0_kernel/linear.py",
        "input_shapes": {"x": [8]},
        "input_dtypes": {"x": "bfloat16"},
        "output_shapes": {"y": [8]},
        "output_dtypes": {"y": "float32"},
        "operations": ["linear"],
    }
    assert limits(Node.model_validate(node | changed)) == expected


def test_the_catalogue_counts_what_the_harness_cannot_judge(emitted: Path, tmp_path: Path) -> None:
    to = tmp_path / "to"
    done = CliRunner().invoke(cli, ["workloads", str(emitted), "--export", str(to)])
    said = " ".join(done.output.split())
    assert (
        "cannot judge 1 of them: output that is not floating-point (1); --json says which" in said
    )
    assert re.search(r"workloads, 1 of them in kernelbench/not_judged", said)
    done = CliRunner().invoke(cli, ["workloads", str(emitted), "--json", "--level-of", "fusion"])
    document = json.loads(done.stdout)
    assert (document["level"], {row["level"] for row in document["workloads"]}) == (
        "fusion",
        {"fusion"},
    )


STEP = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("label", ["level2/conv_bn_relu", "level3/attention_block"])
def test_a_step_is_a_problem_and_its_answer(
    emitted: Path, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = STEP.findall((ROOT / "docs/kernelbench.md").read_text())[0]
    for step in (emitted / label / "steps").iterdir():
        monkeypatch.setattr(sys, "path", [*sys.path])
        answer = re.sub(r'Path\("output.*"\)', f"Path({str(step)!r})", written, count=1)
        original = (step / "original.py").read_text()
        forget_modules()
        assert judge(original, answer, trials=2).right
        forget_modules()
        (child, *_) = sorted((step / "children").iterdir())
        text = child.read_text()
        child.write_text(text.replace("return ", "return 1.01 * ", 1))
        assert not judge(original, answer, trials=1).right
        child.write_text(text)
    forget_modules()


def forget_modules() -> None:
    """Every step has a module `refactored`, and modules `children`."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("refactored", "children")]:
        del sys.modules[name]


def test_a_component_has_no_try_and_ends_with_its_verdict(emitted: Path) -> None:
    for file in emitted.rglob("level_*/*.py"):
        text = file.read_text()
        assert not [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Try)]
        assert text.endswith('if __name__ == "__main__":\n    run_tests()\n    print("PASS")\n')
