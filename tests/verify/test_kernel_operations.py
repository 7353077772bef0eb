"""The operations of a kernel are compared with those that a run of the original shows."""

from pathlib import Path

import pytest

from runner.verify.guard.one_operation import find_kernel_operations

ATTENTION = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        weights = torch.softmax(torch.bmm(q * 0.5, k.transpose(1, 2)), -1)
        return {result}


def get_inputs():
    return [torch.zeros(8, 6, 4) for _ in range(3)]


def get_init_inputs():
    return []
"""
RECORDED = (
    "torch.ops.aten.clone.default(torch.bmm(weights, v).transpose(0, 1),"
    " memory_format=torch.contiguous_format).view(12, 16)"
)


@pytest.mark.parametrize("copy", ["reshape(12, 16)", "contiguous().view(12, 16)"])
def test_a_layout_copy_is_one_operation_however_it_is_written(tmp_path: Path, copy: str) -> None:
    written = f"torch.bmm(weights, v).transpose(0, 1).{copy}"
    operations = [
        find_kernel_operations(ATTENTION.format(result=result), tmp_path)
        for result in (written, RECORDED)
    ]
    assert operations[0] == operations[1] != set()
