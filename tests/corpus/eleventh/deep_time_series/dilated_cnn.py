"""Dilated convolutional forecaster: encoder body."""

import torch
from deep_time_series.model.dilated_cnn import DilatedCNN
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = DilatedCNN(
            hidden_size=32,
            encoding_length=24,
            decoding_length=6,
            target_names=["y"],
            nontarget_names=["a", "b"],
            dilation_base=2,
            kernel_size=3,
        )

    def forward(self, nontargets, targets, future):
        return self.model.encode({"encoding.targets": targets, "encoding.nontargets": nontargets})


def get_inputs():
    return [torch.randn(4, 24, 2), torch.randn(4, 24, 1), torch.randn(4, 6, 2)]


def get_init_inputs():
    return []
