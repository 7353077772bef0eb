"""vector-quantize-pytorch's quantiser of an image's features, with several heads."""

import torch
from vector_quantize_pytorch import VectorQuantize


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = VectorQuantize(
            dim=32,
            codebook_dim=16,
            codebook_size=48,
            heads=4,
            separate_codebook_per_head=True,
            accept_image_fmap=True,
        )

    def forward(self, features):
        return self.net(features)


def get_inputs():
    return [torch.randn(2, 32, 8, 8)]


def get_init_inputs():
    return []
