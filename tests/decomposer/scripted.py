"""The problem that scripted decomposers take apart, and how they are called."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from runner.batch.attempt import Attempt

AGENT = Path(__file__).with_name("agent.py")

PROBLEM = '''\
"""A convolution and a ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, kernel_size=3)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(2, 3, 8, 8)]


def get_init_inputs():
    return [4]
'''

Take = Callable[..., Attempt]


def command(behaviour: str, good: Path) -> str:
    """The scripted decomposer that behaves so."""
    words = [sys.executable, str(AGENT), behaviour, str(good)]
    return f"{shlex.join(words)} {{output}}"
