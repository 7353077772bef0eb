"""Problem files written where a test runs, whole or broken in one place."""

from collections.abc import Callable
from pathlib import Path

import pytest

WHOLE = '''\
"""Doubling, as small as a problem can be."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def get_inputs():
    return [torch.randn(2, 3)]


def get_init_inputs():
    return [2.0]
'''

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("return x", "return None")`: the whole problem with one passage replaced."""

    def written(old: str = "", new: str = "", *, name: str = "doubling.py") -> Path:
        assert old in WHOLE
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WHOLE.replace(old, new) if old else WHOLE, encoding="utf-8")
        return path

    return written
