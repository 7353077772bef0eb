"""Anomaly Transformer: attention of series compared with a learned Gaussian prior."""

import torch
from deepod.models.time_series.anomalytransformer import AnomalyTransformerModel


class Model(torch.nn.Module):
    def __init__(self, length):
        super().__init__()
        self.net = AnomalyTransformerModel(
            win_size=length, enc_in=25, c_out=25, d_model=256, d_ff=256, e_layers=3, device="cpu"
        )

    def forward(self, series):
        return self.net(series)


def get_inputs():
    return [torch.randn(2, 100, 25)]


def get_init_inputs():
    return [100]
