"""SegFormer: a hierarchical transformer with reduced attention and an all-MLP decoder."""

import torch
from segformer_pytorch import Segformer


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.model = Segformer(
            dims=(32, 64, 160, 256),
            heads=(1, 2, 5, 8),
            ff_expansion=(8, 8, 4, 4),
            reduction_ratio=(8, 4, 2, 1),
            num_layers=2,
            decoder_dim=256,
            num_classes=classes,
        )

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(1, 3, 256, 256)]


def get_init_inputs():
    return [4]
