"""Operators that a package adds to torch: the files that call them import the package."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from verdicts import assert_passes, complaints_of

from runner.emit import decompose
from runner.errors import CaptureError
from runner.graph.tracing.capture import capture
from runner.problems import read_problem
from runner.verify import VerifyOptions, verify
from runner.verify.guard.standalone_runs import _get_server

PACKAGE = """
import torch

@torch.library.custom_op("opkit::scaled_tanh", mutates_args=())
def scaled_tanh(x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.tanh(x) * scale

@torch.library.custom_op("opkit::add", mutates_args=())
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x - y

@torch.library.custom_op("opkit::save", mutates_args=())
def save(x: torch.Tensor, path: str) -> torch.Tensor:
    torch.save(x, path)
    return x + 1

for operator in (scaled_tanh, add, save):
    operator.register_fake(lambda x, other: torch.empty_like(x))
"""
PROBLEM = """
import torch
from torch import nn
import opkit


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 16)
        self.register_buffer("table", torch.ops.opkit.scaled_tanh(torch.rand(16), 2.0))

    def forward(self, x):
        h = opkit.scaled_tanh(self.fc(x), 2.0)
        return torch.ops.opkit.add(h, self.table).relu()


def get_inputs():
    return [torch.randn(4, 16)]


def get_init_inputs():
    return []
"""
KERNEL = "level_0_kernel/opkit_scaled_tanh_4x16_scale2p0_fp32.py"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The decomposition of a problem that calls operators of a package that is installed."""
    folder = tmp_path_factory.mktemp("environment")
    package = folder / "site-packages" / "opkit"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE)
    (folder / "problem.py").write_text(PROBLEM)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.parent)
        patch.setenv("PYTHONPATH", str(package.parent))
        _get_server.cache_clear()  # An earlier test's server does not know the package.
        decompose(read_problem(folder / "problem.py"), folder / "out")
        yield folder / "out"
    _get_server.cache_clear()


@pytest.fixture
def decomposed(written: Path, tmp_path: Path) -> Path:
    """A copy of the decomposition."""
    return Path(shutil.copytree(written, tmp_path / "out"))


@pytest.fixture
def edit(decomposed: Path) -> Callable[[str, str], list[str]]:
    """Replace text in the kernel that calls scaled_tanh, and return why it is refused."""

    def reasons(old: str, new: str) -> list[str]:
        for file in decomposed.rglob(Path(KERNEL).name):
            assert old in file.read_text()
            file.write_text(file.read_text().replace(old, new))
        return [check.reason for check in complaints_of(verify(decomposed, VerifyOptions()))]

    return reasons


@pytest.mark.long  # each file runs in an interpreter of its own
def test_the_files_import_the_package_run_alone_and_pass(decomposed: Path) -> None:
    assert "\nimport opkit  # adds torch.ops.opkit\n" in (decomposed / KERNEL).read_text()
    subprocess.run([sys.executable, decomposed / KERNEL], check=True)
    assert_passes(verify(decomposed, VerifyOptions()))


def test_an_operator_is_not_taken_for_torchs_of_the_same_name(decomposed: Path) -> None:
    (kernel,) = decomposed.glob("level_0_kernel/*add*")
    assert kernel.name.startswith("opkit_add")


CALL = "torch.ops.opkit.scaled_tanh.default(x, 2.0)"


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("opkit.scaled_tanh(x, 2.0)", "imports opkit (line "),
        ("torch.ops.opkit.scaled_tanh(x, 2.0) + opkit.ONE", "uses opkit (line"),
        ("torch.ops.opkit.scaled_tanh(x, 3.0)", "output differs by"),
        ("torch.ops.opkit.add(torch.ops.opkit.scaled_tanh(x, 2.0), x)", "more than one operation"),
        ("torch.ops.opkit.save(x, '/dev/null')", "opkit::save is no function of torch"),
        ("torch.ops.opkit.scaled_tanh.__class__(x, 2.0)", "uses __class__"),
    ],
)
def test_a_file_that_does_something_else_with_the_package_is_refused(
    edit: Callable[[str, str], list[str]], new: str, reason: str
) -> None:
    reasons = edit(CALL, new)
    assert any(reason in text for text in reasons), reasons


def test_an_operator_of_the_problem_itself_is_refused(tmp_path: Path) -> None:
    """No file could import it."""
    own = PACKAGE.replace("opkit", "mine")
    (tmp_path / "problem.py").write_text(
        PROBLEM.replace("import opkit\n", own).replace("opkit.", "").replace("torch.ops.", "")
    )
    with pytest.raises(
        CaptureError, match=r"calls mine::scaled_tanh, .*; define it in a package mine"
    ):
        capture(read_problem(tmp_path / "problem.py"))
