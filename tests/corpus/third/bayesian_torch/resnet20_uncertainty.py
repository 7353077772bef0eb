"""Bayesian ResNet-20 with flipout layers: three sampled passes, mean, variance and KL divergence.

Every convolution draws weights from its Gaussian posterior and random signs.
"""

import torch
from bayesian_torch.models.bayesian.resnet_flipout import resnet20


class Model(torch.nn.Module):
    def __init__(self, samples):
        super().__init__()
        self.samples = samples
        self.net = resnet20()

    def forward(self, images):
        results = [self.net(images) for _ in range(self.samples)]
        probabilities = torch.stack([logits.softmax(-1) for logits, _ in results])
        return probabilities.mean(0), probabilities.var(0), results[0][1]


def get_inputs():
    return [torch.randn(4, 3, 32, 32)]


def get_init_inputs():
    return [3]
