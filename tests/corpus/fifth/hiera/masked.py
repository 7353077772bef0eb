"""Hiera as a masked autoencoder: whole mask units are dropped before the encoder."""

import torch
from hiera import MaskedAutoencoderHiera


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = MaskedAutoencoderHiera(
            input_size=(size, size),
            embed_dim=64,
            num_heads=1,
            stages=(2, 3, 6, 2),
            q_pool=2,
            decoder_embed_dim=192,
            decoder_depth=3,
            decoder_num_heads=6,
        )

    def forward(self, images, mask):
        return self.net(images, mask=mask)


def get_inputs():
    order = torch.rand(1, 49).argsort(1)
    return [torch.randn(1, 3, 224, 224), order < 20]


def get_init_inputs():
    return [224]
