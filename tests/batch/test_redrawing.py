"""A file that cannot take numbers like those in the model draws others, which it can take."""

import runpy
from pathlib import Path

import pytest
import torch

from runner.batch.child.input_repair import rewrite_inputs
from runner.emit import decompose
from runner.emit.decomposition import capture_graph
from runner.problems import read_problem

FILE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

def log1mexp(x):
    return torch.where(x > -0.7, torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x)))

def whitened(matrix):
    factor = torch.linalg.cholesky(matrix + matrix.mT)
    return torch.linalg.solve_triangular(factor, matrix, upper=False).exp()

def decaying(poles):
    return torch.exp(poles[:, None] * torch.arange(500, device=poles.device)).sum(1).abs()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = self.a(x) * 0.1
        poles = torch.complex(-F.softplus(y[0]), y[1])
        return log1mexp(-F.softplus(self.b(x))), whitened(y.mT @ y + torch.eye(8)), decaying(poles)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("name", ["log1mexp", "whitened", "decaying"])
def test_a_file_draws_numbers_that_it_can_take(tmp_path: Path, name: str) -> None:
    (tmp_path / "level3").mkdir()
    file = tmp_path / "level3" / "ranges.py"
    file.write_text(FILE, encoding="utf-8")
    problem = read_problem(file)
    decompose(problem, out := tmp_path / "out")
    (component,) = (out / "level_1_fusion").glob(f"{name}*.py")
    rewrite_inputs(problem, capture_graph(problem), out, [str(component.relative_to(out))])
    module = runpy.run_path(str(component))
    torch.manual_seed(5)
    assert module["Model"]()(*module["get_inputs"]()).isfinite().all(), component.read_text()


DULL = """\
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.fc(x)), x[:, :4] * 0.0

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""


def test_a_kernel_that_gave_one_number_draws_others_if_the_model_gives_others(
    tmp_path: Path,
) -> None:
    (tmp_path / "level3").mkdir()
    file = tmp_path / "level3" / "dull.py"
    file.write_text(DULL, encoding="utf-8")
    problem = read_problem(file)
    decompose(problem, out := tmp_path / "out")
    tanh, zero = (next(out.glob(f"level_0_kernel/{name}*.py")) for name in ("tanh", "mul"))
    files = [str(path.relative_to(out)) for path in (tanh, zero)]
    texts = [path.read_text() for path in (tanh, zero)]
    assert not rewrite_inputs(problem, capture_graph(problem), out, [], files[1:])
    assert [path.read_text() for path in (tanh, zero)] == texts
    assert rewrite_inputs(problem, capture_graph(problem), out, [], files)
    assert "uniform_" in tanh.read_text()
    assert zero.read_text() == texts[1]
