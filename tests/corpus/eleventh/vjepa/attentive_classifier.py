"""V-JEPA: attentive probe on encoder tokens."""

import torch
from torch import nn
from vjepa.models.attentive_pooler import AttentiveClassifier


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = AttentiveClassifier(embed_dim=192, num_heads=4, depth=2, num_classes=50)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 64, 192)]


def get_init_inputs():
    return []
