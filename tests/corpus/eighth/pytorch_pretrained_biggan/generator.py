"""Generator of BigGAN from pytorch-pretrained-biggan, with narrow channels."""

import torch
from pytorch_pretrained_biggan import BigGAN, BigGANConfig
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.model = BigGAN(
            BigGANConfig(
                output_dim=128,
                z_dim=64,
                class_embed_dim=64,
                channel_width=width,
                num_classes=100,
                layers=[
                    [False, 16, 16],
                    [True, 16, 16],
                    [False, 16, 16],
                    [True, 16, 8],
                    [False, 8, 8],
                    [True, 8, 4],
                    [True, 4, 2],
                    [True, 2, 1],
                ],
                attention_layer_position=4,
                n_stats=11,
            )
        )

    def forward(self, noise, label):
        return self.model(noise, label, 0.6)


def get_inputs():
    return [torch.randn(1, 64), nn.functional.one_hot(torch.tensor([7]), 100).float()]


def get_init_inputs():
    return [32]
