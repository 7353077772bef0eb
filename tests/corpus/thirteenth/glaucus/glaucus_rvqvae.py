"""Glaucus RVQ-VAE: SEANet encoder and decoder, residual vector quantisation of radio signals."""

import torch
from glaucus import GlaucusRVQVAE
from torch import nn


class Model(nn.Module):
    def __init__(self, filters, dim):
        super().__init__()
        self.model = GlaucusRVQVAE(
            conv_filters=filters,
            embed_dim=dim,
            num_quantizers=4,
            num_embed=256,
            lstm=1,
            data_format="ncl",
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 2, 2048)]


def get_init_inputs():
    return [16, 64]
