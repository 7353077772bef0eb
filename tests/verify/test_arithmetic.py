"""How a GPU is told to compute; the switches are there on a machine without one, too."""

from collections.abc import Iterator

import pytest
import torch

from runner.verify.findings import Findings
from runner.verify.options import VerifyOptions
from runner.verify.runtime.arithmetic import describe_arithmetic, exact_arithmetic

matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn


def switches() -> dict[str, bool]:
    return {
        "matmul in TF32": matmul.allow_tf32,
        "convolutions in TF32": cudnn.allow_tf32,
        "half sums in half": matmul.allow_fp16_reduced_precision_reduction,
        "deterministic": torch.are_deterministic_algorithms_enabled() and cudnn.deterministic,
        "by trial": cudnn.benchmark,
    }


@pytest.fixture(params=[False, True])
def fast(request: pytest.FixtureRequest) -> Iterator[None]:
    before, matmul.allow_tf32 = matmul.allow_tf32, request.param
    yield
    matmul.allow_tf32 = before


@pytest.mark.usefixtures("fast")
def test_a_gpu_computes_in_full_precision_and_the_same_each_time() -> None:
    before = switches()
    with exact_arithmetic("cuda:0"):
        assert switches() == {
            "matmul in TF32": False,
            "convolutions in TF32": False,
            "half sums in half": False,
            "deterministic": True,
            "by trial": False,
        }
    assert switches() == before


def test_a_cpu_computes_the_same_each_time() -> None:
    before, strict = switches(), torch.are_deterministic_algorithms_enabled()
    with exact_arithmetic("cpu"):
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert switches() == before
    assert torch.are_deterministic_algorithms_enabled() is strict


def test_the_verdict_says_it() -> None:
    said = Findings(lambda gate: None).build_verification(VerifyOptions(device="cuda"), "2.13.0")
    assert said.arithmetic == describe_arithmetic("cuda")
    assert "TF32 off" in str(said.arithmetic)
    assert (
        Findings(lambda gate: None).build_verification(VerifyOptions(), "2.13.0").arithmetic is None
    )
