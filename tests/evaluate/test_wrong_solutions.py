"""Solutions that are wrong, each in its own way, and what is said about them."""

from pathlib import Path

import pytest
from solution_files import evaluate_texts

from runner.store.evaluation import Evaluation, SolutionEvaluation

pytestmark = pytest.mark.long

RIGHT_ON_OWN_INPUTS = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x):
        x = x.clamp(-16, 16)
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))
"""
HALF_PRECISION = """
class ModelNew(nn.Module):
    def forward(self, gate, up):
        return (F.silu(gate.half()) * up.half()).float()
"""
ONE_SEED = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 16)
        torch.manual_seed(42)
        self.drawn = nn.Linear(64, 16)
        for parameter in self.drawn.parameters():
            parameter.requires_grad_(False)
        self.answer = [self.drawn]
        del self.drawn

    def forward(self, x):
        return self.answer[0](x)
"""
CACHED = """
class ModelNew(nn.Module):
    cache = {}

    def forward(self, x):
        key = (x.shape, x.data_ptr() // 2**40)
        if key not in self.cache:
            self.cache[key] = x**3
        return self.cache[key]
"""
SKIPPED_ROW = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 64, bias=False)

    def forward(self, x):
        output = torch.zeros(8, 32, 64)
        output[:, :-1] = self.linear(x[:, :-1])
        return output
"""
STRIDES = """
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1).transpose(1, 2).contiguous().transpose(1, 2)
"""
CHANGED_INPUT = """
class ModelNew(nn.Module):
    def forward(self, x, y):
        return x.add_(y)
"""
ESCAPING = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(64, 128, bias=False)
        self.up = nn.Linear(64, 128, bias=False)
        self.down = nn.Linear(128, 64, bias=False)

    def forward(self, x):
        open("/var/tmp/kdrun_solution_was_here", "w").close()
        return self.down(F.silu(self.gate(x)) * self.up(x))
"""


@pytest.fixture(scope="module")
def evaluation(
    decomposed: Path, names: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Evaluation:
    texts = {
        "rms_norm": RIGHT_ON_OWN_INPUTS,
        "swiglu": HALF_PRECISION,
        "head": ONE_SEED,
        "pow": CACHED,
        "down": SKIPPED_ROW,
        "softmax": STRIDES,
        "add": CHANGED_INPUT,
        "feed_forward": ESCAPING,
    }
    folder = tmp_path_factory.mktemp("mine")
    answer = evaluate_texts(decomposed, folder, names, texts, measured=False)
    assert answer.evaluation is not None
    assert answer.text is None
    return answer.evaluation


def solution(evaluation: Evaluation, name: str) -> SolutionEvaluation:
    (row,) = (row for row in evaluation.solutions if row.name == name)
    return row


def test_a_solution_that_is_right_on_own_inputs_alone_is_wrong_in_the_model(
    evaluation: Evaluation, names: dict[str, str]
) -> None:
    row = solution(evaluation, names["rms_norm"])
    own = [item for item in row.comparisons if item.place == "own inputs"]
    assert {item.judgement for item in own} == {"right"}
    assert row.judgement == "wrong"
    assert row.reason is not None
    assert row.reason.endswith("(on blocks_0.norm)")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("swiglu", "times the tolerance, the component itself by"),
        ("head", "(on own inputs)"),
        ("pow", "differs by"),
        ("down", "differs by"),
        ("softmax", "strides [512, 1, 32] instead of [512, 16, 1]"),
        ("add", "changes its inputs, unlike the component"),
    ],
)
def test_a_wrong_solution_is_called_wrong(
    evaluation: Evaluation, names: dict[str, str], name: str, reason: str
) -> None:
    row = solution(evaluation, names[name])
    assert row.judgement == "wrong"
    assert row.reason is not None
    assert reason in row.reason


def test_a_solution_cannot_write_outside_of_its_folder(
    evaluation: Evaluation, names: dict[str, str]
) -> None:
    row = solution(evaluation, names["feed_forward"])
    assert row.judgement == "broken"
    assert row.reason is not None
    assert row.reason.startswith("PermissionError")
    assert not Path("/var/tmp/kdrun_solution_was_here").exists()


def test_without_a_right_solution_no_model_is_judged(evaluation: Evaluation) -> None:
    assert evaluation.model is None
    assert not evaluation.is_all_right
