"""xLSTM with an mLSTM and an sLSTM block, unrolled over the sequence."""

import torch
from torch import nn
from torchxlstm import xLSTM


class Model(nn.Module):
    def __init__(self, input_size):
        super().__init__()
        self.model = xLSTM(
            input_size, head_size=16, num_heads=4, layers=["m", "s"], batch_first=True
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 6, 32)]


def get_init_inputs():
    return [32]
