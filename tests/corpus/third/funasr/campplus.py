"""CAM++ for speaker embeddings: a 2D residual front end and densely connected time-delay layers
with context-aware masks, pooled over segments."""

import torch
from funasr.models.campplus.model import CAMPPlus


class Model(torch.nn.Module):
    def __init__(self, features, size):
        super().__init__()
        self.net = CAMPPlus(feat_dim=features, embedding_size=size, memory_efficient=False)

    def forward(self, fbank):
        return self.net(fbank)


def get_inputs():
    return [torch.randn(2, 200, 80)]


def get_init_inputs():
    return [80, 192]
