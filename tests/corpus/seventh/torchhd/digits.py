"""Hyperdimensional computing of Torchhd: pixels' positions bound to their levels, bundled into one
hypervector, compared with the centroids of ten classes."""

import torch
import torchhd
from torchhd import embeddings, models


class Model(torch.nn.Module):
    def __init__(self, dimensions, pixels, levels, classes):
        super().__init__()
        self.position = embeddings.Random(pixels, dimensions)
        self.value = embeddings.Level(levels, dimensions)
        self.centroid = models.Centroid(dimensions, classes)
        torch.nn.init.normal_(self.centroid.weight)

    def forward(self, images):
        bound = torchhd.bind(self.position.weight, self.value(images.flatten(1)))
        sample = torchhd.hard_quantize(torchhd.multiset(bound))
        return self.centroid(sample)


def get_inputs():
    return [torch.rand(2, 28, 28)]


def get_init_inputs():
    return [2000, 784, 100, 10]
