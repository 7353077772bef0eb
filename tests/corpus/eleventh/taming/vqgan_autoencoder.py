"""VQGAN: encoder, vector quantiser and decoder."""

import torch
from taming.modules.diffusionmodules.model import Decoder, Encoder
from taming.modules.vqvae.quantize import VectorQuantizer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        config = {
            "ch": 32,
            "out_ch": 3,
            "ch_mult": (1, 2, 2),
            "num_res_blocks": 1,
            "attn_resolutions": [16],
            "in_channels": 3,
            "resolution": 64,
            "z_channels": 64,
        }
        self.encoder = Encoder(double_z=False, **config)
        self.quantize = VectorQuantizer(256, 64, beta=0.25)
        self.quant_conv = nn.Conv2d(64, 64, 1)
        self.post_quant_conv = nn.Conv2d(64, 64, 1)
        self.decoder = Decoder(**config)

    def forward(self, x):
        quantized, _, info = self.quantize(self.quant_conv(self.encoder(x)))
        return self.decoder(self.post_quant_conv(quantized)), info[2]


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
