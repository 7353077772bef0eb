"""Wide ResNet of pytorch-ood with the energy and the entropy of its logits."""

import torch
from pytorch_ood.detector import EnergyBased, Entropy
from pytorch_ood.model import WideResNet
from torch import nn


class Model(nn.Module):
    def __init__(self, classes, depth, widen):
        super().__init__()
        self.model = WideResNet(num_classes=classes, depth=depth, widen_factor=widen)

    def forward(self, image):
        logits = self.model(image)
        return logits, EnergyBased.score(logits), Entropy.score(logits)


def get_inputs():
    return [torch.rand(2, 3, 32, 32)]


def get_init_inputs():
    return [10, 16, 2]
