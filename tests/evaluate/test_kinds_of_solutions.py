"""Solutions of each kind that people write: a layer, a fusion, folded weights, compilers."""

import shutil
from pathlib import Path

import pytest
import torch
from solution_files import HEAD

from runner.emit import decompose
from runner.evaluate.evaluation import evaluate
from runner.evaluate.requests import EvaluationRequest
from runner.problems import read_problem
from runner.store.evaluation import Evaluation
from runner.tree.document import Tree

pytestmark = pytest.mark.long

NO_COMPILER = "no C++ compiler: torch.compile and load_inline need g++"
HAS_COMPILER = shutil.which("g++") is not None

FOLDED = """
def convert_weights(state_dict):
    variance = state_dict["bn.running_var"].double() + 1e-5
    scale = state_dict["bn.weight"].double() / torch.sqrt(variance)
    shift = state_dict["bn.bias"].double() - state_dict["bn.running_mean"].double() * scale
    weight = state_dict["conv.weight"].double() * scale[:, None, None, None]
    return {"conv.weight": weight.float(), "conv.bias": shift.float()}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 32, kernel_size=4, stride=4)

    def forward(self, x):
        return self.conv(x).relu_()
"""
ATTENTION = """
class ModelNew(nn.Module):
    def forward(self, query, key, value):
        attended = F.scaled_dot_product_attention(query, key, value)
        return attended.transpose(1, 2).reshape(2, 16, 32)
"""
LAYER = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(32))

    def forward(self, x):
        return F.rms_norm(x, (32,), self.weight, 1e-5)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 16, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v)
        return self.out(attended.transpose(1, 2).reshape(2, 16, 32))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(32, 64, bias=False)
        self.up = nn.Linear(32, 64, bias=False)
        self.down = nn.Linear(64, 32, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)).mul_(self.up(x)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = Norm(), Norm()
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))
"""
COMPILED_SWIGLU = """
@torch.compile(options={"cpp_cache_precompile_headers": False})
def activate(gate, up):
    return F.silu(gate) * up


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return activate(gate, up)
"""
INLINE_SWIGLU = '''
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <cmath>
using torch::stable::Tensor;

Tensor swiglu(Tensor gate, Tensor up) {
  Tensor y = torch::stable::empty_like(gate);
  const float *a = gate.const_data_ptr<float>(), *b = up.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  for (int64_t i = 0; i < gate.numel(); ++i) out[i] = a[i] / (1 + std::exp(-a[i])) * b[i];
  return y;
}
STABLE_TORCH_LIBRARY(inline_cpp, m) { m.def("swiglu(Tensor gate, Tensor up) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(inline_cpp, CPU, m) { m.impl("swiglu", TORCH_BOX(&swiglu)); }
"""
load_inline("swiglu", SOURCE, is_python_module=False, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return torch.ops.inline_cpp.swiglu(gate, up)
'''
"""torch/extension.h, which most people include, takes the compiler ten times as long."""


@pytest.fixture(scope="module")
def vision_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("output") / "custom" / "small_vision_model"
    problem = Path(__file__).with_name("small_vision_model.py")
    decompose(read_problem(problem), directory)
    return directory


def evaluate_solutions(directory: Path, folder: Path, texts: dict[str, str]) -> Evaluation:
    """Evaluate solutions for the components whose names begin with the keys."""
    stems = {Path(node.path).stem for node in Tree.read(directory).nodes.values()}
    for head, text in texts.items():
        (stem,) = (stem for stem in stems if stem.startswith(head))
        (folder / f"{stem}.py").write_text(HEAD + text, encoding="utf-8")
    request = EvaluationRequest(directory=directory, solutions=folder, measured=False)
    evaluation = evaluate(request).evaluation
    assert evaluation is not None
    return evaluation


def test_folded_weights_an_attention_of_pytorch_and_a_layer_are_right(
    vision_model: Path, tmp_path: Path
) -> None:
    texts = {"stem": FOLDED, "scaled_dot_product_attention": ATTENTION, "block": LAYER}
    evaluation = evaluate_solutions(vision_model, tmp_path, texts)
    assert [row.reason for row in evaluation.solutions] == [None] * 3
    assert [row.level for row in evaluation.solutions] == ["layer", "fusion", "kernel"]
    assert evaluation.is_all_right
    assert any("decompose it with --mode train" in note for note in evaluation.notes)  # batch norm


@pytest.mark.skipif(not HAS_COMPILER, reason=NO_COMPILER)
def test_a_compiled_activation_is_right(vision_model: Path, tmp_path: Path) -> None:
    evaluation = evaluate_solutions(vision_model, tmp_path, {"swiglu": COMPILED_SWIGLU})
    assert [row.reason for row in evaluation.solutions] == [None]
    assert evaluation.is_all_right


@pytest.mark.skipif(not HAS_COMPILER, reason=NO_COMPILER)
@pytest.mark.skipif(torch.__version__ < "2.10", reason="its headers are those of torch 2.10")
def test_inline_cpp_is_compiled_in_the_confined_process(vision_model: Path, tmp_path: Path) -> None:
    evaluation = evaluate_solutions(vision_model, tmp_path, {"swiglu": INLINE_SWIGLU})
    assert [row.reason for row in evaluation.solutions] == [None]
    assert evaluation.is_all_right
