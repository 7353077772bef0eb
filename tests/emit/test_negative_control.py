"""A composition test proves itself: a wrong kernel is noticed, or the test says that it is not."""

from pathlib import Path

import pytest
from models import NO_INIT, Decomposed, output_of

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return {returned}

def get_inputs(): return [torch.randn(4, 8)]
"""
VACUOUS = "vacuous: a last kernel that is a hundredth off goes unnoticed\nPASS"


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("torch.sigmoid(self.fc(x))", "PASS"),
        ("self.fc(x).argmax(dim=-1)", "PASS"),
        ("self.fc(x) > 0", "PASS"),
        ("torch.topk(self.fc(x), 2)", "PASS"),
        ("torch.sigmoid(self.fc(x)) * 0.0", VACUOUS),
        ("torch.sigmoid(self.fc(x)) * 1e-6", "PASS"),
        ("torch.sigmoid(self.fc(x)) * 1e-6 + 1e3", "PASS"),
        ("self.fc(x) / 0.0", VACUOUS),
    ],
)
def test_a_composition_test_says_whether_it_would_notice(
    decomposed: Decomposed, returned: str, said: str
) -> None:
    directory = decomposed(MODEL.replace("{returned}", returned) + NO_INIT)

    assert output_of(directory / "verification" / "composition_test.py") == said


def test_a_control_that_is_blind_is_told_by_the_test_itself(decomposed: Decomposed) -> None:
    directory = decomposed(MODEL.replace("{returned}", "torch.sigmoid(self.fc(x))") + NO_INIT)
    (kernel,) = directory.glob("level_0_kernel/sigmoid_*.py")
    checks: Path = directory / "verification" / "checks.py"
    _replace(kernel, "torch.sigmoid(", "1e-6 + torch.sigmoid(")
    _replace(checks, "torch.float32: (1e-5, 1e-6)", "torch.float32: (1.0, 1.0)")
    _replace(checks, "MAX_DIFF = 1e-4", "MAX_DIFF = 1.0")

    assert output_of(directory / "verification" / "composition_test.py") == VACUOUS


def test_weights_that_begin_alike_are_told_apart(decomposed: Decomposed) -> None:
    """A bias and a running mean both begin as zeros."""
    directory = decomposed(
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return torch.relu(self.norm(x))

def get_inputs(): return [torch.randn(4, 8)]
"""
        + NO_INIT
    )
    test = directory / "verification" / "composition_test.py"
    _replace(test, '"norm.bias"', '"norm.running_mean"')

    assert output_of(test).startswith("AssertionError")


def _replace(file: Path, old: str, new: str) -> None:
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
