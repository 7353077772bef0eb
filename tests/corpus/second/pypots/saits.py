"""SAITS: two blocks of self-attention with the diagonal masked fill in a series' missing values."""

import torch
from pypots.nn.modules.saits import BackboneSAITS


class Model(torch.nn.Module):
    def __init__(self, steps, features):
        super().__init__()
        self.backbone = BackboneSAITS(steps, features, 2, 64, 4, 16, 16, 128, 0.1, 0.0)
        self.register_buffer("diagonal", (1 - torch.eye(steps)).unsqueeze(0))

    def forward(self, series, observed):
        first, second, third, _, _ = self.backbone(series * observed, observed, self.diagonal)[:5]
        return first, second, third * (1 - observed) + series * observed


def get_inputs():
    return [torch.randn(4, 24, 10), torch.randint(0, 2, (4, 24, 10)).float()]


def get_init_inputs():
    return [24, 10]
