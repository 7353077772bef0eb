"""VFormer's convolutional vision transformer: tokens and attention's projections by
convolutions."""

import torch
from vformer.models.classification import ConvVT


class Model(torch.nn.Module):
    def __init__(self, side, classes):
        super().__init__()
        self.model = ConvVT(img_size=side, n_classes=classes, depth=[1, 2, 6])

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(2, 3, 128, 128)]


def get_init_inputs():
    return [128, 100]
