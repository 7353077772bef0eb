"""Packed-Ensembles ResNet-18: four nets as groups of one, softmax of each and their mean."""

import torch
from torch_uncertainty.models.classification import packed_resnet


class Model(torch.nn.Module):
    def __init__(self, estimators):
        super().__init__()
        self.estimators = estimators
        self.net = packed_resnet(
            in_channels=3, num_classes=10, arch=18, num_estimators=estimators, alpha=2, gamma=2
        )

    def forward(self, image):
        logits = self.net(image).reshape(self.estimators, len(image), -1)
        return logits, logits.softmax(-1).mean(0)


def get_inputs():
    return [torch.rand(2, 3, 64, 64)]


def get_init_inputs():
    return [4]
