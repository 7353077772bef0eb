"""Vector-quantised autoencoder for slices from monai-generative."""

import torch
from generative.networks.nets import VQVAE
from torch import nn


class Model(nn.Module):
    def __init__(self, width, codes):
        super().__init__()
        self.model = VQVAE(
            spatial_dims=2,
            in_channels=1,
            out_channels=1,
            num_channels=(width, 2 * width),
            num_res_channels=(width, 2 * width),
            num_res_layers=2,
            downsample_parameters=((2, 4, 1, 1), (2, 4, 1, 1)),
            upsample_parameters=((2, 4, 1, 1, 0), (2, 4, 1, 1, 0)),
            num_embeddings=codes,
            embedding_dim=32,
        )

    def forward(self, image):
        reconstruction, loss = self.model(image)
        return reconstruction, loss


def get_inputs():
    return [torch.rand(2, 1, 64, 64)]


def get_init_inputs():
    return [64, 256]
