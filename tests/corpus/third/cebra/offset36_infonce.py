"""CEBRA: neural activity to points on a sphere by 16 skipped convolutions, with the InfoNCE loss.

Reference, positive and negative windows go through one encoder, as in its training step; the
temperature is learnable.
"""

import cebra.models
import torch
from cebra.models.criterions import LearnableCosineInfoNCE


class Model(torch.nn.Module):
    def __init__(self, neurons, units, dims):
        super().__init__()
        self.encoder = cebra.models.init("offset36-model-more-dropout", neurons, units, dims)
        self.criterion = LearnableCosineInfoNCE(temperature=1.0)

    def forward(self, reference, positive, negative):
        return self.criterion(
            self.encoder(reference), self.encoder(positive), self.encoder(negative)
        )


def get_inputs():
    return [torch.randn(64, 120, 36) for _ in range(3)]


def get_init_inputs():
    return [120, 64, 8]
