"""What a model computes from nothing is an input like any other to the kernel that reads it."""

from pathlib import Path

from runner.emit import decompose
from runner.problems import read_problem
from runner.verify import VerifyOptions, verify

MASKED = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        positions = torch.arange(6)
        mask = (positions[None] <= positions[:, None]) & (positions[None] > positions[:, None] - 3)
        mask = mask.expand(2, 1, 6, 6)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return F.scaled_dot_product_attention(x, k, v, attn_mask=mask)


def get_inputs():
    return [torch.randn(2, 4, 6, 8) for _ in range(3)]


def get_init_inputs():
    return []
"""


def test_a_mask_of_numbers_alone_is_converted_by_the_attention_that_takes_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "level3" / "masked.py"
    file.parent.mkdir()
    file.write_text(MASKED)
    decompose(read_problem(file), tmp_path / "out")
    assert verify(tmp_path / "out", VerifyOptions(trials=1)).first_failure is None
